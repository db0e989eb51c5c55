"""Latent tree models with known truth: tree, parameters, samples and hidden states."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError
from latenttree.tree import Tree

Shape = Literal["balanced", "caterpillar", "star", "random"]
Marginal = Literal["uniform", "random", "zipf"]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LatentTreeData:
    """What `make_latent_tree` returns: the truth and a sample from it.

    `conditionals[e]` belongs to edge `e` of `tree` and has shape `(d_child, d_parent)`, columns on
    the simplex, where `child` is the end of the edge that is farther from `root`.
    `marginals[v]` is the distribution of node `v`.
    """

    tree: Tree
    root: int
    marginals: tuple[Floats, ...]
    conditionals: tuple[Floats, ...]
    X: NDArray[np.int32]
    hidden: NDArray[np.int32]


def make_latent_tree(
    n_observed: int = 9,
    n_states: int = 2,
    n_categories: int | None = None,
    *,
    shape: Shape = "balanced",
    arity: int = 3,
    tree: Tree | None = None,
    edge_length: float | tuple[float, float] = 0.5,
    leaf_length: float | tuple[float, float] | None = None,
    marginal: Marginal = "random",
    n_used: int | None = None,
    internal_observed: float = 0.0,
    n_samples: int = 10_000,
    random_state: int | np.random.Generator | None = None,
) -> LatentTreeData:
    """Draw a latent tree model and a sample from it.

    Parameters
    ----------
    n_observed, n_states, n_categories
        Observed variables; states of a hidden node; categories of an observed one
        (default: `n_states`).
    shape, arity, tree
        Shape of the tree, children of a hidden node where the shape is balanced (random: degrees
        from 3 to `arity + 1`), or a given `Tree` whose own lengths are then used.
    edge_length, leaf_length
        Information length `-log prod_i s_i` of a hidden edge, a number or a range from which
        lengths are drawn log-uniformly; `leaf_length` (default: the same) for the edges to
        observed nodes. `s_i` are the canonical correlations of the two ends.
    marginal, n_used
        Distribution of the observed categories; categories with positive probability
        (the others never occur).
    internal_observed
        Share of the hidden nodes that are replaced by observed internal nodes
        (needs `n_categories == n_states`); `n_observed` grows accordingly.
    """
    rng = np.random.default_rng(random_state)
    n_categories = n_states if n_categories is None else n_categories
    used = n_categories if n_used is None else n_used
    _check_options(n_states, n_categories, used, arity, marginal, internal_observed, n_samples)
    if tree is None:
        leaf_length = edge_length if leaf_length is None else leaf_length
        tree = make_tree(n_observed, shape, arity, edge_length, leaf_length, internal_observed, rng)
    return _simulate(tree, n_states, n_categories, used, marginal, n_samples, rng)


def _check_options(
    n_states: int,
    n_categories: int,
    n_used: int,
    arity: int,
    marginal: str,
    internal_observed: float,
    n_samples: int,
) -> None:
    """Every option that would fail later, by name and value."""
    if not 2 <= n_states <= n_used <= n_categories:
        raise DataError(
            f"n_states={n_states}, n_used={n_used}, n_categories={n_categories}: "
            "need 2 <= n_states <= n_used <= n_categories"
        )
    if arity < 2:
        raise DataError(f"arity={arity}: a hidden node needs at least 2 children")
    if marginal not in ("uniform", "random", "zipf"):
        raise DataError(f"marginal={marginal!r} is unknown; choose 'uniform', 'random' or 'zipf'")
    if not 0 <= internal_observed <= 1:
        raise DataError(f"internal_observed={internal_observed}: give a share from 0 to 1")
    if internal_observed and n_categories != n_states:
        raise DataError(
            f"internal_observed={internal_observed} needs n_categories equal to n_states "
            f"({n_states}), not {n_categories}: distances do not add up through a wider node"
        )
    if n_samples < 0:
        raise DataError(f"n_samples={n_samples}: give zero or more")


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
    if n_observed < 1:
        raise DataError(f"n_observed={n_observed}: need at least one observed variable")
    makers = {
        "balanced": _balanced_edges,
        "caterpillar": _caterpillar_edges,
        "star": _star_edges,
        "random": _random_edges,
    }
    if shape not in makers:
        raise DataError(f"shape={shape!r} is unknown; choose one of {sorted(makers)}")
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
        raise DataError(f"edge length {length!r}: need 0 < low <= high")
    return np.exp(rng.uniform(np.log(low), np.log(high), size))


def _promote_hidden(
    edges: NDArray[np.int64], n_observed: int, share: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Turn a share of the hidden nodes into observed ones, which take the next observed indices."""
    n_hidden = int(edges.max(initial=n_observed - 1)) + 1 - n_observed
    chosen = rng.permutation(n_hidden) < round(share * n_hidden)
    order = np.concatenate([np.flatnonzero(chosen), np.flatnonzero(~chosen)])
    relabel = np.arange(n_observed + n_hidden)
    relabel[n_observed + order] = n_observed + np.arange(n_hidden)
    return relabel[edges], n_observed + int(chosen.sum())


def _balanced_edges(p: int, arity: int, rng: np.random.Generator) -> NDArray[np.int64]:
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


def _caterpillar_edges(p: int, arity: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A chain of hidden nodes, one leaf on each, two at the ends: a hidden Markov chain."""
    chain = list(range(p, 2 * p - 2))
    leaves = [(i, chain[min(max(i - 1, 0), p - 3)]) for i in range(p)]
    return np.array(leaves + list(pairwise(chain)), dtype=np.int64)


def _star_edges(p: int, arity: int, rng: np.random.Generator) -> NDArray[np.int64]:
    return np.array([(i, p) for i in range(p)], dtype=np.int64)


def _random_edges(p: int, arity: int, rng: np.random.Generator) -> NDArray[np.int64]:
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


def _without_degree_two(edges: NDArray[np.int64], p: int) -> NDArray[np.int64]:
    """Suppress hidden nodes with two neighbours (a root with two children)."""
    adjacency: dict[int, set[int]] = {}
    for a, b in edges.tolist():
        adjacency.setdefault(a, set()).add(b)
        adjacency.setdefault(b, set()).add(a)
    for node in [v for v in adjacency if v >= p]:
        if len(adjacency[node]) == 2:
            a, b = adjacency.pop(node)
            adjacency[a] ^= {node, b}
            adjacency[b] ^= {node, a}
    number = {v: v for v in range(p)}
    for v in sorted(v for v in adjacency if v >= p):
        number[v] = len(number)
    pairs = [(number[a], number[b]) for a in adjacency for b in adjacency[a] if a < b]
    return np.array(sorted(pairs), dtype=np.int64)


def information_length(joint: Floats, rank: int) -> float:
    """`-sum log s_i` over the leading `rank` canonical correlations of a joint distribution."""
    row, column = joint.sum(1), joint.sum(0)
    row, column = np.where(row > 0, row, 1), np.where(column > 0, column, 1)
    scaled = joint / np.sqrt(row)[:, None] / np.sqrt(column)[None, :]
    s = np.linalg.svd(scaled, compute_uv=False)[:rank]
    return float(-np.log(np.maximum(s, 1e-300)).sum())


def _transition(
    parent: Floats, n_rows: int, length: float, base: Floats, rng: np.random.Generator
) -> Floats:
    """`P(child | parent)`, shape `(n_rows, k)`, with the given information length.

    A mixture `t * sharp + (1 - t) * base`: at t = 1 the columns live on disjoint categories
    (length 0), at t = 0 they are equal (length infinite); `t` by bisection.
    """
    k = len(parent)
    used = np.flatnonzero(base)
    owner = np.empty(len(used), dtype=np.int64)
    if n_rows == k:
        owner[:] = np.arange(k)
    else:
        owner = rng.permutation(np.arange(len(used)) % k)
    sharp = np.zeros((n_rows, k))
    sharp[used, owner] = base[used] * rng.uniform(0.5, 1.5, len(used))
    sharp /= sharp.sum(0)
    noise = base[:, None] * rng.uniform(0.7, 1.3, (n_rows, k))
    noise /= noise.sum(0)

    def mixed(t: float) -> Floats:
        # the noise columns differ a little, so that no edge is a symmetric channel
        blunt = t * noise + (1 - t) * base[:, None]
        return np.asarray(t * sharp + (1 - t) * blunt)

    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if information_length(mixed(middle) * parent, k) > length:
            low = middle
        else:
            high = middle
    return mixed(high)


def _base_marginal(
    n_categories: int, n_used: int, kind: Marginal, rng: np.random.Generator
) -> Floats:
    weights = {
        "uniform": np.ones(n_used),
        "random": rng.uniform(0.5, 1.5, n_used),
        "zipf": 1.0 / np.arange(1, n_used + 1),
    }[kind]
    base = np.zeros(n_categories)
    base[rng.permutation(n_categories)[:n_used]] = rng.permutation(weights) / weights.sum()
    return base


def _simulate(
    tree: Tree,
    k: int,
    n_categories: int,
    n_used: int,
    marginal: Marginal,
    n_samples: int,
    rng: np.random.Generator,
) -> LatentTreeData:
    root = tree.n_observed if tree.n_hidden else 0
    parents, order = tree.rooted(root)
    edge_of = {(int(a), int(b)): e for e, (a, b) in enumerate(tree.edges)}
    p = tree.n_observed
    marginals: list[Floats] = [np.empty(0)] * tree.n_nodes
    conditionals: list[Floats] = [np.empty(0)] * len(tree.edges)
    states = np.empty((n_samples, tree.n_nodes), dtype=np.int32)
    for v in order:
        dims, used = (n_categories, n_used) if v < p else (k, k)
        base = _base_marginal(dims, used, marginal if v < p else "random", rng)
        u = int(parents[v])
        if u < 0:
            marginals[v] = base
            states[:, v] = rng.choice(dims, size=n_samples, p=base)
            continue
        e = edge_of[(min(u, int(v)), max(u, int(v)))]
        conditionals[e] = _transition(marginals[u], dims, float(tree.lengths[e]), base, rng)
        marginals[v] = conditionals[e] @ marginals[u]
        states[:, v] = _draw_children(conditionals[e], states[:, u], rng)
    return LatentTreeData(
        tree,
        root,
        tuple(marginals),
        tuple(conditionals),
        np.ascontiguousarray(states[:, :p]),
        np.ascontiguousarray(states[:, p:]),
    )


def _draw_children(
    conditional: Floats, parent: NDArray[np.int32], rng: np.random.Generator
) -> NDArray[np.int32]:
    """One draw for each sample by inverse distribution functions, state by state."""
    u = rng.random(len(parent))
    child = np.empty(len(parent), dtype=np.int32)
    for state in range(conditional.shape[1]):
        rows = np.flatnonzero(parent == state)
        cumulative = np.cumsum(conditional[:, state])
        draws = np.searchsorted(cumulative, u[rows] * cumulative[-1], side="right")
        child[rows] = np.minimum(draws, len(cumulative) - 1)
    return child
