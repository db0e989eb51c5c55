"""Figures and sizes: where a picture is drawn, and how much room text takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MAX_NAME = 28  # characters of a name that are drawn


def import_matplotlib() -> Any:
    """Matplotlib, or an error that says how to get it."""
    try:
        import matplotlib
    except ImportError as error:
        raise ImportError(
            "pictures need matplotlib, which is not installed; pip install 'latenttree[plot]'"
        ) from error
    return matplotlib


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


def longest_name(tree: Tree, font: float) -> float:
    """Width in points of the widest observed name."""
    from matplotlib.textpath import TextPath

    names = sorted((shortened(name) for name in tree.observed_names), key=len)[-8:]
    widths = [TextPath((0, 0), n, size=font).get_extents().width for n in names if n.strip()]
    return max(widths, default=0.0)


def shortened(name: str) -> str:
    """A name of at most `MAX_NAME` characters; longer ones end in an ellipsis."""
    return name if len(name) <= MAX_NAME else name[: MAX_NAME - 1] + "…"
