"""Pictures in files: checked before the work, written after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from latenttree.cli.options import PictureOptions
from latenttree.cli.printing import print_file
from latenttree.plots.canvas import save_figure
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def save_picture(console: Console, figure: Figure, path: Path) -> None:
    """Write a figure and say so."""
    save_figure(figure, path)
    print_file(console, "picture", path)


def save_tree_picture(
    console: Console, tree: Tree, options: PictureOptions, min_support: float
) -> None:
    """Draw a tree, without inner edges of less support, into the file that ``--plot`` names, if it
    names one."""
    if options.plot is None:
        return

    from matplotlib import pyplot

    from latenttree.plots.tree_figure import plot_tree

    axes = plot_tree(tree, options.layout, min_support=min_support, path=options.plot)
    pyplot.close(axes.figure)  # type: ignore[arg-type]
    print_file(console, "picture", options.plot)
