"""Leading eigenvectors of a large symmetric operator, by block Lanczos: few products with it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from latenttree.engine import parallel
from latenttree.engine.arrays import Float32, Floats

ROWS = 32_768
"""Rows of a vector that one task works on."""

MIN_STEPS = 4
MAX_STEPS = 24

MIN_NEW = 0.01
"""Share of the image below which its new part is orthogonalised again."""

ROUNDING = 1e-7
"""Share of the largest squared length that rounding hides."""


def leading_eigenvectors(
    apply: Callable[[Float32], Float32],
    start: Float32,
    n_converged: int,
    n_kept: int,
    n_jobs: int,
    tolerance: float = 0.03,
) -> tuple[Float32, Floats]:
    """Eigenvectors `(size, n_kept)` of the largest eigenvalues of a symmetric operator, and those.

    Block Lanczos from `start` `(size, width)`, every block made orthogonal to all before it, until
    the residuals `|A v - value v|` of the first `n_converged` are below `tolerance` of their
    values. Power rounds reduce an error by `(bulk / value)` each; these reduce it as the best
    polynomial does: 12 products instead of 40 for a value 10% above the bulk.

    `steps` products with the operator, `2 size (steps width)^2` multiply-adds beside them, and
    `steps width` vectors held.
    """
    size, width = start.shape
    n_steps = max(1, min(MAX_STEPS, size // width))
    held = np.empty((size, n_steps * width), dtype=np.float32)
    small = np.zeros((n_steps * width,) * 2)
    block, _ = _orthonormal(start, n_jobs)
    for step in range(n_steps):
        before, now = step * width, (step + 1) * width
        held[:, before:now] = block
        image = apply(block)
        inner = _products(held[:, :now], image, n_jobs)
        small[:now, before:now], small[before:now, :now] = inner, inner.T
        values, vectors = np.linalg.eigh((small[:now, :now] + small[:now, :now].T) / 2)
        block, factor = _next_block(held[:, :now], image, inner, n_jobs)
        residual = np.linalg.norm(factor @ vectors[before:, -n_converged:], axis=0)
        if step + 1 >= MIN_STEPS and (residual <= tolerance * np.abs(values[-n_converged:])).all():
            break
    order = np.arange(now)[::-1][:n_kept]
    return _combined(held[:, :now], vectors[:, order], n_jobs), values[order]


def _next_block(
    held: Float32, image: Float32, inner: Floats, n_jobs: int
) -> tuple[Float32, Floats]:
    """The part of `image` that is orthogonal to `held`, orthonormal, and its factor."""
    image -= _combined(held, inner, n_jobs)
    block, factor = _orthonormal(image, n_jobs)
    if np.linalg.norm(factor, axis=1).min() > MIN_NEW * np.linalg.norm(inner, axis=0).max():
        return block, factor
    # in float32 a part that is small relative to the image is not orthogonal to what is held
    block -= _combined(held, _products(held, block, n_jobs), n_jobs)
    block, correction = _orthonormal(block, n_jobs)
    return block, correction @ factor


def _orthonormal(x: Float32, n_jobs: int) -> tuple[Float32, Floats]:
    """`q, r` with `q r = x`, by the eigenvectors of `x^T x`: two passes over x. Columns of `q` are
    shorter than one where x is zero within float32."""
    values, vectors = np.linalg.eigh(_products(x, x, n_jobs))
    roots = np.sqrt(np.maximum(values, ROUNDING * max(float(values[-1]), 1e-30)))
    return _combined(x, vectors / roots, n_jobs), roots[:, None] * vectors.T


def _products(x: Float32, y: Float32, n_jobs: int) -> Floats:
    """`x^T y`, summed over blocks of `ROWS` rows in order."""
    parts = parallel(lambda a, b: x[a:b].T @ y[a:b], len(x), n_jobs, ROWS)
    return np.sum(parts, axis=0, dtype=np.float64)


def _combined(x: Float32, coefficients: Floats, n_jobs: int) -> Float32:
    """`x @ coefficients`, by blocks of `ROWS` rows."""
    out = np.empty((len(x), coefficients.shape[1]), dtype=np.float32)
    small = coefficients.astype(np.float32)

    def work(start: int, stop: int) -> None:
        np.matmul(x[start:stop], small, out=out[start:stop])

    parallel(work, len(x), n_jobs, ROWS)
    return out
