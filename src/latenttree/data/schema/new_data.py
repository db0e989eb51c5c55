"""New data in any container to the codes and numbers of a model, read as the training data were."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import N_SHOWN, check_shape
from latenttree.data.columns.blocks import (
    as_block,
    canonical_csr,
    common_length,
    hot_positions,
    split_gaps,
)
from latenttree.data.columns.codes import contiguous_columns, stack_columns
from latenttree.data.containers import as_frame, as_matrix, is_blocks, reject_unreadable
from latenttree.data.schema.column_values import Mask, Read, series_values, table_values
from latenttree.data.schema.fields import SchemaFields
from latenttree.data.schema.lookup import MISSING, binary_codes, known_codes
from latenttree.data.schema.quantities import block_values, number_values, rank_values
from latenttree.data.table import Table
from latenttree.errors import DataError

MODEL = "LatentTree"  # in the words that scikit-learn's checks look for


@dataclass(frozen=True, eq=False)
class Rows:
    """New samples as codes and numbers, read a range at a time.

    Attributes
    ----------
    n_samples : n.
    codes : (n, p) signed codes, -1 where missing and for variables that are not categorical; None
        where `matrix` is used, or where no variable has codes.
    matrix : (n, p) CSR of sparse binary data, 1, or -1 where missing; used instead of `codes` for
        sparse input, whose dense form may not fit in memory.
    skip : with `matrix`: variables that are not used.
    arrays : values of the variables that are not categorical, as in `values.Values`; those that are
        not used have none.
    n_vars : p."""

    n_samples: int
    codes: NDArray[Any] | None = None
    matrix: sparse.csr_array | None = None
    skip: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    arrays: Mapping[int, Any] = field(default_factory=dict)
    n_vars: int = 0

    def take(self, start: int, stop: int) -> NDArray[Any]:
        """(stop - start, p) codes, -1 where missing; a view where they are stored."""
        if self.codes is not None:
            return self.codes[start:stop]
        if self.matrix is None:
            n = len(range(*slice(start, stop).indices(self.n_samples)))
            return np.full((n, self.n_vars), MISSING, dtype=np.int8)
        codes = np.asarray(self.matrix[start:stop].toarray())
        codes[:, self.skip] = MISSING
        return codes

    def arrays_at(self, start: int, stop: int) -> dict[int, Any]:
        """Values of samples start:stop by variable; views of dense arrays."""
        return {v: values[start:stop] for v, values in self.arrays.items()}


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads inputs by a schema; `unused` variables are not read, `n_min` is the least number of
    rows."""

    schema: SchemaFields
    n_min: int = 1
    unused: Collection[str] = ()

    def read(self, X: Any) -> Rows:
        """The samples of any input that `fit` takes."""
        reject_unreadable(X)
        if isinstance(X, Table):
            return self._table(X)
        if sparse.issparse(X):
            check_shape(X.shape, self.n_min)
            return self._sparse(X) if self.schema.members is None else self._groups(X)
        frame = as_frame(X)
        if frame is not None:
            return self._frame(frame)
        if is_blocks(X):
            return self._blocks(X)
        array = as_matrix(X, self.n_min)
        return self._array(array) if self.schema.members is None else self._groups(array)

    # --- containers ------------------------------------------------------------------

    def _array(self, array: NDArray[Any]) -> Rows:
        self._check_count(array.shape[1])
        skip = self._positions()
        mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
        array = np.asarray(array)
        if mask is None and self._fits(array, skip):
            codes = array.astype(self.schema.code_dtype)
            codes[:, skip] = MISSING
            return Rows(len(array), codes)
        skipped = set(skip)
        used = [i for i in range(self.schema.n_vars) if i not in skipped]
        wanted = set(self.schema.index[used].tolist())

        def columns() -> Iterator[tuple[int, Read]]:
            for j, values in enumerate(contiguous_columns(array)):
                if j in wanted:
                    yield self.schema.variable_of(j), (values, _column(mask, j))  # type: ignore[misc]

        return self._stacked(len(array), columns())

    def _fits(self, array: NDArray[Any], skip: Sequence[int]) -> bool:
        """Whether an integer array holds only codes, so that a cast suffices."""
        schema = self.schema
        same = len(schema.columns) == schema.n_vars and _in_order(schema.index)
        if not same or not schema.numbered or array.dtype.kind not in "biu":
            return False
        right = (array.min(axis=0) >= 0) & (array.max(axis=0) < schema.dims)
        right[skip] = True
        return bool(right.all())

    def _frame(self, frame: nw.DataFrame[Any]) -> Rows:
        check_shape(frame.shape, self.n_min)
        positions = self._match(frame.columns, _has_text(frame.columns))
        series = [frame.get_column(c) for c in frame.columns]
        return self._by_position(
            frame.shape[0], positions, lambda j: series_values(series[j], frame.columns[j])
        )

    def _blocks(self, X: Any) -> Rows:
        keys = [str(name) for name in X] if isinstance(X, Mapping) else None
        values = list(X.values()) if isinstance(X, Mapping) else list(X)
        if keys is None:
            self._check_count(len(values))
        names = keys or list(self.schema.input_names)
        arrays = [as_block(value, name) for value, name in zip(values, names, strict=True)]
        n = common_length(arrays, names, self.n_min)
        positions = self._kept() if keys is None else self._match(keys)
        masks = [np.ma.getmaskarray(v) if np.ma.isMaskedArray(v) else None for v in values]
        return self._by_position(n, positions, lambda j: (arrays[j], masks[j]))

    def _groups(self, X: Any) -> Rows:
        """A matrix whose columns are grouped: the block of each variable."""
        self._check_count(X.shape[1])
        members = self.schema.members
        assert members is not None
        mask = np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else None
        matrix = X.tocsc() if sparse.issparse(X) else np.ma.filled(X, 0)
        return self._by_position(
            X.shape[0],
            self._kept(),
            lambda j: (matrix[:, members[j]], None if mask is None else mask[:, members[j]]),
        )

    def _sparse(self, X: Any) -> Rows:
        """A sparse matrix, each of its columns a variable: binary, or numeric."""
        schema = self.schema
        if schema.kind != "sparse_binary" and schema.n_coded:
            raise DataError(
                f"X is a sparse matrix, but the model was fitted on {schema.container} data "
                "with categories",
                "pass X.toarray()",
                value=type(X).__name__,
            )
        self._check_count(X.shape[1])
        if schema.kind == "sparse_binary":
            return self._binary_table(X, self._kept(), schema.input_names)
        columns = X.tocsc()
        return self._by_position(
            X.shape[0], self._kept(), lambda j: (columns[:, [j]].toarray().ravel(), None)
        )

    def _binary_table(self, X: Any, positions: NDArray[np.int64], names: Sequence[str]) -> Rows:
        """1 where a value is > 0, missing where it is NaN."""
        known, lost = split_gaps(X)
        ones = canonical_csr(known, names)
        ones.data = np.ones(ones.nnz, dtype=np.int8)
        if lost is not None:  # 0 or 1 becomes -1
            ones = ones - lost - ones.multiply(lost)
        skip = np.flatnonzero(positions < 0)
        if len(positions) != X.shape[1] or len(skip) or not _in_order(positions):
            ones = ones[:, np.maximum(positions, 0)]
        return Rows(X.shape[0], matrix=sparse.csr_array(ones), skip=skip)

    def _table(self, table: Table) -> Rows:
        check_shape((table.n_samples, table.n_vars), self.n_min)
        if table.kind == "sparse_binary" and self.schema.kind == "sparse_binary":
            return self._binary_table(table.matrix, self._match(table.names), table.names)
        positions = self._match(table.names)
        return self._by_position(table.n_samples, positions, lambda j: table_values(table, j))

    # --- columns to codes and numbers ------------------------------------------------

    def _by_position(
        self, n: int, positions: NDArray[np.int64], fetch: Callable[[int], Read]
    ) -> Rows:
        """`positions[i]` is the column of variable i, -1 where it is not used."""
        used = ((i, fetch(j)) for i, j in enumerate(positions.tolist()) if j >= 0)
        return self._stacked(n, used)

    def _stacked(self, n: int, columns: Iterator[tuple[int, Read]]) -> Rows:
        """Rows of the given variables, in any order; the others are not used."""
        schema = self.schema
        arrays: dict[int, Any] = {}
        filled: list[int] = []

        def codes() -> Iterator[NDArray[Any]]:
            for i, (values, missing) in columns:
                if schema.coded[i]:
                    filled.append(i)
                    yield self._code(i, values, missing)
                else:
                    arrays[i] = self.numbers(i, values, missing)

        stacked = stack_columns(codes(), n, schema.n_coded, schema.code_dtype)
        if not schema.n_coded:
            return Rows(n, arrays=arrays, n_vars=schema.n_vars)
        if filled == list(range(schema.n_vars)):
            return Rows(n, stacked, arrays=arrays)
        whole = np.full((n, schema.n_vars), MISSING, dtype=schema.code_dtype)
        whole[:, filled] = stacked[:, : len(filled)]
        return Rows(n, whole, arrays=arrays)

    def _code(self, i: int, values: Any, missing: Mask | None) -> NDArray[Any]:
        """(n,) codes of variable `i`, from a vector of labels or a one-hot block."""
        schema, name, d = self.schema, self.schema.names[i], int(self.schema.dims[i])
        if values.ndim == 1 and schema.kind == "sparse_binary":
            return binary_codes(values, name, missing)
        if values.ndim == 1:
            return known_codes(values, schema.labels[i], name, missing)
        blocks = schema.kind == "blocks" or schema.form_of(i) != "vector"
        if not blocks or values.shape[1] != d:
            wanted = f"(n, {d}) or a vector" if blocks else "a vector of n values"
            raise DataError(
                f"block {name!r} has shape {values.shape}",
                f"the model expects {wanted}, as in training",
                column=name,
                value=values.shape,
            )
        return hot_positions(values, name)

    def numbers(self, i: int, values: Any, missing: Mask | None = None) -> Any:
        """Values of variable `i`, which is not categorical: a vector, or a block."""
        schema, name = self.schema, self.schema.names[i]
        family, form = schema.families[i], schema.form_of(i)
        if form != "vector":
            width = int(schema.dims[i])
            return block_values(values, width, form == "sparse", family, name, missing)
        if values.ndim != 1:
            raise DataError(
                f"block {name!r} has shape {values.shape}",
                "the model expects a vector of n numbers, as in training",
                column=name,
                value=values.shape,
            )
        levels = schema.columns[schema.index[i]].levels
        if levels is not None and schema.ranked(i):
            return rank_values(values, levels, name, missing)
        return number_values(values, family, name, missing)

    # --- columns of the input ----------------------------------------------------------

    def _check_count(self, n_columns: int) -> None:
        expected = self.schema.n_features
        if n_columns != expected:
            raise DataError(
                f"X has {n_columns} features, but {MODEL} is expecting {expected} features as "
                "input",
                "without names, columns are found by position: pass all of them in the order "
                "of training",
                value=n_columns,
            )
        if self.schema.named:
            warnings.warn(
                f"X does not have valid feature names, but {MODEL} was fitted with feature names",
                UserWarning,
                stacklevel=2,
            )

    def _match(self, names: Sequence[str], text: bool = True) -> NDArray[np.int64]:
        """(p,) column of each variable in an input with names; -1 where it is not used."""
        schema, kept = self.schema, self._kept()
        position = {name: j for j, name in enumerate(map(str, names))}
        wanted = [schema.columns[j].name for j in kept[kept >= 0]]
        absent = [name for name in wanted if name not in position]
        known = set(schema.input_names)
        unknown = [name for name in position if name not in known]
        if not absent and not unknown:
            return np.array([position[schema.columns[j].name] if j >= 0 else -1 for j in kept])
        if schema.named:
            raise _wrong_names(unknown, absent)
        self._check_count(len(names))
        if text:
            warnings.warn(
                f"X has feature names, but {MODEL} was fitted without feature names",
                UserWarning,
                stacklevel=2,
            )
        return kept

    def _kept(self) -> NDArray[np.int64]:
        """(p,) column of each variable in the training input, -1 where it is not used."""
        kept = self.schema.index.copy()
        kept[self._positions()] = -1
        return kept

    def _positions(self) -> list[int]:
        """The variables that are not used."""
        if not self.unused:
            return []
        return [i for i, name in enumerate(self.schema.names) if name in self.unused]


def _column(mask: Mask | None, j: int) -> Mask | None:
    return None if mask is None else mask[:, j]


# --- small helpers ---------------------------------------------------------------------


def _wrong_names(unknown: Sequence[str], absent: Sequence[str]) -> DataError:
    message = "The feature names should match those that were passed during fit.\n"
    if unknown:
        message += f"Feature names unseen at fit time:\n{_bullets(unknown)}"
    if absent:
        message += f"Feature names seen at fit time, yet now missing:\n{_bullets(absent)}"
    return DataError(
        message + "Select and rename the columns; their order does not matter",
        column=sorted(unknown or absent)[0],
        value=(tuple(unknown), tuple(absent)),
    )


def _bullets(names: Sequence[str]) -> str:
    shown = "".join(f"- {name}\n" for name in sorted(names)[:N_SHOWN])
    return shown + ("- ...\n" if len(names) > N_SHOWN else "")


def _in_order(index: NDArray[Any]) -> bool:
    return np.array_equal(index, np.arange(len(index)))


def _has_text(names: Sequence[Any]) -> bool:
    return any(isinstance(name, str) for name in names)
