"""Parameters of a Gaussian tree as one unconstrained vector, for extrapolation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian.layout import Linear, Regressions

Floats = NDArray[np.float64]

LARGEST_LOG = 30.0
"""Larger logarithms of noise variances come from a diverging extrapolation."""


def flat(linear: Linear) -> Floats:
    """Offsets, loadings, and for each noise covariance the log of its Cholesky diagonal squared
    (conditional variances of the coordinates in turn) and the scaled rest of the factor."""
    parts = []
    for part in linear:
        parts += [*part.offset, *(a.ravel() for a in part.loading), *map(_logs, part.noise)]
    return np.concatenate([np.empty(0), *parts])


def unflat(vector: Floats, like: Linear) -> Linear | None:
    """Parameters with the shapes of `like`; None where a value is not finite or a noise variance
    out of range."""
    at, fine = 0, bool(np.isfinite(vector).all())

    def take(size: int) -> Floats:
        nonlocal at
        at += size
        return vector[at - size : at]

    found = []
    for part in like:
        offset = tuple(take(a.size) for a in part.offset)
        loading = tuple(take(a.size).reshape(a.shape) for a in part.loading)
        noise = []
        for a in part.noise:
            logs = take(a.size if a.ndim == 1 else len(a) * (len(a) + 1) // 2)
            fine = fine and float(np.abs(logs).max(initial=0)) < LARGEST_LOG
            noise.append(_noise(logs, a) if fine else a)
        found.append(Regressions(offset, loading, tuple(noise)))
    return Linear(*found) if fine else None


def _logs(noise: Floats) -> Floats:
    """A noise covariance, or variances, without constraints."""
    if noise.ndim == 1 or len(noise) == 1:
        return np.log(noise.ravel())
    root = np.linalg.cholesky(noise)
    scale = np.diag(root)
    return np.concatenate(
        [2 * np.log(scale), (root / scale[:, None])[np.tril_indices_from(root, -1)]]
    )


def _noise(logs: Floats, like: Floats) -> Floats:
    """The inverse of `_logs`."""
    if like.ndim == 1 or len(like) == 1:
        return np.exp(logs).reshape(like.shape)
    d = len(like)
    root = np.eye(d)
    root[np.tril_indices(d, -1)] = logs[d:]
    root *= np.exp(logs[:d] / 2)[:, None]
    return np.asarray(root @ root.T)
