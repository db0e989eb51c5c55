"""Neighbourhoods of a node."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

mpl.use("Agg")

from tests.plots.trees import STAR, random_tree

from latenttree.errors import DataError
from latenttree.plots.canvas import new_figure
from latenttree.plots.neighborhood_figure import neighborhood, plot_neighborhood


@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(2, 40))
@settings(max_examples=40, deadline=None)
def test_the_nearest_nodes_and_what_lies_beyond(seed: int, radius: int, most: int) -> None:
    tree = random_tree(30, seed)
    middle = seed % tree.n_nodes
    found = neighborhood(tree, middle, radius, most)
    hops = np.array([len(tree.path(middle, v)) - 1 for v in range(tree.n_nodes)])
    assert found.depths.tolist() == hops[found.nodes].tolist()
    assert len(found.nodes) == min(most, int((hops <= radius).sum()))
    shown = set(found.nodes.tolist())
    lost = sum(v < tree.n_observed for v in set(range(tree.n_nodes)) - shown)
    assert found.beyond.sum() == lost
    for i in range(1, len(found.nodes)):
        ends = {int(found.nodes[i]), int(found.nodes[found.parents[i]])}
        assert ends == set(tree.edges[found.edges[i]].tolist())


def test_names_support_and_signs_are_written() -> None:
    support = [1.0, 1.0, 0.5, np.nan, 1.0]
    tree = STAR.with_evidence(signs=[1, -1, -1, 1, 0], support=support)
    ax = plot_neighborhood(tree, "h0", 1, ax=new_figure((5, 5)).add_subplot())
    texts = [text.get_text() for text in ax.texts]
    assert sorted(texts) == sorted(["h0", *"abcde", "−", "− 0.50"])
    ax = plot_neighborhood(random_tree(30, 0), "h0", 1, ax=new_figure((5, 5)).add_subplot())
    assert any("beyond the dotted ends" in text.get_text() for text in ax.texts)


def test_what_makes_no_sense_is_refused() -> None:
    for options in ({"node": "x"}, {"radius": 0}, {"max_nodes": 1}):
        with pytest.raises(DataError) as caught:
            plot_neighborhood(STAR, **({"node": "a"} | options))
        assert caught.value.place.option in options
