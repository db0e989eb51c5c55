"""`Table`: p named variables over n samples, the only form of data that later stages see.

Structure is learned from vectors whose expectation is linear in the hidden state. How they are
stored is the table's kind:

- ``"codes"``: `codes` holds one coordinate in use for each variable: its category, or the bin of a
  number; -1 where the value is missing.
- ``"sparse_binary"``: every variable is 0 or 1; `matrix` stores the ones.
- ``"blocks"``: variable `i` is a vector, columns ``offsets[i]:offsets[i + 1]`` of `matrix`;
  `missing` marks the variables that a sample lacks.

Where variables are not all categorical, `values` holds them as they are, for likelihoods: a bin
stands for a number in the structure, the number itself counts in the model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.chunk import Chunk, chunk_size
from latenttree.data.gathering import AnyMissing, Gather, GatherNumbers, joined
from latenttree.data.row_access import rearranged_rows, stacked, take_rows
from latenttree.data.values import Values
from latenttree.engine import THREADS, Engine, Pass, blocks
from latenttree.errors import DataError

if TYPE_CHECKING:  # it loads the compiler, 60 MB, which reading a file does not need
    from latenttree.data.storage import Storage

TableKind = Literal["codes", "sparse_binary", "blocks"]
IntArray = NDArray[np.int64]
Total = TypeVar("Total")

SHARED = ("names", "kind", "dims", "categories", "offsets", "dropped", "notes")
"""Fields that are the same for any of the samples."""


@dataclass(frozen=True, eq=False)
class Table:
    """p named variables over n samples.

    Attributes
    ----------
    names : (p,) names of the variables, all different.
    kind : "codes", "sparse_binary" or "blocks".
    n_samples : n.
    dims : (p,) dimension of each variable: its number of categories, 2 for binary ones, or
        the width of its block.
    categories : for each variable its sorted labels, or None where there are none;
        a category that no sample has is not a category. Of a multi-hot group the names of its
        codes, where they are known.
    offsets : (p + 1,) stored coordinates of variable i are offsets[i]:offsets[i + 1].
    codes : (n, p) C-contiguous uint8, uint16 or int32, values 0..dims[i] - 1; kind "codes". With
        missing values int8, int16 or int32, -1 where missing.
    matrix : (n, offsets[-1]) CSR with sorted indices and no stored zeros; float32 ones
        for "sparse_binary", float32 or float64 for "blocks".
    missing : (n, p) True where a variable is missing; kind "blocks"; None where none is.
    values : the samples as they are; None where every variable is categorical and none is missing
        but for codes of -1.
    weights : (n,) how often each sample counts; None: once.
    dropped : names of variables that were left out, in the order of the input.
    notes : sentences about what was done to the data, for people.
    engine : what runs passes over the samples.
    distinct : the distinct rows with their numbers as weights, where they were found before.
    """

    names: tuple[str, ...]
    kind: TableKind
    n_samples: int
    dims: IntArray
    categories: tuple[NDArray[Any] | None, ...]
    offsets: IntArray
    codes: NDArray[Any] | None = None
    matrix: sparse.csr_array | None = None
    missing: NDArray[np.bool_] | None = None
    values: Values | None = None
    weights: NDArray[np.float64] | None = None
    dropped: tuple[str, ...] = field(default=())
    notes: tuple[str, ...] = field(default=())
    engine: Engine = THREADS
    distinct: Table | None = None

    def __post_init__(self) -> None:
        p = len(self.names)
        if self.dims.shape != (p,) or self.offsets.shape != (p + 1,) or len(self.categories) != p:
            raise ValueError(
                f"a table of {p} names needs {p} dims, {p} categories and {p + 1} offsets; "
                f"got {self.dims.shape}, {len(self.categories)} and {self.offsets.shape}"
            )
        stored, width = (
            (self.codes, p) if self.kind == "codes" else (self.matrix, int(self.offsets[-1]))
        )
        if stored is None or stored.shape != (self.n_samples, width):
            shape = None if stored is None else stored.shape
            raise ValueError(
                f"kind {self.kind!r} needs stored values of shape {(self.n_samples, width)}, "
                f"got {shape}"
            )

    @property
    def n_vars(self) -> int:
        """p."""
        return len(self.names)

    @property
    def widths(self) -> IntArray:
        """(p,) stored coordinates of each variable: `dims`, but 1 for sparse binary ones."""
        return np.diff(self.offsets)

    @property
    def families(self) -> tuple[str, ...]:
        """(p,) the family of every variable."""
        return ("categorical",) * self.n_vars if self.values is None else self.values.families

    @property
    def n_stored(self) -> int | None:
        """Stored coordinates of all samples; None for codes."""
        return None if self.matrix is None else int(self.matrix.nnz)

    @property
    def block_widths(self) -> dict[int, int]:
        """Columns of each variable that is not of categories: 1 of a number, d of a block."""
        arrays = {} if self.values is None else self.values.arrays
        return {v: 1 if x.ndim == 1 else x.shape[1] for v, x in arrays.items()}

    @property
    def has_vectors(self) -> bool:
        """Whether coordinates are vectors, not all of them one category of a variable."""
        return self.kind == "blocks" and self.has_values

    @property
    def has_sparse_columns(self) -> bool:
        """Whether variables are columns of a sparse matrix, or groups of such columns: words,
        codes."""
        if self.kind != "blocks":
            return self.kind == "sparse_binary"
        arrays = () if self.values is None else self.values.arrays.values()
        return self.values is None or any(sparse.issparse(x) for x in arrays)

    @property
    def has_values(self) -> bool:
        """Whether variables are not all categorical: likelihoods need their values as they are."""
        return self.values is not None

    @property
    def has_numbers(self) -> bool:
        """Whether variables are not all categories, ordered or not: some have numbers."""
        return bool(self.block_widths)

    @property
    def kernels(self) -> str:
        """Which kernels it needs: of "codes", "values" (numbers beside bins), "sparse_binary" or
        "blocks"."""
        return "values" if self.has_values and self.kind == "codes" else self.kind

    @property
    def total_weight(self) -> float:
        """Sum of the weights; the number of samples without weights."""
        return float(self.n_samples if self.weights is None else self.weights.sum())

    @cached_property
    def has_missing(self) -> bool:
        """Whether any value is missing; one pass, then cached."""
        return bool(self.run(AnyMissing())[0])

    @cached_property
    def storage(self) -> Storage:
        """How coordinates are stored, and what differs by it; cached."""
        from latenttree.data.storage import BinaryStorage, CodedStorage, VectorStorage

        if self.kind == "codes":
            return CodedStorage(self.offsets, self.has_missing)
        form = BinaryStorage if self.kind == "sparse_binary" else VectorStorage
        return form(self.offsets, self.has_missing)

    def run(self, pass_: Pass[Total], n_jobs: int = 1) -> Total:
        """The total of a pass over all samples."""
        return self.engine.run(pass_, self, n_jobs)

    def at_source(self, pass_: Pass[Total]) -> tuple[Table, Pass[Total]]:
        """The table whose samples these are, and the pass over all of them that reads these."""
        return self, pass_

    def chunks(self) -> Iterator[Chunk]:
        """All samples, in ranges that depend on the numbers of samples and variables alone."""
        for start, stop in blocks(self.n_samples, self._chunk_size()):
            yield self.chunk(start, stop)

    def _chunk_size(self) -> int:
        return chunk_size(self.n_vars, self.has_values)

    def chunk(self, start: int, stop: int) -> Chunk:
        """Samples start:stop."""
        weights = None if self.weights is None else self.weights[start:stop]
        rows: Any = self.rows(start, stop)
        known = self._known(start, stop)
        if self.has_values:
            part = self._values(start, stop)
            return Chunk(part.codes, part.arrays, weights, rows, known, start=start)
        if self.kind == "blocks":
            codes = codes_of_one_hot(rows, known, self.offsets)
            return Chunk(codes, {}, weights, rows, known, start=start)
        return Chunk(rows, {}, weights, start=start)

    def _known(self, start: int, stop: int) -> NDArray[np.bool_] | None:
        """(stop - start, p) False where `missing` is True; None where it nowhere is."""
        if self.missing is None:
            return None
        known = ~self.missing[start:stop]
        return None if known.all() else known

    def _values(self, start: int, stop: int) -> Values:
        assert self.values is not None
        return self.values.rows(start, stop)

    def __len__(self) -> int:
        return self.n_samples

    def __repr__(self) -> str:
        shown = ", ".join(self.names[:4]) + (", ..." if self.n_vars > 4 else "")
        dims = f"{self.dims.min()}..{self.dims.max()}" if self.n_vars else "none"
        return (
            f"Table({self.kind}: {self.n_samples:,} samples x {self.n_vars:,} variables "
            f"[{shown}], dimensions {dims})"
        )

    def rows(self, start: int, stop: int) -> NDArray[Any] | sparse.csr_array:
        """Samples start:stop as codes or CSR; a view, only the row pointers are copied."""
        rows = take_rows(self.matrix if self.codes is None else self.codes, slice(start, stop))
        return rows if sparse.issparse(rows) else np.asarray(rows)

    def subset_rows(self, index: NDArray[Any] | Sequence[int] | slice) -> Table:
        """The samples of `index` (integers, a mask or a slice), in this process; dims stay as they
        are."""
        if self.engine is not THREADS:
            return self._gathered(np.arange(self.n_samples)[index])
        values = None if self.values is None else self.values.take(index)
        weights = None if self.weights is None else self.weights[index]
        return self._of_rows(lambda x: take_rows(x, index), values, weights)

    def _of_rows(self, take: Callable[[Any], Any], values: Any, weights: Any) -> Table:
        """A table of what `take` makes of the stored rows."""
        names = ("codes", "matrix", "missing")
        stored = {x: take(own) for x in names if (own := getattr(self, x)) is not None}
        if "codes" in stored:
            stored["codes"] = np.ascontiguousarray(stored["codes"])
        n = stored["codes" if "codes" in stored else "matrix"].shape[0]
        return self.replace(n_samples=n, values=values, weights=weights, **stored)

    def _gathered(self, positions: IntArray) -> Table:
        """The samples at `positions`, fetched by the engine."""
        order = np.argsort(positions, kind="stable")
        part = joined(self.run(Gather(positions[order])))
        part = part.take(np.argsort(order, kind="stable"))
        weights = None if self.weights is None else self.weights[positions]
        changes: dict[str, Any] = {"engine": THREADS, "weights": weights, "values": None}
        if self.values is not None:
            changes["values"] = Values(self.families, part.rows, dict(part.arrays))
        stored = part.rows if part.stored is None else part.stored
        changes["codes" if self.kind == "codes" else "matrix"] = stored
        changes["missing"] = None if part.known is None else ~part.known
        values = {name: getattr(self, name) for name in SHARED}
        return Table(**(values | {"n_samples": len(part)} | changes))

    def rearranged(self, positions: NDArray[Any], weights: NDArray[np.float64] | None) -> Table:
        """The rows at `positions`, each perhaps several times, with these weights. What lies in a
        mapped file lies in a new one, in the same folder."""
        values = None if self.values is None else self.values.rearranged(positions)
        return self._of_rows(lambda x: rearranged_rows(x, positions), values, weights)

    def numbers(self, v: int) -> Any:
        """(n,) or (n, d) values of a variable that is not categorical, in this process."""
        assert self.values is not None
        if self.engine is THREADS:
            return self.values.arrays[v]
        return stacked(self.run(GatherNumbers(v)))

    def copies(self, pairs: Sequence[tuple[int, int]], least: float = 1) -> NDArray[np.bool_]:
        """(m,) which pairs of variables are equal, see `copies.Copies`; one pass."""
        from latenttree.data.copies import Copies

        numbers = frozenset({} if self.values is None else self.values.arrays)
        pass_ = Copies(tuple(pairs), self.storage, numbers)
        return pass_.copies(self.run(pass_), least)

    def thinned(self, n: int) -> Table:
        """About `n` samples spread evenly over the table; the table itself if it has fewer than `2
        n`.

        One position at random in each of `n` ranges, so that no period of the rows shows. A sample
        of weight w takes w positions."""
        total = int(self.total_weight)
        step = total // max(n, 1)
        if step < 2:
            return self
        starts = np.arange(0, total, step)
        positions = starts + np.random.default_rng(0).integers(0, step, len(starts))
        positions = positions[positions < total]
        if self.weights is None:
            return self.subset_rows(positions)
        ends = np.concatenate([[0.0], np.cumsum(self.weights)])
        weights = np.diff(np.searchsorted(positions, ends)).astype(np.float64)
        used = np.flatnonzero(weights)
        return self.subset_rows(used).replace(weights=weights[used])

    def select(self, variables: Sequence[str | int] | NDArray[Any]) -> Table:
        """The named or numbered variables, in that order."""
        index = self._variable_index(variables)
        changes: dict[str, Any] = {
            "names": tuple(self.names[i] for i in index),
            "dims": self.dims[index],
            "categories": tuple(self.categories[i] for i in index),
            "offsets": _ends(self.widths[index]),
            "values": None if self.values is None else self.values.select(index),
            "missing": None if self.missing is None else self.missing[:, index],
        }
        if self.codes is not None:
            changes["codes"] = np.ascontiguousarray(self.codes[:, index])
        else:
            assert self.matrix is not None
            ranges = [np.arange(self.offsets[i], self.offsets[i + 1]) for i in index]
            columns = np.concatenate(ranges) if ranges else np.empty(0, dtype=np.int64)
            matrix = sparse.csr_array(self.matrix[:, columns])
            matrix.sort_indices()
            changes["matrix"] = matrix
        return self.replace(**changes)

    def _variable_index(self, variables: Sequence[str | int] | NDArray[Any]) -> IntArray:
        position = {name: i for i, name in enumerate(self.names)}
        index = []
        for variable in variables:
            number = position.get(variable) if isinstance(variable, str) else int(variable)
            if number is None or not -self.n_vars <= number < self.n_vars:
                what = f"no variable {variable!r} in a table of {self.n_vars} variables ("
                what += f"{', '.join(self.names[:5])}, ...)"
                raise DataError(what, "use one of its names or 0..p-1", value=variable)
            index.append(number % self.n_vars)
        if len(set(index)) != len(index):
            what = f"a variable is selected twice in {list(variables)!r}"
            raise DataError(what, "list it once", value=list(variables))
        return np.asarray(index, dtype=np.int64)

    def replace(self, **changes: Any) -> Table:
        """A copy with other fields, which are checked."""
        values = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return Table(**(values | changes))


def codes_of_one_hot(
    rows: Any, known: NDArray[np.bool_] | None, offsets: IntArray
) -> NDArray[np.int32]:
    """(n, p) codes of one-hot blocks; -1 where missing."""
    shape = (rows.shape[0], len(offsets) - 1)
    if known is None:
        return np.asarray(rows.indices.reshape(shape) - offsets[:-1], dtype=np.int32)
    codes = np.full(shape, -1, dtype=np.int32)
    codes[known] = rows.indices - offsets[:-1][np.nonzero(known)[1]]
    return codes


def stored_table(
    names: Sequence[str],
    dims: Sequence[int] | NDArray[Any],
    categories: Sequence[NDArray[Any] | None],
    **stored: Any,
) -> Table:
    """A table of `codes`, or else of kind "blocks" with a `matrix`, and other fields of `Table`; a
    variable has as many coordinates as `dims` says where no `offsets` are given."""
    rows = stored["codes" if "codes" in stored else "matrix"]
    sizes = np.asarray(dims, dtype=np.int64)
    fields = {
        "names": tuple(names),
        "kind": "codes" if "codes" in stored else "blocks",
        "n_samples": rows.shape[0],
        "dims": sizes,
        "categories": tuple(categories),
        "offsets": _ends(sizes),
    }
    return Table(**(fields | stored))


def _ends(widths: IntArray) -> IntArray:
    return np.concatenate([[0], np.cumsum(widths)]).astype(np.int64)


def codes_table(
    names: Sequence[str], codes: NDArray[Any], categories: Sequence[NDArray[Any]], **fields: Any
) -> Table:
    """A table of categorical variables; dims follow from `categories`."""
    return stored_table(names, list(map(len, categories)), categories, codes=codes, **fields)


def sparse_binary_table(names: Sequence[str], matrix: sparse.csr_array, **fields: Any) -> Table:
    """A table of binary variables; `matrix` is canonical CSR with ones."""
    p = len(names)
    fields |= {"kind": "sparse_binary", "offsets": np.arange(p + 1, dtype=np.int64)}
    return stored_table(names, np.full(p, 2), (None,) * p, matrix=matrix, **fields)
