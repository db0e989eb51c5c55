"""Similarities of 0/1 variables from counts: all pairs at once, or a pair when asked for."""

from __future__ import annotations

from dataclasses import replace

from latenttree.data import Table
from latenttree.distances.correlations import binary_source, counted_source, without_rows
from latenttree.distances.estimate import UNMEASURABLE_ERROR
from latenttree.distances.similarity import WIDTH, Affinity, oriented
from latenttree.distances.spanning_tree import strongest_binary_tree
from latenttree.distances.streaming_spanning_tree import strongest_counted_tree, weighed
from latenttree.moments.binary import counted_correlations
from latenttree.moments.cooccurrence import packed

COUNTED_WIDTH = 8
"""Leaves that stand for a branch where every correlation is counted anew."""


def stored_affinity(table: Table, n_jobs: int = 1) -> tuple[Affinity, int]:
    """Affinities of 0/1 variables from the matrix of their correlations, and the number of pairs
    that do not stand out of their noise."""
    store = packed(table, n_jobs)
    sides = weighed(store)
    rho, doubtful = counted_correlations(store, UNMEASURABLE_ERROR, n_jobs)
    mean, root = sides.mean[store.rank], sides.root[store.rank]
    mst = strongest_binary_tree(rho, mean, root, sides.n)
    return oriented(binary_source(rho, mean, root, sides.n), mst), doubtful


def counted_affinity(
    table: Table, n_jobs: int = 1, n_kept: int = 0, width: int = COUNTED_WIDTH
) -> Affinity:
    """Affinities of 0/1 variables that are counted when they are asked for."""
    store = packed(table, n_jobs)
    sides = weighed(store)
    mst = strongest_counted_tree(sides, n_jobs)
    source = counted_source(
        without_rows(store), sides.mean[store.rank], sides.root[store.rank], sides.n, n_kept
    )
    return replace(oriented(source, mst), width=min(width, WIDTH))
