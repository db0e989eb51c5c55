"""Whole trees, large enough to read the names, which have the colours of their groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from benchmarks.figures.style import INK, new_figure
from benchmarks.trees import tree_of
from latenttree.plots.tree_figure import plot_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES = 18


def trees_figure(record: Mapping[str, Any]) -> Figure:
    """A panel for each of `record["drawn"]`: `{"tree": arrays, "support", "groups": {name:
    group}}`."""
    drawn = record["drawn"]
    figure = new_figure(INCHES * len(drawn), INCHES)
    axes = figure.subplots(1, len(drawn), squeeze=False)[0]
    for ax, (title, part) in zip(axes, drawn.items(), strict=True):
        plot_tree(tree_of(part["tree"]), support=part["support"], ax=ax)
        ax.set_title(title, fontsize=22, color=INK)
        _colour_names(ax, part["groups"])
    return figure


def _colour_names(ax: Any, groups: Mapping[str, str]) -> None:
    """Names in the colours of their groups, which a legend explains."""
    import matplotlib
    from matplotlib.patches import Patch

    maps = (("tab10", 10), ("Dark2", 8))
    palette = [matplotlib.colormaps[name](i) for name, size in maps for i in range(size)]
    colours = dict(zip(dict.fromkeys(groups.values()), palette, strict=False))
    # names may be cut short, but not within their first word
    group_of = {name.split()[0]: group for name, group in groups.items()}
    for text in ax.texts:
        text.set_color(colours.get(group_of.get(text.get_text().split()[0], ""), INK))
    patches = [Patch(color=colour, label=group) for group, colour in colours.items()]
    ax.legend(handles=patches, loc="lower left", fontsize=12, frameon=False)
