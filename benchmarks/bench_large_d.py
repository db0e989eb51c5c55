"""Many categories: p = 9, k = 3, N = 50,000, d up to 100,000; and below the detection limit.

RF, and the bias of the edges between hidden nodes in percent, mean over those edges and seeds
(estimated over true length, less one; only trees of the right topology have edges to compare).
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import numpy as np

import latenttree as lt
from benchmarks.common import console, mean_and_error, n_seeds, options, save, table, warm_up
from latenttree.distances.detection import DetectionLimitError

P, K = 9, 3


class Case(NamedTuple):
    label: str
    d: int
    marginal: str
    n_used: int | None = None
    n_samples: int = 50_000


FULL = [
    Case("1,000, 200 in use", 1_000, "random", 200),
    Case("10,000, 200 in use", 10_000, "random", 200),
    Case("100,000, 200 in use", 100_000, "random", 200),
    Case("5,000 uniform", 5_000, "uniform"),
    Case("10,000 uniform", 10_000, "uniform"),
    Case("10,000 Zipf", 10_000, "zipf"),
    Case("100,000 Zipf", 100_000, "zipf"),
]
QUICK = [
    Case("1,000, 200 in use", 1_000, "random", 200, 20_000),
    Case("1,000 uniform", 1_000, "uniform", None, 20_000),
    Case("10,000 Zipf", 10_000, "zipf", None, 20_000),
]
BELOW = Case("20,000 uniform, N = 5,000", 20_000, "uniform", None, 5_000)


def simulate(case: Case, seed: int) -> Any:
    return lt.datasets.make_latent_tree(
        P,
        K,
        case.d,
        edge_length=0.5,
        marginal=case.marginal,  # type: ignore[arg-type]
        n_used=case.n_used,
        n_samples=case.n_samples,
        random_state=seed,
    )


def run(case: Case, seed: int) -> dict[str, Any]:
    """Fit one data set; what is refused has no tree, which counts as RF 1."""
    data = simulate(case, seed)
    row: dict[str, Any] = {**case._asdict(), "seed": seed, "bias": None, "error": None}
    model = lt.LatentTree(n_states=K, random_state=seed)
    start = time.perf_counter()
    try:
        model.fit(data.X)
    except DetectionLimitError as error:
        return row | {"rf": 1.0, "error": str(error), "seconds": time.perf_counter() - start}
    row["seconds"] = time.perf_counter() - start
    row["rf"] = lt.metrics.robinson_foulds(data.tree, model.tree_, normalized=True)
    row["stages"] = model.diagnostics_.stage_seconds
    row["n_rounds"] = model.diagnostics_.n_rounds
    if model.tree_.same_topology(data.tree):
        hidden = (data.tree.edges >= P).all(axis=1)
        relative = model.tree_.lengths / data.tree.lengths - 1
        row["bias"] = float(100 * relative[hidden].mean())
        row["pendant_bias"] = float(100 * relative[~hidden].mean())
    return row


def show(cases: list[Case], rows: list[dict[str, Any]]) -> None:
    made = table(
        f"Many categories, p = {P}, k = {K}",
        "categories|N|seeds|RF max|RF mean|refused"
        "|bias of hidden edges|of pendant edges|rounds|s mean",
    )
    for case in cases:
        part = [r for r in rows if r["label"] == case.label]
        right = [r for r in part if r["bias"] is not None]
        made.add_row(
            case.label,
            f"{case.n_samples:,}",
            str(len(part)),
            f"{max(r['rf'] for r in part):.3f}",
            f"{np.mean([r['rf'] for r in part]):.3f}",
            str(sum(r["error"] is not None for r in part)),
            _percent([r["bias"] for r in right]),
            _percent([r["pendant_bias"] for r in right]),
            f"{np.mean([r['n_rounds'] for r in right]):.1f}" if right else "-",
            f"{np.mean([r['seconds'] for r in part]):.2f}",
        )
    console.print(made)


def _percent(values: list[float]) -> str:
    if not values:
        return "-"
    mean, error = mean_and_error(values)
    return f"{mean:+.1f}% ± {error:.1f}"


def main() -> None:
    args = options(__doc__, seeds=10).parse_args()
    cases = QUICK if args.quick else FULL
    warm_up()
    rows: list[dict[str, Any]] = []
    for case in cases:
        rows += [run(case, seed) for seed in range(n_seeds(args))]
        console.print(f"{case.label}: done", style="dim")
    show(cases, rows)
    below = [run(BELOW, seed) for seed in range(n_seeds(args))]
    refused = [r["error"] for r in below if r["error"] is not None]
    console.print(f"Below the limit ({BELOW.label}): refused {len(refused)} of {len(below)}.")
    if refused:
        console.print(f"  DetectionLimitError: {refused[0]}", style="red", markup=False)
    else:
        console.print(f"  a tree came back, RF {below[0]['rf']:.2f}", style="red")
    save("large_d", args, {"runs": rows, "below_limit": below})


if __name__ == "__main__":
    main()
