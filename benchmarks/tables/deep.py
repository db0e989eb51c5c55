"""Deep trees: what hidden nodes as features are worth."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from benchmarks.grids import LABEL, Column, over_runs, plus_minus, values
from benchmarks.oracle import oracle
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Choice, Settings
from benchmarks.stages import moments_on, timed_fit
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import (
    parameter_error,
    robinson_foulds,
    split_errors,
)
from latenttree.model.tree_model import TreeModel

ABOUT = """256 binary leaves at depth 8 of a tree in which every hidden node has two children, every
edge with correlation s. A leaf knows `s^8` of the root, almost nothing; but all leaves together
keep a share of it however deep the tree is, as long as `2 s^2 > 1` (Kesten and Stigum). Each data
set is fitted with `hidden_features` on and off (then the nearest leaf stands for a branch), without
search and EM, by moments alone: RF, parameter error of the leaves as a ratio to the oracle that
knows the hidden states, and time. The leaves hang on hidden nodes that they know well; what comes
from below matters for the edges between hidden nodes. So the same ratio for these: mean over them
of `||P(a | b) - P_hat(a | b)||_F`, parameters fitted on the true tree."""
DEPTH, K = 8, 2
FEATURES = {"with": True, "without": False}


class Deep(NamedTuple):
    """A row: correlation along an edge, samples, depth."""

    s: float
    n: int
    depth: int = DEPTH

    @property
    def label(self) -> str:
        """What it is."""
        return f"s = {self.s:g}, N = {self.n:,}"


def measure(settings: Settings) -> dict[str, Any]:
    """All rows."""
    correlations, samples = (settings.choices[name] for name in ("correlations", "samples"))
    depth = 5 if settings.quick else DEPTH
    cases = [Deep(s, n, depth) for s, n in product(correlations, samples)]
    return {"rows": run_cases(fit, cases, settings, 5)}


def fit(case: Deep, seed: int) -> Run:
    """One data set with and without hidden-node features."""
    data = make_latent_tree(
        2**case.depth, K, arity=2, edge_length=-float(np.log(case.s)), n_samples=case.n,
        random_state=seed,
    )  # fmt: skip
    best, X = oracle(data), data.X.astype(np.uint8)
    base = {"leaf": parameter_error(best, data), "hidden": hidden_error(best, data)}
    run: Run = {**case._asdict(), "oracle": base}
    for name, features in FEATURES.items():
        model, seconds = timed_fit(X, K, seed, refine=None, hidden_features=features)
        # with the structure given, so that only the views differ
        given = moments_on(data.tree, data.X, K, None, seed, hidden_features=features)
        run[name] = {
            "rf": robinson_foulds(data.tree, model.tree_, normalized=True),
            "splits": split_errors(data.tree, model.tree_)._asdict(),
            "leaf": parameter_error(model, data) / base["leaf"],
            "leaf_true_tree": parameter_error(given, data) / base["leaf"],
            "hidden_true_tree": hidden_error(given, data) / base["hidden"],
            "seconds": seconds,
        }
    return run


def hidden_error(model: TreeModel, data: LatentTreeData) -> float:
    """Mean over the edges between hidden nodes of `||P(a | b) - P_hat(a | b)||_F`.

    Labels of each hidden node as they agree best with the truth along the tree, from the leaves up:
    a node's states are matched by those of a child that is matched already."""
    true, p = data.model, data.tree.n_observed
    parents, order = data.tree.rooted(data.root)
    match: dict[int, NDArray[np.int64]] = {v: np.arange(int(true.dims[v])) for v in range(p)}
    errors = []
    for v in reversed(order.tolist()):
        u = int(parents[v])
        if u < 0:
            continue
        estimate = model.conditional(v, u)[match[v]]
        if u not in match:
            cost = ((true.conditional(v, u)[:, :, None] - estimate[:, None, :]) ** 2).sum(axis=0)
            match[u] = linear_sum_assignment(cost)[1]
        if v >= p:
            errors.append(float(np.linalg.norm(true.conditional(v, u) - estimate[:, match[u]])))
    return float(np.mean(errors)) if errors else 0.0


def _both(heading: str, key: str, reduce: Any, digits: int) -> list[Column]:
    """Two columns: with and without."""
    names = zip((f"{heading} with", "without"), FEATURES, strict=True)
    return [Column(head, over_runs(reduce, f"{name}.{key}", digits)) for head, name in names]


COLUMNS = (
    LABEL,
    Column("2 s²", lambda row: f"{2 * row['runs'][0]['s'] ** 2:.2f}"),
    Column("leaf knows", lambda row: f"{row['runs'][0]['s'] ** row['runs'][0]['depth']:.2f}"),
    Column("RF with", lambda row: plus_minus(values(row, "with.rf"))),
    Column("without", lambda row: plus_minus(values(row, "without.rf"))),
    Column(
        "paired gain",
        lambda row: plus_minus(values(row, "without.rf") - values(row, "with.rf")),
    ),
    *_both("leaves", "leaf", np.mean, 2),
    *_both("hidden edges, true tree:", "hidden_true_tree", np.mean, 2),
    *_both("s", "seconds", np.median, 2),
)


TABLES = (
    Table(
        name="deep",
        shows="256 leaves at depth 8: what hidden-node features add to moments",
        duration="20 min",
        title="Deep trees: with and without hidden-node features",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        choices={
            "samples": Choice((1_000, 2_000, 5_000, 10_000, 20_000), "N", quick=(2_000,)),
            "correlations": Choice((0.75, 0.8, 0.85), "s, of an edge"),
        },
    ),
)
