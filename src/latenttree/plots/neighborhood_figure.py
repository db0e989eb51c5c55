"""A node and what is around it: names on all nodes, support and signs on the edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import check_option
from latenttree.phrases import counted
from latenttree.plots.canvas import literal, new_figure, shortened, size_in_points
from latenttree.plots.colors import EDGE, HIDDEN, INK, colored_by, rgb
from latenttree.plots.labels import CHARACTER, node_number
from latenttree.plots.layout import rooted_layout
from latenttree.plots.legends import DASHES, draw_note
from latenttree.plots.marks import draw_dots, halo
from latenttree.plots.style import NO_SUPPORT_WIDTH, support_width
from latenttree.tree import Tree
from latenttree.tree.layout import polar_to_xy

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MAX_SHOWN = 60
"""Nodes that are shown by default, at most: the nearest."""


@dataclass(frozen=True)
class Neighborhood:
    """Some nodes of a tree around a middle one, nearest first.

    Attributes
    ----------
    nodes : (m,) numbers in the tree, parents first.
    parents : (m,) places in `nodes`; -1 for the middle.
    edges : (m,) the edge to the parent; -1 for the middle.
    depths : (m,) edges from the middle.
    beyond : (m,) observed nodes that lie beyond a node and are not shown.
    """

    nodes: Ints
    parents: Ints
    edges: Ints
    depths: Ints
    beyond: Ints


def neighborhood(tree: Tree, middle: int, radius: int, max_nodes: int) -> Neighborhood:
    """The nodes within `radius` edges of the middle, the first `max_nodes` of them: whole sets of
    children, breadth first, as long as these fit. O(n_nodes)."""
    parents, order = tree.rooted(middle)
    edges = tree.parent_edges(middle)
    depth, n_below = np.zeros(tree.n_nodes, dtype=np.int64), np.zeros(tree.n_nodes, dtype=np.int64)
    for v in order[1:].tolist():
        depth[v] = depth[parents[v]] + 1
    n_below[: tree.n_observed] = 1
    for v in order[:0:-1].tolist():
        n_below[parents[v]] += n_below[v]
    shown = [v for v in order[:max_nodes].tolist() if depth[v] <= radius]
    place = {v: i for i, v in enumerate(shown)}
    beyond = [int(n_below[v]) - (v < tree.n_observed) for v in shown]
    for v in shown[1:]:
        beyond[place[int(parents[v])]] -= int(n_below[v])
    nodes = np.array(shown, dtype=np.int64)
    above = np.array([-1, *(place[int(parents[v])] for v in shown[1:])], dtype=np.int64)
    return Neighborhood(nodes, above, edges[nodes], depth[nodes], np.array(beyond))


def plot_neighborhood(
    tree: Tree,
    node: str | int,
    radius: int = 2,
    *,
    color_by: Any = None,
    max_nodes: int = MAX_SHOWN,
    max_label: int = 24,
    figsize: tuple[float, float] | None = None,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a node in the middle and the nodes within ``radius`` edges around it; see
    `PlotMixin.plot_neighborhood`."""
    check_option("radius", radius, _whole(radius, 1), "pass a whole number from 1")
    check_option("max_nodes", max_nodes, _whole(max_nodes, 2), "pass a whole number from 2")
    middle = node_number(tree, node, "node")
    shown = neighborhood(tree, middle, int(radius), int(max_nodes))
    axes = ax if ax is not None else _new_axes(shown, figsize)
    angle = _angles(shown)
    xy = polar_to_xy(angle, shown.depths / max(int(shown.depths.max()), 1))
    texts = [shortened(tree.names[v], max_label) for v in shown.nodes.tolist()]
    reach = _fit(axes, xy, max(map(len, texts)))
    _draw_lines(axes, tree, shown, xy)
    _draw_beyond(axes, shown, angle, xy, reach)
    coloring = colored_by(tree, rooted_layout(tree), color_by)
    colors = np.vstack([coloring.colors, np.tile(rgb(HIDDEN), (tree.n_hidden, 1))])[shown.nodes]
    inner = np.append(0, np.bincount(shown.parents[1:], minlength=len(texts))[1:]) > 0
    inner[0] = True
    draw_dots(axes, xy[1:], colors[1:], size=7, rim=0.8, zorder=3)
    draw_dots(axes, xy[:1], colors[:1], size=12, rim=1.5, rim_color=INK, zorder=4)
    _draw_names(axes, texts, inner, shown.nodes >= tree.n_observed, angle, xy, reach)
    _note(axes, shown)
    if title:
        axes.set_title(literal(title), color=INK, fontsize=13, fontweight="bold")
    axes.set_aspect("equal")
    axes.set_axis_off()
    return axes


def _whole(value: Any, least: int) -> bool:
    number = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return bool(number and value >= least)


def _new_axes(shown: Neighborhood, figsize: tuple[float, float] | None) -> Axes:
    side = float(np.clip(4.5 + 0.11 * len(shown.nodes), 5.5, 11.0))
    figure = new_figure(figsize or (side, side), pyplot=True)
    return figure.add_axes((0.02, 0.02, 0.96, 0.93))


def _angles(shown: Neighborhood) -> Floats:
    """An angle for each node: ends of branches one slot each, others amid what is beyond them."""
    m = len(shown.nodes)
    size = np.zeros(m)
    is_end = np.bincount(shown.parents[1:], minlength=m) == 0
    size[is_end] = 1
    for i in range(m - 1, 0, -1):
        size[shown.parents[i]] += size[i]
    start, cursor, angle = np.zeros(m), np.zeros(m), np.full(m, np.pi / 2)
    for i in range(1, m):
        above = shown.parents[i]
        start[i] = cursor[i] = cursor[above]
        cursor[above] += size[i]
        angle[i] = np.pi / 2 - 2 * np.pi * (start[i] + size[i] / 2) / size[0]
    return angle


def _fit(ax: Axes, xy: Floats, n_characters: int) -> float:
    """Set limits so that names of so many characters fit around the nodes; points in 1."""
    size = np.array(size_in_points(ax))
    room = size - 2 * (16 + CHARACTER * 9 * n_characters)
    low, high = xy.min(axis=0), xy.max(axis=0)
    reach = float(np.min(np.maximum(room, 0.45 * size) / np.maximum(high - low, 0.5)))
    left, bottom = (low + high - size / reach) / 2
    ax.set_xlim(left, left + size[0] / reach)
    ax.set_ylim(bottom, bottom + size[1] / reach)
    return reach


def _draw_lines(ax: Axes, tree: Tree, shown: Neighborhood, xy: Floats) -> None:
    """Straight edges, with their support in the middle."""
    for i in range(1, len(shown.nodes)):
        e, ends = int(shown.edges[i]), xy[[int(shown.parents[i]), i]]
        negative = tree.signs[e] < 0
        support = np.nan if tree.support is None else float(tree.support[e])
        width = NO_SUPPORT_WIDTH if np.isnan(support) else float(support_width(support))
        ax.plot(
            *ends.T,
            color=INK if negative else EDGE,
            lw=width,
            ls=DASHES if negative else "-",
            zorder=2,
            solid_capstyle="round",
        )
        leaf = tree.degree()[tree.edges[e]].min() == 1
        text = "−" if negative else ""
        if not np.isnan(support) and not (leaf and support == 1):
            text = f"{text} {support:.2f}".strip()
        if text:
            x, y = 0.42 * ends[0] + 0.58 * ends[1]
            ax.text(
                x,
                y,
                text,
                fontsize=7,
                color="#6a717c",
                ha="center",
                va="center",
                path_effects=halo(2.5),
                zorder=4,
            )


def _draw_beyond(ax: Axes, shown: Neighborhood, angle: Floats, xy: Floats, reach: float) -> None:
    """A dotted stub at nodes with more beyond them."""
    for i in np.flatnonzero(shown.beyond > 0).tolist():
        step = polar_to_xy(angle[i], np.asarray(10 / reach))
        ax.plot(
            *np.stack([xy[i], xy[i] + step]).T, color=HIDDEN, lw=1.2, ls=(0, (1, 1.2)), zorder=1
        )


def _draw_names(
    ax: Axes,
    texts: list[str],
    inner: Any,
    hidden: Any,
    angle: Floats,
    xy: Floats,
    reach: float,
) -> None:
    """Names beyond the ends of branches along the ray, above inner nodes horizontally."""
    for i, text in enumerate(texts):
        look: dict[str, Any] = {
            "color": HIDDEN if hidden[i] else INK,
            "zorder": 5,
            "path_effects": halo(2.5),
        }
        if inner[i]:
            weight = "bold" if i == 0 else "normal"
            x, y = xy[i] + np.array([0, 9 / reach])
            ax.text(
                x, y, literal(text), ha="center", va="bottom", fontsize=9, weight=weight, **look
            )
            continue
        degrees = float(np.degrees(angle[i])) % 360
        left = 90 < degrees < 270
        x, y = xy[i] + polar_to_xy(angle[i], np.asarray(12 / reach))
        ax.text(
            x,
            y,
            literal(text),
            rotation=degrees - 180 if left else degrees,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            fontsize=9,
            **look,
        )


def _note(ax: Axes, shown: Neighborhood) -> None:
    n_left = int(shown.beyond.sum())
    if not n_left:
        return
    left = counted(n_left, "more variable")
    far = counted(int(shown.depths.max()), "edge")
    draw_note(ax, [f"{left} beyond the dotted ends; nodes up to {far} away"])
