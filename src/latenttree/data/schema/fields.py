"""`SchemaFields`: what a schema stores, and what follows from it alone.

Reading new data, decoding and files build on it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.columns.codes import code_dtype
from latenttree.data.containers import FRAMES, InputColumn
from latenttree.data.schema.kinds import BinaryLabels, Kind, Labels, NumberBlock, Numbers, Ranks
from latenttree.data.table import TableKind
from latenttree.data.values import CODED

CONTAINERS = ("array", "sparse array", "sparse matrix", "dict", "list", "table", *FRAMES)
FORMS = ("vector", "dense", "sparse")


@dataclass(frozen=True, eq=False)
class SchemaFields:
    """The fields of a `Schema`, which documents them, and what follows from them."""

    kind: TableKind
    names: tuple[str, ...]
    dims: NDArray[np.int64]
    categories: tuple[NDArray[Any] | None, ...]
    columns: tuple[InputColumn, ...]
    index: NDArray[np.int64]
    container: str
    named: bool
    whole_names: bool
    members: tuple[NDArray[np.int64], ...] | None
    families: tuple[str, ...]

    @property
    def n_vars(self) -> int:
        """Variables of the model."""
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
        return len(self.columns) if self.members is None else sum(map(len, self.members))

    @property
    def is_sparse_binary(self) -> bool:
        """Whether every variable is 1 where a value is > 0, as of a sparse matrix."""
        return self.kind == "sparse_binary"

    @property
    def has_blocks(self) -> bool:
        """Whether variables are vectors, or all are numbers of a Gaussian tree."""
        return self.kind == "blocks"

    @cached_property
    def coded(self) -> NDArray[np.bool_]:
        """(p,) True where a variable is categorical, so that a code suffices."""
        return np.array([family in CODED for family in self.families], dtype=np.bool_)

    @cached_property
    def n_coded(self) -> int:
        """Variables that are categories."""
        return int(self.coded.sum())

    @cached_property
    def variables(self) -> tuple[Kind, ...]:
        """(p,) how each variable reads new data and writes values."""
        return tuple(map(self._kind, range(self.n_vars)))

    def _kind(self, i: int) -> Kind:
        column, family = self.columns[self.index[i]], self.families[i]
        fields = (self.names[i], family, int(self.dims[i]), column)
        vector = column.form == "vector"
        if family in CODED:
            form = BinaryLabels if self.is_sparse_binary else Labels
            return form(*fields, self.labels[i], self.has_blocks or not vector)
        if not vector:
            return NumberBlock(*fields)
        # a Gaussian tree, whose tables are of kind "blocks", reads ordered categories as ranks
        return (Ranks if column.levels is not None and self.has_blocks else Numbers)(*fields)

    def form_of(self, variable: int) -> str:
        """ "vector", or "dense" or "sparse" where the variable was a block."""
        return self.columns[self.index[variable]].form

    def shape_of(self, variable: int) -> tuple[int, ...]:
        """The shape of one value of a variable that is not categorical: (), or (d,) of a block."""
        return self.variables[variable].shape

    def ranked(self, variable: int) -> bool:
        """Whether the numbers of a variable are positions among the levels of its column."""
        return isinstance(self.variables[variable], Ranks)

    @cached_property
    def labels(self) -> tuple[NDArray[Any], ...]:
        """(p,) labels of every variable in the order of its codes: 0 and 1 for sparse binary
        variables, the numbers of the columns for a block without labels; empty for variables that
        are not categorical."""
        sizes = np.where(self.coded, self.dims, 0).tolist()
        labels = zip(sizes, self.categories, strict=True)
        return tuple(np.arange(d) if own is None else own for d, own in labels)

    def codes_of(self, variable: int) -> list[str]:
        """Names of the coordinates of a vector; their places where they have none."""
        levels = self.columns[self.index[variable]].levels
        return [str(x) for x in (range(int(self.dims[variable])) if levels is None else levels)]

    @property
    def code_dtype(self) -> Any:
        """The smallest signed dtype that holds every code and -1."""
        return code_dtype(int(self.dims[self.coded].max(initial=1)), signed=True)

    def variable_of(self, column: int) -> int | None:
        """The variable of a column, None where the column was dropped."""
        return self._variable.get(column)

    @cached_property
    def _variable(self) -> dict[int, int]:
        return {j: i for i, j in enumerate(self.index.tolist())}

    def column_of(self, number: Any) -> int | None:
        """The column with this integer as its name, where training columns had integer names; else
        None."""
        return self._by_number.get(int(number)) if is_whole(number) else None

    @cached_property
    def _by_number(self) -> dict[int, int]:
        names = self.input_names if self.whole_names else ()
        return {int(name): j for j, name in enumerate(names)}

    @cached_property
    def numbered(self) -> bool:
        """Whether labels are codes: integers 0..d-1 in every variable."""
        whole = self.kind == "codes" and self.n_coded == self.n_vars
        return whole and all(
            x.dtype.kind in "iu" and np.array_equal(x, np.arange(len(x))) for x in self.labels
        )


def is_whole(name: Any) -> bool:
    """Whether a name is an integer, as pandas gives them by default."""
    return isinstance(name, int | np.integer) and not isinstance(name, bool)
