"""The figures of the tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures.style import (
    BOUND,
    INK,
    OURS,
    PAPER,
    SOFT,
    STAGES,
    TARGET,
    dress,
    headline,
    legend,
    legend_below,
    new_figure,
    plain_ticks,
)
from benchmarks.trees import tree_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Row = Mapping[str, Any]
Record = Mapping[str, Any]


def finished(record: Record) -> list[Row]:
    """Rows that have a time."""
    return [row for row in record["rows"] if row["seconds"] is not None]


# ---- times of rows, and what they are made of ----------------------------------------------------


def times_figure(record: Record) -> Figure:
    """Left the seconds of every row, ours, the paper's, the target, the bound; right its stages."""
    rows = finished(record)
    figure = new_figure(11.5, 1.9 + 0.42 * max(len(rows), 2))
    left, right = figure.subplots(1, 2, width_ratios=[1.25, 1], sharey=True)
    draw_times(left, rows)
    draw_stages(right, rows)
    headline(figure, record)
    return figure


def draw_times(ax: Axes, rows: Sequence[Row]) -> None:
    """A line a row, on a logarithmic axis, from the bound to the paper's time."""
    places = np.arange(len(rows))[::-1]
    for place, row in zip(places, rows, strict=True):
        known = [x for x in (_bound(row), row["seconds"], row["paper"]["seconds"]) if x]
        ax.plot([min(known), max(known)], [place, place], color="#d5d9e0", lw=1.6, zorder=1)
    kinds = (
        ("lower bound of the moments", BOUND, "|", [_bound(row) for row in rows]),
        ("to reach (2 cores)", TARGET, "D", [row["target"]["seconds"] for row in rows]),
        ("ours", OURS, "o", [row["seconds"] for row in rows]),
        ("paper (64 cores)", PAPER, "s", [row["paper"]["seconds"] for row in rows]),
    )
    for label, color, marker, values in kinds:
        at = np.array([(x, y) for x, y in zip(values, places, strict=True) if x])
        if not len(at):
            continue
        look: dict[str, Any] = {"marker": marker, "label": label, "zorder": 3}
        look["c"] = "white" if marker == "D" else color
        if marker == "|":
            ax.scatter(*at.T, s=90, linewidths=2, **look)
        else:
            ax.scatter(*at.T, s=46, linewidths=1.3, edgecolors=color, **look)
    ax.set_xscale("log")
    ax.set_yticks(places, [row["label"] for row in rows])
    ax.set_ylim(-0.7, len(rows) - 0.3)
    dress(ax, "Whole fit", "seconds", grid="x")
    plain_ticks(ax.xaxis)
    legend_below(ax, "left", 4)


def _bound(row: Row) -> float | None:
    return row["bound"]["seconds"] if row.get("bound") else None


def draw_stages(ax: Axes, rows: Sequence[Row]) -> None:
    """Shares of the stages in the time, one bar a row."""
    names = dict.fromkeys(s for row in rows for s in row["stages"])
    shares = {
        s: np.array([row["stages"].get(s, 0.0) / max(_total(row), 1e-12) for row in rows])
        for s in names
    }
    heavy = [s for s in names if shares[s].max() >= 0.02]
    start = np.zeros(len(rows))
    places = np.arange(len(rows))[::-1]
    look: dict[str, Any] = {"height": 0.62, "edgecolor": "white", "linewidth": 0.6}
    for color, stage in zip(STAGES * 2, heavy, strict=False):
        ax.barh(places, shares[stage], left=start, color=color, label=stage, **look)
        start += shares[stage]
    ax.barh(places, 1 - start, left=start, color="#dfe2e7", label="rest", **look)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25%", "50%", "75%", "100%"])
    dress(ax, "Share of the stages", grid="none")
    ax.tick_params(left=False)
    ax.spines["left"].set_visible(False)
    legend_below(ax, "right", 5)


def _total(row: Row) -> float:
    return float(sum(row["stages"].values()))


# ---- words ---------------------------------------------------------------------------------------


def words_figure(record: Record) -> Figure:
    """Times above, neighbourhoods of words of the first row below."""
    from latenttree.plots.tree_figure import plot_tree

    rows = finished(record)
    around = rows[0]["runs"][0].get("described", {}).get("around", {}) if rows else {}
    n_lines = -(-len(around) // 3)
    head = 2.2 + 0.42 * max(len(rows), 2)
    figure = new_figure(11.5, head + 4.1 * n_lines)
    if not n_lines:
        return times_figure(record)
    halves: Any = figure.subfigures(2, 1, height_ratios=[head, 4.1 * n_lines])
    top, bottom = halves
    left, right = top.subplots(1, 2, width_ratios=[1.25, 1], sharey=True)
    draw_times(left, rows)
    draw_stages(right, rows)
    headline(figure, record)
    axes = np.atleast_1d(bottom.subplots(n_lines, 3)).ravel()
    bottom.suptitle(
        f"Nearest words, tree of {rows[0]['label']}",
        x=0.01,
        ha="left",
        fontsize=10.5,
        fontweight="bold",
        color=INK,
    )
    for ax in axes:
        ax.set_axis_off()
    for ax, (word, part) in zip(axes, around.items(), strict=False):
        plot_tree(tree_of(part), "radial", ax=ax)
        ax.set_title(f"“{word}”", fontsize=10, color=SOFT)
    return figure


# ---- patients ------------------------------------------------------------------------------------


def patients_figure(record: Record, paper: Mapping[str, Mapping[int, float]]) -> Figure:
    """Time over patients and over variables, ours and the paper's."""
    figure = new_figure(11.5, 4.4)
    axes = figure.subplots(1, 2)
    titles = ("168 groups of up to 31 codes", "Binary codes, 29,862 patients")
    labels = ("patients", "variables")
    for ax, (part, reported), title, label in zip(axes, paper.items(), titles, labels, strict=True):
        rows = [row for row in finished(record) if row["part"] == part]
        if not record["options"]["quick"]:
            ax.plot(
                *zip(*reported.items(), strict=True), "s-", color=PAPER, label="paper (64 cores)"
            )
        x = [row["x"] for row in rows]
        ax.plot(x, [row["seconds"] for row in rows], "o-", color=OURS, label="ours")
        ax.plot(x, [_bound(row) for row in rows], "_--", color=BOUND, label="lower bound")
        goals = [(row["x"], row["target"]["seconds"]) for row in rows if row["target"]["seconds"]]
        if goals:
            ax.scatter(
                *zip(*goals, strict=True),
                marker="D",
                facecolors="white",
                edgecolors=TARGET,
                label="to reach (2 cores)",
                zorder=3,
            )
        ax.set_yscale("log")
        ax.set_xlim(left=0)
        dress(ax, title, label, "seconds")
        plain_ticks(ax.yaxis)
        ax.xaxis.set_major_formatter(
            lambda value, _: f"{value / 1e6:g} M" if value >= 1e5 else f"{value:,.0f}"
        )
    legend_below(axes[0], "center", 4)
    headline(figure, record)
    return figure


# ---- threads -------------------------------------------------------------------------------------


def threads_figure(record: Record, heavy_stages: Callable[[Sequence[Row]], list[str]]) -> Figure:
    """Speed-up over threads, a panel for each work: the whole, its stages, the paper's, ideal."""
    works = list(dict.fromkeys(row["work"] for row in record["rows"]))
    figure = new_figure(5.8 * max(len(works), 1), 4.8)
    axes = np.atleast_1d(figure.subplots(1, max(len(works), 1)))
    for ax, work in zip(axes, works, strict=True):
        rows = [row for row in record["rows"] if row["work"] == work]
        most = max(row["threads"] for row in rows)
        counts = [row["threads"] for row in rows]
        ax.plot([1, most], [1, most], ":", color=SOFT, label="ideal")
        stages = [s for s in heavy_stages(rows) if s in rows[0]["stages"]]
        for color, stage in zip(STAGES[1:], stages, strict=False):
            values = [row["stage_speed_up"].get(stage, np.nan) for row in rows]
            ax.plot(counts, values, "-", color=color, lw=1.2, alpha=0.85, label=stage)
        ax.plot(
            counts, [row["speed_up"] for row in rows], "o-", color=OURS, lw=2.4, label="whole fit"
        )
        known = [(n, x) for n, x in record["paper"] if n <= most]
        if len(known) > 1:
            ax.plot(*zip(*known, strict=True), "s-", color=PAPER, label="paper, whole")
        ax.set_xscale("log", base=2)
        ax.set_yscale("log", base=2)
        ax.set_xticks(counts)
        ax.set_yticks([2**i for i in range(int(np.log2(max(most, 2))) + 1)])
        ax.minorticks_off()
        dress(ax, work, "threads", "speed-up")
        for axis in (ax.xaxis, ax.yaxis):
            plain_ticks(axis)
        legend(ax, loc="upper left", ncols=1 + (len(stages) > 6))
    headline(figure, record)
    return figure


# ---- growth --------------------------------------------------------------------------------------


def growth_figure(record: Record) -> Figure:
    """Time over each size on log-log axes with the fitted line, beside the paper's slope."""
    names = [name for name in record["exponents"] if ":" not in name]
    figure = new_figure(3.4 * max(len(names), 1) + 0.6, 3.9)
    axes = np.atleast_1d(figure.subplots(1, max(len(names), 1)))
    for ax, name in zip(axes, names, strict=True):
        rows = [row for row in record["rows"] if row["sweep"] == name]
        x = np.array([row["size"] for row in rows], dtype=float)
        y = np.array([row["seconds"] for row in rows])
        found = record["exponents"][name]
        ax.plot(
            x,
            y[0] * (x / x[0]) ** found["paper"],
            ":",
            color=PAPER,
            label=f"paper: {found['paper']:g}",
        )
        ax.plot(
            x,
            found["factor"] * x ** found["slope"],
            "-",
            color=OURS,
            lw=1.4,
            label=f"{found['slope']:.2f} ± {found['error']:.2f}",
        )
        ax.plot(x, y, "o", color=OURS)
        ax.set_xscale("log")
        ax.set_yscale("log")
        dress(ax, f"in {name}", name, "CPU seconds, one thread" if name == names[0] else "")
        ax.set_xticks(x)
        ax.xaxis.set_minor_locator(_no_ticks())
        for axis in (ax.xaxis, ax.yaxis):
            plain_ticks(axis)
        ax.tick_params(axis="x", labelrotation=40)
        legend(ax, loc="upper left", title="exponent", title_fontsize=8.5)
    headline(figure, record)
    return figure


def _no_ticks() -> Any:
    from matplotlib.ticker import NullLocator

    return NullLocator()
