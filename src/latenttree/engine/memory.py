"""How much memory a fit may take, and how much the process holds."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any

from latenttree.errors import DataError, Option, Text

SHARE = 0.6
"""Share of the free memory that a fit may take by default."""

FALLBACK = 4 * 2**30
"""Default limit in bytes if the system does not report its free memory."""

FIRST_FIT = 76 * 2**20
"""Bytes that the first fit of a process loads and does not give back: compiled kernels, and the
parts of libraries that they call."""

_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"\s*([0-9]*\.?[0-9]+(?:[eE][0-9]+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)


def memory_bytes(limit: Any) -> int:
    """Bytes of a memory limit: a number of bytes, text like "8GiB" or "500 MB", or None for the
    share `SHARE` of the free memory. Units are powers of 1024.

    >>> memory_bytes("8GiB") == memory_bytes("8192 MB") == 8 * 2**30
    True
    """
    if limit is None:
        free = available_memory()
        return FALLBACK if free is None else int(SHARE * free)
    value = _parsed(limit)
    if value is None or not 0 < value < float("inf"):
        raise DataError(
            Text(Option("memory_limit", limit)),
            f"give bytes, text like '8GiB' or '500MB', or None for {SHARE:.0%} of the free memory",
            value=limit,
            option="memory_limit",
        )
    return int(value)


def _parsed(limit: Any) -> float | None:
    """Bytes of a number or text; None if it is neither."""
    if isinstance(limit, bool):
        return None
    if isinstance(limit, str):
        match = _SIZE.fullmatch(limit)
        return None if match is None else float(match[1]) * _UNITS[match[2].upper()]
    try:
        return float(limit)
    except (TypeError, ValueError):
        return None


def available_memory() -> int | None:
    """Bytes that can be allocated without swapping: the smaller of the free memory of the machine
    and of the control group; None if the system does not report it."""
    free = [x for x in (_machine_free(), _group_free()) if x is not None]
    return min(free) if free else None


def peak_memory() -> int | None:
    """Largest number of bytes that this process has held; None if the system does not report it."""
    return _status("VmHWM")


def current_memory() -> int | None:
    """Bytes that this process holds now; None if the system does not report it."""
    return _status("VmRSS")


def room_within(limit: int) -> int:
    """Bytes that data may still take: the limit less those that the process holds and those that
    the first fit loads."""
    return max(0, limit - (current_memory() or 0) - still_to_load())


def still_to_load() -> int:
    """Bytes that the next fit of this process will load."""
    return 0 if _state.fitted else FIRST_FIT


def first_fit_done() -> None:
    """Record that this process holds what a fit loads."""
    _state.fitted = True


class _State:
    """Whether a fit of this process has ended."""

    fitted = False


_state = _State()


TABLE_SHARE = 4
"""A table may take one part in so many of the memory left; a larger one goes to a scratch file."""


def room_for_reading(limit: int) -> int:
    """Bytes that reading may take: those that the later stages, which need the table, leave."""
    return max(0, room_within(limit) - _reserved.get())


def room_for_table(limit: int) -> int:
    """Bytes that a table may take in memory."""
    return room_for_reading(limit) // TABLE_SHARE


@contextmanager
def reserving(n_bytes: int) -> Iterator[None]:
    """Reading inside this context leaves `n_bytes` for the stages that follow."""
    before = _reserved.set(n_bytes)
    try:
        yield
    finally:
        _reserved.reset(before)


_reserved: ContextVar[int] = ContextVar("memory of the stages that follow", default=0)


def enough(limit: int, needed: int) -> int:
    """A limit that is enough if `needed` bytes, more than `limit`, would be held: of each byte that
    it is raised by, a table read in parts takes its share."""
    return limit + (needed - limit) * TABLE_SHARE // (TABLE_SHARE - 1) + 2**20


@contextmanager
def memory_within(limit: int) -> Iterator[None]:
    """Work inside this context keeps to a limit, see `spare`."""
    before = _limit.set(limit)
    try:
        yield
    finally:
        _limit.reset(before)


def spare(most: int, least: int = 1 << 22) -> int:
    """Bytes that a working array of the present stage may take: a quarter of what is left under the
    limit, between `least` and `most`; `most` without a limit."""
    limit = _limit.get()
    if limit is None:
        return most
    return int(min(most, max(least, (limit - (current_memory() or 0)) // 4)))


_limit: ContextVar[int | None] = ContextVar("memory limit", default=None)


def give_back_freed() -> None:
    """Return freed memory to the system if the C library keeps it for later (glibc)."""
    trim = _malloc_trim()
    if trim is not None:
        trim(0)


@cache
def _malloc_trim() -> Any:
    """The function of glibc, None elsewhere."""
    with suppress(OSError, AttributeError, TypeError):
        return ctypes.CDLL(None).malloc_trim
    return None


def shown(n_bytes: float) -> str:
    """Bytes as text.

    >>> shown(3 * 2**30), shown(1536)
    ('3.0 GiB', '1.5 KiB')
    """
    for unit in ("bytes", "KiB", "MiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} GiB"


def _status(name: str) -> int | None:
    return _kilobytes(Path("/proc/self/status"), name)


def _machine_free() -> int | None:
    return _kilobytes(Path("/proc/meminfo"), "MemAvailable")


def _kilobytes(path: Path, name: str) -> int | None:
    """Bytes of a line `name:  1234 kB` in a file of the system."""
    for line in _lines(path):
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    return None


def _group_free() -> int | None:
    """What the control group that a container runs in has left (version 2, then 1)."""
    root = Path("/sys/fs/cgroup")
    for most, used in (
        (root / "memory.max", root / "memory.current"),
        (root / "memory/memory.limit_in_bytes", root / "memory/memory.usage_in_bytes"),
    ):
        numbers = [line for path in (most, used) for line in _lines(path)]
        if len(numbers) == 2 and all(x.isdigit() for x in numbers):
            return max(int(numbers[0]) - int(numbers[1]), 0)
    return None


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
