"""Posteriors against pgmpy on trees of 30 nodes: the same answers, and the time of both.

For every tree: samples with a third of the observed values unknown, posteriors of every unknown
node. pgmpy answers one sample and one node at a time, as its interface has it: 20 samples by
variable elimination, one by belief propagation (the junction tree, made once and not timed; half a
minute for 20). Ours takes the 20 in one call, and 20,000 for its time without the set-up.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import console, mean_and_error, n_seeds, options, save, table
from latenttree.io.pgmpy import to_pgmpy
from latenttree.model.inference import Evidence, posteriors
from latenttree.model.tree_model import TreeModel

N_SAMPLES = 20
N_MANY = 20_000


def random_problem(seed: int) -> tuple[TreeModel, Evidence]:
    """A tree of exactly 30 nodes with 2 to 4 states each."""
    from tests.reference.enumeration import model_on, random_evidence  # on the path by common
    from tests.reference.random_trees import random_tree

    rng = np.random.default_rng(seed)
    while True:
        tree = random_tree(rng, int(rng.integers(16, 24)), max_degree=5)
        if tree.n_nodes == 30:
            model = model_on(rng, tree, rng.integers(2, 5, size=30))
            return model, random_evidence(rng, model, N_SAMPLES, 0.33, 0.0)


def theirs(engine: Any, model: TreeModel, evidence: Evidence) -> NDArray[np.float64]:
    """(n, all states) posteriors node by node; what is known has its own value."""
    names, rows = model.tree.names, []
    for codes in evidence.codes.tolist():
        known = {names[v]: x for v, x in enumerate(codes) if x >= 0}
        row = []
        for v, name in enumerate(names):
            if name in known:
                row.append((np.arange(model.dims[v]) == known[name]).astype(float))
            else:
                found = engine.query([name], evidence=known, show_progress=False)
                row.append(found.values)
        rows.append(np.concatenate(row))
    return np.array(rows)


def compare(seed: int) -> dict[str, float]:
    from pgmpy.inference import BeliefPropagation, VariableElimination

    model, evidence = random_problem(seed)
    network = to_pgmpy(model)
    many = Evidence(np.tile(evidence.codes, (N_MANY // N_SAMPLES, 1)))
    start = time.perf_counter()
    ours = posteriors(model, evidence, range(30)).array
    middle = time.perf_counter()
    posteriors(model, many, range(30))
    result = {"ours": (middle - start) / N_SAMPLES, "many": (time.perf_counter() - middle) / N_MANY}
    for name, make, n in (
        ("elimination", VariableElimination, N_SAMPLES),
        ("propagation", BeliefPropagation, 1),
    ):
        engine = make(network)
        if name == "propagation":
            engine.calibrate()
        start = time.perf_counter()
        answer = theirs(engine, model, Evidence(evidence.codes[:n]))
        result[name] = (time.perf_counter() - start) / n
        result[f"difference, {name}"] = float(np.abs(ours[:n] - answer).max())
    return result


def main() -> None:
    args = options(__doc__, seeds=10).parse_args()
    compare(0)  # compiles and imports
    found = [compare(seed) for seed in range(n_seeds(args))]
    made = table(
        f"{len(found)} trees of 30 nodes, every unknown node",
        "method|ms a sample|times ours|largest difference",
    )
    mean = {name: mean_and_error([run[name] for run in found])[0] for name in found[0]}
    made.add_row(f"latenttree, {N_SAMPLES} samples", f"{mean['ours'] * 1e3:.3f}", "1", "-")
    many = mean["many"]
    made.add_row(f"latenttree, {N_MANY:,}", f"{many * 1e3:.4f}", f"{many / mean['ours']:.3f}", "-")
    for name in ("elimination", "propagation"):
        worst = max(run[f"difference, {name}"] for run in found)
        times = f"{mean[name] / mean['ours']:,.0f}"
        made.add_row(f"pgmpy, {name}", f"{mean[name] * 1e3:,.0f}", times, f"{worst:.1e}")
    console.print(made)
    save("pgmpy", args, {"runs": found})


if __name__ == "__main__":
    main()
