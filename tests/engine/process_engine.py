"""A second engine: processes that share nothing, each with chunks of its own in files.

The coordinator has a table without rows. It sends a pickled pass to all processes, each adds up its
chunks, and the pickled totals are merged in the order of the chunks."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from latenttree.data.distinct_rows import distinct_rows
from latenttree.data.table import SHARED, Table
from latenttree.data.values import Values
from latenttree.engine import BLOCK, Pass, blocks, merged

N_PROCESSES = 2


class Processes:
    """The engine. Process i has every chunk of its part of the samples, in order."""

    def __init__(self) -> None:
        command = [sys.executable, str(Path(__file__))]
        self._children = [
            subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(N_PROCESSES)
        ]

    def run(self, pass_: Pass[Any], table: Any, n_jobs: int) -> Any:
        """The total of a pass: the processes work side by side."""
        source, inner = table.at_source(pass_)
        for child, files in zip(self._children, source.files, strict=True):
            pickle.dump((inner, files, n_jobs), child.stdin)
            child.stdin.flush()
        total = None
        for child in self._children:
            part = pickle.load(child.stdout)
            if isinstance(part, Exception):
                raise part
            total = part if total is None else merged(inner, total, part)
        return total

    def end(self) -> None:
        """End the processes."""
        for child in self._children:
            child.communicate()


class FarTable(Table):
    """What is known of a table whose samples are elsewhere: everything but the rows."""

    files: list[list[Path]]

    def __init__(self, table: Table, engine: Processes, folder: Path) -> None:
        known = {name: getattr(table, name) for name in (*SHARED, "n_samples", "weights")}
        known |= {"engine": engine, "files": written(table, folder), "stored": table.n_stored}
        known["values"] = None if table.values is None else without_rows(table.values)
        there = distinct_rows(table)
        near = there is table
        known["distinct"] = None if near else FarTable(there, engine, folder / "distinct")
        for name, value in known.items():
            object.__setattr__(self, name, value)

    @property
    def n_stored(self) -> int | None:
        """Stored coordinates of all samples."""
        return self.stored  # type: ignore[attr-defined,no-any-return]

    def _not_here(self, *_: Any) -> NoReturn:
        raise AssertionError("the rows are elsewhere")

    codes = matrix = missing = property(_not_here)  # type: ignore[assignment]
    rows = chunk = chunks = _not_here  # type: ignore[assignment]


def without_rows(values: Values) -> Values:
    """The forms of values, without any."""
    arrays = {v: x[:0] for v, x in values.arrays.items()}
    return Values(values.families, np.empty((0, len(values.families)), np.int8), arrays)


def written(table: Table, folder: Path) -> list[list[Path]]:
    """Files of chunks of `BLOCK` samples, for each process."""
    folder.mkdir()
    files = []
    for start, stop in blocks(table.n_samples, BLOCK):
        files.append(folder / f"{start}.pickle")
        files[-1].write_bytes(pickle.dumps(table.chunk(start, stop)))
    half = -(-len(files) // N_PROCESSES)
    return [files[i * half : (i + 1) * half] for i in range(N_PROCESSES)]


@contextmanager
def elsewhere(table: Table, folder: Path) -> Iterator[FarTable]:
    """The table with its samples in other processes."""
    engine = Processes()
    try:
        yield FarTable(table, engine, folder / "chunks")
    finally:
        engine.end()


def serve() -> None:
    """Add up chunks until there are no more passes."""
    while True:
        try:
            pass_, files, n_jobs = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        try:
            answer = pass_.start()
            for file in files:
                pass_.add(answer, pickle.loads(file.read_bytes()), n_jobs)
        except Exception as error:
            answer = error
        pickle.dump(answer, sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    serve()
