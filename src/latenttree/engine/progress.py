"""Names, times and progress of the stages of a fit."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Literal

from latenttree.engine.progress_line import ProgressLine, someone_looks

COMPILING = "compiling, once for this machine and this kind of table: later fits start at once"
SECONDS, SECONDS_APART = 0.2, 10.0
"""Seconds between two updates of a stage: on a terminal, and in a file, where each is a line."""


class Progress:
    """Times every stage; shows them live with rich when `verbose`. With "auto" one line shows the
    running stage of what takes long, where someone looks: at a terminal or in a notebook.

    >>> progress = Progress(verbose=False)
    >>> with progress.stage("distances"):
    ...     pass
    >>> list(progress.seconds)
    ['distances']
    """

    def __init__(self, verbose: bool | Literal["auto"] = False) -> None:
        self.seconds: dict[str, float] = {}
        self._console: Any = None
        self._line = ProgressLine() if verbose == "auto" and someone_looks() else None
        if verbose and verbose != "auto":
            from rich.console import Console

            self._console = Console(stderr=True)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what happens inside; stages of one name add up."""
        start = time.perf_counter()
        try:
            with self._shown(name):
                yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self._console is not None:
            self._console.print(f"{name:<16} {self.seconds[name]:8.2f} s", highlight=False)

    @contextmanager
    def _shown(self, name: str) -> Iterator[None]:
        """Show a stage while it runs."""
        if self._line is not None:
            with self._line.running(name), _watching(_LineStage(self._line)):
                yield
        elif self._console is not None:
            status = _status(self._console, f"{name} ...")
            with status, _watching(_ShownStage(self, name, status)):
                yield
        else:
            yield

    def note(self, text: str) -> None:
        """A line under the running stage, when verbose."""
        if self._console is not None:
            self._console.print(f"  {text}", style="dim", highlight=False)

    @property
    def on_terminal(self) -> bool:
        """Whether progress is shown on a terminal."""
        return self._console is not None and bool(self._console.is_terminal)

    @contextmanager
    def announcing_compilation(self) -> Iterator[None]:
        """Report on standard error, verbose or not, that kernels are being compiled; on a terminal
        also how many and for how long."""
        from numba.core import event

        with _Announcement(self._console, self._line) as announcement:
            listener = _listener(announcement)
            with event.install_listener("numba:compile", listener):
                yield


# ---- progress of a stage ------------------------------------------------------------------


class _Stage:
    """A running stage that shows how far it is, at most every `wait` seconds."""

    def __init__(self, wait: float) -> None:
        self._wait, self._last = wait, time.perf_counter()

    def show(self, text: str) -> None:
        """Show how far the stage is."""

    def due(self) -> bool:
        """Whether it is time for an update."""
        now = time.perf_counter()
        if now - self._last < self._wait:
            return False
        self._last = now
        return True


class _LineStage(_Stage):
    """The stage that the line of a fit without `verbose` shows."""

    def __init__(self, line: ProgressLine) -> None:
        super().__init__(SECONDS)
        self._line = line

    def show(self, text: str) -> None:
        """Show how far the stage is."""
        self._line.tell(text)


class _ShownStage(_Stage):
    """The running stage of a verbose fit."""

    def __init__(self, progress: Progress, name: str, status: Any) -> None:
        super().__init__(SECONDS if progress.on_terminal else SECONDS_APART)
        self._progress, self._name, self._status = progress, name, status

    def show(self, text: str) -> None:
        """Show how far the stage is."""
        if self._progress.on_terminal:
            self._status.update(f"{self._name} ... {text}")
        else:
            self._progress.note(text)


_watched: ContextVar[_Stage | None] = ContextVar("stage that is watched", default=None)


@contextmanager
def _watching(stage: _Stage) -> Iterator[None]:
    before = _watched.set(stage)
    try:
        yield
    finally:
        _watched.reset(before)


def tell_share(what: str, done: int, total: int) -> None:
    """Show how many of all bytes were read, from time to time, if the running stage is shown."""
    stage = _watched.get()
    if stage is not None and stage.due():
        stage.show(f"{what}: {done / 2**20:,.0f} of {total / 2**20:,.0f} MiB")


def tell_number(what: str, n: int) -> None:
    """The same for rows, whose total is not known."""
    stage = _watched.get()
    if stage is not None and stage.due():
        stage.show(f"{what}: {n:,} rows")


# ---- compilation ---------------------------------------------------------------------------


def _status(console: Any, text: str) -> Any:
    """A line with a spinner that the console's encoding can show."""
    return console.status(text, spinner="line" if console.options.ascii_only else "dots")


class _Announcement:
    """Messages about compilation; none until the first kernel is compiled."""

    def __init__(self, console: Any, line: ProgressLine | None = None) -> None:
        self._console, self._line = console, line
        self._status: Any = None
        self._lock, self._count = threading.Lock(), 0
        self._start = self._last = 0.0

    def __enter__(self) -> _Announcement:
        return self

    def __exit__(self, *_: object) -> None:
        if self._line is not None:
            self._line.compiling = False
            return
        if self._status is not None:
            self._status.stop()
        elif self._console is None and self._last > self._start:
            self._say(f"compiled: {self._so_far()}")

    def one_more(self) -> None:
        """Count a kernel whose compilation begins."""
        with self._lock:
            self._count += 1
            if self._line is not None:
                self._line.compiling = True
                return
            if self._count == 1:
                self._begin()
            elif self._status is not None:
                self._status.update(f"{COMPILING} ({self._so_far()})")
            elif self._console is None and time.perf_counter() - self._last > SECONDS_APART:
                self._say(f"compiling: {self._so_far()}")

    def _begin(self) -> None:
        self._start = time.perf_counter()
        if self._console is not None:
            self._console.print(f"  {COMPILING}", style="dim", highlight=False)
        elif sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            self._status = _status(Console(stderr=True), COMPILING)
            self._status.start()
        else:
            self._say(COMPILING)
            self._last = self._start  # a second message only if it takes long

    def _so_far(self) -> str:
        return f"{self._count} kernels, {time.perf_counter() - self._start:.0f} s"

    def _say(self, text: str) -> None:
        self._last = time.perf_counter()
        if sys.stderr is not None:
            print(f"latenttree: {text}", file=sys.stderr, flush=True)


def _listener(announcement: _Announcement) -> Any:
    """A listener of Numba's for the kernels of this package."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, happened: Any) -> None:
            if happened.data["dispatcher"].py_func.__module__.startswith("latenttree"):
                announcement.one_more()

        def on_end(self, happened: Any) -> None:
            pass

    return Listener()
