"""Agreement of groupings, and metrics of trees in every form."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.metrics import adjusted_rand_score

import latenttree as lt
from latenttree.errors import DataError

TREE = lt.Tree.from_newick("((a:1,b:1)h1:3,(c:1,d:1)h2:3,(e:1,f:1)h3:3)h0;")
LABELS = {"a": 0, "b": 0, "c": 1, "d": 1, "e": 2, "f": 2}


class Fitted:
    """What metrics need of a fitted model."""

    tree_ = TREE


@pytest.mark.parametrize(
    "other",
    [
        LABELS,
        pd.Series(LABELS),
        pd.Series(LABELS).iloc[::-1],
        pd.Series([0, 0, 1, 1, 2, 2]),
        pl.DataFrame({"variable": list("fedcba"), "group": ["x", "x", "y", "y", "z", "z"]}),
        ["u", "u", "v", "v", "w", "w"],
        np.array([3, 3, 1, 1, 7, 7]),
        pl.Series([0, 0, 1, 1, 2, 2]),
    ],
)
@pytest.mark.parametrize("tree", [TREE, Fitted(), TREE.to_newick(), LABELS])
def test_the_same_groups_in_any_form_agree(tree: Any, other: Any) -> None:
    assert lt.metrics.group_agreement(tree, other) == 1.0
    assert lt.metrics.group_agreement(other, tree) == 1.0


def test_it_is_the_adjusted_rand_index_and_unlabelled_ones_are_alone() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 4, (2, 50))
    assert lt.metrics.group_agreement(a, b) == pytest.approx(adjusted_rand_score(a, b))
    gaps = [None if i < 3 else x for i, x in enumerate(a.tolist())]
    alone = [10 + i if i < 3 else x for i, x in enumerate(a.tolist())]
    expected = adjusted_rand_score(alone, b)
    assert lt.metrics.group_agreement(gaps, b) == pytest.approx(expected)
    assert lt.metrics.group_agreement(np.array(gaps, dtype=float), b) == pytest.approx(expected)


def test_what_is_no_grouping_is_refused() -> None:
    with pytest.raises(DataError, match="only the first grouping has f"):
        lt.metrics.group_agreement(LABELS, {k: v for k, v in LABELS.items() if k != "f"})
    with pytest.raises(DataError, match="6 and 2 labels"):
        lt.metrics.group_agreement(LABELS, [0, 1])
    with pytest.raises(DataError, match="both groupings are trees"):
        lt.metrics.group_agreement(TREE, TREE)
    with pytest.raises(DataError, match="'red' in place of groups"):
        lt.metrics.group_agreement("red", [0])


@pytest.mark.parametrize("a", [TREE, Fitted(), TREE.to_newick()])
@pytest.mark.parametrize("b", [TREE, Fitted(), TREE.to_newick()])
def test_metrics_take_trees_in_any_form(a: Any, b: Any) -> None:
    assert lt.metrics.robinson_foulds(a, b) == 0
    assert lt.metrics.split_errors(a, b) == (0, 0)
    assert lt.metrics.structure_error(a, b) == 0
    assert lt.metrics.group_rand_index(a, b) == 1


def test_labelled_inner_nodes_are_hidden_where_the_other_tree_lacks_them() -> None:
    text = "((a:1,b:1)sports:3,(c:1,d:1)x:3,(e:1,f:1)y:3)top;"
    assert lt.metrics.robinson_foulds(text, TREE) == 0
    assert lt.metrics.robinson_foulds(TREE, text) == 0


def test_other_things_are_no_trees() -> None:
    for wrong in (None, "abc", np.eye(3), lt.LatentTree()):
        with pytest.raises(DataError, match="in place of a tree"):
            lt.metrics.robinson_foulds(TREE, wrong)
