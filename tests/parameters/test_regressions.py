"""Regressions from triplets of views: predictors of states, joints, simplex, alignment."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.parameters.regressions import (
    TripletFactors,
    align,
    balanced,
    joint_states,
    project_simplex,
    state_predictors,
)


def random_triplet(k: int, seed: int) -> TripletFactors:
    """One hidden variable with three whitened views: `E[z] = 0` and `E[z z^T] = I`.

    Factors are `(1, z)` with `sum_j w_j z_j = 0` and `sum_j w_j z_j z_j^T < I`."""
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet(np.full(k, 5.0))
    factors = np.ones((1, 3, k, k))
    for view in range(3):
        z = rng.normal(size=(k - 1, k))
        z -= (z @ weights)[:, None]
        top = np.linalg.eigvalsh((z * weights) @ z.T)[-1]
        factors[0, view, 1:] = z * np.sqrt(0.8 / top)
    return TripletFactors(weights[None], factors, 1e8)


@pytest.mark.parametrize("k", [2, 3, 4])
@pytest.mark.parametrize("without", [-1, 0, 1, 2])
def test_predictors_take_moments_with_views_to_moments_with_states(k: int, without: int) -> None:
    """`E[x y^T]` of any x that is independent of the views given h, to `E[x 1(h = j)]`."""
    triplet = random_triplet(k, 10 * k + without)
    weights, factors = triplet.weights[0], triplet.factors[0]
    given_h = np.random.default_rng(k).normal(size=(5, k))  # E[x | h]
    with_views = np.einsum("dj,j,saj->dsa", given_h, weights, factors)
    branch = np.array([[7, 8, 9]])
    left_out = np.array([-1 if without < 0 else branch[0, without]])
    predictor = state_predictors(triplet, branch, np.array([0]), left_out)[0]
    if without >= 0:
        assert (predictor[:, without] == 0).all()
    found = np.einsum("dsa,jsa->dj", with_views, predictor)
    np.testing.assert_allclose(found, given_h * weights, atol=1e-8)


def test_joint_states_of_two_nodes_from_moments_of_their_views() -> None:
    one, other = random_triplet(3, 0), random_triplet(3, 1)
    joint = np.random.default_rng(2).dirichlet(np.ones(9)).reshape(3, 3)
    cross = np.einsum("saj,jl,tbl->satb", one.factors[0], joint, other.factors[0])[None]
    branch, nowhere = np.array([[7, 8, 9]]), np.array([-1])
    first, second = (state_predictors(t, branch, np.array([0]), nowhere) for t in (one, other))
    np.testing.assert_allclose(joint_states(first, second, cross)[0], joint, atol=1e-8)


def test_reordered_states_of_some_triplets() -> None:
    triplet = random_triplet(3, 0)
    order = np.array([[2, 0, 1]])
    new = triplet.reordered(np.array([0]), order)
    np.testing.assert_array_equal(new.weights[0], triplet.weights[0][order[0]])
    np.testing.assert_array_equal(new.factors[0], triplet.factors[0][:, :, order[0]])


def test_projection_onto_the_simplex_is_the_nearest_point() -> None:
    rng = np.random.default_rng(0)
    columns = rng.normal(size=(6, 40))
    found = project_simplex(columns)
    assert (found >= 0).all()
    np.testing.assert_allclose(found.sum(axis=0), 1, atol=1e-12)
    others = rng.dirichlet(np.ones(6), size=2000).T
    nearest = ((columns[:, :, None] - others[:, None]) ** 2).sum(axis=0).min(axis=1)
    assert (((columns - found) ** 2).sum(axis=0) <= nearest).all()
    np.testing.assert_allclose(project_simplex(found), found, atol=1e-15)


def test_a_joint_is_brought_to_its_marginals() -> None:
    rng = np.random.default_rng(0)
    rows, columns = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))
    joint = np.outer(rows, columns) + 0.01 * rng.normal(size=(4, 4))
    found = balanced(joint, rows, columns)
    assert (found > 0).all()
    np.testing.assert_allclose(found.sum(axis=1), rows, atol=1e-6)
    np.testing.assert_allclose(found.sum(axis=0), columns, atol=1e-6)


def test_a_joint_without_a_positive_entry_in_a_row_or_at_all() -> None:
    rows = columns = np.array([0.2, 0.3, 0.5])
    empty_row = np.array([[-0.1, -0.1, 0.0], [0.1, 0.1, 0.1], [0.2, 0.2, 0.4]])
    for joint in (empty_row, empty_row.T, -np.ones((3, 3))):
        found = balanced(joint, rows, columns)
        assert np.isfinite(found).all()
        assert (found > 0).all()
        np.testing.assert_allclose(found.sum(), 1)
    np.testing.assert_allclose(balanced(-np.ones((3, 3)), rows, columns), np.outer(rows, columns))


def test_labels_of_two_decompositions_are_matched_by_assignment() -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        k = int(rng.integers(2, 8))
        order = rng.permutation(k)
        joint = np.zeros((k, k))
        joint[np.arange(k), order] = rng.dirichlet(np.full(k, 5.0))
        noisy = joint + 1e-3 * rng.normal(size=(k, k))
        np.testing.assert_array_equal(align(noisy[None]), order[None])
