"""Parameters: error of moments alone and after EM, as a ratio to the oracle; RF; time.

Balanced 3-ary trees, k = 3, N = 50,000, all edges of information length 0.5: the rows of the
paper's table with d = 10, 100 and 1,000 (200 categories in use, and all of them by Zipf's law) at
p = 9, and d = 100 at p = 81 and 729. Parameter error is `||A - A_hat Pi||_F`, mean over leaves; the
oracle counts with the hidden states known. Targets: RF 0, moments at most 1.5 x the oracle, after
EM at most 1.15 x. Times are of warm fits with the defaults on all cores.

With `--from-truth` also EM started at the truth on the true tree: the maximum likelihood near it,
below which no refinement can get.
"""

from __future__ import annotations

import argparse
import time
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.common import console, fit_tree, mean_stages, n_seeds, options, save, table, warm_up
from benchmarks.oracle import oracle
from latenttree.data import as_table
from latenttree.engine import resolve_jobs
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.evaluation.metrics import model_of, parameter_error
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import refine

K, N_SAMPLES = 3, 50_000
MOMENTS_TARGET, EM_TARGET = 1.5, 1.15


class Row(NamedTuple):
    name: str
    p: int
    d: int
    marginal: str
    n_used: int | None
    seconds: float  # to reach, whole fit on 2 cores


ROWS = (
    Row("p9-d10", 9, 10, "random", None, 1.0),
    Row("p9-d100", 9, 100, "random", None, 1.5),
    Row("p9-d1000", 9, 1_000, "random", 200, 2.0),
    Row("p9-zipf", 9, 1_000, "zipf", None, 2.0),
    Row("p81-d100", 81, 100, "random", None, 5.0),
    Row("p729-d100", 729, 100, "random", None, 40.0),
)


def simulate(row: Row, seed: int, n_samples: int) -> LatentTreeData:
    return lt.datasets.make_latent_tree(
        row.p,
        K,
        row.d,
        edge_length=0.5,
        marginal=row.marginal,  # type: ignore[arg-type]
        n_used=row.n_used,
        n_samples=n_samples,
        random_state=seed,
    )


def run(row: Row, seed: int, n_samples: int, from_truth: bool) -> dict[str, Any]:
    """One fit with the defaults; moments alone again on its tree, with its views."""
    data = simulate(row, seed, n_samples)
    model = lt.LatentTree(n_states=K, random_state=seed, keep_distances=True)
    X = data.X.astype(np.uint16)
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    leaf = {
        "oracle": parameter_error(oracle(data), data, per_leaf=True),
        "moments": parameter_error(moments_alone(model, X, seed), data, per_leaf=True),
        "em": parameter_error(model, data, per_leaf=True),
    }
    if from_truth:
        leaf["truth"] = parameter_error(maximum_near_truth(data), data, per_leaf=True)
    error = {name: float(np.nanmean(values)) for name, values in leaf.items()}
    return {
        "row": row.name,
        "seed": seed,
        "structure_error": lt.metrics.structure_error(data.tree, model.tree_),
        "rf": lt.metrics.robinson_foulds(data.tree, model.tree_, normalized=True),
        "error": error,
        "ratio": {name: error[name] / error["oracle"] for name in error},
        "worst_leaf": worst_leaf(leaf),
        "condition": condition_of(model),
        "n_iter": model.n_iter_,
        "seconds": seconds,
        "stages": model.diagnostics_.stage_seconds,
    }


def moments_alone(model: lt.LatentTree, X: NDArray[Any], seed: int) -> lt.LatentTree:
    """What `refine=None` gives on the tree that was learned, without learning it again."""
    alone = copy(model)
    basis, jobs = model.distances_.basis, resolve_jobs(None)
    alone.model_ = fit_tree(
        model.tree_, as_table(X), K, basis, refine=None, seed=seed, n_jobs=jobs
    ).model
    return alone


def maximum_near_truth(data: LatentTreeData) -> TreeModel:
    return refine(model_of(data), lambda: [data.X], max_steps=200, n_jobs=resolve_jobs(None)).model


def worst_leaf(leaf: dict[str, NDArray[np.float64]]) -> dict[str, Any]:
    """Of moments and EM the leaf that is farthest above the oracle, and by how much."""
    found: dict[str, Any] = {}
    for name in leaf.keys() - {"oracle"}:
        ratio = leaf[name] / leaf["oracle"].mean()
        found[name] = {"leaf": int(np.nanargmax(ratio)), "ratio": float(np.nanmax(ratio))}
    return found


def condition_of(model: lt.LatentTree) -> float | None:
    """The worst condition of a decomposition, where the diagnostics have it."""
    condition = getattr(model.diagnostics_, "condition", None)
    return None if condition is None or not len(condition) else float(np.max(condition))


def show(cells: dict[Row, list[dict[str, Any]]], n_samples: int) -> None:
    names = list(next(iter(cells.values()))[0]["ratio"])
    extra = [n for n in names if n == "truth"]
    made = table(
        f"Balanced 3-ary trees, k = {K}, N = {n_samples:,}: parameter error / oracle's (to reach: "
        f"moments {MOMENTS_TARGET}, EM {EM_TARGET})",
        "row|seeds|structure error|RF max|oracle|moments mean|max|EM mean|max"
        + "".join("|from truth mean|max" for _ in extra)
        + "|worst leaf|steps|s mean|s max|to reach",
    )
    for row, found in cells.items():
        ratios = {n: np.array([r["ratio"][n] for r in found]) for n in names}
        made.add_row(
            row.name,
            str(len(found)),
            f"{max(r['structure_error'] for r in found):.4f}",
            f"{max(r['rf'] for r in found):.4f}",
            f"{np.mean([r['error']['oracle'] for r in found]):.4f}",
            *_judged(ratios["moments"], MOMENTS_TARGET),
            *_judged(ratios["em"], EM_TARGET),
            *(text for n in extra for text in _judged(ratios[n], np.inf)),
            f"{max(r['worst_leaf']['em']['ratio'] for r in found):.2f}",
            f"{np.mean([r['n_iter'] for r in found]):.0f}",
            f"{np.mean([r['seconds'] for r in found]):.2f}",
            f"{max(r['seconds'] for r in found):.2f}",
            f"{row.seconds:g}",
        )
    console.print(made)
    show_stages(cells)


def _judged(ratio: NDArray[np.float64], target: float) -> tuple[str, str]:
    """Mean and largest ratio, red above the target."""
    values = (float(ratio.mean()), float(ratio.max()))
    texts = [f"[red]{v:.3f}[/]" if v > target else f"{v:.3f}" for v in values]
    return texts[0], texts[1]


def show_stages(cells: dict[Row, list[dict[str, Any]]]) -> None:
    stages = {row: mean_stages([r["stages"] for r in found]) for row, found in cells.items()}
    names = list(dict.fromkeys(name for found in stages.values() for name in found))
    made = table("Mean seconds of the stages", "|".join(["stage", *(row.name for row in cells)]))
    for name in names:
        made.add_row(name, *(f"{found.get(name, 0.0):.2f}" for found in stages.values()))
    console.print(made)


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=10)
    parser.add_argument(
        "--rows", nargs="+", default=None, choices=[r.name for r in ROWS], help="default: all"
    )
    parser.add_argument("--from-truth", action="store_true", help="EM from the truth beside it")
    args = parser.parse_args()
    args.rows = args.rows or [r.name for r in (ROWS[:-1] if args.quick else ROWS)]
    return args


def main() -> None:
    args = parse()
    n_samples = 20_000 if args.quick else N_SAMPLES
    warm_up()
    cells: dict[Row, list[dict[str, Any]]] = {}
    for row in [r for r in ROWS if r.name in args.rows]:
        cells[row] = []
        for seed in range(n_seeds(args)):
            cells[row].append(run(row, seed, n_samples, args.from_truth))
            last = cells[row][-1]
            console.print(
                f"{row.name}, seed {seed}: RF {last['rf']:.4f}, moments "
                f"{last['ratio']['moments']:.3f}, EM {last['ratio']['em']:.3f}, "
                f"{last['seconds']:.1f} s",
                style="dim",
            )
    show(cells, n_samples)
    save(
        "parameters",
        args,
        {"n_samples": n_samples, "runs": [r for rows in cells.values() for r in rows]},
    )


if __name__ == "__main__":
    main()
