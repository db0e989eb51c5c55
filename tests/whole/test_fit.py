"""From a tree and a table to a model: options, diagnostics, odd data, the same bits on threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from tests.reference.stages import fit_tree

import latenttree as lt
from benchmarks.oracle import oracle
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import parameter_error
from latenttree.model.held_out import split_samples
from latenttree.model.samples import marginals
from latenttree.tree import Tree


def learn(X: Any, **options: Any) -> lt.LatentTree:
    return lt.LatentTree(**({"random_state": 0, "n_jobs": 1} | options)).fit(X)


def check(model: lt.LatentTree, X: Any) -> None:
    """Nothing is missing or infinite, and the model answers about its own samples."""
    report, found = model.diagnostics_, model.model_
    for table in found.cpts:
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)
    assert report.condition.shape == report.effective_samples.shape == (model.tree_.n_hidden,)
    assert not np.isnan(report.condition).any()
    assert np.isfinite(report.effective_samples).all()
    trace = np.array(report.log_likelihood_trace)
    assert np.isfinite(trace).all()
    assert (np.diff(trace) >= -1e-11 * np.abs(trace[1:])).all()
    assert np.isfinite(model.score_samples(X)).all()
    q = model.transform(X)
    assert q.shape == (X.shape[0], found.dims[model.tree_.n_observed :].sum())
    assert np.isfinite(q).all()


@pytest.fixture(scope="module")
def data() -> Any:
    return make_latent_tree(9, 3, 6, n_samples=3000, random_state=0)


# ---- options -------------------------------------------------------------------------------


def test_moments_alone_or_refined(data: Any) -> None:
    moments, refined = learn(data.X, n_states=3, refine=None), learn(data.X, n_states=3)
    check(moments, data.X)
    check(refined, data.X)
    assert moments.diagnostics_.log_likelihood_trace == []
    assert moments.diagnostics_.converged
    assert refined.n_iter_ == len(refined.diagnostics_.log_likelihood_trace) - 1
    assert refined.score(data.X) > moments.score(data.X)
    assert refined.tree_.same_topology(data.tree)
    # the oracle counts the hidden states; in six seeds errors were at most 1.20 and 1.13 of its
    best = parameter_error(oracle(data), data)
    assert parameter_error(moments, data) < 2 * best
    assert parameter_error(refined, data) < 1.5 * best


def test_moments_alone_expect_every_category_they_have_seen() -> None:
    """Projection on the simplex makes zeros of rare categories; the model must still answer."""
    few = make_latent_tree(9, 2, 50, n_samples=2000, random_state=0)
    model = learn(few.X, refine=None)
    check(model, few.X)
    assert min(table.min() for table in model.model_.cpts) > 0


def test_without_smoothing_impossible_samples_tell_nothing() -> None:
    few = make_latent_tree(9, 2, 200, n_samples=2000, random_state=0)
    model = learn(few.X, refine=None, smoothing=0.0)
    assert np.isneginf(model.score_samples(few.X)).any()
    assert np.isfinite(model.diagnostics_.effective_samples).all()


def test_steps_run_out(data: Any) -> None:
    model = learn(data.X, n_states=3, max_iter=1, search=False)
    assert len(model.diagnostics_.log_likelihood_trace) == 2
    assert not model.diagnostics_.converged
    assert any("max_iter" in m for m in model.diagnostics_.messages)


def test_held_out_samples_stop_refinement(data: Any) -> None:
    model = learn(data.X, n_states=3, validation_fraction=0.3, search=False)
    report = model.diagnostics_
    check(model, data.X)
    assert report.converged
    assert len(report.held_out_trace) >= 2
    assert not any("max_iter" in m for m in report.messages)


def test_the_start_has_not_seen_held_out_samples() -> None:
    """Of many categories and few samples: a start from all samples would look best, by overfit."""
    n_gain = 0
    for seed in range(5):
        few = make_latent_tree(9, 2, 30, n_samples=1500, random_state=seed)
        found = fit_tree(few.tree, as_table(few.X), 2, validation_fraction=0.3)
        n_gain += int(np.argmax(found.held_out) > 0)
    # in 37 of 40 other seeds there was a gain: two or fewer of five have probability 0.4%
    assert n_gain >= 3


# ---- the same from every container and on threads --------------------------------------------


def test_threads_give_the_same_bits(data: Any) -> None:
    one, two = (learn(data.X, n_states=3, n_jobs=n) for n in (1, 2))
    for x, y in zip(one.model_.cpts, two.model_.cpts, strict=True):
        np.testing.assert_array_equal(x, y)
    for name in ("condition", "effective_samples", "log_likelihood_trace"):
        np.testing.assert_array_equal(
            getattr(one.diagnostics_, name), getattr(two.diagnostics_, name)
        )


@pytest.mark.parametrize("form", ["frame", "strings", "blocks", "sparse blocks"])
def test_containers_give_the_same_model(form: str, data: Any) -> None:
    names = [f"x{i}" for i in range(9)]
    forms = {
        "frame": lambda: pd.DataFrame(data.X, columns=names).astype("category"),
        "strings": lambda: pd.DataFrame(np.array(list("abcdef"))[data.X], columns=names),
        "blocks": lambda: [np.eye(6)[data.X[:, i]] for i in range(9)],
        "sparse blocks": lambda: [sparse.csr_array(np.eye(6)[data.X[:, i]]) for i in range(9)],
    }
    options: dict[str, Any] = {"n_states": 3, "search": False}
    expected, found = learn(data.X, **options), learn(forms[form](), **options)
    assert found.tree_.same_topology(expected.tree_)
    assert parameter_error(found, data) == pytest.approx(parameter_error(expected, data), rel=0.02)


@pytest.mark.parametrize("form", ["bool", "sparse", "frame"])
def test_two_categories_in_any_form(form: str) -> None:
    binary = make_latent_tree(9, 2, n_samples=4000, edge_length=0.3, random_state=0)
    X = {
        "bool": binary.X.astype(bool),
        "sparse": sparse.csr_array(binary.X.astype(float)),
        "frame": pd.DataFrame(binary.X.astype(bool), columns=binary.tree.observed_names),
    }[form]
    model = learn(X)
    check(model, X)
    for x, y in zip(model.model_.cpts, learn(binary.X).model_.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-3)


def test_more_states_than_categories() -> None:
    data = make_latent_tree(9, 2, n_samples=1000, edge_length=0.3, random_state=0)
    model = learn(sparse.csr_array(data.X.astype(float)), n_states=3)
    assert model.model_.dims[9:].max() == 3
    assert np.isfinite(model.score(sparse.csr_array(data.X.astype(float))))


def test_two_blocks_of_numbers_have_a_tree_and_no_model(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (4000, 1))
    blocks = [hidden + rng.normal(size=(4000, 3)) for _ in range(2)]
    model = learn(blocks)
    assert model.tree_.n_hidden == 0
    assert not hasattr(model, "model_")
    assert any("no hidden variable and no model" in m for m in model.diagnostics_.messages)
    for ask in (model.transform, model.predict, model.score, model.score_samples):
        with pytest.raises(DataError, match="no probabilities"):
            ask(blocks)
    with pytest.raises(DataError, match="no probabilities"):
        model.save(tmp_path / "m.ltree")


# ---- odd data --------------------------------------------------------------------------------


@pytest.mark.parametrize("n_vars", [1, 2, 3])
@pytest.mark.parametrize("d", [2, 6])
def test_few_variables(n_vars: int, d: int) -> None:
    few = make_latent_tree(3, 2, d, n_samples=2000, edge_length=0.4, random_state=0)
    X = few.X[:, :n_vars]
    model = learn(X)
    check(model, X)
    assert model.tree_.n_hidden == (n_vars == 3)
    for i in range(n_vars):
        frequency = np.bincount(X[:, i], minlength=d) / 2000
        np.testing.assert_allclose(model.marginal(i), frequency, atol=1e-2)
    if n_vars == 2:
        joint = np.zeros((d, d))
        np.add.at(joint, (X[:, 0], X[:, 1]), 1 / 2000)
        np.testing.assert_allclose(model.model_.joint(0, 1), joint, atol=1e-2)


@pytest.mark.parametrize("refine", ["em", None])
def test_independent_columns(refine: Any) -> None:
    X = np.random.default_rng(0).integers(0, 2, size=(1000, 7))
    model = learn(X, refine=refine)
    check(model, X)
    # no better than seven coins by more than what its parameters fit of the noise; moments divide
    # by correlations that are noise, and are a little worse
    coins = 7 * np.log(0.5)
    least = coins - (0.01 if refine else 0.2)
    assert least < model.score(X) < coins + model.model_.n_parameters / 1000


@pytest.mark.parametrize("refine", ["em", None])
def test_a_copied_column(refine: Any, data: Any) -> None:
    X = np.hstack([data.X, data.X[:, :1]])
    model = learn(X, n_states=3, refine=refine)
    check(model, X)
    both = model.predict_proba({"x0": 2}, query="x9")
    assert both[0, 2] > 0.9


def test_copies_hang_from_each_other(data: Any) -> None:
    """A copy on its original, as structure learning leaves it."""
    X = np.hstack([data.X[:, :3], data.X[:, :2]])
    edges = [(0, 5), (1, 5), (2, 5), (0, 3), (1, 4)]
    tree = Tree.build([f"x{i}" for i in range(5)], edges, [0.5, 0.5, 0.5, 0.0, 0.0])
    for refine in (True, False):
        found = fit_tree(tree, as_table(X), 3, refine="em" if refine else None)
        table = found.model.conditional(3, 0)
        assert (np.diag(table) > 0.98).all()
        assert np.isfinite(found.effective_samples).all()


def test_rare_words() -> None:
    """2,000 words, most of them in a handful of texts: no NaN anywhere."""
    rng = np.random.default_rng(0)
    p, n, n_topics = 2000, 600, 10
    base = 0.5 / np.arange(1, p + 1) ** 0.7
    strong = np.where(rng.integers(0, n_topics, p) == np.arange(n_topics)[:, None], 6, 0.5)
    X = rng.random((n, p)) < np.minimum(base * strong, 0.9)[rng.integers(0, n_topics, n)]
    X[rng.integers(0, n, p), np.arange(p)] = True  # every word occurs
    words = sparse.csr_array(X.astype(np.float32))
    assert np.median(X.sum(axis=0)) < 10
    for X, refine in ((words, "em"), (words[:, 300:900], None)):
        model = learn(X, refine=refine, max_iter=4, sweeps=False, search=False, n_jobs=2)
        check(model, X)


def test_a_column_that_is_constant_among_the_samples_to_learn_from() -> None:
    """A category that only held-out samples have keeps a positive probability."""
    truth = make_latent_tree(6, 2, 3, n_samples=500, random_state=0)
    X = truth.X.copy()
    table = as_table(X)
    held = split_samples(table, FitConfig(validation_fraction=0.2))[1]
    assert held is not None
    where = np.flatnonzero(held.keep)  # type: ignore[arg-type]
    X[:, 0] = 0
    X[where[:3], 0] = 1
    found = fit_tree(truth.tree, as_table(X), 2, validation_fraction=0.2)
    assert np.isfinite(found.held_out).all()
    assert found.model.marginals[0][1] > 0
    for t in found.model.cpts:
        assert np.isfinite(t).all()


def test_unseen_combinations_are_possible(data: Any) -> None:
    model = learn(data.X, n_states=3, search=False)
    mixed = np.stack([np.random.default_rng(i).permutation(data.X[:, i]) for i in range(9)], axis=1)
    assert np.isfinite(model.score_samples(mixed)).all()
    assert (model.predict_proba(mixed, query="x0") > 0).all()


def test_a_tree_of_ten_samples() -> None:
    tiny = make_latent_tree(6, 2, n_samples=10, edge_length=0.2, random_state=3)
    X = tiny.X[:, (tiny.X[0] != tiny.X).any(axis=0)]
    for refine in ("em", None):
        for fraction in (0.0, 0.2):
            check(learn(X, refine=refine, validation_fraction=fraction), X)


def test_frequencies_of_the_model_are_those_of_the_data(data: Any) -> None:
    """At the optimum the expected counts of a leaf are its counts, up to the pseudo-samples."""
    model = learn(data.X, n_states=3, tol=1e-12, max_iter=500, search=False)
    for i, frequency in enumerate(marginals(as_table(data.X))):
        np.testing.assert_allclose(model.marginal(i), frequency, atol=2e-3)
