"""Means and variances of coordinates against dense matrices, gaps and weights included."""

from __future__ import annotations

import numpy as np
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    KINDS,
    mixed,
    weighted_sparse_binary,
)

from latenttree.moments import coordinates


@KINDS
def test_means_and_variances_of_coordinates(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    whole = np.hstack(slow.dense(table))
    mean, variance = coordinates.coordinate_moments(table)
    # float64 sums; blocks hold float32 values where these are exact
    np.testing.assert_allclose(mean, whole.mean(axis=0), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(variance, whole.var(axis=0), rtol=1e-6, atol=1e-9)


@GAPPY
def test_the_tables_have_what_they_are_for(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    assert table.has_missing == (make is not weighted_sparse_binary)
    assert (table.weights is None) == (make is mixed)
    if table.has_missing:  # pairs differ in how many samples have both
        known = slow.known_of(table).astype(float)
        assert len(np.unique((known.T @ known).round(6))) > table.n_vars


@GAPPY
def test_means_and_variances_where_values_are(make) -> None:  # type: ignore[no-untyped-def]
    table = make()
    known = slow.known_of(table)
    np.testing.assert_allclose(coordinates.known_weights(table), slow.weights_of(table) @ known)
    found, expected = coordinates.coordinate_moments(table), slow.coordinate_moments(table)
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-9)  # float64 sums of float32 values
