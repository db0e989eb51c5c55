"""Rivals: their adapters, what they are judged by, and contests within limits."""

from __future__ import annotations

import operator
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.mutual_information import mutual_information as slow_information
from tests.reference.random_trees import random_tree

from benchmarks import contest
from benchmarks.contest import Contest, Limit, Outcome, bic, run_contests
from benchmarks.data.corpora import Documents, as_sparse_binary
from benchmarks.data.halves import Known, Simulated, layers_of
from benchmarks.data.simulated import Balanced
from benchmarks.judging import judged
from benchmarks.limits import Exceeded, Failed, at_most, within_limits
from benchmarks.rivals import (
    Answer,
    Rival,
    Task,
    likelihoods,
    measurable,
    named,
    rival,
    rivals,
    versions,
)
from benchmarks.rivals.binary import is_binary, ones
from benchmarks.rivals.counted import counted, mutual_information
from benchmarks.rivals.hierarchies import from_groups, from_layers
from benchmarks.settings import Settings
from latenttree.data import Table, as_table
from latenttree.errors import DataError
from latenttree.evaluation.baselines import best_contraction, clrg, neighbor_joining
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.tree import Tree


@pytest.fixture(scope="module")
def known() -> Any:
    """Nine variables in three families, strong edges."""
    return make_latent_tree(9, 2, 3, n_samples=1_500, edge_length=0.3, random_state=1)


def words(n: int = 400, p: int = 12) -> Table:
    rng = np.random.default_rng(0)
    topics = rng.random((n, 3)) < 0.4
    found = rng.random((n, p)) < np.repeat(np.where(topics, 0.8, 0.05), p // 3, axis=1)
    return as_sparse_binary(sparse.csr_array(found), [f"w{i}" for i in range(p)])


def mixed() -> Table:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 4, 300)
    return as_table(
        np.column_stack([a, (a > 1) ^ (rng.random(300) < 0.2), rng.integers(0, 3, 300)])
    )


# ---- adapters ------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in rivals() if name != "tomotopy hLDA"])
def test_adapters_answer_or_say_what_is_missing(name: str, known: Any) -> None:
    found = named(name)
    if not found.available():
        with pytest.raises(DataError, match=f"pip install {found.install}"):
            rival(name)
        return
    table = as_table(known.X, names=list(known.tree.observed_names))
    task = Task(table, 2, 0, 1, known.tree, layers_of(known.tree), seconds=0.5)
    assert found.suits(task) is ("CorEx" not in name)  # three categories
    if not found.suits(task):
        return
    answer = found.fit(task)
    scores = judged(answer, Known(known.tree, known.model))
    if answer.tree is not None:
        assert answer.tree.observed_names == table.names
    if answer.tree is not None and answer.tree.n_hidden:
        assert scores["rand"] == 1.0  # correlations of 0.74 in 1,500 samples leave no doubt
    if answer.log_likelihood is not None:
        values = answer.log_likelihood(table)
        assert values.shape == (1_500,)
        assert np.isfinite(values).all()
        assert answer.n_parameters is not None
    if not found.needs and name != "independent":
        assert answer.tree is not None


@pytest.mark.parametrize("name", ["tomotopy hLDA", "linear CorEx", "CorEx topic"])
def test_adapters_of_words(name: str) -> None:
    found = named(name)
    if not found.available():
        pytest.skip(f"{found.install} is not installed")
    task = Task(words(), layers=(3, 1), seconds=2.0)
    answer = found.fit(task)
    assert answer.groups is not None
    assert answer.tree is not None
    if "CorEx" in name:  # words of a topic are in the same documents, and the sizes are given
        assert len(set(zip(answer.groups, np.repeat(range(3), 4).tolist(), strict=True))) == 3


def test_versions_of_what_is_installed() -> None:
    found = versions()
    assert {"scikit-learn", "pgmpy", "scikit-bio", "linearcorex", "tomotopy"} <= found.keys()
    assert found["scikit-learn"] is not None


def test_some_rivals_do_not_suit() -> None:
    assert not named("tomotopy hLDA").suits(Task(mixed(), layers=(2, 1)))
    assert not named("pgmpy EM").suits(Task(mixed()))
    assert not named("linear CorEx").suits(Task(words()))


def test_distances_that_cannot_be_measured_are_the_largest() -> None:
    truth = random_tree(np.random.default_rng(0), 12, max_degree=4, length_range=(0.5, 1.0))
    distances = truth.path_lengths()
    largest = np.unravel_index(distances.argmax(), distances.shape)
    distances[largest] = distances[largest[::-1]] = np.nan
    distances[0, 0] = -0.1
    known = measurable(distances)
    assert known[largest] == known[largest[::-1]] == np.nanmax(distances)
    assert known[0, 0] == 0.0
    for tree in (
        clrg(known, 1_000, truth.observed_names),
        best_contraction(neighbor_joining(known, truth.observed_names), truth)[0],
    ):
        assert tree.observed_names == truth.observed_names


# ---- counting ------------------------------------------------------------------------------------


@pytest.mark.parametrize("table", [words(), mixed()], ids=["sparse_binary", "codes"])
def test_information_is_that_of_the_definition(table: Table) -> None:
    codes = table.chunk(0, table.n_samples).codes.astype(np.int64)
    # sums of some dozen logarithms in another order
    np.testing.assert_allclose(mutual_information(table), slow_information(codes), atol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("table", [words(), mixed()], ids=["sparse_binary", "codes"])
def test_chow_liu_counts_along_the_edges_of_most_information(table: Table) -> None:
    answer = named("Chow-Liu").fit(Task(table))
    assert answer.tree is not None
    assert answer.log_likelihood is not None
    information = slow_information(table.chunk(0, table.n_samples).codes.astype(np.int64))
    total = sum(information[a, b] for a, b in answer.tree.edges.tolist())
    entropies = np.diag(information).sum()
    # the likelihood of a Chow-Liu tree without pseudo-samples: information less entropies; one
    # pseudo-sample for each column costs less than 1% here
    mean = answer.log_likelihood(table).mean()
    assert mean == pytest.approx(total - entropies, rel=0.01)
    assert mean <= total - entropies
    for other in (answer.tree.edges[::-1], np.array([(0, v) for v in range(1, table.n_vars)])):
        assert sum(information[a, b] for a, b in other.tolist()) <= total + 1e-12


def test_counted_tables_by_hand() -> None:
    table = as_table(np.array([[0, 0], [0, 0], [0, 1], [1, 1]]), names=["a", "b"])
    model = counted(Tree.build("ab", np.array([(0, 1)]), np.ones(1)), table)
    v = 1 if model.root == 0 else 0
    # of the root's 0: counts of the other plus one pseudo-sample at its marginal
    expected = {1: np.array([2 + 0.5, 1 + 0.5]) / 4, 0: np.array([2 + 0.75, 0.25]) / 3}[v]
    np.testing.assert_allclose(model.cpts[v][:, 0], expected, rtol=1e-12)
    assert np.exp(likelihoods(model, table)).max() < 1


@pytest.mark.parametrize("table", [words(), mixed()], ids=["sparse_binary", "codes"])
def test_independent_variables_by_hand(table: Table) -> None:
    answer = named("independent").fit(Task(table))
    assert answer.log_likelihood is not None
    codes = table.chunk(0, table.n_samples).codes
    logs = 0.0
    for v, d in enumerate(table.dims.tolist()):
        counts = np.bincount(codes[:, v], minlength=d)
        logs += np.log((counts[codes[0, v]] + 0.5) / (len(codes) + 0.5 * d))
    assert answer.log_likelihood(table)[0] == pytest.approx(logs, rel=1e-6)  # float32 matrix
    assert answer.n_parameters == int((table.dims - 1).sum())


def test_binary_variables_as_ones() -> None:
    table = as_table(np.array([[0, 5], [1, 3], [0, 5]]))
    assert is_binary(table)
    assert ones(table).toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert not is_binary(mixed())


# ---- trees of groups -----------------------------------------------------------------------------


def test_layers_of_a_balanced_tree() -> None:
    assert layers_of(make_latent_tree(27, 2, 2, n_samples=1, random_state=0).tree) == (9, 3, 1)
    assert layers_of(from_groups("abcd", [])) == (1,)


def test_layers_are_nested_groups() -> None:
    tree = from_layers("abcdefgh", [[0, 0, 1, 1, 2, 2, 3, 3], [0, 0, 1, 1]])
    expected = from_groups("abcdefgh", ["ab", "cd", "ef", "gh", "abcd", "efgh"])
    assert tree.splits().tolist() == expected.splits().tolist()


# ---- judged --------------------------------------------------------------------------------------


def test_the_truth_is_judged_perfect_and_a_binary_tree_by_its_best_cut(known: Any) -> None:
    truth = Known(known.tree, known.model)
    groups = np.repeat(range(3), 3).tolist()
    assert judged(Answer(known.tree), truth) == {"rf": 0, "rf_best": 0, "found": 1, "rand": 1}
    joined = named("neighbour joining").fit(Task(as_table(known.X)))
    scores = judged(joined, truth)
    assert scores["rf"] > 0  # three families of three: a binary tree has splits of its own
    assert scores["rf_best"] == 0
    assert scores["found"] == 1
    alone = judged(Answer(groups=tuple(groups)), truth)
    assert alone["rf"] is None
    assert -1 <= alone["rand"] <= 1
    assert set(judged(Answer(known.tree), None).values()) == {None}


def test_bic_by_hand() -> None:
    assert bic(-10.0, 3, 100) == pytest.approx(20 + 3 * np.log(100))
    assert bic(None, 3, 100) is None


# ---- documents -----------------------------------------------------------------------------------


def test_words_are_chosen_by_the_documents_to_learn_from(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    counts = rng.poisson(np.linspace(0.02, 1.0, 20), (200, 20))
    sparse.save_npz(tmp_path / "counts.npz", sparse.csr_matrix(counts))
    (tmp_path / "vocab.txt").write_text("\n".join(f"w{i}" for i in range(20)) + "\n")
    data = Documents(tmp_path / "counts.npz", top=8)
    folder = tmp_path / "drawn"
    folder.mkdir()
    data.draw(folder, 0)
    train, test = data.load(folder)
    assert (train.n_samples, test.n_samples) == (180, 20)
    assert train.names == test.names
    support = (train.chunk(0, 180).codes > 0).sum(axis=0)
    assert (np.diff(support) <= 0).all()  # most frequent first
    assert support.min() >= 2
    again = tmp_path / "again"
    again.mkdir()
    data.draw(again, 0)
    assert (data.load(again)[1].matrix != test.matrix).nnz == 0


# ---- limits --------------------------------------------------------------------------------------


def test_work_within_limits() -> None:
    assert within_limits(operator.add, 2, 3, seconds=60) == 5
    with pytest.raises(Failed, match="ZeroDivisionError"):
        within_limits(operator.truediv, 1, 0, seconds=60)
    start = time.perf_counter()
    with pytest.raises(Exceeded) as error:
        within_limits(time.sleep, 60, seconds=0.5)
    assert error.value.reason == "time"
    assert time.perf_counter() - start < 30


def slow_part(seconds: float) -> str:
    with at_most(seconds):
        time.sleep(0.3)
    return "done"


@pytest.mark.slow
def test_a_part_of_the_work_has_its_own_limit() -> None:
    assert slow_part(0.01) == "done"  # only processes of `within_limits` are ended
    assert within_limits(slow_part, 60.0, seconds=60) == "done"
    with pytest.raises(Exceeded) as error:
        within_limits(slow_part, 0.05, seconds=60)
    assert error.value.reason == "time"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_work_that_takes_too_much_memory_is_ended() -> None:
    with pytest.raises(Exceeded) as error:
        within_limits(time.sleep, 60, seconds=60, memory=2**20)  # less than an interpreter
    assert error.value.reason == "memory"
    assert error.value.peak_bytes > 2**20


# ---- contests ------------------------------------------------------------------------------------


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contest, "in_fresh_process", lambda work, *a: work(*a))
    monkeypatch.setattr(contest, "warm_up", lambda: None)


@pytest.mark.usefixtures("here")
def test_who_ran_out_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[tuple[str, str]] = []

    def attempt(contest: Contest, name: str, *_: Any) -> Outcome:
        tried.append((contest.label, name))
        state = "time" if name == "CLRG" else "done"
        values = {"seconds": 1.0, "peak_bytes": 5, "more": {}, "n_samples": 9, "n_held_out": 1,
                  "n_vars": 3}  # fmt: skip
        return Outcome(state, "ran out of 3 s" if state == "time" else "", values)

    monkeypatch.setattr(contest, "attempt", attempt)
    data = Simulated(Balanced(9, 2, 60, 2), 20)
    both = [Contest(label, data, 2, ("Chow-Liu", "CLRG"), "one") for label in ("small", "large")]
    rows = run_contests([*both, Contest("other", data, 2, ("CLRG",), "two")], Settings(), Limit(3))
    assert ("large", "CLRG") not in tried
    assert ("other", "CLRG") in tried
    assert [row["state"] for row in rows] == ["done", "time", "done", "not tried", "time"]
    assert rows[3]["failure"] == "not tried: ran out of 3 s at small"
    assert rows[1]["seconds"] is None


@pytest.mark.usefixtures("here")
def test_a_rival_that_fails_says_why_and_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(work: Any, contest: Contest, name: str, *rest: Any, **_: Any) -> Any:
        if name == "CLRG":
            raise Failed("ValueError: no")
        return work(contest, name, *rest)

    monkeypatch.setattr(contest, "within_limits", refuse)
    data = Simulated(Balanced(9, 2, 400, 2), 100)
    work = Contest("small", data, 2, ("CLRG", "independent", "tomotopy hLDA"))
    monkeypatch.setattr(Rival, "available", lambda _: True)
    rows = run_contests([work], Settings(), Limit(60))
    assert [row["failure"] for row in rows] == ["ValueError: no", None]  # and hLDA is for words
    assert rows[1]["gain"] < 0  # independent variables are worse than the truth
    assert rows[1]["n_held_out"] == 100
