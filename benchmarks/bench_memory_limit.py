"""Limits of memory: the most that a process held during a fit, by input and limit.

Each fit runs in a process of its own, with compiled kernels at hand. "peak" is the largest resident
set of the process (VmHWM), Python, libraries and kernels included, as the limit is; "refused" says
that the limit was too small, and which one the error names.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

import latenttree as lt
from benchmarks.common import console, options, save, table
from latenttree.engine.memory import memory_bytes, peak_memory
from latenttree.errors import DataError

BLOCK = 100_000  # rows drawn at once
LEAST = re.compile(r"raise (?:it|memory_limit) to ([0-9.]+) MiB")


# ---- data -------------------------------------------------------------------------------


def blocks(n: int, p: int) -> Iterator[NDArray[np.uint8]]:
    """0/1 rows of a known tree, some of their values exchanged between rows."""
    drawn = lt.datasets.make_latent_tree(p, 2, 2, edge_length=0.3, n_samples=min(n, BLOCK))
    base = np.asarray(drawn.X, dtype=np.uint8)
    rng = np.random.default_rng(0)
    for start in range(0, n, BLOCK):
        rows, others = (base[rng.integers(0, len(base), min(BLOCK, n - start))] for _ in range(2))
        yield np.where(rng.random(rows.shape) < 0.02, others, rows)


def words(n: int, p: int, length: int = 60) -> sparse.csr_array:
    """Words of documents, two fifths of which are of one of fifty topics."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, p // 50, (n, length)) * 50 + rng.integers(0, 50, n)[:, None]
    found = np.where(rng.random((n, length)) < 0.4, own, rng.integers(0, p, (n, length)))
    rows = np.repeat(np.arange(n), length)
    X = sparse.csr_array((np.ones(n * length, np.float32), (rows, found.ravel())), shape=(n, p))
    X.data[:] = 1
    return X


def write_npy(path: Path, n: int, p: int) -> None:
    array = np.lib.format.open_memmap(path, "w+", np.uint8, (n, p))
    for start, block in zip(range(0, n, BLOCK), blocks(n, p), strict=True):
        array[start : start + len(block)] = block


def write_floats(path: Path, n: int, p: int) -> None:
    array = np.lib.format.open_memmap(path, "w+", np.float64, (n, p))
    rng = np.random.default_rng(1)
    for start, block in zip(range(0, n, BLOCK), blocks(n, p), strict=True):
        array[start : start + len(block)] = 2.5 * block + rng.normal(size=block.shape)


def write_npz(path: Path, n: int, p: int) -> None:
    sparse.save_npz(path, words(n, p), compressed=False)


def write_parquet(path: Path, n: int, p: int) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(p)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with parquet.ParquetWriter(path, schema) as writer:
        for block in blocks(n, p):
            columns = dict(zip(names, block.T.astype(np.int64), strict=True))
            writer.write_table(pa.table(columns, schema=schema))


def write_csv(path: Path, n: int, p: int) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"x{j}" for j in range(p)])
        for block in blocks(n, p):
            writer.writerows(block.tolist())


def write_docword(path: Path, n: int, p: int) -> None:
    X = words(n, p).tocoo()
    with path.open("w") as file:
        file.write(f"{n}\n{p}\n{X.nnz}\n")
        np.savetxt(file, np.column_stack([X.row + 1, X.col + 1, np.ones(X.nnz, int)]), "%d")
    path.with_name("vocab.words.txt").write_text("\n".join(f"w{j}" for j in range(p)))


Case = tuple[str, Callable[[Path, int, int], None], tuple[int, int], tuple[int, int], list[str]]

CASES: dict[str, Case] = {
    # file, how it is written, size, quick size, limits
    "npy": ("x.npy", write_npy, (5_000_000, 60), (500_000, 60), ["350MiB", "400MiB", "600MiB"]),
    "npz": ("x.npz", write_npz, (200_000, 5000), (20_000, 1000), ["400MiB", "520MiB", "600MiB"]),
    "matrix": ("x.npz", write_npz, (200_000, 5000), (20_000, 1000), ["500MiB", "700MiB", "900MiB"]),
    "wide": ("x.npy", write_npy, (1500, 6000), (500, 1000), ["400MiB", "500MiB", "600MiB"]),
    "floats": ("x.npy", write_floats, (2_000_000, 20), (100_000, 20), ["400MiB", "600MiB"]),
    "parquet": ("x.parquet", write_parquet, (2_000_000, 40), (200_000, 40), ["350MiB", "500MiB"]),
    "csv": ("x.csv", write_csv, (2_000_000, 20), (200_000, 20), ["350MiB", "500MiB"]),
    "docword": (
        "docword.words.txt",
        write_docword,
        (100_000, 3000),
        (10_000, 1000),
        ["400MiB", "500MiB"],
    ),
}


# ---- measuring, in a process of its own ---------------------------------------------------


def measure(name: str, path: Path, limit: str, iterations: int) -> dict[str, Any]:
    X = sparse.load_npz(path) if name == "matrix" else path
    start = time.perf_counter()
    found: dict[str, Any] = {"refused": ""}
    try:
        model = lt.LatentTree(2, memory_limit=limit, random_state=0, max_iter=iterations)
        found["stages"] = model.fit(X).diagnostics_.stage_seconds
    except DataError as error:
        least = LEAST.search(str(error))
        found["refused"] = str(error) if least is None else f"least {least[1]} MiB"
    return found | {"peak": peak_memory(), "seconds": time.perf_counter() - start}


def run(name: str, path: Path, limit: str, iterations: int) -> dict[str, Any]:
    """`measure` in a fresh process."""
    command = [sys.executable, __file__, "--measure", name, str(path), limit, str(iterations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def warm(iterations: int) -> None:
    """Compile what the fits need: what the compiler takes is no part of a fit."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (file, write, *_) in CASES.items():
            path = Path(folder) / name / file
            path.parent.mkdir()
            write(path, 5000, 100)
            run(name, path, "4GiB", iterations)


# ---- the runner ---------------------------------------------------------------------------


def main() -> None:
    if sys.argv[1:2] == ["--measure"]:
        name, given, limit, iterations = sys.argv[2:]
        print(json.dumps(measure(name, Path(given), limit, int(iterations))))
        return
    parser = options(__doc__, 1)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--limits", nargs="+", default=None, help="limits of memory")
    parser.add_argument("--max-iter", type=int, default=5, help="steps of EM")
    args = parser.parse_args()
    warm(args.max_iter)
    results = [result for name in args.cases for result in _case(name, args)]
    shown = table("Limits of memory", "input|rows x variables|limit|peak|held to|seconds|refused")
    for result in results:
        shown.add_row(*_row(result))
    console.print(shown)
    save("memory_limit", args, results)


def _case(name: str, args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    file, write, size, quick, limits = CASES[name]
    n, p = quick if args.quick else size
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / file
        write(path, n, p)
        for limit in args.limits or limits:
            found = {"input": name, "n": n, "p": p, "limit": limit}
            found |= run(name, path, limit, args.max_iter)
            console.print(" ".join(_row(found)))
            yield found


def _row(result: dict[str, Any]) -> list[str]:
    limit = memory_bytes(result["limit"])
    return [
        result["input"],
        f"{result['n']:,} x {result['p']:,}",
        result["limit"],
        f"{result['peak'] / 2**20:,.0f} MiB",
        "yes" if result["peak"] <= limit else "NO",
        f"{result['seconds']:.1f}",
        result["refused"],
    ]


if __name__ == "__main__":
    main()
