"""Work in a process of its own, within a limit of time and memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any

from benchmarks.timing import SPAWN, memory_of

EVERY = 0.2
"""Seconds between two looks at the process."""


RAN_OUT = 75
"""Exit code of a process that `at_most` ended."""


class Exceeded(Exception):
    """A limit was passed, and the process ended; `reason` is "time" or "memory"."""

    def __init__(self, reason: str, seconds: float, peak_bytes: int) -> None:
        super().__init__(reason)
        self.reason, self.seconds, self.peak_bytes = reason, seconds, peak_bytes


class Failed(Exception):
    """The work raised an error, or its process died; the message says which."""


def within_limits(
    work: Callable[..., Any], *arguments: Any, seconds: float, memory: float = float("inf")
) -> Any:
    """`work(*arguments)` in a new interpreter, whose memory is its own from the start.

    Ended when it has taken more than `seconds` or holds more than `memory` bytes (as far as the
    system says, on Linux).
    """
    ours, theirs = SPAWN.Pipe(duplex=False)
    process = SPAWN.Process(target=_child, args=(theirs, work, arguments))
    process.start()
    theirs.close()
    start, peak = time.perf_counter(), 0
    try:
        while not ours.poll(EVERY):
            memory_now = memory_of(process.pid)
            held, peak = memory_now.get("VmRSS", 0), max(peak, memory_now.get("VmHWM", 0))
            passed = time.perf_counter() - start
            if passed > seconds or held > memory:
                reason = "time" if passed > seconds else "memory"
                raise Exceeded(reason, passed, peak)
        try:
            is_done, result = ours.recv()
        except EOFError:
            process.join()
            if process.exitcode == RAN_OUT:
                raise Exceeded("time", time.perf_counter() - start, peak) from None
            raise Failed(f"its process ended with exit code {process.exitcode}") from None
        if not is_done:
            raise Failed(result)
        return result
    finally:
        process.join(EVERY)
        _kill(process)
        process.join()
        ours.close()


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End this process, if it is one of `within_limits`, when the block takes longer: a limit of
    one part of its work. A process that lets no other thread run is ended by the limit of all."""
    watch = threading.Timer(seconds, os._exit, (RAN_OUT,))
    watch.daemon = True
    if multiprocessing.parent_process() is not None:
        watch.start()
    try:
        yield
    finally:
        watch.cancel()


def _kill(process: Any) -> None:
    """The process and those that it started, as far as they still run."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (AttributeError, ProcessLookupError):  # no groups here, or not yet one of its own
        process.kill()


def _child(connection: Connection, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    if hasattr(os, "setsid"):
        os.setsid()  # a group of its own, to be ended as one
    try:
        answer = (True, work(*arguments))
    except Exception as error:
        answer = (False, f"{type(error).__name__}: {error}")
    connection.send(answer)
    connection.close()
