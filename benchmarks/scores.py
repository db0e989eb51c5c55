"""Scores of trees against known groups, and cuts of a tree into clusters.

Every method is scored as an unrooted `Tree` with lengths: a dendrogram becomes one by
`from_linkage` of `rivals/hierarchies.py` (its path lengths are the cophenetic
distances), a Chow-Liu tree has observed nodes inside. A *cut* removes edges; the observed nodes of
each piece are a cluster.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.grids import Column, field
from latenttree.tree import Tree

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

TIE = 1e-9
"""Path lengths that differ by less are equal."""

RESTARTS, CHANGED = 40, (0.02, 0.1, 0.5)
"""Starts of the best cut beyond the first two, and the shares of edges changed for them."""


class Cut(NamedTuple):
    """A cut of a tree: its adjusted Rand index, the number of clusters, one label each."""

    score: float
    n_clusters: int
    labels: Ints


# ---- nearest neighbours --------------------------------------------------------------------


def nearest_share(tree: Tree, labels: Sequence[Hashable]) -> float:
    """Share of observed nodes whose nearest other one along the tree has the same label.

    Among several at the same distance the share that agrees counts.
    """
    distance = tree.path_lengths()
    np.fill_diagonal(distance, np.inf)
    nearest = distance <= distance.min(axis=1, keepdims=True) + TIE
    code = _codes(labels)
    same = code[:, None] == code[None, :]
    return float(((nearest & same).sum(axis=1) / nearest.sum(axis=1)).mean())


def _codes(labels: Sequence[Hashable]) -> Ints:
    number: dict[Hashable, int] = {}
    return np.array([number.setdefault(label, len(number)) for label in labels])


# ---- cuts ----------------------------------------------------------------------------------


def best_cut(tree: Tree, labels: Sequence[Hashable], most: int | None = None) -> Cut:
    """The cut of largest adjusted Rand index that steepest ascent finds: it knows the labels.

    A step cuts one edge or mends one; all are tried, the best is taken, until none helps. From the
    whole tree and from all nodes apart; then from the best end so far with some edges changed at
    random. `O(steps n labels)`. The same search for every method, so that none is hurt by a rule of
    cutting that does not suit it. At most `most` clusters: without a bound even a star, all its
    leaves but those of the largest groups cut off, has a good score.
    """
    climb, rng = _Climb(tree, _codes(labels), most), np.random.default_rng(0)
    ends = [climb.ascend(np.full(tree.n_edges, start)) for start in (False, True)]
    best = max(ends, key=lambda end: end[0])
    for _ in range(RESTARTS):
        start = best[1].copy()
        changed = rng.random(tree.n_edges) < rng.choice(CHANGED)
        start[changed] = rng.random(int(changed.sum())) < 0.5
        best = max(best, climb.ascend(start), key=lambda end: end[0])
    return _cut(tree, best[1], labels)


def diameter_cut(tree: Tree, n_clusters: int, labels: Sequence[Hashable]) -> Cut:
    """The cut into at most `n_clusters` pieces whose longest path is shortest.

    For a bound on the path the fewest pieces come from cutting, bottom up, the deepest child of a
    node while its two deepest children are together too far apart. On a dendrogram this is the
    ordinary horizontal cut.
    """
    low, high = 0.0, 2 * float(tree.lengths.sum())
    best = np.zeros(tree.n_edges, dtype=bool)
    for _ in range(60):
        bound = (low + high) / 2
        removed = _bounded(tree, bound)
        if _n_clusters(tree, removed) <= n_clusters:
            high, best = bound, removed
        else:
            low = bound
    return _cut(tree, best, labels)


def _bounded(tree: Tree, bound: float) -> NDArray[np.bool_]:
    """Edges to remove so that no path between observed nodes is longer than `bound`."""
    parents, order = (a.tolist() for a in tree.rooted(0))
    via = tree.parent_edges(0)
    removed = np.zeros(tree.n_edges, dtype=bool)
    depth = np.where(np.arange(tree.n_nodes) < tree.n_observed, 0.0, -np.inf)
    arms: list[list[tuple[float, int]]] = [[] for _ in range(tree.n_nodes)]
    for v in reversed(order):
        below = sorted(arms[v], reverse=True)
        while below and below[0][0] + (below[1][0] if len(below) > 1 else depth[v]) > bound:
            removed[below.pop(0)[1]] = True
        depth[v] = max([depth[v]] + [arm for arm, _ in below[:1]])
        if parents[v] >= 0:
            arms[parents[v]].append((depth[v] + tree.lengths[via[v]], int(via[v])))
    return removed


def _pieces(tree: Tree, removed: NDArray[np.bool_]) -> Ints:
    """The topmost node of every node's piece in the tree hung from node 0, `(n_nodes,)`."""
    parents, order = (a.tolist() for a in tree.rooted(0))
    cut = removed[tree.parent_edges(0)].tolist()
    top = [0] * tree.n_nodes
    for v in order[1:]:
        top[v] = v if cut[v] else top[parents[v]]
    return np.array(top)


def _n_clusters(tree: Tree, removed: NDArray[np.bool_]) -> int:
    return len(np.unique(_pieces(tree, removed)[: tree.n_observed]))


def _cut(tree: Tree, removed: NDArray[np.bool_], labels: Sequence[Hashable]) -> Cut:
    from sklearn.metrics import adjusted_rand_score

    _, found = np.unique(_pieces(tree, removed)[: tree.n_observed], return_inverse=True)
    score = float(adjusted_rand_score(_codes(labels), found))
    return Cut(score, int(found.max()) + 1, found)


class _Climb:
    """Steepest ascent of the adjusted Rand index over sets of removed edges.

    With `I` pairs together in both, `A` together in the cut, `B` in the labels, of `T`:
    `(I - A B / T) / ((A + B) / 2 - A B / T)`. Cutting a piece with label counts `H` into `h` and
    `H - h` lowers `I` by `sum h (H - h)` and `A` by the product of the sizes.
    """

    def __init__(self, tree: Tree, codes: Ints, most: int | None = None) -> None:
        self.tree = tree
        self.most = tree.n_observed if most is None else most
        self.order = tree.rooted(0).order
        self.parents = tree.rooted(0).parents
        self.via = tree.parent_edges(0)
        self.own = np.zeros((tree.n_nodes, int(codes.max()) + 1))
        self.own[np.arange(tree.n_observed), codes] = 1
        self.B = _pairs(self.own.sum(axis=0)).sum()
        self.T = float(_pairs(np.array(tree.n_observed)))

    def ascend(self, removed: NDArray[np.bool_]) -> tuple[float, NDArray[np.bool_]]:
        """The score and the edges at the end of the climb; `removed` is written in place."""
        score = -np.inf
        while True:
            now, after, size, sizes = self._scores(removed)
            if size > self.most:  # mend until there are few enough, whatever it costs
                after[~removed] = -np.inf
                removed[int(np.argmax(after))] = False
                continue
            after[sizes > self.most] = -np.inf
            edge = int(np.argmax(after))
            if after[edge] <= max(now, score) + 1e-12:
                return now, removed
            score = now
            removed[edge] = not removed[edge]

    def _scores(self, removed: NDArray[np.bool_]) -> tuple[float, Floats, int, Ints]:
        """The score and the number of clusters as they are, and after changing each single edge,
        `(E,)`."""
        top = _pieces(self.tree, removed)
        below = self._below(removed)
        children = self.order[1:]
        edges, cut = self.via[children], removed[self.via[children]]
        whole = np.where(cut[:, None], below[top[self.parents[children]]], below[top[children]])
        part = below[children]
        other = np.where(cut[:, None], whole, whole - part)
        sign = np.where(cut, 1.0, -1.0)
        both = (part * other).sum(axis=1) * sign
        together = part.sum(axis=1) * other.sum(axis=1) * sign
        pieces = below[np.unique(top)]
        common, size = _pairs(pieces).sum(), _pairs(pieces.sum(axis=1)).sum()
        after, n_clusters = np.empty(len(edges)), int((pieces.sum(axis=1) > 0).sum())
        after[edges] = self._rand(common + both, size + together)
        sizes = np.empty(len(edges), dtype=np.int64)
        sizes[edges] = n_clusters - sign * (together != 0)
        return float(self._rand(common, size)), after, n_clusters, sizes

    def _below(self, removed: NDArray[np.bool_]) -> Floats:
        """Counts of labels in the part of each node's piece that hangs from it, `(n, labels)`."""
        below = self.own.copy()
        parents, cut = self.parents.tolist(), removed[self.via].tolist()
        for v in self.order[:0:-1].tolist():
            if not cut[v]:
                below[parents[v]] += below[v]
        return below

    def _rand(self, common: Floats, size: Floats) -> Floats:
        chance = size * self.B / self.T
        return (common - chance) / np.maximum((size + self.B) / 2 - chance, 1e-300)


def _pairs(n: Floats) -> Floats:
    return n * (n - 1) / 2


# ---- groups as subtrees --------------------------------------------------------------------


class Clade(NamedTuple):
    """How well one side of some edge matches a group of names; 1 is exact."""

    jaccard: float
    f1: float
    members: tuple[str, ...]


def best_clade(tree: Tree, group: Iterable[str]) -> Clade:
    """The side of an edge with the largest Jaccard index with a group of observed nodes."""
    p = tree.n_observed
    wanted = np.isin(np.array(tree.observed_names), list(group))
    sides = np.unpackbits(tree.splits(), axis=1, count=p).astype(bool)
    sides = np.vstack([sides, ~sides])
    common = (sides & wanted).sum(axis=1)
    union = (sides | wanted).sum(axis=1)
    best = int(np.argmax(common / union))
    members = tuple(tree.names[v] for v in np.flatnonzero(sides[best]))
    f1 = 2 * common[best] / (sides[best].sum() + wanted.sum())
    return Clade(float(common[best] / union[best]), float(f1), members)


def own_subtrees(tree: Tree, labels: Sequence[Hashable]) -> list[Hashable]:
    """Labels whose paths between their observed nodes meet no node of another label's paths."""
    parents, order = tree.rooted(0)
    code = _codes(labels)
    below = np.zeros((tree.n_nodes, int(code.max()) + 1), dtype=np.int64)
    below[np.arange(tree.n_observed), code] = 1
    total, own = below.sum(axis=0), below > 0
    arms = own.astype(np.int64)  # directions from a node in which a label is
    for v in order[:0:-1].tolist():
        below[parents[v]] += below[v]
        arms[parents[v]] += below[v] > 0
    arms += below < total
    spans = (arms > 1) | own
    alone = ~(spans & (spans.sum(axis=1) > 1)[:, None]).any(axis=0)
    return [label for label in dict.fromkeys(labels) if alone[code[list(labels).index(label)]]]


class InnerErrors(NamedTuple):
    """Splits with at least two observed nodes on both sides that two trees share and do not."""

    shared: int
    missing: int
    false: int


def inner_errors(truth: Tree, estimate: Tree) -> InnerErrors:
    """Inner splits of the truth that the estimate has and has not, and those only it has.

    `missing + false` is the Robinson-Foulds distance as phylogenetics counts it: whether an
    observed node is a leaf or inside, which a hierarchy of names does not say, plays no part.
    """
    true, found = (_inner_splits(tree, truth.observed_names) for tree in (truth, estimate))
    return InnerErrors(len(true & found), len(true - found), len(found - true))


def _inner_splits(tree: Tree, names: Sequence[str]) -> set[bytes]:
    ordered = tree.reorder(names)
    rows = ordered.splits()
    return {rows[edge].tobytes() for edge in ordered.internal_edges().tolist()}


# ---- all of them ---------------------------------------------------------------------------------


def group_scores(tree: Tree, labels: Sequence[Hashable], n_clusters: int) -> dict[str, Any]:
    """Nearest neighbours, and cuts: the best, the best of few, and the plain one."""
    best = best_cut(tree, labels)
    return {
        "n_hidden": tree.n_hidden,
        "nearest": nearest_share(tree, labels),
        "best_cut": best.score,
        "best_clusters": best.n_clusters,
        "few_cut": best_cut(tree, labels, len(set(labels))).score,
        "plain_cut": diameter_cut(tree, n_clusters, labels).score,
    }


GROUP_COLUMNS = (
    Column("nearest in the same group", field("nearest", ".3f")),
    Column("ARI, best cut", field("best_cut", ".3f")),
    Column("clusters", field("best_clusters")),
    Column("best of few", field("few_cut", ".3f")),
    Column("plain cut", field("plain_cut", ".3f")),
    Column("hidden", field("n_hidden")),
    Column("s", field("seconds", ".1f")),
)
