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


def save_tree_picture(console: Console, tree: Tree, options: PictureOptions) -> None:
    """Draw a tree into the file that ``--plot`` names, if it names one."""
    if options.plot is None:
        return

    from latenttree.plots.tree_figure import new_axes, plot_tree

    axes = plot_tree(tree, options.layout, ax=new_axes(tree, options.layout))
    save_picture(console, axes.figure, options.plot)  # type: ignore[arg-type]
