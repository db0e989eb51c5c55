"""Determinants, errors and kurtosis ratios of all pairs against the samples, pair by pair."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import pairs as slow
from tests.reference.moments import project

from latenttree.data import Table, as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.moments.pairs import PairDeterminants, all_pairs

Floats = NDArray[np.float64]


def vectors(seed: int, n: int = 1500, p: int = 5) -> list[Floats]:
    """Vectors of three numbers that depend on two common ones; heavy tails."""
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 2))
    blocks = []
    for _ in range(p):
        noise = rng.standard_t(6, (n, 3))
        blocks.append(common @ rng.standard_normal((2, 3)) + 0.7 * noise)
    return blocks


def random_basis(table: Table, n_directions: int) -> NDArray[np.float32]:
    rng = np.random.default_rng(1)
    return rng.standard_normal((int(table.offsets[-1]), n_directions)).astype(np.float32)


def check(found: PairDeterminants, a: int, b: int, one: Floats, other: Floats) -> None:
    """A pair against its features `(n, n_directions)`; whitening is ridged by 1e-6 of the trace,
    and moments are in float32."""
    expected = slow.pair(one, other)
    assert found.determinant[a, b] == pytest.approx(expected.determinant, rel=2e-3, abs=1e-5)
    assert found.kurtosis[a, b] == pytest.approx(expected.kurtosis, rel=2e-3)
    if expected.is_clear:
        assert found.error[a, b] == pytest.approx(expected.error, rel=5e-3)


@pytest.mark.parametrize("n_directions", [1, 2, 3])
@pytest.mark.parametrize("seed", range(3))
def test_pairs_of_vectors_are_those_of_the_samples(seed: int, n_directions: int) -> None:
    """Closed forms for one and two directions, elimination for three."""
    table = as_table(vectors(seed))
    basis = random_basis(table, n_directions)
    found, z = all_pairs(table, basis, 1), project(table, basis)
    for a, b in permutations(range(table.n_vars), 2):
        check(found, a, b, z[:, a], z[:, b])


def test_own_pairs_are_perfect() -> None:
    table = as_table(vectors(0))
    found = all_pairs(table, random_basis(table, 2), 1)
    for matrix, own in zip(found, (1.0, 0.0, 1.0), strict=True):
        assert (np.diag(matrix) == own).all()
        np.testing.assert_array_equal(matrix, matrix.T)


def test_many_pairs_have_their_errors_calibrated_by_distance() -> None:
    """Beyond 400 pairs the ratio to the Gaussian error is interpolated over distances: variables of
    one kind and one strength all get nearly their own."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((4000, 1))
    x = 0.9 * common + 0.5 * rng.standard_t(5, (4000, 40))
    table = as_table(x, scores=True)
    found = all_pairs(table, np.ones((40, 1), np.float32), 1)
    ratio = []
    for a, b in [(1, 0), (7, 3), (20, 11), (39, 38), (33, 2)]:
        ratio.append(found.error[a, b] / slow.pair(x[:, [a]], x[:, [b]]).error)
    # the ratio is a median over bins of pairs, the pairs' own ratios vary by a tenth or so
    np.testing.assert_allclose(ratio, 1.0, atol=0.25)


@pytest.mark.parametrize("counted", [True, False])
def test_pairs_of_categories_are_those_of_the_samples(
    counted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From counts of all pairs of categories, and as products of features."""
    monkeypatch.setattr("latenttree.moments.pairs.worth_counting", lambda *_: counted)
    table = as_table(make_latent_tree(5, 3, 4, n_samples=3000, random_state=0).X)
    basis = random_basis(table, 2)
    found, z = all_pairs(table, basis, 1), project(table, basis)
    for a, b in combinations(range(5), 2):
        check(found, a, b, z[:, a], z[:, b])


def test_missing_values_leave_the_samples_that_have_both() -> None:
    """One direction: correlation and error over common samples; kurtosis ratios of numbers that are
    standardised by all of their samples, over the share of common ones."""
    rng = np.random.default_rng(3)
    x = 0.8 * rng.standard_normal((3000, 1)) + 0.6 * rng.standard_normal((3000, 4))
    x[rng.random(x.shape) < 0.3] = np.nan
    table, basis = as_table(x, scores=True), np.ones((4, 1), np.float32)
    found = all_pairs(table, basis, 1)
    x = np.where(np.isnan(x), np.nan, project(table, basis)[:, :, 0])
    z = (x - np.nanmean(x, axis=0)) / np.nanstd(x, axis=0)
    for a, b in combinations(range(4), 2):
        both = ~np.isnan(x[:, a]) & ~np.isnan(x[:, b])
        expected = slow.pair(x[both][:, [a]], x[both][:, [b]])
        # mixed with independence, by 16 / n^2 of itself
        assert found.determinant[a, b] == pytest.approx(expected.determinant, rel=1e-3)
        assert found.error[a, b] == pytest.approx(expected.error, rel=5e-3)
        fourth = (z[both, a] ** 2 * z[both, b] ** 2).mean()
        ratio = max(fourth / (1 + 2 * expected.determinant**2), 1.0) / both.mean()
        assert found.kurtosis[a, b] == pytest.approx(ratio, rel=2e-3)


def test_a_constant_feature_has_determinant_zero() -> None:
    table = as_table(vectors(0))
    basis = random_basis(table, 1)
    basis[table.offsets[2] : table.offsets[3]] = 0.0
    found = all_pairs(table, basis, 1)
    others = [0, 1, 3, 4]
    assert (found.determinant[2, others] == 0).all()
    assert np.isinf(found.error[2, others]).all()
