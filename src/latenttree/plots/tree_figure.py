"""A tree as a picture: radial, or from the top down."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError, Option, Text
from latenttree.phrases import counted
from latenttree.plots.canvas import (
    check_figsize,
    check_picture_path,
    literal,
    new_figure,
    save_figure,
    size_in_points,
    widest,
)
from latenttree.plots.colors import INK, Coloring, colored_by
from latenttree.plots.labels import (
    CHARACTER,
    Boxes,
    chosen_nodes,
    names_that_fit,
    node_number,
    node_texts,
)
from latenttree.plots.layout import children_and_parents, rooted_layout
from latenttree.plots.legends import (
    draw_colors,
    draw_key,
    draw_note,
    font_in,
    legend_width,
    rows_above,
)
from latenttree.plots.marks import (
    draw_edges,
    draw_hanging_names,
    draw_inner_names,
    draw_leaders,
    draw_nodes,
    draw_radial_names,
)
from latenttree.plots.parts import MOST_DRAWN, without_small_parts
from latenttree.plots.style import TreeStyle, tree_style
from latenttree.tree import Tree
from latenttree.tree.layout import RootedLayout, angles, polar_to_xy, radii

if TYPE_CHECKING:
    from matplotlib.axes import Axes

TreeLayout = Literal["radial", "top_down"]

FONT_RANGE = (4.0, 10.0)  # points
INNER_FONT_RANGE = (6.0, 10.0)
INNER = 0.62
"""Names of observed nodes nearer to the middle than this stand beside them, where they fit."""
NOTE_LINE = 11.0  # points


@dataclass(frozen=True)
class TreePicture:
    """A tree with everything that is to be drawn of it."""

    tree: Tree
    rooted: RootedLayout
    style: TreeStyle
    texts: tuple[str, ...]  # of all nodes
    labels: bool = True
    hidden_labels: bool = False
    lengths: bool = False

    @property
    def observed_texts(self) -> tuple[str, ...]:
        """Texts of the observed nodes."""
        return self.texts[: self.tree.n_observed]


def plot_tree(
    tree: Tree,
    layout: TreeLayout = "radial",
    *,
    color_by: Any = None,
    labels: bool | Mapping[str, str] | Callable[[str], str] = True,
    support: bool | ArrayLike = True,
    hidden_labels: bool = False,
    root: str | int | None = None,
    highlight: Any = None,
    figsize: tuple[float, float] | None = None,
    max_label: int = 28,
    lengths: bool = False,
    min_support: float = 0.0,
    independent: bool | None = None,
    title: str | None = None,
    ax: Axes | None = None,
    path: str | os.PathLike[str] | None = None,
) -> Axes:
    """Draw a tree and return the axes; negative edges are dashed.

    Parameters
    ----------
    layout : ``"radial"`` (names around a circle) or ``"top_down"`` (the root on top).
    color_by : labels of the variables, as a Series or mapping from their names, or a sequence in
        their order. Categories get colours and a legend, numbers a colour bar. A whole number: so
        many groups of `Tree.cut`. None: neighbouring branches have similar hues.
    labels : whether to write the names of observed nodes; or what to write instead, as a mapping
        or function of names. Where there is no room for all, each group shows its most typical
        member first, large groups before small ones.
    support : whether the width of an edge is its support; or one number in [0, 1] for each edge of
        ``tree.edges``, NaN where there is none.
    hidden_labels : write the names of hidden nodes too, where they fit.
    root : the node in the middle, or on top; by default the centre of the tree.
    highlight : nodes that stand out, by name or number, with the edges between them.
    figsize : width and height in inches of a new figure; by default as the tree needs.
    max_label : most characters of a name.
    lengths : place nodes by edge lengths instead of by number of edges.
    min_support : inner edges of less support are contracted; a note says how many.
    independent : whether to draw variables that depend on no other, or on a single one; by default
        in trees of up to 200 variables.
    title : above the picture.
    ax : where to draw; a new figure otherwise.
    path : also write the figure to this file: .png, .svg or .pdf.
    """
    _check_layout(layout)
    check_figsize(figsize)
    check_picture_path(path)
    given = None if isinstance(support, bool | np.bool_) else np.asarray(support, dtype=float)
    whole = _with_support(tree, given)
    tree, notes = _shown(whole, min_support, independent)
    rooted = rooted_layout(
        tree, lengths=lengths, root=None if root is None else node_number(tree, root, "root")
    )
    coloring = colored_by(tree, rooted, color_by)
    chosen = chosen_nodes(tree, highlight, "highlight")
    widths = None if support is False else tree.support
    style = tree_style(tree, rooted, coloring, widths, chosen)
    texts = node_texts(tree, labels, max_label)
    picture = TreePicture(tree, rooted, style, texts, labels is not False, hidden_labels, lengths)
    axes = ax or new_axes(tree, layout, coloring, figsize, title=bool(title), pyplot=True)
    draw = draw_radial if layout == "radial" else draw_top_down
    draw(axes, picture, notes)
    _explain(axes, picture, coloring, layout, widths is not None, own=ax is None)
    if title:
        pad = 12 if layout == "radial" else 12 + NOTE_LINE * _rows(axes, coloring)
        font = 1.7 * font_in(min(size_in_points(axes)) / 72)
        axes.set_title(literal(title), color=INK, fontsize=font, fontweight="bold", pad=pad)
    save_figure(axes.figure, path)  # type: ignore[arg-type]
    return axes


def _check_layout(layout: str) -> None:
    if layout not in ("radial", "top_down"):
        what = Text(Option("layout"), f" is {layout!r}")
        raise DataError(what, "pass 'radial' or 'top_down'", value=layout, option="layout")


def _with_support(tree: Tree, support: Floats | None) -> Tree:
    """The tree with other support, if there is any."""
    if support is None:
        return tree
    if support.shape != (tree.n_edges,):
        what = f"support has shape {support.shape} for {tree.n_edges} edges"
        remedy = "pass True, False, or one value for each row of tree.edges"
        raise DataError(what, remedy, value=support.shape, option="support")
    return tree.with_evidence(support=support)


def _shown(tree: Tree, min_support: float, independent: bool | None) -> tuple[Tree, list[str]]:
    """The part of a tree that is drawn, and sentences on what is not."""
    notes = []
    whole = tree
    if not independent:
        whole = without_small_parts(tree, MOST_DRAWN if independent is None else 0)
    n = tree.n_observed - whole.n_observed
    if n:
        notes.append(f"{counted(n, 'variable')} that depend on none or one other left out")
    if whole.support is None or not min_support:
        return whole, notes
    shown = whole.collapse(min_support)
    n = whole.n_edges - shown.n_edges
    if n:
        notes.append(f"{counted(n, 'edge')} of support below {min_support:g} contracted")
    return shown, notes


def _explain(
    ax: Axes,
    picture: TreePicture,
    coloring: Coloring,
    layout: TreeLayout,
    support: bool,
    *,
    own: bool,
) -> None:
    """The key of widths and dashes, and the legend of colours."""
    above = layout == "top_down" and own
    has_widths = support and picture.tree.n_hidden > 1
    has_signs = bool((picture.tree.signs < 0).any())
    if has_widths or has_signs:
        draw_key(ax, support=has_widths, signs=has_signs, above=above)
    draw_colors(ax, coloring, beside=layout == "radial" and own, above=above)


def new_axes(
    tree: Tree,
    layout: TreeLayout,
    coloring: Coloring | None = None,
    figsize: tuple[float, float] | None = None,
    *,
    title: bool = False,
    pyplot: bool = False,
) -> Axes:
    """Axes in a new figure whose size fits the tree and the legend of its colours.

    With ``pyplot`` the figure shows in notebooks and by ``pyplot.show``; without, it is freed
    as soon as nobody holds it.
    """
    width, height = figsize or _natural_size(tree, layout)
    beside = 0.0
    if coloring is not None and layout == "radial":
        beside = legend_width(coloring, min(width, height)) / 72
    total = width if figsize else width + beside
    figure = new_figure((total, height), pyplot)
    if layout == "radial":
        return figure.add_axes((0.02, 0.02, 0.96 - beside / total, 0.92))
    rows = 2 if coloring is None else rows_above(coloring, 72 * width)
    band = (rows * NOTE_LINE / 72 + 0.2 + 0.3 * title) / height
    return figure.add_axes((0.02, 0.02, 0.96, 0.97 - band))


def _natural_size(tree: Tree, layout: TreeLayout) -> tuple[float, float]:
    """Inches that a tree needs."""
    p = tree.n_observed
    if layout == "radial":
        side = float(np.clip(5.0 + 0.035 * p, 5.5, 18.0))
        return side, side
    depth = float(rooted_layout(tree).depths.max())
    width = float(np.clip(0.15 * p, 5.0, 0.12 * max(p, 300)))
    return min(width, 60.0), float(np.clip(2.2 + 0.45 * depth, 3.5, 14.0))


def _rows(ax: Axes, coloring: Coloring) -> int:
    return rows_above(coloring, size_in_points(ax)[0])


# ---- the two layouts ----------------------------------------------------------------


def draw_radial(ax: Axes, picture: TreePicture, notes: Sequence[str] = ()) -> None:
    """Draw a tree in the unit disc, the names of observed nodes around it."""
    tree, rooted, style = picture.tree, picture.rooted, picture.style
    angle = angles(rooted.slots, tree.n_observed)
    radius = radii(rooted, lengths=picture.lengths)
    xy = polar_to_xy(angle, radius)
    width, height = size_in_points(ax)
    half = min(width, height) / 2
    reach, font = _fit_circle(picture, half) if picture.labels else (half - 8, 7.0)
    ax.set_xlim(-width / 2 / reach, width / 2 / reach)
    ax.set_ylim(-height / 2 / reach, height / 2 / reach)
    draw_edges(ax, tree, style, _radial_curves(tree, rooted, angle, radius), reach)
    inner_font = float(np.clip(1.5 * font, *INNER_FONT_RANGE))
    inner, boxes = _inner_names(picture, xy * reach, radius, inner_font)
    n_named = len(inner)
    if picture.labels:
        rest = style.priority[~np.isin(style.priority, inner)]
        places = angle[: tree.n_observed] % (2 * np.pi)
        shown = names_that_fit(places, rest, 1.12 * font / reach)
        draw_leaders(ax, angle[shown], radius[shown], style.node_colors[shown])
        draw_radial_names(ax, picture.texts, shown, angle, font, 6 / reach, style)
        n_named += len(shown)
    hidden = _hidden_names(picture, xy * reach, boxes, inner_font)
    draw_inner_names(ax, picture.texts, [*inner, *hidden], xy, inner_font, style, tree.n_observed)
    draw_nodes(ax, tree, xy, style, 2 * np.pi * reach / tree.n_observed)
    draw_note(ax, [*notes, *_names_left_out(picture, n_named, len(hidden))])
    ax.set_aspect("equal")
    ax.set_axis_off()


def draw_top_down(ax: Axes, picture: TreePicture, notes: Sequence[str] = ()) -> None:
    """Draw a tree from its root on top, the names of observed nodes below them."""
    tree, rooted, style = picture.tree, picture.rooted, picture.style
    xy = np.column_stack([rooted.slots, -rooted.depths])
    width, height = size_in_points(ax)
    slot = width / (tree.n_observed + 1)
    font = float(np.clip(0.8 * slot, *FONT_RANGE))
    scale = _depth_of_a_point(picture, height, font)
    ax.set_xlim(-0.5, tree.n_observed + 0.5)
    ax.set_ylim((8 - height) * scale, 8 * scale)
    draw_edges(ax, tree, style, _top_down_curves(tree, rooted, xy, picture.lengths), height)
    shown: Ints = np.empty(0, dtype=np.int64)
    if picture.labels:
        shown = names_that_fit(rooted.slots[: tree.n_observed], style.priority, 1.12 * font / slot)
        draw_hanging_names(ax, picture.texts, shown, xy, font, style)
    in_points = xy / np.array([(tree.n_observed + 1) / width, scale])
    hidden = _hidden_names(picture, in_points, Boxes.empty(), font)
    draw_inner_names(ax, picture.texts, hidden, xy, font, style, tree.n_observed)
    draw_nodes(ax, tree, xy, style, slot)
    draw_note(ax, [*notes, *_names_left_out(picture, len(shown), len(hidden))])
    ax.set_axis_off()


def _depth_of_a_point(picture: TreePicture, height: float, font: float) -> float:
    """Depth for each point of a height into which all nodes fit, the names below them too."""
    depths, p = picture.rooted.depths, picture.tree.n_observed
    room = np.full(len(depths), 8 + 2 * NOTE_LINE)
    if picture.labels:
        room[:p] += 10 + CHARACTER * 1.1 * font * np.array([len(t) for t in picture.observed_texts])
    left = np.maximum(height - 8 - room, 0.3 * height)
    return max(float((depths / left).max()), 1e-12)


def _fit_circle(picture: TreePicture, half: float) -> tuple[float, float]:
    """Radius of the circle and size of the names (points) that fill ``half`` a side.

    Name and circle share the side: ``reach + gap + longest(font) = half``, where the font
    follows the arc of a slot. A few rounds settle it; names never take more than 60%.
    """
    reach, font = 0.8 * half, FONT_RANGE[1]
    for _ in range(6):
        font = float(np.clip(0.85 * 2 * np.pi * reach / picture.tree.n_observed, *FONT_RANGE))
        reach = max(half - 8 - widest(picture.observed_texts, font), 0.4 * half)
    return reach, font


# ---- names inside the tree ----------------------------------------------------------


def _inner_names(
    picture: TreePicture, points: Floats, radius: Floats, font: float
) -> tuple[list[int], Boxes]:
    """Observed nodes deep inside a radial tree, whose names fit beside them."""
    boxes, p = Boxes.empty(), picture.tree.n_observed
    if not picture.labels:
        return [], boxes
    degree = picture.tree.degree()
    deep = [v for v in range(p) if radius[v] < INNER and degree[v] > 1]
    deep.sort(key=lambda v: -int(picture.rooted.spans[v]))
    above = np.array([0.0, 0.8 * font])
    return [v for v in deep if boxes.place(points[v] + above, picture.texts[v], font)], boxes


def _hidden_names(picture: TreePicture, points: Floats, boxes: Boxes, font: float) -> list[int]:
    """Hidden nodes whose names are to be drawn and fit: highlighted ones and, where asked for,
    all, those with the most variables beyond them first."""
    p, n = picture.tree.n_observed, picture.tree.n_nodes
    chosen = [v for v in sorted(picture.style.highlight) if v >= p]
    if picture.hidden_labels:
        rest = [v for v in range(p, n) if v not in picture.style.highlight]
        chosen += sorted(rest, key=lambda v: -int(picture.rooted.spans[v]))
    above = np.array([0.0, 0.8 * font])
    return [v for v in chosen if boxes.place(points[v] + above, picture.texts[v], font)]


def _names_left_out(picture: TreePicture, n_named: int, n_hidden: int) -> list[str]:
    """How many names there is no room for, in sentences."""
    p, sentences = picture.tree.n_observed, []
    if picture.labels and n_named < p:
        sentences.append(f"{n_named:,} of {p:,} names fit")
    if picture.hidden_labels and n_hidden < picture.tree.n_hidden:
        sentences.append(f"{n_hidden:,} of {picture.tree.n_hidden:,} hidden names fit")
    return sentences


# ---- curves -------------------------------------------------------------------------


def _radial_curves(tree: Tree, rooted: RootedLayout, angle: Floats, radius: Floats) -> Floats:
    """Edges that leave the parent outwards and enter the child outwards, ``(E, m, 2)``."""
    child, parent = children_and_parents(tree, rooted.parents)
    # The middle of the disc has no angle of its own: its edges run straight.
    start = np.where(radius[parent] > 0, angle[parent], angle[child])
    # Turn within one level of the tree, then run out straight: long edges that swing slowly
    # would cross the branches between.
    n_levels = max(_n_levels(rooted), 1)
    middle = radius[parent] + np.minimum((radius[child] - radius[parent]) / 2, 1 / n_levels)
    return _bezier(
        polar_to_xy(start, radius[parent]),
        polar_to_xy(start, middle),
        polar_to_xy(angle[child], middle),
        polar_to_xy(angle[child], radius[child]),
    )


def _n_levels(rooted: RootedLayout) -> int:
    """Most edges between the root and a node."""
    level = np.zeros(len(rooted.order), dtype=np.int64)
    for v in rooted.order[1:].tolist():
        level[v] = level[rooted.parents[v]] + 1
    return int(level.max())


def _top_down_curves(tree: Tree, rooted: RootedLayout, xy: Floats, lengths: bool) -> Floats:
    """Smooth edges, or right angles where heights are lengths to be read, ``(E, m, 2)``."""
    child, parent = children_and_parents(tree, rooted.parents)
    a, b = xy[parent], xy[child]
    if lengths:
        return np.stack([a, np.column_stack([b[:, 0], a[:, 1]]), b], axis=1)
    middle = (a[:, 1] + b[:, 1]) / 2
    return _bezier(a, np.column_stack([a[:, 0], middle]), np.column_stack([b[:, 0], middle]), b)


def _bezier(*controls: Floats) -> Floats:
    """Cubic curves ``(E, m, 2)`` from four control points ``(E, 2)`` each, coarser where there are
    thousands of them."""
    t = np.linspace(0, 1, 24 if len(controls[0]) < 3000 else 10)[None, :, None]
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return np.asarray(sum(w * c[:, None, :] for w, c in zip(weights, controls, strict=True)))
