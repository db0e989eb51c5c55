"""Files beyond memory: peak memory and time of reading and of the fit, by format and limit.

Samples of a known balanced tree (p = 27 categorical variables for tables, 300 words or codes for
presence), written to a folder for temporary files and read in a fresh process with a limit of
memory. "held" is memory of the process's own at its most, "mapped" what it had of mapped files,
which the system takes back when others need it. RF is against the true tree.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.common import console, options, save, table
from latenttree.data.streaming.scratch import map_of
from latenttree.tree import Tree

BLOCK = 100_000  # rows drawn at once
WORDS = 243
LIMIT = "500MB"


# ---- data -------------------------------------------------------------------------------


def truth(p: int, categories: int) -> Any:
    return lt.datasets.make_latent_tree(
        p, 2, categories, edge_length=0.3, n_samples=BLOCK, random_state=0
    )


def blocks(p: int, categories: int, n: int) -> Iterator[NDArray[np.int64]]:
    """Rows of the known tree: those of one large sample again and again, a few of their values
    exchanged between rows, so that rows differ and the tree stays the same."""
    base = np.asarray(truth(p, categories).X, dtype=np.int64)
    rng = np.random.default_rng(0)
    for start in range(0, n, BLOCK):
        rows = base[rng.integers(0, BLOCK, min(BLOCK, n - start))]
        other = base[rng.integers(0, BLOCK, len(rows))]
        yield np.where(rng.random(rows.shape) < 0.02, other, rows)


def write_npy(path: Path, size: int) -> None:
    n = size // (27 * 8)
    array = np.lib.format.open_memmap(path, "w+", np.int64, (n, 27))
    for start, block in zip(range(0, n, BLOCK), blocks(27, 4, n), strict=True):
        array[start : start + len(block)] = block


def write_floats(path: Path, size: int) -> None:
    """The first nine columns as numbers around their category."""
    n = size // (9 * 8)
    array = np.lib.format.open_memmap(path, "w+", np.float64, (n, 9))
    rng = np.random.default_rng(1)
    for start, block in zip(range(0, n, BLOCK), blocks(9, 2, n), strict=True):
        array[start : start + len(block)] = 2.5 * block + rng.normal(size=block.shape)


def write_parquet(path: Path, size: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(27)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for block in blocks(27, 4, size // (27 * 8)):
            writer.write_table(pa.table(dict(zip(names, block.T, strict=True)), schema=schema))


def write_csv(path: Path, size: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"x{j}" for j in range(27)])
        for block in blocks(27, 4, size // (27 * 2)):
            writer.writerows(block.tolist())


def write_docword(path: Path, size: int) -> None:
    rows = size // 1200  # about so many bytes a document
    parts, entries = [], 0
    for start, block in zip(range(0, rows, BLOCK), blocks(WORDS, 2, rows), strict=True):
        docs, words = np.nonzero(block)
        parts.append(path.with_suffix(f".{start}"))
        np.savetxt(parts[-1], np.column_stack([docs + 1 + start, words + 1, words * 0 + 1]), "%d")
        entries += len(docs)
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f"{rows}\n{WORDS}\n{entries}\n".encode())
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, file)
            part.unlink()
    vocabulary = path.with_name("vocab.words.txt")
    vocabulary.write_text("\n".join(f"x{j}" for j in range(WORDS)))


def write_events(path: Path, size: int) -> None:
    """Patient and code, in no order."""
    rng = np.random.default_rng(2)
    n = size // 1200
    with path.open("w") as file:
        file.write("patient,code\n")
        for start, block in zip(range(0, n, BLOCK), blocks(WORDS, 2, n), strict=True):
            pairs = np.column_stack(np.nonzero(block))
            pairs[:, 0] = (pairs[:, 0] + start) * 7919 % n  # neighbours are far apart
            np.savetxt(file, pairs[rng.permutation(len(pairs))], "%d,x%d")


FORMATS: dict[str, tuple[str, Callable[[Path, int], None]]] = {
    "npy": ("x.npy", write_npy),
    "memmap": ("x.npy", write_npy),
    "floats": ("x.npy", write_floats),
    "parquet": ("x.parquet", write_parquet),
    "csv": ("x.csv", write_csv),
    "docword": ("docword.words.txt.gz", write_docword),
    "events": ("x.csv", write_events),
}


# ---- measuring, in a process of its own ---------------------------------------------------


class Watch(threading.Thread):
    """The most memory that was held and mapped, seen every 20 ms."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most = {"RssAnon": 0, "RssFile": 0, "VmRSS": 0}

    def run(self) -> None:
        while True:
            for line in Path("/proc/self/status").read_text().splitlines():
                name, _, value = line.partition(":")
                if name in self.most:
                    self.most[name] = max(self.most[name], int(value.split()[0]) * 1024)
            time.sleep(0.02)


def measure(name: str, path: Path, limit: str, iterations: int) -> dict[str, Any]:
    from latenttree.data import as_table, read_events, read_table

    _warm()
    watch = Watch()
    watch.start()
    time.sleep(0.05)
    before = watch.most["VmRSS"]
    start = time.perf_counter()
    if name == "events":
        found = read_events(path, memory_limit=limit).table()
    elif name == "memmap":
        found = as_table(np.load(path, mmap_mode="r"), memory_limit=limit)
    else:
        found = read_table(path, memory_limit=limit)
    read, seconds = dict(watch.most), time.perf_counter() - start
    model = lt.LatentTree(2, random_state=0, search=False, max_iter=iterations).fit(found)
    stored = found.codes if found.codes is not None else found.matrix.indices
    return {
        "n": found.n_samples,
        "p": found.n_vars,
        "mapped": map_of(stored) is not None,
        "imports": before,
        "read": read | {"seconds": seconds},
        "all": watch.most | {"seconds": time.perf_counter() - start},
        "stages": model.diagnostics_.stage_seconds,
        "rf": _rf(model.tree_, found.n_vars),
    }


def _warm() -> None:
    """Imports and compiled kernels are no part of the data."""
    X = np.asarray(truth(9, 2).X[:2000])
    lt.LatentTree(2, random_state=0, search=False, max_iter=2).fit(X)


def _rf(tree: Tree, p: int) -> float:
    names = [f"x{j}" for j in range(p)]
    if set(tree.observed_names) != set(names):
        return float("nan")
    known: Tree = truth(p, 4 if p == 27 else 2).tree
    return float(lt.metrics.robinson_foulds(tree, known))


def run(name: str, path: Path, limit: str, iterations: int) -> dict[str, Any]:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--measure", name, str(path), limit, str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


# ---- the runner ---------------------------------------------------------------------------


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        name, path, limit, iterations = sys.argv[2:]
        print(json.dumps(measure(name, Path(path), limit, int(iterations))))
        return
    parser = options(__doc__, 1)
    parser.add_argument("--formats", nargs="+", choices=FORMATS, default=list(FORMATS))
    parser.add_argument("--megabytes", type=int, help="size of a file (default 2000; quick 20)")
    parser.add_argument("--limits", nargs="+", default=None, help="limits of memory")
    parser.add_argument("--max-iter", type=int, default=5, help="steps of EM")
    args = parser.parse_args()
    results = [result for name in args.formats for result in _format(name, args)]
    columns = "format|file|limit|table|rows x variables|reading|held|mapped"
    shown = table("Files beyond memory", f"{columns}|fit|held|mapped|peak|RF")
    for result in results:
        shown.add_row(*_row(result))
    console.print(shown)
    save("streaming", args, results)


def _format(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    size = (args.megabytes or (20 if args.quick else 2000)) * 1_000_000
    if name in ("csv", "events", "docword") and args.megabytes is None:
        size //= 4  # of text
    limits = args.limits or (["5MB"] if args.quick else [LIMIT])
    file, write = FORMATS[name]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        write(path, size)
        for limit in limits:
            found = {"format": name, "limit": limit, "bytes": path.stat().st_size}
            found |= run(name, path, limit, args.max_iter)
            console.print(" ".join(_row(found)))
            yield found


def _row(result: dict[str, Any]) -> list[str]:
    def memory(part: str, name: str) -> str:
        return f"{result[part][name] / 2**20:,.0f} MiB"

    read, whole = result["read"]["seconds"], result["all"]["seconds"]
    return [
        result["format"],
        f"{result['bytes'] / 1e6:,.0f} MB",
        result["limit"],
        "mapped" if result["mapped"] else "in memory",
        f"{result['n']:,} x {result['p']}",
        f"{read:.1f} s",
        memory("read", "RssAnon"),
        memory("read", "RssFile"),
        f"{whole - read:.1f} s",
        memory("all", "RssAnon"),
        memory("all", "RssFile"),
        memory("all", "VmRSS"),
        f"{result['rf']:g}",
    ]


if __name__ == "__main__":
    main()
