"""Correlations of pairs for kernels: stored, computed and counted ones against the samples."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import binary as reference
from tests.reference.binary import random_words, sparse_binary
from tests.reference.entries import entry

from latenttree.distances import correlations
from latenttree.distances.correlation_source import CorrelationSource, dense_source
from latenttree.distances.correlations import (
    CORRELATION,
    KURTOSIS_RATIO,
    MAX_INFLATION,
    MIN_EFFECTIVE_SAMPLES,
    VARIANCE_INFLATION,
    correlation_block,
    effective_pair_samples,
    pair_values,
)
from latenttree.distances.counted_similarity import counted_similarity, stored_similarity
from latenttree.distances.estimate import estimate_distances
from latenttree.distances.similarity import Similarity
from latenttree.distances.stage import similarity_of

cross_block = entry(correlations.cross_block)

P = 12


def one_of(kind: int) -> Callable[[CorrelationSource, int, int], float]:
    """The values of a kind, pair by pair."""

    def value(source: CorrelationSource, a: int, b: int) -> float:
        out = np.empty(1)
        pair_values(source, np.array([[a, b]]), kind, out)
        return float(out[0])

    return value


correlation = one_of(CORRELATION)
kurtosis_ratio = one_of(KURTOSIS_RATIO)
variance_inflation = one_of(VARIANCE_INFLATION)


def correlated(seed: int) -> NDArray[np.int8]:
    """0/1 variables of one common cause, frequent and rare ones, both signs of dependence."""
    rng = np.random.default_rng(seed)
    cause = rng.random((600, 1)) < 0.3
    rate = np.where(np.arange(P) % 3 == 0, 0.05, 0.4)
    X = rng.random((600, P)) < np.where(cause, np.minimum(3 * rate, 0.9), rate)
    X[:, ::4] ^= True
    return X.astype(np.int8)


def sources(X: NDArray[np.int8]) -> dict[str, CorrelationSource]:
    """The three kinds of sources of one table, with everything in use and no orientation."""
    table = sparse_binary(X)
    whole = {
        "matrices": similarity_of(estimate_distances(table, 2, n_jobs=1), table),
        "correlations": stored_similarity(table)[0],
        "counts": counted_similarity(table, cache_size=16),
    }
    ones = np.ones(P, dtype=np.float32)
    return {
        kind: similarity.source._replace(sign=ones, use_kurtosis=True, use_inflation=True)
        for kind, similarity in whole.items()
    }


@pytest.mark.parametrize("kind", ["matrices", "correlations", "counts"])
@pytest.mark.parametrize("seed", range(3))
def test_values_of_pairs_are_those_of_the_samples(kind: str, seed: int) -> None:
    X = correlated(seed)
    source = sources(X)[kind]
    for a, b in combinations(range(P), 2):
        expected = reference.pair_values(X, a, b)
        # float32 moments; the influence divides by rho, and squares that
        assert correlation(source, a, b) == pytest.approx(expected.rho, rel=1e-4, abs=1e-6)
        assert kurtosis_ratio(source, a, b) == pytest.approx(expected.kurtosis, rel=1e-3)
        if abs(expected.rho) > 0.05:
            assert variance_inflation(source, a, b) == pytest.approx(expected.inflation, rel=0.01)


@pytest.mark.parametrize("kind", ["matrices", "correlations", "counts"])
def test_effective_samples_are_means_over_pairs(kind: str) -> None:
    for seed in range(3):
        X = correlated(seed)
        source = sources(X)[kind]
        for variables in ([0, 1], [1, 2, 5], [0, 3, 4, 7, 11]):
            found = effective_pair_samples(source, float(len(X)), np.array(variables))
            # inflations of pairs of small correlation count little, and are good to a percent
            expected = reference.effective_samples(X, variables)
            assert found == pytest.approx(expected, rel=0.01)


def test_what_is_not_used_is_one() -> None:
    source = sources(correlated(0))["matrices"]._replace(use_kurtosis=False, use_inflation=False)
    assert kurtosis_ratio(source, 0, 1) == variance_inflation(source, 0, 1) == 1.0
    assert effective_pair_samples(source, 123.0, np.arange(4)) == 123.0


def test_one_variable_has_all_samples() -> None:
    assert effective_pair_samples(sources(correlated(0))["matrices"], 50.0, np.array([3])) == 50.0


def test_effective_samples_have_a_least() -> None:
    kurtosis = np.full((3, 3), 1000.0, dtype=np.float32)
    source = dense_source(np.eye(3), kurtosis, n=10.0)
    assert effective_pair_samples(source, 10.0, np.arange(3)) == MIN_EFFECTIVE_SAMPLES


def test_inflation_is_the_measured_over_the_gaussian_variance() -> None:
    """`Var(d) = n_directions (1 - rho^2)^2 / (n rho^2)` times the kurtosis ratio; never below 1."""
    rho = np.array([[1.0, 0.6, 0.3], [0.6, 1.0, 1.0], [0.3, 1.0, 1.0]])
    kurtosis = np.full((3, 3), 2.0, dtype=np.float32)
    gaussian = 3 * (1 - 0.6**2) ** 2 / (500 * 0.6**2) * 2.0
    errors = np.full((3, 3), 1e-6, dtype=np.float32)
    errors[0, 1] = errors[1, 0] = np.sqrt(7.0 * gaussian)
    source = dense_source(rho, kurtosis, errors, n=500.0, n_directions=3)
    assert variance_inflation(source, 0, 1) == pytest.approx(7.0, rel=1e-6)  # errors in float32
    assert variance_inflation(source, 0, 2) == 1.0, "less than Gaussian is Gaussian"
    assert variance_inflation(source, 1, 2) == 1.0, "a correlation of one has no variance"
    errors[0, 1] = 1e6
    huge = dense_source(rho, kurtosis, errors, n=500.0, n_directions=3)
    assert variance_inflation(huge, 0, 1) == MAX_INFLATION
    unknown = dense_source(rho, kurtosis, np.full((3, 3), np.inf, np.float32), n=500.0)
    assert variance_inflation(unknown, 0, 1) == 1.0


# ---- orientation, rows, blocks ---------------------------------------------------------


def test_signs_rows_and_bounds() -> None:
    """Rounding beyond one is cut off; a sign of zero excludes a variable; rows choose variables."""
    dense = np.array([[1.0, -1.0000001, 0.5], [-1.0000001, 1.0, 0.25], [0.5, 0.25, 1.0]])
    sign = np.array([1, -1, 0], dtype=np.float32)
    source = dense_source(dense)._replace(sign=sign)
    assert correlation(source, 0, 1) == 1.0
    assert correlation(source, 0, 2) == 0.0
    assert correlation(source, 1, 1) == 1.0
    part = dense_source(dense)._replace(rows=np.array([2, 0]), sign=np.ones(2, np.float32))
    assert correlation(part, 0, 1) == 0.5


@pytest.mark.parametrize("kind", ["matrices", "correlations", "counts"])
def test_blocks_are_made_of_pairs(kind: str) -> None:
    """Within a set and between two, as `correlation` has every pair."""
    source = sources(correlated(1))[kind]
    source = source._replace(sign=np.where(np.arange(P) % 2, 1, -1).astype(np.float32))
    one, other = np.array([4, 0, 9]), np.array([1, 2, 7, 11])
    within, between = np.empty((3, 3)), np.empty((3, 4))
    correlation_block(source, one, within)
    cross_block(source, one, other, between)
    for found, columns in ((within, one), (between, other)):
        expected = [[correlation(source, a, b) for b in columns] for a in one]
        np.testing.assert_array_equal(found, expected)


def test_lists_of_pairs() -> None:
    source = sources(correlated(2))["matrices"]
    pairs, out = np.array([[0, 1], [5, 2], [7, 11]]), np.empty(3)
    for kind, value in (
        (CORRELATION, correlation),
        (KURTOSIS_RATIO, kurtosis_ratio),
        (VARIANCE_INFLATION, variance_inflation),
    ):
        pair_values(source, pairs, kind, out)
        assert out.tolist() == [value(source, a, b) for a, b in pairs]


# ---- counts on demand --------------------------------------------------------------------


def all_pairs_of(whole: Similarity) -> NDArray[np.float64]:
    """Correlation, kurtosis ratio and variance inflation of every pair, `(3, pairs)`."""
    pairs = [(a, b) for a in range(whole.n_variables) for b in range(a)]
    read = (correlation, kurtosis_ratio, variance_inflation)
    return np.array([[f(whole.source, a, b) for a, b in pairs] for f in read])


@pytest.mark.parametrize("cache_size", [0, 4, 1 << 12])
def test_pairs_on_demand_are_those_of_the_matrices(cache_size: int) -> None:
    """Cached in four entries, which pairs take from each other, or in many, or not at all."""
    for seed in range(4):
        table = sparse_binary(random_words(seed, n=200, p=30))
        stored = similarity_of(estimate_distances(table, 2, n_jobs=1), table)
        counted = counted_similarity(table, cache_size=cache_size)
        assert len(counted.source.cache) == cache_size
        assert (stored.source.use_kurtosis, stored.source.use_inflation) == (
            counted.source.use_kurtosis,
            counted.source.use_inflation,
        )
        for _ in range(2):  # counted, then from the cache
            np.testing.assert_array_equal(all_pairs_of(stored), all_pairs_of(counted))


@pytest.mark.parametrize("cache_size", [0, 4, 1 << 12])
def test_blocks_on_demand_are_made_of_pairs(cache_size: int) -> None:
    """Within a set and between two, as `correlation` has every pair."""
    source = counted_similarity(
        sparse_binary(random_words(3, n=200, p=30)), cache_size=cache_size
    ).source
    one, other = np.arange(0, 30, 2), np.arange(1, 30, 2)
    within, between = np.empty((15, 15)), np.empty((15, 15))
    correlation_block(source, one, within)
    cross_block(source, one, other, between)
    for found, columns in ((within, one), (between, other)):
        expected = [[correlation(source, a, b) for b in columns] for a in one]
        np.testing.assert_array_equal(found, expected)
