"""Exact moments of random models: how many parameters come back, and to how many digits.

Trees of all shapes with 3 to 20 leaves, 2 to 8 states, k to 50 categories, in every fifth tree
observed nodes inside. Models of three kinds: "even" (edges of a given length, all directions
alike), "drawn" (columns uniform on the simplex) and "sharp" (Dirichlet 0.3: rare states, weak
directions). The error is the largest over all conditionals in both directions, hidden-hidden edges
too, and all marginals, with the labels of each hidden node matched. Allowed means that errors of
the moments grow less than a million times and that no state is rarer than the floor on weights in
the decomposition: there the error must be below 1e-6.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

from benchmarks.common import console, n_seeds, options, save, table

WORST_CONDITION, RAREST = 1e6, 2e-6
EXACT = 1e-6


def run(seed: int) -> dict[str, Any]:
    """Solve for one model from its exact moments, and compare."""
    from tests.reference.parameters import (  # on the path thanks to common
        largest_error,
        random_truth,
        rarest_state,
        solve_exactly,
    )

    kind, k, truth = random_truth(seed)
    start = time.perf_counter()
    found = solve_exactly(truth, k)
    seconds = time.perf_counter() - start
    p = truth.tree.n_observed
    return {
        "seed": seed,
        "kind": kind,
        "k": k,
        "d": int(truth.dims[0]),
        "n_observed": p,
        "n_hidden": truth.tree.n_hidden,
        "internal_observed": int((truth.tree.degree()[:p] > 1).sum()),
        "condition": float(found.condition.max()),
        "rarest": rarest_state(truth),
        "error": largest_error(found.model, truth),
        "seconds": seconds,
    }


def allowed(row: dict[str, Any]) -> bool:
    """Whether the moments determine the parameters to more than six digits."""
    return bool(row["condition"] < WORST_CONDITION and row["rarest"] >= RAREST)


def show(rows: list[dict[str, Any]]) -> None:
    made = table(
        f"Exact moments, {len(rows):,} random models",
        "kind|models|allowed|of these exact|their worst error|their worst condition"
        "|not allowed|of these exact",
    )
    for kind in ("even", "drawn", "sharp", "all"):
        part = [r for r in rows if kind in (r["kind"], "all")]
        good = [r for r in part if allowed(r)]
        rest = [r for r in part if not allowed(r)]
        if kind == "all":
            made.add_section()
        made.add_row(
            kind,
            f"{len(part):,}",
            f"{len(good):,}",
            f"{sum(r['error'] < EXACT for r in good):,}",
            f"{max((r['error'] for r in good), default=np.nan):.1e}",
            f"{max((r['condition'] for r in good), default=np.nan):.1e}",
            f"{len(rest):,}",
            f"{sum(r['error'] < EXACT for r in rest):,}",
        )
    console.print(made)
    console.print(f"share below {EXACT:g}: {np.mean([r['error'] < EXACT for r in rows]):.4f}")
    _list([r for r in rows if r["error"] >= EXACT])


def _list(rows: list[dict[str, Any]]) -> None:
    """Models that did not come back, with what made them hard."""
    if not rows:
        return
    made = table("Not exact", "seed|kind|k|d|observed|condition|rarest state|error|allowed")
    for r in sorted(rows, key=lambda r: r["condition"]):
        made.add_row(
            str(r["seed"]),
            r["kind"],
            str(r["k"]),
            str(r["d"]),
            str(r["n_observed"]),
            f"{r['condition']:.1e}",
            f"{r['rarest']:.1e}",
            f"{r['error']:.1e}",
            "[red]yes[/]" if allowed(r) else "no",
        )
    console.print(made)


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=1_000)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    return parser.parse_args()


def main() -> None:
    args = parse()
    spawn = multiprocessing.get_context("spawn")
    start = time.perf_counter()
    with ProcessPoolExecutor(args.jobs, mp_context=spawn) as pool:
        rows = list(pool.map(run, range(n_seeds(args, quick=60)), chunksize=20))
    console.print(f"{time.perf_counter() - start:.1f} s in {args.jobs} processes")
    show(rows)
    save("exact_parameters", args, rows)


if __name__ == "__main__":
    main()
