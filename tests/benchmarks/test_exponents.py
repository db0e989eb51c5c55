"""Exponents of time: the fit, its error, and when one is worse."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.exponents import Exponent, fit_exponent, is_worse, worse_than_stored


def test_a_power_law_gives_its_exponent() -> None:
    sizes = [10, 20, 40, 80]
    found = fit_exponent(sizes, [3e-3 * n**1.7 for n in sizes])
    assert found.slope == pytest.approx(1.7, abs=1e-12)
    assert found.factor == pytest.approx(3e-3, rel=1e-9)
    assert found.error < 1e-12


def test_the_error_of_an_exponent_agrees_with_its_spread() -> None:
    """Noise of 5% on five sizes, 2,000 times: the slopes spread as their error says.

    The mean of the squared errors is unbiased for the variance; both have some 3% noise.
    """
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 4, 8, 16.0])
    found = [
        fit_exponent(sizes.tolist(), (sizes**2 * np.exp(rng.normal(0, 0.05, 5))).tolist())
        for _ in range(2_000)
    ]
    spread = np.std([f.slope for f in found])
    stated = math.sqrt(np.mean([f.error**2 for f in found]))
    assert np.mean([f.slope for f in found]) == pytest.approx(2.0, abs=5 * 0.02 / math.sqrt(2_000))
    assert stated == pytest.approx(spread, rel=0.15)


def test_one_size_has_no_exponent() -> None:
    with pytest.raises(ValueError, match="needs two"):
        fit_exponent([5, 5], [1.0, 2.0])


@pytest.mark.parametrize(
    ("new", "stored", "worse"),
    [
        ((1.30, 0.02), (1.00, 0.02), True),  # 0.3 beyond 2 sqrt(2) 0.03
        ((1.08, 0.01), (1.00, 0.01), False),  # below 2 sqrt(2) 0.03 = 0.085
        ((1.30, 0.20), (1.00, 0.02), False),  # within its own error
        ((0.70, 0.01), (1.00, 0.01), False),  # better
    ],
)
def test_worse_is_more_than_both_errors(
    new: tuple[float, float], stored: tuple[float, float], worse: bool
) -> None:
    assert is_worse(Exponent(*new, 1.0), Exponent(*stored, 1.0)) is worse


def test_a_slower_machine_is_not_worse_but_growth_is() -> None:
    sizes = [10, 20, 40, 80]
    stored = {"p": fit_exponent(sizes, [n**2 for n in sizes])._asdict()}
    slower = {"p": fit_exponent(sizes, [50 * n**2 for n in sizes])._asdict()}
    cubic = {"p": fit_exponent(sizes, [1e-3 * n**3 for n in sizes])._asdict()}
    assert worse_than_stored(slower, stored) == []
    assert worse_than_stored(cubic, stored)[0].startswith("p: time grows with exponent 3.00")
    assert worse_than_stored(cubic, {}) == []
