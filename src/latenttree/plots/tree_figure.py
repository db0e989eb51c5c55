"""A tree as a picture: radial, or from the top down."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats
from latenttree.errors import DataError, Option, Text
from latenttree.plots.canvas import longest_name, new_figure, size_in_points
from latenttree.plots.layout import (
    RootedLayout,
    angles,
    children_and_parents,
    polar_to_xy,
    radii,
    rooted_layout,
)
from latenttree.plots.marks import (
    draw_edges,
    draw_hanging_names,
    draw_key,
    draw_leaders,
    draw_nodes,
    draw_radial_names,
    names_that_fit,
)
from latenttree.plots.style import INK, TreeStyle, tree_style
from latenttree.tree import Tree
from latenttree.tree.rooting import levels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TreeLayout = Literal["radial", "top_down"]

FONT_RANGE = (4.0, 10.0)  # points


def plot_tree(
    tree: Tree,
    layout: TreeLayout = "radial",
    *,
    support: ArrayLike | None = None,
    lengths: bool = False,
    labels: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree and return the axes; negative edges are dashed.

    Parameters
    ----------
    layout : ``"radial"`` (names around a circle) or ``"top_down"`` (centre of the tree on top).
    support : one number in [0, 1] for each edge of ``tree.edges``, NaN where there is none;
        drawn as width. By default the tree's own, where it has any.
    lengths : place nodes by edge lengths instead of by number of edges.
    labels : write the names of observed nodes. Where there is no room for all, each group
        shows its most typical member first, large groups before small ones.
    ax : where to draw; a new figure of fitting size otherwise.
    """
    if layout not in ("radial", "top_down"):
        what = Text(Option("layout"), f" is {layout!r}")
        raise DataError(what, "pass 'radial' or 'top_down'", value=layout, option="layout")
    rooted = rooted_layout(tree, lengths=lengths)
    known = tree.support if support is None else support
    style = tree_style(tree, rooted, known)
    axes = new_axes(tree, layout, pyplot=True) if ax is None else ax
    draw = draw_radial if layout == "radial" else _draw_top_down
    draw(axes, tree, rooted, style, lengths=lengths, labels=labels)
    has_widths, has_signs = known is not None and tree.n_hidden > 1, bool((tree.signs < 0).any())
    if has_widths or has_signs:
        draw_key(axes, support=has_widths, signs=has_signs)
    if title:
        axes.set_title(title, color=INK, fontsize=13, fontweight="bold", pad=12)
    return axes


def new_axes(tree: Tree, layout: TreeLayout, *, pyplot: bool = False) -> Axes:
    """Axes in a new figure whose size fits the tree.

    With ``pyplot`` the figure shows in notebooks and by ``pyplot.show``; without, it is freed
    as soon as nobody holds it.
    """
    p = tree.n_observed
    if layout == "radial":
        side = float(np.clip(5.0 + 0.035 * p, 5.5, 18.0))
        size = (side, side)
    else:
        depth = float(rooted_layout(tree).depths.max())
        size = (float(np.clip(0.16 * p, 5.0, 36.0)), float(np.clip(2.0 + 0.6 * depth, 3.5, 14.0)))
    return new_figure(size, pyplot).add_axes((0.02, 0.02, 0.96, 0.92))


# ---- the two layouts ----------------------------------------------------------------


def draw_radial(
    ax: Axes, tree: Tree, rooted: RootedLayout, style: TreeStyle, *, lengths: bool, labels: bool
) -> None:
    """Draw a tree in the unit disc, the names of observed nodes around it."""
    angle = angles(rooted.slots, tree.n_observed)
    radius = radii(rooted, lengths=lengths)
    xy = polar_to_xy(angle, radius)
    width, height = size_in_points(ax)
    half = min(width, height) / 2
    reach, font = _fit_circle(tree, half) if labels else (half - 8, 0.0)
    ax.set_xlim(-width / 2 / reach, width / 2 / reach)
    ax.set_ylim(-height / 2 / reach, height / 2 / reach)
    draw_edges(ax, tree, style, _radial_curves(tree, rooted, angle, radius), reach)
    if labels:
        shown = names_that_fit(
            angle[: tree.n_observed] % (2 * np.pi), style.priority, 1.12 * font / reach
        )
        draw_leaders(ax, angle[shown], radius[shown], style.node_colors[shown])
        draw_radial_names(ax, tree, shown, angle, font, gap=6 / reach)
    draw_nodes(ax, tree, xy, style, 2 * np.pi * reach / tree.n_observed)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _draw_top_down(
    ax: Axes, tree: Tree, rooted: RootedLayout, style: TreeStyle, *, lengths: bool, labels: bool
) -> None:
    xy = np.column_stack([rooted.slots, -rooted.depths])
    width, height = size_in_points(ax)
    slot = width / (tree.n_observed + 1)
    font = float(np.clip(0.8 * slot, *FONT_RANGE))
    room = longest_name(tree, font) + 10 if labels else 8
    depth = max(float(rooted.depths.max()), 1e-12)
    scale = depth / max(height - room - 8, 0.3 * height)  # data units for a point
    ax.set_xlim(-0.5, tree.n_observed + 0.5)
    ax.set_ylim(-depth - room * scale, 8 * scale)
    draw_edges(ax, tree, style, _top_down_curves(tree, rooted, xy, lengths), height)
    if labels:
        shown = names_that_fit(rooted.slots[: tree.n_observed], style.priority, 1.12 * font / slot)
        draw_hanging_names(ax, tree, shown, xy, font)
    draw_nodes(ax, tree, xy, style, slot)
    ax.set_axis_off()


def _fit_circle(tree: Tree, half: float) -> tuple[float, float]:
    """Radius of the circle and size of the names (points) that fill ``half`` a side.

    Name and circle share the side: ``reach + gap + longest(font) = half``, where the font
    follows the arc of a slot. A few rounds settle it; names never take more than 60%.
    """
    reach, font = 0.8 * half, FONT_RANGE[1]
    for _ in range(6):
        font = float(np.clip(0.85 * 2 * np.pi * reach / tree.n_observed, *FONT_RANGE))
        reach = max(half - 8 - longest_name(tree, font), 0.4 * half)
    return reach, font


# ---- curves -------------------------------------------------------------------------


def _radial_curves(tree: Tree, rooted: RootedLayout, angle: Floats, radius: Floats) -> Floats:
    """Edges that leave the parent outwards and enter the child outwards, ``(E, m, 2)``."""
    child, parent = children_and_parents(tree, rooted.parents)
    # The middle of the disc has no angle of its own: its edges run straight.
    start = np.where(radius[parent] > 0, angle[parent], angle[child])
    # Turn within one level of the tree, then run out straight: long edges that swing slowly
    # would cross the branches between.
    level = 1 / max(*levels(tree.rooted(rooted.root)), 1)
    middle = radius[parent] + np.minimum((radius[child] - radius[parent]) / 2, level)
    return _bezier(
        polar_to_xy(start, radius[parent]),
        polar_to_xy(start, middle),
        polar_to_xy(angle[child], middle),
        polar_to_xy(angle[child], radius[child]),
    )


def _top_down_curves(tree: Tree, rooted: RootedLayout, xy: Floats, lengths: bool) -> Floats:
    """Smooth edges, or right angles where heights are lengths to be read, ``(E, m, 2)``."""
    child, parent = children_and_parents(tree, rooted.parents)
    a, b = xy[parent], xy[child]
    if lengths:
        return np.stack([a, np.column_stack([b[:, 0], a[:, 1]]), b], axis=1)
    middle = (a[:, 1] + b[:, 1]) / 2
    return _bezier(a, np.column_stack([a[:, 0], middle]), np.column_stack([b[:, 0], middle]), b)


def _bezier(*controls: Floats) -> Floats:
    """Cubic curves ``(E, 24, 2)`` from four control points ``(E, 2)`` each."""
    t = np.linspace(0, 1, 24)[None, :, None]
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return np.asarray(sum(w * c[:, None, :] for w, c in zip(weights, controls, strict=True)))
