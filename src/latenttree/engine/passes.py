"""Cut work into fixed pieces and run them on threads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from latenttree.errors import DataError

BLOCK = 4096
"""Samples in a block; sums of floats are cut here whatever the size of a chunk."""


def resolve_jobs(n_jobs: int | None) -> int:
    """Threads to use: all cores for None or -1, all but `m - 1` for `-m`, as joblib counts."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = cores or 1
    if n_jobs is None or n_jobs == -1:
        return cores
    if n_jobs == 0 or not isinstance(n_jobs, (int, np.integer)):
        raise DataError(f"n_jobs={n_jobs!r}: give a number of threads, or None for all cores")
    return int(max(1, cores + 1 + n_jobs) if n_jobs < 0 else n_jobs)


def blocks(n: int, size: int = BLOCK) -> Iterator[tuple[int, int]]:
    """Ranges `(start, stop)` that cut `0..n` every `size`."""
    for start in range(0, n, size):
        yield start, min(start + size, n)


def parallel(
    work: Callable[[int, int], Any], n_items: int, n_jobs: int, piece: int | None = None
) -> list[Any]:
    """`[work(start, stop), ...]` over ranges of items, in order; kernels must release the GIL.

    An exception, or Ctrl-C, cancels the pieces that have not begun and is raised here.
    """
    piece = piece or max(1, -(-n_items // 64))
    ranges = list(blocks(n_items, piece))
    if n_jobs == 1 or len(ranges) == 1:
        return [work(start, stop) for start, stop in ranges]
    with ThreadPoolExecutor(max_workers=n_jobs) as pool:
        futures = [pool.submit(work, start, stop) for start, stop in ranges]
        try:
            wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        for future in futures:
            if future.done() and not future.cancelled() and future.exception() is not None:
                pool.shutdown(wait=False, cancel_futures=True)
        return [future.result() for future in futures]


def single_threaded_blas() -> AbstractContextManager[Any]:
    """BLAS on one thread: the pieces are already on all cores, and sums keep their order."""
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
