"""Small linear algebra against NumPy and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.reference.entries import entry

from latenttree.structure import small_matrices

invert = entry(small_matrices.invert)
step = entry(small_matrices.nonnegative_step)

# Matrices of up to seven rows with condition below 1e6.
ROUNDING = 1e-9


@pytest.mark.parametrize("m", [1, 2, 7])
def test_inverse_and_determinant(m: int) -> None:
    x = np.random.default_rng(m).standard_normal((m, 2 * m))
    a, out = x @ x.T, np.empty((m, m))
    assert invert(a, out) == pytest.approx(np.linalg.slogdet(a)[1], abs=ROUNDING)
    np.testing.assert_allclose(out, np.linalg.inv(a), rtol=1e-6)
    assert np.isnan(invert(-a, out))


def test_a_step_inside_is_that_of_newton() -> None:
    rng = np.random.default_rng(0)
    for k in (1, 3, 6):
        a = rng.standard_normal((k, 2 * k))
        information, x = a @ a.T, rng.uniform(1.0, 2.0, k)
        gradient = 0.01 * rng.standard_normal(k)
        expected = x + np.linalg.solve(information, gradient)
        assert (expected > 0).all()
        # the diagonal is raised by 1e-9 of itself
        np.testing.assert_allclose(step(information, gradient, x), expected, rtol=1e-6)


def test_one_negative_entry_is_held_at_zero() -> None:
    """With a single bound active the step is the exact constrained optimum."""
    rng = np.random.default_rng(1)
    n_bound = 0
    for _ in range(50):
        a = rng.standard_normal((4, 12))
        information, x = a @ a.T, rng.uniform(0.0, 0.5, 4)
        gradient = rng.standard_normal(4) * 3
        found = step(information, gradient, x)
        assert (found >= 0).all()
        if (found == 0).sum() != 1:
            continue
        n_bound += 1
        best = minimize(
            lambda y, x=x, h=information, g=gradient: (y - x) @ h @ (y - x) / 2 - g @ (y - x),
            found + 0.1,
            bounds=[(0, None)] * 4,
            method="L-BFGS-B",
            options={"ftol": 1e-15, "gtol": 1e-10},
        )
        np.testing.assert_allclose(found, best.x, atol=1e-5)  # that of L-BFGS
    assert n_bound > 5


def test_a_singular_matrix_leaves_x() -> None:
    x = np.array([0.3, 0.4])
    np.testing.assert_array_equal(step(-np.eye(2), np.ones(2), x), x)
