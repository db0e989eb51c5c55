"""The machine: what it is, how fast it computes and reads, and how much memory a process took."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from latenttree.bench.counting import count_bits, count_pairs
from latenttree.engine import parallel

PACKAGES = ("latenttree", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")


class Peaks(NamedTuple):
    """What the machine can do in a second, measured on `n_jobs` threads.

    multiply_adds : of a float32 matrix product by BLAS (two FLOP each).
    bytes : read from memory, once, in order.
    increments : of 32-bit counters in cache, at places that come from data.
    bit_words : AND and population count of 64-bit words in cache.
    """

    n_jobs: int
    multiply_adds: float
    bytes: float
    increments: float
    bit_words: float


def measure_peaks(n_jobs: int, scale: float = 1.0) -> Peaks:
    """Best of some repetitions of each; `scale` below 1 for less work."""
    return Peaks(
        n_jobs,
        _multiply_rate(n_jobs, max(256, int(2048 * scale))),
        _read_rate(n_jobs, int(2**28 * scale)),
        _rate(n_jobs, lambda: count_pairs(_PLACES, _COUNTERS.copy(), 4000), 4000 * len(_PLACES)),
        _rate(n_jobs, lambda: count_bits(_WORDS, _WORDS[::-1].copy(), 4000), 4000 * len(_WORDS)),
    )


_PLACES = np.random.default_rng(0).integers(0, 4096, 512).astype(np.int32)
_COUNTERS = np.zeros(4096, dtype=np.int32)
_WORDS = np.random.default_rng(0).integers(0, 2**63, 1024).astype(np.uint64)


def _best_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    work()
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def _rate(n_jobs: int, work: Callable[[], Any], amount: float) -> float:
    """Amount a second when every thread does `work` at once."""
    work()  # compiled before threads could all try to
    seconds = _best_seconds(lambda: parallel(lambda i, j: work(), n_jobs, n_jobs, piece=1))
    return amount * n_jobs / seconds


def _multiply_rate(n_jobs: int, width: int) -> float:
    a = np.random.default_rng(0).standard_normal((width, width), dtype=np.float32)
    b = a.copy()  # of one array with itself NumPy computes half, at another rate
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        return float(width) ** 3 / _best_seconds(lambda: a.T @ b)


def _read_rate(n_jobs: int, n_bytes: int) -> float:
    words = np.ones(max(n_bytes // 8, 2**16), dtype=np.uint64)

    def read(start: int, stop: int) -> None:
        np.bitwise_xor.reduce(words[start:stop])

    piece = -(-len(words) // n_jobs)
    return words.nbytes / _best_seconds(lambda: parallel(read, len(words), n_jobs, piece=piece))


# ---- what it is ----------------------------------------------------------------------------------


def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "source": source_hash(),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu": _from_file("/proc/cpuinfo", r"model name\s*:\s*(.+)"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory": _from_file("/proc/meminfo", r"MemTotal:\s*(.+)"),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def source_hash() -> str:
    """A digest of the package's source: results of different code are told apart by it."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _from_file(path: str, pattern: str) -> str | None:
    """First match of a pattern in a file of /proc, None on other systems."""
    try:
        match = re.search(pattern, Path(path).read_text())
    except OSError:
        return None
    return match.group(1).strip() if match else None


# ---- processes -----------------------------------------------------------------------------------


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes.

    Linux: VmHWM, which `exec` resets; `ru_maxrss` would carry over what the parent held when it
    started this process.
    """
    text = _from_file("/proc/self/status", r"VmHWM:\s*(\d+) kB")
    if text:
        return int(text) * 1024
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)


def in_fresh_process(work: Callable[..., Any], *arguments: Any) -> Any:
    """`work(*arguments)` in a new interpreter, whose memory is its own from the start."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawn) as pool:
        return pool.submit(work, *arguments).result()


def bytes_of(values: Any) -> int:
    """Bytes of an array, a sparse matrix, or a table of either."""
    if isinstance(values, np.ndarray):
        return int(values.nbytes)
    parts: list[NDArray[Any]] = [
        getattr(values, name) for name in ("data", "indices", "indptr") if hasattr(values, name)
    ]
    return int(sum(part.nbytes for part in parts))
