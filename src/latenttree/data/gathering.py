"""Rows that are brought to this process, from wherever an engine has them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.data.row_access import stacked


@dataclass(frozen=True, eq=False)
class AnyMissing:
    """Whether any value is missing, as an array of one."""

    def start(self) -> NDArray[np.bool_]:
        """Not yet."""
        return np.zeros(1, dtype=np.bool_)

    def add(self, total: NDArray[np.bool_], chunk: Chunk, n_jobs: int) -> None:
        """Look for a negative code, or a variable that is not known."""
        rows = chunk.rows if chunk.stored is None else chunk.stored
        if total[0]:
            return
        if isinstance(rows, np.ndarray):
            total[0] = rows.dtype.kind == "i" and bool((rows < 0).any())
        else:
            total[0] = chunk.known is not None and not chunk.known.all()


@dataclass(frozen=True, eq=False)
class Gather:
    """The samples at `positions`, ascending, as chunks."""

    positions: NDArray[np.int64]

    def start(self) -> list[Chunk]:
        """None."""
        return []

    def add(self, total: list[Chunk], chunk: Chunk, n_jobs: int) -> None:
        """Copy those of a chunk."""
        low, high = np.searchsorted(self.positions, [chunk.start, chunk.stop])
        if high > low:
            total.append(chunk.take(self.positions[low:high] - chunk.start))


@dataclass(frozen=True, eq=False)
class GatherNumbers:
    """The values of a variable that is not categorical, as arrays."""

    variable: int

    def start(self) -> list[Any]:
        """None."""
        return []

    def add(self, total: list[Any], chunk: Chunk, n_jobs: int) -> None:
        """Take those of a chunk."""
        total.append(chunk.arrays[self.variable])


def joined(chunks: list[Chunk]) -> Chunk:
    """The samples of several chunks of a table, in order."""
    if len(chunks) == 1:
        return chunks[0]

    def join(name: str) -> Any:
        return stacked([getattr(chunk, name) for chunk in chunks])

    arrays = {v: stacked([chunk.arrays[v] for chunk in chunks]) for v in chunks[0].arrays}
    known = None
    if any(chunk.known is not None for chunk in chunks):
        shapes = [(len(c), c.rows.shape[1]) for c in chunks]
        parts = [
            np.ones(shape, np.bool_) if c.known is None else c.known
            for c, shape in zip(chunks, shapes, strict=True)
        ]
        known = np.concatenate(parts)
    return Chunk(join("rows"), arrays, join("weights"), join("stored"), known)
