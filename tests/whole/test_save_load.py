"""A fitted estimator in a file: the same answers, parameters and diagnostics when it is back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import latenttree as lt
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree

DATA = make_latent_tree(9, 2, 4, n_samples=1500, random_state=0)
NAMES = [f"v{i}" for i in range(9)]


def table(form: str) -> Any:
    return {
        "codes": lambda: DATA.X,
        "frame": lambda: pd.DataFrame(np.array(list("wxyz"))[DATA.X], columns=NAMES),
        "sparse": lambda: sparse.csr_array((DATA.X > 1).astype(float)),
        "bool": lambda: DATA.X > 1,
        "blocks": lambda: [np.eye(4)[DATA.X[:, i]] for i in range(9)],
    }[form]()


def learn(X: Any, **options: Any) -> lt.LatentTree:
    return lt.LatentTree(**({"random_state": 0, "n_jobs": 1, "search": False} | options)).fit(X)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "model.ltree"


@pytest.mark.parametrize("form", ["codes", "frame", "sparse", "bool", "blocks"])
def test_the_same_answers_to_the_bit(form: str, path: Path) -> None:
    X = table(form)
    model = learn(X)
    model.save(path)
    back = lt.load(path)
    for x, y in zip(model.model_.cpts, back.model_.cpts, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(model.transform(X), back.transform(X))
    np.testing.assert_array_equal(model.predict(X), back.predict(X))
    np.testing.assert_array_equal(model.score_samples(X), back.score_samples(X))
    assert model.bic(X) == back.bic(X)
    drawn, again = model.sample(20, random_state=1), back.sample(20, random_state=1)
    np.testing.assert_array_equal(drawn[1], again[1])
    assert type(drawn[0]) is type(again[0])


def test_the_tree_and_the_names_come_back(path: Path) -> None:
    X = table("frame")
    model = learn(X)
    model.save(path)
    back = lt.load(path)
    assert back.tree_.names == model.tree_.names
    np.testing.assert_array_equal(back.tree_.edges, model.tree_.edges)
    np.testing.assert_array_equal(back.tree_.lengths, model.tree_.lengths)
    assert back.to_newick() == model.to_newick()
    assert back.feature_names_in_.tolist() == NAMES
    assert back.n_features_in_ == 9
    assert back.classes_of("v3").tolist() == list("wxyz")
    np.testing.assert_array_equal(back.get_feature_names_out(), model.get_feature_names_out())
    turned = X[NAMES[::-1]]
    np.testing.assert_array_equal(back.transform(turned), model.transform(X))


def test_parameters_and_clones(path: Path) -> None:
    model = learn(DATA.X, max_iter=7, smoothing=0.5, min_support=0.6)
    model.save(path)
    back = lt.load(path)
    assert back.get_params() == model.get_params()
    fresh = clone(back)
    assert fresh.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        fresh.transform(DATA.X)
    refit = fresh.fit(DATA.X)
    for x, y in zip(refit.model_.cpts, model.model_.cpts, strict=True):
        np.testing.assert_array_equal(x, y)


def test_diagnostics_come_back(path: Path) -> None:
    model = learn(DATA.X, validation_fraction=0.2)
    model.save(path)
    one, two = model.diagnostics_, lt.load(path).diagnostics_
    for name in ("support", "condition", "effective_samples", "standard_errors", "group_sizes"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name), err_msg=name)
    assert two.log_likelihood_trace == one.log_likelihood_trace
    assert two.held_out_trace == one.held_out_trace
    for name in ("n_states", "converged", "n_components", "messages", "n_pairs", "stage_seconds"):
        assert getattr(two, name) == getattr(one, name), name
    assert str(one) == str(two)


def test_a_second_round_is_the_same_file(path: Path, tmp_path: Path) -> None:
    learn(DATA.X).save(path)
    lt.load(path).save(tmp_path / "again.ltree")
    assert path.read_bytes() == (tmp_path / "again.ltree").read_bytes()


@pytest.mark.parametrize("n_vars", [1, 2])
def test_models_without_hidden_nodes(n_vars: int, path: Path) -> None:
    X = DATA.X[:, :n_vars]
    model = learn(X)
    model.save(path)
    np.testing.assert_array_equal(lt.load(path).score_samples(X), model.score_samples(X))


def test_a_random_state_that_json_cannot_hold(path: Path) -> None:
    model = learn(DATA.X, random_state=np.random.RandomState(0))
    model.save(path)
    np.testing.assert_array_equal(lt.load(path).transform(DATA.X), model.transform(DATA.X))


def test_nothing_to_save_before_fit(path: Path) -> None:
    with pytest.raises(NotFittedError):
        lt.LatentTree().save(path)
    assert not path.exists()


def test_no_file(path: Path) -> None:
    with pytest.raises((DataError, FileNotFoundError)):
        lt.load(path)


def test_loading_answers_bad_questions_like_the_original(path: Path) -> None:
    X = table("frame")
    learn(X).save(path)
    back = lt.load(path)
    with pytest.raises(DataError, match="v0"):
        back.transform(X.drop(columns="v0"))
    with pytest.raises(DataError):
        back.transform(X.to_numpy()[:, :5])
