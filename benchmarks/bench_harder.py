"""Harder trees: ours without tuning against rivals, over shapes, sizes, states and samples.

Every method sees the same samples; all but the last see the same distances.

  ours       LatentTree as it comes
  nj_oracle  neighbour joining, contracted at the threshold that is best knowing the truth
  clrg       CLGrouping with its authors' constants
  merge      ours with the sweeps off
  pairwise   ours on distances from an SVD of every pair (the paper's estimator)

A cell of the table is the mean normalised Robinson-Foulds distance ± its standard error over seeds.
A fit that `LatentTree` refuses (below the detection limit) has no tree and counts as 1.

Ours is *best or equal* in a cell when, for every other column, the mean over seeds of ours minus
that column is at most one standard error of this paired difference. The share by the plainer rule
is printed as well: mean of ours <= best other mean + the larger of their two standard errors.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import latenttree as lt
from common import console, learn, mean_and_error, n_seeds, options, save, source_hash, table
from latenttree.data import Table, as_table
from latenttree.distances import Distances, estimate_distances, pairwise_distances
from latenttree.reports import DetectionLimitError, check_detection
from rivals import estimate

METHODS = ("ours", "nj_oracle", "clrg", "merge", "pairwise")
SHAPES: dict[str, dict[str, Any]] = {
    "balanced": {"shape": "balanced", "edge_length": 0.5},
    "random": {"shape": "random", "arity": 3, "edge_length": (0.15, 1.0)},
    "caterpillar": {"shape": "caterpillar", "edge_length": 0.5, "leaf_length": 0.4},
}
SIZES = (27, 81)
DIMENSIONS = ((2, 2), (10, 3), (5, 5))
SAMPLES = (500, 2_000, 10_000, 50_000)


class Cell(NamedTuple):
    shape: str
    p: int
    d: int
    k: int
    n: int


def cells(quick: bool) -> list[Cell]:
    sizes, samples = (SIZES[:1], SAMPLES[:2]) if quick else (SIZES, SAMPLES)
    grid = product(SHAPES, sizes, DIMENSIONS, samples)
    return [Cell(shape, p, d, k, n) for shape, p, (d, k), n in grid]


def one_hot_moments(table: Table) -> NDArray[np.float64]:
    """Counts `(p d, p d)` of all pairs of categories; exact, being integers below 2^24."""
    p, width = table.n_vars, int(table.offsets[-1])
    counts = np.zeros((width, width))
    for start in range(0, table.n_samples, 4096):
        codes = np.asarray(table.rows(start, min(start + 4096, table.n_samples)), dtype=np.int64)
        block = np.zeros((len(codes), width), dtype=np.float32)
        block[np.arange(len(codes))[:, None], codes + table.offsets[:p]] = 1.0
        counts += block.T @ block
    return counts


def fast_pairwise(table: Table, n_states: int) -> Distances:
    """`latenttree.distances.pairwise_distances` of categorical variables, from their counts.

    The canonical correlations of two one-hot blocks are the singular values of
    `(P_ab - P_a P_b^T) / sqrt(P_a P_b^T)`: contingency tables instead of SVDs of the samples.
    """
    p, rank, n = table.n_vars, n_states - 1, table.n_samples
    d = int(table.widths.max())
    if not (table.widths == d).all():
        raise ValueError(f"variables have {set(table.widths.tolist())} categories; need one number")
    joint = one_hot_moments(table) / n
    marginal = np.diag(joint).copy()
    root = np.sqrt(np.where(marginal > 0, marginal, 1.0))
    scaled = (joint - np.outer(marginal, marginal)) / np.outer(root, root)
    a, b = np.tril_indices(p, -1)
    s = np.linalg.svd(scaled.reshape(p, d, p, d)[a, :, b, :], compute_uv=False)[:, :rank]
    s = np.clip(s, 1e-15, 1.0)
    determinants, errors = np.eye(p), np.zeros((p, p))
    determinants[a, b] = determinants[b, a] = s.prod(axis=1)
    errors[a, b] = errors[b, a] = np.sqrt(((1 - s**2) ** 2 / s**2).sum(axis=1) / n)
    return Distances(determinants, errors, rank, n)


def check_fast_pairwise() -> None:
    """The shortcut is the package's estimator, or the benchmark does not start."""
    X = lt.datasets.make_latent_tree(9, 3, 6, n_samples=500, random_state=0).X
    fast, slow = fast_pairwise(as_table(X), 3), pairwise_distances(as_table(X), 3)
    # both are float64; the slow one loses some digits in SVDs of 500 rows
    np.testing.assert_allclose(fast.values, slow.values, atol=1e-8)
    np.testing.assert_allclose(fast.standard_errors, slow.standard_errors, atol=1e-8)


def is_refused(found: Distances, data: Table, k: int, seed: int) -> bool:
    try:
        check_detection(found, data, k, seed, 1)
    except DetectionLimitError:
        return True
    return False


def run(cell: Cell, seed: int) -> dict[str, Any]:
    """All methods on one data set, each with its normalised RF and its seconds."""
    truth = lt.datasets.make_latent_tree(
        cell.p, cell.k, cell.d, n_samples=cell.n, random_state=seed, **SHAPES[cell.shape]
    )
    rf: dict[str, float] = {}
    seconds: dict[str, float] = {}
    with threadpool_limits(limits=1):
        data = as_table(truth.X)
        start = time.perf_counter()
        found = estimate_distances(data, cell.k, random_state=seed, n_jobs=1)
        seconds["distances"] = time.perf_counter() - start
        for method, tree in trees(found, data, cell, truth.tree, seconds):
            rf[method] = lt.metrics.robinson_foulds(truth.tree, tree, normalized=True)
        refused = is_refused(found, data, cell.k, seed)
    if refused:
        rf |= {"ours": 1.0, "merge": 1.0}
    return {**cell._asdict(), "seed": seed, "rf": rf, "seconds": seconds, "refused": refused}


def trees(
    found: Distances, data: Table, cell: Cell, truth: lt.Tree, seconds: dict[str, float]
) -> Iterator[tuple[str, lt.Tree]]:
    """The tree of every method; `seconds` takes the time of each."""
    names = data.names
    for method in METHODS:
        start = time.perf_counter()
        if method in ("ours", "merge"):
            tree = learn(found, names, sweeps=method == "ours")
        elif method == "pairwise":
            tree = learn(fast_pairwise(data, cell.k), names)
        else:
            tree = estimate(
                method, found.values, found.standard_errors, found.n_samples, names, truth
            )
        seconds[method] = time.perf_counter() - start
        yield method, tree


class Log:
    """Finished runs, a line each, so that an interrupted benchmark can go on."""

    def __init__(self, path: Path, resume: bool) -> None:
        self.path, self.source = path, source_hash()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.rows: list[dict[str, Any]] = []
        if resume and path.is_file():
            self._read()
        else:
            path.write_text("")
        self.done = {(cell_of(row), row["seed"]) for row in self.rows}

    def _read(self) -> None:
        """Keep what the present source has made; a line cut short by the interruption is lost."""
        n_lines = 0
        for line in self.path.read_text().splitlines():
            n_lines += 1
            try:
                row = json.loads(line)
            except json.JSONDecodeError:
                continue
            if row["source"] == self.source:
                self.rows.append(row)
        self.path.write_text("".join(json.dumps(row) + "\n" for row in self.rows))
        console.print(f"resumed: {len(self.rows)} of {n_lines} runs are of the present source")

    def add(self, row: dict[str, Any]) -> None:
        self.rows.append(row | {"source": self.source})
        with self.path.open("a") as file:
            file.write(json.dumps(self.rows[-1]) + "\n")


def cell_of(row: dict[str, Any]) -> Cell:
    return Cell(*(row[field] for field in Cell._fields))


def fill(log: Log, grid: list[Cell], seeds: int, jobs: int) -> None:
    """Run what is missing, the largest first so that no process waits alone at the end."""
    todo = [(cell, seed) for cell in grid for seed in range(seeds) if (cell, seed) not in log.done]
    todo.sort(key=lambda task: -task[0].n * task[0].p)
    spawn = multiprocessing.get_context("spawn")
    start = time.perf_counter()
    with ProcessPoolExecutor(jobs, mp_context=spawn) as pool:
        futures = [pool.submit(run, cell, seed) for cell, seed in todo]
        try:
            for i, future in enumerate(as_completed(futures), 1):
                log.add(future.result())
                if i % -(-len(todo) // 20) == 0:
                    elapsed = time.perf_counter() - start
                    console.print(f"{i} of {len(todo)}, {elapsed:.0f} s", style="dim")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


class Verdict(NamedTuple):
    cell: Cell
    means: dict[str, float]
    errors: dict[str, float]
    paired: bool
    plain: bool
    refused: int


def judge(cell: Cell, rows: list[dict[str, Any]]) -> Verdict:
    """Is ours best or equal here? Both rules of the module's docstring."""
    rf = {m: np.array([row["rf"][m] for row in rows]) for m in METHODS}
    summary = {m: mean_and_error(rf[m]) for m in METHODS}
    means = {m: summary[m][0] for m in METHODS}
    errors = {m: float(np.nan_to_num(summary[m][1])) for m in METHODS}
    others = METHODS[1:]
    gaps = [mean_and_error(rf["ours"] - rf[m]) for m in others]
    paired = all(gap <= np.nan_to_num(error) + 1e-12 for gap, error in gaps)
    best = min(others, key=lambda m: means[m])
    plain = means["ours"] <= means[best] + max(errors["ours"], errors[best]) + 1e-12
    return Verdict(cell, means, errors, paired, plain, sum(row["refused"] for row in rows))


def show(verdicts: list[Verdict], seeds: int) -> None:
    made = table(
        f"Mean normalised RF ± standard error, {seeds} seeds; ● ours best or equal",
        "|".join(["shape", "p", "d, k", "N", *METHODS, "", "refused"]),
    )
    for i, v in enumerate(verdicts):
        if i and v.cell[:4] != verdicts[i - 1].cell[:4]:
            made.add_section()
        best = min(v.means.values())
        texts = [f"{v.means[m]:.3f} ± {v.errors[m]:.3f}" for m in METHODS]
        bold = [v.means[m] <= best + 1e-12 for m in METHODS]
        made.add_row(
            v.cell.shape,
            str(v.cell.p),
            f"{v.cell.d}, {v.cell.k}",
            f"{v.cell.n:,}",
            *(f"[bold]{t}[/]" if b else t for t, b in zip(texts, bold, strict=True)),
            "●" if v.paired else "",
            str(v.refused or ""),
        )
    console.print(made)


def show_shares(verdicts: list[Verdict]) -> dict[str, float]:
    """Print and return the share of cells in which ours is best or equal, by both rules."""
    n = len(verdicts)
    shares = {
        "paired": sum(v.paired for v in verdicts) / n,
        "larger_error": sum(v.plain for v in verdicts) / n,
    }
    console.print(
        f"ours best or equal in {shares['paired']:.0%} of {n} cells (within one standard error of "
        f"the paired difference to every column); {shares['larger_error']:.0%} within the larger "
        "standard error of the two means"
    )
    made = table("Share of cells, paired rule", "part|cells|share")
    for field in Cell._fields:
        for value in sorted({getattr(v.cell, field) for v in verdicts}):
            part = [v.paired for v in verdicts if getattr(v.cell, field) == value]
            made.add_row(f"{field} = {value}", str(len(part)), f"{np.mean(part):.0%}")
    console.print(made)
    return shares


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=10)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    return parser.parse_args()


def main() -> None:
    args = parse()
    check_fast_pairwise()
    grid, seeds = cells(args.quick), n_seeds(args)
    log = Log(args.out / f"harder{'_quick' if args.quick else ''}.jsonl", args.resume)
    start = time.perf_counter()
    fill(log, grid, seeds, args.jobs)
    console.print(f"{time.perf_counter() - start:.0f} s in {args.jobs} processes")
    by_cell: dict[Cell, list[dict[str, Any]]] = {cell: [] for cell in grid}
    for row in sorted(log.rows, key=lambda row: row["seed"]):
        if row["seed"] < seeds and cell_of(row) in by_cell:
            by_cell[cell_of(row)].append(row)
    verdicts = [judge(cell, rows) for cell, rows in by_cell.items()]
    show(verdicts, seeds)
    shares = show_shares(verdicts)
    runs = [row for rows in by_cell.values() for row in rows]
    results = {"cells": [v._asdict() | {"cell": v.cell._asdict()} for v in verdicts]}
    save("harder", args, results | {"shares": shares, "runs": runs})


if __name__ == "__main__":
    main()
