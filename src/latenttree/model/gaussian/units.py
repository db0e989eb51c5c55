"""Models in the units of the data, and the same for standardised data in the layout's order."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.model.gaussian.distribution import GaussianDistribution
from latenttree.model.gaussian.layout import GaussianLayout, Linear, Regressions

Model = TypeVar("Model", bound=GaussianDistribution)


def rescaled(model: Model, centre: Floats, scale: Floats) -> Model:
    """The model of `(x - centre) / scale`, `(D,)` each."""
    p, at = model.tree.n_observed, model.offsets
    unit = [np.ones(int(d)) for d in model.dims]
    means = list(model.means)
    for v in range(p):
        here = slice(at[v], at[v + 1])
        unit[v] = scale[here]
        means[v] = (means[v] - centre[here]) / unit[v]
    loadings, noise = [], []
    for v, u in enumerate(model.parents.tolist()):
        above = unit[u] if u >= 0 else np.empty(0)
        loadings.append(model.loadings[v] / unit[v][:, None] * above)
        left = model.noise[v] / unit[v]
        noise.append(left / (unit[v] if left.ndim == 1 else unit[v][:, None]))
    return replace(model, means=tuple(means), loadings=tuple(loadings), noise=tuple(noise))


def units(model: GaussianDistribution) -> tuple[Floats, Floats]:
    """Means and deviations of all observed coordinates, `(D,)` each."""
    observed = range(model.tree.n_observed)
    variances = np.concatenate([model.variances(v) for v in observed])
    return np.concatenate(model.means[: len(observed)]), np.sqrt(variances)


def linear_of(
    model: GaussianDistribution, layout: GaussianLayout, centre: Floats, scale: Floats
) -> Linear:
    """The model of `(x - centre) / scale`, by parts."""
    near = rescaled(model, centre, scale)
    offsets = [
        near.means[v] if u < 0 else near.means[v] - near.loadings[v] @ near.means[u]
        for v, u in enumerate(near.parents.tolist())
    ]

    def some(nodes: tuple[int, ...]) -> Regressions:
        noise = (near.noise[v] for v in nodes)
        return Regressions(
            tuple(offsets[v] for v in nodes),
            tuple(near.loadings[v] for v in nodes),
            tuple(np.diag(a) if a.ndim == 1 else a for a in noise),
        )

    hung = []
    for c, leaves in enumerate(layout.leaves):
        offset = np.concatenate([np.empty(0), *(offsets[v] for v in leaves)])
        rows = [np.empty((0, layout.dim(c))), *(near.loadings[v] for v in leaves)]
        noise = np.concatenate([np.empty(0), *(near.noise[v].ravel() for v in leaves)])
        hung.append((offset, np.concatenate(rows), noise))
    return Linear(some(layout.nodes), Regressions(*zip(*hung, strict=True)), some(layout.blocks))
