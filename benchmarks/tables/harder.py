"""Harder trees: ours without tuning against others, over shapes, sizes, states and samples."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise, product
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.grids import Column, Grid, Row, make_grid, mean_and_error, plus_minus, values
from benchmarks.registry import Table
from benchmarks.rivals import measurable
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings
from benchmarks.stages import parameters_on, tree_from
from benchmarks.timing import timed
from latenttree.config import FitConfig
from latenttree.data import Table as DataTable
from latenttree.data import as_table
from latenttree.distances.detection import DetectionLimitError, check_detection
from latenttree.distances.estimate import Distances, estimate_distances, pairwise_distances
from latenttree.distances.similarity import Similarity, estimated_similarity, mark_copies
from latenttree.distances.stage import count_states
from latenttree.evaluation.baselines import best_contraction, clrg, neighbor_joining
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import robinson_foulds
from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import run_em
from latenttree.search.topology_edits import (
    DOUBTS,
    doubtful_regions,
    search_structure,
    search_tree,
)
from latenttree.structure.learn import Structure, structure_of_similarities
from latenttree.structure.resampling import estimate_support
from latenttree.structure.residuals import mean_squared_residual
from latenttree.tree import Tree

ABOUT = """Every method sees the same samples; all but `pairwise` see the same distances. `ours`:
LatentTree as it comes, doubtful regions searched by likelihood, majority rule. `probable`: the tree
of largest BIC (tree="most_probable"); with more than 2,000 samples only where ours is not the true
tree (BIC never falls in the search, so it is at or above the true tree's in the others). `off`:
ours with the search by likelihood off. `clrg`: CLGrouping with its authors' constants. `merge`: the
structure stage with the sweeps off. `pairwise`: the structure stage on distances from an SVD of
every pair (the paper's estimator). `nj_oracle`: neighbour joining, contracted at the threshold that
is best knowing the truth: for reference, it does not count. A cell is the mean normalised
Robinson-Foulds distance ± its standard error over seeds. A fit that LatentTree refuses (below the
detection limit) has no tree and counts as 1. Ours is best or equal in a row when, for every other
column that does not know the truth, the mean over seeds of ours minus that column is at most one
standard error of this paired difference. Below: how often the BIC of `probable` is at or above that
of the true tree, both refined to convergence; and how many of ours' inner edges are true, by their
stated support (of the default) and by their posterior probability (support="model")."""
METHODS = ("ours", "probable", "off", "clrg", "merge", "pairwise", "nj_oracle")
COUNTED = ("off", "clrg", "merge", "pairwise")
CALIBRATED = {
    "auto": "Inner edges of ours: stated support and truth",
    "model": 'Inner edges of ours: posterior probability (support="model") and truth',
}
LARGE = 2_000
"""Samples beyond which the most probable tree is searched only where ours is not the true one."""
EQUAL_BIC = 0.1
"""Log-likelihood by which two converged fits of one tree may differ."""
BINS = (0.0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
SHAPES: dict[str, dict[str, Any]] = {
    "balanced": {"shape": "balanced", "edge_length": 0.5},
    "random": {"shape": "random", "arity": 3, "edge_length": (0.15, 1.0)},
    "caterpillar": {"shape": "caterpillar", "edge_length": 0.5, "leaf_length": 0.4},
}
SIZES = (27, 81)
DIMENSIONS = ((2, 2), (10, 3), (5, 5))
SAMPLES = (500, 2_000, 10_000, 50_000)


class Cell(NamedTuple):
    """A row."""

    shape: str
    p: int
    d: int
    k: int
    n: int

    @property
    def label(self) -> str:
        """All of it."""
        return f"{self.shape}, p = {self.p}, d = {self.d}, k = {self.k}, N = {self.n:,}"


def cells(quick: bool) -> list[Cell]:
    """The rows."""
    sizes, samples = (SIZES[:1], SAMPLES[:2]) if quick else (SIZES, SAMPLES)
    grid = product(SHAPES, sizes, DIMENSIONS, samples)
    return [Cell(shape, p, d, k, n) for shape, p, (d, k), n in grid]


def measure(settings: Settings) -> dict[str, Any]:
    """All rows, and where ours is best or equal."""
    check_fast_pairwise()
    rows = run_cases(compare, cells(settings.quick), settings, 10, quick_seeds=2, in_processes=True)
    return {"rows": [row | judge(row) for row in rows]}


# ---- one data set --------------------------------------------------------------------------------


def compare(cell: Cell, seed: int) -> Run:
    """All methods on one data set, each with its normalised RF and its seconds."""
    truth = make_latent_tree(
        cell.p, cell.k, cell.d, n_samples=cell.n, random_state=seed, **SHAPES[cell.shape]
    )
    data = as_table(truth.X)
    found, seconds = timed(lambda: estimate_distances(data, cell.k, random_state=seed, n_jobs=1))
    run: Run = {**cell._asdict(), "rf": {}, "taken": {"distances": seconds}, "refused": False}
    D, names = measurable(found.values), data.names
    others = {
        "clrg": lambda: clrg(D, found.n_samples, names),
        "merge": lambda: tree_from(found, names, sweeps=False),
        "pairwise": lambda: tree_from(fast_pairwise(data, cell.k), names),
        "nj_oracle": lambda: best_contraction(neighbor_joining(D, names), truth.tree)[0],
    }
    for method, learn in others.items():
        tree, run["taken"][method] = timed(learn)
        run["rf"][method] = robinson_foulds(truth.tree, tree, normalized=True)
    try:
        check_detection(found, data, cell.k, seed, 1)
    except DetectionLimitError:
        refused = dict.fromkeys(("ours", "probable", "off", "merge"), 1.0)
        return run | {"refused": True, "rf": run["rf"] | refused}
    return run | OurStages(found, data, cell, truth.tree, run).all()


class OurStages:
    """`LatentTree`'s stages one by one, so that each tree on the way can be judged."""

    def __init__(self, found: Distances, data: DataTable, cell: Cell, truth: Tree, run: Run):
        self.found, self.data, self.cell, self.truth, self.run = found, data, cell, truth, run
        self.config, self.samples = FitConfig(), Samples(data)
        self.seconds = 0.0

    def all(self) -> Run:
        """Structure, search by likelihood, search for the most probable tree; writes the scores of
        each into the run and returns support of edges and BICs."""
        first = self._take("off", self._structure)
        if first.tree.same_topology(self.truth) and not has_doubts(first):
            self.run["rf"]["ours"], result, model = 0.0, first, None  # nothing to search
        else:
            result, model = self._take("ours", lambda: self._search(first))
        edges = {how: self._stated(result, how) for how in CALIBRATED}
        if result.tree.same_topology(self.truth) and self.cell.n > LARGE:
            self.run["rf"]["probable"] = None  # slow; and BIC only grows from the true tree's
            return {"edges": edges, "bic": [0.0] * 3}
        if model is None:
            model = self._parameters(result.tree)
        _, probable = self._take(
            "probable",
            lambda: search_structure(result, model, self.samples, "bic", self.config),
        )
        models = [model, probable, self._parameters(self.truth)]
        return {"edges": edges, "bic": converged_bics(models, self.samples)}

    def _stated(self, result: Structure, method: str) -> list[tuple[float, bool]]:
        config = FitConfig(n_states=self.cell.k, support=method, n_jobs=1)  # type: ignore[arg-type]
        states = count_states(self.data, config)
        residual = mean_squared_residual(self._similarity(), result.tree, self.cell.p)
        support = estimate_support(
            result, self.data, states, config, self.found.basis, residual
        ).values
        return stated_support(replace(result, support=support), self.truth)

    def _structure(self) -> Structure:
        return structure_of_similarities(self._similarity(), self.data.names)

    def _similarity(self) -> Similarity:
        return mark_copies(estimated_similarity(self.found), self.data)

    def _search(self, first: Structure) -> Any:
        return search_tree(first, self._parameters(first.tree), self.samples, self.config)

    def _parameters(self, tree: Tree) -> TreeModel:
        return parameters_on(tree, self.data, self.cell.k, self.found.basis, self.config)

    def _take(self, method: str, work: Any) -> Any:
        """The result of a stage; its tree is judged, with the time of all stages so far."""
        result, seconds = timed(work)
        self.seconds += seconds
        tree = (result if method == "off" else result[0]).tree
        self.run["taken"][method] = self.seconds
        self.run["rf"][method] = robinson_foulds(self.truth, tree, normalized=True)
        return result


def has_doubts(result: Structure) -> bool:
    """Whether the search by likelihood would look at any region."""
    regions = doubtful_regions(result.tree, result.support, DOUBTS["likelihood"])
    return next(regions, None) is not None


def stated_support(result: Structure, truth: Tree) -> list[tuple[float, bool]]:
    """Support of each inner edge of a learned tree, and whether the edge is true."""
    true = {tuple(x) for x in np.asarray(truth.splits()).tolist()}
    inner = result.tree.internal_edges()
    splits = result.tree.splits()[inner].tolist()
    pairs = zip(result.support[inner], splits, strict=True)
    return [(float(s), tuple(x) in true) for s, x in pairs]


def converged_bics(models: list[TreeModel], samples: Samples) -> list[float]:
    """Log-likelihood less half the parameters times log n, after EM to convergence; models of the
    same tree share one value."""
    if all(model.tree.same_topology(models[0].tree) for model in models):
        return [0.0] * len(models)  # only differences count
    found: list[float] = []
    for i, model in enumerate(models):
        same = next((j for j in range(i) if model.tree.same_topology(models[j].tree)), None)
        if same is not None:
            found.append(found[same])
            continue
        end = run_em(model, samples, max_steps=300, tolerance=1e-10, smoothing=1.0).model
        found.append(bic_score(end, total_log_likelihood(end, samples), samples.n_samples))
    return found


# ---- the paper's distances, from contingency tables ----------------------------------------------


def one_hot_moments(table: DataTable) -> NDArray[np.float64]:
    """Counts `(p d, p d)` of all pairs of categories; exact, being integers below 2^24."""
    p, width = table.n_vars, int(table.offsets[-1])
    counts = np.zeros((width, width))
    for start in range(0, table.n_samples, 4096):
        codes = np.asarray(table.rows(start, min(start + 4096, table.n_samples)), dtype=np.int64)
        block = np.zeros((len(codes), width), dtype=np.float32)
        block[np.arange(len(codes))[:, None], codes + table.offsets[:p]] = 1.0
        counts += block.T @ block
    return counts


def fast_pairwise(table: DataTable, n_states: int) -> Distances:
    """`distances.estimate.pairwise_distances` of categorical variables, from their counts.

    The canonical correlations of two one-hot blocks are the singular values of
    `(P_ab - P_a P_b^T) / sqrt(P_a P_b^T)`: contingency tables instead of SVDs of the samples.
    """
    p, n_directions, n = table.n_vars, n_states - 1, table.n_samples
    d = int(table.widths.max())
    if not (table.widths == d).all():
        raise ValueError(f"variables have {set(table.widths.tolist())} categories; need one number")
    joint = one_hot_moments(table) / n
    marginal = np.diag(joint).copy()
    root = np.sqrt(np.where(marginal > 0, marginal, 1.0))
    scaled = (joint - np.outer(marginal, marginal)) / np.outer(root, root)
    a, b = np.tril_indices(p, -1)
    s = np.linalg.svd(scaled.reshape(p, d, p, d)[a, :, b, :], compute_uv=False)[:, :n_directions]
    s = np.clip(s, 1e-15, 1.0)
    determinants, errors = np.eye(p), np.zeros((p, p))
    determinants[a, b] = determinants[b, a] = s.prod(axis=1)
    errors[a, b] = errors[b, a] = np.sqrt(((1 - s**2) ** 2 / s**2).sum(axis=1) / n)
    return Distances(determinants, errors, n_directions, n)


def check_fast_pairwise() -> None:
    """The shortcut is the package's estimator, or the benchmark does not start."""
    X = make_latent_tree(9, 3, 6, n_samples=500, random_state=0).X
    fast, slow = fast_pairwise(as_table(X), 3), pairwise_distances(as_table(X), 3)
    # both are float64; the slow one loses some digits in SVDs of 500 rows
    np.testing.assert_allclose(fast.values, slow.values, atol=1e-8)
    np.testing.assert_allclose(fast.standard_errors, slow.standard_errors, atol=1e-8)


# ---- over all ------------------------------------------------------------------------------------


def judge(row: Row) -> dict[str, Any]:
    """Whether ours is best or equal in a row, by paired differences and by means."""
    rf = {m: values(row, f"rf.{m}") for m in METHODS}
    summary = {m: mean_and_error(rf[m]) for m in ("ours", *COUNTED)}
    errors = {m: float(np.nan_to_num(error)) for m, (_, error) in summary.items()}
    gaps = [mean_and_error(rf["ours"] - rf[m]) for m in COUNTED]
    best = min(COUNTED, key=lambda m: summary[m][0])
    room = max(errors["ours"], errors[best]) + 1e-12
    return {
        **{name: row["runs"][0][name] for name in Cell._fields},
        "paired": all(gap <= np.nan_to_num(error) + 1e-12 for gap, error in gaps),
        "plain": summary["ours"][0] <= summary[best][0] + room,
        "refused": sum(run["refused"] for run in row["runs"]),
    }


def _rf(method: str) -> Column:
    return Column(method, lambda row: plus_minus(values(row, f"rf.{method}")))


COLUMNS = (
    Column("data", lambda row: row["label"]),
    *(_rf(method) for method in METHODS),
    Column("ours best or equal", lambda row: "yes" if row["paired"] else "not"),
    Column("refused", lambda row: str(row["refused"]) if row["refused"] else None),
)


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """All rows, shares of them, BIC, and whether support is what it says."""
    rows = record["rows"]
    runs = [run for row in rows for run in row["runs"] if not run["refused"]]
    paired, plain = (np.mean([row[rule] for row in rows]) for rule in ("paired", "plain"))
    said = (
        f"Ours best or equal in {paired:.0%} of {len(rows)} rows (within one standard error of the "
        f"paired difference to every column); {plain:.0%} within the larger standard error of the "
        "two means."
    )
    parts: list[Grid | str] = [make_grid(rows, COLUMNS), said, shares_grid(rows)]
    grids = [calibration_grid(runs, method) for method in CALIBRATED] if runs else []
    return [*parts, bic_sentence(runs), *grids] if runs else parts


def shares_grid(rows: list[Row]) -> Grid:
    """The share of rows in which ours is best or equal, by each of what rows differ in."""
    cells = []
    for name in Cell._fields:
        for value in sorted({row[name] for row in rows}):
            part = [row["paired"] for row in rows if row[name] == value]
            cells.append([f"{name} = {value}", str(len(part)), f"{np.mean(part):.0%}"])
    return Grid(["part", "rows", "share"], cells, "Share of rows, paired rule")


def bic_sentence(runs: list[Run]) -> str:
    """How often the most probable tree is at least as probable as the true one, by BIC."""
    ours, probable, true = np.array([run["bic"] for run in runs]).T
    return (
        f"BIC at or above the true tree's: probable {(probable >= true - EQUAL_BIC).mean():.1%}, "
        f"ours {(ours >= true - EQUAL_BIC).mean():.1%} of {len(runs)} data sets; probable at or "
        f"above ours: {(probable >= ours - EQUAL_BIC).mean():.1%}; lowest probable - truth: "
        f"{(probable - true).min():.1f}."
    )


def calibration_grid(runs: list[Run], method: str) -> Grid:
    """Share of true edges among ours' inner edges, by stated support."""
    edges = [edge for run in runs for edge in run["edges"][method]]
    pairs = np.array(edges, dtype=float).reshape(-1, 2)
    cells = []
    for low, high in pairwise(BINS):
        last = high == BINS[-1]
        inside = (pairs[:, 0] >= low) & ((pairs[:, 0] <= high) if last else (pairs[:, 0] < high))
        if inside.any():
            stated, true = pairs[inside].mean(axis=0)
            text = [f"{low:g} to {high:g}", f"{inside.sum():,}", f"{stated:.3f}", f"{true:.3f}"]
            cells.append(text)
    return Grid(["support", "edges", "mean", "true"], cells, CALIBRATED[method])


TABLES = (
    Table(
        name="harder",
        shows="balanced, random and caterpillar trees from few samples: ours, CLRG, the paper's "
        "distances, neighbour joining; support and BIC",
        duration="5 h",
        title="Harder trees: mean normalised Robinson-Foulds distance",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
)
