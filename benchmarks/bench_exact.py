"""Exact distances of random trees: how many come back exactly, and to how many digits.

Trees of all shapes with 3 to 200 observed nodes (some of them internal), degrees up to 20, depth
(most edges from the centre to a leaf) up to 30, lengths log-uniform from 0.01 to 10. Exact means
the same topology; then lengths are compared edge by edge, and path by path over all pairs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np

import latenttree as lt
from benchmarks.common import console, n_seeds, options, save, table

MAX_OBSERVED, MAX_DEGREE, MAX_DEPTH = 200, 20, 30
LENGTHS = (0.01, 10.0)


def draw(seed: int) -> tuple[str, lt.Tree]:
    """The tree of a seed; shapes that go past the bounds are drawn again."""
    from tests.reference.random_trees import SHAPES, random_tree  # on the path thanks to common

    rng = np.random.default_rng(seed)
    while True:
        shape = str(rng.choice(SHAPES))
        # one hub holds a whole star, so its size is its degree
        largest = MAX_DEGREE if shape == "star" else MAX_OBSERVED
        tree = random_tree(
            rng,
            int(rng.integers(3, largest + 1)),
            shape=shape,
            max_degree=int(rng.integers(3, MAX_DEGREE + 1)),
            internal_observed_fraction=float(rng.choice([0.0, 0.1, 0.5, 1.0])),
            length_range=LENGTHS,
        )
        if int(tree.degree().max()) <= MAX_DEGREE and depth(tree) <= MAX_DEPTH:
            return shape, tree


def depth(tree: lt.Tree) -> int:
    """Edges from the centre to the farthest leaf: half the longest path, rounded up."""
    end = int(np.argmax(edges_from(tree, 0)))
    return (int(edges_from(tree, end).max()) + 1) // 2


def edges_from(tree: lt.Tree, root: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Edges between the root and every node."""
    parents, order = (a.tolist() for a in tree.rooted(root))
    steps = np.zeros(tree.n_nodes, dtype=np.int64)
    for v in order[1:]:
        steps[v] = steps[parents[v]] + 1
    return steps


def run(seed: int) -> dict[str, Any]:
    """Recover one tree from its distances and compare."""
    shape, truth = draw(seed)
    distances = truth.path_lengths()
    start = time.perf_counter()
    found = lt.tree_from_distances(distances, names=truth.observed_names, n_jobs=1)
    seconds = time.perf_counter() - start
    exact = found.same_topology(truth)
    return {
        "seed": seed,
        "shape": shape,
        "n_observed": truth.n_observed,
        "n_hidden": truth.n_hidden,
        "degree": int(truth.degree().max()),
        "depth": depth(truth),
        "internal_observed": int((truth.degree()[: truth.n_observed] > 1).sum()),
        "exact": exact,
        # both trees are canonical: the same topology has the same edges in the same order
        "length_error": float(np.abs(found.lengths - truth.lengths).max()) if exact else None,
        "path_error": float(np.abs(found.path_lengths() - distances).max()),
        "seconds": seconds,
    }


def show(rows: list[dict[str, Any]]) -> None:
    made = table(
        f"Exact distances, {len(rows):,} random trees, lengths {LENGTHS[0]} to {LENGTHS[1]:g}",
        "shape|trees|exact|observed|with internal|degree|depth|length error|path error|ms / tree",
    )
    for shape in [*sorted({r["shape"] for r in rows}), "all"]:
        part = [r for r in rows if shape in (r["shape"], "all")]
        if shape == "all":
            made.add_section()
        errors = [r["length_error"] for r in part if r["exact"]]
        made.add_row(
            shape,
            f"{len(part):,}",
            f"{sum(r['exact'] for r in part):,}",
            _range(part, "n_observed"),
            f"{sum(r['internal_observed'] > 0 for r in part):,}",
            _range(part, "degree"),
            _range(part, "depth"),
            f"{max(errors, default=np.nan):.1e}",
            f"{max(r['path_error'] for r in part):.1e}",
            f"{1e3 * np.mean([r['seconds'] for r in part]):.1f}",
        )
    console.print(made)
    wrong = [r["seed"] for r in rows if not r["exact"]]
    if wrong:
        console.print(f"[red]not recovered[/], seeds {wrong[:20]}")


def _range(rows: list[dict[str, Any]], key: str) -> str:
    values = [r[key] for r in rows]
    return f"{min(values)} to {max(values)}"


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=5_000)
    parser.add_argument("--jobs", type=int, default=2, help="processes (default 2)")
    return parser.parse_args()


def main() -> None:
    args = parse()
    seeds = range(n_seeds(args, quick=200))
    spawn = multiprocessing.get_context("spawn")
    start = time.perf_counter()
    with ProcessPoolExecutor(args.jobs, mp_context=spawn) as pool:
        rows = list(pool.map(run, seeds, chunksize=25))
    console.print(f"{time.perf_counter() - start:.1f} s in {args.jobs} processes")
    show(rows)
    save("exact", args, rows)


if __name__ == "__main__":
    main()
