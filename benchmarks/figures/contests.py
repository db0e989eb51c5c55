"""Figures of the contests with rivals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures.style import (
    INK,
    OURS,
    PAPER,
    SOFT,
    dress,
    headline,
    new_figure,
    plain_ticks,
)
from benchmarks.rivals.own import OURS as OUR_NAME

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Record = Mapping[str, Any]

OTHERS = "#9aa3b1"
LEAST_SECONDS = 0.003
"""Where the axis of time begins; what is faster stands there."""

KEY = (
    "Black tick: after the contraction that is best knowing the truth.\n"
    "*: is given sizes or depth of the true tree. Dotted: limit of time."
)
COLOURS = {OUR_NAME: OURS, "CLRG-EM": "#e0a030", "Chow-Liu": "#7a8494"}
SHORT = {"time": "out of time", "memory": "out of memory", "not tried": "out of time with fewer"}
"""What a figure says where a method has no result, by its state."""


def why(row: Row) -> str:
    """A few words on a method without a result."""
    if row["state"] == "done":
        return f"is given the {row['given']}" if row["given"] else "no tree"
    return SHORT.get(row["state"], str(row["state"]))


# ---- known trees ---------------------------------------------------------------------------------


def rivals_figure(record: Record, order: Sequence[str]) -> Figure:
    """A column for each set of data: above the distance to the true tree, below the time."""
    works = list(dict.fromkeys(row["work"] for row in record["rows"]))
    known = {row["rival"] for row in record["rows"]} - {"independent"}  # which has no tree
    names = [name for name in order if name in known]
    height = 0.27 * len(names) + 0.5
    figure = new_figure(3.0 + 2.3 * len(works), 2 * height + 1.6)
    axes = figure.subplots(2, len(works), sharey=True, squeeze=False, sharex="row")
    for i, work in enumerate(works):
        rows = {row["rival"]: row for row in record["rows"] if row["work"] == work}
        _draw_distances(axes[0, i], rows, names, work)
        _draw_seconds(axes[1, i], rows, names, record["limit"])
    axes[0, 0].set_xlim(-0.015, 1.16)
    figure.supxlabel(KEY, fontsize=9, color=SOFT, x=0.01, ha="left")
    headline(figure, record)
    return figure


def _places(ax: Axes, names: Sequence[str]) -> dict[str, int]:
    places = {name: len(names) - 1 - i for i, name in enumerate(names)}
    ax.set_yticks(list(places.values()), list(places))
    ax.set_ylim(-0.7, len(names) - 0.3)
    return places


def _draw_distances(ax: Axes, rows: Mapping[str, Row], names: Sequence[str], title: str) -> None:
    """A bar to the distance as it is, a tick where the best contraction would bring it."""
    places = _places(ax, names)
    dress(ax, title, "Robinson-Foulds to the truth", grid="x")
    for name, y in places.items():
        row = rows.get(name)
        if row is None or row["rf"] is None:
            _say(ax, y, row)
            continue
        ours = name == OUR_NAME
        ax.barh(y, row["rf"], height=0.62, color=OURS if ours else OTHERS)
        text = f"{row['rf']:.2f}" + ("*" if row["given"] else "")
        ax.text(row["rf"] + 0.02, y, text, va="center", fontsize=8, color=INK,
                fontweight="bold" if ours else "normal")  # fmt: skip
        if row["rf_best"] is not None and row["rf_best"] < row["rf"] - 1e-9:
            ax.plot([row["rf_best"]] * 2, [y - 0.31, y + 0.31], color=INK, lw=1.6)
    _finish(ax)


def _draw_seconds(ax: Axes, rows: Mapping[str, Row], names: Sequence[str], limit: float) -> None:
    """A point on a logarithmic axis, the limit of time beside it."""
    places = _places(ax, names)
    dress(ax, "", "seconds", grid="x")
    ax.set_xscale("log")
    ax.set_xlim(LEAST_SECONDS, 3 * limit)
    ax.axvline(limit, color=PAPER, lw=1, ls=":")
    for name, y in places.items():
        row = rows.get(name)
        if row is None or not row["seconds"]:
            _say(ax, y, row)
            continue
        ours, at = name == OUR_NAME, max(row["seconds"], 1.3 * LEAST_SECONDS)
        ax.plot([LEAST_SECONDS, at], [y, y], color="#d5d9e0", lw=1.4, zorder=1)
        ax.scatter(at, y, s=34, color=OURS if ours else OTHERS, zorder=3)
    plain_ticks(ax.xaxis)
    _finish(ax)


def _say(ax: Axes, y: float, row: Row | None) -> None:
    """Why there is nothing, at the left edge."""
    text = "not for such data" if row is None else why(row)
    ax.text(0.02, y, text, va="center", fontsize=8, color=SOFT, style="italic",
            transform=ax.get_yaxis_transform())  # fmt: skip


def _finish(ax: Axes) -> None:
    """Names without ticks, ours in our colour."""
    ax.tick_params(axis="y", length=0)
    for label in ax.get_yticklabels():
        if label.get_text() == OUR_NAME:
            label.set_color(OURS)
            label.set_fontweight("bold")


# ---- documents -----------------------------------------------------------------------------------


def heldout_figure(record: Record) -> Figure:
    """A panel for each set of documents and words, a bar for each method, nats a document."""
    works = list(dict.fromkeys(row["work"] for row in record["rows"]))
    columns = min(len(works), 3)
    lines = -(-len(works) // max(columns, 1))
    figure = new_figure(3.9 * columns + 0.6, 2.55 * lines + 0.9)
    axes = np.atleast_1d(figure.subplots(lines, columns, squeeze=False)).ravel()
    for ax in axes[len(works) :]:
        ax.set_axis_off()
    for i, (ax, work) in enumerate(zip(axes, works, strict=False)):
        rows = [
            row
            for row in record["rows"]
            if row["work"] == work and row["rival"] != row["reference_name"]
        ]
        _draw_gains(ax, rows, work, last=i >= len(works) - columns, first=i % columns == 0)
    headline(figure, record)
    return figure


def _draw_gains(ax: Axes, rows: Sequence[Row], work: str, last: bool, first: bool) -> None:
    places = np.arange(len(rows))[::-1]
    done = [(row["gain"], row["gain_error"] or 0.0) for row in rows if row["gain"] is not None]
    low = min([0.0, *(gain - error for gain, error in done)])
    high = max([1e-9, *(gain + error for gain, error in done)])
    room = high - low
    for y, row in zip(places, rows, strict=True):
        if row["gain"] is None:
            ax.text(0.01 * room, y, why(row), va="center", fontsize=10, color=SOFT, style="italic")
            continue
        ours, gain = row["rival"] == OUR_NAME, row["gain"]
        error = row["gain_error"] or 0.0
        colour = COLOURS.get(row["rival"], OTHERS)
        ax.barh(y, gain, height=0.66, color=colour, xerr=error, ecolor=INK,
                error_kw={"lw": 1.2, "capsize": 2.5})  # fmt: skip
        text = f"{gain:+.1f}" if abs(gain) >= 10 else f"{gain:+.2f}"
        ax.text(max(gain, 0.0) + error + 0.02 * room, y, text, va="center", fontsize=11,
                color=INK, fontweight="bold" if ours else "normal")  # fmt: skip
    ax.set_yticks(places, [row["rival"] for row in rows])
    ax.set_ylim(-0.6, len(rows) - 0.4)
    ax.set_xlim(low - (0.05 * room if low < 0 else 0), high + 0.24 * room)
    if low < 0:
        ax.axvline(0, color=SOFT, lw=0.8)
    dress(ax, work, "nats a document more than independent words" if last else "", grid="x")
    ax.tick_params(axis="y", labelsize=11, length=0, labelleft=first)
    ax.tick_params(axis="x", labelsize=9.5)
    ax.spines["left"].set_visible(False)
    _finish(ax)
