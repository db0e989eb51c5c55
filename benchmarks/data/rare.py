"""Known trees over rare binary things: codes of patients, words of documents.

What is rare can depend on something strongly only if that is rare too. So variables of about one
frequency hang from one hidden node, whose state 1 ("the topic", "the illness") is about twice as
frequent as they are, and hidden nodes of about one frequency hang from a more frequent one:

              h  0.20                 P(h = 1)
            /     \\
        h' 0.08    h'' 0.07
       / |  \\      / |  \\
     .04 .03 .03  .03 .03 .02         frequencies of the variables, by Zipf's law

Samples are drawn from the root down, one node at a time, and of each node only the samples in
which it is 1 are drawn, by the gaps between them: `O(number of ones)` where ones are rare.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class RareTree:
    """A tree of binary nodes, rooted at its last hidden node.

    frequency : (n_nodes,) P(node = 1).
    high, low : (n_nodes,) P(node = 1 | parent = 1) and P(node = 1 | parent = 0); of the root
        its frequency.
    parents, order : (n_nodes,) as `Tree.rooted` gives them.
    """

    tree: Tree
    frequency: Floats
    high: Floats
    low: Floats
    parents: Ints
    order: Ints
    root: int

    def conditional(self, node: int) -> Floats:
        """`P(node | parent)`, (2, 2), columns on the simplex."""
        chances = np.array([self.low[node], self.high[node]])
        return np.vstack([1 - chances, chances])


def zipf_frequencies(p: int, per_sample: float, shift: float) -> Floats:
    """`c / (rank + shift)` with `c` such that a sample has `per_sample` ones on average, at most
    0.5 each (Zipf's law, flat for the most frequent, as Mandelbrot has it)."""
    raw = 1.0 / (np.arange(1, p + 1) + shift)
    return np.asarray(np.minimum(per_sample * raw / raw.sum(), 0.5))


def make_rare_tree(
    frequency: Floats,
    names: list[str],
    rng: np.random.Generator,
    *,
    arity: tuple[int, int] = (3, 5),
    lift: tuple[float, float] = (1.6, 2.6),
    most: float = 0.35,
    share: tuple[float, float] = (0.75, 0.95),
) -> RareTree:
    """A tree over variables of given frequencies.

    arity : children of a hidden node, from and to.
    lift : how much more frequent a parent is than the mean of its children.
    most : the largest frequency of a hidden node.
    share : of the ones of a child that fall on the parent's ones.
    """
    p = len(frequency)
    level = np.argsort(-frequency, kind="stable").tolist()
    known = dict(enumerate(frequency.tolist()))
    edges: list[tuple[int, int]] = []
    n_nodes = p
    while len(level) > 1:
        parents = []
        for children in _families(level, arity, rng):
            mean = float(np.mean([known[v] for v in children]))
            largest = max(known[v] for v in children)
            known[n_nodes] = min(max(mean * rng.uniform(*lift), 1.05 * largest), max(most, largest))
            edges += [(v, n_nodes) for v in children]
            parents.append(n_nodes)
            n_nodes += 1
        level = sorted(parents, key=lambda v: -known[v])
    tree = Tree.build(names, np.array(edges), np.ones(len(edges)))
    return _with_chances(
        tree, np.array(edges), np.array([known[v] for v in range(n_nodes)]), share, rng
    )


def _families(
    level: list[int], arity: tuple[int, int], rng: np.random.Generator
) -> list[list[int]]:
    """Neighbours in frequency, a few at a time; what is left over at the end joins the last."""
    families, start = [], 0
    while start < len(level):
        take = int(rng.integers(arity[0], arity[1] + 1))
        if len(level) - start - take < 2 or len(level) <= arity[1]:
            take = len(level) - start
        families.append(level[start : start + take])
        start += take
    return [level] if len(families) == 2 else families  # a root of two would be no node


def _with_chances(
    tree: Tree,
    edges: Ints,
    frequency: Floats,
    share: tuple[float, float],
    rng: np.random.Generator,
) -> RareTree:
    """Conditional chances from frequencies, then lengths `-log |correlation|` from both."""
    # `build` numbers hidden nodes anew: follow each from one of the leaves below it
    order_of = _renumbering(tree, edges, len(frequency))
    known = np.empty(len(frequency))
    known[order_of] = frequency
    root = int(order_of[len(frequency) - 1])
    parents, order = tree.rooted(root)
    high, low = known.copy(), known.copy()
    for v in order.tolist():
        u = int(parents[v])
        if u < 0:
            continue
        part = min(rng.uniform(*share), 0.97 * known[u] / known[v])
        high[v] = part * known[v] / known[u]
        low[v] = (1 - part) * known[v] / (1 - known[u])
    lengths = _lengths(tree, parents, known, high)
    return RareTree(tree.with_lengths(lengths), known, high, low, parents, order, root)


def _renumbering(tree: Tree, edges: Ints, n_nodes: int) -> Ints:
    """The number in `tree` of each node of the edge list it was built from, by the leaves."""
    p = tree.n_observed
    number = np.full(n_nodes, -1)
    number[:p] = np.arange(p)
    # children come before parents in the list, so one pass from the leaves up finds everyone: what
    # two children are both next to is their parent
    children: dict[int, list[int]] = {}
    for child, parent in edges.tolist():
        children.setdefault(parent, []).append(child)
    for parent in sorted(children):
        a, b = (set(tree.neighbors(int(number[c])).tolist()) for c in children[parent][:2])
        (number[parent],) = a & b
    return number


def _lengths(tree: Tree, parents: Ints, frequency: Floats, high: Floats) -> Floats:
    """`-log |correlation|` of the two ends of each edge."""
    a, b = tree.edges.T
    child = np.where(parents[a] == b, a, b)
    u = parents[child]
    f, g = frequency[child], frequency[u]
    covariance = g * (high[child] - f)
    return np.asarray(-np.log(np.abs(covariance) / np.sqrt(f * (1 - f) * g * (1 - g))))


# ---- samples -------------------------------------------------------------------------------------


def ones(n: int, chance: float, rng: np.random.Generator) -> Ints:
    """Positions among `n` that are one with this chance each: by geometric gaps, O(n chance)."""
    if chance <= 0 or n == 0:
        return np.empty(0, dtype=np.int64)
    if chance > 0.2:
        return np.flatnonzero(rng.random(n) < chance)
    expected = n * chance
    found = np.cumsum(rng.geometric(chance, int(expected + 6 * np.sqrt(expected) + 12))) - 1
    while found[-1] < n - 1:
        more = rng.geometric(chance, max(16, int(expected / 4)))
        found = np.concatenate([found, found[-1] + np.cumsum(more)])
    return np.asarray(found[: np.searchsorted(found, n)])


def draw(model: RareTree, n_samples: int, rng: np.random.Generator) -> Iterator[tuple[int, Ints]]:
    """For every node but in no order of numbers: the sorted samples in which it is 1.

    Depth first, so that only the hidden nodes between the root and the present one are held.
    """
    children: list[list[int]] = [[] for _ in range(model.tree.n_nodes)]
    for v in model.order.tolist():
        if model.parents[v] >= 0:
            children[int(model.parents[v])].append(v)
    start = ones(n_samples, float(model.frequency[model.root]), rng)
    waiting = [(model.root, start)]
    while waiting:
        node, present = waiting.pop()
        yield node, present
        if not children[node]:
            continue
        is_present = np.zeros(n_samples, dtype=bool)
        is_present[present] = True
        for child in children[node]:
            with_parent = present[ones(len(present), float(model.high[child]), rng)]
            anywhere = ones(n_samples, float(model.low[child]), rng)
            without = anywhere[~is_present[anywhere]]
            waiting.append((child, np.sort(np.concatenate([with_parent, without]))))
