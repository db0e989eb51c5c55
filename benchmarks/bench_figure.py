"""The paper's figure: parameter error against CLRG-EM as the number of samples grows.

Binary variables, p = 9, 4 hidden nodes (balanced, 3-ary), every edge of information length 0.5
(the paper does not say; `--lengths LOW HIGH` draws uneven ones), N = 1,000 to 100,000, the first N
samples of one model for each seed. Parameter error `||A - A_hat Pi||_F`, mean over leaves.

- ours: `LatentTree` with its defaults;
- clrg_em: the CLRG tree, then plain EM from 20 random starts, best by likelihood;
- true_tree: plain EM from 5 random starts on the true tree, so that what CLRG-EM loses by its
  tree is seen apart from what it loses by its starts;
- oracle: counted with the hidden states known.

EM of the controls works on distinct rows with weights, which ours does not, and has the same
smoothing; every method has one thread. The plot goes to `figure.png` beside the JSON.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import latenttree as lt
from benchmarks.common import console, mean_and_error, n_seeds, options, save, table
from benchmarks.oracle import oracle
from latenttree.evaluation.baselines import clrg_em, random_em
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.evaluation.metrics import parameter_error, robinson_foulds

P, K = 9, 2
SAMPLES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
LEARNED = ("ours", "clrg_em", "true_tree")
METHODS = (*LEARNED, "oracle")
EM: dict[str, Any] = {"max_iter": 2_000, "tol": 1e-9}
Rows = dict[int, list[dict[str, Any]]]


def simulate(n_samples: int, seed: int, lengths: tuple[float, float]) -> LatentTreeData:
    """The first samples of the largest data set: for each seed one model, whatever N is."""
    whole = lt.datasets.make_latent_tree(
        P, K, edge_length=lengths, n_samples=SAMPLES[-1], random_state=seed
    )
    return replace(whole, X=whole.X[:n_samples], hidden=whole.hidden[:n_samples])


def run(n_samples: int, seed: int, lengths: tuple[float, float], restarts: int) -> dict[str, Any]:
    """All methods on one data set: parameter error, RF, seconds."""
    data = simulate(n_samples, seed, lengths)
    X = data.X.astype(np.uint8)
    ways: dict[str, Callable[[], Any]] = {
        "ours": lambda: lt.LatentTree(K, random_state=seed, n_jobs=1).fit(X),
        "clrg_em": lambda: clrg_em(X, K, n_restarts=restarts, random_state=seed, **EM).model,
        "true_tree": lambda: (
            random_em(data.tree, X, K, n_restarts=min(restarts, 5), random_state=seed, **EM).model
        ),
        "oracle": lambda: oracle(data),
    }
    row: dict[str, Any] = {"n": n_samples, "seed": seed, "error": {}, "rf": {}, "seconds": {}}
    with threadpool_limits(limits=1):
        for method, way in ways.items():
            start = time.perf_counter()
            found = way()
            row["seconds"][method] = time.perf_counter() - start
            row["error"][method] = parameter_error(found, data)
            tree = found.tree_ if method == "ours" else found.tree
            row["rf"][method] = robinson_foulds(data.tree, tree, normalized=True)
    return row


def warm(lengths: tuple[float, float]) -> None:
    """Load the kernels of a process, so that the first timed fit does not pay for it."""
    run(1_000, 0, lengths, 1)


def fill(tasks: list[tuple[int, int]], args: argparse.Namespace) -> Rows:
    """All runs, seed by seed, so that what else the machine does falls on every N alike."""
    rows: Rows = {n: [] for n in sorted({n for n, _ in tasks})}
    lengths = tuple(args.lengths)
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        args.jobs, mp_context=spawn, initializer=warm, initargs=(lengths,)
    ) as pool:
        todo = sorted(tasks, key=lambda task: (task[1], -task[0]))
        futures = [pool.submit(run, n, seed, lengths, args.restarts) for n, seed in todo]
        for i, future in enumerate(as_completed(futures), 1):
            row = future.result()
            rows[row["n"]].append(row)
            if i % -(-len(tasks) // 10) == 0:
                console.print(f"{i} of {len(tasks)}", style="dim")
    return {n: sorted(found, key=lambda row: row["seed"]) for n, found in rows.items()}


def column(rows: list[dict[str, Any]], key: str, method: str) -> NDArray[np.float64]:
    return np.array([row[key][method] for row in rows])


def show(rows: Rows, title: str) -> list[dict[str, Any]]:
    """Print the table; returns its numbers."""
    made = table(
        title,
        "N|ours|CLRG-EM|EM, true tree|oracle|CLRG-EM - ours|z|ours below"
        "|RF ours|RF CLRG|s ours|s CLRG-EM|times",
    )
    numbers = []
    for n, found in rows.items():
        error = {m: column(found, "error", m) for m in METHODS}
        gap, gap_error = mean_and_error(error["clrg_em"] - error["ours"])
        below = np.mean(error["clrg_em"] > error["ours"])
        seconds = {m: float(np.median(column(found, "seconds", m))) for m in LEARNED}
        rf = {m: float(column(found, "rf", m).mean()) for m in LEARNED}
        ratio = float(
            np.median(column(found, "seconds", "clrg_em") / column(found, "seconds", "ours"))
        )
        made.add_row(
            f"{n:,}",
            *(_text(*mean_and_error(error[m])) for m in METHODS),
            _text(gap, gap_error),
            f"{gap / gap_error:.1f}" if gap_error > 0 else "",
            f"{below:.0%}",
            f"{rf['ours']:.3f}",
            f"{rf['clrg_em']:.3f}",
            f"{seconds['ours']:.2f}",
            f"{seconds['clrg_em']:.2f}",
            f"{ratio:.0f} x",
        )
        means = {m: mean_and_error(error[m]) for m in METHODS}
        numbers.append(
            {"n": n, "error": means, "gap": gap, "gap_error": gap_error, "below": below}
            | {"rf": rf, "seconds": seconds, "time_ratio": ratio}
        )
    console.print(made)
    return numbers


def _text(mean: float, error: float) -> str:
    return f"{1e3 * mean:.2f} ± {1e3 * error:.2f}"


STYLE = {
    "clrg_em": ("CLRG-EM, {restarts} restarts", "#c1440e", "s", "-"),
    "ours": ("latenttree", "#0b4f8a", "o", "-"),
    "oracle": ("hidden states known", "#888888", "", "--"),
}


def plot(numbers: list[dict[str, Any]], seeds: int, restarts: int, path: Path) -> None:
    """Parameter error, structure error and time against N; bars are standard errors."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 13, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(
        1, 3, figsize=(14, 5.2), width_ratios=(1.5, 1, 1), layout="constrained"
    )
    _draw_lines(axes, numbers, restarts)
    titles = ("Parameter error", "Structure error (normalised RF)", "Seconds, one thread")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, loc="left", weight="bold", fontsize=14, pad=12)
        _tidy(axis)
    axes[1].set_ylim(bottom=-0.01)
    _decades(axes[0], "y", [0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2])
    _decades(axes[2], "y", [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50])
    axes[0].legend(frameon=False, loc="lower left")
    figure.supxlabel(
        f"9 binary variables, 4 hidden; mean ± standard error of {seeds} models",
        color="#555555",
        fontsize=12,
    )
    figure.savefig(path, dpi=160)
    plt.close(figure)
    console.print(f"plot: {path}")


def _draw_lines(axes: Any, numbers: list[dict[str, Any]], restarts: int) -> None:
    n = [cell["n"] for cell in numbers]
    for method, (label, color, marker, line) in STYLE.items():
        look = {"color": color, "marker": marker, "ls": line, "lw": 2.2, "ms": 7}
        look["label"] = label.format(restarts=restarts)
        mean, error = np.array([cell["error"][method] for cell in numbers]).T
        axes[0].errorbar(n, mean, yerr=error, capsize=3, **look)
        if method in LEARNED:
            axes[1].plot(n, [cell["rf"][method] for cell in numbers], **look)
            axes[2].plot(n, [cell["seconds"][method] for cell in numbers], **look)
    axes[0].set_yscale("log")
    axes[2].set_yscale("log")


def _tidy(axis: Any) -> None:
    axis.set_xscale("log")
    axis.set_xlabel("samples")
    axis.grid(axis="y", color="#e5e5e5", lw=0.8)
    axis.set_axisbelow(True)
    _decades(axis, "x", [1_000, 10_000, 100_000])


def _decades(axis: Any, which: str, ticks: list[float]) -> None:
    """Ticks as people write them, 0.005 or 10,000, instead of powers of ten."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullFormatter

    side = axis.xaxis if which == "x" else axis.yaxis
    side.set_major_locator(FixedLocator(ticks))
    side.set_major_formatter(FuncFormatter(lambda v, _: f"{v:,.0f}" if v >= 1 else f"{v:g}"))
    side.set_minor_formatter(NullFormatter())


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=20)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    parser.add_argument("--restarts", type=int, default=20, help="of EM (default 20)")
    parser.add_argument(
        "--lengths", type=float, nargs=2, default=(0.5, 0.5), metavar=("LOW", "HIGH")
    )
    return parser.parse_args()


def main() -> None:
    args = parse()
    seeds, samples = n_seeds(args), SAMPLES[:3] if args.quick else SAMPLES
    rows = fill([(n, seed) for n in samples for seed in range(seeds)], args)
    low, high = args.lengths
    family = f"{low}" if low == high else f"{low} to {high}"
    numbers = show(
        rows,
        f"1,000 x parameter error ± standard error, {seeds} seeds; binary, p = 9, 4 hidden, "
        f"lengths {family}; {args.restarts} restarts; seconds are medians",
    )
    name = "figure" if low == high else "figure_uneven"
    save(name, args, {"cells": numbers, "runs": [row for n in rows for row in rows[n]]})
    plot(numbers, seeds, args.restarts, args.out / f"{name}{'_quick' if args.quick else ''}.png")


if __name__ == "__main__":
    main()
