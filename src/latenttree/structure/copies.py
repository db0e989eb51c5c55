"""Hidden copies: a tree over the observed variables with a hidden node in the place of each.

The hidden Chow-Liu tree: `I(x, y)` the mutual information of two variables, the maximum spanning
tree of it (Chow and Liu 1968), and a hidden node of any number of states instead of every inner
variable, which becomes a leaf of it.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.values import CODED
from latenttree.distances.similarity import Similarity
from latenttree.distances.spanning_tree import minimum_spanning_tree
from latenttree.engine import Summed, blocks
from latenttree.moments.contingency import MAX_CATEGORIES
from latenttree.structure.independence import dependent_links, parts_of
from latenttree.structure.leaf_variables import as_leaves
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MAX_WORK = 2e11
"""Multiply-adds up to which mutual information is computed, a few seconds."""

BLOCK = 4096
"""Samples that are counted at once."""

LEAST_SIMILARITY = 1e-3
"""Smaller similarities count as this, so that edges have finite lengths."""


def hidden_chow_liu(
    similarity: Similarity, table: Table, n_jobs: int = 1, *, resolved: bool = False
) -> Structure:
    """The hidden Chow-Liu tree of a table.

    Where variables are numbers, or have many categories, the spanning tree is that of the
    similarities. Edges have the lengths of the information distances. Parts that the data do not
    show to be dependent (`dependent_links`) have spanning trees of their own, joined by edges of
    support 0; `resolved`: all is one part."""
    part = np.zeros(table.n_vars, dtype=np.int64)
    if not resolved:
        part = parts_of(similarity.mst[dependent_links(similarity)], table.n_vars)
    edges = similarity.mst
    if can_count(table):
        information = mutual_information(table, n_jobs)
        most = information.max()
        edges = minimum_spanning_tree(most - information + (most + 1) * (part[:, None] != part))
    rho = np.maximum(np.abs(similarity.of_pairs(edges)), LEAST_SIMILARITY)
    tree = Tree.build(table.names, edges, -np.log(rho) * similarity.distance_scale)
    is_join = part[tree.edges[:, 0]] != part[tree.edges[:, 1]]
    structure = replace(
        Structure.of_tree(tree),
        support=np.where(is_join, 0.0, 1.0),
        standard_errors=np.where(is_join, np.inf, 0.0),
        n_components=int(part.max()) + 1,
    )
    return replace(hidden_copies(structure), shape="hidden Chow-Liu")


def hidden_copies(structure: Structure) -> Structure:
    """The same structure with all observed nodes as leaves: each that has several neighbours hangs
    from a hidden copy in its place."""
    return as_leaves(structure, range(structure.tree.n_observed))


def can_count(table: Table) -> bool:
    """Whether contingency tables of all pairs are counted: all variables are categories, and the
    cost of it is bounded."""
    width = int(table.dims.sum())
    coded = not table.has_values and not table.has_sparse_columns
    coded &= all(family in CODED for family in table.families)
    return coded and width <= MAX_CATEGORIES and table.n_samples * width**2 <= MAX_WORK


def mutual_information(table: Table, n_jobs: int = 1) -> Floats:
    """(p, p) mutual information of all pairs of categorical variables, from the weights of the
    samples that have both."""
    starts = np.cumsum(table.dims) - table.dims
    width = int(table.dims.sum())
    counts = table.run(Summed(partial(_co_occurrences, starts, width), (width, width)), n_jobs)
    both = _block_sums(counts, starts)
    within = _block_sums(_times_log(counts), starts)
    margins = np.add.reduceat(counts, starts, axis=1)  # of a category and any of a variable
    margins = np.add.reduceat(_times_log(margins), starts, axis=0)
    total = np.maximum(both, 1e-300)
    found = (within - margins - margins.T + _times_log(total)) / total
    return np.maximum(np.where(both > 0, found, 0.0), 0.0)


def _co_occurrences(starts: Ints, width: int, chunk: Chunk, n_jobs: int) -> Floats:
    """(D, D) weights of the samples of a chunk that have two categories."""
    codes = np.asarray(chunk.rows)
    total = np.zeros((width, width))
    for low, high in blocks(len(codes), BLOCK):
        own = codes[low:high].astype(np.int64)
        known = own >= 0
        sample, variable = np.nonzero(known)
        at = starts[variable] + own[known]
        one = np.zeros((high - low, width))
        one[sample, at] = 1.0
        weighted = one if chunk.weights is None else one * chunk.weights[low:high, None]
        total += weighted.T @ one
    return total


def _times_log(x: Floats) -> Floats:
    """`x log x`, 0 at 0."""
    return np.asarray(x * np.log(np.maximum(x, 1e-300)))


def _block_sums(cells: Floats, starts: Ints) -> Floats:
    """(p, p) sums over the contingency tables of all pairs."""
    return np.asarray(np.add.reduceat(np.add.reduceat(cells, starts, axis=0), starts, axis=1))
