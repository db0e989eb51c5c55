"""Thousands of damaged files: a reader gives a result, or a DataError with the name of the file.

    python -m tests.fuzz.fuzz_files --cases 10000 --seed 0

Files are read in processes of their own with limits of time and memory, so that a crash, a hang or
a flood of memory is a result like any other. What goes wrong is told with its seed, and the file is
kept.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from multiprocessing.connection import Connection, wait
from pathlib import Path

from tests.fuzz.questions import FINE, REFUSED, outcome, write_case
from tests.fuzz.samples import write_all

SECONDS = 20.0
"""A file is read within."""
MEMORY = 2 << 30
"""Bytes that reading may take besides what a process has."""
LONG = 300.0
"""Seconds that a process may take to start."""
ENDED = "ended"
"""How the words begin that say how a process went."""

_CONTEXT = multiprocessing.get_context("spawn")


class Worker:
    """A process that reads one damaged file after another."""

    def __init__(self, samples: Path, seed: int) -> None:
        self.connection, other = _CONTEXT.Pipe()
        self.process = _CONTEXT.Process(target=_work, args=(other, samples, seed), daemon=True)
        self.process.start()
        other.close()
        self.case: int | None = None
        self.deadline = time.monotonic() + LONG

    def give(self, case: int | None) -> None:
        """The next case; None where there is no more."""
        self.case = case
        self.deadline = float("inf") if case is None else time.monotonic() + SECONDS
        if case is not None:
            self.connection.send(case)

    def result(self) -> str:
        """What the process says, or how it ended."""
        if not self.connection.poll():
            return f"{ENDED} by its limit of {SECONDS:g} s"
        try:
            return str(self.connection.recv())
        except EOFError:
            self.process.join()
            return f"{ENDED} with exit code {self.process.exitcode}"

    def stop(self) -> None:
        self.process.kill()
        self.process.join()
        self.connection.close()


def _work(connection: Connection, samples: Path, seed: int) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for i, sample in enumerate(sorted(samples.iterdir())):  # loads all that reading needs
            if sample.name != "vocab.small.txt":
                outcome(sample, sample, i)
        _limit_memory()
        connection.send("ready")
        while True:
            case = connection.recv()
            connection.send(outcome(*write_case(samples, folder, seed, case), case))


def _limit_memory() -> None:
    if sys.platform == "linux":
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))


def run(samples: Path, cases: int, seed: int, n_workers: int) -> Iterator[tuple[int, str]]:
    """The outcome of every case, in the order in which they end."""
    workers = [Worker(samples, seed) for _ in range(n_workers)]
    left = iter(range(cases))
    open_cases = cases
    try:
        while open_cases:
            until = min(worker.deadline for worker in workers) - time.monotonic()
            ready = wait([worker.connection for worker in workers], max(0.0, until))
            for i, worker in enumerate(workers):
                if worker.connection not in ready and time.monotonic() < worker.deadline:
                    continue
                case, result = worker.case, worker.result()
                if result.startswith(ENDED):
                    worker.stop()
                    workers[i] = Worker(samples, seed)
                else:
                    worker.give(next(left, None))
                if case is not None:
                    open_cases -= 1
                    yield case, result
                elif result.startswith(ENDED):
                    raise RuntimeError(f"a process that reads files does not start: {result}")
    finally:
        for worker in workers:
            worker.stop()


def failures(cases: int, seed: int, n_workers: int, kept: Path | None) -> Mapping[str, str]:
    """What went wrong, by case; damaged files go to `kept`."""
    wrong: dict[str, str] = {}
    counts: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as scratch:
        samples = Path(name)
        write_all(samples)
        for case, result in run(samples, cases, seed, n_workers):
            counts[result if result in (FINE, REFUSED) else "wrong"] += 1
            if result in (FINE, REFUSED):
                continue
            _, target = write_case(samples, Path(scratch), seed, case)
            label = f"seed {seed}, case {case}, {target.name}"
            wrong[label] = result
            if kept is not None:
                kept.mkdir(parents=True, exist_ok=True)
                (kept / f"{seed}-{case}-{target.name}").write_bytes(target.read_bytes())
                print(f"{label}: {result}", flush=True)
    print(", ".join(f"{n:,} {what}" for what, n in sorted(counts.items())))
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description="Read damaged files of every format.")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--kept", type=Path, default=Path("out/fuzz"))
    given = parser.parse_args()
    return int(bool(failures(given.cases, given.seed, given.workers, given.kept)))


if __name__ == "__main__":
    sys.exit(main())
