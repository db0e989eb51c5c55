"""A line that shows the running stage of a fit that takes long, without being asked."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE, TICK = 2.0, 0.5
"""Seconds before the line appears, and between two versions of it."""

WIDTH = 78  # characters
COMPILING = "compiling kernels, once for this machine"


def someone_looks() -> bool:
    """Whether standard error is a terminal, or the output of a notebook's cell."""
    if sys.stderr is None:
        return False
    return bool(sys.stderr.isatty()) or _in_notebook()


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class ProgressLine:
    """The line, rewritten by a thread while a stage runs, and erased at its end."""

    def __init__(self) -> None:
        self.compiling = False
        self._start: float | None = None
        self._stages: list[str] = []
        self._detail = ""

    @contextmanager
    def running(self, stage: str) -> Iterator[None]:
        """Show a stage while it runs; one within another is named instead of it."""
        if self._start is None:
            self._start = time.perf_counter()
        self._stages.append(stage)
        self._detail = ""
        try:
            if len(self._stages) > 1:
                yield
            else:
                with self._written():
                    yield
        finally:
            self._stages.pop()

    def tell(self, detail: str) -> None:
        """How far the stage is."""
        self._detail = detail

    @contextmanager
    def _written(self) -> Iterator[None]:
        done = threading.Event()
        thread = threading.Thread(target=self._write, args=(done,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()

    def _write(self, done: threading.Event) -> None:
        assert self._start is not None
        wait, shown = max(0.0, self._start + PATIENCE - time.perf_counter()), False
        while not done.wait(wait):
            _put("\r" + self._text().ljust(WIDTH))
            wait, shown = TICK, True
        if shown:
            _put("\r" + " " * WIDTH + "\r")

    def _text(self) -> str:
        assert self._start is not None
        stage = self._stages[-1] if self._stages else ""
        seconds = time.perf_counter() - self._start
        aside = f" ({COMPILING})" if self.compiling and stage != "compiling" else ""
        detail = f": {self._detail}" if self._detail else ""
        return f"latenttree: {seconds:.0f} s, {stage}{detail}{aside}"[:WIDTH]


def _put(text: str) -> None:
    if sys.stderr is not None:
        print(text, end="", file=sys.stderr, flush=True)
