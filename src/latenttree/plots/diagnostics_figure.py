"""What a fit says of itself, in four panels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.plots.canvas import literal, new_figure, shortened
from latenttree.plots.colors import EDGE, INK, PALETTE
from latenttree.report import Diagnostics
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes

N_WORST = 8  # pairs that are named
MAX_NAME = 18
MOST_STAGES = 10
WIDE = 100.0
"""A larger ratio of numbers takes a logarithmic axis."""


def plot_diagnostics(
    tree: Tree, report: Diagnostics, figsize: tuple[float, float] | None = None
) -> NDArray[Any]:
    """See `PlotMixin.plot_diagnostics`."""
    figure = new_figure(figsize or (10.5, 6.6), pyplot=True)
    axes = [figure.add_subplot(2, 2, i + 1) for i in range(4)]
    panels = (_draw_support, _draw_trace, _draw_worst, _draw_stages)
    for ax, draw in zip(axes, panels, strict=True):
        draw(ax, tree, report)
        for side in ("top", "right"):
            ax.spines[side].set_visible(False)
        ax.tick_params(labelsize=8, length=2.5, color=EDGE, labelcolor=INK)
        ax.title.set(color=INK, fontsize=10)
    figure.tight_layout()
    return np.array(axes, dtype=object)


def _draw_support(ax: Axes, tree: Tree, report: Diagnostics) -> None:
    """How many inner edges have which support."""
    support = report.support[tree.internal_edges()] if len(report.support) else report.support
    known = support[~np.isnan(support)]
    ax.set_title(f"support of the {known.size:,} inner edges")
    if not known.size:
        _say(ax, "no inner edges")
        return
    ax.hist(known, bins=20, range=(0, 1), color=PALETTE[0], rwidth=0.92)
    median = float(np.median(known))
    ax.axvline(median, color=INK, lw=1, ls=(0, (3, 2)))
    ax.text(median, 0.98, f" {median:.2f} ", transform=ax.get_xaxis_transform(), va="top",
            ha="right" if median > 0.5 else "left", fontsize=8, color=INK)  # fmt: skip
    ax.set_xlim(0, 1)
    ax.set_ylabel("edges", fontsize=8.5, color=INK)


def _draw_trace(ax: Axes, tree: Tree, report: Diagnostics) -> None:
    """The steps of refinement: what each still had to gain, and held-out samples."""
    trace, held_out = np.array(report.log_likelihood_trace), np.array(report.held_out_trace)
    done = "converged" if report.converged else "stopped before it converged"
    if len(trace) > 2:
        left = np.maximum(trace[-1] - trace[:-1], 1e-6)
        ax.plot(left, color=PALETTE[0], lw=1.6)
        ax.set_yscale("log" if left.max() > WIDE * left.min() else "linear")
        ax.set_title(f"log-likelihood still to gain at each EM step; {done}")
        ax.set_xlabel("step", fontsize=8.5, color=INK)
    elif len(held_out) > 1:
        ax.plot(held_out, color=PALETTE[0], lw=1.6, marker="o", ms=3)
        ax.set_title(f"log-likelihood of held-out samples after each pass; {done}")
        ax.set_xlabel("pass", fontsize=8.5, color=INK)
    else:
        ax.set_title("refinement")
        _say(ax, "no steps of refinement")


def _draw_worst(ax: Axes, tree: Tree, report: Diagnostics) -> None:
    """The pairs that the tree explains worst: correlations observed and implied."""
    if report.fit is None or not report.fit.worst:
        ax.set_title("pairs that the tree explains worst")
        _say(ax, "none beyond noise")
        return
    pairs = report.fit.worst[:N_WORST][::-1]
    ax.set_title(f"pairs explained worst; {min(report.fit.explained, 1):.0%} explained in all")
    y = np.arange(len(pairs))
    observed, implied = (np.array([getattr(p, n) for p in pairs]) for n in ("observed", "implied"))
    ax.hlines(y, observed, implied, color=EDGE, lw=2)
    ax.plot(observed, y, "o", color=PALETTE[5], ms=5, label="observed")
    ax.plot(implied, y, "o", color=PALETTE[0], ms=5, label="implied")
    names = [" – ".join(shortened(n, MAX_NAME) for n in (p.first, p.second)) for p in pairs]
    ax.set_yticks(y, [literal(name) for name in names])
    ax.axvline(0, color=EDGE, lw=0.8, zorder=0)
    ax.set_xlabel("correlation", fontsize=8.5, color=INK)
    ax.legend(frameon=False, fontsize=8, labelcolor=INK)


def _draw_stages(ax: Axes, tree: Tree, report: Diagnostics) -> None:
    """Seconds of the stages."""
    seconds = sorted(report.stage_seconds.items(), key=lambda item: -item[1])[:MOST_STAGES][::-1]
    ax.set_title(f"{sum(report.stage_seconds.values()):.1f} seconds by stage")
    if not seconds:
        _say(ax, "no times were kept")
        return
    values = [x for _, x in seconds]
    ax.barh([name for name, _ in seconds], values, color=PALETTE[2], height=0.7)
    for i, x in enumerate(values):
        ax.text(x, i, f" {x:.2f}", va="center", fontsize=8, color=INK)
    ax.set_xlim(0, 1.15 * max([*values, 1e-9]))


def _say(ax: Axes, text: str) -> None:
    """A sentence instead of a panel."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", fontsize=9, color="#7a818c")
    ax.set_xticks([])
    ax.set_yticks([])
