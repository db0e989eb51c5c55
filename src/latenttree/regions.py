"""A small region of the tree, cut out with the messages that come into it, and its other shapes.

What the branches around a region say about it does not change when the region does. So another
topology of the region is judged from the messages alone: a small model over the branches, fitted by
EM to all samples, at a cost that does not depend on the size of the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.inference import Evidence
from latenttree.lengths import fit_likelihood, path_matrix
from latenttree.model import TreeModel, default_root, normalised
from latenttree.small_em import Branches, fit_small
from latenttree.stars import join
from latenttree.sweeps import topology_hash
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_BRANCHES = 8
MAX_SPLIT = 6
"""Up to so many branches all ways to split a region in two are looked at."""

MAX_TRIED = 3
"""Shapes of one size that are fitted, of those whose Gaussian likelihood is not `FAR` below."""

FAR = 12.0
NEAR = 6.0
"""Shapes whose Gaussian likelihood is so much below that of the present shape are not fitted: of
those that gain in the end, hardly one in fifty, and by little."""

CAUTIONS = (1.0, 4.0)
STICKY = 0.7
"""How much two new nodes that start from the same old one agree."""

FIT_STEPS = 60
FIT_GAIN = 0.02
"""Log-likelihood below which a further step is not worth it."""


class Region(NamedTuple):
    """Hidden nodes `inside`, and the `(inside, outside)` edges where branches begin."""

    inside: tuple[int, ...]
    branches: tuple[tuple[int, int], ...]


class Shape(NamedTuple):
    """A topology of a region: edges over branches 0..m-1 and hidden nodes m, m + 1, ..."""

    edges: Ints

    def n_hidden(self, m: int) -> int:
        return len(self.edges) + 1 - m


class Alternative(NamedTuple):
    """A shape fitted to the region's messages."""

    shape: Shape
    model: TreeModel
    log_likelihood: float


def region_around(
    tree: Tree, centre: Sequence[int], radius: int, max_branches: int = MAX_BRANCHES
) -> Region:
    """The hidden nodes within `radius` steps of `centre`, while branches stay few."""
    inside = list(centre)
    ring = list(centre)
    count = sum(len(tree.neighbors(v)) for v in inside) - 2 * (len(inside) - 1)
    for _ in range(radius):
        near = {u for v in ring for u in tree.neighbors(v)} - set(inside)
        ring = []
        for u in sorted(int(u) for u in near if u >= tree.n_observed):
            if count + len(tree.neighbors(u)) - 2 <= max_branches:
                count += len(tree.neighbors(u)) - 2
                inside.append(u)
                ring.append(u)
    members = set(inside)
    branches = [
        (v, int(u)) for v in inside for u in sorted(tree.neighbors(v)) if int(u) not in members
    ]
    return Region(tuple(inside), tuple(branches))


def small_tree(m: int, shape: Shape) -> Tree:
    n_hidden = shape.n_hidden(m)
    names = tuple(f"b{i}" for i in range(m)) + tuple(f"h{i}" for i in range(n_hidden))
    return Tree(names, m, shape.edges, np.zeros(len(shape.edges)))


def present_shape(tree: Tree, region: Region) -> Shape:
    """The region as it is; inside nodes are numbered in their order."""
    m = len(region.branches)
    number = {v: m + i for i, v in enumerate(region.inside)}
    edges = [(i, number[v]) for i, (v, _) in enumerate(region.branches)]
    edges += [
        (number[v], number[int(u)])
        for v in region.inside
        for u in tree.neighbors(v)
        if int(u) in number and v < u
    ]
    return Shape(np.array(edges, dtype=np.int64))


def cut_out(model: TreeModel, region: Region) -> TreeModel:
    """The model of a region over its branches: the whole model's joints on its edges."""
    shape = present_shape(model.tree, region)
    names = [u for _, u in region.branches] + list(region.inside)
    joints = [_joint(model, names[a], names[b]) for a, b in shape.edges.tolist()]
    return small_model(small_tree(len(region.branches), shape), joints)


def _joint(model: TreeModel, a: int, b: int) -> Floats:
    """Joint of an edge. A node with an emission is taken for the states that it was learned with,
    which are those of its neighbour: in another place it is a mixture of them."""
    if a in model.emissions or b in model.emissions:
        return np.diag(model.marginals[b if a in model.emissions else a])
    return model.joint(a, b)


def incoming(region: Region, codes: NDArray[Any], sent: dict[tuple[int, int], Any]) -> Evidence:
    """What the branches say: `sent[u, v]` `(n, k)`, the message from u to v, or the codes of an
    observed neighbour that sends none."""
    own = np.full((len(codes), len(region.branches)), -1, dtype=np.int32)
    soft = {}
    for i, (v, u) in enumerate(region.branches):
        if (u, v) in sent:
            soft[i] = sent[u, v]
        else:
            own[:, i] = codes[:, u]
    return Evidence(own, soft)


def branch_correlations(
    model: TreeModel, evidence: Evidence, weights: Floats | None = None
) -> Floats:
    """`|det C_ab|^(1 / (k - 1))` between the branches of a cut-out model, `(m, m)`.

    A branch is seen as the posterior of its neighbour inside given the branch alone."""
    m = model.tree.n_observed
    share = np.ones(len(evidence)) if weights is None else weights
    roots = np.sqrt(share / max(float(share.sum()), 1e-300))[:, None]
    rank = int(model.dims[-1]) - 1
    seen = np.empty((len(evidence), m * rank))
    for i in range(m):
        v = int(model.tree.neighbors(i)[0])
        given = model.conditional(v, i)[1:]  # (k - 1, d)
        if i in evidence.soft:
            own = evidence.soft[i] * model.marginals[i]
            own = own / np.maximum(own.sum(axis=1, keepdims=True), 1e-30)
            y = own @ given.T
        else:
            rows = np.vstack([given.T, model.marginals[v][1:]])  # the last for a missing value
            y = rows[evidence.codes[:, i]]
        seen[:, i * rank : (i + 1) * rank] = y
    seen -= (roots * roots).T @ seen
    seen *= roots
    return _correlations((seen.T @ seen).reshape(m, rank, m, rank).swapaxes(1, 2))


def _correlations(second: Floats) -> Floats:
    """`|det C_ij|^(1 / r)` with `C_ij` whitened, from second moments `(m, m, r, r)`."""
    m, rank = len(second), second.shape[2]
    own = second[np.arange(m), np.arange(m)]
    scale = np.maximum(np.trace(own, axis1=1, axis2=2), 1e-300)
    own = np.linalg.det(own + 1e-9 * scale[:, None, None] * np.eye(rank))
    size = np.sqrt(np.maximum(own[:, None] * own[None, :], 1e-300))
    r = np.minimum((np.abs(np.linalg.det(second)) / size) ** (1 / rank), 1.0)
    np.fill_diagonal(r, 1.0)
    return np.asarray((r + r.T) / 2)


# ---- other shapes ---------------------------------------------------------------------


def star(m: int) -> Shape:
    return Shape(np.array([(i, m) for i in range(m)], dtype=np.int64))


def splits_in_two(m: int) -> Iterator[Shape]:
    """All shapes with two hidden nodes: each has at least two branches."""
    for size in range(2, m // 2 + 1):
        for group in combinations(range(m), size):
            if 2 * size == m and 0 not in group:
                continue
            edges = [(i, m if i in group else m + 1) for i in range(m)]
            yield Shape(np.array([*edges, (m, m + 1)], dtype=np.int64))


def contracted(m: int, shape: Shape, edge: int) -> Shape:
    """The shape without one of its inner edges."""
    edges = shape.edges.copy()
    keep, drop = edges[edge]
    edges[edges == drop] = keep
    return Shape(_renumbered(np.delete(edges, edge, axis=0), m))


def contractions(m: int, shape: Shape, lengths: Floats) -> Iterator[Shape]:
    """The shape with its shortest inner edge contracted, then the next, down to the star."""
    while True:
        inner = np.flatnonzero((shape.edges >= m).all(axis=1))
        if not len(inner):
            return
        gone = int(inner[np.argmin(lengths[inner])])
        shape, lengths = contracted(m, shape, gone), np.delete(lengths, gone)
        yield shape


def _renumbered(edges: Ints, m: int) -> Ints:
    """Hidden nodes numbered m, m + 1, ... without gaps."""
    used = np.unique(edges[edges >= m])
    place = np.concatenate([np.arange(m), np.zeros(int(used.max()) + 1 - m, dtype=np.int64)])
    place[used] = m + np.arange(len(used))
    return np.asarray(place[edges])


def other_shapes(present: Shape, r: Floats, n: float, size: int | None) -> list[Shape]:
    """Shapes to try for a region with branch correlations `r`, the most promising ones.

    Joined trees of the branches with their successive contractions down to the star, contractions
    and interchanges of the present shape, and two-node splits; of each size the ones of largest
    Gaussian likelihood. With `size`, only shapes with that many hidden nodes, and none that looks
    clearly worse than the present one."""
    m = len(r)
    found = {int(topology_hash(m, present.edges)): present}
    for shape in _proposals(present, r, n):
        if size is None or shape.n_hidden(m) == size:
            found.setdefault(int(topology_hash(m, shape.edges)), shape)
    by_size: dict[int, list[tuple[float, Shape]]] = {}
    for shape in list(found.values())[1:]:
        by_size.setdefault(shape.n_hidden(m), []).append((_gaussian(r, n, shape), shape))
    chosen = []
    least = -np.inf if size is None else _gaussian(r, n, present) - NEAR
    for scored in by_size.values():
        scored.sort(key=lambda pair: -pair[0])
        bar = max(least, scored[0][0] - FAR)
        chosen += [shape for value, shape in scored[:MAX_TRIED] if value > bar]
    return chosen


def _proposals(present: Shape, r: Floats, n: float) -> Iterator[Shape]:
    m = len(r)
    if m <= MAX_SPLIT:
        yield from splits_in_two(m)
    for caution in CAUTIONS:
        edges, lengths = join(r, n, caution, False)
        yield Shape(edges)
        yield from contractions(m, Shape(edges), lengths)
    for edge in np.flatnonzero((present.edges >= m).all(axis=1)).tolist():
        yield contracted(m, present, edge)
        yield from interchanges(present, edge)


def interchanges(shape: Shape, edge: int) -> Iterator[Shape]:
    """Nearest-neighbour interchanges: a branch on one side of an edge for one on the other."""
    a, b = shape.edges[edge]
    on = [np.flatnonzero((shape.edges == v).any(axis=1)).tolist() for v in (a, b)]
    ours, theirs = ([x for x in side if x != edge] for side in on)
    # with two branches on either side, moving the second of ours repeats moving the first
    for one in ours[:1] if len(ours) == len(theirs) == 2 else ours:
        for two in theirs:
            edges = shape.edges.copy()
            edges[one][edges[one] == a] = b
            edges[two][edges[two] == b] = a
            yield Shape(edges)


def _gaussian(r: Floats, n: float, shape: Shape) -> float:
    start = np.full(len(shape.edges), 0.3)
    return float(fit_likelihood(r, n, path_matrix(len(r), shape.edges), start, 6)[1])


# ---- fitting --------------------------------------------------------------------------


def fit_shape(
    present: TreeModel, shape: Shape, branches: Branches, smoothing: float, bar: float = -np.inf
) -> Alternative:
    """EM over a region of another shape, each new node started from the old one most like it."""
    return fit_region(start_of(present, shape), shape, branches, smoothing, bar)


def fit_region(
    start: TreeModel, shape: Shape, branches: Branches, smoothing: float, bar: float = -np.inf
) -> Alternative:
    """EM over a region from a model of the given shape; given up where `bar` is out of reach."""
    model, value = fit_small(start, branches, smoothing, FIT_STEPS, FIT_GAIN, bar)
    return Alternative(shape, model, value)


def start_of(present: TreeModel, shape: Shape) -> TreeModel:
    """A model of another shape with the joints that the present model has between its nodes."""
    m = present.tree.n_observed
    old, new = _hops(present.tree.edges, m), _hops(shape.edges, m)
    nearest = np.abs(old[None] - new[:, None]).sum(axis=2).argmin(axis=1)
    like = [*range(m), *(m + nearest).tolist()]
    joints = []
    for a, b in shape.edges.tolist():
        u, v = like[a], like[b]
        if u == v:
            w = present.marginals[u]
            joints.append(STICKY * np.diag(w) + (1 - STICKY) * np.outer(w, w))
        else:
            joints.append((_along(present, v, u) * present.marginals[u]).T)
    return small_model(small_tree(m, shape), joints)


def small_model(tree: Tree, joints: Sequence[Floats]) -> TreeModel:
    """`TreeModel.from_joints` without its checks: thousands of regions are tried."""
    root = default_root(tree)
    parents = tree.rooted(root).parents
    tables: list[Any] = [None] * tree.n_nodes
    priors = []
    for (a, b), joint in zip(tree.edges.tolist(), joints, strict=True):
        parent, child, j = (a, b, joint.T) if parents[b] == a else (b, a, joint)
        sums = j.sum(axis=0)
        tables[child] = j / sums if (sums > 0).all() else normalised(j)
        if parent == root:
            priors.append(sums / sums.sum())
    tables[root] = normalised(np.mean(priors, axis=0)[:, None])
    return TreeModel.trusted(tree, root, tables)


def _hops(edges: Ints, m: int) -> Ints:
    """Steps from every hidden node to every branch, `(n_hidden, m)`."""
    n_nodes = len(edges) + 1
    steps = np.full((n_nodes, n_nodes), n_nodes, dtype=np.int64)
    steps[edges[:, 0], edges[:, 1]] = steps[edges[:, 1], edges[:, 0]] = 1
    np.fill_diagonal(steps, 0)
    for v in range(m, n_nodes):  # only hidden nodes lie between others
        np.minimum(steps, steps[:, v, None] + steps[None, v], out=steps)
    return steps[m:, :m]


def _along(model: TreeModel, a: int, b: int) -> Floats:
    """`P(a | b)` along the path between them."""
    path = model.tree.path(b, a)
    result = np.eye(int(model.dims[b]))
    for previous, following in pairwise(path):
        result = model.conditional(following, previous) @ result
    return normalised(result)


def bic(model: TreeModel, log_likelihood: float, n: float) -> float:
    """`log-likelihood - parameters / 2 log n`: larger is better."""
    return log_likelihood - 0.5 * model.n_parameters * float(np.log(n))
