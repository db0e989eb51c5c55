"""All pairs of features at once: one Gram product, by blocks of samples and tiles of columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from latenttree.data import Table
from latenttree.data.chunk import Chunk
from latenttree.data.storage import Features
from latenttree.engine import BLOCK, Source, blocks, parallel, single_threaded_blas
from latenttree.engine.arrays import Float32, Floats

Tile = tuple[tuple[int, int], tuple[int, int]]
Totals = tuple[Floats, ...]

TILE = 512
"""Columns of a tile, at most; fewer if the matrix is small, so that all threads have tiles."""

MIN_TILES = 12
"""Tiles along a side, unless they would be narrower than 128 columns."""


Columns = Callable[[Chunk, int], tuple[Float32, Float32]]
"""`(n, .)` columns of some samples on so many threads, and those that they are multiplied with, the
same array where all pairs are wanted; a function, or a `partial` of one, that can be pickled."""


@dataclass(frozen=True, eq=False)
class GramPass:
    """The pass: sums of products of columns, of shape `widths`; of equal columns only the tiles on
    or above the diagonal (`symmetric`).

    Products are float32 inside a block of 4,096 samples; blocks add up in float64, in the order of
    the samples, so that no precision is lost with many samples."""

    columns: Columns
    widths: tuple[int, int]
    symmetric: bool

    @cached_property
    def tiles(self) -> list[Tile]:
        """Ranges of columns on either side."""
        one, other = (list(blocks(width, _side(width))) for width in self.widths)
        return [(a, b) for a in one for b in other if a[0] <= b[0] or not self.symmetric]

    def start(self) -> Totals:
        """Zeros for each tile."""
        return tuple(np.zeros((b - a, d - c)) for (a, b), (c, d) in self.tiles)

    def add(self, total: Totals, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk, block by block."""
        with single_threaded_blas():
            for part in chunk.parts(BLOCK):
                one, other = self.columns(part, n_jobs)

                def tile(i: int, _: int, one: Any = one, other: Any = other) -> None:
                    (a, b), (c, d) = self.tiles[i]
                    np.add(total[i], one[:, a:b].T @ other[:, c:d], out=total[i])

                parallel(tile, len(self.tiles), n_jobs, 1)

    def matrix(self, total: Totals) -> Float32:
        """The tiles as one matrix; each is freed where the caller does not hold it."""
        out, tiles = np.zeros(self.widths, dtype=np.float32), [*total][::-1]
        del total
        for (a, b), (c, d) in self.tiles:
            out[a:b, c:d] = tiles.pop()
            if self.symmetric:
                out[c:d, a:b] = out[a:b, c:d].T
        return out


def gram(columns: Columns, source: Source, width: int, n_jobs: int) -> Float32:
    """Sums of products `(width, width)` over samples: n width^2 / 2 multiply-adds, 6 width^2
    bytes."""
    pass_ = GramPass(columns, (width, width), True)
    return pass_.matrix(source.run(pass_, n_jobs))


def gram_between(columns: Columns, source: Source, widths: tuple[int, int], n_jobs: int) -> Float32:
    """Sums of products, of shape `widths`, of two sets of columns."""
    pass_ = GramPass(columns, widths, False)
    return pass_.matrix(source.run(pass_, n_jobs))


def second_moments(table: Table, basis: Float32, offset: Float32, n_jobs: int) -> Float32:
    """Covariances `(p r, p r)` of the features of all pairs in r directions, where nothing is
    missing. One pass of n (p r)^2 / 2 multiply-adds."""
    columns = partial(weighted_columns, table.storage.features(basis, offset))
    sums = gram(columns, table, table.n_vars * basis.shape[1], n_jobs)
    sums /= np.float32(table.total_weight)
    return sums


def weighted_columns(features: Features, chunk: Chunk, n_jobs: int) -> tuple[Float32, Float32]:
    """`(n, p r)` features of all variables side by side, times the roots of the weights; twice."""
    z = features.weighted(chunk, n_jobs)
    flat = z.reshape(len(z), -1)
    return flat, flat


def _side(width: int) -> int:
    """Columns of a tile: a multiple of 64."""
    return min(TILE, max(128, -(-width // MIN_TILES // 64) * 64))
