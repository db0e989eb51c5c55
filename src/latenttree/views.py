"""Views of every hidden node: three branches around it, each as a short vector `(1, z)`.

Anything that depends on one branch alone is independent of the other branches given the hidden
node, so it may serve as a view: the nearest observed variable of the branch, projected by the
subspace that the distances were measured in, or, above the first levels, the message that belief
propagation sends out of the branch, which carries all of its leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.inference import messages
from latenttree.model import TreeModel
from latenttree.moments.project import project_sparse
from latenttree.samples import Chunk
from latenttree.tree import Tree

RIDGE = 1e-9
TOGETHER = 64
"""Samples whose views are written together, so that what is read of them stays in the cache."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = Callable[[Chunk], NDArray[np.float32]]
"""Some samples to the values of all views, `(n_views, k, n)`; zeros where a view is missing."""


class VectorLooks(NamedTuple):
    """How variables that are stored as vectors are looked at: `(1, z)` with `z = x basis - start`,
    variable `a` having coordinates `offsets[a]:offsets[a + 1]`."""

    basis: NDArray[np.float32]  # (coordinates, k - 1)
    start: NDArray[np.float32]  # (p, k - 1)
    offsets: Ints


Looks = Sequence[Floats] | VectorLooks
"""A table `(d, k)` of `(1, z)` by category for every variable, or vectors."""


class Views(NamedTuple):
    """Which branches are looked at from each hidden node, and what stands for them.

    Row `i` is a group of three views of hidden node `n_observed + owner[i]`. The first `n_hidden`
    rows are one for each node, its reference group; a node with six or more branches has a second
    group, of the next three. A view `v` is the observed node `source[v, 0]` where `source[v, 1]`
    is -1, else the message from `source[v, 0]` to `source[v, 1]`.
    """

    branch: Ints  # (rows, 3) neighbours of the hidden node behind which the views lie
    view: Ints  # (rows, 3) numbers of the views
    source: Ints  # (n_views, 2)
    owner: Ints  # (rows,)


def choose_views(tree: Tree, rank: int, hidden: bool) -> Views:
    """The three most telling branches of every hidden node, then the next three where there are.

    A branch is as telling as its correlation with the node by the tree's lengths: that of its
    nearest observed node, or, with `hidden`, of the best combination of all its leaves."""
    strength, nearest = _branches(tree, rank, hidden)
    number: dict[tuple[int, int], int] = {}
    groups: list[tuple[int, list[int]]] = []
    for v in range(tree.n_observed, tree.n_nodes):
        found = sorted(tree.neighbors(v), key=lambda u, v=v: (-strength[u, v], u))  # type: ignore[misc]
        groups.append((v, found[:3]))
        if len(found) >= 6:
            groups.append((v, found[3:6]))
    groups = [groups[i] for i in _references_first([v for v, _ in groups])]
    view = [
        [
            number.setdefault(
                (u, v) if hidden and u >= tree.n_observed else (nearest[u, v], -1), len(number)
            )
            for u in found
        ]
        for v, found in groups
    ]
    owner = np.array([v - tree.n_observed for v, _ in groups], dtype=np.int64)
    return Views(_rows([f for _, f in groups], 3), _rows(view, 3), _rows(list(number), 2), owner)


def only_of(views: Views, nodes: NDArray[np.bool_]) -> Views:
    """The reference groups of the marked hidden nodes `(m,)` alone."""
    rows = np.flatnonzero(nodes)
    used, view = np.unique(views.view[rows], return_inverse=True)
    view = view.reshape(-1, 3)
    return Views(views.branch[rows], view, views.source[used], views.owner[rows])


def _references_first(nodes: list[int]) -> list[int]:
    """Places of the first group of every node, then those of the second groups."""
    second = [i for i in range(1, len(nodes)) if nodes[i] == nodes[i - 1]]
    return [i for i in range(len(nodes)) if i not in set(second)] + second


def _rows(values: Sequence[Sequence[int]], width: int) -> Ints:
    return np.array(values, dtype=np.int64).reshape(-1, width)


def _branches(
    tree: Tree, rank: int, combined: bool
) -> tuple[dict[tuple[int, int], float], dict[tuple[int, int], int]]:
    """For every directed edge `(u, v)`: correlation of `u`'s branch with `v`, and the observed node
    nearest to `v` in it. O(n_nodes), whatever the degrees."""
    decay = {}
    for (a, b), length in zip(tree.edges.tolist(), tree.lengths.tolist(), strict=True):
        decay[a, b] = decay[b, a] = float(np.exp(-length / max(rank, 1)))
    strength: dict[tuple[int, int], float] = {}
    nearest: dict[tuple[int, int], int] = {}

    def pass_on(u: int, arrived: list[int], to: list[int]) -> None:
        """What `u` says to each of `to`, from all that `arrived` but what came from there."""
        if u < tree.n_observed:
            load = dict.fromkeys(to, 1.0)
            nearest.update(((u, v), u) for v in to)
        else:
            ranked = sorted(arrived, key=lambda w: (-strength[w, u], w))[:2]
            gain = {w: _signal(strength[w, u]) for w in arrived}
            total = sum(gain.values())
            load = {}
            for v in to:
                best = ranked[1] if ranked[0] == v else ranked[0]
                nearest[u, v] = nearest[best, u]
                rest = max(total - gain.get(v, 0.0), _signal(strength[best, u]))
                load[v] = np.sqrt(rest / (1 + rest)) if combined else strength[best, u]
        strength.update(((u, v), float(load[v] * decay[u, v])) for v in to)

    parents, order = (x.tolist() for x in tree.rooted(0))
    near = [tree.neighbors(v).tolist() for v in range(tree.n_nodes)]
    for v in order[:0:-1]:
        pass_on(v, [w for w in near[v] if w != parents[v]], [parents[v]])
    for u in order:
        pass_on(u, near[u], [v for v in near[u] if v != parents[u]])
    return strength, nearest


def _signal(correlation: float) -> float:
    """`r^2 / (1 - r^2)`, which adds up over branches that are independent given the node."""
    square = min(correlation, 1 - 1e-6) ** 2
    return square / (1 - square)


def leaf_views(basis: Floats, marginal: Floats) -> Floats:
    """`(1, z)` for every category of a variable, `(d, k)`: z centred and of unit covariance under
    the marginal `(d,)`; `basis` is `(d, k - 1)`. All may have the variable as a first axis."""
    z = basis - marginal[..., None, :] @ basis
    covariance = (z * marginal[..., None]).swapaxes(-1, -2) @ z
    rank = basis.shape[-1]
    scale = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / max(rank, 1)
    ridge = RIDGE * np.maximum(scale, 1e-300) * np.eye(rank)
    root = np.linalg.inv(np.linalg.cholesky(covariance + ridge))
    return np.concatenate([np.ones((*z.shape[:-1], 1)), z @ root.swapaxes(-1, -2)], axis=-1)


def all_leaf_views(bases: Sequence[Floats], marginals: Sequence[Floats]) -> list[Floats]:
    """`leaf_views` of every variable, those with as many categories together."""
    sizes = np.array([len(m) for m in marginals])
    found: list[Floats] = [np.empty(0)] * len(sizes)
    for d in np.unique(sizes).tolist():
        some = np.flatnonzero(sizes == d).tolist()
        basis = np.stack([bases[a] for a in some])
        views = leaf_views(basis, np.stack([marginals[a] for a in some]))
        for a, view in zip(some, views, strict=True):
            found[a] = view
    return found


def leaf_features(views: Views, looks: Looks, n_jobs: int = 1) -> Features:
    """Features of the observed node of each view."""
    k = looks.basis.shape[1] + 1 if isinstance(looks, VectorLooks) else len(looks[0].T)
    write = _leaf_writer(views.source[:, 0], looks, np.arange(len(views.source)), n_jobs)

    def look_up(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), k, len(chunk)), dtype=np.float32)
        write(chunk, out)
        return out

    return look_up


Writer = Callable[[Chunk, NDArray[np.float32]], None]
"""Some samples, and where the values of some views go."""


def _leaf_writer(nodes: Ints, looks: Looks, place: Ints, n_jobs: int) -> Writer:
    """What writes the features of observed nodes to the views of `place`."""
    if isinstance(looks, VectorLooks):
        return _vectors(nodes, looks, place)
    return _categories(nodes, looks, place, n_jobs)


def _categories(nodes: Ints, tables: Sequence[Floats], place: Ints, n_jobs: int) -> Writer:
    """Look up `tables[a]`, `(d_a, k)`, for the node `a` of each view."""
    used = [tables[a] for a in nodes.tolist()]
    stacked = np.concatenate(used or [np.empty((0, 1))]).astype(np.float32)
    sizes = np.array([len(table) for table in used], dtype=np.int64)
    offsets = np.cumsum(sizes) - sizes
    order = np.argsort(nodes, kind="stable")  # neighbouring codes are read together
    by_node = nodes[order], offsets[order], place[order]

    def write(chunk: Chunk, out: NDArray[np.float32]) -> None:
        codes = chunk.codes if chunk.stored is None else chunk.stored
        parallel(lambda a, b: _look_up(codes, *by_node, stacked, out, a, b), len(nodes), n_jobs)

    return write


@njit(cache=True, nogil=True)
def _look_up(codes, nodes, offsets, place, stacked, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[v], :, n] = stacked[offsets[v] + codes[n, nodes[v]]]` for views start:stop; zero
    where the code is negative."""
    k = stacked.shape[1]
    row = np.empty(TOGETHER, dtype=np.int64)
    for low in range(0, len(codes), TOGETHER):
        block = codes[low : low + TOGETHER]
        for v in range(start, stop):
            for s in range(len(block)):
                c = block[s, nodes[v]]
                row[s] = offsets[v] + c if c >= 0 else -1
            for q in range(k):
                to = out[place[v], q, low : low + TOGETHER]
                for s in range(len(block)):
                    to[s] = stacked[row[s], q] if row[s] >= 0 else 0.0


def _vectors(nodes: Ints, looks: VectorLooks, places: Ints) -> Writer:
    """`(1, x basis - start)` of the node `a` of each view."""
    place = np.full(len(looks.start), len(nodes))  # a place of its own for what is not looked at
    place[nodes] = np.arange(len(nodes))
    owner = np.repeat(place, np.diff(looks.offsets))
    basis = np.column_stack([np.zeros(len(looks.basis), np.float32), looks.basis])
    first = np.column_stack([np.ones(len(nodes)), -looks.start[nodes]]).astype(np.float32)

    def write(chunk: Chunk, out: NDArray[np.float32]) -> None:
        rows: Any = chunk.stored
        found = np.zeros((len(chunk), len(nodes) + 1, basis.shape[1]), dtype=np.float32)
        found[:, :-1] = first
        project_sparse(rows.indptr, rows.indices, rows.data, owner, basis, found, 0, len(found))
        if chunk.known is not None:
            found[:, :-1] *= chunk.known[:, nodes, None]
        out[places] = found[:, :-1].transpose(1, 2, 0)

    return write


def message_features(views: Views, looks: Looks, model: TreeModel, n_jobs: int) -> Features:
    """Messages as posteriors of the node that sends them, `(1, p_1, ..., p_{k-1})`; observed nodes
    as in `leaf_features`."""
    sent = np.flatnonzero(views.source[:, 1] >= 0)
    seen = np.flatnonzero(views.source[:, 1] < 0)
    leaves = _leaf_writer(views.source[seen, 0], looks, seen, n_jobs)
    k = int(model.dims[-1])
    prior = np.array([model.marginals[u] for u in views.source[sent, 0].tolist()]).reshape(-1, k)

    def look_up(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), k, len(chunk)), dtype=np.float32)
        if len(seen):
            leaves(chunk, out)
        if len(sent):
            m = messages(model, chunk.evidence(model, n_jobs), views.source[sent], n_jobs=n_jobs)
            parallel(lambda a, b: _posteriors(m, prior, sent, out, a, b), len(sent), n_jobs)
        return out

    return look_up


@njit(cache=True, nogil=True)
def _posteriors(m, prior, place, out, start, stop):  # type: ignore[no-untyped-def]
    """`out[place[e], :, s] = (1, p_1, ...)`, `p` in proportion to `m[s, e] prior[e]`; edges
    start:stop."""
    k = prior.shape[1]
    for low in range(0, len(m), TOGETHER):
        block = m[low : low + TOGETHER]
        for e in range(start, stop):
            to = out[place[e], :, low : low + TOGETHER]
            for s in range(len(block)):
                total = 0.0
                for j in range(k):
                    total += block[s, e, j] * prior[e, j]
                total = max(total, 1e-30)
                to[0, s] = 1.0
                for j in range(1, k):
                    to[j, s] = block[s, e, j] * prior[e, j] / total
