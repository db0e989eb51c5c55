"""Inference throughput: posteriors of all hidden nodes, and how far from the least work.

p = 729, d = 100, k = 3, balanced. Runs alternate between the numbers of threads, so that what else
the machine does falls on all; the best time of each counts. The answers must be the same.

Lower bounds, from rates measured here and now: by bytes, codes read and posteriors written (the
rate of a copy into fresh memory, which the result is); by arithmetic, a multiply-add for every
entry of every table that a sample meets (3 for each leaf, 9 up and 9 down for each hidden edge) at
the rate of a float64 matrix product.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

import latenttree as lt
from benchmarks.common import console, mib, n_seeds, options, save, table
from latenttree.engine import parallel
from latenttree.model.inference import (
    Evidence,
    expected_counts,
    log_likelihood,
    messages,
    most_probable,
    posteriors,
)
from latenttree.model.tree_model import TreeModel

K = 3


def problem(p: int, d: int, n: int) -> tuple[TreeModel, Evidence]:
    """The true model of a balanced tree, and samples from it."""
    data = lt.datasets.make_latent_tree(p, K, d, n_samples=n, random_state=0)
    parents = data.tree.rooted(data.root).parents
    tables: list[Any] = [data.marginals[data.root][:, None]] * data.tree.n_nodes
    for (a, b), found in zip(data.tree.edges.tolist(), data.conditionals, strict=True):
        tables[b if parents[b] == a else a] = found
    return TreeModel(data.tree, data.root, tuple(tables)), Evidence(data.X.astype(np.uint8))


def best_of(work: Callable[[], Any], repeats: int = 5) -> float:
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
    return float(best)


def copy_rate(n_jobs: int, n_bytes: int = 1 << 28) -> float:
    """Bytes written a second by a copy of an array into fresh memory."""
    source = np.ones(n_bytes // 8)

    def copied() -> NDArray[np.float64]:
        fresh = np.empty_like(source)
        parallel(lambda a, b: np.copyto(fresh[a:b], source[a:b]), len(source), n_jobs)
        return fresh

    return n_bytes / best_of(copied)


def multiply_rate(n_jobs: int, width: int = 1024) -> float:
    """Multiply-adds a second of a float64 matrix product."""
    x, y = np.random.default_rng(0).standard_normal((2, width, width))
    with threadpool_limits(limits=n_jobs, user_api="blas"):
        return width**3 / best_of(lambda: x @ y)


def bound(model: TreeModel, n_jobs: int) -> dict[str, float]:
    """The least work for one sample, the measured rates, and the seconds they make."""
    tree = model.tree
    n_bytes = tree.n_observed + 8 * int(model.dims[tree.n_observed :].sum())
    multiplies = sum(
        t.shape[1] if v < tree.n_observed else 2 * t.size for v, t in enumerate(model.cpts)
    )
    moving, rate = copy_rate(n_jobs), multiply_rate(n_jobs)
    return {
        "bytes": n_bytes,
        "bytes_per_s": moving,
        "seconds_by_bytes": n_bytes / moving,
        "multiply_adds": multiplies,
        "multiply_adds_per_s": rate,
        "seconds_by_multiply_adds": multiplies / rate,
    }


def queries(model: TreeModel, evidence: Evidence) -> dict[str, Callable[[int], Any]]:
    p = model.tree.n_observed
    inside = model.tree.edges[(model.tree.edges >= p).all(axis=1)]
    both = np.concatenate([inside, inside[:, ::-1]])
    return {
        "posteriors": lambda jobs: posteriors(model, evidence, None, jobs).array,
        "log-likelihood": lambda jobs: log_likelihood(model, evidence, jobs),
        "expected counts": lambda jobs: np.concatenate(
            [c.ravel() for c in expected_counts(model, evidence, jobs)[0]]
        ),
        "most probable": lambda jobs: most_probable(model, evidence, jobs)[0],
        "messages": lambda jobs: messages(model, evidence, both, jobs),
    }


def measure(work: Callable[[int], Any], threads: list[int], runs: int) -> tuple[Any, bool]:
    """Best seconds for each number of threads, and whether all answers are the same."""
    first = work(threads[0])
    best, same = dict.fromkeys(threads, np.inf), True
    for _ in range(runs):
        for jobs in threads:
            start = time.perf_counter()
            answer = work(jobs)
            best[jobs] = min(best[jobs], time.perf_counter() - start)
            same &= bool(np.array_equal(first, answer))
    return best, same


def show_bound(least: dict[str, float], jobs: int, seconds: float) -> None:
    by_bytes, by_work = least["seconds_by_bytes"], least["seconds_by_multiply_adds"]
    console.print(
        f"{jobs} thread(s): a sample moves at least {least['bytes']:,.0f} bytes at "
        f"{least['bytes_per_s'] / 2**30:,.1f} GiB/s = {by_bytes * 1e6:.2f} us and needs "
        f"{least['multiply_adds']:,.0f} multiply-adds at "
        f"{least['multiply_adds_per_s'] / 1e9:,.1f} G/s = {by_work * 1e6:.2f} us; posteriors take "
        f"{seconds * 1e6:.2f} us: {seconds / by_bytes:.1f} times the bytes, "
        f"{seconds / (by_bytes + by_work):.1f} times both"
    )


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    return parser.parse_args()


def main() -> None:
    args = parse()
    p, d, n = (81, 100, 5_000) if args.quick else (729, 100, 50_000)
    model, evidence = problem(p, d, n)
    made = table(
        f"p = {p}, d = {d}, k = {K}, N = {n:,}; samples a second, best of {n_seeds(args)}",
        "query|" + "|".join(f"{jobs} thread(s)" for jobs in args.threads) + "|same bits",
    )
    found: dict[str, Any] = {}
    for name, work in queries(model, evidence).items():
        best, same = measure(work, args.threads, n_seeds(args))
        found[name] = {"seconds": best, "same": same}
        made.add_row(name, *(f"{n / best[jobs]:,.0f}" for jobs in args.threads), str(same))
    console.print(made)
    bounds = {jobs: bound(model, jobs) for jobs in args.threads}
    for jobs in args.threads:
        show_bound(bounds[jobs], jobs, found["posteriors"]["seconds"][jobs] / n)
    console.print(f"tables {mib(sum(t.nbytes for t in model.cpts))}")
    save("inference", args, {"n": n, "queries": found, "bounds": bounds})


if __name__ == "__main__":
    main()
