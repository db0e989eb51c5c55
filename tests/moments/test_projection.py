"""Features of samples against products with dense one-hot matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    JOBS,
    KINDS,
    N,
    random_basis,
)

from latenttree.data import Table
from latenttree.moments import coordinates
from latenttree.moments.coordinates import weighted_features


def nothing(table: Table, n_directions: int) -> NDArray[np.float32]:
    """Means of features that are not subtracted."""
    return np.zeros((table.n_vars, n_directions), dtype=np.float32)


@KINDS
@JOBS
@pytest.mark.parametrize("n_directions", [1, 3])
def test_project_is_a_product_with_one_hot(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, n_directions)
    expected = slow.project(table, basis)
    features = table.storage.features(basis, nothing(table, n_directions))
    found = features.of(table.chunk(0, N), n_jobs)
    assert found.dtype == np.float32
    # at most 4 products of size up to 10, in float32
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    part = features.of(table.chunk(100, 1700), n_jobs)
    np.testing.assert_array_equal(part, found[100:1700])
    squares = features.squares(table.chunk(0, N), n_jobs)
    np.testing.assert_allclose(squares, (expected**2).sum(axis=2), rtol=1e-5, atol=1e-4)


@GAPPY
@JOBS
def test_projections_of_gaps_are_zero(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    offset = coordinates.feature_means(table, basis, coordinates.coordinate_moments(table)[0])
    known, w = slow.known_of(table), slow.weights_of(table)
    z, n = slow.project(table, basis), table.n_samples
    # up to 20 products of size up to 5, in float32
    whole = table.chunk(0, n)
    found = table.storage.features(basis, nothing(table, 2)).of(whole, n_jobs)
    np.testing.assert_allclose(found, z, rtol=1e-5, atol=1e-5)
    assert (found[~known] == 0).all()
    away = (z - offset) * known[:, :, None]
    centred = table.storage.features(basis, offset)
    np.testing.assert_allclose(centred.of(whole, n_jobs), away, atol=2e-5)
    weighted = weighted_features(table, basis, offset, n_jobs)
    np.testing.assert_allclose(weighted, away * np.sqrt(w)[:, None, None], atol=5e-5)
