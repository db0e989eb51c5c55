"""All pairs of features at once: one Gram product, by blocks of samples and tiles of columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import BLOCK, blocks, parallel, single_threaded_blas

TILE = 512
"""Columns of a tile, at most; fewer if the matrix is small, so that all threads have tiles."""

MIN_TILES = 12
"""Tiles along a side, unless they would be narrower than 128 columns."""


def gram(
    chunk: Callable[[int, int], NDArray[np.float32]],
    n_samples: int,
    width: int,
    n_jobs: int,
) -> NDArray[np.float32]:
    """Sums of products `(width, width)` of features over samples.

    `chunk(start, stop)` gives the features of those samples as `(stop - start, width)`. Products
    are float32 inside a block of 4,096 samples; blocks add up in float64, in the order of the
    samples, so that no precision is lost with many samples. Only tiles on or above the diagonal
    are computed: n width^2 / 2 multiply-adds, 6 width^2 bytes.
    """
    side = _side(width)
    tiles = [(a, b) for a in blocks(width, side) for b in blocks(width, side) if a[0] <= b[0]]
    sums: list[Any] = [0.0] * len(tiles)
    with single_threaded_blas():
        for start, stop in blocks(n_samples, BLOCK):
            z = chunk(start, stop)

            def tile(i: int, _: int, z: NDArray[np.float32] = z) -> None:
                (a, b), (c, d) = tiles[i]
                sums[i] = _added(sums[i], z[:, a:b].T @ z[:, c:d])

            parallel(tile, len(tiles), n_jobs, 1)
    second = np.zeros((width, width), dtype=np.float32)
    for i, ((a, b), (c, d)) in enumerate(tiles):
        second[a:b, c:d] = sums[i]
        second[c:d, a:b] = second[a:b, c:d].T
        sums[i] = 0.0  # frees its memory
    return second


def _side(width: int) -> int:
    """Columns of a tile: a multiple of 64."""
    return min(TILE, max(128, -(-width // MIN_TILES // 64) * 64))


def _added(total: Any, block: NDArray[np.float32]) -> Any:
    """`total + block` in float64, in place but for the first block."""
    if isinstance(total, float):
        return block.astype(np.float64)
    total += block
    return total


def gram_between(
    chunk: Callable[[int, int], tuple[NDArray[np.float32], NDArray[np.float32]]],
    n_samples: int,
    widths: tuple[int, int],
    n_jobs: int,
) -> NDArray[np.float32]:
    """Sums of products, of shape `widths`, of two sets of features, which `chunk(start, stop)`
    gives."""
    one, other = map(_side, widths)
    tiles = [(a, b) for a in blocks(widths[0], one) for b in blocks(widths[1], other)]
    sums: list[Any] = [0.0] * len(tiles)
    with single_threaded_blas():
        for start, stop in blocks(n_samples, BLOCK):
            x, y = chunk(start, stop)

            def tile(i: int, _: int, x: Any = x, y: Any = y) -> None:
                (a, b), (c, d) = tiles[i]
                sums[i] = _added(sums[i], x[:, a:b].T @ y[:, c:d])

            parallel(tile, len(tiles), n_jobs, 1)
    products = np.zeros(widths, dtype=np.float32)
    for ((a, b), (c, d)), total in zip(tiles, sums, strict=True):
        products[a:b, c:d] = total
    return products
