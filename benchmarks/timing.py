"""Time and memory: how every table measures them."""

from __future__ import annotations

import multiprocessing
import re
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
SPAWN = multiprocessing.get_context("spawn")


class Timed(NamedTuple):
    """What some work returned, and its wall-clock seconds."""

    value: Any
    seconds: float


def timed(work: Callable[[], Any]) -> Timed:
    """Run some work once."""
    start = time.perf_counter()
    value = work()
    return Timed(value, time.perf_counter() - start)


def best_seconds(work: Callable[[], Any], repeats: int = 5) -> float:
    """The shortest of some repetitions, after one that loads and compiles."""
    work()
    return min(timed(work).seconds for _ in range(repeats))


def warm_up(states: tuple[tuple[int, int], ...] = ((2, 2), (3, 10))) -> None:
    """Compile the kernels, so that no row pays for it in time or memory; pairs of states and
    categories."""
    from latenttree.estimator import LatentTree
    from latenttree.evaluation.datasets import make_latent_tree

    for n_states, n_categories in states:
        data = make_latent_tree(9, n_states, n_categories, n_samples=3_000, random_state=0)
        LatentTree(n_states=n_states, random_state=0).fit(data.X.astype(np.uint8))


# ---- processes and their memory ------------------------------------------------------------------


def in_fresh_process(work: Callable[..., T], *arguments: Any) -> T:
    """`work(*arguments)` in a new interpreter, whose memory is its own from the start."""
    with ProcessPoolExecutor(max_workers=1, mp_context=SPAWN) as pool:
        return pool.submit(work, *arguments).result()


def memory_of(pid: int | str | None = "self") -> dict[str, int]:
    """Bytes of a process: `VmRSS` now, `VmHWM` at its most (which `exec` resets, unlike
    `ru_maxrss`), `RssAnon` of its own, `RssFile` of mapped files. Empty where there is no /proc."""
    try:
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return {}
    pattern = r"^(VmRSS|VmHWM|RssAnon|RssFile):\s*(\d+) kB"
    return {name: int(kib) * 1024 for name, kib in re.findall(pattern, text, re.MULTILINE)}


def peak_memory() -> int:
    """Largest resident memory of this process so far, in bytes."""
    peak = memory_of().get("VmHWM")
    if peak is not None:
        return peak
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


class MemoryWatch(threading.Thread):
    """The most that each kind of memory of this process was, looked at every 20 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most: dict[str, int] = {}
        self.look()

    def look(self) -> None:
        """Take the values of now into account."""
        for name, value in memory_of().items():
            self.most[name] = max(self.most.get(name, 0), value)

    def run(self) -> None:
        """Until the process ends."""
        while True:
            self.look()
            time.sleep(0.02)
