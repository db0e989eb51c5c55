"""Which nodes tell most about a node: mutual information along a tree, in bits.

    I(v; h) = sum_ij P(v = i, h = j) log2( P(v = i, h = j) / (P(v = i) P(h = j)) )

between nodes with states. A number or a count has the information that a normal variable would
have of which the states explain the same share of the variance, `-1/2 log2(1 - R2)`, at most that
of its neighbour; in a Gaussian tree it is `-1/2 log2 det(I - R R')` with the canonical correlations
R. Of a group of codes, or a block of numbers, each coordinate stands by itself.

What lies behind a node tells no more than the node does (the data processing inequality). So a
best-first search from h finds the most informative nodes one after another, exactly, and looks at
few others: at the neighbours of those that tell as much as the last one found.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.engine.kernels import kernel, subroutine
from latenttree.interpretation.channels import NUMBER, STATES, Channels

LEAST_BITS = 1e-9
"""Nodes that tell less are not listed: it may be rounding."""

MOST_CORRELATED = 1.0 - 1e-12
"""Largest share of variance that counts, so that a copy has finite information."""

LEAST_COVARIANCE = 1e-12
"""Scores of smaller covariance have no direction: it would be that of rounding."""


@dataclass(frozen=True, eq=False)
class Informative:
    """The nodes that tell most about each of some nodes, best first.

    Attributes
    ----------
    nodes : (m, n) numbers in `Channels`, -1 behind the last of a row.
    bits : (m, n) mutual information.
    directions : (m, n) +1 where a higher state of the node goes with higher values of the other,
        -1 with lower; 0 where one of them has no order.
    """

    nodes: Ints
    bits: Floats
    directions: NDArray[np.int8]


def most_informative(
    channels: Channels,
    about: Sequence[int] | Ints,
    n: int,
    wanted: Bools | None = None,
    n_jobs: int = 1,
) -> Informative:
    """The n nodes that tell most about each of the nodes `about`.

    wanted : (nodes of `channels`,) which nodes are listed, by default all observed variables and
        coordinates of those that are vectors.

    For trees with few large nodes `O(n k^3 log n)` for each of `about`, whatever the size of
    the tree."""
    asked = np.asarray(about, dtype=np.int64)
    wanted = channels.is_item if wanted is None else wanted
    n = min(n, int(wanted.sum()))
    found = Informative(
        np.full((len(asked), n), -1, dtype=np.int64),
        np.zeros((len(asked), n)),
        np.zeros((len(asked), n), dtype=np.int8),
    )
    c = channels
    arrays = (c.kinds, c.dims, c.indptr, c.targets, c.starts, c.matrices)
    of_nodes = (c.own, c.own_starts, c.scores)

    def work(a: int, b: int) -> Any:
        out = found.nodes[a:b], found.bits[a:b], found.directions[a:b]
        search_all(asked[a:b], wanted, *arrays, *of_nodes, *out)

    parallel(work, len(asked), n_jobs)
    return found


def related_to_number(channels: Channels, number: int) -> list[tuple[int, float, int]]:
    """(node, bits, direction) of all nodes that depend on a number, the most informative first.

    A node w with states explains the share `R2 = Var(E[x | w]) / Var(x)` of the variance of the
    number x, and another number y the square of their correlation; both shrink along paths. Bits
    are those of normal variables, `-1/2 log2(1 - R2)`. `O(n_nodes k^2)`."""
    variance, start = float(channels.of_own(number)[0]), channels.neighbor_of_leaf(number)
    found: list[tuple[int, float, int]] = []
    todo = [(start, number, channels.matrix(start, number)[0])]  # E[x | w] less its mean
    for w, before, means in todo:
        weight, score = channels.of_own(w), channels.score(w)
        bits = _bits_of_share(float(weight @ means**2) / variance)
        found.append((w, bits, _sign(float((means * weight) @ (score - weight @ score)))))
        for u in channels.neighbors(w):
            if u == before:
                continue
            if channels.kinds[u] == NUMBER:
                shared = float((means * weight) @ channels.matrix(w, u)[0])
                share = shared**2 / (variance * float(channels.of_own(u)[0]))
                found.append((u, _bits_of_share(share), _sign(shared)))
            else:
                todo.append((u, w, means @ (_reverse(channels, w, u))))
    return sorted(found, key=lambda each: -each[1])


def _reverse(channels: Channels, w: int, u: int) -> Floats:
    """`P(w | u)`, `(dims[w], dims[u])`, also of a leaf u that leads nowhere."""
    if channels.neighbors(u):
        return channels.matrix(u, w)
    joint = channels.matrix(w, u) * channels.of_own(w)
    return np.asarray((joint / np.maximum(channels.of_own(u), 1e-300)[:, None]).T)


def _bits_of_share(share: float) -> float:
    return float(-0.5 * np.log2(1.0 - min(share, MOST_CORRELATED)))


def _sign(shared: float) -> int:
    return 0 if abs(shared) < LEAST_COVARIANCE else int(np.sign(shared))


@kernel
def search_all(
    about: Any,
    wanted: Any,
    kinds: Any,
    dims: Any,
    indptr: Any,
    targets: Any,
    starts: Any,
    matrices: Any,
    own: Any,
    own_starts: Any,
    scores: Any,
    nodes: Any,
    bits: Any,
    directions: Any,
) -> None:
    """`most_informative` for each of `about`, written into the rows of the last three arrays.

    `T[w, about] = T[w, u] T[u, about]` for the neighbours w of a node u that leaves the heap. The
    heap holds (minus bits, number of the visit); a visit is a node, the place of the matrix of the
    node before it in `passed`, and the edge between them."""
    for row in range(len(about)):
        h = about[row]
        first = np.eye(dims[h])
        weight = own[own_starts[h] : own_starts[h] + dims[h]]
        score = scores[own_starts[h] : own_starts[h] + dims[h]]
        passed = [first]
        passed_nodes = [h]
        visited, came, through = [h], [0], [0]
        heap = [(-_entropy(kinds[h], weight), 0)]
        n_found = 0
        while len(heap) > 0 and n_found < nodes.shape[1]:
            minus, visit = heappop(heap)
            v, source, edge = visited[visit], came[visit], through[visit]
            matrix = first
            if visit > 0:
                matrix = _product(matrices, starts[edge], dims[v], passed[source])
            if wanted[v] and visit > 0:
                nodes[row, n_found] = v
                bits[row, n_found] = -minus
                directions[row, n_found] = _direction(
                    matrix, kinds[h], weight, score, scores[own_starts[v] :]
                )
                n_found += 1
            if visit > 0 and indptr[v + 1] - indptr[v] < 2:
                continue
            before = passed_nodes[source] if visit > 0 else -1
            place = 0
            if visit > 0:
                place = len(passed)
                passed.append(matrix)
                passed_nodes.append(v)
            for e in range(indptr[v], indptr[v + 1]):
                w = targets[e]
                if w == before:
                    continue
                there = _product(matrices, starts[e], dims[w], matrix)
                found = _bits(there, kinds[w], kinds[h], weight, own[own_starts[w] :])
                found = min(found, -minus)
                if found > LEAST_BITS:
                    heappush(heap, (-found, len(visited)))
                    visited.append(w)
                    came.append(place)
                    through.append(e)


@subroutine
def _entropy(kind: Any, weight: Any) -> Any:
    """Bits of a node with states, which bound what others tell about it; infinite of numbers."""
    if kind != STATES:
        return np.inf
    total = 0.0
    for p in weight:
        if p > 0:
            total -= p * np.log2(p)
    return total


@subroutine
def _product(matrices: Any, start: Any, rows: Any, right: Any) -> Any:
    """`(rows, k)`: the matrix that begins at `start`, times `right` `(inner, k)`."""
    inner, k = right.shape
    found = np.zeros((rows, k))
    for i in range(rows):
        for x in range(inner):
            value = matrices[start + i * inner + x]
            for j in range(k):
                found[i, j] += value * right[x, j]
    return found


@subroutine
def _bits(matrix: Any, kind: Any, start_kind: Any, weight: Any, own: Any) -> Any:
    """Information of a node about the start, from their matrix `(d, k)`; `weight` `(k,)` is `P` of
    the start, `own` begins with `P` or the variance of the node."""
    d, k = matrix.shape
    total = 0.0
    if kind == STATES and start_kind == STATES:
        for i in range(d):
            for j in range(k):
                if matrix[i, j] > 0 and own[i] > 0:
                    total += weight[j] * matrix[i, j] * np.log(matrix[i, j] / own[i])
        return total / np.log(2.0)
    if kind == NUMBER:
        for j in range(k):
            total += weight[j] * matrix[0, j] ** 2
        return -0.5 * np.log2(1.0 - min(total / own[0], MOST_CORRELATED))
    return _gaussian_bits(matrix)


@subroutine
def _gaussian_bits(matrix: Any) -> Any:
    """`-1/2 log2 det(I - R R')` by a Cholesky decomposition, `O(d^2 (d + k))`."""
    d, k = matrix.shape
    left = np.zeros((d, d))
    total = 0.0
    for i in range(d):
        for j in range(i + 1):
            value = 1.0 if i == j else 0.0
            for x in range(k):
                value -= matrix[i, x] * matrix[j, x]
            for x in range(j):
                value -= left[i, x] * left[j, x]
            if i == j:
                value = max(value, 1.0 - MOST_CORRELATED)
                total += np.log2(value)
                left[i, i] = np.sqrt(value)
            else:
                left[i, j] = value / left[j, j]
    return -0.5 * total


@subroutine
def _direction(matrix: Any, start_kind: Any, weight: Any, score: Any, scores: Any) -> Any:
    """Sign of the covariance of the scores of a node and of the start, `(k,)`."""
    d, k = matrix.shape
    middle = 0.0
    if start_kind == STATES:
        for j in range(k):
            middle += weight[j] * score[j]
    shared = 0.0
    for j in range(k):
        part = score[j] - middle
        part = part * weight[j] if start_kind == STATES else part
        for i in range(d):
            shared += part * scores[i] * matrix[i, j]
    if abs(shared) < LEAST_COVARIANCE:
        return 0
    return 1 if shared > 0 else -1
