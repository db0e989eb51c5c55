"""Passes over samples, and engines that run them.

A *pass* is a small picklable object that adds up something over chunks of samples. It is all that
an engine needs to know: another engine sends it to where the samples are, has it add up its chunks
there, and merges the totals in the order of the chunks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Protocol, TypeVar

import numpy as np

Total = TypeVar("Total")


class Pass(Protocol[Total]):
    """A sum over samples: a frozen dataclass of what every chunk needs.

    Where totals are not made of arrays that add and lists that are joined, see `merged`, a pass
    also has a method `merge(total, other)`, which adds `other` to `total`, in place."""

    def start(self) -> Total:
        """The sum over no samples."""

    def add(self, total: Total, chunk: Any, n_jobs: int) -> None:
        """Add a chunk, a `data.chunk.Chunk` of any length, to `total`, in place. The same result
        for any `n_jobs`."""


class Source(Protocol):
    """Samples that passes run over: a table, a part of one, or chunks in memory."""

    def run(self, pass_: Pass[Total], n_jobs: int = 1) -> Total:
        """The total of a pass over the samples."""


class HasChunks(Protocol):
    """Samples in this process."""

    def chunks(self) -> Iterable[Any]:
        """All chunks in order; their ranges depend on the number of samples and variables alone."""


class Engine(Protocol):
    """What runs passes."""

    def run(self, pass_: Pass[Total], table: Any, n_jobs: int) -> Total:
        """The total of a pass over all samples of a table, a part of one (`data.subsets`), or
        samples with other weights (`model.samples.Samples`).

        An engine whose samples are elsewhere asks the table, by `at_source(pass_)`, for the table
        that it knows and the pass that finds the part there."""


class Threads:
    """The engine of samples in this process: one chunk after the other, on `n_jobs` threads."""

    def run(self, pass_: Pass[Total], table: HasChunks, n_jobs: int) -> Total:
        """The total of a pass over all chunks of `table`."""
        total = pass_.start()
        for chunk in table.chunks():
            pass_.add(total, chunk, n_jobs)
        return total


THREADS = Threads()
"""The engine of every table that is not given another."""


@dataclass(frozen=True, eq=False)
class Summed:
    """The pass: the sum over chunks of `of(chunk, n_jobs)`, arrays of one shape.

    `of` is picklable: a function of a module, a method, or a `partial` of either."""

    of: Callable[[Any, int], Any]
    shape: int | tuple[int, ...]

    def start(self) -> Any:
        """Zeros."""
        return np.zeros(self.shape)

    def add(self, total: Any, chunk: Any, n_jobs: int) -> None:
        """Add that of a chunk."""
        total += self.of(chunk, n_jobs)


@dataclass(frozen=True, eq=False)
class Gathered:
    """The pass: the list of `of(chunk, n_jobs)` of every chunk; `of` as in `Summed`."""

    of: Callable[[Any, int], Any]

    def start(self) -> list[Any]:
        """None."""
        return []

    def add(self, total: list[Any], chunk: Any, n_jobs: int) -> None:
        """Append that of a chunk."""
        total.append(self.of(chunk, n_jobs))


def merged(pass_: Pass[Total], total: Total, other: Total) -> Total:
    """`total` with `other`, the sum over later samples, added in place."""
    merge = getattr(pass_, "merge", add_totals)
    merge(total, other)
    return total


def add_totals(total: Any, other: Any) -> None:
    """Add nested totals in place: arrays add, lists are joined, and tuples, dictionaries (of which
    either may have keys that the other lacks) and dataclasses are added part by part; other objects
    merge themselves."""
    if isinstance(total, np.ndarray):
        total += other
    elif isinstance(total, list):
        total.extend(other)
    elif isinstance(total, dict):
        for key in total.keys() & other.keys():
            add_totals(total[key], other[key])
        total.update({key: value for key, value in other.items() if key not in total})
    elif isinstance(total, tuple):
        for one, two in zip(total, other, strict=True):
            add_totals(one, two)
    elif is_dataclass(total):
        for field in fields(total):
            add_totals(getattr(total, field.name), getattr(other, field.name))
    elif hasattr(total, "merge"):
        total.merge(other)
    elif total is not None or other is not None:
        raise TypeError(f"totals of type {type(total).__name__} do not add in place")
