"""EM: the slow one's steps, an objective that never falls, fast and slow sums alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.gaussian import joint_covariance, random_case, slow_step, with_gaps

from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.distribution import NOISE_FLOOR
from latenttree.model.gaussian.layout import GaussianLayout, Linear
from latenttree.model.gaussian.model import model_in_units
from latenttree.model.gaussian.rows import Block, sample_block
from latenttree.model.gaussian.units import linear_of
from latenttree.parameters.gaussian.moments import standardisation
from latenttree.refinement.em import Limits, Maximum, em_loop, visit
from latenttree.refinement.gaussian.condensed_rows import training_blocks
from latenttree.refinement.gaussian.problem import GaussianProblem, Sums, regauged
from latenttree.refinement.gaussian.statistics import Statistics, expected_statistics
from latenttree.refinement.gaussian.vectors import flat, unflat

Units = tuple[Any, Any]


def case(seed: int, n: int, share: float, **options: Any) -> tuple[GaussianTreeModel, Any]:
    rng = np.random.default_rng(seed)
    model = random_case(rng, p=int(rng.integers(1, 8)), **options)
    return model, with_gaps(rng, model.sample(n, rng)[0], share)


def ready(model: GaussianTreeModel, X: Any) -> tuple[Linear, GaussianLayout, Units]:
    units, layout = standardisation(X), GaussianLayout.of(model)
    return linear_of(model, layout, *units), layout, units


def as_they_are(X: Any, layout: GaussianLayout, units: Units) -> list[Block]:
    return [sample_block(X, layout, *units, i, min(i + 7, len(X))) for i in range(0, len(X), 7)]


def run(
    linear: Linear, layout: GaussianLayout, blocks: list[Block], limits: Limits, **options: Any
) -> Maximum[Linear, Sums]:
    problem = GaussianProblem(layout, blocks)
    return em_loop(problem, visit(problem, problem.opened(linear)), limits, **options)


def leaves(statistics: Statistics) -> Any:
    products = (statistics.core, statistics.hung, statistics.blocks)
    return [a for some in products for part in some for a in part]


def assert_same_observed(a: GaussianTreeModel, b: GaussianTreeModel, atol: float) -> None:
    width = int(a.offsets[-1])
    (mean_a, c_a), (mean_b, c_b) = joint_covariance(a), joint_covariance(b)
    unit = np.sqrt(np.diag(c_b))[:width]
    np.testing.assert_allclose(mean_a[:width] / unit, mean_b[:width] / unit, atol=atol)
    scale = np.outer(unit, unit)
    np.testing.assert_allclose(c_a[:width, :width] / scale, c_b[:width, :width] / scale, atol=atol)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_a_step_is_the_slow_step(seed: int, share: float) -> None:
    model, X = case(seed, 40, share)
    linear, layout, units = ready(model, X)
    problem = GaussianProblem(layout, training_blocks(X, layout, *units))
    value, sums = problem.expect(linear)
    fast = model_in_units(problem.maximise(sums), layout, *units)
    np.testing.assert_allclose(
        value - (~np.isnan(X)).sum(axis=0) @ np.log(units[1]),
        model.log_likelihood(X).sum(),
        rtol=1e-9,
    )
    # a coordinate of a vector that is missing alone is imputed by both, a missing scalar left out
    assert_same_observed(fast, slow_step(model, X), atol=1e-7)


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(20))
def test_condensed_rows_give_the_sums_of_all_samples(seed: int, share: float) -> None:
    """The covariance path and the path sample by sample; few patterns of gaps, so both are used."""
    model, X = case(seed, 90, 0.0)
    gaps = np.random.default_rng(seed).random((4, X.shape[1])) < share
    gaps[0] = False
    X[gaps[np.arange(90) % 4]] = np.nan
    linear, layout, units = ready(model, X)
    condensed = training_blocks(X, layout, *units)
    fast = expected_statistics(linear, layout, condensed)
    slow = expected_statistics(linear, layout, as_they_are(X, layout, units), n_jobs=2)
    if X.shape[1] < 15:
        assert sum(len(block.ones) for block in condensed) < 90
    np.testing.assert_allclose(fast.value, slow.value, rtol=1e-10, atol=1e-7)
    for a, b in zip(leaves(fast), leaves(slow), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-7)


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_the_objective_never_falls(smoothing: float, accelerate: bool) -> None:
    for seed in range(20):
        model, X = case(seed, 60, 0.3 * (seed % 2))
        linear, layout, units = ready(model, X)
        blocks = training_blocks(X, layout, *units, smoothing=smoothing)
        found = run(linear, layout, blocks, Limits(30, 0.0), accelerate=accelerate)
        gains = np.diff(found.trace)
        assert gains.min(initial=0) > -1e-9 * abs(found.trace[-1])


def test_acceleration_ends_no_lower_and_sooner() -> None:
    plain, leaping = 0, 0
    for seed in range(4):
        model, X = case(seed, 100, 0.2, k=1, inside=0.0, width=1)
        linear, layout, units = ready(model, X)
        blocks = training_blocks(X, layout, *units, smoothing=1.0)
        slow = run(linear, layout, blocks, Limits(600, 1e-4), accelerate=False)
        fast = run(linear, layout, blocks, Limits(600, 1e-4))
        assert fast.trace[-1] > slow.trace[-1] - 0.01
        plain, leaping = plain + len(slow.trace), leaping + len(fast.trace)
    assert leaping < plain


def test_heywood_case_stays_inside() -> None:
    """A leaf that equals another: its noise would be zero, the floor holds it, nothing breaks."""
    rng = np.random.default_rng(0)
    model = random_case(rng, k=1, p=6, width=1, inside=0.0)
    X = model.sample(300, rng)[0]
    X[:, 1] = 3 * X[:, 0] - 1
    linear, layout, units = ready(model, X)
    blocks = training_blocks(X, layout, *units)
    found = run(linear, layout, blocks, Limits(200, 1e-5))
    assert np.diff(found.trace).min() > -1e-9 * abs(found.trace[-1])
    assert min(float(a.min(initial=1)) for a in found.theta.hung.noise) >= NOISE_FLOOR
    assert np.isfinite(model_in_units(found.theta, layout, *units).log_likelihood(X)).all()


def test_smoothing_is_pseudo_samples_of_independence() -> None:
    model, X = case(3, 50, 0.0, k=1)
    linear, layout, units = ready(model, X)
    with_them = training_blocks(X, layout, *units, smoothing=2.0)
    value = expected_statistics(linear, layout, with_them).value
    plain = expected_statistics(linear, layout, training_blocks(X, layout, *units)).value
    # E log p over x ~ N(0, I) in standardised units, twice
    near = model_in_units(linear, layout, np.zeros(X.shape[1]), np.ones(X.shape[1]))
    mean, covariance = joint_covariance(near)
    width = X.shape[1]
    spread, m = covariance[:width, :width], mean[:width]
    expected = -0.5 * (
        np.linalg.slogdet(2 * np.pi * spread)[1]
        + np.trace(np.linalg.inv(spread))
        + m @ np.linalg.solve(spread, m)
    )
    np.testing.assert_allclose(value - plain, 2 * expected, rtol=1e-8)


def test_vectors_round_trip() -> None:
    for seed in range(20):
        model, X = case(seed, 30, 0.0)
        linear, layout, _ = ready(model, X)
        again = unflat(flat(linear), linear)
        assert again is not None
        for a, b in zip(flat(regauged(again, layout)), flat(regauged(linear, layout)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)
    assert unflat(flat(linear) * np.nan, linear) is None
