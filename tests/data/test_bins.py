"""Quantile bins and standardised coordinates, against slow versions; weights are repetitions."""

from __future__ import annotations

import hypothesis.extra.numpy as hnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from latenttree.data.columns.bins import (
    bin_codes,
    mean_and_deviation,
    normal_scores,
    number_of_bins,
    quantile_edges,
    sparse_spread,
    standardised,
    varies,
)

NUMBERS = hnp.arrays(
    np.float64,
    st.integers(1, 300),
    elements=st.one_of(st.floats(-1e9, 1e9, width=32), st.integers(-3, 3).map(float)),
)


def slow_edges(values: np.ndarray) -> np.ndarray:
    """Edge j: the smallest value with at least j / b of all values at or below it."""
    b = number_of_bins(len(values))
    distinct = sorted(set(values.tolist()))
    at_or_below = [sum(values <= u) for u in distinct]
    edges = {
        next(u for u, c in zip(distinct, at_or_below, strict=True) if c * b >= j * len(values))
        for j in range(1, b)
    }
    return np.array(sorted(edges - {distinct[-1]}) or distinct[-2:-1])


@given(NUMBERS)
def test_edges_are_those_of_the_slow_version(values: np.ndarray) -> None:
    np.testing.assert_array_equal(quantile_edges(values), slow_edges(values))


@given(NUMBERS)
def test_no_bin_is_empty_and_order_is_kept(values: np.ndarray) -> None:
    edges = quantile_edges(values)
    codes = bin_codes(values, edges)
    assert set(codes.tolist()) == set(range(len(edges) + 1))
    assert (len(edges) >= 1) == (len(set(values.tolist())) > 1)
    order = np.argsort(values)
    assert (np.diff(codes[order]) >= 0).all()


@given(NUMBERS, st.integers(0, 2**32 - 1))
def test_integer_weights_are_repetitions(values: np.ndarray, seed: int) -> None:
    weights = np.random.default_rng(seed).integers(1, 5, len(values))
    found = quantile_edges(values, weights.astype(float))
    np.testing.assert_array_equal(found, quantile_edges(np.repeat(values, weights)))


def test_bins_have_about_equal_shares() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    codes = bin_codes(values, quantile_edges(values))
    assert set(np.bincount(codes).tolist()) == {62, 63}


@pytest.mark.parametrize(("n", "bins"), [(2, 4), (199, 4), (200, 5), (640, 16), (10**6, 16)])
def test_number_of_bins(n: int, bins: int) -> None:
    assert number_of_bins(n) == bins


@pytest.mark.parametrize("most", [0.0, 5.0])
def test_a_value_that_fills_every_bin_has_its_own(most: float) -> None:
    values = np.full(1000, most)
    values[:3] = [1.0, 2.0, 3.0]
    codes = bin_codes(values, quantile_edges(values))
    assert len(set(codes[3:].tolist())) == 1
    assert set(codes[:3].tolist()) == {1 - codes[-1]}


def test_bins_know_no_scale() -> None:
    values = np.random.default_rng(0).normal(size=500)
    expected = bin_codes(values, quantile_edges(values))
    for scale in (1e-300, 1e-12, 1e12, 1e300):
        scaled = values * scale
        np.testing.assert_array_equal(bin_codes(scaled, quantile_edges(scaled)), expected)


def test_spread_leaves_gaps_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 3)) * [1, 1e-200, 1e200] + [5, 0, 0]
    x[rng.random(x.shape) < 0.3] = np.nan
    mean, deviation = mean_and_deviation(x)
    np.testing.assert_allclose(mean, np.nanmean(x, axis=0), rtol=1e-12)
    unit = np.nanmax(np.abs(x), axis=0)
    np.testing.assert_allclose(deviation, np.nanstd(x / unit, axis=0) * unit, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_and_repeated_spreads_agree(weighted: bool) -> None:
    rng = np.random.default_rng(1)
    x = rng.poisson(0.5, (100, 4)) * 1.5
    weights = rng.integers(1, 5, 100) if weighted else np.ones(100, dtype=int)
    given = weights.astype(float) if weighted else None
    expected = mean_and_deviation(np.repeat(x, weights, axis=0))
    for found in (mean_and_deviation(x, given), sparse_spread(sparse.csr_array(x), given)):
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-12)
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-12)


def test_standardised_columns() -> None:
    x = np.random.default_rng(0).normal(size=(100, 3)) * [1, 1e12, 1e-12] + [1e3, 0, 0]
    x[3, 1] = np.nan
    x = np.column_stack([x, np.full(100, 7.0)])
    z = standardised(x)
    assert z.dtype == np.float32
    assert z[3, 1] == 0
    assert (z[:, 3] == 0).all()
    known = np.arange(100) != 3
    np.testing.assert_allclose(z[known, :3].std(axis=0), 1, rtol=1e-2)
    np.testing.assert_allclose(z[known, 1].mean(), 0, atol=1e-6)


def test_what_varies() -> None:
    assert varies(np.array([0.0, 1e-300]))
    assert varies(np.array([1.0, 1.0 + 1e-9]))
    assert not varies(np.array([1.0, 1.0 + 1e-15]))
    assert not varies(np.array([3.0, 3.0]))
    assert not varies(np.zeros(4))


def test_normal_scores_know_neither_scale_nor_outliers() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 2))
    x[:7, 0] = np.nan
    expected = normal_scores(x)
    np.testing.assert_allclose(expected[:, 1].std(), 1, atol=1e-5)
    assert (expected[:7, 0] == 0).all()
    np.testing.assert_array_equal(normal_scores(1e12 * x + 1e14), expected)
    x[x > 2] *= 1e6
    np.testing.assert_array_equal(normal_scores(x), expected)


def test_normal_scores_of_weighted_rows_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    x, w = rng.integers(0, 9, (60, 2)).astype(float), rng.integers(1, 5, 60)
    repeated = normal_scores(np.repeat(x, w, axis=0))
    np.testing.assert_allclose(
        np.repeat(normal_scores(x, w.astype(float)), w, axis=0), repeated, atol=1e-6
    )
