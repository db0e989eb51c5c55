"""Balanced trees: Robinson-Foulds with and without sweeps, structure error, time, memory.

N = 50,000, k = 3, 3-ary, all edges of information length 0.5: p = 9, 81, 729 with d = 10 and 100.
Times are of warm fits on all cores. The memory line is of a fit in a process of its own that loads
the data, as bytes, from a file: the peak holds interpreter, libraries, data and fit.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.common import (
    console,
    in_fresh_process,
    learn,
    mean_stages,
    mib,
    n_seeds,
    options,
    peak_memory,
    save,
    stage_table,
    table,
    warm_up,
)

N_SAMPLES, N_STATES = 50_000, 3


def simulate(p: int, d: int, seed: int, n_samples: int) -> tuple[NDArray[np.uint8], lt.Tree]:
    """A sample, one byte a value, and the tree behind it."""
    data = lt.datasets.make_latent_tree(
        p, N_STATES, d, arity=3, edge_length=0.5, n_samples=n_samples, random_state=seed
    )
    return data.X.astype(np.uint8), data.tree


def run(p: int, d: int, seed: int, n_samples: int) -> dict[str, Any]:
    """Fit one data set; the tree without sweeps comes from the same distances."""
    X, truth = simulate(p, d, seed, n_samples)
    model = lt.LatentTree(n_states=N_STATES, random_state=seed, keep_distances=True)
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    # what LatentTree(sweeps=False) learns
    merged = learn(model.distances_, model.tree_.observed_names, sweeps=False)
    return {
        "p": p,
        "d": d,
        "seed": seed,
        "rf": lt.metrics.robinson_foulds(truth, model.tree_, normalized=True),
        "rf_no_sweeps": lt.metrics.robinson_foulds(truth, merged, normalized=True),
        "split_errors": lt.metrics.split_errors(truth, model.tree_)._asdict(),
        "structure_error": lt.metrics.structure_error(truth, model.tree_),
        "structure_error_no_sweeps": lt.metrics.structure_error(truth, merged),
        "median_hidden_length": float(np.median(_hidden_lengths(model.tree_))),
        "n_sweeps": model.diagnostics_.n_sweeps,
        "seconds": seconds,
        "stages": model.diagnostics_.stage_seconds,
    }


def _hidden_lengths(tree: lt.Tree) -> NDArray[np.float64]:
    """Lengths of the edges between hidden nodes; zero if there are none."""
    lengths = tree.lengths[(tree.edges >= tree.n_observed).all(axis=1)]
    return np.asarray(lengths if len(lengths) else np.zeros(1))


def write_sample(path: str, p: int, d: int, n_samples: int) -> None:
    np.save(path, simulate(p, d, 0, n_samples)[0])


def fit_file(path: str) -> dict[str, Any]:
    """Load and fit in this process; peaks before and after, in bytes."""
    X = np.load(path)
    loaded = peak_memory()
    start = time.perf_counter()
    model = lt.LatentTree(n_states=N_STATES, random_state=0).fit(X)
    return {
        "seconds_cold": time.perf_counter() - start,
        "stages_cold": model.diagnostics_.stage_seconds,
        "peak_before_fit": loaded,
        "peak": peak_memory(),
        "data": X.nbytes,
    }


def measure_memory(p: int, d: int, n_samples: int) -> dict[str, Any]:
    """Draw the data in one process and fit it in another, so that the drawing does not count."""
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "X.npy")
        in_fresh_process(write_sample, path, p, d, n_samples)
        found: dict[str, Any] = in_fresh_process(fit_file, path)
    return {"p": p, "d": d, "n_samples": n_samples, **found}


def show(cells: dict[tuple[int, int], list[dict[str, Any]]], n_samples: int) -> None:
    made = table(
        f"Balanced 3-ary trees, N = {n_samples:,}, k = {N_STATES}, edge length 0.5",
        "p, d|seeds|RF max|RF mean|no sweeps: max|mean"
        "|structure error max|no sweeps: max|hidden length|s mean|s max",
    )
    for (p, d), rows in cells.items():

        def column(key: str, rows: list[dict[str, Any]] = rows) -> NDArray[np.float64]:
            return np.array([r[key] for r in rows])

        made.add_row(
            f"{p}, {d}",
            str(len(rows)),
            f"{column('rf').max():.4f}",
            f"{column('rf').mean():.4f}",
            f"{column('rf_no_sweeps').max():.4f}",
            f"{column('rf_no_sweeps').mean():.4f}",
            f"{column('structure_error').max():.4f}",
            f"{column('structure_error_no_sweeps').max():.4f}",
            f"{column('median_hidden_length').mean():.3f}",
            f"{column('seconds').mean():.2f}",
            f"{column('seconds').max():.2f}",
        )
    console.print(made)
    (p, d), rows = list(cells.items())[-1]
    stages = mean_stages([r["stages"] for r in rows])
    console.print(stage_table(f"Stages of a fit, p = {p}, d = {d}, mean of {len(rows)}", stages))


def main() -> None:
    args = options(__doc__, seeds=10).parse_args()
    n_samples = 20_000 if args.quick else N_SAMPLES
    sizes = [9, 81] if args.quick else [9, 81, 729]
    warm_up()
    cells: dict[tuple[int, int], list[dict[str, Any]]] = {}
    for p in sizes:
        for d in (10, 100):
            cells[p, d] = [run(p, d, seed, n_samples) for seed in range(n_seeds(args))]
            worst = max(r["rf"] for r in cells[p, d])
            console.print(f"p = {p}, d = {d}: largest RF {worst:.4f}", style="dim")
    show(cells, n_samples)
    memory = measure_memory(sizes[-1], 100, n_samples)
    console.print(
        f"memory, p = {memory['p']}, d = {memory['d']}, N = {n_samples:,}: peak "
        f"{mib(memory['peak'])}, of which {mib(memory['peak_before_fit'])} before the fit (data "
        f"{mib(memory['data'])}); this cold fit took {memory['seconds_cold']:.1f} s"
    )
    rows = [row for cell in cells.values() for row in cell]
    save("balanced", args, {"n_samples": n_samples, "runs": rows, "memory": memory})


if __name__ == "__main__":
    main()
