"""Exact distances of random trees, and exact moments of random models: what comes back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from tests.reference.parameters import largest_error, random_truth, rarest_state, solve_exactly
from tests.reference.random_trees import SHAPES, random_tree

import latenttree as lt
from benchmarks.grids import LABEL, Column, Grid, Row, field, make_grid, values
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings
from benchmarks.timing import timed

ABOUT = """Trees of all shapes with 3 to 200 observed nodes (some of them internal), degrees up to
20, depth (most edges from the centre to a leaf) up to 30, lengths log-uniform from 0.01 to 10.
Exact means the same topology; then lengths are compared edge by edge, and path by path over all
pairs."""
ABOUT_PARAMETERS = """Trees of all shapes with 3 to 20 leaves, 2 to 8 states, k to 50 categories, in
every fifth tree observed nodes inside. Models of three kinds: "even" (edges of a given length, all
directions alike), "drawn" (columns uniform on the simplex) and "sharp" (Dirichlet 0.3: rare states,
weak directions). The error is the largest over all conditionals in both directions, hidden-hidden
edges too, and all marginals, with the labels of each hidden node matched. Allowed means that errors
of the moments grow less than a million times and that no state is rarer than the floor on weights
in the decomposition: there the error must be below 1e-6."""
MAX_OBSERVED, MAX_DEGREE, MAX_DEPTH, LENGTHS = 200, 20, 30, (0.01, 10.0)
WORST_CONDITION, RAREST, EXACT = 1e6, 2e-6, 1e-6


class Everything(NamedTuple):
    """One case: each seed draws its own kind of tree or model."""

    label: str


def by(rows: list[dict[str, Any]], key: str) -> list[dict[str, Any]]:
    """The runs of the only row as a row for each value of a key, and one of all."""
    (whole,) = rows
    kinds = sorted({run[key] for run in whole["runs"]})
    parts = {kind: [run for run in whole["runs"] if run[key] == kind] for kind in kinds}
    return [
        {"label": kind, "seconds": float(np.mean([r["seconds"] for r in runs])), "runs": runs}
        for kind, runs in [*parts.items(), ("all", whole["runs"])]
    ]


def count(row: Row, key: str) -> str:
    """Runs in which something is so."""
    return f"{int(values(row, key).astype(bool).sum()):,}"


def largest(row: Row, key: str) -> str | None:
    """The largest value, in powers of ten."""
    found = values(row, key)
    return f"{found.max():.1e}" if len(found) else None


# ---- trees ---------------------------------------------------------------------------------------


def measure(settings: Settings) -> dict[str, Any]:
    """All trees, by shape."""
    cases = [Everything("random trees")]
    rows = run_cases(recover, cases, settings, 5_000, quick_seeds=200, in_processes=True, warm=warm)
    return {"rows": by(rows, "shape")}


def warm() -> None:
    """Load the kernels of a process."""
    recover(Everything(""), 0)


def recover(case: Everything, seed: int) -> Run:
    """One tree from its distances."""
    shape, truth = draw_tree(seed)
    distances = truth.path_lengths()
    tree, seconds = timed(
        lambda: lt.tree_from_distances(distances, names=truth.observed_names, n_jobs=1)
    )
    exact = tree.same_topology(truth)
    return {
        "shape": shape,
        "n_observed": truth.n_observed,
        "n_hidden": truth.n_hidden,
        "degree": int(truth.degree().max()),
        "depth": depth(truth),
        "internal_observed": int((truth.degree()[: truth.n_observed] > 1).sum()),
        "exact": exact,
        # both trees are canonical: the same topology has the same edges in the same order
        "length_error": float(np.abs(tree.lengths - truth.lengths).max()) if exact else None,
        "path_error": float(np.abs(tree.path_lengths() - distances).max()),
        "seconds": seconds,
    }


def draw_tree(seed: int) -> tuple[str, lt.Tree]:
    """The tree of a seed; shapes that go past the bounds are drawn again."""
    rng = np.random.default_rng(seed)
    while True:
        shape = str(rng.choice(SHAPES))
        # a star has one hidden node, so its size is its degree
        most = MAX_DEGREE if shape == "star" else MAX_OBSERVED
        tree = random_tree(
            rng,
            int(rng.integers(3, most + 1)),
            shape=shape,
            max_degree=int(rng.integers(3, MAX_DEGREE + 1)),
            internal_observed_fraction=float(rng.choice([0.0, 0.1, 0.5, 1.0])),
            length_range=LENGTHS,
        )
        if int(tree.degree().max()) <= MAX_DEGREE and depth(tree) <= MAX_DEPTH:
            return shape, tree


def depth(tree: lt.Tree) -> int:
    """Edges from the centre to the farthest leaf: half the longest path, rounded up."""
    unit = tree.with_lengths(np.ones(tree.n_edges))
    return (round(float(unit.path_lengths().max())) + 1) // 2


def _range(key: str) -> Any:
    def text(row: Row) -> str:
        found = values(row, key)
        return f"{found.min():.0f} to {found.max():.0f}"

    return text


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """By shape; the seeds that did not come back."""
    columns = (
        LABEL._replace(heading="shape"),
        Column("trees", lambda row: f"{len(row['runs']):,}"),
        Column("exact", lambda row: count(row, "exact")),
        Column("observed", _range("n_observed")),
        Column("with internal", lambda row: count(row, "internal_observed")),
        Column("degree", _range("degree")),
        Column("depth", _range("depth")),
        Column("length error", lambda row: largest(row, "length_error")),
        Column("path error", lambda row: largest(row, "path_error")),
        Column("ms / tree", lambda row: f"{1e3 * row['seconds']:.1f}"),
    )
    wrong = [run["seed"] for run in record["rows"][-1]["runs"] if not run["exact"]]
    said = f"Not recovered: seeds {wrong[:20]}." if wrong else "All were recovered."
    return [make_grid(record["rows"], columns), said]


# ---- parameters ----------------------------------------------------------------------------------


def measure_parameters(settings: Settings) -> dict[str, Any]:
    """All models, by kind."""
    cases = [Everything("random models")]
    rows = run_cases(solve, cases, settings, 1_000, quick_seeds=60, in_processes=True)
    return {"rows": by(rows, "kind")}


def solve(case: Everything, seed: int) -> Run:
    """The parameters of one model from its exact moments."""
    kind, k, truth = random_truth(seed)
    solved, seconds = timed(lambda: solve_exactly(truth, k))
    condition, rarest = float(solved.condition.max()), rarest_state(truth)
    error, p = largest_error(solved.model, truth), truth.tree.n_observed
    allowed = bool(condition < WORST_CONDITION and rarest >= RAREST)
    return {
        "kind": kind,
        "k": k,
        "d": int(truth.dims[0]),
        "n_observed": p,
        "n_hidden": truth.tree.n_hidden,
        "internal_observed": int((truth.tree.degree()[:p] > 1).sum()),
        "condition": condition,
        "rarest": rarest,
        "error": error,
        "exact": error < EXACT,
        "allowed": allowed,
        "seconds": seconds,
    }


def body_parameters(record: Mapping[str, Any]) -> list[Grid | str]:
    """By kind; the models that did not come back, with what made them hard."""

    def only(row: Row, allowed: bool) -> dict[str, Any]:
        return {"runs": [run for run in row["runs"] if run["allowed"] is allowed]}

    columns = (
        LABEL._replace(heading="kind"),
        Column("models", lambda row: f"{len(row['runs']):,}"),
        Column("allowed", lambda row: count(row, "allowed")),
        Column("of these exact", lambda row: count(only(row, True), "exact")),
        Column("their worst error", lambda row: largest(only(row, True), "error")),
        Column("their worst condition", lambda row: largest(only(row, True), "condition")),
        Column("not allowed", lambda row: str(len(only(row, False)["runs"]))),
        Column("of these exact", lambda row: count(only(row, False), "exact")),
    )
    runs = record["rows"][-1]["runs"]
    share = np.mean([run["exact"] for run in runs])
    rest = sorted((run for run in runs if not run["exact"]), key=lambda run: run["condition"])
    hard = (
        Column("seed", field("seed")),
        *(Column(key, field(key)) for key in ("kind", "k", "d", "n_observed")),
        *(Column(key, field(key, ".1e")) for key in ("condition", "rarest", "error")),
        Column("allowed", lambda run: "yes (!)" if run["allowed"] else "not"),
    )
    parts = [make_grid(record["rows"], columns), f"Share below {EXACT:g}: {share:.4f}."]
    return [*parts, make_grid(rest, hard, "Not exact")] if rest else parts


TABLES = (
    Table(
        name="exact",
        shows="trees from exact distances: how many of 5,000 come back exactly",
        duration="2 min",
        title="Exact distances of random trees",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
    Table(
        name="exact-parameters",
        shows="parameters from exact moments of 1,000 random models, and their largest error",
        duration="3 min",
        title="Exact moments of random models",
        about=ABOUT_PARAMETERS,
        measure=measure_parameters,
        body=body_parameters,
    ),
)
