"""Pictures in files: checked before the work, written after it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from latenttree.cli.options import PictureOptions
from latenttree.cli.printing import print_file
from latenttree.io.atomic import check_target, replacing
from latenttree.plots.canvas import import_matplotlib
from latenttree.tree import Tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".pdf", ".svg")


def check_picture_path(path: Path | None) -> None:
    """Raise, before the work is done, where a picture cannot be written."""
    if path is None:
        return
    check_target(path, SUFFIXES, "{} is no picture file", "end it in .png, .pdf or .svg")
    import_matplotlib()


def save_figure(console: Console, figure: Figure, path: Path) -> None:
    """Write a figure; the file appears whole or not at all."""
    with replacing(path) as partial:
        figure.savefig(partial, dpi=160, facecolor="white")
    print_file(console, "picture", path)


def save_tree_picture(console: Console, tree: Tree, options: PictureOptions) -> None:
    """Draw a tree into the file that ``--plot`` names, if it names one."""
    if options.plot is None:
        return

    from latenttree.plots.tree_figure import new_axes, plot_tree

    axes = plot_tree(tree, options.layout, ax=new_axes(tree, options.layout))
    save_figure(console, axes.figure, options.plot)  # type: ignore[arg-type]
