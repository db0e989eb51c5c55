"""Support of edges: posteriors calibrated on draws, learned from a tree's own edges."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.structure.edge_evidence import EdgeTests
from latenttree.structure.support import NULL_MODES, Mixture, fit_mixture, fit_support


def posterior_real(
    length: np.ndarray, error: np.ndarray, choices: int, prior: tuple[float, float]
) -> np.ndarray:
    return fit_mixture(length, error, choices, prior).posterior(length, error)


Edge = tuple[int, int]
Test = tuple[float, ...]  # length, standard error and, if not infinite, dependence


def as_tests(tests: dict[Edge, Test]) -> EdgeTests:
    rows = np.array([(*test, np.inf)[:3] for test in tests.values()]).reshape(-1, 3)
    ends = np.array(list(tests), dtype=np.int64).reshape(-1, 2)
    return EdgeTests(np.arange(len(tests)), ends, *rows.T)


def supports(
    tests: dict[Edge, Test], n_observed: int, learned: dict[Edge, Test] | None = None
) -> dict[Edge, float]:
    """Support by edge, from a model of the same edges or of those `learned`."""
    model = fit_support(as_tests(learned or tests), n_observed)
    return dict(zip(tests, model.supports(as_tests(tests)).tolist(), strict=True))


def drawn_posteriors(
    share: float, choices: int, prior: tuple[float, float]
) -> tuple[np.ndarray, np.ndarray]:
    """Posteriors and truth of 100 trees with 40 edges each: a `share` is real, about 0.5 long,
    the others the largest of `choices` noises; errors are around 0.1."""
    rng = np.random.default_rng(0)
    posterior, truth = [], []
    for _ in range(100):
        error = np.exp(rng.normal(np.log(0.1), 0.3, 40))
        real = rng.random(40) < share
        long = np.exp(rng.normal(np.log(0.5), 0.4, 40)) + error * rng.standard_normal(40)
        noise = error * np.abs(rng.standard_normal((40, choices))).max(axis=1)
        length = np.where(real, np.maximum(long, 0.0), noise)
        posterior.append(posterior_real(length, error, choices, prior))
        truth.append(real)
    return np.concatenate(posterior), np.concatenate(truth)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.2, 0.5, 0.8])
@pytest.mark.parametrize(("choices", "prior"), [(2, (1.0, 1.0)), (1, (4.0, 0.2))])
def test_posteriors_are_calibrated(share: float, choices: int, prior: tuple[float, float]) -> None:
    """4,000 draws: shares have standard errors below 0.008. Beyond four of those, 0.03 is left
    for a mixture whose weights are learned from 40 edges at a time."""
    posterior, truth = drawn_posteriors(share, choices, prior)
    assert abs(posterior.mean() - truth.mean()) < 4 * 0.008 + 0.03
    sure = posterior > 0.9
    assert truth[sure].mean() > 0.95
    assert truth[posterior < 0.1].mean() < 0.15
    # the best possible rule, which knows the mixture, is right in 93% to 97% of these draws
    assert ((posterior >= 0.5) == truth).mean() > 0.92


def test_posteriors_rise_with_length_and_fall_with_error() -> None:
    rng = np.random.default_rng(0)
    length = np.sort(np.concatenate([np.abs(rng.normal(0, 0.1, 20)), rng.uniform(0.5, 1.0, 20)]))
    posterior = posterior_real(length, np.full(40, 0.1), 2, (1.0, 1.0))
    # below one standard error a length says nothing, so only what is above it is ordered
    assert (np.diff(posterior[length > 0.1]) >= -1e-9).all()
    assert posterior[-1] > 0.99
    assert posterior[0] < 0.2


@pytest.mark.parametrize("scale", [0.1, 0.01, 0.001])
def test_an_edge_of_length_zero_is_not_real(scale: float) -> None:
    """Fits hold lengths at zero, so a polytomy shows as edges of length exactly zero."""
    error = scale * np.geomspace(1, 5, 17)
    assert posterior_real(np.zeros(17), error, 2, (1.0, 1.0)).max() < 0.5


def test_a_longer_edge_is_never_less_real() -> None:
    length = np.concatenate([np.zeros(5), np.linspace(0, 1.0, 41)])
    posterior = posterior_real(length, np.full(46, 0.1), 2, (1.0, 1.0))
    assert (np.diff(posterior) >= -1e-9).all()


def test_all_edges_real_or_none() -> None:
    error = np.full(30, 0.05)
    rng = np.random.default_rng(1)
    assert posterior_real(rng.uniform(0.5, 1.0, 30), error, 2, (1.0, 1.0)).min() > 0.99
    noise = 0.05 * np.abs(rng.standard_normal((30, 2))).max(axis=1)
    assert np.median(posterior_real(noise, error, 2, (1.0, 1.0))) < 0.3


@pytest.mark.parametrize("m", [1, 2, 3])
def test_a_few_edges_are_enough(m: int) -> None:
    clear = posterior_real(np.full(m, 0.5), np.full(m, 0.02), 2, (1.0, 1.0))
    assert (clear > 0.95).all()
    short = posterior_real(np.full(m, 0.002), np.full(m, 0.02), 2, (1.0, 1.0))
    assert (short < 0.5).all()


def test_extreme_errors_stay_probabilities() -> None:
    length = np.array([0.0, 1e-12, 1.0, 50.0, 0.5, 1e-3])
    error = np.array([0.0, 1e-15, 1e6, 1e-12, np.inf, 1e-3])
    finite = np.isfinite(error)
    posterior = posterior_real(length[finite], error[finite], 2, (1.0, 1.0))
    assert ((posterior >= 0) & (posterior <= 1)).all()


def test_pendant_edges_stay_unless_shown_to_be_short() -> None:
    """Nine pendant edges of 0.5 and one that is short: contracted only with a small error."""
    sure = {(i, 20): (0.5, 0.02) for i in range(9)}
    for error, stays in ((0.01, False), (0.5, True)):
        found = supports({**sure, (9, 20): (0.001, error)}, n_observed=10)
        assert (found[(9, 20)] >= 0.5) is stays
        assert min(found[e] for e in sure) > 0.9


def test_internal_and_pendant_edges_are_two_populations() -> None:
    """All pendant edges are long, all internal ones noise: each kind is judged by its own."""
    pendant = {(i, 10): (0.5, 0.05) for i in range(8)}
    internal = {(10, 11 + i): (0.02 + 0.01 * i, 0.05) for i in range(6)}
    found = supports(pendant | internal, n_observed=10)
    assert min(found[e] for e in pendant) > 0.9
    assert max(found[e] for e in internal) < 0.5


def test_no_edges_no_support() -> None:
    assert supports({}, 4) == {}


@pytest.mark.parametrize("choices", [1, 2])
def test_the_null_is_flat_up_to_its_mode(choices: int) -> None:
    """The largest of `choices` half-normals; below its mode a smaller z is no more real."""
    mixture = Mixture(0.5, 0.0, 0.5, choices)
    rng = np.random.default_rng(0)
    largest = np.abs(rng.standard_normal((200_000, choices))).max(axis=1)
    height, bins = np.histogram(largest, 40, (0, 4))
    # the mode to a bin of 0.1 and its neighbours, where the density is flat
    assert abs(bins[height.argmax()] + 0.05 - NULL_MODES[choices]) < 0.25
    low = mixture.posterior(np.linspace(0, 0.1 * NULL_MODES[choices], 5), np.full(5, 0.1))
    assert (np.diff(low) >= 0).all()
    assert low.max() < 0.01, "edges of about 1 do not show as one of 0.08 +- 0.1"


def test_a_mixture_of_thousands_is_that_of_a_part() -> None:
    """Only 1,000 edges are used, evenly over z: shares agree to their standard error of 0.015."""
    rng = np.random.default_rng(0)
    error = np.full(4000, 0.1)
    real = rng.random(4000) < 0.6
    length = np.where(real, rng.uniform(0.4, 0.8, 4000), 0.1 * np.abs(rng.standard_normal(4000)))
    assert fit_mixture(length, error, 1, (1.0, 1.0)).share == pytest.approx(0.6, abs=0.06)


def test_an_edge_whose_sides_share_nothing_has_support_zero() -> None:
    """Less correlation than the best noise between two sides (1), whatever the length."""
    tests = {(i, 10): (0.5, 0.02) for i in range(8)}
    tests |= {(10, 11): (5.0, 0.1, 0.9), (10, 12): (5.0, 0.1, 1.1)}
    found = supports(tests, n_observed=10)
    assert found[(10, 11)] == 0.0
    assert found[(10, 12)] > 0.9


def test_a_model_of_some_edges_applies_to_others() -> None:
    learned = {(i, 10): (0.5, 0.05) for i in range(8)}
    learned |= {(10, 11 + i): (0.4, 0.05) for i in range(6)}
    found = supports({(10, 20): (0.4, 0.05)}, 10, learned)
    assert found[(10, 20)] > 0.9
