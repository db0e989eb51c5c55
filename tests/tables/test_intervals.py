"""Intervals cover the true values as often as they say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree.errors import DataError

STAR = "(a,b,c,d,e,f)h;"


def star_data(seed: int, n: int = 1000) -> tuple[Any, np.ndarray]:
    """0/1 columns of one hidden state, and the chance of a one in each state."""
    chances = np.array([[0.2, 0.8], [0.1, 0.6], [0.3, 0.9], [0.7, 0.2], [0.5, 0.9], [0.2, 0.7]])
    rng = np.random.default_rng(seed)
    state = rng.random(n) < 0.4
    X = rng.random((n, 6)) < chances[:, state.astype(int)].T
    return X.astype(int), chances


def fitted(X: Any, **options: Any) -> lt.LatentTree:
    names = list("abcdef")
    return lt.LatentTree(2, structure=STAR, names=names, random_state=0, **options).fit(X)


@pytest.mark.slow
def test_intervals_of_probabilities_cover_in_95_of_100_data_sets() -> None:
    hits = []
    for seed in range(60):
        X, chances = star_data(seed)
        model = fitted(X)
        for j, name in enumerate("abc"):
            table = model.intervals(name, "h", X, n_resamples=100)
            truth = np.array([1 - chances[j], chances[j]]).ravel()
            hits.append((table["lower"] <= truth) & (truth <= table["upper"]))
    share = np.mean(hits)
    # 180 pairs of intervals, those of one data set dependent: 60 independent ones have a
    # standard error of .028, and the true coverage of 100 resamples is somewhat below .95
    assert 0.88 < share < 0.99


@pytest.mark.slow
def test_intervals_of_slopes_of_a_gaussian_tree_cover() -> None:
    loading = np.array([0.9, 0.8, 0.7, 0.6])
    hits = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        h = rng.normal(size=400)
        X = loading * h[:, None] + np.sqrt(1 - loading**2) * rng.normal(size=(400, 4))
        model = lt.LatentTree(
            hidden="gaussian", structure="(a,b,c,d)h;", names=list("abcd"), random_state=0
        ).fit(X)
        table = model.intervals("b", "a", X, n_resamples=100)
        truth = 0.72
        hits.append((table["lower"] <= truth) & (truth <= table["upper"]))
    assert 0.86 < np.mean(hits) <= 1.0


def test_intervals_are_around_the_estimate_and_shrink_with_samples() -> None:
    few, many = star_data(0, 300)[0], star_data(0, 6000)[0]
    widths = []
    for X in (few, many):
        model = fitted(X)
        table = model.intervals("a", "h", X, n_resamples=30)
        estimate = model.conditional_table("a", "h").to_numpy().ravel()
        np.testing.assert_allclose(table["estimate"], estimate, rtol=1e-12)
        assert ((table["lower"] < estimate) & (estimate < table["upper"])).all()
        widths.append((table["upper"] - table["lower"]).mean())
    # the width goes as 1 / sqrt(n): a factor of 4.5, of which resampling blurs a quarter
    assert 3 < widths[0] / widths[1] < 7


def test_the_same_seed_gives_the_same_intervals_and_wrong_options_are_refused() -> None:
    X = star_data(0, 300)[0]
    model = fitted(X)
    one, other = (model.intervals("a", "b", X, n_resamples=5) for _ in range(2))
    assert one.equals(other)
    with pytest.raises(DataError, match="level=95"):
        model.intervals("a", "b", X, level=95)
    with pytest.raises(DataError, match="n_resamples=1"):
        model.intervals("a", "b", X, n_resamples=1)
