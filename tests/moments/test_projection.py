"""Features of samples against products with dense one-hot matrices."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    JOBS,
    KINDS,
    N,
    random_basis,
)

from latenttree.moments import coordinates, project
from latenttree.moments.projection import features, weighted_features


@KINDS
@JOBS
@pytest.mark.parametrize("n_directions", [1, 3])
def test_project_is_a_product_with_one_hot(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, n_directions)
    expected = slow.project(table, basis)
    found = project(table, basis, 0, N, n_jobs)
    assert found.dtype == np.float32
    # at most 4 products of size up to 10, in float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(project(table, basis, 100, 1700, n_jobs), found[100:1700])


@GAPPY
@JOBS
def test_projections_of_gaps_are_zero(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    offset = coordinates.feature_means(table, basis, coordinates.coordinate_moments(table)[0])
    known, w = slow.known_of(table), slow.weights_of(table)
    z, n = slow.project(table, basis), table.n_samples
    # up to 20 products of size up to 5, in float32
    found = project(table, basis, 0, n, n_jobs)
    np.testing.assert_allclose(found, z, rtol=1e-5, atol=1e-5)
    assert (found[~known] == 0).all()
    away = (z - offset) * known[:, :, None]
    np.testing.assert_allclose(features(table, basis, offset, 0, n, n_jobs), away, atol=2e-5)
    weighted = weighted_features(table, basis, offset, 0, n, n_jobs)
    np.testing.assert_allclose(weighted, away * np.sqrt(w)[:, None, None], atol=5e-5)
