"""`diagnose`: numbers come from the results of the stages, and sentences say what they mean."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

import latenttree as lt
from latenttree.data import as_table
from latenttree.distances.stage import Measured, States
from latenttree.errors import Option, Text
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.refinement.fitted import Fitted
from latenttree.report import Diagnostics, diagnose
from latenttree.search.stage import Learned
from latenttree.structure.learn import Structure


@pytest.fixture(scope="module")
def truth() -> Any:
    return make_latent_tree(9, 2, 2, n_samples=200, random_state=0)


def report_on(truth: Any, structure: Structure | None = None, **fitted: Any) -> Diagnostics:
    """The report of a fit whose result is the truth, but for what is given."""
    structure = structure or Structure.of_tree(truth.tree)
    m = truth.tree.n_hidden
    usual: dict[str, Any] = {"condition": np.ones(m), "effective_samples": np.ones(m)}
    learned = Learned(structure, Fitted(truth.model, **(usual | fitted)))
    return diagnose(as_table(truth.X), States(2, 1), Measured(), learned, {"a": 1.0})


def test_numbers_are_those_of_the_stages(truth: Any) -> None:
    report = report_on(truth, trace=[-3.0, -2.0], held_out=[-1.0])
    assert report.n_states == 2
    assert report.n_pairs == 36
    assert report.log_likelihood_trace == [-3.0, -2.0]
    assert report.held_out_trace == [-1.0]
    assert report.hidden_states.tolist() == [2] * truth.tree.n_hidden
    assert report.stage_seconds == {"a": 1.0}
    assert report.messages == []


def test_a_fit_that_did_not_converge_names_the_option(truth: Any) -> None:
    with pytest.warns(ConvergenceWarning, match="after 1 steps"):
        report = report_on(truth, trace=[-3.0, -2.0], converged=False)
    (message,) = report.messages
    assert isinstance(message, Text)
    assert Option("max_iter") in message.parts


def test_passes_in_batches_that_end_early_are_a_note_alone(truth: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = report_on(truth, trace=[-2.0], held_out=[-3.0, -2.5], converged=False)
    assert report.messages == [
        "the likelihood of held-out samples was still rising after 2 passes in batches"
    ]


def test_parts_and_copies(truth: Any) -> None:
    structure = Structure.of_tree(truth.tree)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one = report_on(truth, replace(structure, n_components=2, n_duplicates=1))
        two = report_on(truth, replace(structure, n_duplicates=2))
    assert "2 parts without dependence" in one.messages[0]
    assert one.messages[1].startswith("1 variable copies")
    assert two.messages[0].startswith("2 variables copy")


@pytest.mark.parametrize(
    ("n_alone", "end"),
    [
        (1, "have support 0; variable x0 depends on no other"),
        (2, "have support 0; variables x0 and x1 depend on no other"),
        (12, "x8, x9 and 2 others depend on no other"),
    ],
)
def test_independent_variables_are_named(n_alone: int, end: str) -> None:
    """A star whose first leaves hang by edges of support 0."""
    p = n_alone + 3
    names = [f"x{i}" for i in range(p)]
    tree = lt.Tree.build(names, [(i, p) for i in range(p)], np.ones(p))
    support = (tree.edges.min(axis=1) >= n_alone).astype(float)
    structure = replace(Structure.of_tree(tree), support=support, n_components=n_alone + 1)
    table = as_table(np.random.default_rng(0).integers(0, 2, (50, p)))
    report = diagnose(table, States(2, 1), Measured(), Learned(structure), {})
    assert report.independent == names[:n_alone]
    assert report.messages[0].startswith(f"the data show {n_alone + 1} parts without dependence")
    assert report.messages[0].endswith(end)


def test_text_names_states_and_support() -> None:
    report = Diagnostics(16, hidden_states=np.array([4, 16, 9]), n_resamples=25)
    report.support_method = "subsample"
    text = str(report)
    assert text.startswith("4 to 16 states; ")
    what = "chance to come back in other samples, by 25 trees of random thirds"
    assert f"support of an edge: {what}" in text
    report.support_method = "none"
    assert "support of an edge" not in str(report)


def test_fewer_states_than_asked_for(truth: Any) -> None:
    m = truth.tree.n_hidden
    fitted = Fitted(truth.model, condition=np.ones(m), effective_samples=np.ones(m))
    learned = Learned(Structure.of_tree(truth.tree), fitted)
    for goal, expected in ((16, 1), (2, 0), ("auto", 0), (None, 0)):
        states = States(2, 1, goal=goal)  # type: ignore[arg-type]
        report = diagnose(as_table(truth.X), states, Measured(), learned, {})
        assert len(report.messages) == expected
    report = diagnose(as_table(truth.X), States(2, 1, goal=16), Measured(), learned, {})
    assert report.messages[0].startswith("hidden variables have 2 states, fewer than n_states=16")


@pytest.mark.parametrize(("share", "named"), [(0.9, True), (0.1, False)])
def test_the_narrowest_variable_is_named_where_it_is_the_reason(share: float, named: bool) -> None:
    """Two directions of a ternary table with one binary column; the second may be noise."""
    X = np.random.default_rng(0).integers(0, 3, (60, 4))
    X[:, 3] %= 2
    structure = Structure.of_tree(lt.Tree.build(list("abcd"), [(0, 1), (1, 2), (2, 3)], np.ones(3)))
    states = States(2, 1, 3, np.array([[0.5, 1.0], [0.3, share]]), "auto")
    table = as_table(pd.DataFrame(X, columns=list("abcd")), family="categorical")
    report = diagnose(table, states, Measured(), Learned(structure), {})
    assert any("variable 'd' can distinguish" in m for m in report.messages) == named


def test_ill_conditioned_moments(truth: Any) -> None:
    condition = np.ones(truth.tree.n_hidden)
    condition[0] = 1e6
    (message,) = report_on(truth, condition=condition).messages
    assert f"1 of {truth.tree.n_hidden} hidden nodes are ill-conditioned" in message


def test_no_model() -> None:
    table = as_table(pd.DataFrame({"a": [0.5, 1.5, 2.5], "b": [0.1, 0.7, 0.3]}))
    structure = Structure.of_tree(lt.Tree.build(["a", "b"], [(0, 1)], np.ones(1)))
    report = diagnose(table, States(2, 1), Measured(), Learned(structure), {})
    assert "no model" in report.messages[0]
    assert report.n_pairs == 1


def test_a_dropped_column_is_named() -> None:
    X = pd.DataFrame({"a": [0, 1] * 10, "b": [0, 0, 1, 1] * 5, "c": [1] * 20})
    table = as_table(X, drop_constant=True)
    structure = Structure.of_tree(lt.Tree.build(["a", "b"], [(0, 1)], np.ones(1)))
    report = diagnose(table, States(2, 1), Measured(), Learned(structure), {})
    assert any("c" in message and "left out" in message for message in report.messages)
