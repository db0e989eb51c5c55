"""Similarities of 0/1 variables from counts: all pairs at once, or a pair when asked for."""

from __future__ import annotations

from dataclasses import replace

from latenttree.data import Table
from latenttree.distances.correlation_source import binary_source, counted_source, without_rows
from latenttree.distances.estimate import UNMEASURABLE_ERROR
from latenttree.distances.similarity import Similarity, oriented
from latenttree.distances.spanning_tree import strongest_binary_tree
from latenttree.distances.streaming_spanning_tree import packed_marginals, strongest_counted_tree
from latenttree.moments.binary import counted_correlations
from latenttree.moments.cooccurrence import packed

COUNTED_FEATURE_LEAVES = 8
"""Leaves in the feature of a branch where correlations are counted on demand."""


def stored_similarity(table: Table, n_jobs: int = 1) -> tuple[Similarity, int]:
    """Similarities of 0/1 variables from the matrix of their correlations, and the number of pairs
    whose distance is not measurable. O(p^2) memory."""
    samples = packed(table, n_jobs)
    marginals = packed_marginals(samples)
    rho, n_unmeasurable = counted_correlations(samples, UNMEASURABLE_ERROR, n_jobs)
    mean, inverse_sd = marginals.mean[samples.rank], marginals.inverse_sd[samples.rank]
    mst = strongest_binary_tree(rho, mean, inverse_sd, marginals.n)
    return oriented(binary_source(rho, mean, inverse_sd, marginals.n), mst), n_unmeasurable


def counted_similarity(table: Table, n_jobs: int = 1, cache_size: int = 0) -> Similarity:
    """Similarities of 0/1 variables that are counted on demand; about `cache_size` counts are
    cached. O(p) memory beside the packed samples and the cache."""
    samples = packed(table, n_jobs)
    marginals = packed_marginals(samples)
    mst = strongest_counted_tree(marginals, n_jobs)
    mean, inverse_sd = marginals.mean[samples.rank], marginals.inverse_sd[samples.rank]
    source = counted_source(without_rows(samples), mean, inverse_sd, marginals.n, cache_size)
    return replace(oriented(source, mst), feature_leaves=COUNTED_FEATURE_LEAVES)
