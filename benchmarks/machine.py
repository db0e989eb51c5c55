"""The machine: what it is, and how fast it computes, counts and reads."""

from __future__ import annotations

import hashlib
import os
import platform
import re
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numba import njit, types
from numba.extending import intrinsic
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from benchmarks.settings import ROOT
from benchmarks.timing import best_seconds
from latenttree.engine import parallel

PACKAGES = ("latenttree", "numpy", "scipy", "scikit-learn", "numba", "matplotlib")

# ---- what it is ----------------------------------------------------------------------------------


def environment() -> dict[str, Any]:
    """Versions and machine, for the record."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%S%z"),
        "source": source_hash(),
        "python": platform.python_version(),
        "packages": {name: version_of(name) for name in PACKAGES},
        "platform": platform.platform(),
        "cpu": _from_file("/proc/cpuinfo", r"model name\s*:\s*(.+)"),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None,
        "memory": _from_file("/proc/meminfo", r"MemTotal:\s*(.+)"),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def source_hash() -> str:
    """A digest of the package's source, so that results of different code are never mixed."""
    digest = hashlib.sha1(usedforsecurity=False)
    for path in sorted((ROOT / "src" / "latenttree").rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:12]


def version_of(package: str) -> str | None:
    """The version of a package, as pip calls it; None where it is not installed."""
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


# ---- how fast it is ------------------------------------------------------------------------------


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
    rng = np.random.default_rng(0)
    places = rng.integers(0, 4096, 512).astype(np.int32)
    words = rng.integers(0, 2**63, 1024).astype(np.uint64)

    def increment() -> int:
        return int(count_pairs(places, np.zeros(4096, dtype=np.int32), 4000))

    def count() -> int:
        return int(count_bits(words, words[::-1].copy(), 4000))

    return Peaks(
        n_jobs,
        multiply_rate(n_jobs, max(256, int(2048 * scale))),
        _read_rate(n_jobs, int(2**28 * scale)),
        _rate(n_jobs, increment, 4000 * len(places)),
        _rate(n_jobs, count, 4000 * len(words)),
    )


def describe_peaks(peaks: dict[str, float]) -> str:
    """One sentence with what a bound was computed with."""
    return (
        f"This machine, {peaks['n_jobs']} thread(s), measured in the same run: "
        f"{2 * peaks['multiply_adds'] / 1e9:,.0f} GFLOP/s (float32 matrix product), "
        f"{peaks['bytes'] / 1e9:,.1f} GB/s (reading), {peaks['increments'] / 1e9:,.1f} G "
        f"increments/s, {peaks['bit_words'] / 1e9:,.1f} G words/s (AND and count of bits)."
    )


def _rate(n_jobs: int, work: Callable[[], Any], amount: float) -> float:
    """Amount a second when every thread does `work` at once."""
    work()  # compiled before threads could all try to
    seconds = best_seconds(lambda: parallel(lambda i, j: work(), n_jobs, n_jobs, piece=1))
    return amount * n_jobs / seconds


def multiply_rate(n_jobs: int, width: int, dtype: Any = np.float32) -> float:
    """Multiply-adds a second of a matrix product `(width, width)`."""
    a = np.random.default_rng(0).standard_normal((width, width), dtype=dtype)
    b = a.copy()  # of one array with itself NumPy computes half, at another rate
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        return float(width) ** 3 / best_seconds(lambda: a.T @ b)


def _read_rate(n_jobs: int, n_bytes: int) -> float:
    words = np.ones(max(n_bytes // 8, 2**16), dtype=np.uint64)

    def read(start: int, stop: int) -> None:
        np.bitwise_xor.reduce(words[start:stop])

    piece = -(-len(words) // n_jobs)
    return words.nbytes / best_seconds(lambda: parallel(read, len(words), n_jobs, piece=piece))


def copy_rate(n_jobs: int, n_bytes: int = 1 << 28) -> float:
    """Bytes written a second by a copy of an array into fresh memory."""
    source = np.ones(n_bytes // 8)

    def copied() -> NDArray[np.float64]:
        fresh = np.empty_like(source)
        parallel(lambda a, b: np.copyto(fresh[a:b], source[a:b]), len(source), n_jobs)
        return fresh

    return n_bytes / best_seconds(copied)


@intrinsic
def population_count(typing_context: Any, word: Any) -> Any:
    """Ones of a 64-bit word, by the instruction that processors have for it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


@njit(nogil=True, cache=True)
def count_bits(a: NDArray[np.uint64], b: NDArray[np.uint64], rounds: int) -> int:
    """Ones in `a & b`, `rounds` times over with another offset; `rounds len(a)` words."""
    total = np.uint64(0)
    n = a.shape[0]
    for r in range(rounds):
        mask = np.uint64(r)
        for i in range(n):
            total += population_count((a[i] ^ mask) & b[i])
    return int(total)


@njit(nogil=True, cache=True)
def count_pairs(places: NDArray[np.int32], counters: NDArray[np.int32], rounds: int) -> int:
    """Increments `counters[places]`, `rounds` times; in place. `rounds len(places)` increments."""
    for _ in range(rounds):
        for i in range(places.shape[0]):
            counters[places[i]] += 1
    return int(counters[places[0]])
