"""The figure of errors and times over the number of samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.figures.style import (
    BOUND,
    OURS,
    PAPER,
    dress,
    headline,
    legend,
    new_figure,
    plain_ticks,
)
from benchmarks.grids import mean_and_error, values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STYLE = {
    "clrg_em": ("CLRG-EM, {restarts} restarts", PAPER, "s", "-"),
    "ours": ("latenttree", OURS, "o", "-"),
    "oracle": ("hidden states known", BOUND, "", "--"),
}


def samples_figure(record: Mapping[str, Any]) -> Figure:
    """Parameter error, structure error and time against N; bars are standard errors."""
    from matplotlib.ticker import LogLocator

    rows = record["rows"]
    figure = new_figure(12.5, 4.8)
    axes = figure.subplots(1, 3, width_ratios=(1.5, 1, 1))
    n = [row["n"] for row in rows]
    for method, (label, colour, marker, line) in STYLE.items():
        look = {"color": colour, "marker": marker, "ls": line, "lw": 2.2, "ms": 6}
        look["label"] = label.format(restarts=record["restarts"])
        errors = [mean_and_error(values(row, f"error.{method}")) for row in rows]
        mean, error = np.array(errors).T
        axes[0].errorbar(n, mean, yerr=np.nan_to_num(error), capsize=3, **look)
        if method != "oracle":
            axes[1].plot(n, [values(row, f"rf.{method}").mean() for row in rows], **look)
            axes[2].plot(n, [np.median(values(row, f"taken.{method}")) for row in rows], **look)
    titles = ("Parameter error", "Structure error (normalised RF)", "Seconds, one thread")
    for axis, title in zip(axes, titles, strict=True):
        axis.set_xscale("log")
        if axis is not axes[1]:
            axis.set_yscale("log")
            axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            plain_ticks(axis.yaxis)
        dress(axis, title, "samples")
        plain_ticks(axis.xaxis)
    axes[1].set_ylim(bottom=-0.01)
    legend(axes[0], loc="lower left")
    headline(figure, record)
    return figure
