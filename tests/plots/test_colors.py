"""Colours of variables: what users pass, and the legends that explain them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from tests.plots.trees import STAR, random_tree

from latenttree.plots.colors import PALETTE, UNKNOWN, Coloring, colored_by, rgb
from latenttree.plots.layout import rooted_layout
from latenttree.tree import Tree

CITIES = {"a": "Rome", "b": "Oslo", "c": "Rome", "e": "Bonn"}


def coloring(color_by: Any, tree: Tree = STAR) -> Coloring:
    return colored_by(tree, rooted_layout(tree), color_by)


@pytest.mark.parametrize(
    "given",
    [
        CITIES,
        pd.Series(CITIES),
        pd.Series(["Rome", "Oslo", "Rome", None, "Bonn"]),
        ["Rome", "Oslo", "Rome", None, "Bonn"],
        np.array(["Rome", "Oslo", "Rome", None, "Bonn"], dtype=object),
        pl.Series(["Rome", "Oslo", "Rome", None, "Bonn"]),
    ],
    ids=["dict", "named series", "series", "list", "array", "polars"],
)
def test_categories(given: Any) -> None:
    found = coloring(given)
    assert [text for text, _ in found.entries] == ["Bonn", "Oslo", "Rome", "not given"]
    expected = [PALETTE[2], PALETTE[1], PALETTE[2], UNKNOWN, PALETTE[0]]
    np.testing.assert_allclose(found.colors, [rgb(color) for color in expected])


def test_the_name_of_a_series_is_the_title_of_the_legend() -> None:
    assert coloring(pd.Series(CITIES, name="city")).title == "city"


def test_rare_categories_share_a_colour() -> None:
    tree = random_tree(60, 1)
    found = coloring([f"k{min(i, 20):02d}" for i in range(60)], tree)
    assert len(found.entries) == len(PALETTE)
    assert found.entries[-1] == ("10 others", UNKNOWN)


def test_numbers_have_a_scale() -> None:
    found = coloring([0.5, 1.5, np.nan, 2.5, 3.5])
    assert found.scale == ("viridis", 0.5, 3.5)
    np.testing.assert_allclose(found.colors[2], rgb(UNKNOWN))
    assert coloring([-1.0, 3.5, 0, 0, 0]).scale == ("coolwarm", -3.5, 3.5)
    assert coloring([0, 1, 1, 0, 2]).entries  # few whole numbers are categories


def test_groups_are_named_by_typical_members() -> None:
    tree = random_tree(60, 1)
    found = coloring(4, tree)
    assert len(found.entries) == 4
    np.testing.assert_array_equal(found.group, tree.cut(4))
    assert all("variable" in text for text, _ in found.entries)
    assert len(np.unique(found.colors, axis=0)) == 4


def test_by_branches_no_legend_is_needed() -> None:
    found = coloring(None, random_tree(60, 1))
    assert not found.entries
    assert found.scale is None
