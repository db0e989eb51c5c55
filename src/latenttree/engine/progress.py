"""Names, times and progress of the stages of a fit."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


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
                spinner = "line" if self._console.options.ascii_only else "dots"
                with self._console.status(f"{name} ...", spinner=spinner):
                    yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - start
        if self._console is not None:
            self._console.print(f"{name:<16} {self.seconds[name]:8.2f} s", highlight=False)

    def note(self, text: str) -> None:
        """A line under the running stage, when verbose."""
        if self._console is not None:
            self._console.print(f"  {text}", style="dim", highlight=False)
