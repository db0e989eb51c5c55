"""Layouts are checked by arithmetic, pictures by what matplotlib would draw."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

mpl.use("Agg")

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from latenttree.plots import layout
from latenttree.plots.figure import new_axes, plot_pixel_tree, plot_tree
from latenttree.tree import Tree

ONE = Tree.build(["only"], [], [])
TWO = Tree.build(["x", "y"], [(0, 1)], [0.5])
STAR = Tree.build(list("abcde"), [(i, 5) for i in range(5)], [1, 2, 3, 4, 5])
#   a   d     e and g are observed inside the tree
#    \ /
#    h0---e---h1---g---h
#    /        /\
#   b        c  f
INNER = Tree.build(
    ["a", "b", "c", "d", "e", "f", "g", "h"],
    [(0, 8), (1, 8), (3, 8), (8, 4), (4, 9), (2, 9), (5, 9), (9, 6), (6, 7)],
    [1, 1, 2, 0.5, 0.5, 1, 1, 0.3, 0.2],
)


def random_tree(n_observed: int, seed: int, max_children: int = 4) -> Tree:
    """Random groups are joined under a new hidden node until one is left."""
    rng = np.random.default_rng(seed)
    free, edges, new = list(range(n_observed)), [], n_observed
    while len(free) > max_children + 1:
        chosen = set(rng.choice(len(free), rng.integers(2, max_children + 1), replace=False))
        edges += [(free[i], new) for i in chosen]
        free = [node for i, node in enumerate(free) if i not in chosen] + [new]
        new += 1
    edges += [(node, new) for node in free]
    names = [f"variable {i}" for i in range(n_observed)]
    return Tree.build(names, edges, rng.gamma(2, 0.3, len(edges)))


trees = st.builds(random_tree, st.integers(6, 60), st.integers(0, 10**6), st.integers(2, 6))
ALL = [ONE, TWO, STAR, INNER, random_tree(40, 0)]


# ---- layouts --------------------------------------------------------------------------


@given(trees)
@settings(max_examples=40, deadline=None)
def test_centre_is_the_middle_of_a_longest_path(tree: Tree) -> None:
    hops = np.array(
        [[len(tree.path(a, b)) - 1 for b in range(tree.n_nodes)] for a in range(tree.n_nodes)]
    )
    assert hops[layout.centre(tree)].max() == (hops.max() + 1) // 2


@given(trees)
@settings(max_examples=40, deadline=None)
def test_branches_take_slots_side_by_side(tree: Tree) -> None:
    """Every observed node has a slot, and the slots of a branch are consecutive."""
    hung = layout.frame(tree)
    slots = hung.slots[: tree.n_observed] - 0.5
    assert sorted(slots) == list(range(tree.n_observed))
    members = np.unpackbits(tree.splits(), axis=1, count=tree.n_observed).astype(bool)
    for row in members:
        runs = np.count_nonzero(np.diff(row[np.argsort(slots)].astype(int)))
        assert runs <= 2  # consecutive, or the complement is


@given(trees, st.booleans())
@settings(max_examples=40, deadline=None)
def test_radial_by_depth(tree: Tree, lengths: bool) -> None:
    xy = layout.radial(tree, lengths=lengths)
    radius = np.hypot(*xy.T)
    hung = layout.frame(tree, lengths=lengths)
    assert xy.shape == (tree.n_nodes, 2)
    assert radius.max() <= 1 + 1e-12  # rounding of cos and sin
    assert radius[hung.root] == 0
    if lengths:
        np.testing.assert_allclose(radius * hung.depths.max(), hung.depths, atol=1e-12)
    else:
        np.testing.assert_allclose(radius[tree.degree() == 1], 1, atol=1e-12)
        child = hung.order[1:]
        assert np.all(radius[child] > radius[hung.parents[child]])


def test_angle_of_a_branch_is_in_proportion_to_its_leaves() -> None:
    #  h0 holds a, b; the centre holds c, d, e, f: six leaves at 60 degrees each
    edges = [(0, 6), (1, 6), (6, 7), (2, 7), (3, 7), (4, 7), (5, 7)]
    tree = Tree.build(list("abcdef"), edges, np.ones(7))
    xy = layout.radial(tree)
    degrees = np.degrees(np.arctan2(*xy[:6].T)) % 360  # clockwise from the top
    np.testing.assert_allclose(degrees, [30, 90, 150, 210, 270, 330])
    h0 = xy[tree.index("a")] + xy[tree.index("b")]
    branch = xy[tree.neighbors("a")[0]]
    np.testing.assert_allclose(np.cross(np.append(h0, 0), np.append(branch, 0)), 0, atol=1e-12)


def test_top_down_by_hand() -> None:
    xy = layout.top_down(STAR)
    np.testing.assert_allclose(xy[:5], [[i + 0.5, -1] for i in range(5)])
    np.testing.assert_allclose(xy[5], [2.5, 0])
    np.testing.assert_allclose(layout.top_down(STAR, lengths=True)[:5, 1], [-1, -2, -3, -4, -5])


def test_layouts_of_the_smallest_trees() -> None:
    assert layout.radial(ONE).tolist() == [[0, 0]]
    assert layout.top_down(ONE).tolist() == [[0.5, 0]]
    assert layout.radial(TWO).shape == (2, 2)
    assert np.all(np.isfinite(layout.radial(TWO.with_lengths([0.0]), lengths=True)))


def test_groups_are_the_hidden_neighbours_of_leaves() -> None:
    tree = random_tree(30, 3)
    group = layout.groups(tree, layout.frame(tree))
    for node in range(tree.n_observed):
        assert group[node] == tree.neighbors(node)[0]  # every observed node is a leaf here


def test_groups_of_observed_nodes_inside() -> None:
    group = layout.groups(INNER, layout.frame(INNER))
    assert group[INNER.index("h")] == group[INNER.index("g")]
    assert np.all(group >= INNER.n_observed)
    assert layout.groups(TWO, layout.frame(TWO)).tolist() == [0, 0]


@given(trees, st.integers(0, 100))
@settings(max_examples=40, deadline=None)
def test_hidden_nodes_at_the_mean_of_their_neighbours(tree: Tree, seed: int) -> None:
    positions = np.random.default_rng(seed).uniform(0, 7, (tree.n_observed, 2))
    xy = layout.anchored(tree, positions)
    np.testing.assert_array_equal(xy[: tree.n_observed], positions)
    for node in range(tree.n_observed, tree.n_nodes):
        # The elimination is exact but for rounding.
        np.testing.assert_allclose(xy[node], xy[tree.neighbors(node)].mean(axis=0), atol=1e-10)


def test_hidden_nodes_around_observed_ones_inside() -> None:
    positions = np.arange(16.0).reshape(8, 2) ** 2
    xy = layout.anchored(INNER, positions)
    for node in range(8, INNER.n_nodes):
        np.testing.assert_allclose(xy[node], xy[INNER.neighbors(node)].mean(axis=0), atol=1e-10)


# ---- pictures -------------------------------------------------------------------------


def corners(text: Text, renderer: Any) -> np.ndarray:
    """The four corners of a text's box in pixels, turned as the text is."""
    around = [0, 1, 3, 2]
    degrees = text.get_rotation()
    if degrees % 90 == 0:
        return text.get_window_extent(renderer).corners()[around]
    # Matplotlib's rotation_mode "anchor": placed first, then turned about the anchor.
    text.set_rotation(0)
    flat = text.get_window_extent(renderer).corners()[around]
    anchor = text.get_transform().transform(text.get_position())
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return (flat - anchor) @ np.array([[c, s], [-s, c]]) + anchor


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two rectangles meet: no side of either separates them."""
    for rectangle in (a, b):
        for axis in np.diff(rectangle[:3], axis=0):
            low_a, high_a = np.min(a @ axis), np.max(a @ axis)
            low_b, high_b = np.min(b @ axis), np.max(b @ axis)
            if high_a <= low_b or high_b <= low_a:
                return False
    return True


def names_drawn(ax: Any, tree: Tree) -> list[Text]:
    return [text for text in ax.texts if text.get_text() in set(tree.observed_names)]


@pytest.mark.parametrize("how", ["radial", "top_down"])
@pytest.mark.parametrize(("n_observed", "seed"), [(10, 0), (40, 1), (100, 2)])
def test_all_names_are_drawn_and_none_overlap(how: Any, n_observed: int, seed: int) -> None:
    tree = random_tree(n_observed, seed)
    ax = plot_tree(tree, how, ax=new_axes(tree, how))
    names = names_drawn(ax, tree)
    assert len(names) == n_observed
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    boxes = [corners(text, renderer) for text in names]
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)


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


def test_a_thousand_variables_lose_names_not_groups() -> None:
    tree = random_tree(1000, 0, max_children=8)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    assert 200 < len(names_drawn(ax, tree)) < 1000


@pytest.mark.parametrize("how", ["radial", "top_down"])
@pytest.mark.parametrize("lengths", [False, True])
@pytest.mark.parametrize("tree", ALL, ids=repr)
def test_every_tree_can_be_drawn(tree: Tree, lengths: bool, how: Any, tmp_path: Path) -> None:
    ax = plot_tree(tree, how, lengths=lengths, title="a tree", ax=new_axes(tree, how))
    ax.figure.savefig(tmp_path / "tree.png")
    assert len(names_drawn(ax, tree)) == tree.n_observed


def test_width_follows_support() -> None:
    tree = random_tree(30, 1)
    support = np.full(tree.n_edges, np.nan)
    inner = tree.internal_edges()
    support[inner] = np.linspace(0.1, 1, len(inner))
    ax = plot_tree(tree, support=support, ax=new_axes(tree, "radial"))
    widths = np.array(ax.collections[0].get_linewidths())
    assert np.all(np.diff(widths[inner]) > 0)
    assert len(set(np.delete(widths, inner))) == 1


def test_one_colour_for_each_group() -> None:
    tree = random_tree(30, 1)
    ax = plot_tree(tree, ax=new_axes(tree, "radial"))
    colors = ax.collections[-1].get_facecolors()
    group = layout.groups(tree, layout.frame(tree))
    assert len(np.unique(colors, axis=0)) == len(np.unique(group))
    for hidden in np.unique(group):
        assert len(np.unique(colors[group == hidden], axis=0)) == 1


def test_without_axes_there_is_a_new_figure() -> None:
    from matplotlib import pyplot

    ax = plot_tree(STAR)
    assert ax.figure.number in pyplot.get_fignums()
    pyplot.close(ax.figure)


def test_bad_arguments() -> None:
    with pytest.raises(ValueError, match="layout is 'spiral'; pass 'radial' or 'top_down'"):
        plot_tree(STAR, "spiral")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"support has shape \(2,\) for a tree of 5 edges"):
        plot_tree(STAR, support=[1, 1])
    with pytest.raises(ValueError, match=r"positions have shape \(3, 2\)"):
        plot_pixel_tree(STAR, np.zeros((3, 2)), shape=(2, 3))
    with pytest.raises(ValueError, match="too small"):
        plot_pixel_tree(STAR, np.arange(10).reshape(5, 2), shape=(2, 3))


def test_pixels(tmp_path: Path) -> None:
    cells = np.column_stack(np.unravel_index(np.arange(60), (8, 8)))
    tree = random_tree(60, 4)
    figure = plot_pixel_tree(tree, cells, shape=(8, 8), title="pixels", subtitle="of a test")
    assert isinstance(figure, Figure)
    grid, circle = figure.axes
    assert len(grid.patches) == 64
    assert len(names_drawn(circle, tree)) == 60
    figure.savefig(tmp_path / "pixels.png")
