"""Harder trees: ours without tuning against rivals, over shapes, sizes, states and samples.

Every method sees the same samples; all but `pairwise` see the same distances.

  ours       LatentTree as it comes: doubtful regions settled by likelihood, majority rule
  probable   the tree of largest BIC (tree="most_probable"); with more than 2,000 samples only
             where ours is not the true tree (BIC never falls in the search, so it is at or above
             the true tree's in the others)
  off        ours with the search by likelihood off
  clrg       CLGrouping with its authors' constants
  merge      the structure stage with the sweeps off
  pairwise   the structure stage on distances from an SVD of every pair (the paper's estimator)
  nj_oracle  neighbour joining, contracted at the threshold that is best knowing the truth:
             for reference, it does not count

A cell of the table is the mean normalised Robinson-Foulds distance ± its standard error over seeds.
A fit that `LatentTree` refuses (below the detection limit) has no tree and counts as 1.

Ours is *best or equal* in a cell when, for every other column that does not know the truth, the
mean over seeds of ours minus that column is at most one standard error of this paired difference.

Two more tables: how often the BIC of `probable` is at or above that of the true tree, both refined
to convergence; and how many of ours' inner edges are true, by their stated support.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import latenttree as lt
from benchmarks.common import (
    console,
    fit_tree,
    learn,
    mean_and_error,
    n_seeds,
    options,
    save,
    source_hash,
    table,
)
from benchmarks.rivals_distances import estimate
from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.distances.detection import DetectionLimitError, check_detection
from latenttree.distances.estimate import Distances, estimate_distances, pairwise_distances
from latenttree.distances.similarity import estimated_similarity, mark_copies
from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import refine
from latenttree.search.local_search import doubtful_regions, search_structure, search_tree
from latenttree.search.search_config import RULES, SearchConfig
from latenttree.structure.learn import Structure, structure_of_similarities

METHODS = ("ours", "probable", "off", "clrg", "merge", "pairwise", "nj_oracle")
COUNTED = ("off", "clrg", "merge", "pairwise")
LARGE = 2_000
"""Samples beyond which the most probable tree is searched only where ours is not the true one."""
EQUAL_BIC = 0.1
"""Log-likelihood by which two converged fits of one tree may differ."""
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
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
    """`distances.estimate.pairwise_distances` of categorical variables, from their counts.

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
    row: dict[str, Any] = {**cell._asdict(), "seed": seed, "rf": rf, "seconds": seconds}
    with threadpool_limits(limits=1):
        data = as_table(truth.X)
        start = time.perf_counter()
        found = estimate_distances(data, cell.k, random_state=seed, n_jobs=1)
        seconds["distances"] = time.perf_counter() - start
        for method, tree in rivals(found, data, cell, truth.tree, seconds):
            rf[method] = lt.metrics.robinson_foulds(truth.tree, tree, normalized=True)
        row["refused"] = is_refused(found, data, cell.k, seed)
        if row["refused"]:
            rf |= dict.fromkeys(("ours", "probable", "off", "merge"), 1.0)
        else:
            row |= ours(found, data, cell, truth.tree, rf, seconds)
    return row


def rivals(
    found: Distances, data: Table, cell: Cell, truth: lt.Tree, seconds: dict[str, float]
) -> Iterator[tuple[str, lt.Tree]]:
    """The tree of every other method; `seconds` takes the time of each."""
    for method in ("clrg", "merge", "pairwise", "nj_oracle"):
        start = time.perf_counter()
        if method == "merge":
            tree = learn(found, data.names, sweeps=False)
        elif method == "pairwise":
            tree = learn(fast_pairwise(data, cell.k), data.names)
        else:
            tree = estimate(
                method, found.values, found.standard_errors, found.n_samples, data.names, truth
            )
        seconds[method] = time.perf_counter() - start
        yield method, tree


def ours(
    found: Distances,
    data: Table,
    cell: Cell,
    truth: lt.Tree,
    rf: dict[str, float],
    seconds: dict[str, float],
) -> dict[str, Any]:
    """`LatentTree`'s stages one by one, so that each tree on the way can be judged."""
    settings, samples = FitConfig(), Samples(data)

    def took(method: str, start: float, tree: lt.Tree) -> None:
        seconds[method] = time.perf_counter() - start
        rf[method] = lt.metrics.robinson_foulds(truth, tree, normalized=True)

    start = time.perf_counter()
    whole = mark_copies(estimated_similarity(found), data)
    result = structure_of_similarities(whole, data.names)
    took("off", start, result.tree)
    if result.tree.same_topology(truth) and not has_doubts(result):
        rf["ours"], model = 0.0, None  # no region to search: the same tree
    else:
        fitted = fit_tree(result.tree, data, cell.k, found.basis)
        result, model = search_tree(result, fitted.model, samples, settings)
        took("ours", start, result.tree)
    row = {"edges": stated_support(result, truth), "bic": [0.0] * 3}
    if result.tree.same_topology(truth) and cell.n > LARGE:
        rf["probable"] = float("nan")  # slow; and BIC only grows from the true tree's
        return row
    if model is None:
        model = fit_tree(result.tree, data, cell.k, found.basis).model
    by_bic = SearchConfig(samples, "bic", smoothing=settings.smoothing)
    best, probable = search_structure(result, model, by_bic)
    took("probable", start, best.tree)
    known = fit_tree(truth, data, cell.k, found.basis).model
    return row | {"bic": converged_bics([model, probable, known], samples)}


def has_doubts(result: Structure) -> bool:
    """Whether the search by likelihood would look at any region."""
    regions = doubtful_regions(lambda _: result.support, RULES["likelihood"])
    return next(regions(result.tree), None) is not None


def stated_support(result: Structure, truth: lt.Tree) -> list[tuple[float, bool]]:
    """Support of each inner edge of a learned tree, and whether the edge is true."""
    settled = {tuple(x) for x in np.asarray(truth.splits()).tolist()}
    inner = result.tree.internal_edges()
    splits = result.tree.splits()[inner].tolist()
    pairs = zip(result.support[inner], splits, strict=True)
    return [(float(s), tuple(x) in settled) for s, x in pairs]


def converged_bics(models: list[TreeModel], samples: Samples) -> list[float]:
    """Log-likelihood less half the parameters times log n, after EM to convergence; models of the
    same tree share one value."""
    if all(model.tree.same_topology(models[0].tree) for model in models):
        return [0.0] * len(models)  # only differences count
    values: list[float] = []
    for i, model in enumerate(models):
        same = next((j for j in range(i) if model.tree.same_topology(models[j].tree)), None)
        if same is not None:
            values.append(values[same])
            continue
        found = refine(model, samples, max_steps=300, tolerance=1e-10, smoothing=1.0).model
        values.append(bic_score(found, total_log_likelihood(found, samples), samples.n_samples))
    return values


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


def fill(log: Log, grid: list[Cell], seeds: range, jobs: int) -> None:
    """Run what is missing, the largest first so that no process waits alone at the end."""
    todo = [(cell, seed) for cell in grid for seed in seeds if (cell, seed) not in log.done]
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
    summary = {m: mean_and_error(rf[m][np.isfinite(rf[m])]) for m in METHODS}
    means = {m: summary[m][0] for m in METHODS}
    errors = {m: float(np.nan_to_num(summary[m][1])) for m in METHODS}
    others = COUNTED
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
        best = float(np.nanmin(list(v.means.values())))
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


def show_bic(runs: list[dict[str, Any]]) -> dict[str, float]:
    """How often the most probable tree is at least as probable as the true one, by BIC."""
    kept = [row["bic"] for row in runs if not row["refused"]]
    ours_, probable, true = np.array(kept).T
    shares = {
        "ours": float((ours_ >= true - EQUAL_BIC).mean()),
        "probable": float((probable >= true - EQUAL_BIC).mean()),
        "probable_to_ours": float((probable >= ours_ - EQUAL_BIC).mean()),
        "lowest_gap": float((probable - true).min()),
    }
    console.print(
        f"BIC at or above the true tree's: probable {shares['probable']:.1%}, ours "
        f"{shares['ours']:.1%} of {len(kept)} data sets; probable at or above ours: "
        f"{shares['probable_to_ours']:.1%}; lowest probable - truth: {shares['lowest_gap']:.1f}"
    )
    return shares


def show_calibration(runs: list[dict[str, Any]]) -> list[tuple[float, float, int, float]]:
    """Share of true edges among ours' inner edges, by stated support."""
    pairs = np.array([edge for row in runs for edge in row.get("edges", [])], dtype=float)
    made = table("Inner edges of ours: stated support and truth", "support|edges|mean|true")
    rows = []
    for low, high in pairwise(BINS):
        last = high == BINS[-1]
        inside = (pairs[:, 0] >= low) & ((pairs[:, 0] <= high) if last else (pairs[:, 0] < high))
        if inside.any():
            stated, true = pairs[inside].mean(axis=0)
            rows.append((low, float(stated), int(inside.sum()), float(true)))
            made.add_row(
                f"{low:g} to {high:g}", f"{inside.sum():,}", f"{stated:.3f}", f"{true:.3f}"
            )
    console.print(made)
    return rows


def show_shares(verdicts: list[Verdict]) -> dict[str, Any]:
    """Print and return the share of cells in which ours is best or equal, by both rules."""
    n = len(verdicts)
    shares: dict[str, Any] = {
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
    parser.add_argument("--first-seed", type=int, default=0, help="seeds are this and the next")
    parser.add_argument("--resume", action="store_true", help="go on with an interrupted run")
    return parser.parse_args()


def main() -> None:
    args = parse()
    check_fast_pairwise()
    grid, seeds = cells(args.quick), range(args.first_seed, args.first_seed + n_seeds(args))
    log = Log(args.out / f"harder{'_quick' if args.quick else ''}.jsonl", args.resume)
    start = time.perf_counter()
    fill(log, grid, seeds, args.jobs)
    console.print(f"{time.perf_counter() - start:.0f} s in {args.jobs} processes")
    by_cell: dict[Cell, list[dict[str, Any]]] = {cell: [] for cell in grid}
    for row in sorted(log.rows, key=lambda row: row["seed"]):
        if row["seed"] in seeds and cell_of(row) in by_cell:
            by_cell[cell_of(row)].append(row)
    verdicts = [judge(cell, rows) for cell, rows in by_cell.items()]
    show(verdicts, len(seeds))
    shares = show_shares(verdicts)
    runs = [row for rows in by_cell.values() for row in rows]
    shares["bic"] = show_bic(runs)
    shares["calibration"] = show_calibration(runs)
    results = {"cells": [v._asdict() | {"cell": v.cell._asdict()} for v in verdicts]}
    save("harder", args, results | {"shares": shares, "runs": runs})


if __name__ == "__main__":
    main()
