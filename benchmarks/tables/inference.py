"""Inference: samples a second of every query beside the least work, and pgmpy beside ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse
from tests.reference.enumeration import model_on, random_evidence
from tests.reference.random_trees import random_tree

from benchmarks.data.simulated import Balanced
from benchmarks.grids import LABEL, Column, Grid, Row, field, make_grid, mebibytes
from benchmarks.machine import copy_rate, multiply_rate
from benchmarks.registry import Table
from benchmarks.rivals import installed
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings
from benchmarks.tables.threads import thread_counts
from benchmarks.timing import timed
from latenttree.io.pgmpy import to_pgmpy
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

ABOUT = """p = 729, d = 100, k = 3, balanced, N = 50,000; posteriors are of all hidden nodes. Runs
alternate between the numbers of threads, so that what else the machine does falls on all; the best
time of each counts. The answers must be the same. Lower bounds, from rates measured here and now:
by bytes, codes read and posteriors written (the rate of a copy into fresh memory, which the result
is); by arithmetic, a multiply-add for every entry of every table that a sample meets (3 for each
leaf, 9 up and 9 down for each hidden edge) at the rate of a float64 matrix product."""
ABOUT_PGMPY = """Trees of 30 nodes with 2 to 4 states, samples with a third of the observed values
unknown, posteriors of every unknown node. pgmpy answers one sample and one node at a time, as its
interface has it: 20 samples by variable elimination, one by belief propagation (the junction tree,
made once and not timed; half a minute for 20). Ours takes the 20 in one call, and 20,000 for its
time without the set-up."""
ABOUT_STATES = """One thread; the best of several runs. Dense: codes of 324 variables (108 with 64
states), four to a hidden node. Sparse: rows with a hundredth of ones in 216 to 1,944 binary
variables, eight to a hidden node. Posteriors are of all hidden nodes, messages along all edges
between hidden nodes in both directions. Lower bounds of expected counts, from rates measured here
and now: by bytes, reading the codes or the ones; by multiply-adds, 3 k^2 for each edge between
hidden nodes (of touched ones where the data are sparse) and 2 k for each leaf, at the rate of a
float64 matrix product."""
K, REPEATS = 3, 7
N_FEW, N_MANY, N_NODES = 20, 20_000, 30


# ---- throughput ----------------------------------------------------------------------------------


def measure(settings: Settings) -> dict[str, Any]:
    """All queries on all numbers of threads, and the bounds."""
    p, d, n = (81, 100, 5_000) if settings.quick else (729, 100, 50_000)
    threads, repeats = thread_counts(settings.n_jobs), settings.n_seeds(REPEATS, 2)
    data = Balanced(p, d, n, K).sample(0)
    model, evidence = data.model, Evidence(data.X.astype(np.uint8))
    rows = []
    for name, work in queries(model, evidence).items():
        if settings.wants(name):
            best, same = alternate(work, threads, repeats)
            rows.append({"label": name, "seconds": best[threads[-1]], "n": n, "same": same}
                        | {"by_threads": best})  # fmt: skip
            settings.say(f"{name}: {n / best[threads[-1]]:,.0f} samples a second")
    return {
        "rows": rows,
        "bounds": {jobs: bound(model, jobs) for jobs in threads},
        "table_bytes": sum(t.nbytes for t in model.cpts),
    }


def queries(model: TreeModel, evidence: Evidence) -> dict[str, Callable[[int], Any]]:
    """What is asked, as a function of the number of threads."""
    p = model.tree.n_observed
    inside = model.tree.edges[(model.tree.edges >= p).all(axis=1)]
    both = np.concatenate([inside, inside[:, ::-1]])
    return {
        "posteriors": lambda jobs: model.posteriors(evidence, None, jobs).array,
        "log-likelihood": lambda jobs: model.log_likelihood(evidence, jobs),
        "expected counts": lambda jobs: np.concatenate(
            [c.ravel() for c in model.expected_counts(evidence, jobs)[0]]
        ),
        "most probable": lambda jobs: model.most_probable(evidence, jobs)[0],
        "messages": lambda jobs: model.messages(evidence, both, jobs),
    }


def alternate(
    work: Callable[[int], Any], threads: Sequence[int], repeats: int
) -> tuple[dict[int, float], bool]:
    """Best seconds for each number of threads, and whether all answers are the same."""
    first = work(threads[0])
    best, same = dict.fromkeys(threads, np.inf), True
    for _ in range(repeats):
        for jobs in threads:
            answer, seconds = timed(lambda jobs=jobs: work(jobs))
            best[jobs] = min(best[jobs], seconds)
            same &= bool(np.array_equal(first, answer))
    return best, same


def bound(model: TreeModel, n_jobs: int) -> dict[str, float]:
    """The least work for one sample, the measured rates, and the seconds they make."""
    tree = model.tree
    n_bytes = tree.n_observed + 8 * int(model.dims[tree.n_observed :].sum())
    multiplies = sum(
        t.shape[1] if v < tree.n_observed else 2 * t.size for v, t in enumerate(model.cpts)
    )
    moving, rate = copy_rate(n_jobs), multiply_rate(n_jobs, 1024, np.float64)
    return {
        "bytes": n_bytes,
        "bytes_per_s": moving,
        "seconds_by_bytes": n_bytes / moving,
        "multiply_adds": multiplies,
        "multiply_adds_per_s": rate,
        "seconds_by_multiply_adds": multiplies / rate,
    }


def body(record: Mapping[str, Any]) -> list[Grid | str]:
    """Samples a second, and how far posteriors are from the bounds."""
    rows, bounds = record["rows"], record["bounds"]

    def rate(jobs: str) -> Column:
        return Column(f"{jobs} thread(s)", lambda row: f"{row['n'] / row['by_threads'][jobs]:,.0f}")

    same = Column("same bits", lambda row: "yes" if row["same"] else "no: answers differ")
    columns = (LABEL._replace(heading="samples a second"), *(rate(jobs) for jobs in bounds), same)
    asked: list[Row] = [row for row in rows if row["label"] == "posteriors"]
    said = [
        _bound_sentence(jobs, least, row["by_threads"][jobs] / row["n"])
        for row in asked
        for jobs, least in bounds.items()
    ]
    return [make_grid(rows, columns), *said, f"Tables: {mebibytes(record['table_bytes'])}."]


def _bound_sentence(jobs: str, least: Mapping[str, float], seconds: float) -> str:
    by_bytes, by_work = least["seconds_by_bytes"], least["seconds_by_multiply_adds"]
    return (
        f"{jobs} thread(s): a sample moves at least {least['bytes']:,.0f} bytes at "
        f"{least['bytes_per_s'] / 2**30:,.1f} GiB/s = {by_bytes * 1e6:.2f} us and needs "
        f"{least['multiply_adds']:,.0f} multiply-adds at "
        f"{least['multiply_adds_per_s'] / 1e9:,.1f} G/s = {by_work * 1e6:.2f} us; posteriors take "
        f"{seconds * 1e6:.2f} us: {seconds / by_bytes:.1f} times the bytes, "
        f"{seconds / (by_bytes + by_work):.1f} times both."
    )


# ---- numbers of states ---------------------------------------------------------------------------


class StatesCase(NamedTuple):
    """Random samples and CPTs on a tree with hidden nodes of three children, the lowest of `leaves`
    leaves: codes of `max(k, 4)` categories, or rows with a hundredth of ones."""

    form: str
    k: int
    p: int
    n: int

    @property
    def label(self) -> str:
        """Form and number of states."""
        return f"{self.form}, k = {self.k}"

    def sample(self) -> tuple[TreeModel, Evidence]:
        """The model and the evidence."""
        rng = np.random.default_rng(self.k)
        tree = three_each(self.p, 4 if self.form == "dense" else 8)
        parents = tree.rooted(tree.n_nodes - 1).parents
        d = max(self.k, 4) if self.form == "dense" else 2
        cpts = []
        for v in range(tree.n_nodes):
            width = 1 if parents[v] < 0 else self.k
            if v < self.p and d == 2:
                one = np.minimum(0.01 * np.exp(rng.normal(size=width)), 0.5)
                cpts.append(np.stack([1 - one, one]))
            else:
                cpts.append(rng.dirichlet(np.ones(d if v < self.p else self.k), size=width).T)
        model = TreeModel(tree, tree.n_nodes - 1, tuple(cpts))
        if self.form == "dense":
            return model, Evidence(rng.integers(0, d, size=(self.n, self.p)).astype(np.uint8))
        return model, Evidence(csr_array((rng.random((self.n, self.p)) < 0.01).astype(np.int8)))


def three_each(p: int, leaves: int) -> Tree:
    """A tree of `p` variables; `p / leaves` is a power of 3."""
    level, edges, new, width = list(range(p)), list[tuple[int, int]](), p, leaves
    while len(level) > 1:
        groups = [level[i : i + width] for i in range(0, len(level), width)]
        edges += [(v, new + i) for i, group in enumerate(groups) for v in group]
        level = list(range(new, new + len(groups)))
        new, width = new + len(groups), 3
    return Tree.build([f"x{i}" for i in range(p)], edges, np.ones(len(edges)))


def state_cases(quick: bool) -> list[StatesCase]:
    """All cases, of a second or less each."""
    sizes = {2: (324, 1944, 8000), 3: (324, 1944, 6000), 16: (324, 648, 1500), 64: (108, 216, 600)}
    share = 8 if quick else 1
    return [
        StatesCase(form, k, dense if form == "dense" else sparse, n // share)
        for k, (dense, sparse, n) in sizes.items()
        for form in ("dense", "sparse")
    ]


def measure_states(settings: Settings) -> dict[str, Any]:
    """Three queries to every case on one thread, and the bounds."""
    moving, rate = copy_rate(1), multiply_rate(1, 1024, np.float64)
    rows = []
    for case in state_cases(settings.quick):
        if not settings.wants(case.label):
            continue
        model, evidence = case.sample()
        asked = queries(model, evidence)
        names = ("log-likelihood", "posteriors", "expected counts", "messages")
        best = {
            name: alternate(asked[name], [1], settings.n_seeds(REPEATS, 2))[0] for name in names
        }
        least = least_counts(model, evidence)
        row = {name: seconds[1] / case.n for name, seconds in best.items()} | {"label": case.label}
        row["seconds"] = row["expected counts"]
        rows.append(row | {"bytes": least[0] / moving, "multiply_adds": least[1] / rate})
        settings.say(f"{case.label}: {1e6 * row['expected counts']:,.2f} us for expected counts")
    return {"rows": rows}


def least_counts(model: TreeModel, evidence: Evidence) -> tuple[float, float]:
    """Bytes that must be read, and multiply-adds, for the expected counts of a sample: the codes or
    the ones; of an edge to a touched node `k^2` up, down and for the counts, of a leaf `2 k`."""
    p, k = model.tree.n_observed, int(model.dims[-1])
    if not issparse(evidence.codes):
        return float(p), float(3 * k**2 * (model.tree.n_hidden - 1) + 2 * k * p)
    rows = evidence.codes
    touched = np.zeros((model.tree.n_nodes, rows.shape[0]), dtype=bool)
    touched[:p] = rows.toarray().T != 0
    for v in model.order[:0:-1].tolist():
        touched[model.parents[v]] |= touched[v]
    ones, nodes = rows.nnz / rows.shape[0], touched[p:].sum() / rows.shape[0]
    return 4 * ones, 3 * k**2 * nodes + 2 * k * ones


# ---- pgmpy ---------------------------------------------------------------------------------------


class RandomTrees(NamedTuple):
    """The only case: a tree for each seed."""

    label: str = "trees of 30 nodes"


def measure_pgmpy(settings: Settings) -> dict[str, Any]:
    """All trees; a row for each way to answer."""
    if not installed("pgmpy"):
        settings.say("skipped: pgmpy is not installed; run: pip install pgmpy")
        return {"rows": []}
    cases = [RandomTrees()]
    (found,) = run_cases(
        compare, cases, settings, 10, quick_seeds=2, warm=lambda: _ignore(compare(cases[0], 0))
    )
    runs = found["runs"]
    names = {"ours": f"latenttree, {N_FEW} samples", "many": f"latenttree, {N_MANY:,}",
             "elimination": "pgmpy, elimination", "propagation": "pgmpy, propagation"}  # fmt: skip
    mean = {name: float(np.mean([run["a_sample"][name] for run in runs])) for name in names}
    worst = {name: max(run["difference"][name] for run in runs) for name in runs[0]["difference"]}
    return {
        "rows": [
            {"label": label, "seconds": mean[name], "ratio": mean[name] / mean["ours"]}
            | {"difference": worst.get(name)}
            for name, label in names.items()
        ],
        "runs": runs,
    }


def _ignore(result: Any) -> None:
    """For work whose only purpose is that it was done."""


def compare(case: RandomTrees, seed: int) -> Run:
    """Seconds a sample of each, and the largest difference of a probability to ours."""
    from pgmpy.inference import BeliefPropagation, VariableElimination

    model, evidence = random_problem(seed)
    network, every = to_pgmpy(model), range(N_NODES)
    many = Evidence(np.tile(evidence.codes, (N_MANY // N_FEW, 1)))
    answer, few_seconds = timed(lambda: model.posteriors(evidence, every))
    ours = answer.array
    a_sample = {"ours": few_seconds / N_FEW}
    a_sample["many"] = timed(lambda: model.posteriors(many, every)).seconds / N_MANY
    run: Run = {"a_sample": a_sample, "difference": {}}
    engines = {"elimination": (VariableElimination(network), N_FEW)}
    engines["propagation"] = (BeliefPropagation(network), 1)
    engines["propagation"][0].calibrate()
    for name, (engine, n) in engines.items():
        few = Evidence(evidence.codes[:n])
        theirs, seconds = timed(lambda e=engine, f=few: pgmpy_posteriors(e, model, f))
        a_sample[name] = seconds / n
        run["difference"][name] = float(np.abs(ours[:n] - theirs).max())
    return run


def random_problem(seed: int) -> tuple[TreeModel, Evidence]:
    """A tree of exactly 30 nodes with 2 to 4 states each, and samples with gaps."""
    rng = np.random.default_rng(seed)
    while True:
        tree = random_tree(rng, int(rng.integers(16, 24)), max_degree=5)
        if tree.n_nodes == N_NODES:
            model = model_on(rng, tree, rng.integers(2, 5, size=N_NODES))
            return model, random_evidence(rng, model, N_FEW, 0.33, 0.0)


def pgmpy_posteriors(engine: Any, model: TreeModel, evidence: Evidence) -> NDArray[np.float64]:
    """(n, all states) posteriors node by node; what is known has its own value."""
    names, rows = model.tree.names, []
    for codes in evidence.codes.tolist():
        known = {names[v]: x for v, x in enumerate(codes) if x >= 0}
        row = []
        for v, name in enumerate(names):
            if name in known:
                row.append((np.arange(model.dims[v]) == known[name]).astype(float))
            else:
                row.append(engine.query([name], evidence=known, show_progress=False).values)
        rows.append(np.concatenate(row))
    return np.array(rows)


STATES_COLUMNS = (
    LABEL._replace(heading="microseconds a sample"),
    Column("log-likelihood", lambda row: f"{1e6 * row['log-likelihood']:,.2f}"),
    Column("posteriors", lambda row: f"{1e6 * row['posteriors']:,.2f}"),
    Column("messages", lambda row: f"{1e6 * row['messages']:,.2f}"),
    Column("expected counts", lambda row: f"{1e6 * row['expected counts']:,.2f}"),
    Column("least by bytes", lambda row: f"{1e6 * row['bytes']:,.3f}"),
    Column("least by multiply-adds", lambda row: f"{1e6 * row['multiply_adds']:,.2f}"),
)


PGMPY_COLUMNS = (
    LABEL._replace(heading="method"),
    Column("ms a sample", lambda row: f"{1e3 * row['seconds']:,.4g}"),
    Column("times ours", field("ratio", ",.3g")),
    Column("largest difference", field("difference", ".1e")),
)


TABLES = (
    Table(
        name="inference",
        shows="posteriors, likelihoods and other queries: samples a second, and the lower bound",
        duration="2 min",
        title="Inference: samples a second",
        about=ABOUT,
        measure=measure,
        body=body,
    ),
    Table(
        name="states",
        shows="inference with 2, 3, 16 and 64 states, dense and sparse, and the lower bounds",
        duration="2 min",
        title="Inference by number of states",
        about=ABOUT_STATES,
        measure=measure_states,
        columns=STATES_COLUMNS,
    ),
    Table(
        name="pgmpy",
        shows="posteriors against pgmpy on trees of 30 nodes: the same answers, and the time",
        duration="10 min",
        title="Posteriors on trees of 30 nodes: pgmpy and ours",
        about=ABOUT_PGMPY,
        measure=measure_pgmpy,
        columns=PGMPY_COLUMNS,
    ),
)
