"""Second moments of pairs over the samples that have both variables."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    JOBS,
    gappy_blocks,
    gappy_codes,
    mixed,
    random_basis,
    scores,
)

from latenttree.data import as_table
from latenttree.data.checks import free_dimensions
from latenttree.moments import coordinates
from latenttree.moments.available_cases import available_moments, whiten_pairs
from latenttree.moments.pairs import second_moments


@GAPPY
@JOBS
@pytest.mark.parametrize("n_directions", [1, 2])
def test_second_moments_of_pairs_are_over_samples_that_have_both(
    make,  # type: ignore[no-untyped-def]
    n_jobs: int,
    n_directions: int,
) -> None:
    table = make()
    basis = random_basis(table, n_directions)
    offset = coordinates.feature_means(table, basis, coordinates.coordinate_moments(table)[0])
    expected, both, means = slow.available_second(table, basis)
    width = table.n_vars * n_directions
    # features of blocks with 20 coordinates have variances up to 20
    close = {"rtol": 1e-5, "atol": 2e-4}
    if not table.has_missing:
        second = second_moments(table, basis, offset, n_jobs)
        np.testing.assert_allclose(second, expected.reshape(width, width), **close)
        return
    found = available_moments(table, basis, offset, n_jobs)
    np.testing.assert_allclose(found.covariance, expected.reshape(width, width), **close)
    np.testing.assert_allclose(found.both, both, rtol=1e-5)
    away = means - offset[:, :, None]
    np.testing.assert_allclose(found.means, away.reshape(width, -1), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("make", "n_directions"),
    [(gappy_codes, 1), (gappy_codes, 2), (gappy_blocks, 2), (mixed, 1), (mixed, 2), (scores, 1)],
)
@JOBS
def test_pairs_are_whitened_by_their_own_samples(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    """Canonical correlations of a pair are those of the samples that have both. The prior, six
    samples among a thousand or more, and the ridge change them by a part in a hundred."""
    table = make()
    table = table.select(np.flatnonzero(free_dimensions(table) >= n_directions))
    basis = random_basis(table, n_directions)
    offset = coordinates.feature_means(table, basis, coordinates.coordinate_moments(table)[0])
    found = available_moments(table, basis, offset, n_jobs)
    whiten_pairs(found, table, basis, offset, n_jobs)
    z, known, w = slow.project(table, basis), slow.known_of(table), slow.weights_of(table)
    for a in range(table.n_vars):
        for b in range(a):
            both = known[:, a] & known[:, b]
            block = found.covariance[
                a * n_directions : (a + 1) * n_directions, b * n_directions : (b + 1) * n_directions
            ]
            s = np.linalg.svd(block, compute_uv=False)
            expected = slow.available_correlations(z[:, a], z[:, b], w, both)
            np.testing.assert_allclose(s, expected, rtol=0.01, atol=0.002)


def test_two_samples_are_not_a_perfect_correlation() -> None:
    """Independent columns that two samples have in common, whatever these are."""
    x = np.random.default_rng(0).standard_normal((200, 2))
    x[:99, 0] = x[101:, 1] = np.nan
    table = as_table(x, scores=True)
    basis, offset = np.ones((2, 1), np.float32), np.zeros((2, 1), np.float32)
    found = available_moments(table, basis, offset, 1)
    assert found.both[0, 1] == 2
    whiten_pairs(found, table, basis, offset, 1)
    assert abs(found.covariance[1, 0]) < 0.5
