"""Observed variables that can only be leaves: a number has no states for others to depend on."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from latenttree.structure.learn import Row, Structure, canonical_rows

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
    place = {v: tree.n_nodes + v for v in _misplaced(structure, leaves)}
    if not place:
        return structure
    rows: list[Row] = []
    values = (tree.edges, tree.lengths, structure.support, structure.standard_errors)
    for (a, b), length, support, error in zip(*(x.tolist() for x in values), strict=True):
        rows.append((place.get(a, a), place.get(b, b), length, support, error))
    rows += [(v, h, SHORT, 1.0, 0.0) for v, h in place.items()]
    new, support, errors = canonical_rows(_compact(rows, tree.n_observed), tree.observed_names, 1.0)
    return replace(structure, tree=new, support=support, standard_errors=errors)


def _misplaced(structure: Structure, leaves: Collection[int]) -> list[int]:
    """Observed nodes to be turned into leaves: those asked for that have several neighbours, and
    those next to one that is asked for."""
    tree = structure.tree
    wanted = set(leaves)
    found = {v for v in wanted if len(tree.neighbors(v)) > 1}
    for a, b in tree.edges.tolist():
        if max(a, b) < tree.n_observed and (a in wanted or b in wanted):
            found |= {v for v in (a, b) if len(tree.neighbors(v)) > 1}
    return sorted(found)


def _compact(rows: list[Row], p: int) -> list[Row]:
    """Hidden nodes numbered p, p + 1, ..."""
    used = np.unique([v for row in rows for v in row[:2] if v >= p])
    number = {v: v for v in range(p)} | {int(v): p + i for i, v in enumerate(used)}
    return [(number[a], number[b], *rest) for a, b, *rest in rows]  # type: ignore[misc]
