"""Trees of known shape, with lengths drawn from given ranges."""

from __future__ import annotations

from itertools import pairwise
from typing import Literal

import numpy as np

from latenttree.config import check_choice
from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError, check_option
from latenttree.evaluation.baselines._shared import tidy_hidden
from latenttree.tree import Tree
from latenttree.tree.numbering import compact_hidden

Shape = Literal["balanced", "caterpillar", "star", "random"]


def make_tree(
    n_observed: int,
    shape: Shape,
    arity: int,
    edge_length: float | tuple[float, float],
    leaf_length: float | tuple[float, float],
    internal_observed: float,
    rng: np.random.Generator,
) -> Tree:
    """A tree of the given shape; lengths drawn log-uniformly from the given ranges."""
    remedy = "give at least one observed variable"
    check_option("n_observed", n_observed, n_observed >= 1, remedy)
    makers = {
        "balanced": _balanced_edges,
        "caterpillar": _caterpillar_edges,
        "star": _star_edges,
        "random": _random_edges,
    }
    check_choice("shape", shape, tuple(sorted(makers)))
    if n_observed < 3:
        edges = np.array([[0, 1]] if n_observed == 2 else np.empty((0, 2)), dtype=np.int64)
    else:
        edges = makers[shape](n_observed, arity, rng)
    names = [f"x{i}" for i in range(n_observed)]
    edges, n_total = _promote_hidden(edges, n_observed, internal_observed, rng)
    names += [f"x{i}" for i in range(n_observed, n_total)]
    lengths = np.where(
        (edges < n_total).any(axis=1),
        _draw(leaf_length, len(edges), rng),
        _draw(edge_length, len(edges), rng),
    )
    return Tree.build(tuple(names), edges, lengths)


def _draw(length: float | tuple[float, float], size: int, rng: np.random.Generator) -> Floats:
    low, high = length if isinstance(length, tuple) else (length, length)
    if not 0 < low <= high < np.inf:
        what = f"edge length {length!r}"
        raise DataError(what, "give 0 < low <= high", value=length, option="edge_length")
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def _promote_hidden(
    edges: Ints, n_observed: int, share: float, rng: np.random.Generator
) -> tuple[Ints, int]:
    """Turn a share of the hidden nodes into observed ones, which take the next observed indices."""
    n_hidden = int(edges.max(initial=n_observed - 1)) + 1 - n_observed
    chosen = rng.permutation(n_hidden) < round(share * n_hidden)
    order = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
    relabel = np.arange(n_observed + n_hidden)
    relabel[n_observed + order] = n_observed + np.arange(n_hidden)
    return relabel[edges], n_observed + int(chosen.sum())


def _balanced_edges(p: int, arity: int, rng: np.random.Generator) -> Ints:
    """Level by level, `arity` neighbouring nodes get a parent, until one node is left."""
    level, n_nodes, edges = list(range(p)), p, []
    while len(level) > 1:
        if len(level) <= arity + 1:
            groups = [level]
        else:
            groups = [list(g) for g in np.array_split(level, max(1, round(len(level) / arity)))]
        parents = []
        for group in groups:
            if len(group) == 1:
                parents.append(group[0])
                continue
            edges += [(int(child), n_nodes) for child in group]
            parents.append(n_nodes)
            n_nodes += 1
        level = parents
    return _without_degree_two(np.array(edges, dtype=np.int64), p)


def _caterpillar_edges(p: int, arity: int, rng: np.random.Generator) -> Ints:
    """A chain of hidden nodes, one leaf on each, two at the ends: a hidden Markov chain."""
    chain = list(range(p, 2 * p - 2))
    leaves = [(i, chain[min(max(i - 1, 0), p - 3)]) for i in range(p)]
    return np.array(leaves + list(pairwise(chain)), dtype=np.int64)


def _star_edges(p: int, arity: int, rng: np.random.Generator) -> Ints:
    return np.array([(i, p) for i in range(p)], dtype=np.int64)


def _random_edges(p: int, arity: int, rng: np.random.Generator) -> Ints:
    """Random joins: 2 to `arity` nodes, drawn from those without a parent, get one."""
    level, n_nodes, edges = list(rng.permutation(p)), p, []
    while len(level) > 1:
        take = len(level) if len(level) <= arity + 1 else int(rng.integers(2, arity + 1))
        chosen = rng.choice(len(level), size=take, replace=False)
        group = [level[i] for i in chosen]
        level = [node for i, node in enumerate(level) if i not in set(chosen.tolist())]
        edges += [(int(child), n_nodes) for child in group]
        level.append(n_nodes)
        n_nodes += 1
    return _without_degree_two(np.array(edges, dtype=np.int64), p)


def _without_degree_two(edges: Ints, p: int) -> Ints:
    """Suppress hidden nodes with two neighbours (a root with two children)."""
    left, _ = tidy_hidden(p, edges, np.zeros(len(edges)))
    return np.array(sorted(compact_hidden(left, p).tolist()), dtype=np.int64)
