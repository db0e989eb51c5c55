"""Spanning trees by strips against matrices of all pairs and against Kruskal."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference.binary import random_words, sparse_binary
from tests.reference.spanning import kruskal

from latenttree.data.table import Table, sparse_binary_table
from latenttree.distances.estimate import estimate_distances
from latenttree.distances.stage import similarity_of
from latenttree.distances.streaming_spanning_tree import packed_marginals, strongest_counted_tree
from latenttree.moments.cooccurrence import packed


def of_all(X: NDArray[np.int8]) -> Table:
    """All columns, constant ones too."""
    ones = sparse.csr_array(X.astype(np.float32))
    return sparse_binary_table([str(i) for i in range(X.shape[1])], ones)


def strengths(X: NDArray[np.int8]) -> NDArray[np.float64]:
    """`|rho|`, times `exp(-error)` where the error is 1/2 or more: from the samples one by one.

    Deviations are damped; a sample's influence on `-log rho` is
    `z_a z_b / rho - (z_a^2 + z_b^2) / 2`."""
    n, p = X.shape
    mean = X.mean(axis=0)
    z = (X - mean) / np.sqrt(mean * (1 - mean) + 4 / n)
    found = np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            rho = (z[:, a] * z[:, b]).mean()
            if a == b or abs(rho) < 1e-12:
                continue
            influence = z[:, a] * z[:, b] / rho - (z[:, a] ** 2 + z[:, b] ** 2) / 2
            error = influence.std() / np.sqrt(n)
            found[a, b] = abs(rho) * (1.0 if error < 0.5 else np.exp(-min(error, 30)))
    return found


@pytest.mark.parametrize("seed", range(12))
def test_strips_give_a_tree_of_largest_strength(seed: int) -> None:
    X = random_words(seed)
    strength = strengths(X)
    best = sum(strength[e] for e in kruskal(-strength))
    edges = strongest_counted_tree(packed_marginals(packed(of_all(X))), 1)
    # strengths in single precision, at most 49 of them
    assert sum(strength[a, b] for a, b in edges.tolist()) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("largest", [1, 8, 2048])
def test_strips_give_the_tree_of_the_matrix(largest: int) -> None:
    """To the last tie, for bits and for lists, whatever the size of the rounds."""
    for seed in range(20):
        X = random_words(seed)
        rng = np.random.default_rng(seed)
        table = sparse_binary(X)
        whole = similarity_of(estimate_distances(table, 2, n_jobs=1), table)
        for frequent in (None, rng.random(table.n_vars) < 0.5):
            store = packed(table, 1, frequent)
            found = strongest_counted_tree(packed_marginals(store), 2, largest)
            np.testing.assert_array_equal(found, whole.mst)
