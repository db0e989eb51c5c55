"""Names, times and progress of the stages of a fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

SECONDS, SECONDS_APART = 0.2, 10.0
"""Seconds between two looks at how far a stage is: on a terminal, and in a file, where each is a
line."""


class Progress:
    """Times every stage; shows them live with rich when `verbose`.

    >>> progress = Progress(verbose=False)
    >>> with progress.stage("distances"):
    ...     pass
    >>> list(progress.seconds)
    ['distances']
    """

    def __init__(self, verbose: bool = False) -> None:
        self.seconds: dict[str, float] = {}
        self._console: Any = None
        if verbose:
            from rich.console import Console

            self._console = Console(stderr=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside; stages of one name add up."""
        start = time.perf_counter()
        try:
            if self._console is None:
                yield
            else:
                with self._console.status(f"{name} ...") as status, _watching(self, name, status):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self._console is not None:
            self._console.print(f"{name:<16} {self.seconds[name]:8.2f} s", highlight=False)

    def note(self, text: str) -> None:
        """A line under the running stage, when verbose."""
        if self._console is not None:
            self._console.print(f"  {text}", style="dim", highlight=False)

    @property
    def on_terminal(self) -> bool:
        return self._console is not None and bool(self._console.is_terminal)


# ---- how far a stage is -------------------------------------------------------------------


class _Watched:
    """The stage that runs, where someone looks."""

    def __init__(self, progress: Progress, name: str, status: Any) -> None:
        self._progress, self._name, self._status = progress, name, status
        self._wait = SECONDS if progress.on_terminal else SECONDS_APART
        self._last = time.perf_counter()

    def due(self) -> bool:
        now = time.perf_counter()
        if now - self._last < self._wait:
            return False
        self._last = now
        return True

    def show(self, text: str) -> None:
        if self._progress.on_terminal:
            self._status.update(f"{self._name} ... {text}")
        else:
            self._progress.note(text)


_watched: ContextVar[_Watched | None] = ContextVar("stage that is watched", default=None)


@contextmanager
def _watching(progress: Progress, name: str, status: Any) -> Iterator[None]:
    before = _watched.set(_Watched(progress, name, status))
    try:
        yield
    finally:
        _watched.reset(before)


def tell_share(what: str, done: int, total: int) -> None:
    """Say that so many of all bytes were read: now and then, where a stage runs and is shown."""
    stage = _watched.get()
    if stage is not None and stage.due():
        stage.show(f"{what}: {done / 2**20:,.0f} of {total / 2**20:,.0f} MiB")


def tell_number(what: str, n: int) -> None:
    """The same of rows, of which it is not known how many there will be."""
    stage = _watched.get()
    if stage is not None and stage.due():
        stage.show(f"{what}: {n:,} rows")
