"""Cross-moments of coordinates with features against covariances of dense matrices."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import moments as slow
from tests.reference.tables import (
    FLOAT32,
    GAPPY,
    JOBS,
    KINDS,
    codes_table,
    random_basis,
    with_gaps,
)

from latenttree.data import Table, as_table
from latenttree.moments.coordinates import coordinate_moments
from latenttree.moments.cross_moments import cross_moments, rest_moments


@KINDS
@JOBS
@pytest.mark.parametrize("n_directions", [1, 2])
def test_cross_moments_are_covariances(make, n_jobs: int, n_directions: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, n_directions)
    mean, _ = coordinate_moments(table)
    rng = np.random.default_rng(4)
    others = [np.delete(np.arange(table.n_vars), a) for a in range(table.n_vars)]
    near = np.array([np.sort(rng.permutation(o)[:2]) for o in others])
    found = cross_moments(table, basis, near, mean, n_jobs)
    np.testing.assert_allclose(found, slow.cross_moments(table, basis, near), **FLOAT32)


@KINDS
@JOBS
def test_rest_moments_are_covariances_with_all_others(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    mean, _ = coordinate_moments(table)
    found = rest_moments(table, basis, mean, n_jobs)
    np.testing.assert_allclose(found, slow.rest_moments(table, basis), **FLOAT32)


def some_near(table: Table, n_near: int = 2) -> NDArray[np.int64]:
    rng = np.random.default_rng(4)
    others = [np.delete(np.arange(table.n_vars), a) for a in range(table.n_vars)]
    return np.array([np.sort(rng.permutation(o)[:n_near]) for o in others])


@GAPPY
@JOBS
def test_cross_moments_over_samples_that_have_both(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis, near = random_basis(table, 2), some_near(table)
    found = cross_moments(table, basis, near, coordinate_moments(table)[0], n_jobs)
    expected = slow.available_cross_moments(table, basis, near)
    np.testing.assert_allclose(found, expected, **FLOAT32)


@GAPPY
@JOBS
def test_rest_moments_over_what_samples_have(make, n_jobs: int) -> None:  # type: ignore[no-untyped-def]
    table = make()
    basis = random_basis(table, 2)
    found = rest_moments(table, basis, coordinate_moments(table)[0], n_jobs)
    np.testing.assert_allclose(found, slow.available_rest_moments(table, basis), **FLOAT32)


def test_cross_moments_with_gaps_tend_to_those_without() -> None:
    """Half of each of three variables missing: entries err by less than five standard deviations
    of a mean of N / 4 products of size 1 or less, 0.07."""
    whole = codes_table()
    assert whole.codes is not None
    rng = np.random.default_rng(0)
    columns = [with_gaps(x, 0.5, rng) for x in whole.codes.T]
    table = as_table(np.column_stack(columns))
    basis, near = random_basis(whole, 2), some_near(whole)
    mean = coordinate_moments(table)[0]
    found = cross_moments(table, basis, near, mean, 1)
    np.testing.assert_allclose(found, slow.cross_moments(whole, basis, near), atol=0.07)
