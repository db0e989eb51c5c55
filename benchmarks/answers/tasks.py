"""Data sets by name, and how each is learned."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from numpy.typing import NDArray

Arrays = dict[str, NDArray[Any]]


class Task(NamedTuple):
    """A data set, and how it is learned.

    `batches`: the rows come in so many batches. `file`: they are written to a file of that name,
    and its path is fitted; "mapped" is an array in a mapped file. `tight`: within the least memory
    that is accepted, so that files are read part by part."""

    X: Any
    options: Mapping[str, Any] = {}
    weights: Any = None
    batches: int = 0
    file: str = ""
    tight: bool = False


Maker = Callable[[int], Task]

TASKS: dict[str, Maker] = {}

WIDTH = 44
"""Letters of the longest name."""


def task(maker: Maker) -> Maker:
    """Add a function that makes a task from a seed, under its own name."""
    return add(maker.__name__, maker)


def add(name: str, maker: Maker) -> Maker:
    """Add a function that makes a task from a seed."""
    if name in TASKS:
        raise ValueError(f"two data sets have the name {name!r}")
    TASKS[name] = maker
    return maker


def seed_of(name: str) -> int:
    """Every data set has a seed of its own, which other data sets do not change."""
    return zlib.crc32(name.encode()) % 100_000


def chosen(names: Iterable[str], patterns: Sequence[str]) -> Iterator[str]:
    """Names that one of the patterns fits; all where there is none."""
    return (
        name
        for name in names
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    )
