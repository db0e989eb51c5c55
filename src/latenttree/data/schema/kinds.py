"""The kinds of variables: each reads a column of new data, and writes values back.

`Labels` are categories, `BinaryLabels` sparse binary variables, `Ranks` the ordered categories of a
Gaussian tree; `Numbers` have one value a sample, `NumberBlock` a vector. NaN, None and masked
values are missing. Numbers are checked against the support of their family: counts are whole and
not negative, multi-hot codes are 0 or 1, nothing is infinite.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import cell_error, column_error, coordinate_names, infinite_value
from latenttree.data.columns.blocks import (
    canonical_csr,
    hot_positions,
    split_gaps,
    stored_position,
)
from latenttree.data.columns.scales import on_levels
from latenttree.data.columns.variables import one_hot
from latenttree.data.columns.vectors import Column, Vector, vector_of
from latenttree.data.containers import InputColumn
from latenttree.data.schema.lookup import MISSING, first_no_number, known_codes
from latenttree.data.schema.unseen import Unseen
from latenttree.data.values import TRAITS, outside_support
from latenttree.errors import DataError

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

REMEDY = "correct it, or mark it as missing (NaN)"


@dataclass(frozen=True, eq=False)
class Kind:
    """A variable of a schema; `column` is the column or block that it was made of, `dim` as in
    `Schema.dims`."""

    name: str
    family: str
    dim: int
    column: InputColumn

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one value that is a number: (), or (d,) of a block."""
        return ()

    def encode(self, column: Column, unseen: Unseen | None = None) -> Any:
        """Codes, -1 where missing, or numbers, NaN where missing, of a column of new data. Labels
        that training did not have are errors, or what `unseen` makes of them."""
        raise NotImplementedError

    def values(self, known: Any) -> NDArray[Any]:
        """(n,) labels, or (n,) or (n, d) numbers, of what `encode` returns."""
        return np.asarray(known)

    def written(self, known: Any) -> Any:
        """The same as the column had them: its labels, numbers in its type, or a block."""
        return self.values(known)

    def _wrong_shape(self, shape: tuple[int, ...], wanted: str) -> DataError:
        what = f"block {self.name!r} has shape {shape}"
        return column_error(what, f"the model expects {wanted}, as in training", self.name, shape)

    def _vector(self, column: Column, wanted: str) -> Vector:
        if not column.is_vector:
            raise self._wrong_shape(column.values.shape, wanted)
        return vector_of(column, self.name)


# --- categories ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Labels(Kind):
    """A category, given as its label or, where training or the whole table had blocks, as a one-hot
    row."""

    labels: NDArray[Any]
    blocks: bool = False

    def encode(self, column: Column, unseen: Unseen | None = None) -> Codes:
        """See `Kind.encode`."""
        if column.is_vector or not self.blocks:
            return self._codes(self._vector(column, "a vector of n values"), unseen)
        values, mask = column[:2]
        if values.shape[1] != self.dim:
            raise self._wrong_shape(values.shape, f"(n, {self.dim}) or a vector")
        return hot_positions(values if mask is None else np.where(mask, 0, values), self.name)

    def _codes(self, vector: Vector, unseen: Unseen | None) -> Codes:
        if unseen is not None and self.family == "ordinal":
            rounded = on_levels(vector.known, self.labels)
            if rounded is not None:
                unseen.rounded.append(self.name)
                vector = replace(vector, known=rounded)
        return known_codes(vector, self.labels, self.name, unseen)

    def values(self, known: Any) -> NDArray[Any]:
        """See `Kind.values`."""
        return self.labels[known]

    def written(self, known: Any) -> Any:
        """See `Kind.written`."""
        vector = self.column.form == "vector"
        return self.values(known) if vector else in_type(one_hot(known, self.dim), self.column)


@dataclass(frozen=True, eq=False)
class BinaryLabels(Labels):
    """1 where a value is greater than zero."""

    def _codes(self, vector: Vector, unseen: Unseen | None) -> Codes:
        name, wrong = self.name, first_no_number(vector.known)
        if wrong is not None:
            first = vector.known[wrong : wrong + 1].tolist()[0]
            what = f"column {name!r} holds {type(first).__name__} values (first {first!r})"
            remedy = "pass numbers or booleans, 1 where > 0"
            remedy = f"the model was fitted on sparse binary data: {remedy}"
            raise column_error(what, remedy, name, first)
        known = vector.known.astype(np.float64)
        bad = ~((known >= 0) & np.isfinite(known))
        if bad.any():
            value, row = known[bad.argmax()], vector.row(int(bad.argmax()))
            remedy = f"{REMEDY}: values of binary variables are finite, >= 0"
            raise cell_error(f"value {value}", value, row, name, remedy)
        return vector.spread((known > 0).astype(np.int64), MISSING)


# --- numbers -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Numbers(Kind):
    """One number a sample."""

    def encode(self, column: Column, unseen: Unseen | None = None) -> Floats:
        """See `Kind.encode`."""
        vector = self._vector(column, "a vector of n numbers")
        return numbers_of(vector, self.family, self.name)

    def written(self, known: Any) -> NDArray[Any]:
        """See `Kind.written`; the nearest level where the column has some."""
        values, levels = np.asarray(known), self.column.levels
        if levels is None:
            return _rounded(values, self.column.dtype)
        return np.asarray(levels)[_nearest(values, np.asarray(levels).astype(np.float64))]


@dataclass(frozen=True, eq=False)
class Ranks(Kind):
    """The position among the ordered levels of the column, as a number."""

    def encode(self, column: Column, unseen: Unseen | None = None) -> Floats:
        """See `Kind.encode`."""
        vector, levels = self._vector(column, "a vector of n numbers"), self.column.levels
        assert levels is not None
        codes = known_codes(vector, levels, self.name, unseen)
        return np.where(codes == MISSING, np.nan, codes)

    def values(self, known: Any) -> NDArray[Any]:
        """See `Kind.values`."""
        levels = np.asarray(self.column.levels)
        return levels[_nearest(np.asarray(known), np.arange(len(levels)))]


@dataclass(frozen=True, eq=False)
class NumberBlock(Kind):
    """A vector of `dim` numbers a sample: a float array with NaN where it is missing, or a CSR.

    A sparse block with gaps (NaN, which a CSR does not keep apart from a number) becomes dense.
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """See `Kind.shape`."""
        return (self.dim,)

    def encode(self, column: Column, unseen: Unseen | None = None) -> Any:
        """See `Kind.encode`."""
        name = self.name
        block: Any = column.values
        if len(block.shape) != 2 or block.shape[1] != self.dim:
            raise self._wrong_shape(block.shape, f"(n, {self.dim})")
        if block.dtype.kind not in "biufO":
            what = f"block {name!r} has type {block.dtype}"
            remedy = "a block must be numeric: convert it, for example astype(float)"
            raise column_error(what, remedy, name, block.dtype)
        block = self._sparse(block) if sparse.issparse(block) else self._dense(block, column.mask)
        is_sparse = sparse.issparse(block)
        if self.column.form == "sparse" and (is_sparse or not np.isnan(block).any()):
            return canonical_csr(sparse.csr_array(block), self._names, negative=True)
        return block.toarray().astype(np.float64) if is_sparse else block

    @cached_property
    def _names(self) -> list[str]:
        return coordinate_names(self.name, self.dim)

    def _sparse(self, block: Any) -> Any:
        known, lost = split_gaps(block)
        check_range(known.data, self.family, lambda k: stored_position(known, k, self._names))
        if lost is None:
            return known
        dense = np.asarray(known.toarray(), dtype=np.float64)
        dense[lost.nonzero()] = np.nan
        return dense

    def _dense(self, block: NDArray[Any], missing: NDArray[np.bool_] | None) -> Floats:
        names, width = self._names, self.dim
        if block.dtype.kind == "O":
            vectors = [vector_of(Column(x), self.name) for x in block.T]
            columns = [numbers_of(v, self.family, j) for v, j in zip(vectors, names, strict=True)]
            dense = np.column_stack(columns)
        else:
            dense = np.array(block, dtype=np.float64)
        if missing is not None:
            dense[missing] = np.nan
        check_range(dense.ravel(), self.family, lambda i: (i // width, names[i % width]))
        return dense

    def values(self, known: Any) -> NDArray[Any]:
        """See `Kind.values`."""
        return known.toarray() if sparse.issparse(known) else np.asarray(known)

    def written(self, known: Any) -> Any:
        """See `Kind.written`."""
        return in_type(known, self.column)


def numbers_of(vector: Vector, family: str, name: str) -> Floats:
    """(n,) floats of a column, NaN where it is missing."""
    known, wrong = vector.known, first_no_number(vector.known)
    if wrong is not None:
        value = known[wrong : wrong + 1].tolist()[0]
        what, row = f"{type(value).__name__} {value!r}", vector.row(wrong)
        remedy = f"the model was fitted on numbers of family {family!r}"
        remedy += ": convert the column, for example astype(float)"
        raise cell_error(what, value, row, name, remedy)
    x = np.array(known, dtype=np.float64)
    check_range(x, family, lambda i: (vector.row(i), name))
    return vector.spread(x, np.nan)


def check_range(values: NDArray[Any], family: str, place: Callable[[int], tuple[int, str]]) -> None:
    """Raise unless a family has all values; `place(i)` is row and column of the i-th value."""
    bad = np.isinf(values)
    if bad.any():
        at = int(bad.argmax())
        raise infinite_value(values[at], *place(at), REMEDY)
    bad = outside_support(values, family)
    if bad.any():
        at = int(bad.argmax())
        counts = TRAITS[family].counts
        what = "counts: whole numbers >= 0" if counts else "codes that are 0 or 1"
        value = values[at]
        raise cell_error(f"value {value:g}", value, *place(at), REMEDY, f", which holds {what}")


# --- values in the types of their columns --------------------------------------------


def in_type(block: Any, column: InputColumn) -> Any:
    """A block, sparse or dense as its column was, in its type."""
    if column.form == "sparse":
        block = sparse.csr_array(block)
        block.data = _rounded(block.data, column.dtype)
    else:
        block = _rounded(block.toarray() if sparse.issparse(block) else block, column.dtype)
    return block.astype(column.dtype)


def _rounded(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Numbers rounded to what a column of integers or booleans holds; others unchanged."""
    name = dtype.lower()
    if name.startswith("bool"):
        return np.asarray(values >= 0.5)
    whole = re.match(r"u?int(8|16|32|64)", name)
    if whole is None:
        return values
    limits = np.iinfo(whole.group())
    top = np.nextafter(float(limits.max), 0) if limits.bits == 64 else limits.max
    return np.clip(np.rint(values), limits.min, top).astype(whole.group())


def _nearest(values: NDArray[Any], numbers: NDArray[Any]) -> Codes:
    """(n,) position of the number that each value is nearest to."""
    order = np.argsort(numbers)
    middle = (numbers[order][1:] + numbers[order][:-1]) / 2
    return order[np.searchsorted(middle, values)]
