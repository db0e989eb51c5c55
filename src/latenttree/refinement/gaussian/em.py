"""EM for Gaussian trees: every node is regressed on its parent, by expected products.

Each M-step estimates the hidden nodes' means and covariances freely and then normalises them to
zero and I, which leaves the likelihood unchanged. This parameter expansion takes far fewer steps
than hidden nodes held at mean zero and covariance I. The objective never decreases.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import single_threaded_blas
from latenttree.model.gaussian.algebra import at_least, root_pair, solve
from latenttree.model.gaussian.layout import GaussianLayout, Linear, Regressions, core_means
from latenttree.model.gaussian.model import NOISE_FLOOR
from latenttree.model.gaussian.rows import Block
from latenttree.refinement.gaussian.statistics import Products, Statistics, expected_statistics
from latenttree.refinement.gaussian.vectors import flat, unflat

Floats = NDArray[np.float64]
Fitted = tuple[Floats, Floats, Floats]  # offset, loading, noise

GAIN_SCALE = 1000.0
"""The tolerance is relative to at most this much log-likelihood for each parameter."""


@dataclass(frozen=True, eq=False)
class Maximum:
    """Result of EM.

    linear : the parameters after the last step.
    trace : the objective before each step, never decreasing.
    converged : whether the last gain was within the tolerance.
    """

    linear: Linear
    trace: list[float] = field(default_factory=list)
    converged: bool = False


class _EMState(NamedTuple):
    """Parameters with their E-step."""

    linear: Linear
    sums: Statistics

    @property
    def value(self) -> float:
        """The objective."""
        return self.sums.value


def run_gaussian_em(
    linear: Linear,
    layout: GaussianLayout,
    blocks: Sequence[Block],
    *,
    max_steps: int = 200,
    tolerance: float = 1e-7,
    accelerate: bool = True,
    n_parameters: int = 1,
    n_jobs: int = 1,
) -> Maximum:
    """The EM loop, at most `max_steps` E-steps.

    It stops when a step gains at most `tolerance * min(n_values, GAIN_SCALE * n_parameters)` of
    log-likelihood. With `accelerate` every second step is a SQUAREM step (Varadhan and Roland
    2008)."""
    n_values = sum(float((block.known @ block.count).sum()) for block in blocks)
    scale = min(n_values, GAIN_SCALE * n_parameters)

    def visit(at: Linear) -> _EMState:
        return _EMState(at, expected_statistics(at, layout, blocks, n_jobs))

    with single_threaded_blas():
        state = visit(regauged(floored(linear, layout), layout))
        trace, converged = [state.value], False
        while len(trace) <= max_steps and not converged:
            before = state
            state = visit(step(before.linear, layout, before.sums))
            if accelerate and len(trace) + 2 <= max_steps:
                trace.append(state.value)
                state = _squarem_step(before, state, layout, visit)
            trace.append(state.value)
            converged = state.value - before.value <= tolerance * scale
        return Maximum(step(state.linear, layout, state.sums), trace, converged)


def _squarem_step(
    first: _EMState, second: _EMState, layout: GaussianLayout, visit: Callable[[Linear], _EMState]
) -> _EMState:
    """The extrapolation of three successive parameter vectors a, b, c, or c where the
    extrapolation is less likely than b: `a + 2 s (b - a) + s^2 (c - 2 b + a)`, with
    `s = |b - a| / |c - 2 b + a|`."""
    third = step(second.linear, layout, second.sums)
    a, b, c = (flat(x) for x in (first.linear, second.linear, third))
    move, bend = b - a, c - 2 * b + a
    stride = float(np.sqrt(move @ move / max(float(bend @ bend), 1e-300)))
    extrapolated = unflat(a + 2 * stride * move + stride**2 * bend, third) if stride > 1 else None
    if extrapolated is not None:
        proposal = visit(regauged(floored(extrapolated, layout), layout))
        if proposal.value >= second.value:
            return proposal
    return visit(third)


# ---- one step -------------------------------------------------------------------------


def step(linear: Linear, layout: GaussianLayout, sums: Statistics) -> Linear:
    """The M-step: parameters of largest expected log-likelihood, with hidden nodes normalised to
    mean 0 and covariance I."""
    core = []
    for c in range(layout.n_core):
        least = NOISE_FLOOR
        if layout.is_hidden(c):  # a floor above its present noise would lower the likelihood
            least = min(NOISE_FLOOR, float(np.linalg.eigvalsh(linear.core.noise[c])[0]))
        core.append(_regression(sums.core, c, least, bool(layout.diagonal[layout.nodes[c]])))
    hung = [_coordinates(*products) for products in zip(*sums.hung, strict=True)]
    blocks = [_regression(sums.blocks, i, NOISE_FLOOR, False) for i in range(len(layout.blocks))]
    return regauged(Linear(*(_together(part) for part in (core, hung, blocks))), layout)


def _together(parts: Sequence[Fitted]) -> Regressions:
    """Regressions one by one, as one tuple for each kind of parameter."""
    return Regressions(*(tuple(part[i] for part in parts) for i in range(3)))


def _regression(sums: Products, i: int, least: float, diagonal: bool) -> Fitted:
    """Offset, loading and noise of a vector given its parent."""
    own, shared, parent = (part[i] for part in sums)
    n = float(own[0, 0])
    if not parent.size:  # the root
        offset = own[1:, 0] / n
        noise = own[1:, 1:] / n - np.outer(offset, offset)
        return offset, np.empty((len(offset), 0)), at_least(noise, least, diagonal)
    both = solve(parent, shared[1:].T).T
    noise = (own[1:, 1:] - both @ shared[1:].T) / n
    return both[:, 0], both[:, 1:], at_least(noise, least, diagonal)


def _coordinates(own: Floats, shared: Floats, parent: Floats) -> Fitted:
    """Offsets, loadings and noise of the coordinates hung on one node, each from the samples in
    which it is known."""
    if not len(own):
        return own, np.empty((0, shared.shape[1] - 1)), own
    both = solve(parent, shared[:, :, None])[:, :, 0]
    noise = (own - (both * shared).sum(axis=1)) / parent[:, 0, 0]
    return both[:, 0], both[:, 1:], np.maximum(noise, NOISE_FLOOR)


def floored(linear: Linear, layout: GaussianLayout) -> Linear:
    """The same parameters with noise of at least `NOISE_FLOOR`."""
    core = tuple(
        at_least(a, NOISE_FLOOR, bool(layout.diagonal[v]))
        for a, v in zip(linear.core.noise, layout.nodes, strict=True)
    )
    hung = tuple(np.maximum(a, NOISE_FLOOR) for a in linear.hung.noise)
    blocks = tuple(at_least(a, NOISE_FLOOR) for a in linear.blocks.noise)
    return Linear(
        linear.core._replace(noise=core),
        linear.hung._replace(noise=hung),
        linear.blocks._replace(noise=blocks),
    )


# ---- gauge ----------------------------------------------------------------------------


def regauged(linear: Linear, layout: GaussianLayout) -> Linear:
    """The same distribution with hidden nodes of mean 0 and covariance I.

    Symmetric roots rotate hidden nodes as little as possible from step to step."""
    means = core_means(linear, layout)
    roots: list[Floats | None] = []  # h = mean + root h', for hidden nodes
    core: list[Fitted] = []
    spreads: list[Floats] = []
    for c, u in enumerate(layout.parents):
        part: Fitted = tuple(x[c] for x in linear.core)  # type: ignore[assignment]
        offset, loading, noise = part if u < 0 else _on_parent(part, means[u], roots[u])
        spread = noise if u < 0 else noise + loading @ spreads[u] @ loading.T
        roots.append(None)
        if layout.is_hidden(c):
            roots[c], back = root_pair(spread)
            noise = back @ noise @ back.T
            offset, loading, noise = np.zeros(len(noise)), back @ loading, (noise + noise.T) / 2
            spread = np.eye(len(noise))
        spreads.append(spread)
        core.append((offset, loading, noise))
    hung = [_on_parent(part, means[c], roots[c]) for c, part in enumerate(_parts(linear.hung))]
    blocks = [
        _on_parent(part, means[u], roots[u])
        for part, u in zip(_parts(linear.blocks), layout.block_parents, strict=True)
    ]
    return Linear(*(_together(part) for part in (core, hung, blocks)))


def _parts(many: Regressions) -> list[Fitted]:
    """Regressions one by one, the inverse of `_together`."""
    return list(zip(*many, strict=True))


def _on_parent(part: Fitted, mean: Floats, root: Floats | None) -> Fitted:
    """A regression on `u = mean + root u'`, rewritten as one on u'."""
    offset, loading, noise = part
    if root is None:
        return part
    return offset + loading @ mean, loading @ root, noise
