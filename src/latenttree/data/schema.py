"""`Schema`: what a fitted model remembers of its table, so that new data are read like it.

A schema knows the columns of the training input (also those that were dropped), which of them
are variables of the model, their labels in the order of the codes, and the container they came
in. `encode` takes any input to codes, `decode` takes codes back to the container.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.blocks import (
    Groups,
    as_block,
    canonical_csr,
    common_length,
    group_columns,
    hot_positions,
    split_gaps,
    unsupported_dtype,
)
from latenttree.data.checks import N_SHOWN, check_shape, resolve_names
from latenttree.data.columns import contiguous_columns, stack_columns
from latenttree.data.containers import Column, arranged, column_of_series, decoded
from latenttree.data.encode import as_frame, as_matrix, is_blocks, reject_unreadable
from latenttree.data.lookup import MISSING, known_codes, presence_codes
from latenttree.data.records import schema_from_json, schema_to_json
from latenttree.data.table import Kind, Table
from latenttree.errors import DataError

Values = tuple[Any, NDArray[np.bool_] | None]  # a column or a block, and where it is missing
MODEL = "LatentTree"  # in the words that scikit-learn's checks look for


@dataclass(frozen=True, eq=False)
class Rows:
    """New samples as codes, read a range at a time.

    Attributes
    ----------
    n_samples : n.
    codes : (n, p) signed codes, or None.
    matrix : (n, p) CSR with 1 where a variable is present and -1 where it is missing; used
        instead of `codes` for sparse input, whose dense form may not fit in memory.
    skip : with `matrix`: variables that are not used.
    """

    n_samples: int
    codes: NDArray[Any] | None = None
    matrix: sparse.csr_array | None = None
    skip: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def take(self, start: int, stop: int) -> NDArray[Any]:
        """(stop - start, p) codes, -1 where missing; a view where they are stored."""
        if self.codes is not None:
            return self.codes[start:stop]
        assert self.matrix is not None
        codes = np.asarray(self.matrix[start:stop].toarray())
        codes[:, self.skip] = MISSING
        return codes


@dataclass(frozen=True, eq=False)
class Schema:
    """The columns of a training input and how their values are coded.

    Attributes
    ----------
    kind : kind of the table: "codes", "presence" or "blocks".
    names : (p,) variables of the model.
    dims : (p,) categories of each variable, or the width of its block.
    categories : labels of each variable in the order of its codes, or None (presence, blocks).
    columns : all columns (or blocks) of the input in order, also those that were dropped.
    index : (p,) column of each variable.
    container : "array", "sparse array", "sparse matrix", "dict", "list", "table", or the
        library of the DataFrame ("pandas", "polars", ...).
    named : whether the input had names of its own, as a DataFrame or a dict has.
    whole_names : whether the names were integers, as pandas gives them by default.
    members : for a matrix with `groups`: the matrix columns of each of `columns`.

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

    @classmethod
    def of(
        cls,
        X: Any,
        table: Table,
        groups: Groups | None = None,
        names: Sequence[Any] | None = None,
    ) -> Schema:
        """The schema of `X`, given `table = as_table(X, groups, names, ...)`."""
        container, columns, members = _describe(X, groups)
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
            columns[j] = columns[j].replace(constant=_first_value(X, j, members))
        return cls(
            table.kind,
            table.names,
            table.dims,
            table.categories,
            tuple(columns),
            index,
            container,
            named=own_names and not whole,
            whole_names=whole,
            members=members,
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
    def labels(self) -> tuple[NDArray[Any], ...]:
        """(p,) labels of every variable in the order of its codes: 0 and 1 for presence, the
        numbers of the columns for a block without labels."""
        return tuple(
            np.arange(d) if found is None else found
            for d, found in zip(self.dims.tolist(), self.categories, strict=True)
        )

    @property
    def code_dtype(self) -> Any:
        """The smallest signed dtype that holds every code and -1."""
        largest = int(self.dims.max(initial=1)) - 1
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
    def _numbered(self) -> bool:
        """Whether labels are codes: integers 0..d-1 in every variable."""
        return self.kind == "codes" and all(
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
        """As `encode`: all is checked now, but a sparse `X` is made dense a range at a time."""
        reject_unreadable(X)
        if isinstance(X, Table):
            return self._rows_of_table(X, n_min, unused)
        if sparse.issparse(X):
            check_shape(X.shape, n_min)
            if self.members is None:
                return self._rows_of_sparse(X, None, unused)
            return self._rows_of_matrix(X, unused)
        frame = as_frame(X)
        if frame is not None:
            check_shape(frame.shape, n_min)
            positions = self._match(frame.columns, unused, _has_text(frame.columns))
            series = [frame.get_column(c) for c in frame.columns]
            return self._rows_of_columns(
                frame.shape[0], positions, lambda j: series_values(series[j], frame.columns[j])
            )
        if is_blocks(X):
            return self._rows_of_blocks(X, n_min, unused)
        array = as_matrix(X, n_min)
        if self.members is None:
            return self._rows_of_array(array, unused)
        return self._rows_of_matrix(array, unused)

    def _rows_of_array(self, array: NDArray[Any], unused: Collection[str]) -> Rows:
        self._check_count(array.shape[1])
        skip = self._positions(unused)
        n = len(array)
        mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
        array = np.asarray(array)
        if mask is None and self._fits(array, skip):
            found = array.astype(self.code_dtype)
            found[:, skip] = MISSING
            return Rows(n, found)
        used = set(range(self.n_vars)) - set(skip)
        codes = (
            self._code(self._variable[j], values, None if mask is None else mask[:, j])
            if self._variable[j] in used
            else np.full(n, MISSING)
            for j, values in enumerate(contiguous_columns(array))
            if j in self._variable
        )
        order = np.argsort(self.index)  # the stream is in the order of the columns
        found = stack_columns(codes, n, self.n_vars, self.code_dtype)
        return Rows(n, found if _in_order(order) else found[:, np.argsort(order)])

    def _fits(self, array: NDArray[Any], skip: Sequence[int]) -> bool:
        """Whether an integer array holds nothing but codes, so that a cast is all it needs."""
        same = self._numbered and len(self.columns) == self.n_vars and _in_order(self.index)
        if not same or array.dtype.kind not in "biu":
            return False
        right = (array.min(axis=0) >= 0) & (array.max(axis=0) < self.dims)
        right[skip] = True
        return bool(right.all())

    def _rows_of_columns(
        self, n: int, positions: NDArray[np.int64], fetch: Callable[[int], Values]
    ) -> Rows:
        def stream() -> Iterator[NDArray[Any]]:
            for i, j in enumerate(positions.tolist()):
                yield np.full(n, MISSING) if j < 0 else self._code(i, *fetch(j))

        return Rows(n, stack_columns(stream(), n, self.n_vars, self.code_dtype))

    def _code(self, i: int, values: Any, missing: NDArray[np.bool_] | None) -> NDArray[Any]:
        """(n,) codes of variable `i`, from a vector of labels or a one-hot block."""
        name, d = self.names[i], int(self.dims[i])
        if values.ndim == 1 and self.kind == "presence":
            return presence_codes(values, name, missing)
        if values.ndim == 1:
            return known_codes(values, self.labels[i], name, missing)
        if self.kind != "blocks" or values.shape[1] != d:
            wanted = f"(n, {d}) or a vector" if self.kind == "blocks" else "a vector of n values"
            raise DataError(
                f"block {name!r} has shape {values.shape}; the model expects {wanted}, as in "
                "training"
            )
        return hot_positions(values, name)

    def _rows_of_blocks(self, X: Any, n_min: int, unused: Collection[str]) -> Rows:
        found = [str(name) for name in X] if isinstance(X, Mapping) else None
        values = list(X.values()) if isinstance(X, Mapping) else list(X)
        if found is None:
            self._check_count(len(values))
        names = found or list(self.input_names)
        arrays = [as_block(value, name) for value, name in zip(values, names, strict=True)]
        n = common_length(arrays, names, n_min)
        positions = self._kept(unused) if found is None else self._match(found, unused)
        masks = [np.ma.getmaskarray(v) if np.ma.isMaskedArray(v) else None for v in values]
        return self._rows_of_columns(n, positions, lambda j: (arrays[j], masks[j]))

    def _rows_of_matrix(self, X: Any, unused: Collection[str]) -> Rows:
        """A matrix whose columns are grouped: the block of each variable."""
        assert self.members is not None
        self._check_count(X.shape[1])
        matrix = X.tocsc() if sparse.issparse(X) else np.ma.filled(X, 0)
        members = self.members
        return self._rows_of_columns(
            X.shape[0], self._kept(unused), lambda j: (matrix[:, members[j]], None)
        )

    def _rows_of_sparse(self, X: Any, names: Sequence[str] | None, unused: Collection[str]) -> Rows:
        """Presence: 1 where a value is > 0, missing where it is NaN."""
        if self.kind != "presence":
            raise DataError(
                f"X is a sparse matrix, but the model was fitted on {self.container} data with "
                "categories; pass X.toarray()"
            )
        if names is None:
            self._check_count(X.shape[1])
        positions = self._kept(unused) if names is None else self._match(names, unused)
        known, lost = split_gaps(X)
        present = canonical_csr(known, names or self.input_names)
        present.data = np.ones(present.nnz, dtype=np.int8)
        if lost is not None:  # 0 or 1 becomes -1
            present = present - lost - present.multiply(lost)
        skip = np.flatnonzero(positions < 0)
        if len(positions) != X.shape[1] or len(skip) or not _in_order(positions):
            present = present[:, np.maximum(positions, 0)]
        return Rows(X.shape[0], matrix=sparse.csr_array(present), skip=skip)

    def _rows_of_table(self, table: Table, n_min: int, unused: Collection[str]) -> Rows:
        check_shape((table.n_samples, table.n_vars), n_min)
        if table.kind == "presence" and self.kind == "presence":
            return self._rows_of_sparse(table.matrix, table.names, unused)
        positions = self._match(table.names, unused)
        return self._rows_of_columns(
            table.n_samples, positions, lambda j: (_table_values(table, j), None)
        )

    # --- columns ---------------------------------------------------------------------

    def _check_count(self, n_columns: int) -> None:
        if n_columns != self.n_features:
            raise DataError(
                f"X has {n_columns} features, but {MODEL} is expecting {self.n_features} features "
                "as input; without names, columns are found by position: pass all of them in the "
                "order of training"
            )
        if self.named:
            warnings.warn(
                f"X does not have valid feature names, but {MODEL} was fitted with feature names",
                UserWarning,
                stacklevel=2,
            )

    def _match(
        self, found: Sequence[str], unused: Collection[str], text: bool = True
    ) -> NDArray[np.int64]:
        """(p,) column of each variable in an input with names; -1 where it is not used."""
        position = {name: j for j, name in enumerate(map(str, found))}
        kept = self._kept(unused)
        wanted = [self.columns[j].name for j in kept[kept >= 0]]
        absent = [name for name in wanted if name not in position]
        unknown = [name for name in position if name not in set(self.input_names)]
        if not absent and not unknown:
            return np.array([position[self.columns[j].name] if j >= 0 else -1 for j in kept])
        if self.named:
            raise _wrong_names(unknown, absent)
        self._check_count(len(found))
        if text:
            warnings.warn(
                f"X has feature names, but {MODEL} was fitted without feature names",
                UserWarning,
                stacklevel=2,
            )
        return kept

    def _kept(self, unused: Collection[str]) -> NDArray[np.int64]:
        """(p,) column of each variable in the training input, -1 where it is not used."""
        kept = self.index.copy()
        kept[self._positions(unused)] = -1
        return kept

    def _positions(self, names: Collection[str]) -> list[int]:
        if not names:
            return []
        return [i for i, name in enumerate(self.names) if name in names]

    # --- decode and files ------------------------------------------------------------

    def decode(self, codes: Any, like: Any = None) -> Any:
        """The values of `(n, p)` codes, in the container of the training input.

        All codes must be known (no -1). Columns that were dropped in training hold the single
        value that they had. Where both the training input and `like` are DataFrames, the result
        has the order of columns, and in pandas the index, of `like`.
        """
        array = np.asarray(codes)
        if array.ndim != 2 or array.shape[1] != self.n_vars:
            raise DataError(
                f"codes have shape {array.shape}; give one column for each of {self.n_vars} "
                "variables"
            )
        if len(array) and (array.min() < 0 or (array.max(axis=0) >= self.dims).any()):
            row, i = np.argwhere((array < 0) | (array >= self.dims))[0]
            raise DataError(
                f"code {array[row, i]} at row {row}, variable {self.names[i]!r}, is outside "
                f"0..{self.dims[i] - 1}; only known values can be decoded"
            )
        result = decoded(self, array)
        return result if like is None else arranged(result, like)

    def to_json(self) -> dict[str, Any]:
        """A record of plain JSON values that loses nothing."""
        return schema_to_json(self)

    @classmethod
    def from_json(cls, record: Any) -> Schema:
        """The schema of a record; raises DataError where it is damaged."""
        return cls(**schema_from_json(record))


# --- what the input looked like ------------------------------------------------------


def _describe(
    X: Any, groups: Groups | None
) -> tuple[str, list[Column], tuple[NDArray[np.int64], ...] | None]:
    """Container, columns and members of an input that `as_table` has accepted."""
    if isinstance(X, Table):
        return "table", [Column(name) for name in (*X.names, *X.dropped)], None
    if sparse.issparse(X):
        container = "sparse array" if isinstance(X, sparse.sparray) else "sparse matrix"
        return container, *_matrix_columns(X, groups)
    frame = as_frame(X)
    if frame is not None:
        series = [frame.get_column(c) for c in frame.columns]
        container = frame.implementation.name.lower()
        return container, [column_of_series(s) for s in series], None
    if is_blocks(X):
        names = list(map(str, X)) if isinstance(X, Mapping) else [f"x{j}" for j in range(len(X))]
        values = X.values() if isinstance(X, Mapping) else X
        columns = [_column_of_block(v, name) for v, name in zip(values, names, strict=True)]
        return ("dict" if isinstance(X, Mapping) else "list"), columns, None
    return "array", *_matrix_columns(np.asarray(X), groups)


def _matrix_columns(
    X: Any, groups: Groups | None
) -> tuple[list[Column], tuple[NDArray[np.int64], ...] | None]:
    dtype = dtype_name(X.dtype)
    if groups is None:
        return [Column(f"x{j}", dtype) for j in range(X.shape[1])], None
    labels, members = group_columns(groups, X.shape[1])
    return [Column(str(label), dtype) for label in labels], tuple(members)


def _column_of_block(value: Any, name: str) -> Column:
    block = as_block(value, name)
    form = "sparse" if sparse.issparse(block) else ("vector" if block.ndim == 1 else "dense")
    return Column(name, dtype_name(block.dtype), form)


def dtype_name(dtype: Any) -> str:
    """A dtype of NumPy as text: its name, "str" or "bytes" whatever their length."""
    return {"U": "str", "T": "str", "S": "bytes", "O": "object"}.get(dtype.kind, dtype.name)


def _first_value(
    X: Any, j: int, members: tuple[NDArray[np.int64], ...] | None
) -> NDArray[Any] | None:
    """The value of a constant column, (1,), or the row of a constant block, (width,)."""
    if isinstance(X, Table):
        return None
    if sparse.issparse(X):
        row = sparse.csr_array(X)[[0]].toarray()[0]
        return row[members[j]] if members is not None else (row[[j]] > 0).astype(np.int64)
    frame = as_frame(X)
    if frame is not None:
        value = frame.get_column(frame.columns[j]).to_numpy()[:1].tolist()
        return _as_labels(value)
    if is_blocks(X):
        block = as_block(list(X.values())[j] if isinstance(X, Mapping) else X[j], "")
        first = block[[0]]
        return first.toarray()[0] if sparse.issparse(first) else np.asarray(first).reshape(-1)
    array = np.asarray(X)
    return array[0, members[j]] if members is not None else array[:1, j]


def _as_labels(values: list[Any]) -> NDArray[Any]:
    if all(isinstance(value, str | bool | int | float) for value in values):
        return np.asarray(values)
    result = np.empty(len(values), dtype=object)
    result[:] = values
    return result


# --- small helpers -------------------------------------------------------------------


def series_values(series: nw.Series[Any], name: str) -> Values:
    """The values of a series as an array, and where they are missing."""
    missing = series.is_null().to_numpy().astype(bool)
    dtype = series.dtype
    if missing.all():  # of whatever type
        return np.zeros(len(missing)), missing
    if isinstance(dtype, nw.Categorical | nw.Enum):
        values = np.empty(len(missing), dtype=object)
        values[:] = series.to_numpy().tolist()
        return values, missing
    if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.String | nw.Object)):
        raise unsupported_dtype(name, dtype)
    if missing.any() and not isinstance(dtype, nw.String | nw.Object):
        series = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0)
    return series.to_numpy(), missing


def _table_values(table: Table, j: int) -> Any:
    if table.codes is not None:
        labels = table.categories[j]
        return table.codes[:, j] if labels is None else labels[table.codes[:, j]]
    assert table.matrix is not None
    block = table.matrix[:, table.offsets[j] : table.offsets[j + 1]]
    if table.kind == "presence":
        return block.toarray().ravel()
    labels = table.categories[j]
    return block if labels is None else labels[hot_positions(block, table.names[j])]


def _wrong_names(unknown: Sequence[str], absent: Sequence[str]) -> DataError:
    message = "The feature names should match those that were passed during fit.\n"
    if unknown:
        message += f"Feature names unseen at fit time:\n{_bullets(unknown)}"
    if absent:
        message += f"Feature names seen at fit time, yet now missing:\n{_bullets(absent)}"
    return DataError(message + "Select and rename the columns; their order does not matter")


def _bullets(names: Sequence[str]) -> str:
    shown = "".join(f"- {name}\n" for name in sorted(names)[:N_SHOWN])
    return shown + ("- ...\n" if len(names) > N_SHOWN else "")


def _in_order(index: NDArray[Any]) -> bool:
    return np.array_equal(index, np.arange(len(index)))


def _is_whole(name: Any) -> bool:
    return isinstance(name, int | np.integer) and not isinstance(name, bool)


def _has_text(names: Sequence[Any]) -> bool:
    return any(isinstance(name, str) for name in names)
