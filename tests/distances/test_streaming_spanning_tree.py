"""Spanning trees by strips and correlations on demand against matrices of all pairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference.spanning import kruskal

import latenttree as lt
from latenttree.data import Table, as_table
from latenttree.distances.correlations import correlation, cross, excess, gather, gather_pairs, tail
from latenttree.distances.counted_similarity import counted_affinity
from latenttree.distances.estimate import estimate_distances
from latenttree.distances.memory_plan import matrix_bytes, plan_memory
from latenttree.distances.similarity import Affinity, component
from latenttree.distances.stage import measure_counts, similarity_of
from latenttree.distances.streaming_spanning_tree import strongest_counted_tree, weighed
from latenttree.errors import DataError
from latenttree.moments.cooccurrence import pack_matrix
from latenttree.structure.learn import structure_of_similarities


def random_words(seed: int, n: int | None = None, p: int | None = None) -> NDArray[np.int8]:
    """0/1 variables of all frequencies that depend on a common one, with copies, constants and, as
    few samples have it so, many ties."""
    rng = np.random.default_rng(seed)
    n, p = n or int(rng.integers(5, 150)), p or int(rng.integers(3, 50))
    rate = rng.choice([0.02, 0.1, 0.5, 0.9], p)
    topic = rng.random((n, 1)) < 0.5
    X = (rng.random((n, p)) < np.clip(rate * (1 + topic), 0, 1)).astype(np.int8)
    if seed % 3 == 0 and p > 6:
        X[:, 3], X[:, 5] = X[:, 1], X[:, 2]
    if seed % 5 == 0:
        X[:, -1] = 0
    if seed % 7 == 0:
        X[:, 0] = 1
    return X


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
    edges = strongest_counted_tree(weighed(pack_matrix(sparse.csr_array(X))), 1)
    # strengths in single precision, at most 49 of them
    assert sum(strength[a, b] for a, b in edges.tolist()) == pytest.approx(best, abs=1e-5)


@pytest.mark.parametrize("largest", [1, 8, 2048])
def test_strips_give_the_tree_of_the_matrix(largest: int) -> None:
    """To the last tie, for bits and for lists, whatever the size of the rounds."""
    for seed in range(20):
        X = random_words(seed)
        rng = np.random.default_rng(seed)
        table = presence(X)
        whole = similarity_of(estimate_distances(table, 2, n_jobs=1), table)
        for frequent in (None, rng.random(table.n_vars) < 0.5):
            store = pack_matrix(table.matrix, 1, frequent)
            found = strongest_counted_tree(weighed(store), 2, largest)
            np.testing.assert_array_equal(found, whole.mst)


def presence(X: NDArray[Any]) -> Table:
    return as_table(sparse.csr_array(X.astype(np.float32)), drop_constant=True)


def all_pairs_of(whole: Affinity) -> NDArray[np.float64]:
    """Correlation, tail and excess of every pair, `(3, pairs)`."""
    pairs = [(a, b) for a in range(whole.n_variables) for b in range(a)]
    read = (correlation, tail, excess)
    return np.array([[f(whole.source, a, b) for a, b in pairs] for f in read])


@pytest.mark.parametrize("n_kept", [0, 4, 1 << 12])
def test_pairs_on_demand_are_those_of_the_matrices(n_kept: int) -> None:
    """Kept in a memory of four places, which pairs take from each other, or of many, or nowhere."""
    for seed in range(4):
        table = presence(random_words(seed, n=200, p=30))
        stored = similarity_of(estimate_distances(table, 2, n_jobs=1), table)
        counted = counted_affinity(table, n_kept=n_kept)
        assert len(counted.source.memory) == n_kept
        assert (stored.source.heavy, stored.source.measured) == (
            counted.source.heavy,
            counted.source.measured,
        )
        for _ in range(2):  # counted, then from memory
            np.testing.assert_array_equal(all_pairs_of(stored), all_pairs_of(counted))


@pytest.mark.parametrize("n_kept", [0, 4, 1 << 12])
def test_blocks_on_demand_are_made_of_pairs(n_kept: int) -> None:
    """Within a set and between two, as `correlation` has every pair."""
    source = counted_affinity(presence(random_words(3, n=200, p=30)), n_kept=n_kept).source
    one, other = np.arange(0, 30, 2), np.arange(1, 30, 2)
    within, between = np.empty((15, 15)), np.empty((15, 15))
    gather(source, one, within)
    cross(source, one, other, between)
    for found, columns in ((within, one), (between, other)):
        expected = [[correlation(source, a, b) for b in columns] for a in one]
        np.testing.assert_array_equal(found, expected)


def test_some_of_the_variables_are_a_source_without_a_copy() -> None:
    table = presence(random_words(1, n=200, p=20))
    whole = counted_affinity(table)
    members = np.array([2, 3, 7, 11])
    part = component(whole, members)
    assert part.source.store is whole.source.store
    np.testing.assert_array_equal(part.rho, whole.rho[np.ix_(members, members)])


# ---- whole trees ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["codes", "sparse_binary"])
def test_a_tight_limit_gives_the_same_tree(form: str) -> None:
    truth = lt.datasets.make_latent_tree(27, 2, 2, n_samples=400, random_state=3)
    X = np.column_stack([truth.X, truth.X[:, 3], 1 - truth.X[:, 5]])
    table = as_table(X) if form == "codes" else presence(X)
    wide = measure_counts(table, plan_memory(table, 2, "1TiB"), 1)
    tight = measure_counts(table, plan_memory(table, 2, 1), 1)
    assert (wide.plan.mode, tight.plan.mode) == ("correlations", "on demand")
    assert wide.distances is tight.distances is None
    np.testing.assert_array_equal(wide.basis, tight.basis)
    np.testing.assert_array_equal(wide.similarity.copies, tight.similarity.copies)
    one, other = (
        structure_of_similarities(replace(found.similarity, width=32), table.names).tree
        for found in (wide, tight)
    )
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_allclose(one.lengths, other.lengths, rtol=1e-12)  # same sums, same order


# ---- plans ---------------------------------------------------------------------------


def test_matrices_are_taken_where_they_fit() -> None:
    table = presence(random_words(0, n=50, p=40))
    p = table.n_vars
    assert matrix_bytes(table, 1) == 12 * p * p
    roomy = plan_memory(table, 2, "1TiB")
    assert roomy.mode == "correlations"
    assert roomy.estimated_peak == roomy.held + roomy.beside + 4 * p * p
    whole = plan_memory(table, 2, "1TiB", with_errors=True)
    assert whole.mode == "matrices"
    assert whole.estimated_peak == whole.held + whole.beside + 12 * p * p
    assert min(roomy.beside, whole.beside) > 0
    tight = plan_memory(table, 2, 1000)
    assert tight.mode == "on demand"
    assert tight.kept == 0
    assert "pairs counted when they are needed" in tight.sentence()


@pytest.mark.parametrize(
    ("X", "options", "why"),
    [
        (np.tile([[0, 1, 2], [2, 1, 0], [1, 0, 1]], (20, 1)), {}, "more than two categories"),
        (np.tile([[0, 1.0], [np.nan, 0], [1, 1]], (20, 2)), {"family": "categorical"}, "missing"),
        (
            sparse.csr_array(random_words(1, n=30, p=5)),
            {"sample_weight": np.full(30, 2.0), "drop_constant": True},
            "weighted samples",
        ),
    ],
)
def test_beyond_the_limit_what_cannot_be_counted_is_refused(
    X: Any, options: dict[str, Any], why: str
) -> None:
    table = as_table(X, **options)
    with pytest.raises(DataError, match=rf"variables need .*memory_limit is.*{why}.*raise memory"):
        plan_memory(table, 2, 1000)


@pytest.mark.parametrize("form", ["codes", "sparse_binary"])
def test_correlations_alone_say_what_all_matrices_do(form: str) -> None:
    truth = lt.datasets.make_latent_tree(27, 2, 2, n_samples=150, random_state=4)
    table = as_table(truth.X) if form == "codes" else presence(truth.X)
    alone = measure_counts(table, plan_memory(table, 2, "1TiB"), 1)
    found = estimate_distances(table, 2)
    whole = similarity_of(found, table)
    np.testing.assert_array_equal(alone.similarity.mst, whole.mst)
    assert alone.n_unmeasurable == (27 * 27 - int(found.measurable.sum())) // 2
    every = np.column_stack(np.triu_indices(27, 1))
    for kind in range(3):
        one, other = np.empty(len(every)), np.empty(len(every))
        sources = (x.source._replace(heavy=True, measured=True) for x in (alone.similarity, whole))
        for source, out in zip(sources, (one, other), strict=True):
            gather_pairs(source, every, kind, out)
        np.testing.assert_allclose(one, other, rtol=1e-5 if kind else 0)
    few = np.array([0, 3, 7, 11, 19])
    assert alone.similarity.samples(few) == pytest.approx(whole.samples(few), rel=1e-5)
