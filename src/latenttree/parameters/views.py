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
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.engine.kernels import kernel, subroutine
from latenttree.model.inference import messages
from latenttree.model.samples import Chunk
from latenttree.model.tree_model import TreeModel
from latenttree.moments.projection import project_sparse
from latenttree.tree import Tree

RIDGE = 1e-9
TOGETHER = 64
"""Samples whose views are written together, so that what is read of them stays in the cache."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Features = Callable[[Chunk], NDArray[np.float32]]
"""Some samples to the values of all views, `(n_views, k, n)`; zeros where a view is missing."""


class VectorProjections(NamedTuple):
    """How variables that are stored as vectors are looked at: `(1, z)` with `z = x basis - start`,
    variable `a` having coordinates `offsets[a]:offsets[a + 1]`."""

    basis: NDArray[np.float32]  # (coordinates, k - 1)
    start: NDArray[np.float32]  # (p, k - 1)
    offsets: Ints


Projections = Sequence[Floats] | VectorProjections
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
    indptr, near, _ = tree.adjacency()
    strength, nearest = _branches(tree, rank, hidden)
    p, degree = tree.n_observed, np.diff(indptr)
    at = np.repeat(np.arange(tree.n_nodes), degree)
    order = np.lexsort((near, -strength, at))  # of each node, the most telling branch first
    hubs = np.flatnonzero(degree >= 6)
    nodes = np.concatenate([np.arange(p, tree.n_nodes), hubs[hubs >= p]])
    first = indptr[nodes] + np.where(np.arange(len(nodes)) < tree.n_hidden, 0, 3)
    chosen = order[first[:, None] + np.arange(3)]
    branch = near[chosen]
    sent = branch >= p if hidden else np.zeros(branch.shape, dtype=bool)
    source = np.stack(
        [np.where(sent, branch, nearest[chosen]), np.where(sent, nodes[:, None], -1)], axis=-1
    ).reshape(-1, 2)
    _, where, which = np.unique(
        source @ [tree.n_nodes + 1, 1], return_index=True, return_inverse=True
    )
    by_place = np.argsort(where)
    number = np.argsort(by_place)  # views in the order in which they are met
    return Views(branch, number[which].reshape(-1, 3), source[where[by_place]], nodes - p)


def only_of(views: Views, nodes: NDArray[np.bool_]) -> Views:
    """The reference groups of the marked hidden nodes `(m,)` alone."""
    rows = np.flatnonzero(nodes)
    used, view = np.unique(views.view[rows], return_inverse=True)
    view = view.reshape(-1, 3)
    return Views(views.branch[rows], view, views.source[used], views.owner[rows])


def _branches(tree: Tree, rank: int, combined: bool) -> tuple[Floats, Ints]:
    """For every neighbour, in the order of `Tree.adjacency`: the correlation of its branch with the
    node, and the observed node nearest to the node in it. O(n_nodes), whatever the degrees."""
    indptr, near, edge = tree.adjacency()
    decay = np.exp(-tree.lengths / max(rank, 1))[edge]
    by_edge = np.argsort(edge, kind="stable").reshape(-1, 2)
    back = np.empty_like(edge)  # the same edge from its other end
    back[by_edge] = by_edge[:, ::-1]
    parents, order = tree.rooted(0)
    return _measured(indptr, near, back, decay, parents, order, tree.n_observed, combined)


@kernel
def _measured(indptr, near, back, decay, parents, order, n_observed, combined):  # type: ignore[no-untyped-def]
    """Branches from the deepest up, then those above each node, from the root down."""
    strength, nearest = np.zeros(len(near)), np.full(len(near), -1)
    n = len(order)
    for t in range(1, 2 * n):
        up = t < n
        _pass_on(order[n - t] if up else order[t - n], up, indptr, near, back, decay, parents,
                 n_observed, combined, strength, nearest)  # fmt: skip
    return strength, nearest


@subroutine
def _pass_on(  # type: ignore[no-untyped-def]
    u, up, indptr, near, back, decay, parents, n_observed, combined, strength, nearest
):
    """What `u` says to its parent (`up`) or its children, from all that has arrived but what came
    from there."""
    best, second, total = -1, -1, 0.0
    for i in range(indptr[u], indptr[u + 1]):
        if up and near[i] == parents[u]:
            continue
        total += _signal(strength[i])
        if best < 0 or strength[i] > strength[best]:
            best, second = i, best
        elif second < 0 or strength[i] > strength[second]:
            second = i
    for i in range(indptr[u], indptr[u + 1]):
        if up != (near[i] == parents[u]):
            continue
        if u < n_observed:
            load, nearest[back[i]] = 1.0, u
        else:
            used = second if best == i else best
            nearest[back[i]] = nearest[used]
            rest = total if up else total - _signal(strength[i])
            rest = max(rest, _signal(strength[used]))
            load = np.sqrt(rest / (1 + rest)) if combined else strength[used]
        strength[back[i]] = load * decay[i]


@subroutine
def _signal(correlation):  # type: ignore[no-untyped-def]
    """`r^2 / (1 - r^2)`, which adds up over branches that are independent given the node."""
    square = min(correlation, 1 - 1e-6) ** 2
    return square / (1 - square)


def leaf_projections(basis: Floats, marginal: Floats) -> Floats:
    """`(1, z)` for every category of a variable, `(d, k)`: z centred and of unit covariance under
    the marginal `(d,)`; `basis` is `(d, k - 1)`. All may have the variable as a first axis."""
    z = basis - marginal[..., None, :] @ basis
    covariance = (z * marginal[..., None]).swapaxes(-1, -2) @ z
    rank = basis.shape[-1]
    scale = np.trace(covariance, axis1=-2, axis2=-1)[..., None, None] / max(rank, 1)
    ridge = RIDGE * np.maximum(scale, 1e-300) * np.eye(rank)
    root = np.linalg.inv(np.linalg.cholesky(covariance + ridge))
    return np.concatenate([np.ones((*z.shape[:-1], 1)), z @ root.swapaxes(-1, -2)], axis=-1)


def all_leaf_projections(bases: Sequence[Floats], marginals: Sequence[Floats]) -> list[Floats]:
    """`leaf_projections` of every variable, those with as many categories together."""
    sizes = np.array([len(m) for m in marginals])
    found: list[Floats] = [np.empty(0)] * len(sizes)
    for d in np.unique(sizes).tolist():
        some = np.flatnonzero(sizes == d).tolist()
        basis = np.stack([bases[a] for a in some])
        views = leaf_projections(basis, np.stack([marginals[a] for a in some]))
        for a, view in zip(some, views, strict=True):
            found[a] = view
    return found


def leaf_features(views: Views, projections: Projections, n_jobs: int = 1) -> Features:
    """Features of the observed node of each view."""
    k = (
        projections.basis.shape[1] + 1
        if isinstance(projections, VectorProjections)
        else len(projections[0].T)
    )
    write = _leaf_writer(views.source[:, 0], projections, np.arange(len(views.source)), n_jobs)

    def look_up(chunk: Chunk) -> NDArray[np.float32]:
        out = np.empty((len(views.source), k, len(chunk)), dtype=np.float32)
        write(chunk, out)
        return out

    return look_up


Writer = Callable[[Chunk, NDArray[np.float32]], None]
"""Some samples, and where the values of some views go."""


def _leaf_writer(nodes: Ints, projections: Projections, place: Ints, n_jobs: int) -> Writer:
    """What writes the features of observed nodes to the views of `place`."""
    if isinstance(projections, VectorProjections):
        return _vectors(nodes, projections, place)
    return _categories(nodes, projections, place, n_jobs)


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


@kernel
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


def _vectors(nodes: Ints, projections: VectorProjections, places: Ints) -> Writer:
    """`(1, x basis - start)` of the node `a` of each view."""
    place = np.full(
        len(projections.start), len(nodes)
    )  # a place of its own for what is not looked at
    place[nodes] = np.arange(len(nodes))
    owner = np.repeat(place, np.diff(projections.offsets))
    basis = np.column_stack([np.zeros(len(projections.basis), np.float32), projections.basis])
    first = np.column_stack([np.ones(len(nodes)), -projections.start[nodes]]).astype(np.float32)

    def write(chunk: Chunk, out: NDArray[np.float32]) -> None:
        rows: Any = chunk.stored
        found = np.zeros((len(chunk), len(nodes) + 1, basis.shape[1]), dtype=np.float32)
        found[:, :-1] = first
        project_sparse(rows.indptr, rows.indices, rows.data, owner, basis, found, 0, len(found))
        if chunk.known is not None:
            found[:, :-1] *= chunk.known[:, nodes, None]
        out[places] = found[:, :-1].transpose(1, 2, 0)

    return write


def message_features(
    views: Views, projections: Projections, model: TreeModel, n_jobs: int
) -> Features:
    """Messages as posteriors of the node that sends them, `(1, p_1, ..., p_{k-1})`; observed nodes
    as in `leaf_features`."""
    sent = np.flatnonzero(views.source[:, 1] >= 0)
    seen = np.flatnonzero(views.source[:, 1] < 0)
    leaves = _leaf_writer(views.source[seen, 0], projections, seen, n_jobs)
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


@kernel
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
