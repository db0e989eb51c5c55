"""Threads that are kept from call to call, and BLAS limited to one thread.

Both are set up once for a process: starting threads, and asking every loaded library for its number
of threads, cost more than many pieces of work.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController


class _Shared:
    """The pool of threads, and the number of users of single-threaded BLAS, of a process."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.pool: ThreadPoolExecutor | None = None
        self.size = 0
        self.blas_users = 0
        self.blas_limits: Any = None

    def reset(self) -> None:
        """In a forked child, which has no threads, and in which the lock may be held forever."""
        self.lock = threading.Lock()
        self.pool, self.size = None, 0


_shared = _Shared()
_local = threading.local()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shared.reset)


# ---- threads --------------------------------------------------------------------------------


def helpers(work: Callable[[], None], n: int) -> list[Future[None]]:
    """Run `work` on up to `n` threads beside the caller's.

    The pool has as many threads as the largest call asked for; while they are busy, `work` waits,
    so the caller must not depend on it."""
    if n < 1:  # a pool of no threads cannot be made
        return []
    with _shared.lock:
        try:
            pool = _grown(n)
            return [pool.submit(work) for _ in range(n)]
        except RuntimeError:  # no new threads while the interpreter shuts down
            return []


def _grown(n: int) -> ThreadPoolExecutor:
    """The pool, with `n` threads or more."""
    if _shared.pool is None or n > _shared.size:
        if _shared.pool is not None:
            _shared.pool.shutdown(wait=False)  # submitted work is still done
        _shared.pool, _shared.size = ThreadPoolExecutor(n, thread_name_prefix="latenttree"), n
    return _shared.pool


def inside() -> bool:
    """Whether this thread is working on a piece, in which case no more threads are used."""
    return getattr(_local, "depth", 0) > 0


@contextmanager
def taking_part() -> Iterator[None]:
    """Mark this thread as working on pieces."""
    _local.depth = getattr(_local, "depth", 0) + 1
    try:
        yield
    finally:
        _local.depth -= 1


# ---- BLAS -----------------------------------------------------------------------------------


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """BLAS on one thread: the pieces are already on all cores, and sums keep their order.

    The number of threads belongs to the process: the first to enter sets it, the last to leave
    restores it, and between them entering costs nothing (alone, little)."""
    with _shared.lock:
        if not _shared.blas_users:
            _shared.blas_limits = _pools(len(sys.modules)).limit(limits=1, user_api="blas")
        _shared.blas_users += 1
    try:
        yield
    finally:
        with _shared.lock:
            _shared.blas_users -= 1
            if not _shared.blas_users:
                _shared.blas_limits.restore_original_limits()


@lru_cache(maxsize=1)
def _pools(n_modules: int) -> ThreadpoolController:
    """The thread pools of the process, which come with modules: to find them takes milliseconds."""
    return ThreadpoolController()
