"""Limits of memory: what a process held during a fit, and while it read files beyond memory."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.data.files import (
    TopicWords,
    TreeRows,
    write_csv,
    write_docword,
    write_events,
    write_floats,
    write_npy,
    write_npz,
    write_parquet,
)
from benchmarks.grids import LABEL, Column, Row, field, mebibytes
from benchmarks.registry import Table
from benchmarks.settings import Choice, Settings
from benchmarks.timing import MemoryWatch, in_fresh_process, peak_memory, timed, warm_up
from latenttree.data import as_table, read_events, read_table
from latenttree.data.streaming.scratch import map_of
from latenttree.engine.memory import memory_bytes
from latenttree.errors import DataError
from latenttree.estimator import LatentTree
from latenttree.evaluation.metrics import robinson_foulds

ABOUT = """Each fit runs in a process of its own, with compiled kernels at hand, and is given the
limit as `memory_limit`. "Peak" is the largest resident set of the process (VmHWM), Python,
libraries and kernels included, as the limit is; "refused" says that the limit was too small, and
which one the error names. "matrix" is the .npz file as a SciPy matrix that is in memory already."""
ABOUT_STREAMING = """Samples of a known balanced tree (p = 27 categorical variables for tables, 243
sparse binary words or codes, nine numbers), written to a folder for temporary files and read in a
fresh process with a limit of memory. "Held" is memory of the process's own at its most, "mapped"
what it had of mapped files, which the system takes back when others need it. RF is against the true
tree."""

Rows = TreeRows | TopicWords
LEAST = re.compile(r"raise \S+ to ([\d.,]+ \w+)")


class File(NamedTuple):
    """A file: its name, how it is written, its rows (at full and at quick size), its limits."""

    name: str
    write: Callable[[Path, Any], None]
    rows: Rows
    quick: Rows
    limits: tuple[str, ...] = ()


def measure_files(
    files: Mapping[str, File], settings: Settings, fit: Callable[[str, Path, str, int], Any]
) -> dict[str, Any]:
    """A row for each file and limit: what `fit` measures of it in a process of its own, after a
    small file of the same kind for which kernels are compiled."""
    found = []
    for kind, file in files.items():
        rows = file.quick if settings.quick else file.rows
        given = tuple(limit for limit in settings.choices["limits"] if limit)
        labels = {x: f"{kind}, {rows.n:,} x {rows.p:,}, {x}" for x in given or file.limits}
        wanted = {limit: label for limit, label in labels.items() if settings.wants(label)}
        if not wanted:
            continue
        with tempfile.TemporaryDirectory(prefix="latenttree-bench-") as folder:
            path, steps = Path(folder) / file.name, settings.choices["max_iter"]
            for size in (replace(rows, n=min(rows.n, 5_000), p=min(rows.p, 100)), rows):
                in_fresh_process(file.write, path, size)
                for limit in wanted if size is rows else ("4GiB",):
                    row = in_fresh_process(fit, kind, path, limit, steps)
                    if size is rows:
                        shape = {"n": rows.n, "p": rows.p, "bytes": path.stat().st_size}
                        found.append({"label": wanted[limit], "limit": limit, **shape, **row})
                        settings.say(f"{wanted[limit]}: {mebibytes(row['peak_bytes'])}")
    return {"rows": found}


# ---- limits of a fit -----------------------------------------------------------------------------

SIZES = {
    "npy": File("x.npy", write_npy, TreeRows(5_000_000, 60), TreeRows(500_000, 60),
                ("350MiB", "400MiB", "600MiB")),
    "npz": File("x.npz", write_npz, TopicWords(200_000, 5000), TopicWords(20_000, 1000),
                ("400MiB", "520MiB", "600MiB")),
    "matrix": File("x.npz", write_npz, TopicWords(200_000, 5000), TopicWords(20_000, 1000),
                   ("500MiB", "700MiB", "900MiB")),
    "wide": File("x.npy", write_npy, TreeRows(1500, 6000), TreeRows(500, 1000),
                 ("400MiB", "500MiB", "600MiB")),
    "floats": File("x.npy", write_floats, TreeRows(2_000_000, 20), TreeRows(100_000, 20),
                   ("400MiB", "600MiB")),
    "parquet": File("x.parquet", write_parquet, TreeRows(2_000_000, 40), TreeRows(200_000, 40),
                    ("350MiB", "500MiB")),
    "csv": File("x.csv", write_csv, TreeRows(2_000_000, 20), TreeRows(200_000, 20),
                ("350MiB", "500MiB")),
    "docword": File("docword.words.txt", write_docword, TopicWords(100_000, 3000),
                    TopicWords(10_000, 1000), ("400MiB", "500MiB")),
}  # fmt: skip


def measure(settings: Settings) -> dict[str, Any]:
    """All files and limits."""
    return measure_files(SIZES, settings, fit_limited)


def fit_limited(kind: str, path: Path, limit: str, steps: int) -> dict[str, Any]:
    """Fit a file, or the matrix in it, in this process."""
    X = sparse.load_npz(path) if kind == "matrix" else path

    def attempt() -> dict[str, Any]:
        try:
            model = LatentTree(2, memory_limit=limit, random_state=0, max_iter=steps).fit(X)
        except DataError as error:
            least = LEAST.search(str(error))
            return {"refused": f"least {least[1]}" if least else str(error)}
        return {"refused": None, "stages": model.diagnostics_.stage_seconds}

    row, seconds = timed(attempt)
    return {**row, "peak_bytes": peak_memory(), "seconds": seconds}


def _is_held(row: Row) -> str:
    return "yes" if row["peak_bytes"] <= memory_bytes(row["limit"]) else "no: more"


COLUMNS = (
    LABEL._replace(heading="input"),
    Column("peak", lambda row: mebibytes(row["peak_bytes"])),
    Column("within the limit", _is_held),
    Column("s", field("seconds", ".1f")),
    Column("refused", field("refused")),
)


# ---- files beyond memory -------------------------------------------------------------------------

LARGE, SMALL = 2_000_000_000, 20_000_000
"""Bytes of a file at full and at quick size."""


def _large(name: str, write: Callable[..., None], p: int, n_categories: int, width: int) -> File:
    """A file of tree rows; `width` bytes a row."""
    full, quick = (TreeRows(size // width, p, n_categories) for size in (LARGE, SMALL))
    return File(name, write, full, quick)


CODES = partial(write_npy, dtype=np.int64)
FORMATS = {
    "npy": _large("x.npy", CODES, 27, 4, 27 * 8),
    "memmap": _large("x.npy", CODES, 27, 4, 27 * 8),
    "floats": _large("x.npy", write_floats, 9, 2, 9 * 8),
    "parquet": _large("x.parquet", write_parquet, 27, 4, 27 * 8),
    # a quarter of the size for text; some 1,200 bytes a document or patient
    "csv": _large("x.csv", write_csv, 27, 4, 27 * 2 * 4),
    "docword": _large("docword.words.txt.gz", write_docword, 243, 2, 1200 * 4),
    "events": _large("x.csv", write_events, 243, 2, 1200 * 4),
}


def measure_streaming(settings: Settings) -> dict[str, Any]:
    """All formats; files of other sizes where that was asked for."""
    megabytes, files = settings.choices["megabytes"], FORMATS
    if megabytes:
        scale = megabytes * 1_000_000 / LARGE
        files = {
            kind: file._replace(rows=replace(file.rows, n=int(scale * file.rows.n)))
            for kind, file in FORMATS.items()
        }
        settings = replace(settings, quick=False)
    limits = settings.choices["limits"]
    files = {kind: file._replace(limits=limits) for kind, file in files.items()}
    return measure_files(files, settings, read_and_fit)


def read_and_fit(kind: str, path: Path, limit: str, steps: int) -> dict[str, Any]:
    """Read a file, then fit, in this process; the most memory of both."""
    warm_up(((2, 2),))  # imports and kernels are no part of the data
    watch = MemoryWatch()
    watch.start()
    before = watch.most["VmRSS"]
    table, reading = timed(lambda: read(kind, path, limit))
    watch.look()
    read_most = dict(watch.most)
    estimator = LatentTree(2, random_state=0, search=False, max_iter=steps)
    model, fitting = timed(lambda: estimator.fit(table))
    watch.look()
    stored = table.codes if table.codes is not None else table.matrix.indices
    known = TreeRows(2, table.n_vars, 4 if table.n_vars == 27 else 2).truth().tree
    same = set(model.tree_.observed_names) == {f"x{j}" for j in range(table.n_vars)}
    return {
        "is_mapped": map_of(stored) is not None,
        "imports": before,
        "reading": read_most | {"seconds": reading},
        "whole": watch.most | {"seconds": reading + fitting},
        "seconds": fitting,
        "peak_bytes": watch.most["VmRSS"],
        "stages": model.diagnostics_.stage_seconds,
        "rf": float(robinson_foulds(model.tree_, known)) if same else None,
    }


def read(kind: str, path: Path, limit: str) -> Any:
    """The table of a file."""
    if kind == "events":
        return read_events(path, memory_limit=limit).table()
    if kind == "memmap":
        return as_table(np.load(path, mmap_mode="r"), memory_limit=limit)
    return read_table(path, memory_limit=limit)


def _memory(part: str, name: str, heading: str) -> Column:
    return Column(heading, lambda row: mebibytes(row[part][name]))


STREAMING_COLUMNS = (
    LABEL._replace(heading="format"),
    Column("file", lambda row: f"{row['bytes'] / 1e6:,.0f} MB"),
    Column("table", lambda row: "mapped" if row["is_mapped"] else "in memory"),
    Column("reading, s", lambda row: f"{row['reading']['seconds']:.1f}"),
    _memory("reading", "RssAnon", "held"),
    _memory("reading", "RssFile", "mapped"),
    Column("fit, s", field("seconds", ".1f")),
    _memory("whole", "RssAnon", "held"),
    _memory("whole", "RssFile", "mapped"),
    _memory("whole", "VmRSS", "peak"),
    Column("RF", field("rf", "g")),
)


TABLES = (
    Table(
        name="memory-limit",
        shows="what a fit held in memory, by input and limit",
        duration="30 min",
        title="Limits of memory",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        choices={
            "limits": Choice(("",), "limits of memory, instead of each input's own"),
            "max_iter": Choice(5, "steps of EM"),
        },
    ),
    Table(
        name="streaming",
        shows="files beyond memory, by format: memory and time of reading and of the fit",
        duration="30 min",
        title="Files beyond memory",
        about=ABOUT_STREAMING,
        measure=measure_streaming,
        columns=STREAMING_COLUMNS,
        choices={
            "limits": Choice(("500MB",), "limits of memory", quick=("5MB",)),
            "megabytes": Choice(0, "size of a file; text a quarter of it (default 2000)"),
            "max_iter": Choice(5, "steps of EM"),
        },
    ),
)
