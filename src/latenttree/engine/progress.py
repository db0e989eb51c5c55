"""Names, times and progress of the stages of a fit."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

COMPILING = "compiling, once for this machine and this kind of table: later fits start at once"


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
                with _status(self._console, f"{name} ..."):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self._console is not None:
            self._console.print(f"{name:<16} {self.seconds[name]:8.2f} s", highlight=False)

    def note(self, text: str) -> None:
        """A line under the running stage, when verbose."""
        if self._console is not None:
            self._console.print(f"  {text}", style="dim", highlight=False)

    @contextmanager
    def announcing_compilation(self) -> Iterator[None]:
        """Say on standard error that kernels are compiled, when that begins, verbose or not; on a
        terminal also how many and for how long."""
        from numba.core import event

        with _Announcement(self._console) as announcement:
            listener = _listener(announcement)
            with event.install_listener("numba:compile", listener):
                yield


def _status(console: Any, text: str) -> Any:
    """A line with a moving sign that the console's encoding has."""
    return console.status(text, spinner="line" if console.options.ascii_only else "dots")


class _Announcement:
    """What people see of compilation; nothing until the first kernel is compiled."""

    def __init__(self, console: Any) -> None:
        self._console = console
        self._status: Any = None
        self._lock, self._count, self._start = threading.Lock(), 0, 0.0

    def __enter__(self) -> _Announcement:
        return self

    def __exit__(self, *_: object) -> None:
        if self._status is not None:
            self._status.stop()

    def one_more(self) -> None:
        """A kernel is compiled."""
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._begin()
            elif self._status is not None:
                passed = time.perf_counter() - self._start
                self._status.update(f"{COMPILING} ({self._count} kernels, {passed:.0f} s)")

    def _begin(self) -> None:
        self._start = time.perf_counter()
        if self._console is not None:
            self._console.print(f"  {COMPILING}", style="dim", highlight=False)
        elif sys.stderr is not None and sys.stderr.isatty():
            from rich.console import Console

            self._status = _status(Console(stderr=True), COMPILING)
            self._status.start()
        elif sys.stderr is not None:
            print(f"latenttree: {COMPILING}", file=sys.stderr, flush=True)


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
