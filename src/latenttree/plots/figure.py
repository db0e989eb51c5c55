"""Matplotlib pictures of trees.

Colour says where in the tree a variable hangs: the hue follows the walk around the tree, so
near groups have near hues, and lightness alternates, so that neighbouring groups can be told
apart. Observed nodes are coloured dots with names, hidden nodes small and grey; the width
of an edge between hidden nodes is its support.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.plots import layout as _layout
from latenttree.plots.layout import FloatArray, Frame, IntArray
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Layout = Literal["radial", "top_down"]

INK = "#2b2f36"
HIDDEN = "#59606b"
EDGE = "#a3aab5"
FAINT = "#eef0f3"
MAX_NAME = 28  # characters of a name that are drawn
FONT_RANGE = (4.0, 10.0)  # points


def plot_tree(
    tree: Tree,
    layout: Layout = "radial",
    *,
    support: ArrayLike | None = None,
    lengths: bool = False,
    labels: bool = True,
    title: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a tree and return the axes.

    Parameters
    ----------
    layout : ``"radial"`` (names around a circle) or ``"top_down"`` (centre of the tree on top).
    support : one number in [0, 1] for each edge of ``tree.edges``, NaN where there is none;
        drawn as width.
    lengths : place nodes by edge lengths instead of by number of edges.
    labels : write the names of observed nodes. Where there is no room for all, each group
        shows its most typical member first, large groups before small ones.
    ax : where to draw; a new figure of fitting size otherwise.
    """
    if layout not in ("radial", "top_down"):
        raise ValueError(f"layout is {layout!r}; pass 'radial' or 'top_down'")
    hung = _layout.frame(tree, lengths=lengths)
    style = _style(tree, hung, support)
    axes = new_axes(tree, layout, pyplot=True) if ax is None else ax
    draw = _draw_radial if layout == "radial" else _draw_top_down
    draw(axes, tree, hung, style, lengths=lengths, labels=labels)
    if support is not None and tree.n_hidden > 1:
        _support_key(axes)
    if title:
        axes.set_title(title, color=INK, fontsize=13, fontweight="bold", pad=12)
    return axes


def plot_pixel_tree(
    tree: Tree,
    positions: ArrayLike,
    *,
    shape: tuple[int, int],
    support: ArrayLike | None = None,
    title: str | None = None,
    subtitle: str | None = None,
    figure: Figure | None = None,
) -> Figure:
    """A tree over pixels twice: over the image grid, and radially, in the same colours.

    Parameters
    ----------
    positions : ``(n_observed, 2)`` row and column of each observed pixel. A hidden node is
        drawn at the mean of its neighbours' positions.
    shape : rows and columns of the image; pixels that are not in the tree stay blank.
    """
    cells = _check_positions(tree, positions, shape)
    fig = figure if figure is not None else _new_figure((13.2, 6.9))
    left, right = fig.subplots(1, 2, width_ratios=[1, 1.12])
    fig.subplots_adjust(left=0.02, right=0.985, bottom=0.03, top=0.86, wspace=0.04)
    hung = _layout.frame(tree)
    style = _style(tree, hung, support)
    _draw_grid(left, tree, cells, shape, style)
    _draw_radial(right, tree, hung, style, lengths=False, labels=True)
    if title:
        fig.suptitle(title, x=0.03, y=0.975, ha="left", va="top", color=INK, size=17, weight="bold")
    if subtitle:
        fig.text(0.03, 0.915, subtitle, ha="left", va="top", color="#5d6470", size=11)
    return fig


# ---- colour and width ---------------------------------------------------------------


@dataclass(frozen=True)
class _Style:
    node_colors: FloatArray  # (n_nodes, 3); the group's colour, grey for hidden nodes
    edge_colors: FloatArray  # (E, 3)
    edge_widths: FloatArray  # (E,) points, for a tree of moderate size
    priority: IntArray  # observed nodes, the one to name first in front


def _style(tree: Tree, hung: Frame, support: ArrayLike | None) -> _Style:
    group = _layout.groups(tree, hung)
    colors = _group_colors(group, hung.slots)
    grey, ink = _rgb(HIDDEN), _rgb(EDGE)
    node_colors = np.vstack([colors, np.tile(grey, (tree.n_hidden, 1))])
    low, high = np.sort(tree.edges, axis=1).T
    # An edge between an observed and a hidden node takes the colour, softened.
    pendant = low < tree.n_observed
    edge_colors = np.tile(ink, (tree.n_edges, 1))
    edge_colors[pendant] = 0.75 * colors[low[pendant]] + 0.25
    inner = high[pendant] < tree.n_observed
    edge_colors[np.flatnonzero(pendant)[inner]] = ink
    widths = np.where(pendant, 1.1, 1.5) if support is None else _widths(tree, support)
    return _Style(node_colors, edge_colors, widths, _naming_order(tree, group))


def _widths(tree: Tree, support: ArrayLike) -> FloatArray:
    """0.4 to 3.4 points for support 0 to 1; 1.1 where there is none."""
    values = np.asarray(support, dtype=float)
    if values.shape != (tree.n_edges,):
        raise ValueError(
            f"support has shape {values.shape} for a tree of {tree.n_edges} edges; "
            "pass one value for each row of tree.edges"
        )
    return np.where(np.isnan(values), 1.1, 0.4 + 3.0 * np.clip(values, 0, 1))


def _group_colors(group: IntArray, slots: FloatArray) -> FloatArray:
    """One colour for each observed node, hue by the mean slot of its group, ``(p, 3)``."""
    _, member = np.unique(group, return_inverse=True)
    counts = np.bincount(member)
    where = np.bincount(member, weights=slots[: len(group)]) / counts
    rank = np.argsort(np.argsort(where, kind="stable"))
    hue = 2 * np.pi * where / len(group) + 0.45
    light = np.where(rank % 2 == 0, 0.61, 0.72)
    return _oklch(light, np.full(len(hue), 0.135), hue)[member]


def _oklch(light: FloatArray, chroma: FloatArray, hue: FloatArray) -> FloatArray:
    """sRGB in [0, 1] from Oklab lightness, chroma and hue: even steps look even."""
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    lms = np.stack(
        [
            light + 0.3963377774 * a + 0.2158037573 * b,
            light - 0.1055613458 * a - 0.0638541728 * b,
            light - 0.0894841775 * a - 1.2914855480 * b,
        ],
        axis=-1,
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(lms**3 @ to_rgb.T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def _rgb(color: str) -> FloatArray:
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def _naming_order(tree: Tree, group: IntArray) -> IntArray:
    """Observed nodes, most typical (shortest edge) of every group first, large groups first."""
    p = tree.n_observed
    reach = np.full(tree.n_nodes, np.inf)
    np.minimum.at(reach, tree.edges.ravel(), np.repeat(tree.lengths, 2))
    order = np.lexsort((reach[:p], group))
    _, first, size = np.unique(group[order], return_index=True, return_counts=True)
    place = np.arange(p) - np.repeat(first, size)  # 0 for the most typical of its group
    sizes = np.repeat(size, size)
    return order[np.lexsort((-sizes, place))]


# ---- the two layouts ----------------------------------------------------------------


def _draw_radial(
    ax: Axes, tree: Tree, hung: Frame, style: _Style, *, lengths: bool, labels: bool
) -> None:
    angle = _layout.angles(hung.slots, tree.n_observed)
    radius = _layout.radii(hung, lengths=lengths)
    xy = _layout.polar_to_xy(angle, radius)
    width, height = _size_in_points(ax)
    half = min(width, height) / 2
    reach, font = _fit_circle(tree, half) if labels else (half - 8, 0.0)
    ax.set_xlim(-width / 2 / reach, width / 2 / reach)
    ax.set_ylim(-height / 2 / reach, height / 2 / reach)
    _draw_edges(ax, tree, style, _radial_curves(tree, hung, angle, radius), reach)
    if labels:
        shown = _thin(angle[: tree.n_observed] % (2 * np.pi), style.priority, 1.12 * font / reach)
        _leaders(ax, angle[shown], radius[shown], style.node_colors[shown])
        _radial_names(ax, tree, shown, angle, font, gap=6 / reach)
    _draw_nodes(ax, tree, xy, style, 2 * np.pi * reach / tree.n_observed)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _draw_top_down(
    ax: Axes, tree: Tree, hung: Frame, style: _Style, *, lengths: bool, labels: bool
) -> None:
    xy = np.column_stack([hung.slots, -hung.depths])
    width, height = _size_in_points(ax)
    slot = width / (tree.n_observed + 1)
    font = float(np.clip(0.8 * slot, *FONT_RANGE))
    room = _longest(tree, font) + 10 if labels else 8
    depth = max(float(hung.depths.max()), 1e-12)
    scale = depth / max(height - room - 8, 0.3 * height)  # data units for a point
    ax.set_xlim(-0.5, tree.n_observed + 0.5)
    ax.set_ylim(-depth - room * scale, 8 * scale)
    _draw_edges(ax, tree, style, _top_down_curves(tree, hung, xy, lengths), height)
    if labels:
        shown = _thin(hung.slots[: tree.n_observed], style.priority, 1.12 * font / slot)
        _hanging_names(ax, tree, shown, xy, font)
    _draw_nodes(ax, tree, xy, style, slot)
    ax.set_axis_off()


def _radial_curves(tree: Tree, hung: Frame, angle: FloatArray, radius: FloatArray) -> FloatArray:
    """Edges that leave the parent outwards and enter the child outwards, ``(E, m, 2)``."""
    child, parent = _ends(tree, hung)
    # The middle of the disc has no angle of its own: its edges run straight.
    start = np.where(radius[parent] > 0, angle[parent], angle[child])
    # Turn within one level of the tree, then run out straight: long edges that swing slowly
    # would cross the branches between.
    level = 1 / max(float(np.max(_layout.hops(hung))), 1.0)
    middle = radius[parent] + np.minimum((radius[child] - radius[parent]) / 2, level)
    return _bezier(
        _layout.polar_to_xy(start, radius[parent]),
        _layout.polar_to_xy(start, middle),
        _layout.polar_to_xy(angle[child], middle),
        _layout.polar_to_xy(angle[child], radius[child]),
    )


def _top_down_curves(tree: Tree, hung: Frame, xy: FloatArray, lengths: bool) -> FloatArray:
    """Smooth edges, or right angles where heights are lengths to be read, ``(E, m, 2)``."""
    child, parent = _ends(tree, hung)
    a, b = xy[parent], xy[child]
    if lengths:
        return np.stack([a, np.column_stack([b[:, 0], a[:, 1]]), b], axis=1)
    middle = (a[:, 1] + b[:, 1]) / 2
    return _bezier(a, np.column_stack([a[:, 0], middle]), np.column_stack([b[:, 0], middle]), b)


def _ends(tree: Tree, hung: Frame) -> tuple[IntArray, IntArray]:
    """Child and parent of every edge."""
    a, b = tree.edges.T
    down = hung.parents[b] == a
    return np.where(down, b, a), np.where(down, a, b)


def _bezier(*controls: FloatArray) -> FloatArray:
    """Cubic curves ``(E, 24, 2)`` from four control points ``(E, 2)`` each."""
    t = np.linspace(0, 1, 24)[None, :, None]
    weights = ((1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t**2 * (1 - t), t**3)
    return np.asarray(sum(w * c[:, None, :] for w, c in zip(weights, controls, strict=True)))


# ---- the image grid -----------------------------------------------------------------


def _draw_grid(
    ax: Axes, tree: Tree, cells: FloatArray, shape: tuple[int, int], style: _Style
) -> None:
    from matplotlib.collections import LineCollection
    from matplotlib.patches import FancyBboxPatch

    n_rows, n_columns = shape
    colors = {
        (int(r), int(c)): tuple(0.42 * color + 0.58)
        for (r, c), color in zip(cells, style.node_colors, strict=False)
    }
    for row in range(n_rows):
        for column in range(n_columns):
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
    xy = _layout.anchored(tree, cells)[:, ::-1]
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
    _dots(ax, xy[: tree.n_observed], dark, size=7.9, rim=1.0, zorder=3)
    _dots(ax, xy[tree.n_observed :], "white", size=4.5, rim=1.1, rim_color=INK, zorder=4)
    ax.set_xlim(-0.6, n_columns - 0.4)
    ax.set_ylim(n_rows - 0.4, -0.6)
    ax.set_aspect("equal")
    ax.set_axis_off()


def _check_positions(tree: Tree, positions: ArrayLike, shape: tuple[int, int]) -> FloatArray:
    cells = np.asarray(positions, dtype=float)
    if cells.shape != (tree.n_observed, 2):
        raise ValueError(
            f"positions have shape {cells.shape}; pass one (row, column) for each of the "
            f"{tree.n_observed} observed nodes"
        )
    if cells.size and (cells.min() < 0 or np.any(cells.max(axis=0) >= shape)):
        raise ValueError(
            f"positions reach row {cells[:, 0].max():g} and column {cells[:, 1].max():g}; "
            f"shape {shape} is too small for them"
        )
    return cells


# ---- pieces of a drawing ------------------------------------------------------------


def _draw_edges(ax: Axes, tree: Tree, style: _Style, curves: FloatArray, reach: float) -> None:
    from matplotlib.collections import LineCollection

    crowd = float(np.clip(3 * reach / tree.n_observed / 4, 0.45, 1.0))
    ax.add_collection(
        LineCollection(
            list(curves),
            colors=style.edge_colors,
            linewidths=style.edge_widths * crowd,
            capstyle="round",
            zorder=2,
        )
    )


def _draw_nodes(ax: Axes, tree: Tree, xy: FloatArray, style: _Style, slot: float) -> None:
    """Observed dots nearly as wide as their slot (in points), hidden ones half as wide."""
    size = float(np.clip(0.55 * slot, 1.2, 7.0))
    p = tree.n_observed
    edge = 0.6 if size > 3 else 0.0
    _dots(ax, xy[p:], style.node_colors[p:], size=0.7 * size, rim=edge, zorder=3)
    _dots(ax, xy[:p], style.node_colors[:p], size=size, rim=edge, zorder=4)


def _dots(
    ax: Axes,
    xy: FloatArray,
    colors: FloatArray | str,
    *,
    size: float,
    rim: float,
    zorder: int,
    rim_color: str = "white",
) -> None:
    x, y = xy.T
    ax.scatter(x, y, s=size**2, c=colors, edgecolors=rim_color, linewidths=rim, zorder=zorder)


def _leaders(ax: Axes, angle: FloatArray, radius: FloatArray, colors: FloatArray) -> None:
    """Fine lines from nodes inside the circle to their names on it."""
    from matplotlib.collections import LineCollection

    inside = radius < 0.995
    ends = [_layout.polar_to_xy(angle[inside], r) for r in (radius[inside], np.ones(inside.sum()))]
    ax.add_collection(
        LineCollection(
            list(np.stack(ends, axis=1)), colors=colors[inside], lw=0.5, ls=(0, (1, 2.5)), zorder=1
        )
    )


def _radial_names(
    ax: Axes, tree: Tree, shown: IntArray, angle: FloatArray, font: float, gap: float
) -> None:
    """Names along the rays, turned on the left half so that none is upside down."""
    for node in shown:
        x, y = _layout.polar_to_xy(angle[node], np.asarray(1 + gap))
        degrees = float(np.degrees(angle[node])) % 360
        left = 90 < degrees < 270
        ax.text(
            x,
            y,
            _short(tree.names[node]),
            rotation=degrees - 180 if left else degrees,
            rotation_mode="anchor",
            ha="right" if left else "left",
            va="center",
            color=INK,
            fontsize=font,
        )


def _hanging_names(ax: Axes, tree: Tree, shown: IntArray, xy: FloatArray, font: float) -> None:
    """Names downwards below their nodes, with a halo where an observed node has edges there."""
    from matplotlib.patheffects import withStroke

    for node in shown:
        ax.annotate(
            _short(tree.names[node]),
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


def _support_key(ax: Axes) -> None:
    from matplotlib.lines import Line2D

    lines = [Line2D([], [], color=EDGE, lw=0.4 + 3.0 * s) for s in (0.5, 0.75, 1.0)]
    ax.legend(
        lines,
        ["0.5", "0.75", "1"],
        title="support",
        loc="upper right",
        frameon=False,
        fontsize=7.5,
        title_fontsize=7.5,
        labelcolor=INK,
        handlelength=1.6,
        borderaxespad=0.1,
    )


# ---- room ---------------------------------------------------------------------------


def new_axes(tree: Tree, layout: Layout, *, pyplot: bool = False) -> Axes:
    """Axes in a new figure whose size fits the tree.

    With ``pyplot`` the figure shows in notebooks and by ``pyplot.show``; without, it is freed
    as soon as nobody holds it.
    """
    p = tree.n_observed
    if layout == "radial":
        side = float(np.clip(5.0 + 0.035 * p, 5.5, 18.0))
        size = (side, side)
    else:
        depth = float(_layout.frame(tree).depths.max())
        size = (float(np.clip(0.16 * p, 5.0, 36.0)), float(np.clip(2.0 + 0.6 * depth, 3.5, 14.0)))
    return _new_figure(size, pyplot).add_axes((0.02, 0.02, 0.96, 0.92))


def _new_figure(size: tuple[float, float], pyplot: bool = False) -> Figure:
    import_matplotlib()
    if pyplot:
        from matplotlib.pyplot import figure

        return figure(figsize=size, facecolor="white")
    from matplotlib.figure import Figure

    return Figure(figsize=size, facecolor="white")


def import_matplotlib() -> Any:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which is not installed; pip install 'latenttree[plot]'"
        ) from error
    return matplotlib


def _size_in_points(ax: Axes) -> tuple[float, float]:
    box = ax.get_window_extent()
    inch = 72 / ax.figure.dpi
    return box.width * inch, box.height * inch


def _fit_circle(tree: Tree, half: float) -> tuple[float, float]:
    """Radius of the circle and size of the names (points) that fill ``half`` a side.

    Name and circle share the side: ``reach + gap + longest(font) = half``, where the font
    follows the arc of a slot. A few rounds settle it; names never take more than 60%.
    """
    reach, font = 0.8 * half, FONT_RANGE[1]
    for _ in range(6):
        font = float(np.clip(0.85 * 2 * np.pi * reach / tree.n_observed, *FONT_RANGE))
        reach = max(half - 8 - _longest(tree, font), 0.4 * half)
    return reach, font


def _longest(tree: Tree, font: float) -> float:
    """Width in points of the widest observed name."""
    from matplotlib.textpath import TextPath

    names = sorted((_short(name) for name in tree.observed_names), key=len)[-8:]
    widths = [TextPath((0, 0), n, size=font).get_extents().width for n in names if n.strip()]
    return max(widths, default=0.0)


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"


def _thin(places: FloatArray, priority: Sequence[int] | IntArray, gap: float) -> NDArray[np.int64]:
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
