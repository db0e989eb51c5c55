"""`Schema`: what a fitted model remembers of its table, so that new data are read like it.

A schema knows the columns of the training input (also those that were dropped), which of them
are variables of the model, their families, their labels in the order of the codes, and the
container they came in. `rows` takes any input to codes and numbers, `decode` takes them back to
the container.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.blocks import Groups
from latenttree.data.checks import resolve_names
from latenttree.data.containers import Column, arranged, decoded
from latenttree.data.encode import as_frame
from latenttree.data.origin import constant_value, describe
from latenttree.data.records import schema_from_json, schema_to_json
from latenttree.data.rows import Reader, Rows
from latenttree.data.table import CODED, Kind, Table
from latenttree.errors import DataError

__all__ = ["Rows", "Schema"]


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a training input and how their values are coded.

    Attributes
    ----------
    kind : kind of the table: "codes", "presence" or "blocks".
    names : (p,) variables of the model.
    dims : (p,) categories of each variable; of those of other families the width, 1 for a number.
    categories : labels of each variable in the order of its codes, or None (presence, blocks,
        numbers).
    columns : all columns (or blocks) of the input in order, also those that were dropped.
    index : (p,) column of each variable.
    container : "array", "sparse array", "sparse matrix", "dict", "list", "table", or the
        library of the DataFrame ("pandas", "polars", ...).
    named : whether the input had names of its own, as a DataFrame or a dict has.
    whole_names : whether the names were integers, as pandas gives them by default.
    members : for a matrix with `groups`: the matrix columns of each of `columns`.
    families : (p,) the family of each variable, see `table.FAMILIES`; all categorical if not given.

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

    kind: Kind
    names: tuple[str, ...]
    dims: NDArray[np.int64]
    categories: tuple[NDArray[Any] | None, ...]
    columns: tuple[Column, ...]
    index: NDArray[np.int64]
    container: str
    named: bool
    whole_names: bool = False
    members: tuple[NDArray[np.int64], ...] | None = None
    families: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.families:
            object.__setattr__(self, "families", ("categorical",) * len(self.names))

    @classmethod
    def of(
        cls,
        X: Any,
        table: Table,
        groups: Groups | None = None,
        names: Sequence[Any] | None = None,
    ) -> Schema:
        """The schema of `X`, given `table = as_table(X, groups, names, ...)`; that of the table
        itself where `X` is the path of a file."""
        if isinstance(X, str | os.PathLike):
            X, groups, names = table, None, None
        container, columns, members = describe(X, table, groups)
        found = [column.name for column in columns]
        resolved = resolve_names(names, len(columns), found)
        position = {name: j for j, name in enumerate(resolved)}
        index = np.array([position[name] for name in table.names], dtype=np.int64)
        frame = as_frame(X)
        own_names = frame is not None or container in ("dict", "table")
        whole = frame is not None and all(map(_is_whole, frame.columns))
        if not own_names:  # names= are all the names there are
            columns = [column.replace(name=n) for column, n in zip(columns, resolved, strict=True)]
        dropped = np.setdiff1d(np.arange(len(columns)), index)
        for j in dropped.tolist():
            value = constant_value(X, j, members, table.kind == "presence")
            columns[j] = columns[j].replace(constant=value)
        return cls(
            table.kind,
            table.names,
            _model_dims(table),
            _labels(table),
            tuple(columns),
            index,
            container,
            named=own_names and not whole,
            whole_names=whole,
            members=members,
            families=table.families,
        )

    @property
    def n_vars(self) -> int:
        return len(self.names)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of all the columns of the input, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def dropped(self) -> frozenset[str]:
        """Names of the columns that are not in the model."""
        return frozenset(self.input_names) - {self.columns[j].name for j in self.index}

    @property
    def n_features(self) -> int:
        """Columns that an array must have; for a list or dict its blocks."""
        if self.members is not None:
            return sum(map(len, self.members))
        return len(self.columns)

    @cached_property
    def coded(self) -> NDArray[np.bool_]:
        """(p,) True where a variable is a category, so that a code says all."""
        return np.array([family in CODED for family in self.families], dtype=np.bool_)

    @cached_property
    def n_coded(self) -> int:
        return int(self.coded.sum())

    def form_of(self, variable: int) -> str:
        """ "vector", or "dense" or "sparse" where the variable was a block."""
        form = self.columns[self.index[variable]].form
        if form == "vector" and self.members is not None:  # files of an older version
            return "dense" if self.container == "array" else "sparse"
        return form

    def ranked(self, variable: int) -> bool:
        """Whether the numbers of a variable are places among the levels of its column: so a
        Gaussian tree, whose tables of columns are of kind "blocks", reads ordered categories."""
        levels = self.columns[self.index[variable]].levels
        number = not self.coded[variable] and self.form_of(variable) == "vector"
        return number and levels is not None and self.kind == "blocks"

    @cached_property
    def labels(self) -> tuple[NDArray[Any], ...]:
        """(p,) labels of every variable in the order of its codes: 0 and 1 for presence, the
        numbers of the columns for a block without labels; none for what is no category."""
        return tuple(
            np.arange(d if coded else 0) if found is None else found
            for d, found, coded in zip(
                self.dims.tolist(), self.categories, self.coded.tolist(), strict=True
            )
        )

    @property
    def code_dtype(self) -> Any:
        """The smallest signed dtype that holds every code and -1."""
        largest = int(self.dims[self.coded].max(initial=1)) - 1
        return next(t for t in (np.int8, np.int16, np.int32) if largest <= np.iinfo(t).max)

    def variable_of(self, column: int) -> int | None:
        """The variable of a column, None where the column was dropped."""
        return self._variable.get(column)

    @cached_property
    def _variable(self) -> dict[int, int]:
        return {j: i for i, j in enumerate(self.index.tolist())}

    def column_of(self, number: Any) -> int | None:
        """The column that an integer names, where the columns of training had integers as names;
        None for all else."""
        return self._by_number.get(int(number)) if _is_whole(number) else None

    @cached_property
    def _by_number(self) -> dict[int, int]:
        if not self.whole_names:
            return {}
        return {int(name): j for j, name in enumerate(self.input_names)}

    @cached_property
    def numbered(self) -> bool:
        """Whether labels are codes: integers 0..d-1 in every variable."""
        whole = self.kind == "codes" and self.n_coded == self.n_vars
        return whole and all(
            x.dtype.kind in "iu" and np.array_equal(x, np.arange(len(x))) for x in self.labels
        )

    # --- encode ----------------------------------------------------------------------

    def encode(self, X: Any, *, n_min: int = 1, unused: Collection[str] = ()) -> NDArray[Any]:
        """(n, p) codes of new data, -1 where a value is missing; int8, int16 or int32.

        Parameters
        ----------
        X : any input that `fit` takes. Columns of a DataFrame or dict are found by name, in any
            order; those of an array by position.
        n_min : the least number of rows.
        unused : variables that are not read: all their codes are -1, and a DataFrame or dict
            need not have them.

        Raises
        ------
        DataError : unknown or absent columns, unseen categories, wrong types, no rows.
        """
        rows = self.rows(X, n_min=n_min, unused=unused)
        return rows.take(0, rows.n_samples)

    def rows(self, X: Any, *, n_min: int = 1, unused: Collection[str] = ()) -> Rows:
        """Codes and numbers of new data, checked now; a sparse `X` is made dense a range at a
        time. Arguments as in `encode`."""
        return Reader(self, n_min, unused).read(X)

    def numbers(self, variable: int, values: NDArray[Any]) -> Any:
        """Values of a variable that is no category, checked, as `rows` has them: of an `(n,)`
        vector or an `(n, d)` block of anything that numbers and gaps come in."""
        return Reader(self).numbers(variable, values)

    # --- decode and files ------------------------------------------------------------

    def decode(self, codes: Any, arrays: Mapping[int, Any] | None = None, like: Any = None) -> Any:
        """The values of `(n, p)` codes and of `arrays`, in the container of the training input.

        All must be known: no code of a categorical variable is -1, no number NaN. Numbers are
        rounded where the type of their column asks for it. Columns that were dropped in training
        hold the single value that they had. Where both the training input and `like` are
        DataFrames, the result has the order of columns, and in pandas the index, of `like`.
        """
        known = np.asarray(codes)
        self._check_codes(known)
        arrays = {} if arrays is None else arrays
        self._check_arrays(arrays, len(known))
        result = decoded(self, known, arrays)
        return result if like is None else arranged(result, like)

    def _check_codes(self, codes: NDArray[Any]) -> None:
        if codes.ndim != 2 or codes.shape[1] != self.n_vars:
            raise DataError(
                f"codes have shape {codes.shape}",
                f"give one column for each of {self.n_vars} variables",
                value=codes.shape,
            )
        wrong = ((codes < 0) | (codes >= self.dims)) & self.coded
        if wrong.any():
            row, i = np.argwhere(wrong)[0]
            raise DataError(
                f"code {codes[row, i]} at row {row}, variable {self.names[i]!r}, is outside "
                f"0..{self.dims[i] - 1}",
                "only known values can be decoded",
                value=int(codes[row, i]),
                row=int(row),
                column=self.names[i],
            )

    def _check_arrays(self, arrays: Mapping[int, Any], n: int) -> None:
        for i in np.flatnonzero(~self.coded).tolist():
            expected = (n,) if self.form_of(i) == "vector" else (n, int(self.dims[i]))
            values = arrays.get(i)
            if values is None or values.shape != expected:
                found = "none" if values is None else f"shape {values.shape}"
                raise DataError(
                    f"values of {self.names[i]!r} have {found}",
                    f"give an array of shape {expected}",
                    column=self.names[i],
                    value=found,
                )
            stored = values.data if hasattr(values, "indptr") else values
            if not np.isfinite(stored).all():
                raise DataError(
                    f"values of {self.names[i]!r} hold NaN or infinity",
                    "only known values can be decoded",
                    column=self.names[i],
                )

    def to_json(self) -> dict[str, Any]:
        """A record of plain JSON values that loses nothing."""
        return schema_to_json(self)

    @classmethod
    def from_json(cls, record: Any) -> Schema:
        """The schema of a record; raises DataError where it is damaged."""
        return cls(**schema_from_json(record))


def _is_whole(name: Any) -> bool:
    return isinstance(name, int | np.integer) and not isinstance(name, bool)


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
