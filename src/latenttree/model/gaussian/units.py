"""Models in the units of the data, and the same for standardised data in the layout's order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian.layout import GaussianLayout, Linear, Regressions, core_means
from latenttree.model.gaussian.model import GaussianTreeModel

Floats = NDArray[np.float64]


def rescaled(model: GaussianTreeModel, centre: Floats, scale: Floats) -> GaussianTreeModel:
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
    return GaussianTreeModel(model.tree, model.root, tuple(means), tuple(loadings), tuple(noise))


def units(model: GaussianTreeModel) -> tuple[Floats, Floats]:
    """Means and deviations of all observed coordinates, `(D,)` each."""
    observed = range(model.tree.n_observed)
    variances = np.concatenate([model.variances(v) for v in observed])
    return np.concatenate(model.means[: len(observed)]), np.sqrt(variances)


def linear_of(
    model: GaussianTreeModel, layout: GaussianLayout, centre: Floats, scale: Floats
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


def model_in_units(
    linear: Linear, layout: GaussianLayout, centre: Floats, scale: Floats
) -> GaussianTreeModel:
    """The model in the units of the data; hidden means are zero again."""
    n = layout.tree.n_nodes
    parts: list[Any] = [None] * n  # mean, loading, noise
    inner = core_means(linear, layout)
    for c, v in enumerate(layout.nodes):
        mean = np.zeros(layout.dim(c)) if layout.is_hidden(c) else inner[c]
        parts[v] = mean, linear.core.loading[c], linear.core.noise[c]
        offset, loading, noise = (part[c] for part in linear.hung)
        hung_mean, at = offset + loading @ inner[c], 0
        for leaf in layout.leaves[c]:
            rows = slice(at, at + int(layout.dims[leaf]))
            parts[leaf] = hung_mean[rows], loading[rows], noise[rows]
            at = rows.stop
    for i, (v, u) in enumerate(zip(layout.blocks, layout.block_parents, strict=True)):
        offset, loading, noise = (part[i] for part in linear.blocks)
        parts[v] = offset + loading @ inner[u], loading, noise
    noises = [_stored(part[2], bool(layout.diagonal[v])) for v, part in enumerate(parts)]
    near = GaussianTreeModel(
        layout.tree,
        layout.root,
        tuple(part[0] for part in parts),
        tuple(part[1] for part in parts),
        tuple(noises),
    )
    return rescaled(near, -centre / scale, 1 / scale)


def _stored(noise: Floats, diagonal: bool) -> Floats:
    """A variance as a matrix, wider diagonal noise as its diagonal."""
    if len(noise) == 1:
        return noise.reshape(1, 1)
    return np.diag(noise) if diagonal and noise.ndim == 2 else noise
