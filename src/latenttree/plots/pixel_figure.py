"""A tree over pixels: on the grid of the image, and radially."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats
from latenttree.errors import DataError, Option, Text
from latenttree.plots.canvas import new_figure
from latenttree.plots.colors import FAINT, INK, colored_by
from latenttree.plots.labels import node_texts
from latenttree.plots.layout import anchored, rooted_layout
from latenttree.plots.marks import draw_dots
from latenttree.plots.style import TreeStyle, tree_style
from latenttree.plots.tree_figure import TreePicture, draw_radial
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_LABEL = 28  # characters of a name


def plot_pixel_tree(
    tree: Tree,
    positions: ArrayLike,
    *,
    shape: tuple[int, int],
    support: ArrayLike | None = None,
    title: str | None = None,
    subtitle: str | None = None,
) -> Figure:
    """A tree over pixels twice: over the image grid, and radially, in the same colours.

    Parameters
    ----------
    positions : ``(n_observed, 2)`` row and column of each observed pixel. A hidden node is
        drawn at the mean of its neighbours' positions.
    shape : rows and columns of the image; pixels that are not in the tree stay blank.
    """
    cells = _check_positions(tree, positions, shape)
    fig = new_figure((13.2, 6.9))
    left, right = fig.subplots(1, 2, width_ratios=[1, 1.12])
    fig.subplots_adjust(left=0.02, right=0.985, bottom=0.03, top=0.86, wspace=0.04)
    rooted = rooted_layout(tree)
    coloring = colored_by(tree, rooted, None)
    style = tree_style(tree, rooted, coloring, tree.support if support is None else support)
    _draw_grid(left, tree, cells, shape, style)
    draw_radial(right, TreePicture(tree, rooted, style, node_texts(tree, True, MAX_LABEL)))
    if title:
        fig.suptitle(title, x=0.03, y=0.975, ha="left", va="top", color=INK, size=17, weight="bold")
    if subtitle:
        fig.text(0.03, 0.915, subtitle, ha="left", va="top", color="#5d6470", size=11)
    return fig


def _draw_grid(
    ax: Axes, tree: Tree, cells: Floats, shape: tuple[int, int], style: TreeStyle
) -> None:
    """Coloured cells, and the tree over them: a hidden node lies amid its neighbours."""
    from matplotlib.collections import LineCollection

    _draw_cells(ax, cells, shape, style)
    xy = anchored(tree, cells)[:, ::-1]
    ax.add_collection(
        LineCollection(
            list(xy[tree.edges]),
            colors=INK,
            linewidths=0.35 + 0.6 * style.edge_widths,
            alpha=0.85,
            capstyle="round",
            zorder=2,
        )
    )
    dark = 0.8 * style.node_colors[: tree.n_observed]
    draw_dots(ax, xy[: tree.n_observed], dark, size=7.9, rim=1.0, zorder=3)
    draw_dots(ax, xy[tree.n_observed :], "white", size=4.5, rim=1.1, rim_color=INK, zorder=4)
    n_rows, n_columns = shape
    ax.set_xlim(-0.6, n_columns - 0.4)
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _draw_cells(ax: Axes, cells: Floats, shape: tuple[int, int], style: TreeStyle) -> None:
    """A square for each pixel of the image, in a light tint of its group's colour."""
    from matplotlib.patches import FancyBboxPatch

    colors = {
        (int(r), int(c)): tuple(0.42 * color + 0.58)
        for (r, c), color in zip(cells, style.node_colors, strict=False)
    }
    for row, column in np.ndindex(shape):
        ax.add_patch(
            FancyBboxPatch(
                (column - 0.44, row - 0.44),
                0.88,
                0.88,
                boxstyle="round,pad=0,rounding_size=0.14",
                facecolor=colors.get((row, column), FAINT),
                edgecolor="none",
            )
        )


def _check_positions(tree: Tree, positions: ArrayLike, shape: tuple[int, int]) -> Floats:
    cells = np.asarray(positions, dtype=float)
    if cells.shape != (tree.n_observed, 2):
        what = Text(Option("positions"), f" have shape {cells.shape}")
        remedy = f"pass one (row, column) for each of the {tree.n_observed} observed nodes"
        raise DataError(what, remedy, value=cells.shape, option="positions")
    if cells.size and (cells.min() < 0 or np.any(cells.max(axis=0) >= shape)):
        raise DataError(
            Text(
                Option("positions"),
                f" reach row {cells[:, 0].max():g} and column {cells[:, 1].max():g}",
            ),
            Text(Option("shape"), f" {shape} is too small for them"),
            value=shape,
            option="shape",
        )
    return cells
