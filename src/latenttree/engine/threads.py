"""Cut work into fixed pieces and run them on threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import wait
from itertools import count
from typing import Any

import numpy as np

from latenttree.engine.pools import helpers, inside, single_threaded_blas, taking_part
from latenttree.errors import DataError, Option, Text

__all__ = ["BLOCK", "blocks", "parallel", "resolve_jobs", "single_threaded_blas"]

BLOCK = 4096
"""Samples in a block; partial sums of floats end here, whatever the size of a chunk."""


def resolve_jobs(n_jobs: int | None) -> int:
    """Threads to use: all cores for None or -1, all but `m - 1` for `-m`, as joblib counts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None or n_jobs == -1:
        return cores
    if n_jobs == 0 or not isinstance(n_jobs, (int, np.integer)):
        raise DataError(
            Text(Option("n_jobs", n_jobs)),
            "give a number of threads, or None for all cores",
            value=n_jobs,
            option="n_jobs",
        )
    return int(max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs)


def blocks(n: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Ranges `(start, stop)` that cut `0..n` every `size`."""
    for start in range(0, n, size):
        yield start, min(start + size, n)


def parallel(
    work: Callable[[int, int], Any], n_items: int, n_jobs: int, piece: int | None = None
) -> list[Any]:
    """`[work(start, stop), ...]` over ranges of `piece` items, in order; kernels must release the
    GIL.

    The caller works too, beside `n_jobs - 1` threads that are kept for the next call. A call from
    inside a piece runs on the thread of that piece. After an exception, or Ctrl-C, no further piece
    begins, and the exception is raised here when those that had begun are done."""
    piece = piece or max(1, -(-n_items // 64))
    ranges = list(blocks(n_items, piece))
    if n_jobs == 1 or len(ranges) <= 1 or inside():
        return [work(start, stop) for start, stop in ranges]
    job = _Job(work, ranges)
    others = helpers(job.run, min(n_jobs, len(ranges)) - 1)
    try:
        job.run()
    except BaseException as error:  # Ctrl-C between two pieces
        job.fail(len(ranges), error)
    finally:
        _join(job, others)
    job.check()
    return job.results


class _Job:
    """Pieces that threads take one after the other."""

    def __init__(self, work: Callable[[int, int], Any], ranges: list[tuple[int, int]]) -> None:
        self.results: list[Any] = [None] * len(ranges)
        self._work, self._ranges = work, ranges
        self._next = count()  # one step of it holds the GIL: no piece is taken twice
        self._failures: list[tuple[int, BaseException]] = []

    def run(self) -> None:
        """Work until there are no more pieces, or one has failed."""
        with taking_part():
            while not self._failures and (i := next(self._next)) < len(self._ranges):
                try:
                    self.results[i] = self._work(*self._ranges[i])
                except BaseException as error:
                    self.fail(i, error)

    def fail(self, i: int, error: BaseException) -> None:
        """Remember that piece i failed; no further piece begins."""
        self._failures.append((i, error))

    def check(self) -> None:
        """Raise the error of the first piece that failed."""
        if self._failures:
            raise min(self._failures, key=lambda failure: failure[0])[1]


def _join(job: _Job, others: list[Any]) -> None:
    """Wait for the threads that have begun; they may write where the caller reads."""
    begun = [future for future in others if not future.cancel()]
    try:
        wait(begun)
    except BaseException as error:
        job.fail(len(job.results), error)
        wait(begun)
