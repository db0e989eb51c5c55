"""Pieces of a drawing: edges, nodes, names and the key of support and signs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.plots.canvas import shortened
from latenttree.plots.layout import polar_to_xy
from latenttree.plots.style import EDGE, INK, TreeStyle, support_width
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = (0, (2.2, 1.4))
"""Of negative edges: told apart without colour."""


def draw_edges(ax: Axes, tree: Tree, style: TreeStyle, curves: Floats, reach: float) -> None:
    """Edges along ``curves`` (E, m, 2), negative ones dashed; finer where many share a circle of
    radius ``reach``."""
    from matplotlib.collections import LineCollection

    crowd = float(np.clip(3 * reach / tree.n_observed / 4, 0.45, 1.0))
    for chosen, line in ((tree.signs >= 0, "-"), (tree.signs < 0, DASHES)):
        if chosen.any():
            ax.add_collection(
                LineCollection(
                    list(curves[chosen]),
                    colors=style.edge_colors[chosen],
                    linewidths=style.edge_widths[chosen] * crowd,
                    linestyles=[line],
                    capstyle="round" if line == "-" else "butt",
                    zorder=2,
                )
            )


def draw_nodes(ax: Axes, tree: Tree, xy: Floats, style: TreeStyle, slot: float) -> None:
    """Observed dots nearly as wide as their slot (in points), hidden ones half as wide."""
    size = float(np.clip(0.55 * slot, 1.2, 7.0))
    p = tree.n_observed
    edge = 0.6 if size > 3 else 0.0
    draw_dots(ax, xy[p:], style.node_colors[p:], size=0.7 * size, rim=edge, zorder=3)
    draw_dots(ax, xy[:p], style.node_colors[:p], size=size, rim=edge, zorder=4)


def draw_dots(
    ax: Axes,
    xy: Floats,
    colors: Floats | str,
    *,
    size: float,
    rim: float,
    zorder: int,
    rim_color: str = "white",
) -> None:
    """Dots at ``xy`` (n, 2), ``size`` points wide."""
    x, y = xy.T
    ax.scatter(x, y, s=size**2, c=colors, edgecolors=rim_color, linewidths=rim, zorder=zorder)


def draw_leaders(ax: Axes, angle: Floats, radius: Floats, colors: Floats) -> None:
    """Fine lines from nodes inside the circle to their names on it."""
    from matplotlib.collections import LineCollection

    inside = radius < 0.995
    ends = [polar_to_xy(angle[inside], r) for r in (radius[inside], np.ones(inside.sum()))]
    ax.add_collection(
        LineCollection(
            list(np.stack(ends, axis=1)), colors=colors[inside], lw=0.5, ls=(0, (1, 2.5)), zorder=1
        )
    )


def draw_radial_names(
    ax: Axes, tree: Tree, shown: Ints, angle: Floats, font: float, gap: float
) -> None:
    """Names along the rays, turned on the left half so that none is upside down."""
    for node in shown:
        x, y = polar_to_xy(angle[node], np.asarray(1 + gap))
        degrees = float(np.degrees(angle[node])) % 360
        left = 90 < degrees < 270
        ax.text(
            x,
            y,
            shortened(tree.names[node]),
            rotation=degrees - 180 if left else degrees,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontsize=font,
        )


def draw_hanging_names(ax: Axes, tree: Tree, shown: Ints, xy: Floats, font: float) -> None:
    """Names downwards below their nodes, with a halo where an observed node has edges there."""
    from matplotlib.patheffects import withStroke

    for node in shown:
        ax.annotate(
            shortened(tree.names[node]),
            xy[node],
            xytext=(0, -6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="top",
            color=INK,
            fontsize=font,
            path_effects=[withStroke(linewidth=2, foreground="white")],
        )


def draw_key(ax: Axes, *, support: bool, signs: bool) -> None:
    """The widths of three values of the support, and the dashes of negative edges."""
    from matplotlib.lines import Line2D

    lines, texts = [], []
    if support:
        texts += ["0.5", "0.75", "1"]
        lines += [Line2D([], [], color=EDGE, lw=float(support_width(s))) for s in (0.5, 0.75, 1.0)]
    if signs:
        texts.append("negative")
        lines.append(Line2D([], [], color=INK, lw=1.3, ls=DASHES))
    ax.legend(
        lines,
        texts,
        title="support" if support else None,
        loc="upper right",
        frameon=False,
        fontsize=7.5,
        title_fontsize=7.5,
        labelcolor=INK,
        handlelength=2.2 if signs else 1.6,
        borderaxespad=0.1,
    )


def names_that_fit(places: Floats, priority: Sequence[int] | Ints, gap: float) -> Ints:
    """Nodes whose names fit with ``gap`` between them, taken in order of ``priority``."""
    taken: list[float] = []
    shown: list[int] = []
    for node in priority:
        place = float(places[node])
        at = int(np.searchsorted(taken, place))
        if all(abs(t - place) >= gap for t in taken[max(at - 1, 0) : at + 1]):
            taken.insert(at, place)
            shown.append(int(node))
    return np.array(sorted(shown), dtype=np.int64)
