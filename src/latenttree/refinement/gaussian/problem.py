"""EM of a Gaussian tree: every node is regressed on its parent, by expected products.

Each M-step estimates the hidden nodes' means and covariances freely and then normalises them to
zero and I, which leaves the likelihood unchanged. This parameter expansion takes far fewer steps
than hidden nodes held at mean zero and covariance I.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian.algebra import at_least, root_pair, solve
from latenttree.model.gaussian.distribution import NOISE_FLOOR
from latenttree.model.gaussian.layout import GaussianLayout, Linear, Regressions, core_means
from latenttree.model.gaussian.rows import Block
from latenttree.refinement.gaussian.statistics import Products, Statistics, expected_statistics
from latenttree.refinement.gaussian.vectors import flat, unflat

Floats = NDArray[np.float64]
Fitted = tuple[Floats, Floats, Floats]  # offset, loading, noise


class Sums(NamedTuple):
    """Expected products under some parameters, and the parameters."""

    linear: Linear
    products: Statistics


@dataclass(frozen=True, eq=False)
class GaussianProblem:
    """The Gaussian models of one tree and condensed samples, an `em.Problem`. The objective is the
    log-likelihood of the samples in `blocks`, pseudo-samples included."""

    layout: GaussianLayout
    blocks: Sequence[Block]
    n_jobs: int = 1

    def expect(self, theta: Linear) -> tuple[float, Sums]:
        """The objective, and the expected products of all samples."""
        found = expected_statistics(theta, self.layout, self.blocks, self.n_jobs)
        return found.value, Sums(theta, found)

    def maximise(self, sums: Sums) -> Linear:
        """The parameters of largest expected log-likelihood, with hidden nodes normalised to mean 0
        and covariance I."""
        layout, (linear, products) = self.layout, sums
        core = []
        for c in range(layout.n_core):
            least = NOISE_FLOOR
            if layout.is_hidden(c):  # a floor above its present noise would lower the likelihood
                least = min(NOISE_FLOOR, float(np.linalg.eigvalsh(linear.core.noise[c])[0]))
            diagonal = bool(layout.diagonal[layout.nodes[c]])
            core.append(_regression(products.core, c, least, diagonal))
        hung = [_coordinates(*part) for part in zip(*products.hung, strict=True)]
        blocks = [
            _regression(products.blocks, i, NOISE_FLOOR, False) for i in range(len(layout.blocks))
        ]
        return regauged(Linear(*(_together(part) for part in (core, hung, blocks))), layout)

    def vector(self, theta: Linear) -> Floats:
        """Parameters without constraints, see `vectors.flat`."""
        return flat(theta)

    def within(self, far: Floats, theta: Linear) -> Linear | None:
        """The parameters of a vector; None where its numbers are out of range."""
        found = unflat(far, theta)
        return None if found is None else self.opened(found)

    def opened(self, linear: Linear) -> Linear:
        """The same parameters with noise of at least `NOISE_FLOOR`, hidden nodes normalised."""
        return regauged(_floored(linear, self.layout), self.layout)


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


def _floored(linear: Linear, layout: GaussianLayout) -> Linear:
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
