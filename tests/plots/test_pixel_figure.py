"""The picture of a tree over pixels, checked by what matplotlib would draw."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from tests.plots.pictures import check_edges_meet_nodes, check_no_overlap, dots, names_drawn
from tests.plots.trees import STAR, random_tree

from latenttree.errors import DataError
from latenttree.plots.colors import FAINT
from latenttree.plots.layout import anchored
from latenttree.plots.pixel_figure import plot_pixel_tree

CELLS = np.column_stack(np.unravel_index(np.arange(60), (8, 8)))


def test_the_grid_has_a_cell_for_each_pixel() -> None:
    """Row and column as given, downwards as in an image; pixels outside the tree are blank."""
    tree = random_tree(60, 4)
    grid, _ = plot_pixel_tree(tree, CELLS, shape=(8, 8)).axes
    assert len(grid.patches) == 64
    blank = [patch for patch in grid.patches if patch.get_facecolor()[:3] == to_rgb(FAINT)]
    assert len(blank) == 4
    boxes = [patch.get_extents().transformed(grid.transData.inverted()) for patch in blank]
    middles = {(round((b.y0 + b.y1) / 2), round((b.x0 + b.x1) / 2)) for b in boxes}
    assert middles == {(7, column) for column in range(4, 8)}
    assert grid.get_ylim()[0] > grid.get_ylim()[1]
    np.testing.assert_allclose(dots(grid, tree), anchored(tree, CELLS)[:, ::-1])
    check_edges_meet_nodes(grid, tree)
    assert not grid.texts


def test_both_halves_have_the_same_colours() -> None:
    tree = random_tree(60, 4)
    grid, circle = plot_pixel_tree(tree, CELLS, shape=(8, 8)).axes
    light = np.array([patch.get_facecolor()[:3] for patch in grid.patches[:60]])
    bright = circle.collections[-1].get_facecolors()[:, :3]
    np.testing.assert_allclose(light, 0.42 * bright + 0.58, atol=1e-12)
    names = names_drawn(circle, tree)
    assert len(names) == 60
    check_no_overlap(circle, names)


def test_width_follows_support() -> None:
    tree = random_tree(60, 4)
    support = np.linspace(0, 1, tree.n_edges)
    grid, _ = plot_pixel_tree(tree, CELLS, shape=(8, 8), support=support).axes
    (lines,) = [c for c in grid.collections if isinstance(c, LineCollection)]
    assert np.all(np.diff(lines.get_linewidths()) > 0)


def test_title_and_subtitle(tmp_path: Path) -> None:
    figure = plot_pixel_tree(STAR, np.eye(5, 2), shape=(2, 2), title="pixels", subtitle="of a test")
    assert figure.get_suptitle() == "pixels"
    assert "of a test" in [text.get_text() for text in figure.texts]
    figure.savefig(tmp_path / "pixels.png")


@pytest.mark.parametrize(
    ("positions", "option", "value"),
    [
        (np.zeros((3, 2)), "positions", (3, 2)),
        (np.arange(10).reshape(5, 2), "shape", (2, 3)),
        (np.full((5, 2), -1), "shape", (2, 3)),
    ],
)
def test_positions_that_do_not_fit(positions: np.ndarray, option: str, value: object) -> None:
    with pytest.raises(DataError) as caught:
        plot_pixel_tree(STAR, positions, shape=(2, 3))
    assert (caught.value.place.option, caught.value.value) == (option, value)
