"""Signs, support and groups of fitted trees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import latenttree as lt

TURNED = slice(None, None, 3)
"""Variables whose values are reversed."""


def reversed_data(n_vars: int = 12) -> pd.DataFrame:
    X = np.array(lt.datasets.make_latent_tree(n_vars, 2, n_samples=4000, random_state=1).X)
    X[:, TURNED] = 1 - X[:, TURNED]
    return pd.DataFrame(X.astype(int), columns=[f"x{i}" for i in range(n_vars)])


@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_the_sign_of_a_path_is_that_of_the_correlation(hidden: str, tmp_path: Path) -> None:
    X = reversed_data()
    X = X if hidden == "categorical" else X.astype(float)
    model = lt.LatentTree(hidden=hidden, random_state=0, n_jobs=1).fit(X)  # type: ignore[arg-type]
    tree, correlation = model.tree_, X.corr().to_numpy()
    # 5 standard errors of a correlation of 4,000 samples
    sure = np.abs(correlation) > 5 / np.sqrt(4000)
    np.testing.assert_array_equal(tree.path_signs()[sure], np.sign(correlation)[sure])
    assert model.model_.tree is tree
    np.testing.assert_array_equal(tree.support, model.diagnostics_.support)
    model.save(tmp_path / "a.ltree")
    again = lt.load(tmp_path / "a.ltree")
    np.testing.assert_array_equal(again.tree_.signs, tree.signs)
    np.testing.assert_array_equal(again.tree_.support, tree.support)
    assert "sign" in model.to_graphml()
    assert "[&sign=-1]" in model.to_newick(signs=True)
    assert "sign" not in model.to_newick()


def test_a_fitted_tree_collapses_and_is_cut() -> None:
    model = lt.LatentTree(2, random_state=0, n_jobs=1).fit(reversed_data())
    assert model.tree_.collapse(0.0).same_topology(model.tree_)
    assert model.tree_.collapse(0.5).n_hidden <= model.tree_.n_hidden
    groups = model.tree_.cut(2)
    signs = model.tree_.path_signs()
    assert (signs[np.ix_(groups == 0, groups == 0)] > 0).mean() > 0.5


def test_parts_without_dependence_have_no_sign_between_them() -> None:
    one, two = reversed_data(6), reversed_data(6).sample(frac=1, random_state=0)
    X = pd.concat([one, two.reset_index(drop=True).add_prefix("y")], axis=1)
    tree = lt.LatentTree(2, random_state=0, n_jobs=1).fit(X).tree_
    assert tree.support is not None
    assert not tree.signs[tree.support == 0].any()
