"""EM: one loop, one extrapolation and one stopping rule, for every kind of model.

A `Problem` says what the samples, the E-step and the M-step are; the loop knows none of them. The
objective never decreases: a SQUAREM step that would lower it is replaced by an EM step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel

Floats = NDArray[np.float64]
Theta = TypeVar("Theta")
Sums = TypeVar("Sums")

GAIN_PER_TOL = 5e5
"""EM ends when the expected gain is below `tolerance * GAIN_PER_TOL` for each parameter."""

LEAST_RATIO, MOST_RATIO = 0.5, 0.95
"""Bounds of the estimated ratio of successive gains."""

TRIAL, AHEAD = 6, 6.0
"""Defaults of `Limits.trial` and `Limits.ahead`."""

PATIENCE = 3
"""Number of steps without gain on held-out samples after which EM ends."""


class Problem(Protocol[Theta, Sums]):
    """What EM maximises: parameters `theta`, and the samples behind them."""

    def expect(self, theta: Theta, /) -> tuple[float, Sums]:
        """The E-step, a pass over the samples: the objective, and expected statistics."""

    def maximise(self, sums: Sums, /) -> Theta:
        """The M-step: the parameters of largest expected objective."""

    def vector(self, theta: Theta, /) -> Floats:
        """The parameters as one vector, which is extrapolated."""

    def within(self, far: Floats, theta: Theta, /) -> Theta | None:
        """An extrapolated vector brought back to parameters near `theta`; None where it cannot be.
        May change `far` in place."""


class State(NamedTuple, Generic[Theta, Sums]):
    """Parameters, their expected statistics, and the objective."""

    theta: Theta
    sums: Sums
    value: float


class Limits(NamedTuple):
    """The stopping rule.

    max_steps : largest number of passes over the samples.
    least : EM ends when the expected gain of all further steps is at most this.
    share : after online EM, also when a pass gains less than this share of all gains, or less than
        `least`.
    ratio : of a gain to come to the one before it; None: estimated from the last gains.
    bar : what the objective must reach to be of use. Below it EM does not end by `least`, but after
        `trial` steps where it would stay below if it gained `ahead` times as much as in the last
        step (None: as much in every step that is left).
    """

    max_steps: int
    least: float
    share: float = 0.0
    ratio: float | None = None
    bar: float = -np.inf
    trial: int = TRIAL
    ahead: float | None = AHEAD

    def reached(self, gains: list[float], value: float) -> bool:
        """Whether the objective `value`, after steps with these gains, is as good as it gets, or
        too far below `bar`."""
        if value >= self.bar:
            return expected_gain(gains, self.ratio) <= self.least
        ahead = self.max_steps + 1 - len(gains) if self.ahead is None else self.ahead
        return len(gains) >= self.trial and value + ahead * gains[-1] < self.bar


@dataclass(frozen=True, eq=False)
class Maximum(Generic[Theta, Sums]):
    """Result of EM.

    Attributes
    ----------
    theta : the parameters after the last step, or those that are best for held-out samples.
    state : the last parameters whose objective is known.
    trace : the objective before each step; never decreasing.
    held_out : score of held-out samples before each step; empty without any.
    converged : False where `max_steps` were taken first.
    """

    theta: Theta
    state: State[Theta, Sums]
    trace: list[float]
    held_out: list[float]
    converged: bool


def visit(problem: Problem[Theta, Sums], theta: Theta) -> State[Theta, Sums]:
    """Parameters with their E-step."""
    value, sums = problem.expect(theta)
    return State(theta, sums, value)


def em_loop(
    problem: Problem[Theta, Sums],
    state: State[Theta, Sums],
    limits: Limits,
    *,
    accelerate: bool = True,
    held_out: Callable[[Theta], float] | None = None,
    gained: float | None = None,
) -> Maximum[Theta, Sums]:
    """EM from `state` until little more is to be gained.

    Parameters
    ----------
    accelerate : every second step is a SQUAREM step (Varadhan and Roland 2008).
    held_out : score of parameters on samples for early stopping: EM ends when it has not grown for
        `PATIENCE` steps, and the parameters of the best score are returned.
    gained : rise of the objective by online EM before `state`; None where there was none.
    """
    trace, gains, first = [state.value], list[float](), state.value
    judge = _Judge(held_out)
    converged = judge.is_over(state.theta)
    while len(trace) <= limits.max_steps and not converged:
        before, passes = state, len(trace)
        state = visit(problem, problem.maximise(before.sums))
        if accelerate and len(trace) + 2 <= limits.max_steps:
            trace.append(state.value)
            state = _squarem_step(problem, before, state)
        trace.append(state.value)
        gains.append(state.value - before.value)
        converged = judge.is_over(state.theta) or limits.reached(gains, state.value)
        if gained is not None:
            enough = max(limits.least, limits.share * (gained + state.value - first))
            converged |= gains[-1] <= enough * (len(trace) - passes)
    theta = problem.maximise(state.sums) if judge.best is None else judge.best
    return Maximum(theta, state, trace, judge.scores, converged)


def expected_gain(gains: list[float], ratio: float | None = None) -> float:
    """The sum of all gains to come if they shrink geometrically: `g r / (1 - r)`.

    `g` is the last gain and `r` is `ratio`, or the ratio of the last gain to the one before; where
    four gains are known, means of two take the place of one, since the gains of SQUAREM steps are
    irregular."""
    if gains[-1] <= 0:
        return 0.0
    if ratio is not None:
        return gains[-1] * ratio / (1 - ratio)
    if len(gains) < 2:
        return np.inf
    last, before = gains[-1], gains[-2]
    ratio = last / max(before, 1e-300)
    if len(gains) >= 4:
        last, before = sum(gains[-2:]) / 2, sum(gains[-4:-2]) / 2
        ratio = (last / max(before, 1e-300)) ** 0.5
    ratio = min(max(ratio, LEAST_RATIO), MOST_RATIO)
    return float(last * ratio / (1 - ratio))


def _squarem_step(
    problem: Problem[Theta, Sums], first: State[Theta, Sums], second: State[Theta, Sums]
) -> State[Theta, Sums]:
    """The extrapolation of three successive parameters, or the third where the objective of the
    extrapolation is below that of the second, or no parameters are near it."""
    third = problem.maximise(second.sums)
    far = np.empty_like(problem.vector(third))
    thetas = (first.theta, second.theta, third)
    if squarem(*map(problem.vector, thetas), far) > 1.0:
        theta = problem.within(far, third)
        if theta is not None:
            proposal = visit(problem, theta)
            if proposal.value >= second.value:
                return proposal
    return visit(problem, third)


@kernel
def squarem(first, second, third, out):  # type: ignore[no-untyped-def]
    """`a + 2 s (b - a) + s^2 (c - 2 b + a)` for three successive vectors a, b, c, written to `out`;
    returns the stride `s = max(1, |b - a| / |c - 2 b + a|)`. With a stride of 1 it is c."""
    step, bend = 0.0, 0.0
    for i in range(len(first)):
        step += (second[i] - first[i]) ** 2
        bend += (third[i] - 2 * second[i] + first[i]) ** 2
    stride = max(1.0, np.sqrt(step / max(bend, 1e-300)))
    for i in range(len(first)):
        x = first[i] + 2 * stride * (second[i] - first[i])
        out[i] = x + stride * stride * (third[i] - 2 * second[i] + first[i])
    return stride


class _Judge(Generic[Theta]):
    """Early stopping by held-out samples, if there are any; keeps the best parameters."""

    def __init__(self, score: Callable[[Theta], float] | None) -> None:
        self._score = score
        self.scores: list[float] = []
        self.best: Theta | None = None

    def is_over(self, theta: Theta) -> bool:
        """Whether the score of the held-out samples has not grown for `PATIENCE` steps."""
        if self._score is None:
            return False
        score = self._score(theta)
        if score > max(self.scores, default=-np.inf):
            self.best = theta
        self.scores.append(score)
        return len(self.scores) - 1 - int(np.argmax(self.scores)) >= PATIENCE
