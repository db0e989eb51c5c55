"""How the figures look."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.plots.canvas import import_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, SOFT, GRID = "#2b2f36", "#5d6470", "#e6e8ec"
OURS, PAPER, BOUND, TARGET = "#1f6fb2", "#c2512f", "#6b7280", "#2f8f5b"
STAGES = (
    "#1f6fb2", "#e0a030", "#2f8f5b", "#8a5fbf", "#c2512f", "#4bb3c4", "#b0578d", "#8c8c3a",
    "#7a8494", "#d98b6a", "#5a7d4f", "#a3aab5",
)  # fmt: skip


def new_figure(width: float, height: float) -> Figure:
    """A figure that no window shows; the caller saves it."""
    import_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    engine: Any = figure.get_layout_engine()
    engine.set(w_pad=0.08, h_pad=0.08)
    return figure


def dress(ax: Axes, title: str = "", x: str = "", y: str = "", grid: str = "both") -> None:
    """Quiet axes: no box, a light grid behind."""
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color("#c5cad3")
    ax.tick_params(colors=SOFT, labelsize=9, length=3, which="both")
    if grid != "none":
        ax.grid(True, which="major", axis=grid, color=GRID, linewidth=0.8)  # type: ignore[arg-type]
    ax.set_axisbelow(True)
    if title:
        ax.set_title(title, loc="left", fontsize=10.5, fontweight="bold", color=INK, pad=8)
    ax.set_xlabel(x, fontsize=9.5, color=SOFT)
    ax.set_ylabel(y, fontsize=9.5, color=SOFT)


def headline(figure: Figure, record: Any) -> None:
    """The title of the table, and on what it ran."""
    machine = record["environment"]
    cores = record["options"]["threads"]
    where = f"{machine.get('cpu') or machine['platform']}, {cores} thread(s)"
    title = record["title"]
    figure.suptitle(title, x=0.01, ha="left", fontsize=12.5, fontweight="bold", color=INK)
    figure.text(0.99, 0.985, where, fontsize=8, color=SOFT, ha="right", va="top")


def legend(ax: Axes, **options: Any) -> None:
    """A legend without a box."""
    ax.legend(frameon=False, fontsize=8.5, labelcolor=INK, **options)


def legend_below(ax: Axes, side: str, columns: int) -> None:
    """The legend of an axes below all of them, at one side of the figure."""
    holder: Any = ax.figure
    holder.legend(
        *ax.get_legend_handles_labels(), loc=f"outside lower {side}", ncols=columns, frameon=False,
        fontsize=8.5, labelcolor=INK, handletextpad=0.5, columnspacing=1.2, handlelength=1.2,
    )  # fmt: skip


def plain_ticks(axis: Any) -> None:
    """1, 10, 1,000 instead of powers of ten, down to 0.001."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
    axis.set_minor_formatter(NullFormatter())


def plain(value: float) -> str:
    """A number as people write it."""
    if value >= 1:
        return f"{value:,.0f}"
    if value >= 1e-3 or value <= 0:
        return f"{value:.10f}".rstrip("0").rstrip(".")
    return f"$10^{{{np.log10(value):.0f}}}$"
