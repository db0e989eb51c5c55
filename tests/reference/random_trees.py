"""Random trees of many shapes, quick enough for thousands of exactness tests."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from hypothesis import strategies as st

from latenttree.tree import Tree

Edges = list[tuple[int, int]]


def random_tree(
    rng: np.random.Generator,
    n_observed: int,
    *,
    shape: str = "uniform",
    max_degree: int = 3,
    internal_observed_fraction: float = 0.0,
    length_range: tuple[float, float] = (0.05, 2.0),
    shuffle: bool = True,
) -> Tree:
    """A tree in which hidden nodes have from 3 to ``max_degree`` neighbours.

    Parameters
    ----------
    shape : "uniform" (leaves attached at random), "caterpillar" (a chain of hidden nodes),
        "star" (one hidden node, whatever ``max_degree``) or "balanced".
    max_degree : bound on the degree of hidden nodes, at least 3.
    internal_observed_fraction : up to this part of the observed nodes take the place of the
        hidden node next to them, so they end with two or more neighbours.
    length_range : lengths are log-uniform between these.
    shuffle : number the observed nodes at random; otherwise in the order they were placed.
    """
    edges = _SHAPES[shape](rng, n_observed, max_degree) if n_observed > 2 else _small(n_observed)
    n_internal = round(internal_observed_fraction * n_observed)
    edges = _observe_inside(rng, edges, n_observed, n_internal)
    number = np.arange(max((max(edge) for edge in edges), default=0) + 1)
    if shuffle:
        number[:n_observed] = rng.permutation(n_observed)
    low, high = np.log(length_range)
    lengths = np.exp(rng.uniform(low, high, size=len(edges)))
    names = [f"x{i}" for i in range(n_observed)]
    return Tree.build(names, number[np.array(edges, dtype=np.int64).reshape(-1, 2)], lengths)


def _small(n_observed: int) -> Edges:
    return [(0, 1)] if n_observed == 2 else []


def _star(rng: np.random.Generator, p: int, max_degree: int) -> Edges:
    return [(i, p) for i in range(p)]


def _uniform(rng: np.random.Generator, p: int, max_degree: int) -> Edges:
    """Each new leaf goes to a random edge, or to a random hidden node that has room."""
    edges = [(0, p), (1, p), (2, p)]
    degree = {p: 3}
    roomy = [p] if max_degree > 3 else []
    at_random = rng.random((p, 2))
    for i in range(3, p):
        spot = int(at_random[i, 0] * len(edges))
        if roomy and at_random[i, 1] < 0.5:
            hub = roomy[spot % len(roomy)]
            edges.append((i, hub))
            degree[hub] += 1
            if degree[hub] == max_degree:
                roomy.remove(hub)
            continue
        hub, (a, b) = p + len(degree), edges[spot]
        edges[spot] = (a, hub)
        edges += [(b, hub), (i, hub)]
        degree[hub] = 3
        if max_degree > 3:
            roomy.append(hub)
    return edges


def _caterpillar(rng: np.random.Generator, p: int, max_degree: int) -> Edges:
    """A chain of hidden nodes, each with one leaf or more, the ends with one more."""
    edges, leaf, hub = [(0, p)], 1, p
    while True:
        room = int(rng.integers(1, max_degree - 1))
        # The chain ends where what is left fits on this node as well.
        is_last = p - leaf <= room + 1
        n_leaves = p - leaf if is_last else room
        edges += [(i, hub) for i in range(leaf, leaf + n_leaves)]
        leaf += n_leaves
        if is_last:
            return edges
        edges.append((hub, hub + 1))
        hub += 1


def _balanced(rng: np.random.Generator, p: int, max_degree: int) -> Edges:
    """Cut the leaves into equal parts, each part again, until parts are single leaves."""
    edges: Edges = []
    n_nodes = p + 1
    to_cut = [(p, 0, p, max_degree)]
    while to_cut:
        node, start, stop, arity = to_cut.pop()
        cuts = np.linspace(start, stop, min(arity, stop - start) + 1).astype(int).tolist()
        for low, high in pairwise(cuts):
            if high - low == 1:
                edges.append((low, node))
            else:
                edges.append((node, n_nodes))
                to_cut.append((n_nodes, low, high, max_degree - 1))
                n_nodes += 1
    return edges


_SHAPES: dict[str, Callable[[np.random.Generator, int, int], Edges]] = {
    "uniform": _uniform,
    "caterpillar": _caterpillar,
    "star": _star,
    "balanced": _balanced,
}
SHAPES = tuple(_SHAPES)


def _observe_inside(rng: np.random.Generator, edges: Edges, p: int, n_internal: int) -> Edges:
    """Let chosen leaves take the place of the hidden node next to them."""
    if not n_internal:
        return edges
    hidden_by = {min(edge): max(edge) for edge in edges if min(edge) < p <= max(edge)}
    becomes: dict[int, int] = {}
    for i in rng.permutation(p)[:n_internal].tolist():
        if i in hidden_by:
            becomes.setdefault(hidden_by[i], i)
    moved = [(becomes.get(a, a), becomes.get(b, b)) for a, b in edges]
    return [(a, b) for a, b in moved if a != b]


@st.composite
def trees(
    draw: st.DrawFn,
    min_observed: int = 1,
    max_observed: int = 40,
    max_degree: int = 20,
    internal: bool = True,
    length_range: tuple[float, float] = (0.05, 2.0),
) -> Tree:
    """Trees of all shapes; chains run to some thirty hidden nodes, degrees to ``max_degree``."""
    seed = draw(st.integers(0, 2**32 - 1))
    return random_tree(
        np.random.default_rng(seed),
        draw(st.integers(min_observed, max_observed)),
        shape=draw(st.sampled_from(SHAPES)),
        max_degree=draw(st.integers(3, max_degree)),
        internal_observed_fraction=draw(st.sampled_from([0.0, 0.1, 0.5, 1.0])) if internal else 0.0,
        length_range=length_range,
    )
