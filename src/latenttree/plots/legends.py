"""What explains a picture: the key of support and signs, the legend of colours, notes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.plots.canvas import literal, shortened, widest
from latenttree.plots.colors import EDGE, INK, Coloring, color_map
from latenttree.plots.style import support_width

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = (0, (2.2, 1.4))
"""Of negative edges: told apart without colour."""

FONT = 7.5  # points, in figures of up to `PLAIN` inches; larger figures are shown smaller
PLAIN, LARGEST_FONT = 9.0, 15.0
MOST_CHARACTERS = 60  # of an entry
BAR = 70.0  # points that a colour bar takes, with its numbers


def font_in(inches: float) -> float:
    """Size in points of the font of legends in a figure of so many inches."""
    return float(np.clip(FONT * inches / PLAIN, FONT, LARGEST_FONT))


def _font(ax: Axes) -> float:
    box = ax.get_window_extent()
    return font_in(min(box.width, box.height) / ax.figure.dpi)


def legend_width(coloring: Coloring, inches: float) -> float:
    """Points that a legend beside a picture of `inches` takes; 0 where colours need none."""
    font = font_in(inches) + 1
    if coloring.scale:
        return BAR
    if not coloring.entries:
        return 0.0
    texts = [shortened(text, MOST_CHARACTERS) for text, _ in coloring.entries]
    return widest([*texts, coloring.title], font) + 5 * font


def draw_key(ax: Axes, *, support: bool, signs: bool, above: bool = False) -> None:
    """The widths of three values of the support, and the dashes of negative edges: in the upper
    right corner, or in a line above the axes."""
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
        **_placed("right", above, len(texts)),
        **_look(_font(ax)),
        handlelength=2.2 if signs else 1.6,
    )


def _look(font: float) -> dict[str, Any]:
    plain = {"frameon": False, "labelcolor": INK, "borderaxespad": 0.1}
    return plain | {"fontsize": font, "title_fontsize": font}


def _placed(side: str, above: bool, n_columns: int) -> dict[str, Any]:
    if not above:
        return {"loc": f"upper {side}"}
    at = (1.0 if side == "right" else 0.0, 1.0)
    return {"loc": f"lower {side}", "bbox_to_anchor": at, "ncols": n_columns}


def draw_colors(ax: Axes, coloring: Coloring, *, beside: bool, above: bool = False) -> None:
    """The legend of colours, or the bar of a scale: beside or above the axes, or inside."""
    if coloring.scale:
        _draw_bar(ax, coloring, beside=beside)
        return
    if not coloring.entries:
        return
    from matplotlib.lines import Line2D

    marks = [
        Line2D([], [], ls="", marker="o", ms=6, color=color, markeredgewidth=0)
        for _, color in coloring.entries
    ]
    texts = [literal(shortened(text, MOST_CHARACTERS)) for text, _ in coloring.entries]
    place = _placed("left", above, _columns(ax, coloring) if above else 1)
    if beside:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)}
    look = _look(_font(ax) + 1)
    key = ax.get_legend()
    ax.legend(
        marks, texts, title=literal(coloring.title) or None, **place, **look, handletextpad=0.2
    )
    colors = ax.get_legend()
    if key is not None and colors is not None:
        ax.add_artist(colors)
        ax.legend_ = key


def _columns(ax: Axes, coloring: Coloring) -> int:
    """Entries that fit side by side above the axes, with room for the key."""
    inch = ax.get_window_extent().width / ax.figure.dpi
    return _columns_in(coloring, 72 * inch)


def _columns_in(coloring: Coloring, width: float) -> int:
    texts = [shortened(text, MOST_CHARACTERS) for text, _ in coloring.entries]
    return max(1, int((width - 180) / (widest(texts, FONT + 1) + 30)))


def rows_above(coloring: Coloring, width: float) -> int:
    """Lines of the legend above axes of `width` points."""
    if not coloring.entries:
        return 2
    rows = -(-len(coloring.entries) // _columns_in(coloring, width))
    return max(2, rows + bool(coloring.title))


def _draw_bar(ax: Axes, coloring: Coloring, *, beside: bool) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    assert coloring.scale is not None
    name, low, high = coloring.scale
    values = ScalarMappable(Normalize(low, high), color_map(name))
    place = (1.03, 0.33, 0.02, 0.34) if beside else (0.0, 0.97, 0.22, 0.02)
    inset = ax.inset_axes(place)
    bar = ax.figure.colorbar(values, cax=inset, orientation="vertical" if beside else "horizontal")
    bar.outline.set_visible(False)
    font = _font(ax)
    inset.tick_params(labelsize=font, length=2, color=INK, labelcolor=INK)
    inset.set_title(literal(coloring.title), fontsize=font + 1, color=INK, loc="left")


def draw_note(ax: Axes, sentences: Sequence[str]) -> None:
    """Small grey sentences in the lower left corner."""
    if sentences:
        ax.text(
            0.0,
            0.0,
            "\n".join(sentences),
            transform=ax.transAxes,
            ha="left",
            va="bottom",
            fontsize=_font(ax),
            color="#7a818c",
        )
