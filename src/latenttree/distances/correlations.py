"""Where compiled kernels get a pair's correlation from, whether it is stored or not.

Kernels take a `Source` and call `correlation(source, a, b)`, `tail` or `excess`; nobody but this
module knows how the numbers are had: read from matrices, or counted when they are asked for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba.core.types import NoneType
from numba.extending import overload
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel, subroutine
from latenttree.moments.binary import binary_pair
from latenttree.moments.cooccurrence import Packed, pair_count

LEAST = 4.0
"""Effective samples behind anything that is there at all."""

FAINT = 0.05
"""Squared correlations below this weigh like it: their variances are noise."""

MOST_EXCESS = 6e4

COUNT_BITS = 26
"""Bits of a count in the memory of counts; 38 are left for the pair."""


class Source(NamedTuple):
    """Correlations of variables as plain arrays, for compiled kernels.

    Variable a of a kernel is row `rows[a]` of the arrays after it, so that some variables are
    a source without a copy. `(0, 0)` stands for a matrix that is not there. Without `dense`,
    correlations come from the counts of `store`, and `memory` keeps counts that were asked for;
    without a store, kernels are compiled without the code that counts.
    Where `mean` is there, errors and tails follow from a correlation, and have no matrices."""

    sign: NDArray[np.float32]  # (m,) orientation; 0 for a variable that is set aside
    rows: NDArray[np.int64]  # (m,)
    dense: NDArray[Any]  # (p, p) signed correlations
    errors: NDArray[np.float32]  # (p, p) relative standard errors
    tails: NDArray[np.float32]  # (p, p)
    store: Packed | None
    mean: NDArray[np.float64]  # (p,) of 0/1 variables
    root: NDArray[np.float64]  # (p,) one over their standard deviations
    memory: NDArray[np.uint64]  # a power of two of counts, or none
    n: float  # samples
    rank: float  # dimensions of a determinant
    heavy: bool  # whether tails count
    measured: bool  # whether excesses count


NO_MATRIX = np.empty((0, 0), dtype=np.float32)
_NO_NUMBERS = np.empty(0)
_NO_MEMORY = np.empty(0, dtype=np.uint64)
_NO_PLACES = np.empty(0, dtype=np.int64)
_NO_LIST = np.empty(0, dtype=np.uint32)


def dense_source(
    dense: NDArray[Any],
    tails: NDArray[np.float32] | None = None,
    errors: NDArray[np.float32] | None = None,
    sign: NDArray[np.float32] | None = None,
    *,
    n: float = 1.0,
    rank: int = 1,
    heavy: bool = True,
    measured: bool = True,
) -> Source:
    """A source that reads from matrices, which are not copied."""
    return Source(
        np.ones(len(dense), dtype=np.float32) if sign is None else sign,
        np.arange(len(dense)),
        np.ascontiguousarray(dense),
        NO_MATRIX if errors is None else np.ascontiguousarray(errors, dtype=np.float32),
        NO_MATRIX if tails is None else np.ascontiguousarray(tails, dtype=np.float32),
        None,
        _NO_NUMBERS,
        _NO_NUMBERS,
        _NO_MEMORY,
        float(n),
        float(rank),
        heavy and tails is not None,
        measured and errors is not None,
    )


def binary_source(
    dense: NDArray[np.float32], mean: NDArray[np.float64], root: NDArray[np.float64], n: float
) -> Source:
    """A source of 0/1 variables that reads correlations from a matrix, which is not copied."""
    return dense_source(dense, n=n)._replace(mean=mean, root=root, heavy=True, measured=True)


def counted_source(
    store: Packed,
    mean: NDArray[np.float64],
    root: NDArray[np.float64],
    n: float,
    n_kept: int = 0,
) -> Source:
    """A source of 0/1 variables that counts a pair when it is asked for, and keeps about `n_kept`
    counts of 8 bytes."""
    p = len(mean)
    fits = p * p < 2 ** (64 - COUNT_BITS) and n < 2**COUNT_BITS and n_kept > 0
    kept = 2 ** int(np.log2(n_kept)) if fits else 0
    return Source(
        np.ones(p, dtype=np.float32),
        np.arange(p),
        NO_MATRIX,
        NO_MATRIX,
        NO_MATRIX,
        store,
        mean,
        root,
        np.full(kept, np.iinfo(np.uint64).max, dtype=np.uint64),
        float(n),
        1.0,
        True,
        True,
    )


def without_rows(store: Packed) -> Packed:
    """The store without the variables of each sample, which only sweeps over all pairs need."""
    return store._replace(bounds=_NO_PLACES, ranks=_NO_LIST)


@kernel(inline="always")
def _count(memory, store, p, a, b):  # type: ignore[no-untyped-def]
    """Samples that have both a and b of `p` rows, from memory where it is there; nothing is handed
    over where the count is.

    A place of the memory holds the pair and the count in one word, so that threads that write the
    same place at once cannot mix up two pairs."""
    size = np.uint64(len(memory))
    high, low = np.uint64(max(a, b)), np.uint64(min(a, b))
    pair = high * np.uint64(p) + low
    place = pair * np.uint64(0x9E3779B97F4A7C15)
    place = (place ^ (place >> np.uint64(31))) & (size - np.uint64(1))
    count = np.int64(-1)
    if size > 0:
        word = memory[place]
        if word >> np.uint64(COUNT_BITS) == pair:
            count = np.int64(word & np.uint64((1 << COUNT_BITS) - 1))
    if count < 0:
        count = np.int64(pair_count(store, a, b))
        if size > 0:
            memory[place] = (pair << np.uint64(COUNT_BITS)) | np.uint64(count)
    return count


@subroutine
def counted(source, a, b):  # type: ignore[no-untyped-def]
    """Samples that have both a and b."""
    return _count(source.memory, source.store, len(source.mean), a, b)


@kernel(inline="always")
def _counted_rho(memory, store, rank, mean, root, n, a, b):  # type: ignore[no-untyped-def]
    """Correlation of two rows as `counted_pair` has it, from the arrays of a source: its error is
    not worked out."""
    if a == b:
        return 1.0
    if rank[a] < rank[b]:
        a, b = b, a
    count = _count(memory, store, len(mean), a, b)
    second = count / n - mean[a] * mean[b]
    return np.float64(np.float32(second * root[a] * root[b]))


@kernel
def _counted_cross(source, one, other, out):  # type: ignore[no-untyped-def]
    """`cross` of a source that counts."""
    rows, sign, memory, store = source.rows, source.sign, source.memory, source.store
    rank, mean, root, n = store.rank, source.mean, source.root, source.n
    for i in range(len(one)):
        a, turn = rows[one[i]], np.float64(sign[one[i]])
        for j in range(len(other)):
            rho = _counted_rho(memory, store, rank, mean, root, n, a, rows[other[j]])
            out[i, j] = turn * np.float64(sign[other[j]]) * rho


@kernel
def _counted_gather(source, members, out):  # type: ignore[no-untyped-def]
    """`gather` of a source that counts."""
    for i in range(len(members)):
        _counted_cross(source, members[i : i + 1], members[:i], out[i : i + 1])
        for j in range(i):
            out[j, i] = out[i, j]
        out[i, i] = 1.0


@kernel
def counted_pair(source, a, b):  # type: ignore[no-untyped-def]
    """Correlation, error and tail of two rows, from their count, rounded as in a matrix and with
    the sides in the same order."""
    if source.store.rank[a] < source.store.rank[b]:
        a, b = b, a
    one, other, n = source.mean[a], source.mean[b], source.n
    second = counted(source, a, b) / n - one * other
    rho, error, heavy = binary_pair(second, one, other, source.root[a], source.root[b], n)
    return np.float64(np.float32(rho)), np.float64(np.float32(error)), np.float64(np.float32(heavy))


def _counts(source: Any) -> bool:
    """Whether sources of a compiled type have a store."""
    return not isinstance(dict(zip(source.fields, source.types, strict=True))["store"], NoneType)


def pair_on_demand(source: Source, a: int, b: int) -> tuple[float, float, float]:
    """`counted_pair` of a source that has a store, for kernels."""
    raise NotImplementedError


def cross_on_demand(source: Source, one: Any, other: Any, out: Any) -> None:
    """`cross` of a source that has a store, for kernels."""
    raise NotImplementedError


def gather_on_demand(source: Source, members: Any, out: Any) -> None:
    """`gather` of a source that has a store, for kernels."""
    raise NotImplementedError


@overload(pair_on_demand)
def _pair_on_demand(source, a, b):  # type: ignore[no-untyped-def]
    if _counts(source):
        return lambda source, a, b: counted_pair(source, a, b)
    return lambda source, a, b: (0.0, 0.0, 1.0)


@overload(cross_on_demand)
def _cross_on_demand(source, one, other, out):  # type: ignore[no-untyped-def]
    if _counts(source):
        return lambda source, one, other, out: _counted_cross(source, one, other, out)
    return lambda source, one, other, out: None


@overload(gather_on_demand)
def _gather_on_demand(source, members, out):  # type: ignore[no-untyped-def]
    if _counts(source):
        return lambda source, members, out: _counted_gather(source, members, out)
    return lambda source, members, out: None


@subroutine
def stored_pair(rho, one, other, root_a, root_b, n):  # type: ignore[no-untyped-def]
    """Error and tail of two 0/1 variables whose correlation is known, rounded as in a matrix."""
    second = np.float64(rho) / (root_a * root_b)
    _, error, heavy = binary_pair(second, one, other, root_a, root_b, n)
    return np.float64(np.float32(error)), np.float64(np.float32(heavy))


@subroutine
def measured_excess(rho, error, heavy, n, rank):  # type: ignore[no-untyped-def]
    """Measured variance of the distance of a pair over that of a Gaussian correlation `rho` from as
    many samples, `rank^2 (1 - rho^2)^2 heavy / (n rank rho^2)`; at least 1."""
    square = rho * rho
    gap = (1 - square) ** 2
    if gap == 0.0:
        return 1.0
    excess = error * error * square * (n / rank) / gap / heavy
    if not np.isfinite(excess):
        return 1.0
    return min(max(excess, 1.0), MOST_EXCESS)


@kernel
def correlation(source, a, b):  # type: ignore[no-untyped-def]
    """Signed correlation of variables a and b, oriented."""
    if a == b:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    sign = np.float64(source.sign[a]) * np.float64(source.sign[b])
    if source.dense.shape[0] > 0:
        return sign * min(max(np.float64(source.dense[i, j]), -1.0), 1.0)
    return sign * pair_on_demand(source, i, j)[0]


@kernel
def tail(source, a, b):  # type: ignore[no-untyped-def]
    """How much heavier than Gaussian the fourth moment of a pair is; 1 where tails do not count."""
    if not source.heavy:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    if source.tails.shape[0] > 0:
        return np.float64(source.tails[i, j])
    if source.dense.shape[0] > 0:
        mean, root = source.mean, source.root
        return stored_pair(source.dense[i, j], mean[i], mean[j], root[i], root[j], source.n)[1]
    return pair_on_demand(source, i, j)[2]


@kernel
def excess(source, a, b):  # type: ignore[no-untyped-def]
    """By how much the measured variance of a pair's distance exceeds a Gaussian one; 1 where that
    does not count."""
    if not source.measured:
        return 1.0
    i, j = source.rows[a], source.rows[b]
    if source.dense.shape[0] == 0:
        rho, error, heavy = pair_on_demand(source, i, j)
        return measured_excess(rho, error, heavy, source.n, source.rank)
    rho = min(abs(np.float64(source.dense[i, j])), 1.0)
    if len(source.mean) > 0:
        mean, root = source.mean, source.root
        error, heavy = stored_pair(source.dense[i, j], mean[i], mean[j], root[i], root[j], source.n)
        return measured_excess(rho, error, heavy, source.n, source.rank)
    heavy = 1.0 if source.tails.shape[0] == 0 else np.float64(source.tails[i, j])
    return measured_excess(rho, np.float64(source.errors[i, j]), heavy, source.n, source.rank)


@kernel
def effective_samples(source, n, variables):  # type: ignore[no-untyped-def]
    """Effective samples, of `n` in all, behind the correlations of some variables: over their
    pairs the geometric mean of `tail`, and the mean of `excess` weighted with the variances
    `(1 - rho^2)^2 / rho^2`, which are what a sum of distances adds up."""
    m = len(variables)
    if m < 2 or not (source.heavy or source.measured):
        return n
    rows, tails, stored = source.rows, source.tails, source.tails.shape[0] > 0
    dense, mean, root = source.dense, source.mean, source.root
    follows = not stored and dense.shape[0] > 0 and len(mean) > 0
    logs = 0.0
    total, weight = 0.0, 1e-300
    for i in range(m):
        for j in range(i):
            a, b = variables[i], variables[j]
            if source.heavy:
                s, t = rows[a], rows[b]
                if stored:
                    heavy = np.float64(tails[s, t])
                elif follows:
                    heavy = stored_pair(dense[s, t], mean[s], mean[t], root[s], root[t], source.n)[
                        1
                    ]
                else:
                    heavy = tail(source, a, b)
                logs += np.log(heavy)
            if source.measured:
                square = correlation(source, a, b) ** 2
                w = (1 - square) ** 2 / max(square, FAINT)
                total += w * excess(source, a, b)
                weight += w
    if source.heavy:
        n /= np.exp(2 * logs / (m * (m - 1)))
    if source.measured:
        n /= max(total / weight, 1.0)
    return max(n, LEAST)


@kernel
def gather(source, members, out):  # type: ignore[no-untyped-def]
    """Correlations between all `members` into `out` `(m, m)`.

    A call that takes a whole source costs as much as a hundred numbers read from a matrix, so
    kernels ask for blocks."""
    rows, sign, dense = source.rows, source.sign, source.dense
    if dense.shape[0] == 0:
        gather_on_demand(source, members, out)
        return
    for i in range(len(members)):
        a = members[i]
        for j in range(i):
            b = members[j]
            if a == b:
                value = 1.0
            else:
                value = min(max(np.float64(dense[rows[a], rows[b]]), -1.0), 1.0)
                value *= np.float64(sign[a]) * np.float64(sign[b])
            out[i, j] = value
            out[j, i] = value
        out[i, i] = 1.0


@kernel
def cross(source, one, other, out):  # type: ignore[no-untyped-def]
    """Correlations of variables `one` `(m,)` with `other` `(q,)`, no variable in both, into `out`
    `(m, q)` or larger."""
    rows, sign, dense = source.rows, source.sign, source.dense
    if dense.shape[0] == 0:
        cross_on_demand(source, one, other, out)
        return
    for i in range(len(one)):
        a = one[i]
        row, turn = rows[a], np.float64(sign[a])
        for j in range(len(other)):
            b = other[j]
            value = min(max(np.float64(dense[row, rows[b]]), -1.0), 1.0)
            out[i, j] = turn * np.float64(sign[b]) * value


@kernel
def gather_pairs(source, pairs, kind, out):  # type: ignore[no-untyped-def]
    """For pairs `(m, 2)` into `out` `(m,)`: correlations (kind 0), tails (1), excesses (2)."""
    for i in range(len(pairs)):
        a, b = pairs[i, 0], pairs[i, 1]
        if kind == 0:
            out[i] = correlation(source, a, b)
        elif kind == 1:
            out[i] = tail(source, a, b)
        else:
            out[i] = excess(source, a, b)
