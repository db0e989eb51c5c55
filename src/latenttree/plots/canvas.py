"""Figures, files and sizes: where a picture is drawn, and how much room text takes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from latenttree.errors import check_option
from latenttree.io.atomic import check_target, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")
DPI = 160  # of files of pixels


def import_matplotlib() -> Any:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which is not installed; pip install 'latenttree[plot]'"
        ) from error
    return matplotlib


def check_picture_path(path: str | os.PathLike[str] | None) -> None:
    """Raise, before the work is done, where a picture cannot be written."""
    if path is None:
        return
    check_target(path, SUFFIXES, "{} is no picture file", "end it in .png, .pdf or .svg")
    import_matplotlib()


def save_figure(figure: Figure, path: str | os.PathLike[str] | None) -> None:
    """Write a figure where there is a path; the file appears whole or not at all."""
    if path is None:
        return
    with replacing(path) as partial:
        figure.savefig(partial, dpi=DPI, facecolor="white")


def check_figsize(figsize: Any) -> None:
    """Raise where a size is not two numbers of inches."""
    possible = figsize is None or (
        isinstance(figsize, Sequence)
        and len(figsize) == 2
        and all(isinstance(side, int | float) and 0 < side < 500 for side in figsize)
    )
    check_option("figsize", figsize, possible, "pass width and height in inches, such as (10, 10)")


def new_figure(size: tuple[float, float], pyplot: bool = False) -> Figure:
    """A white figure of `size` inches; with ``pyplot`` one that ``pyplot.show`` knows."""
    import_matplotlib()
    if pyplot:
        from matplotlib.pyplot import figure

        return figure(figsize=size, facecolor="white")
    from matplotlib.figure import Figure

    return Figure(figsize=size, facecolor="white")


def size_in_points(ax: Axes) -> tuple[float, float]:
    """Width and height of axes, in points."""
    box = ax.get_window_extent()
    inch = 72 / ax.figure.dpi
    return box.width * inch, box.height * inch


def widest(texts: Iterable[str], font: float) -> float:
    """Width in points of the widest text, one of the eight with the most characters."""
    from matplotlib.textpath import TextPath

    longest = sorted((text.replace("$", "S") for text in texts), key=len)[-8:]
    widths = [TextPath((0, 0), t, size=font).get_extents().width for t in longest if t.strip()]
    return max(widths, default=0.0)


def shortened(text: str, most: int) -> str:
    """A text of at most `most` characters; longer ones end in an ellipsis."""
    return text if len(text) <= most else text[: most - 1] + "…"


def literal(text: str) -> str:
    """A text in which matplotlib sees no formula: it reads what stands between two $."""
    return text.replace("$", r"\$")
