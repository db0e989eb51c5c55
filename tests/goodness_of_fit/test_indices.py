"""SRMR, CFI and RMSEA against an example worked by hand."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.goodness_of_fit.indices import discrepancy, fit_indices

# One factor with loadings .8 .7 .6 .5; the data have 0.10 more between the last two:
#
#          f
#      /  / \  \          implied  .56 .48 .40 .42 .35 .30
#    .8 .7  .6 .5         observed .56 .48 .40 .42 .35 .40
#    x1 x2  x3 x4
LOADINGS = np.array([0.8, 0.7, 0.6, 0.5])


def example() -> tuple[np.ndarray, np.ndarray]:
    implied = np.outer(LOADINGS, LOADINGS)
    np.fill_diagonal(implied, 1.0)
    observed = implied.copy()
    observed[2, 3] = observed[3, 2] = 0.40
    return observed, implied


def test_one_factor_by_hand() -> None:
    observed, implied = example()
    # The residual matrix has 0.1 at (3, 4) alone, so tr(R P^-1) - p = 0.2 (P^-1)_34. By
    # Sherman-Morrison, P^-1 = D^-1 - D^-1 l l' D^-1 / (1 + l' D^-1 l) with D = 1 - l^2.
    noise = 1 - LOADINGS**2
    ratio = LOADINGS / noise
    inverse_34 = -ratio[2] * ratio[3] / (1 + LOADINGS @ ratio)
    # det R / det P: in the 2 x 2 block of Q = P^-1, det(I + Q E) with E the residual.
    q = np.diag(1 / noise)[2:, 2:] - np.outer(ratio, ratio)[2:, 2:] / (1 + LOADINGS @ ratio)
    determinant = (1 + 0.1 * q[0, 1]) ** 2 - 0.01 * q[0, 0] * q[1, 1]
    by_hand = 0.2 * inverse_34 - np.log(determinant)
    assert discrepancy(observed, implied) == pytest.approx(by_hand, rel=1e-9)
    found = fit_indices(observed, implied, 500, n_parameters=4)
    delta = 500 * by_hand - 2  # df = 6 - 4
    base = -500 * np.log(np.linalg.det(observed)) - 6
    assert found.srmr == pytest.approx(0.1 / np.sqrt(6))
    assert found.rmsea == pytest.approx(np.sqrt(delta / (500 * 2)))
    assert found.cfi == pytest.approx(1 - delta / base)


def test_a_perfect_fit() -> None:
    _, implied = example()
    assert fit_indices(implied, implied, 500, 4) == (0.0, 1.0, 0.0)


def test_indices_that_do_not_exist() -> None:
    observed, implied = example()
    for n, n_parameters in ((4, 4), (500, 6)):  # too few samples, no degrees of freedom
        found = fit_indices(observed, implied, n, n_parameters)
        assert found.srmr > 0
        assert np.isnan([found.cfi, found.rmsea]).all()
    singular = np.ones((4, 4))
    assert np.isnan(fit_indices(singular, implied, 500, 4)[1:]).all()


def test_noise_that_is_not_as_supposed() -> None:
    """Twelve variables, residuals of nothing: no noise of scale 1 makes so small a discrepancy."""
    implied = np.full((12, 12), 0.3) + 0.7 * np.eye(12)
    found = fit_indices(implied, implied, 500, n_parameters=12)
    assert found.srmr == 0
    assert np.isnan([found.cfi, found.rmsea]).all()
