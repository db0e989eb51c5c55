"""One thread against two, side by side, stage by stage; and how far from the least work.

p = 729, d = 100, k = 3, N = 50,000. Runs alternate between 1 and 2 threads, so that what else the
machine does falls on both; the best time of each counts. The trees must be the same.

Lower bound: distances between all pairs need the moments of w = p (k - 1) features, which is
N w (w + 1) / 2 multiply-adds, and the data must be read once, N p bytes. Both are turned into
seconds with rates measured here and now, on as many threads.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import latenttree as lt
from benchmarks.common import console, mib, n_seeds, options, save, table, warm_up

K = 3


def sample(p: int, d: int, n: int) -> NDArray[np.uint8]:
    data = lt.datasets.make_latent_tree(p, K, d, edge_length=0.5, n_samples=n, random_state=0)
    return data.X.astype(np.uint8)


def fit(X: NDArray[np.uint8], n_jobs: int) -> tuple[dict[str, float], lt.Tree]:
    """Seconds of every stage, the whole as "total", and the tree."""
    # one thread means one, in BLAS too
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        start = time.perf_counter()
        model = lt.LatentTree(n_states=K, random_state=0, n_jobs=n_jobs).fit(X)
        total = time.perf_counter() - start
    return model.diagnostics_.stage_seconds | {"total": total}, model.tree_


def multiply_rate(width: int, n_jobs: int, repeats: int = 5) -> float:
    """Multiply-adds a second of a float32 matrix product `(width, 4096) @ (4096, width)`."""
    z = np.random.default_rng(0).standard_normal((4096, width), dtype=np.float32)
    other = z.copy()  # of one array with itself NumPy computes half, at another rate
    best = np.inf
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        for _ in range(repeats):
            start = time.perf_counter()
            z.T @ other
            best = min(best, time.perf_counter() - start)
    return float(4096 * width**2 / best)


def read_rate(X: NDArray[np.uint8], repeats: int = 5) -> float:
    """Bytes a second of one thread that reads the data once."""
    words = X.reshape(-1)[: X.size // 8 * 8].view(np.uint64)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        np.bitwise_xor.reduce(words)
        best = min(best, time.perf_counter() - start)
    return float(words.nbytes / best)


def bound(X: NDArray[np.uint8], n_jobs: int) -> dict[str, float]:
    """The least work, the measured rates, and the seconds they make."""
    n, p = X.shape
    width = p * (K - 1)
    multiplies, n_bytes = n * width * (width + 1) / 2, float(X.nbytes)
    rate, reading = multiply_rate(width, n_jobs), read_rate(X) * n_jobs
    return {
        "multiply_adds": multiplies,
        "bytes": n_bytes,
        "multiply_adds_per_s": rate,
        "bytes_per_s": reading,
        "seconds": multiplies / rate + n_bytes / reading,
    }


def show(title: str, best: dict[int, dict[str, float]], runs: int) -> None:
    one, two = best
    made = table(f"{title}; best of {runs}", f"stage|{one} thread(s), s|{two}, s|ratio")
    for stage in best[one]:
        if stage == "total":
            made.add_section()
        a, b = best[one][stage], best[two][stage]
        made.add_row(stage, f"{a:.3f}", f"{b:.3f}", f"{a / b:.2f}" if b > 1e-3 else "-")
    console.print(made)


def show_bound(n_jobs: int, least: dict[str, float], seconds: dict[str, float]) -> None:
    console.print(
        f"{n_jobs} thread(s): at least {least['multiply_adds'] / 1e9:,.1f} G multiply-adds at "
        f"{least['multiply_adds_per_s'] / 1e9:,.1f} G/s and {mib(least['bytes'])} at "
        f"{least['bytes_per_s'] / 2**30:,.1f} GiB/s = {least['seconds']:.2f} s; distances take "
        f"{seconds['distances'] / least['seconds']:.1f} times that, "
        f"the whole {seconds['total'] / least['seconds']:.1f} times"
    )


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=3)
    parser.add_argument("--threads", type=int, nargs=2, default=(1, 2), metavar=("A", "B"))
    return parser.parse_args()


def main() -> None:
    args = parse()
    p, d, n = (81, 100, 20_000) if args.quick else (729, 100, 50_000)
    warm_up()
    X, repeats = sample(p, d, n), n_seeds(args)
    runs: dict[int, list[dict[str, float]]] = {jobs: [] for jobs in args.threads}
    trees = []
    for _ in range(repeats):
        for jobs in args.threads:
            seconds, tree = fit(X, jobs)
            runs[jobs].append(seconds)
            trees.append(tree)
    best = {jobs: {s: min(r[s] for r in rows) for s in rows[0]} for jobs, rows in runs.items()}
    show(f"p = {p}, d = {d}, k = {K}, N = {n:,}", best, repeats)
    bounds = {jobs: bound(X, jobs) for jobs in args.threads}
    for jobs in args.threads:
        show_bound(jobs, bounds[jobs], best[jobs])
    same = all(
        np.array_equal(tree.edges, trees[0].edges)
        and np.array_equal(tree.lengths, trees[0].lengths)
        for tree in trees
    )
    console.print(
        "trees and lengths: " + ("the same to the last bit" if same else "[red]differ[/]")
    )
    save("threads", args, {"runs": runs, "best": best, "bounds": bounds, "same": same})


if __name__ == "__main__":
    main()
