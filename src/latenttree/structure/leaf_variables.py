"""Observed variables that can only be leaves: a number has no states for others to depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latenttree.structure.builder import TreeBuilder
from latenttree.structure.independence import parts_of
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

SHORT = 0.05
"""Length of the edge from a variable to the hidden node that takes its place in the tree."""


def as_leaves(structure: Structure, leaves: Collection[int]) -> Structure:
    """The same structure with the observed nodes `leaves`, and those next to them, as leaves.

    Each that has several neighbours, or an observed one, hangs from a hidden node in its place:

        a - x - b     becomes     a - h - b
                                      |
                                      x
    """
    if structure.tree.n_observed < 3:
        return structure
    structure = _rejoined(structure, leaves)
    tree = structure.tree
    moved = misplaced(tree, leaves)
    if not len(moved):
        return structure
    place = np.arange(tree.n_nodes)
    place[moved] = tree.n_nodes + np.arange(len(moved))
    new = np.ones(len(moved))
    builder = TreeBuilder(
        tree.n_observed,
        np.concatenate([place[tree.edges], np.column_stack([moved, place[moved]])]),
        np.concatenate([tree.lengths, SHORT * new]),
        np.concatenate([structure.standard_errors, 0 * new]),
        np.concatenate([structure.support, _has_part(structure)[moved] * new]),
    )
    return _with_builder(structure, builder)


def _has_part(structure: Structure) -> NDArray[np.bool_]:
    """`(n_nodes,)` whether a node has an edge of support above 0."""
    found = np.zeros(structure.tree.n_nodes, dtype=np.bool_)
    found[structure.tree.edges[structure.support > 0]] = True
    return found


def _rejoined(structure: Structure, leaves: Collection[int]) -> Structure:
    """The same structure, its independent parts joined at hidden nodes, so that no variable of
    `leaves` needs one only to be joined to others.

    All parts are joined to one: the first with a hidden node, else with another variable than
    `leaves`, else with several variables; to a new hidden node where all are single `leaves`."""
    tree, real = structure.tree, structure.support > 0
    is_leaf = np.zeros(tree.n_nodes, dtype=np.bool_)
    is_leaf[list(leaves)] = True
    if not is_leaf[tree.edges[~real]].any():
        return structure
    edges, lengths, kept = _within_parts(structure)
    part = parts_of(edges, tree.n_nodes)
    degree = np.bincount(edges.ravel(), minlength=tree.n_nodes)
    node = np.flatnonzero((degree > 0) | (np.arange(tree.n_nodes) < tree.n_observed))
    rank = np.select([node >= tree.n_observed, ~is_leaf[node], degree[node] > 0], [0, 1, 2], 3)
    order = node[np.lexsort((node, rank))]
    _, first = np.unique(part[order], return_index=True)
    chosen = order[first]  # the node of each part that joins it to others
    host = int(order[0]) if rank.min() < 3 else tree.n_nodes
    joined = np.array([v for v in chosen.tolist() if v != host and part[v] != _label(part, host)])
    between = np.ones(len(joined))
    length = np.full(len(joined), tree.lengths[~real].mean())
    builder = TreeBuilder(
        tree.n_observed,
        np.concatenate([edges, np.column_stack([joined, host * between.astype(int)])]),
        np.concatenate([lengths, length]),
        np.concatenate([structure.standard_errors[kept], np.inf * between]),
        np.concatenate([structure.support[kept], 0 * between]),
    )
    return _with_builder(structure, builder)


def _within_parts(
    structure: Structure,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Ends and lengths of the edges within parts, and which edges of the tree they are.

    A hidden node at which fewer than three of them meet, the others there being joins between
    parts, is contracted into the neighbour that it has least support against."""
    tree, kept = structure.tree, np.flatnonzero(structure.support > 0)
    ends, lengths = tree.edges[kept], tree.lengths[kept]
    while True:
        degree = np.bincount(ends.ravel(), minlength=tree.n_nodes)[tree.n_observed :]
        thin = tree.n_observed + np.flatnonzero((degree == 1) | (degree == 2))
        if not len(thin):
            return ends, lengths, kept
        own = np.flatnonzero((ends == thin[0]).any(axis=1))
        least = own[np.argmin(structure.support[kept[own]])]
        lengths[own[own != least]] += lengths[least]
        into = ends[least].sum() - thin[0]
        ends = np.delete(np.where(ends == thin[0], into, ends), least, axis=0)
        lengths, kept = np.delete(lengths, least), np.delete(kept, least)


def _label(part: NDArray[np.int64], node: int) -> int:
    """The part of a node; -1 for a new one."""
    return int(part[node]) if node < len(part) else -1


def _with_builder(structure: Structure, builder: TreeBuilder) -> Structure:
    """The same structure with the tree of a builder."""
    tree, edge = builder.canonical(structure.tree.observed_names)
    return replace(
        structure,
        tree=tree,
        support=builder.support[edge],
        standard_errors=builder.standard_error[edge],
    )


def misplaced(tree: Tree, leaves: Collection[int]) -> NDArray[np.int64]:
    """Observed nodes to be turned into leaves, ascending: those asked for that have several
    neighbours, and those next to one that is asked for."""
    asked = np.zeros(tree.n_nodes, dtype=np.bool_)
    asked[list(leaves)] = True
    observed = (tree.edges < tree.n_observed).all(axis=1)
    beside = tree.edges[observed & asked[tree.edges].any(axis=1)]
    asked[beside] = True
    return np.flatnonzero(asked & (tree.degree() > 1))
