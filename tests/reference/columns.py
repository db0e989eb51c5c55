"""Columns of numbers that are multiplied as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk
from latenttree.model.samples import InMemory
from latenttree.moments.gram import gram


def as_they_are(chunk: Chunk, n_jobs: int) -> tuple[Any, Any]:
    """The rows of a chunk, (n, width), twice."""
    return chunk.rows, chunk.rows


def gram_of(x: NDArray[np.float32], n_jobs: int) -> NDArray[np.float32]:
    """`gram` of the columns of x."""
    return gram(as_they_are, InMemory([Chunk(x)]), x.shape[1], n_jobs)
