"""Observed variables that can only be leaves: a number has no states for others to depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from latenttree.structure.builder import TreeBuilder
from latenttree.structure.learn import Structure

SHORT = 0.05
"""Length of the edge from a variable to the hidden node that takes its place in the tree."""


def as_leaves(structure: Structure, leaves: Collection[int]) -> Structure:
    """The same structure with the observed nodes `leaves`, and those next to them, as leaves.

    Each that has several neighbours, or an observed one, hangs from a hidden node in its place:

        a - x - b     becomes     a - h - b
                                      |
                                      x
    """
    tree = structure.tree
    if tree.n_observed < 3:
        return structure
    moved = _misplaced(structure, leaves)
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
        np.concatenate([structure.support, new]),
    )
    result, edge = builder.canonical(tree.observed_names)
    return replace(
        structure,
        tree=result,
        support=builder.support[edge],
        standard_errors=builder.standard_error[edge],
    )


def _misplaced(structure: Structure, leaves: Collection[int]) -> NDArray[np.int64]:
    """Observed nodes to be turned into leaves, ascending: those asked for that have several
    neighbours, and those next to one that is asked for."""
    tree = structure.tree
    asked = np.zeros(tree.n_nodes, dtype=np.bool_)
    asked[list(leaves)] = True
    observed = (tree.edges < tree.n_observed).all(axis=1)
    beside = tree.edges[observed & asked[tree.edges].any(axis=1)]
    asked[beside] = True
    return np.flatnonzero(asked & (tree.degree() > 1))
