"""One pair of variables from its samples: whitening, determinant, influence function."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """The signed determinant, its relative standard error, the kurtosis ratio, and whether the
    weakest canonical correlation is beyond three standard errors."""

    determinant: float
    error: float
    kurtosis: float
    is_clear: bool


def whitened(z: Floats) -> Floats:
    """Features of mean zero and unit covariance, by the Cholesky root."""
    z = z - z.mean(axis=0)
    root = np.linalg.cholesky(z.T @ z / len(z))
    return np.asarray(np.linalg.solve(root, z.T).T)


def pair(one: Floats, other: Floats) -> Pair:
    """With `C = E[z_a z_b^T]`: `det C`; the standard deviation of the influence on its logarithm,
    `z_b^T C^-1 z_a - (|z_a|^2 + |z_b|^2) / 2`, over root n; and
    `E[|z_a|^2 |z_b|^2] / (r^2 + 2 |C|^2)`, at least 1."""
    a, b = whitened(one), whitened(other)
    n, r = a.shape
    c = a.T @ b / n
    influence = np.einsum("ni,ij,nj->n", b, np.linalg.inv(c), a)
    influence -= ((a**2).sum(axis=1) + (b**2).sum(axis=1)) / 2
    fourth = ((a**2).sum(axis=1) * (b**2).sum(axis=1)).mean()
    weakest = np.linalg.svd(c, compute_uv=False)[-1]
    return Pair(
        float(np.linalg.det(c)),
        float(influence.std() / np.sqrt(n)),
        max(float(fourth / (r**2 + 2 * (c**2).sum())), 1.0),
        bool(weakest * np.sqrt(n) >= 3.5),
    )
