"""`Container`: what every input answers; `InputColumn`: what a schema remembers of a column."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.groups import Members
from latenttree.data.columns.vectors import Column, gaps_of
from latenttree.engine.arrays import Bools


@dataclass(frozen=True, eq=False)
class InputColumn:
    """What a schema remembers of a column (or block) of the training input.

    Attributes
    ----------
    name : its name.
    dtype : its type, as the container names it; "" where it has none.
    form : "vector", or "dense" or "sparse" for a block.
    levels : categories of a categorical type, in their own order.
    ordered : whether that order means something.
    constant : (1,) the value of a dropped column, or (width,) the row of a dropped block; None for
        variables of the model."""

    name: str
    dtype: str = ""
    form: str = "vector"
    levels: NDArray[Any] | None = None
    ordered: bool = False
    constant: NDArray[Any] | None = None


class Container:
    """An input in memory.

    Attributes
    ----------
    name : how a schema calls it: "array", "sparse array", "sparse matrix", "dict", "list", "table",
        or the library of a DataFrame.
    words : how an error calls it.
    shape : (rows, columns); a block, or a group of columns, is one column.
    own_names : the names of its columns, None where it has none.
    members : the matrix columns of each column, where these are groups.
    ones : the sparse matrix of binary variables, one for each column; None where it has none.
    has_blocks : whether a column is a block of several values a sample."""

    ones: Any = None

    def __init__(
        self,
        name: str,
        words: str,
        shape: tuple[int, ...],
        own_names: Sequence[Any] | None = None,
        members: Members | None = None,
    ) -> None:
        self.name, self.words, self.own_names, self.members = name, words, own_names, members
        self.shape = (int(shape[0]), int(shape[1]) if members is None else len(members))
        self.has_blocks = members is not None

    @property
    def names(self) -> list[str]:
        """The names of the columns as text, x0, x1, ... where they have none."""
        names = self.own_names
        return [f"x{j}" for j in range(self.shape[1])] if names is None else list(map(str, names))

    def columns(self, wanted: Collection[int] | None = None) -> Iterator[tuple[int, Column]]:
        """Numbers and columns, or those wanted, in order: values as they are, and a mask."""
        for j in range(self.shape[1]):
            if wanted is None or j in wanted:
                yield j, self.column(j)

    def column(self, j: int) -> Column:
        """Column j."""
        raise NotImplementedError

    def mapped(self, change: Callable[[Any], Any]) -> Self:
        """The same kind of container of changed parts: its DataFrame, its array, or its blocks."""
        raise NotImplementedError

    def take(self, rows: Bools) -> Self:
        """The rows where `rows` is True."""
        return self.mapped(lambda part: _taken(part, rows))

    def copied(self) -> Self:
        """A copy that shares no memory with the caller's values."""
        return self.mapped(_copied)

    def select(self, names: Sequence[Any]) -> Self:
        """The columns of these names, in this order."""
        raise NotImplementedError

    def concat(self, others: Sequence[Any]) -> Any:
        """Its rows and those of others of its kind, as the caller would have joined them; columns
        are found by position."""
        raise NotImplementedError

    @property
    def types(self) -> Mapping[int, tuple[Any, str]]:
        """What must be the same of a column in all that are joined, and the words for it; of none
        whose values alone decide."""
        return {}

    def described(self, j: int) -> InputColumn:
        """What a schema remembers of column j."""
        values = self.column(j).values
        name = f"x{j}" if self.own_names is None else str(self.own_names[j])
        return InputColumn(name, dtype_name(values.dtype), block_form(values))

    def constant(self, j: int) -> NDArray[Any] | None:
        """The value of a constant column, (1,), or the row of a constant block, (width,). A value
        that is missing in the first row is taken from the first row that has it, and stays missing
        where no row has it."""
        values, mask = self.column(j)[:2]
        if sparse.issparse(values):
            return np.asarray(sparse.csr_array(values)[[0]].toarray()[0])
        return first_known(values, mask)


def first_known(values: NDArray[Any], mask: Bools | None = None) -> NDArray[Any]:
    """(width,) the first value of each column that is not missing."""
    columns = values.reshape(len(values), -1)
    masks = None if mask is None else mask.reshape(columns.shape)
    first = columns[0].copy()
    for j, column in enumerate(columns.T):
        gaps = gaps_of(column, None if masks is None else masks[:, j])
        if gaps is not None:
            first[j] = column[int(gaps.argmin())]
    return first


def block_form(block: Any) -> str:
    """ "vector", or "dense" or "sparse" for a block."""
    if sparse.issparse(block):
        return "sparse"
    return "vector" if block.ndim == 1 else "dense"


def dtype_name(dtype: Any) -> str:
    """A dtype of NumPy as text: its name, "str" or "bytes" whatever their length."""
    return {"U": "str", "T": "str", "S": "bytes", "O": "object"}.get(dtype.kind, dtype.name)


def _taken(part: Any, rows: Bools) -> Any:
    if isinstance(part, nw.DataFrame):
        return part.filter(rows.tolist())
    return sparse.csr_array(part)[rows] if sparse.issparse(part) else part[rows]


def _copied(part: Any) -> Any:
    """A copy of a DataFrame or an array, or of a sparse matrix as CSR."""
    if isinstance(part, nw.DataFrame):
        return part.clone()
    if not sparse.issparse(part):
        return part.copy()
    csr = sparse.csr_array if isinstance(part, sparse.sparray) else sparse.csr_matrix
    return csr(part, copy=True)
