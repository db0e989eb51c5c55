"""A tree in a few lines and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from latenttree.cli.common import Layout, print_notes

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from rich.console import Console

    from latenttree.estimator import LatentTree
    from latenttree.tree import Tree

MAX_GROUPS = 12  # rows in the table of groups
MAX_MEMBERS = 12  # names in a row of it


def report(
    console: Console, model: LatentTree, told: Collection[str] = (), verbose: bool = False
) -> None:
    """What a fit has found, `verbose` with its times; without the notes that were `told` before."""
    found = model.diagnostics_
    gaussian = model.hidden == "gaussian"
    print_summary(console, model.tree_, found.support, found.n_states, gaussian)
    print_groups(console, model.tree_)
    if verbose:
        print_stages(console, found.stage_seconds)
    print_notes(console, [note for note in found.messages if note not in told])


def print_summary(
    console: Console,
    tree: Tree,
    support: NDArray[np.float64],
    n_states: int | None,
    gaussian: bool = False,
) -> None:
    import numpy as np

    unit = "states" if not gaussian else "dimension" if n_states == 1 else "dimensions"
    states = f" of {n_states} {unit}" if n_states and tree.n_hidden else ""
    console.print(
        f"[bold]{tree.n_observed:,} observed variables, "
        f"{tree.n_hidden:,} hidden variables{states}[/bold], {tree.n_edges:,} edges",
        highlight=False,
    )
    known = support[tree.internal_edges()]
    known = known[~np.isnan(known)]
    if known.size:
        console.print(
            f"support of the {known.size:,} internal edges: "
            f"median {np.median(known):.2f}, weakest {known.min():.2f}"
        )


def print_groups(console: Console, tree: Tree) -> None:
    """The hidden variables with the most observed neighbours."""
    from rich.markup import escape
    from rich.table import Table

    groups = _observed_neighbours(tree)
    if not groups:
        return
    table = Table("hidden", "size", "observed neighbours", box=None, header_style="bold")
    table.columns[1].justify = "right"
    for name, members in groups[:MAX_GROUPS]:
        n_more = len(members) - MAX_MEMBERS
        more = f", and {n_more} more" if n_more > 0 else ""
        shown = escape("  ".join(members[:MAX_MEMBERS])) + more
        table.add_row(escape(name), str(len(members)), shown)
    console.print(table)
    if len(groups) > MAX_GROUPS:
        console.print(f"... and {len(groups) - MAX_GROUPS} smaller groups")


def _observed_neighbours(tree: Tree) -> list[tuple[str, list[str]]]:
    """Hidden nodes with the observed nodes next to them, largest first."""
    groups = [
        (tree.names[node], [tree.names[u] for u in tree.neighbors(node) if u < tree.n_observed])
        for node in range(tree.n_observed, tree.n_nodes)
    ]
    return sorted((g for g in groups if g[1]), key=lambda g: -len(g[1]))


def print_stages(console: Console, stage_seconds: Mapping[str, float]) -> None:
    from rich.table import Table

    if not stage_seconds:
        return
    table = Table("stage", "seconds", box=None, header_style="bold", show_footer=True)
    table.columns[0].footer = "total"
    table.columns[1].footer = f"{sum(stage_seconds.values()):.3f}"
    table.columns[1].justify = "right"
    for stage, seconds in stage_seconds.items():
        table.add_row(stage, f"{seconds:.3f}")
    console.print(table)


def tree_figure(tree: Tree, support: NDArray[np.float64], layout: Layout) -> Figure:
    import numpy as np

    from latenttree.plots.figure import new_axes, plot_tree

    shown = None if np.all(np.isnan(support)) else support
    ax = plot_tree(tree, layout, support=shown, ax=new_axes(tree, layout))
    return ax.figure  # type: ignore[return-value]
