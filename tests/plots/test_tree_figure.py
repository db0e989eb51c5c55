"""Pictures of trees, checked by what matplotlib would draw."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import itertools

from matplotlib import pyplot
from matplotlib.backends.backend_agg import FigureCanvasAgg
from tests.plots.pictures import (
    check_edges_meet_nodes,
    check_no_overlap,
    dots,
    names_drawn,
    widths,
)
from tests.plots.trees import ALL, STAR, random_tree
from tests.reference import layouts

from latenttree.errors import DataError
from latenttree.plots import layout
from latenttree.plots.style import edges_between
from latenttree.plots.tree_figure import new_axes, plot_tree
from latenttree.tree import Tree


@pytest.mark.parametrize("how", ["radial", "top_down"])
@pytest.mark.parametrize(("n_observed", "seed"), [(10, 0), (40, 1), (100, 2)])
def test_all_names_are_drawn_and_none_overlap(how: Any, n_observed: int, seed: int) -> None:
    tree = random_tree(n_observed, seed)
    ax = plot_tree(tree, how, ax=new_axes(tree, how))
    names = names_drawn(ax, tree)
    assert len(names) == n_observed
    check_no_overlap(ax, names)


def test_names_stay_inside_the_picture_and_upright() -> None:
    tree = random_tree(60, 5)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    page = ax.figure.bbox
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    for text in names_drawn(ax, tree):
        turn = text.get_rotation() % 360
        assert turn <= 90 or turn >= 270
        box = text.get_window_extent(renderer)
        assert page.contains(box.x0, box.y0)
        assert page.contains(box.x1, box.y1)


def test_names_stand_beyond_their_nodes() -> None:
    """On the ray through the node, outside the circle."""
    tree = random_tree(30, 2)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    xy = dots(ax, tree)
    for text in names_drawn(ax, tree):
        node, place = xy[tree.index(text.get_text())], np.asarray(text.get_position())
        assert np.hypot(*place) > 1
        # A leaf lies on the unit circle, so its ray has its own coordinates as direction.
        np.testing.assert_allclose(place / np.hypot(*place), node, atol=1e-9)


@pytest.mark.parametrize("how", ["radial", "top_down"])
def test_any_node_may_be_the_root(how: Any) -> None:
    tree = random_tree(30, 1)
    ax = plot_tree(tree, how, root="variable 7", ax=new_axes(tree, how))
    xy = dots(ax, tree)[tree.index("variable 7")]
    middle = [0.0, 0.0] if how == "radial" else [xy[0], 0.0]
    np.testing.assert_allclose(xy, middle, atol=1e-9)
    check_edges_meet_nodes(ax, tree)


def test_a_thousand_variables_lose_names_not_large_groups() -> None:
    tree = random_tree(1000, 0, max_children=8)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    shown = [tree.index(text.get_text()) for text in names_drawn(ax, tree)]
    assert 200 < len(shown) < 1000
    group = layout.groups(tree, layout.rooted_layout(tree))
    names, sizes = np.unique(group, return_counts=True)
    # Groups are named in the order of their sizes: those of the largest size have all a name.
    largest = names[sizes == sizes.max()]
    assert set(largest) <= set(group[shown])
    check_no_overlap(ax, names_drawn(ax, tree)[:200])


@pytest.mark.parametrize("how", ["radial", "top_down"])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("tree", ALL, ids=repr)
def test_every_tree_is_drawn_where_its_layout_says(
    tree: Tree, lengths: bool, how: Any, tmp_path: Path
) -> None:
    ax = plot_tree(tree, how, lengths=lengths, title="a tree", ax=new_axes(tree, how))
    place = layouts.radial if how == "radial" else layouts.top_down
    np.testing.assert_allclose(dots(ax, tree), place(tree, lengths=lengths), atol=1e-12)
    check_edges_meet_nodes(ax, tree)
    assert len(names_drawn(ax, tree)) == tree.n_observed
    assert ax.get_title() == "a tree"
    ax.figure.savefig(tmp_path / "tree.png")


def test_width_follows_support() -> None:
    tree = random_tree(30, 1)
    support = np.full(tree.n_edges, np.nan)
    inner = tree.internal_edges()
    support[inner] = np.linspace(0.1, 1, len(inner))
    ax = plot_tree(tree, support=support, ax=new_axes(tree, "radial"))
    drawn = widths(ax, tree)
    assert np.all(np.diff(drawn[inner]) > 0)
    assert len(set(np.delete(drawn, inner))) == 1
    key = ax.get_legend()
    assert key.get_title().get_text() == "support"
    assert [text.get_text() for text in key.get_texts()] == ["0.5", "0.75", "1"]
    key_widths = [line.get_linewidth() for line in key.get_lines()]
    np.testing.assert_allclose(key_widths, [0.4 + 3 * s for s in (0.5, 0.75, 1)])


def test_without_support_there_is_no_key() -> None:
    tree = random_tree(30, 1)
    assert plot_tree(tree, ax=new_axes(tree, "radial")).get_legend() is None


@pytest.mark.parametrize("how", ["radial", "top_down"])
def test_negative_edges_are_dashed_and_have_a_key(how: Any) -> None:
    ax = new_axes(STAR, how)
    plot_tree(STAR.with_evidence(signs=[1, -1, 0, -1, 1]), how, ax=ax)
    lines = [c for c in ax.collections if hasattr(c, "get_segments")]
    by_dash = {c.get_linestyles()[0][1] is not None: len(c.get_segments()) for c in lines[:2]}
    assert by_dash == {False: 3, True: 2}
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["negative"]


def test_one_colour_for_each_group() -> None:
    tree = random_tree(30, 1)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    colors = ax.collections[-1].get_facecolors()
    group = layout.groups(tree, layout.rooted_layout(tree))
    assert len(np.unique(colors, axis=0)) == len(np.unique(group))
    for hidden in np.unique(group):
        assert len(np.unique(colors[group == hidden], axis=0)) == 1


def test_names_can_be_left_out() -> None:
    assert not plot_tree(STAR, labels=False, ax=new_axes(STAR, "radial")).texts


def test_names_in_other_words() -> None:
    shown = {"a": "apples", "nobody": "x"}
    ax = plot_tree(STAR, labels=shown, ax=new_axes(STAR, "radial"))
    assert sorted(text.get_text() for text in ax.texts) == ["apples", "b", "c", "d", "e"]
    ax = plot_tree(STAR, labels=str.upper, ax=new_axes(STAR, "top_down"))
    assert sorted(text.get_text() for text in ax.texts) == list("ABCDE")


def test_dollars_are_no_formulas(tmp_path: Path) -> None:
    tree = Tree.build(["$a", "b$", "$x^$"], [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    ax = plot_tree(tree, path=tmp_path / "dollars.svg", ax=new_axes(tree, "radial"))
    assert sorted(text.get_text() for text in ax.texts) == [r"\$a", r"\$x^\$", r"b\$"]


def test_hidden_names_and_highlighted_nodes() -> None:
    tree = random_tree(30, 1)
    ax = plot_tree(tree, hidden_labels=True, ax=new_axes(tree, "radial"))
    texts = {text.get_text() for text in ax.texts}
    assert len(texts & set(tree.hidden_names)) > tree.n_hidden / 2
    ax = plot_tree(tree, highlight=["h3", "variable 2"], ax=new_axes(tree, "radial"))
    bold = {text.get_text() for text in ax.texts if text.get_weight() == "bold"}
    assert bold == {"h3", "variable 2"}


def test_edges_between_highlighted_nodes_stand_out() -> None:
    tree = random_tree(30, 1)
    chosen = np.zeros(tree.n_nodes, dtype=bool)
    chosen[[2, 9, 17]] = True
    ends = [tree.path(a, b) for a, b in ((2, 9), (2, 17), (9, 17))]
    on_paths = {frozenset(pair) for path in ends for pair in itertools.pairwise(path)}
    expected = [frozenset(edge) in on_paths for edge in tree.edges.tolist()]
    assert edges_between(tree, chosen).tolist() == expected


def test_contracted_edges_and_names_left_out_are_said() -> None:
    tree = random_tree(1000, 0)
    support = np.ones(tree.n_edges)
    support[tree.internal_edges()[:5]] = 0.1
    ax = plot_tree(tree.with_evidence(support=support), min_support=0.5, figsize=(6, 6))
    notes = next(text.get_text() for text in ax.texts if "contracted" in text.get_text())
    assert "5 edges of support below 0.5 contracted" in notes
    assert "of 1,000 names fit" in notes
    pyplot.close(ax.figure)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_picture_is_written(suffix: str, tmp_path: Path) -> None:
    plot_tree(STAR, ax=new_axes(STAR, "radial"), path=tmp_path / f"tree.{suffix}")
    assert (tmp_path / f"tree.{suffix}").stat().st_size > 1000


def test_long_names_are_cut() -> None:
    names = ["a" * 28, "b" * 29, "c"]
    tree = Tree.build(names, [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    assert sorted(text.get_text() for text in ax.texts) == ["a" * 28, "b" * 27 + "…", "c"]


def test_without_axes_there_is_a_new_figure() -> None:
    ax = plot_tree(STAR)
    assert ax.figure.number in pyplot.get_fignums()
    pyplot.close(ax.figure)


def test_bad_arguments() -> None:
    with pytest.raises(DataError, match="pass 'radial' or 'top_down'") as caught:
        plot_tree(STAR, "spiral")  # type: ignore[arg-type]
    assert (caught.value.place.option, caught.value.value) == ("layout", "spiral")
    for option, value in (
        ("root", "nobody"),
        ("highlight", ["a", "nobody"]),
        ("labels", {"nobody": "x"}),
        ("labels", 3),
        ("max_label", 1),
        ("figsize", 8),
        ("color_by", [1, 2]),
        ("color_by", {"nobody": 1}),
        ("color_by", 9),
        ("color_by", "red"),
    ):
        with pytest.raises(DataError) as caught:
            plot_tree(STAR, **{option: value})
        assert caught.value.place.option == option
    with pytest.raises(DataError, match=r"has shape \(2,\) for 5 edges") as caught:
        plot_tree(STAR, support=[1, 1])
    assert (caught.value.place.option, caught.value.value) == ("support", (2,))
    with pytest.raises(DataError, match="no picture file"):
        plot_tree(STAR, path="tree.txt")
