"""Missing values: 30% of all entries, each by itself; RF, parameters, and how well gaps are filled.

Balanced 3-ary tree, p = 81, N = 50,000, k = 3, edges of information length 0.5: categories
(d = 10), numbers, and a mixed tree. Values that were taken out are kept. Scores: RF (target 0);
parameter error as a ratio to that of the oracle, which sees the same gaps and the hidden states;
mean log-loss `-log P(x | what is known of its sample)` of the missing values under the fitted
model as a ratio to the true model's (target 1.02). The log-density of numbers has no zero, so for
them the difference is the measure, in nats. "Marginal" is the loss of a model that knows the
frequencies only.

The default is three seeds; the claim is for `--seeds 10`.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

import latenttree as lt
from benchmarks.common import console, n_seeds, options, save, table
from benchmarks.oracle import oracle
from latenttree.data import Table, as_table
from latenttree.engine import resolve_jobs
from latenttree.evaluation.datasets import LatentTreeData
from latenttree.evaluation.metrics import parameter_error
from latenttree.model import inference
from latenttree.model.samples import Chunk, chunk_of
from latenttree.model.tree_model import TreeModel

N_SAMPLES, K, SHARE, TARGET = 50_000, 3, 0.3, 1.02
N_JUDGED = 10_000
"""Samples whose gaps are judged: 240,000 values at p = 81."""

CASES: dict[str, dict[str, Any]] = {
    "categorical": {"n_categories": 10},
    "gaussian": {"family": "gaussian"},
    "mixed": {"family": "mixed", "n_categories": 6, "dim": 6},
}

Gaps = NDArray[np.bool_]


def simulate(case: str, n_vars: int, n_samples: int, seed: int) -> tuple[LatentTreeData, Any, Gaps]:
    """Data without gaps, the samples with gaps, and where those are, `(n, p)`."""
    data = lt.datasets.make_latent_tree(
        n_vars, K, edge_length=0.5, n_samples=n_samples, random_state=seed, **CASES[case]
    )
    gaps = np.random.default_rng([seed, 1]).random((n_samples, n_vars)) < SHARE
    if not isinstance(data.X, dict):
        return data, np.where(gaps, np.nan, data.X), gaps
    X = {}
    for v, (name, x) in enumerate(data.X.items()):
        X[name] = np.where(gaps[:, v] if x.ndim == 1 else gaps[:, v, None], np.nan, x)
    return data, X, gaps


def run(case: str, n_vars: int, n_samples: int, seed: int) -> dict[str, Any]:
    data, X, gaps = simulate(case, n_vars, n_samples, seed)
    model = lt.LatentTree(n_states=K, family=data.family, random_state=seed)
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    full, seen = (as_table(values, family=data.family) for values in (data.X, X))
    n, fitted = min(N_JUDGED, n_samples), model.model_
    assert isinstance(fitted, TreeModel)
    loss = {
        "ours": losses(fitted, seen, full, gaps, n),
        "truth": losses(data.model, seen, full, gaps, n),
        "marginal": losses(data.model, seen, full, gaps, n, use=False),
    }
    known = {name: float(np.mean(values)) for name, values in loss.items()}
    counted = oracle(replace(data, X=X))
    errors = [float(parameter_error(m, data)) for m in (counted, model)]
    return {
        "case": case,
        "seed": seed,
        "rf": lt.metrics.robinson_foulds(data.tree, model.tree_),
        "loss": known,
        "ratio": known["ours"] / known["truth"],
        "excess": known["ours"] - known["truth"],
        "excess_error": float((loss["ours"] - loss["truth"]).std() / np.sqrt(len(loss["ours"]))),
        "parameter_ratio": errors[1] / errors[0],
        "seconds": seconds,
        "stages": model.diagnostics_.stage_seconds,
    }


def losses(
    model: TreeModel, seen: Table, full: Table, gaps: Gaps, n: int, use: bool = True
) -> NDArray[np.float64]:
    """`-log P(x | what is known of its sample)` of every missing value of the first n samples;
    `-log P(x)` if what is known is not used."""
    p = model.tree.n_observed
    nodes = [int(model.parents[v]) if v in model.emissions else v for v in range(p)]
    asked = sorted(set(nodes))
    chunk, true = chunk_of(seen, 0, n), chunk_of(full, 0, n)
    evidence = (chunk if use else _nothing(n, p)).evidence(model)
    found = inference.posteriors(model, evidence, asked, resolve_jobs(None))
    posterior = dict(zip(asked, found.values, strict=True))
    parts = []
    for v, node in enumerate(nodes):
        at = np.flatnonzero(gaps[:n, v])
        q = np.log(np.maximum(posterior[node][at], 1e-300))
        if v in model.emissions:
            parts.append(
                -logsumexp(q + model.emissions[v].log_likelihood(true.arrays[v][at]), axis=1)
            )
        else:
            parts.append(-q[np.arange(len(at)), true.codes[at, v]])
    return np.concatenate(parts)


def _nothing(n: int, p: int) -> Chunk:
    return Chunk(np.full((n, p), -1, dtype=np.int32))


def show(found: dict[str, list[dict[str, Any]]], n_vars: int, n_samples: int) -> None:
    made = table(
        f"{SHARE:.0%} missing, p = {n_vars}, N = {n_samples:,}, k = {K}: loss of missing values "
        f"(ratio to reach: {TARGET})",
        "case|seeds|RF > 0|RF max|parameters / oracle|loss|true model's|marginal|ratio mean|max"
        "|excess in nats|s",
    )
    for case, runs in found.items():
        ratio = np.array([r["ratio"] for r in runs])
        made.add_row(
            case,
            str(len(runs)),
            str(sum(r["rf"] > 0 for r in runs)),
            f"{max(r['rf'] for r in runs):.0f}",
            f"{np.mean([r['parameter_ratio'] for r in runs]):.3f}",
            *(
                f"{np.mean([r['loss'][m] for r in runs]):.4f}"
                for m in ("ours", "truth", "marginal")
            ),
            *(
                f"[red]{x:.4f}[/]" if x > TARGET else f"{x:.4f}"
                for x in (ratio.mean(), ratio.max())
            ),
            f"{np.mean([r['excess'] for r in runs]):.5f}",
            f"{np.mean([r['seconds'] for r in runs]):.1f}",
        )
    console.print(made)


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=3)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--n-vars", type=int, default=None, metavar="P")
    args = parser.parse_args()
    args.n_vars = args.n_vars or (27 if args.quick else 81)
    return args


def main() -> None:
    args = parse()
    n_samples = 20_000 if args.quick else N_SAMPLES
    found: dict[str, list[dict[str, Any]]] = {}
    for case in args.cases:
        found[case] = []
        for seed in range(n_seeds(args, 1)):
            last = run(case, args.n_vars, n_samples, seed)
            found[case].append(last)
            console.print(
                f"{case}, seed {seed}: RF {last['rf']:.0f}, loss ratio {last['ratio']:.4f}, "
                f"parameters {last['parameter_ratio']:.3f}, {last['seconds']:.1f} s",
                style="dim",
            )
    show(found, args.n_vars, n_samples)
    save("missing", args, found)


if __name__ == "__main__":
    main()
