"""`Schema`: what a fitted model remembers of its table, so that new data are read like it.

A schema knows the columns of the training input (also dropped ones), which of them are variables of
the model, their families, their labels in the order of the codes, and the container they came in.
`rows` turns any input into codes and numbers, `decode` turns these back into values in that
container.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import column_error, resolve_names
from latenttree.data.columns.groups import Groups
from latenttree.data.containers import (
    Container,
    Frame,
    InputColumn,
    TableInput,
    arranged,
    as_frame,
    block_form,
    container_of,
)
from latenttree.data.found_events import Events
from latenttree.data.schema.decode import decoded
from latenttree.data.schema.fields import SchemaFields, is_whole
from latenttree.data.schema.json_form import schema_from_json, schema_to_json
from latenttree.data.schema.new_data import Reader
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.unseen import HandleUnknown, Unseen
from latenttree.data.table import Table
from latenttree.data.values import CODED
from latenttree.errors import DataError

__all__ = ["Rows", "Schema"]

ONLY_KNOWN = "only known values can be decoded"


@dataclass(frozen=True, eq=False)
class Schema(SchemaFields):
    """The columns of a training input and how their values are coded.

    Attributes
    ----------
    kind : kind of the table: "codes", "sparse_binary" or "blocks".
    names : (p,) variables of the model.
    dims : (p,) categories of each variable; of those of other families the width, 1 for a number.
    categories : labels of each variable in the order of its codes, or None (sparse binary, blocks,
        numbers).
    columns : all columns (or blocks) of the input in order, also those that were dropped.
    index : (p,) column of each variable.
    container : "array", "sparse array", "sparse matrix", "dict", "list", "table", or the
        library of the DataFrame ("pandas", "polars", ...).
    named : whether the input had names of its own, as a DataFrame or a dict has, or was given some.
    whole_names : whether the names were integers, as pandas gives them by default.
    members : for a matrix with `groups`: the matrix columns of each of `columns`.
    families : (p,) the family of each variable, one of `TABLE_FAMILIES`; all
        categorical if not given.

    Examples
    --------
    >>> import numpy as np
    >>> from latenttree.data import Schema, as_table
    >>> X = np.array([["no", "red"], ["yes", "blue"], ["no", "blue"]])
    >>> schema = Schema.of(X, as_table(X))
    >>> schema.encode(np.array([["yes", "blue"], [None, "red"]], dtype=object))
    array([[ 1,  0],
           [-1,  1]], dtype=int8)
    >>> schema.decode([[1, 0]])
    array([['yes', 'blue']], dtype='<U4')
    """

    @classmethod
    def of(
        cls,
        X: Any,
        table: Table,
        groups: Groups | None = None,
        names: Sequence[Any] | None = None,
    ) -> Schema:
        """The schema of `X`, given `table = as_table(X, groups, names, ...)`; that of the table
        itself where `X` is the path of a file, or events."""
        if isinstance(X, str | os.PathLike | Events):
            X, groups, names = table, None, None
        container = container_of(X, groups)
        columns = described(container, table)
        own = [column.name for column in columns]
        resolved = resolve_names(names, len(columns), own)
        position = {name: j for j, name in enumerate(resolved)}
        index = np.array([position[name] for name in table.names], dtype=np.int64)
        frame = isinstance(container, Frame)
        own_names = container.own_names is not None and container.members is None
        whole = frame and all(map(is_whole, container.own_names or ()))
        if not own_names:  # names= are all the names there are
            columns = [replace(column, name=n) for column, n in zip(columns, resolved, strict=True)]
        for j in np.setdiff1d(np.arange(len(columns)), index).tolist():
            value = container.constant(j)
            if value is not None and table.kind == "sparse_binary":
                value = (value > 0).astype(np.int64)
            columns[j] = replace(columns[j], constant=value)
        return cls(
            table.kind,
            table.names,
            _model_dims(table),
            _labels(table),
            tuple(columns),
            index,
            container.name,
            named=names is not None or (own_names and not whole),
            whole_names=whole,
            members=container.members,
            families=table.families,
        )

    # --- encode ----------------------------------------------------------------------

    def encode(
        self,
        X: Any,
        *,
        n_min: int = 1,
        unused: Collection[str] = (),
        handle_unknown: HandleUnknown = "error",
    ) -> NDArray[Any]:
        """(n, p) codes of new data, -1 where a value is missing; int8, int16 or int32.

        Parameters
        ----------
        X : any input that `fit` takes. Columns of a DataFrame or dict are found by name, in any
            order; those of an array by position.
        n_min : the least number of rows.
        unused : variables that are not read: all their codes are -1, and a DataFrame or dict
            need not have them.
        handle_unknown : "error" refuses labels that training did not have, "missing" makes them
            missing with one `DataWarning`. Either way fractions between the levels of an ordinal
            variable are rounded, as in training, with a warning.

        Raises
        ------
        DataError : unknown or absent columns, unseen categories, wrong types, no rows.
        """
        rows = self.rows(X, n_min=n_min, unused=unused, handle_unknown=handle_unknown)
        return rows.take(0, rows.n_samples)

    def rows(
        self,
        X: Any,
        *,
        n_min: int = 1,
        unused: Collection[str] = (),
        handle_unknown: HandleUnknown = "error",
    ) -> Rows:
        """Codes and numbers of new data, checked now; a sparse `X` is made dense a range at a time.
        Arguments as in `encode`."""
        return Reader(self, n_min, unused, Unseen(handle_unknown)).read(X)

    # --- decode and files ------------------------------------------------------------

    def decode(self, codes: Any, arrays: Mapping[int, Any] | None = None, like: Any = None) -> Any:
        """The values of `(n, p)` codes and of `arrays`, in the container of the training input.

        All must be known: no code of a categorical variable is -1, no number NaN. Numbers are
        rounded where the type of their column asks for it. Columns that were dropped in training
        hold the single value that they had. Where both the training input and `like` are
        DataFrames, the result has the order of columns, and in pandas the index, of `like`; so it
        has where the training input was a file.
        """
        known = np.asarray(codes)
        self._check_codes(known)
        arrays = {} if arrays is None else arrays
        self._check_arrays(arrays, len(known))
        result = decoded(self._in_frames_like(like), known, arrays)
        return result if like is None else arranged(result, like)

    def _in_frames_like(self, like: Any) -> Schema:
        """The schema of a DataFrame like `like`, where training was on a file of single columns."""
        frame = as_frame(like) if self.container == "table" and like is not None else None
        if frame is None or any(column.form != "vector" for column in self.columns):
            return self
        return replace(self, container=frame.implementation.name.lower())

    def _check_codes(self, codes: NDArray[Any]) -> None:
        if codes.ndim != 2 or codes.shape[1] != self.n_vars:
            remedy = f"give one column for each of {self.n_vars} variables"
            raise DataError(f"codes have shape {codes.shape}", remedy, value=codes.shape)
        wrong = ((codes < 0) | (codes >= self.dims)) & self.coded
        if wrong.any():
            row, i = map(int, np.argwhere(wrong)[0])
            code, name = int(codes[row, i]), self.names[i]
            what = f"code {code} at row {row}, variable {name!r}, is outside 0..{self.dims[i] - 1}"
            raise DataError(what, ONLY_KNOWN, value=code, row=row, column=name)

    def _check_arrays(self, arrays: Mapping[int, Any], n: int) -> None:
        for i in np.flatnonzero(~self.coded).tolist():
            expected = (n, *self.shape_of(i))
            values = arrays.get(i)
            if values is None or values.shape != expected:
                shape = getattr(values, "shape", None)
                received = "none" if shape is None else f"shape {shape}"
                what = f"values of {self.names[i]!r} have {received}"
                remedy = f"give an array of shape {expected}"
                raise column_error(what, remedy, self.names[i], shape)
            stored = values.data if hasattr(values, "indptr") else values
            if not np.isfinite(stored).all():
                wrong = stored[~np.isfinite(stored)].flat[0]
                what = f"values of {self.names[i]!r} hold NaN or infinity"
                raise column_error(what, ONLY_KNOWN, self.names[i], wrong)

    def to_json(self) -> dict[str, Any]:
        """A record of plain JSON values that loses nothing."""
        return schema_to_json(self)

    @classmethod
    def from_json(cls, record: Any) -> Schema:
        """The schema of a record; raises DataError where it is damaged."""
        return cls(**schema_from_json(record))


def described(container: Container, table: Table) -> list[InputColumn]:
    """The columns of an input. Those of a table are in the form that they have in `table`: ordinal
    labels that became numbers, and the codes of a group, are levels."""
    if not isinstance(container, TableInput):
        return [container.described(j) for j in range(container.shape[1])]
    arrays = {} if table.values is None else table.values.arrays
    columns = [
        InputColumn(name, form=block_form(arrays[v]), levels=container.table.categories[v])
        if v in arrays
        else InputColumn(name)
        for v, name in enumerate(table.names)
    ]
    return columns + [InputColumn(name) for name in table.dropped]


def _labels(table: Table) -> tuple[NDArray[Any] | None, ...]:
    """Labels of categories; the codes of a group are levels of its column."""
    coded = zip(table.families, table.categories, strict=True)
    return tuple(labels if family in CODED else None for family, labels in coded)


def _model_dims(table: Table) -> NDArray[np.int64]:
    """(p,) categories of coded variables, the width of the values of others."""
    dims = table.dims.copy()
    if table.values is not None:
        for v, values in table.values.arrays.items():
            dims[v] = values.shape[1] if values.ndim == 2 else 1
    return dims
