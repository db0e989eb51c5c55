"""The EM loop on a problem of one parameter: its maximum, its steps, and when it ends."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from latenttree.refinement.em import AHEAD, PATIENCE, TRIAL, Limits, em_loop, squarem, visit

LINKED = (125.0, 18.0, 20.0, 34.0)
"""Rao's animals: cells of probability `1/2 + t/4, (1 - t)/4, (1 - t)/4, t/4`."""

BEST = (15 + np.sqrt(53809)) / 394
"""The positive root of `197 t^2 - 15 t - 68`, where the likelihood is largest."""


class Linkage:
    """EM splits the first cell into its parts `1/2` and `t/4`; a SQUAREM step may be refused."""

    def __init__(self, refuse: bool = False, mislead: bool = False) -> None:
        self.refuse, self.mislead, self.n_visits = refuse, mislead, 0

    def expect(self, theta: float) -> tuple[float, float]:
        self.n_visits += 1
        a, b, c, d = LINKED
        value = a * np.log(0.5 + theta / 4) + (b + c) * np.log((1 - theta) / 4)
        return float(value + d * np.log(theta / 4)), a * theta / (2 + theta)

    def maximise(self, sums: float) -> float:
        _, b, c, d = LINKED
        return (sums + d) / (sums + b + c + d)

    def vector(self, theta: float) -> Any:
        return np.array([theta])

    def within(self, far: Any, theta: float) -> float | None:
        if self.mislead:
            return 0.01
        return None if self.refuse else float(np.clip(far[0], 0.01, 0.99))


def run(problem: Linkage, max_steps: int = 100, least: float = 0.0, **options: Any) -> Any:
    limits = Limits(max_steps, least, bar=options.pop("bar", -np.inf))
    return em_loop(problem, visit(problem, 0.1), limits, **options)


@pytest.mark.parametrize("accelerate", [False, True])
def test_it_finds_the_maximum(accelerate: bool) -> None:
    found = run(Linkage(), accelerate=accelerate)
    assert found.theta == pytest.approx(BEST, abs=1e-7)
    assert found.converged
    assert np.diff(found.trace).min() >= -1e-12
    assert found.state.value == found.trace[-1]


@pytest.mark.parametrize("problem", [Linkage(refuse=True), Linkage(mislead=True)])
def test_an_extrapolation_that_is_no_better_is_an_em_step(problem: Linkage) -> None:
    plain = run(Linkage(), max_steps=8, accelerate=False)
    found = run(problem, max_steps=8)
    np.testing.assert_allclose(found.trace, plain.trace, rtol=1e-14)
    assert found.theta == pytest.approx(plain.theta, rel=1e-14)


def test_extrapolation_arrives_in_fewer_passes() -> None:
    plain, fast = Linkage(), Linkage()
    run(plain, least=1e-9, accelerate=False)
    run(fast, least=1e-9)
    assert fast.n_visits < plain.n_visits


def test_squarem_of_a_geometric_sequence_is_its_limit() -> None:
    limit, off = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    a, b, c = (limit + off * 0.9**t for t in range(3))
    out = np.empty(2)
    assert squarem(a, b, c, out) == pytest.approx(10.0)
    np.testing.assert_allclose(out, limit, atol=1e-10)
    assert squarem(a, b, b + 2 * (b - a), out) == 1.0  # steps that grow are not extrapolated
    np.testing.assert_allclose(out, b + 2 * (b - a))


def test_a_fit_ends_that_would_not_reach_its_threshold() -> None:
    free = run(Linkage(), accelerate=False)
    gain = free.trace[TRIAL] - free.trace[TRIAL - 1]
    reach = free.trace[TRIAL] + AHEAD * gain
    assert len(run(Linkage(), accelerate=False, bar=reach + 1e-9).trace) == TRIAL + 1
    assert len(run(Linkage(), accelerate=False, bar=reach - 1e-9).trace) > TRIAL + 1


def test_held_out_samples_decide_when_they_no_longer_gain() -> None:
    found = run(Linkage(), accelerate=False, held_out=lambda theta: -((theta - 0.5) ** 2))
    best = int(np.argmax(found.held_out))
    assert len(found.held_out) == best + 1 + PATIENCE
    assert -((found.theta - 0.5) ** 2) == found.held_out[best]
