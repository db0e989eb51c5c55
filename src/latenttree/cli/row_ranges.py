"""Samples a range at a time, so that memory is bounded by what is written."""

from __future__ import annotations

from collections.abc import Iterator

from latenttree.data.schema.rows import Rows
from latenttree.queries.evidence import sample_ranges


def row_ranges(rows: Rows, width: int) -> Iterator[tuple[int, Rows]]:
    """The first number and the rows of ranges whose working arrays, `width` numbers a sample
    besides the samples themselves, fit in memory."""
    for start, stop in sample_ranges(rows.n_samples, width + rows.n_vars):
        codes, arrays = rows.take(start, stop), rows.arrays_at(start, stop)
        yield start, Rows(stop - start, codes, arrays=arrays, n_vars=rows.n_vars)
