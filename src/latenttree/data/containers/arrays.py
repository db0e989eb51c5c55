"""Arrays and sparse matrices, one for all variables or one for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_shape, column_error, complex_data
from latenttree.data.columns.codes import contiguous_columns
from latenttree.data.columns.groups import Groups, Members, group_columns
from latenttree.data.columns.vectors import Column
from latenttree.data.containers.interface import Container, InputColumn, block_form, dtype_name
from latenttree.errors import DataError


class Matrix(Container):
    """An (n, p) array, perhaps masked, or a SciPy sparse matrix."""

    def __init__(
        self, array: Any, labels: Sequence[Any] | None = None, members: Members | None = None
    ) -> None:
        self.is_sparse = sparse.issparse(array)
        words = "sparse matrix" if self.is_sparse else "array"
        name = "sparse array" if isinstance(array, sparse.sparray) else words
        super().__init__(name, words, array.shape, labels, members)
        self.whole = array
        self.array: Any = array if self.is_sparse else np.asarray(array)
        self.mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
        self.ones = self.array if self.is_sparse and members is None else None

    def grouped(self, groups: Groups | None) -> Matrix:
        """The same with a group of its columns for each label; itself without groups."""
        if groups is None:
            return self
        return Matrix(self.whole, *group_columns(groups, self.shape[1]))

    @cached_property
    def _by_columns(self) -> Any:
        return self.array.tocsc() if self.is_sparse else self.array

    def column(self, j: int) -> Column:
        """A dense vector, or the block of a group."""
        if self.ones is not None:
            return Column(self._by_columns[:, [j]].toarray().ravel())
        chosen = j if self.members is None else self.members[j]
        mask = None if self.mask is None else self.mask[:, chosen]
        return Column(self._by_columns[:, chosen], mask)

    def columns(self, wanted: Collection[int] | None = None) -> Iterator[tuple[int, Column]]:
        """See `Container.columns`; numbers are read many columns at once."""
        if self.is_sparse or self.members is not None or self.array.dtype.kind not in "biuf":
            yield from super().columns(wanted)
            return
        for j, values in enumerate(contiguous_columns(self.array)):
            if wanted is None or j in wanted:
                yield j, Column(values, None if self.mask is None else self.mask[:, j])

    def mapped(self, change: Callable[[Any], Any]) -> Matrix:
        """See `Container.mapped`."""
        return Matrix(change(self.whole), self.own_names, self.members)

    def select(self, names: Sequence[Any]) -> Matrix:
        """See `Container.select`."""
        position = {name: j for j, name in enumerate(self.own_names or ())}
        return Matrix(self.array.tocsc()[:, [position[name] for name in names]], names)

    def concat(self, others: Sequence[Matrix]) -> Any:
        """See `Container.concat`; of sparse matrices a CSR of SciPy's kind of the first."""
        return _concatenated([self.whole, *(other.whole for other in others)])

    def described(self, j: int) -> InputColumn:
        """See `Container.described`; no column is read."""
        name = f"x{j}" if self.own_names is None else str(self.own_names[j])
        grouped = "sparse" if self.is_sparse else "dense"
        return InputColumn(name, self._dtype, "vector" if self.members is None else grouped)

    @cached_property
    def _dtype(self) -> str:
        return dtype_name(self.array.dtype)

    def constant(self, j: int) -> NDArray[Any] | None:
        """See `Container.constant`."""
        if not self.is_sparse:
            return super().constant(j)
        row = sparse.csr_array(self.array)[[0]].toarray()[0]
        return np.asarray(row[[j] if self.members is None else self.members[j]])


class Blocks(Container):
    """A dict or list with a vector or an (n, d) block for each variable; `keys` of a dict."""

    def __init__(self, blocks: Sequence[Any], keys: Sequence[Any] | None) -> None:
        name, n = "list" if keys is None else "dict", blocks[0].shape[0] if blocks else 0
        super().__init__(name, f"{name} of blocks", (n, len(blocks)), keys)
        self.blocks = blocks
        self.has_blocks = any(block.ndim == 2 for block in blocks)

    def column(self, j: int) -> Column:
        """See `Container.column`."""
        block = self.blocks[j]
        if not np.ma.isMaskedArray(block):
            return Column(block)
        return Column(np.asarray(block), np.ma.getmaskarray(block))

    def mapped(self, change: Callable[[Any], Any]) -> Blocks:
        """See `Container.mapped`."""
        return Blocks([change(block) for block in self.blocks], self.own_names)

    def select(self, names: Sequence[Any]) -> Blocks:
        """See `Container.select`."""
        own = dict(zip(self.own_names or (), self.blocks, strict=True))
        return Blocks([own[name] for name in names], names)

    def concat(self, others: Sequence[Blocks]) -> Any:
        """See `Container.concat`; a list or dict."""
        parts = zip(self.blocks, *(other.blocks for other in others), strict=True)
        blocks = [_concatenated(part) for part in parts]
        names = self.own_names
        return blocks if names is None else dict(zip(names, blocks, strict=True))

    @property
    def types(self) -> Mapping[int, tuple[Any, str]]:
        """How a block is stored, and its width."""
        return {j: _stored_as(block) for j, block in enumerate(self.blocks)}


def _stored_as(block: Any) -> tuple[str, str]:
    form = block_form(block)
    if form == "vector":
        return form, "a vector"
    wide = f"{form}, {block.shape[1]} columns wide"
    return wide, wide


def _concatenated(parts: Sequence[Any]) -> Any:
    """The rows of arrays, or of sparse matrices, of perhaps different types; always a copy."""
    if sparse.issparse(parts[0]):
        return type(parts[0])(sparse.vstack(parts, format="csr"))
    masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    return np.ma.concatenate(parts) if masked else np.concatenate(parts)


# --- what is read as arrays ------------------------------------------------------------


def blocks_of(X: Any) -> Blocks | None:
    """The blocks of a dict, or of a list of arrays, all with as many rows; None of others."""
    arrays = (np.ndarray, sparse.sparray, sparse.spmatrix)
    of_arrays = isinstance(X, list | tuple) and any(isinstance(item, arrays) for item in X)
    if not isinstance(X, Mapping) and not of_arrays:
        return None
    keys = list(X) if isinstance(X, Mapping) else None
    values = list(X.values()) if isinstance(X, Mapping) else list(X)
    names = [f"x{j}" for j in range(len(values))] if keys is None else list(map(str, keys))
    blocks = [_block(value, name) for value, name in zip(values, names, strict=True)]
    for block, name in zip(blocks, names, strict=True):
        n, expected = block.shape[0], blocks[0].shape[0]
        if n != expected:
            what = f"blocks must have the same number of samples: {names[0]!r} has {expected}, "
            raise column_error(f"{what}{name!r} has {n}", "align the rows", name, n)
    return Blocks(blocks, keys)


def _block(value: Any, name: str) -> Any:
    """A sparse matrix or an array of one or two dimensions, as it is."""
    kept = sparse.issparse(value) or isinstance(value, np.ma.MaskedArray)
    block = value if kept else np.asarray(value)
    if block.ndim not in (1, 2):
        what = f"block {name!r} has {block.ndim} dimensions (shape {block.shape})"
        remedy = "a block is (n, d) or a vector of n categories. Reshape your data"
        raise column_error(what, remedy, name, block.shape)
    if block.ndim == 2 and block.shape[1] == 0:
        what = f"block {name!r} has 0 columns (shape {block.shape})"
        raise column_error(what, "drop it", name, block.shape)
    if block.dtype.kind == "c":
        raise complex_data()
    return block


def matrix_of(X: Any) -> Matrix:
    """The matrix of a rectangular table; a masked array stays masked."""
    if sparse.issparse(X):
        check_shape(X.shape, 0)
        return Matrix(X, getattr(X, "feature_names", None))
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError as error:
        what = f"X is not a rectangular table ({error})"
        raise DataError(what, "give all rows one length") from error
    if array.dtype.kind == "c":
        raise complex_data()
    check_shape(array.shape, 0)
    return Matrix(array)
