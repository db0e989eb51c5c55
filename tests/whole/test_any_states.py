"""Any number of states with any columns, from the table to a file and back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import latenttree as lt
from latenttree.evaluation.datasets import make_latent_tree

N, P = 300, 8


def drawn(n_states: int = 2, n_categories: int = 2, **options: Any) -> Any:
    settings = {"edge_length": 0.3, "n_samples": N, "random_state": 0} | options
    return make_latent_tree(P, n_states, n_categories, **settings).X


def binary() -> tuple[Any, dict[str, Any]]:
    return drawn(), {}


def few_and_many_categories() -> tuple[Any, dict[str, Any]]:
    """Columns of 2 and of 6 categories in turn."""
    few, many = drawn(), drawn(2, 6)
    return np.where(np.arange(P) % 2 == 0, few, many), {}


def ordinal() -> tuple[Any, dict[str, Any]]:
    """Answers from 1 to 5, which are read as a scale."""
    return pd.DataFrame(drawn(2, 5) + 1, columns=list("abcdefgh")), {}


def gaussian() -> tuple[Any, dict[str, Any]]:
    return drawn(family="gaussian"), {}


def counts() -> tuple[Any, dict[str, Any]]:
    return drawn(family="poisson"), {"family": "poisson"}


def mixed() -> tuple[Any, dict[str, Any]]:
    """Labels, numbers, counts, yes and no."""
    columns = drawn(2, 3, family=("categorical", "gaussian", "poisson"))
    table = pd.DataFrame(columns)
    table["x0"] = table["x0"].map({0: "low", 1: "mid", 2: "high"})
    table["x3"] = table["x3"] > 0
    return table, {"family": {"x2": "poisson", "x5": "poisson"}}


def gaps() -> tuple[Any, dict[str, Any]]:
    return drawn(2, 3, missing=0.15), {}


def weighted() -> tuple[Any, dict[str, Any]]:
    weights = np.random.default_rng(0).gamma(2.0, 0.5, N)
    return drawn(), {"sample_weight": weights}


def sparse_binary() -> tuple[Any, dict[str, Any]]:
    return sparse.csr_array(drawn()), {}


KINDS: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    make.__name__: make
    for make in (
        binary,
        few_and_many_categories,
        ordinal,
        gaussian,
        counts,
        mixed,
        gaps,
        weighted,
        sparse_binary,
    )
}


@pytest.mark.parametrize("n_states", [2, 3, 5])
@pytest.mark.parametrize("kind", KINDS)
def test_any_number_of_states_with_any_columns(kind: str, n_states: int, tmp_path: Path) -> None:
    X, options = KINDS[kind]()
    weights = options.pop("sample_weight", None)
    model = lt.LatentTree(n_states, random_state=0, n_jobs=1, support="model", **options).fit(
        X, sample_weight=weights
    )
    tree, states = model.tree_, model.model_.dims[P:]
    assert tree.n_hidden > 0
    assert states.max() == model.diagnostics_.n_states == n_states
    assert states.min() >= 2
    score = model.score(X)
    assert np.isfinite(score)
    assert np.isfinite(model.score_samples(X)).all()
    assert model.transform(X).shape == (N, states.sum())
    for name, k in zip(tree.hidden_names, states, strict=True):
        found = model.predict_proba(X, name)
        assert found.shape == (N, k)
        np.testing.assert_allclose(found.sum(axis=1), 1, atol=1e-6)
    model.save(tmp_path / "model.ltree")
    again = lt.load(tmp_path / "model.ltree")
    assert again.score(X) == pytest.approx(score, rel=1e-12)
    np.testing.assert_array_equal(again.model_.dims, model.model_.dims)


def test_weights_of_one_sample_in_all_are_refused() -> None:
    """Weights are frequencies: a table of one sample in all has nothing to hold out."""
    X = drawn()
    with pytest.raises(lt.errors.DataError):
        lt.LatentTree(5, random_state=0, n_jobs=1).fit(X, sample_weight=np.full(N, 1 / N))
