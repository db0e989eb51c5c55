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
from latenttree.moments import cross_moments as module
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


def repeated(times: int) -> Table:
    """A thousand rows of dependent codes, so many times."""
    rng = np.random.default_rng(0)
    cause = rng.integers(0, 3, 1000)
    columns = [(cause + (rng.random(1000) < 0.3)) % 3 for _ in range(4)]
    return as_table(np.tile(np.stack(columns, axis=1), (times, 1)))


@pytest.mark.parametrize("carried_every", [1, 5000])
def test_sums_go_on_in_double_precision(
    carried_every: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After every block of 4,096 samples, or every two."""
    table = repeated(20)
    basis, near, mean = random_basis(table, 2), some_near(table), coordinate_moments(table)[0]
    monkeypatch.setattr(module, "CARRIED_EVERY", carried_every)
    monkeypatch.setattr(module, "CHUNK_FLOATS", 1)
    found = cross_moments(table, basis, near, mean, 1)
    np.testing.assert_allclose(found, slow.cross_moments(repeated(1), basis, near), **FLOAT32)
    rest = rest_moments(table, basis, mean, 1)
    np.testing.assert_allclose(rest, slow.rest_moments(repeated(1), basis), **FLOAT32)


def test_many_samples_keep_their_digits() -> None:
    """Sums of 600,000 samples are as precise as those of 65,536."""
    table = repeated(600)
    basis, near, mean = random_basis(table, 2), some_near(table), coordinate_moments(table)[0]
    found = cross_moments(table, basis, near, mean, 1)
    np.testing.assert_allclose(found, slow.cross_moments(repeated(1), basis, near), atol=2e-5)
