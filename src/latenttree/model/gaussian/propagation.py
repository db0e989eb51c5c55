"""Exact Gaussian belief propagation over a block of samples.

Precisions depend only on which values are missing: they are kept by pattern, `(d, d, g)`. Means are
kept by row, `(d, r)`. Everything is measured from the model's means. A hidden node is measured in
units of its own noise (`h = T h'`, `T T^T = Psi`), so that

    h' = K parent' + N(0, I),    message up:  K^T (I + below)^-1 below K,

which is accurate where the noise is nearly zero. A node with observed coordinates is conditioned
on those and integrated over the rest.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.model.gaussian.algebra import (
    after,
    apply,
    congruence,
    inverse,
    inverse_over,
    solve,
    times,
    times_transposed,
)
from latenttree.model.gaussian.layout import GaussianLayout, Linear, Regressions, core_means
from latenttree.model.gaussian.rows import Block

LOG_2PI = float(np.log(2 * np.pi))


class Prepared(NamedTuple):
    """Parameters in the form that propagation uses.

    For each core node: mean (d,); unit T (d, d), I for observed nodes; gain K (d, d_parent), the
    loading in units of both ends; precision (d, d) and its log-determinant, of observed nodes.
    hung, blocks: regressions on the parent in its units. column_mean (D,): in the layout's order.
    """

    layout: GaussianLayout
    mean: list[Floats]
    unit: list[Floats]
    gain: list[Floats]
    precision: list[Floats]
    log_precision: list[float]
    hung: Regressions
    blocks: Regressions
    column_mean: Floats


def prepare(linear: Linear, layout: GaussianLayout) -> Prepared:
    """The parameters of a model for propagation; `O(nodes)`."""
    unit: list[Floats] = []
    gain: list[Floats] = []
    precision: list[Floats] = []
    logs = []
    for c, u in enumerate(layout.parents):
        noise, loading = linear.core.noise[c], linear.core.loading[c]
        loading = loading if u < 0 else loading @ unit[u]
        if layout.is_hidden(c):
            unit.append(_lower_root(noise))
            gain.append(loading / unit[c] if len(noise) == 1 else solve(unit[c], loading))
            precision.append(np.empty((0, 0)))
            logs.append(0.0)
        else:
            unit.append(np.eye(len(noise)))
            gain.append(loading)
            precision.append(solve(noise, np.eye(len(noise))))
            logs.append(-float(np.linalg.slogdet(noise)[1]))
    mean = core_means(linear, layout)
    hung = tuple(a @ t for a, t in zip(linear.hung.loading, unit, strict=True))
    blocks = tuple(
        a @ unit[u] for a, u in zip(linear.blocks.loading, layout.block_parents, strict=True)
    )
    return Prepared(
        layout,
        mean,
        unit,
        gain,
        precision,
        logs,
        linear.hung._replace(loading=hung),
        linear.blocks._replace(loading=blocks),
        _column_means(linear, layout, mean),
    )


def _lower_root(noise: Floats) -> Floats:
    return np.asarray(np.sqrt(noise) if len(noise) == 1 else np.linalg.cholesky(noise))


def _column_means(linear: Linear, layout: GaussianLayout, mean: list[Floats]) -> Floats:
    found = np.empty(len(layout.columns))
    for c, inner in enumerate(mean):
        if not layout.is_hidden(c):
            found[layout.own[c]] = inner
        found[layout.hung[c]] = linear.hung.offset[c] + linear.hung.loading[c] @ inner
    for i, (rows, u) in enumerate(zip(layout.block_rows, layout.block_parents, strict=True)):
        found[rows] = linear.blocks.offset[i] + linear.blocks.loading[i] @ mean[u]
    return found


# ---- up -------------------------------------------------------------------------------


@dataclass(eq=False)
class Upward:
    """The state after the upward pass, which the downward pass uses.

    deviation (D, r): known values, from the mean; 0 where missing.
    precision[c] (d, d, g), information[c] (d, r): sum of the messages from below a node.
    spread[c] (d, d, g): covariance given the parent and all below, None where all is observed.
    middle[c] (d, r): mean given all below and the parent at its mean; it moves with the parent by
    gain[c] (d, d_parent, g), None at the root and where all is observed.
    weighed[i] (d, d, kinds): inverse of a block's noise over its known values.
    The log-likelihood of a row is `quadratic` (r,) plus its share of `constant` (g,)."""

    deviation: Floats
    quadratic: Floats
    constant: Floats
    precision: list[Floats | None]
    information: list[Floats | None]
    spread: list[Floats | None]
    middle: list[Floats]
    gain: list[Floats | None]
    weighed: list[Floats] = field(default_factory=list)

    def add_message(self, c: int, precision: Floats, information: Floats) -> None:
        """Add a message to core node c, in place."""
        have, known = self.precision[c], self.information[c]
        self.precision[c] = precision if have is None else have + precision
        self.information[c] = information if known is None else known + information


def upward(model: Prepared, block: Block) -> Upward:
    """Messages from the leaves to the root. Cost `O(r D + (r + g) sum d^3)`."""
    layout, n = model.layout, model.layout.n_core
    state = Upward(
        block.values - block.spread(block.known) * np.outer(model.column_mean, block.ones),
        np.zeros(len(block.ones)),
        np.zeros(block.n_patterns),
        [None] * n,
        [None] * n,
        [None] * n,
        [np.empty(0)] * n,
        [None] * n,
    )
    for i in range(len(layout.blocks)):
        _message_from_block(model, block, i, state)
    for c in range(n - 1, -1, -1):
        _message_from_hung(model, block, c, state)
        if layout.is_hidden(c):
            _hidden_step(model, block, c, state)
        else:
            _observed_step(model, block, c, state)
        state.precision[c] = state.information[c] = None
    return state


def _message_from_hung(model: Prepared, block: Block, c: int, state: Upward) -> None:
    """The message from the coordinates hung on node c: precision `sum_j a_j a_j^T / psi_j` over the
    known ones, and information `sum_j a_j x_j / psi_j`."""
    rows = model.layout.hung[c]
    if rows.start == rows.stop:
        return
    loading, noise = model.hung.loading[c], model.hung.noise[c]
    known, x = block.known[rows], state.deviation[rows]
    weighed = loading / noise[:, None]
    d = loading.shape[1]
    outer = (weighed[:, :, None] * loading[:, None, :]).reshape(-1, d * d)
    state.add_message(c, (outer.T @ known).reshape(d, d, -1), weighed.T @ x)
    state.quadratic -= (0.5 / noise) @ x**2
    state.constant -= 0.5 * (LOG_2PI + np.log(noise)) @ known


def _message_from_block(model: Prepared, block: Block, i: int, state: Upward) -> None:
    """The message from a leaf with full noise to its parent: precision `L^T S L` and information
    `L^T S x`, with S the inverse of the noise over the known values."""
    x, kinds = state.deviation[model.layout.block_rows[i]], block.kinds[i]
    loading, noise = model.blocks.loading[i], model.blocks.noise[i]
    weighed, log_det = inverse_over(noise[:, :, None], kinds.known)
    weighed_x = apply(weighed, x, kinds.of_row)
    precision = congruence(loading, weighed)
    state.add_message(
        model.layout.block_parents[i],
        precision if precision.shape[2] == 1 else precision[:, :, kinds.of_pattern],
        loading.T @ weighed_x,
    )
    state.quadratic -= 0.5 * (x * weighed_x).sum(axis=0)
    state.constant -= 0.5 * (log_det + LOG_2PI * kinds.known.sum(axis=0))[kinds.of_pattern]
    state.weighed.append(weighed)


def _hidden_step(model: Prepared, block: Block, c: int, state: Upward) -> None:
    """Integrate a hidden node out, and send `K^T (I + below)^-1 below K` to its parent."""
    below, information = state.precision[c], state.information[c]
    assert below is not None
    assert information is not None  # a hidden node has neighbours below it
    gain, u = model.gain[c], model.layout.parents[c]
    spread, log_det = inverse(below + np.eye(len(below))[:, :, None])
    middle = apply(spread, information, block.pattern)
    state.spread[c], state.middle[c] = spread, middle
    state.quadratic += 0.5 * (information * middle).sum(axis=0)
    state.constant -= 0.5 * log_det
    if u >= 0:
        state.gain[c] = after(spread, gain)
        state.add_message(u, congruence(gain, times(spread, below)), gain.T @ middle)


def _observed_step(model: Prepared, block: Block, c: int, state: Upward) -> None:
    """With `J = P + below` and V the inverse of J over the missing coordinates: precision up
    `L^T (P - P V P) L`, information up `L^T P (x + V (information - J x))`."""
    below, information = state.precision[c], state.information[c]
    rows, u = model.layout.own[c], model.layout.parents[c]
    x, known, p = state.deviation[rows], block.known[rows], model.precision[c]
    j = p[:, :, None] if below is None else p[:, :, None] + below
    pull = -apply(j, x, block.pattern)
    state.quadratic += 0.5 * (x * pull).sum(axis=0)
    if information is not None:
        state.quadratic += (x * information).sum(axis=0)
        pull = pull + information
    state.constant += 0.5 * model.log_precision[c] - 0.5 * LOG_2PI * known.sum(axis=0)
    kept, middle = p[:, :, None], x
    if not known.all():
        spread, log_det = inverse_over(j, 1 - known)
        moved = apply(spread, pull, block.pattern)
        state.quadratic += 0.5 * (pull * moved).sum(axis=0)
        state.constant -= 0.5 * log_det
        state.spread[c], middle = spread, x + moved
        kept = kept - congruence(p, spread)
        state.gain[c] = after(spread, p @ model.gain[c])
    state.middle[c] = middle
    if u >= 0:
        state.add_message(u, congruence(model.gain[c], kept), model.gain[c].T @ (p @ middle))


# ---- down -----------------------------------------------------------------------------


class Posterior(NamedTuple):
    """Mean (d, r), covariance (d, d, g) (None: zero) and covariance with the parent of a core node
    given all known values, in the units of `Prepared`, as deviations from the model's means."""

    mean: Floats
    spread: Floats | None
    shared: Floats | None


def downward(model: Prepared, block: Block, state: Upward) -> list[Posterior]:
    """Posteriors of all core nodes, from the root down."""
    found: list[Posterior] = []
    for c, u in enumerate(model.layout.parents):
        spread, middle, gain = state.spread[c], state.middle[c], state.gain[c]
        if u < 0 or gain is None or spread is None:
            found.append(Posterior(middle, spread, None))
            continue
        above = found[u]
        mean = middle + apply(gain, above.mean, block.pattern)
        if above.spread is None:
            found.append(Posterior(mean, spread, None))
            continue
        shared = times(gain, above.spread)
        found.append(Posterior(mean, spread + times_transposed(shared, gain), shared))
    return found


class BlockPosterior(NamedTuple):
    """A block given its parent and its known values: `x = mean + on_parent (u - E[u]) + N(0,
    spread)`, matrices by kind."""

    mean: Floats  # (d, r) with the parent's posterior mean in
    on_parent: Floats  # (d, d_u, kinds)
    spread: Floats  # (d, d, kinds)


def block_posterior(
    model: Prepared, block: Block, state: Upward, i: int, parent: Posterior
) -> BlockPosterior:
    """The posterior of a block; of missing values `E = L u + Psi S (x - L u)` and
    `Cov = Psi - Psi S Psi`, known values are fixed."""
    x, kinds = state.deviation[model.layout.block_rows[i]], block.kinds[i]
    loading, noise, weighed = model.blocks.loading[i], model.blocks.noise[i], state.weighed[i]
    gap = 1 - kinds.known
    on_known = np.einsum("ia,ajk->ijk", noise, weighed) * gap[:, None]
    on_parent = loading[:, :, None] * gap[:, None] - after(on_known, loading)
    spread = (noise[:, :, None] - after(on_known, noise)) * gap[:, None] * gap
    mean = x + apply(on_known, x, kinds.of_row) + apply(on_parent, parent.mean, kinds.of_row)
    return BlockPosterior(mean, on_parent, spread)
