"""A tree in a few lines and tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Literal

from rich.console import Console
from rich.markup import escape

from latenttree.cli.printing import new_table, print_notes
from latenttree.phrases import counted, sizes_in_words, supports_in_words
from latenttree.tree import Tree
from latenttree.tree.collapsing import SHOWN_SUPPORT

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree
    from latenttree.io.treefile import SavedTree
    from latenttree.report import Diagnostics

MAX_ROWS = 12  # in the table of neighbours
MAX_NAMES = 12  # names in a row of it


def supported(tree: Tree, min_support: float | Literal["auto"] | None) -> Tree:
    """The tree without inner edges of less support, by default `SHOWN_SUPPORT`; as it is where
    support is unknown."""
    return tree if tree.support is None else tree.collapse(shown_support(min_support))


def shown_support(min_support: float | Literal["auto"] | None) -> float:
    """The least support of inner edges that are shown, by default `SHOWN_SUPPORT`."""
    return min_support if isinstance(min_support, float) else SHOWN_SUPPORT


def print_fit(
    console: Console, model: LatentTree, printed: Collection[str] = (), verbose: bool = False
) -> None:
    """What a fit has learned, `verbose` with its times; without notes that are `printed`
    already."""
    report = model.diagnostics_
    print_summary(console, model.tree_, report, model.hidden == "gaussian")
    print_neighbours(console, supported(model.tree_, model.min_support))
    if verbose:
        print_stages(console, report.stage_seconds)
    print_notes(console, [note for note in report.messages if note not in printed])


def print_summary(
    console: Console, tree: Tree, report: Diagnostics | SavedTree, gaussian: bool = False
) -> None:
    """Numbers of variables, states and edges, and the support of the internal edges, without those
    that join independent parts."""
    hidden = counted(tree.n_hidden, "hidden variable")
    sizes = report.hidden_states if len(report.hidden_states) else [report.n_states or 0]
    if tree.n_hidden and max(sizes) > 0:
        hidden += f" with {sizes_in_words(sizes, 'dimension' if gaussian else 'state')}"
    console.print(
        f"[bold]{counted(tree.n_observed, 'observed variable')}, {hidden}[/bold], "
        f"{counted(tree.n_edges, 'edge')}",
        highlight=False,
    )
    inner = report.support[tree.internal_edges()]
    line = supports_in_words(inner, report.support_method, report.n_resamples)
    if line:
        console.print(line)


def print_neighbours(console: Console, tree: Tree) -> None:
    """The hidden variables with the most observed neighbours."""
    groups = _observed_neighbours(tree)
    if not groups:
        return
    table = new_table("hidden", "size", "observed neighbours", header_style="bold")
    table.columns[2].justify = "left"
    for name, members in groups[:MAX_ROWS]:
        n_more = len(members) - MAX_NAMES
        more = f", and {n_more} more" if n_more > 0 else ""
        shown = escape("  ".join(members[:MAX_NAMES])) + more
        table.add_row(escape(name), str(len(members)), shown)
    console.print(table)
    if len(groups) > MAX_ROWS:
        console.print(f"... and {len(groups) - MAX_ROWS} smaller groups")


def _observed_neighbours(tree: Tree) -> list[tuple[str, list[str]]]:
    """Hidden nodes with the observed nodes next to them, largest first."""
    groups = [
        (tree.names[node], [tree.names[u] for u in tree.neighbors(node) if u < tree.n_observed])
        for node in range(tree.n_observed, tree.n_nodes)
    ]
    return sorted((g for g in groups if g[1]), key=lambda g: -len(g[1]))


def print_stages(console: Console, stage_seconds: Mapping[str, float]) -> None:
    """A table of the time of every stage."""
    if not stage_seconds:
        return
    table = new_table("stage", "seconds", header_style="bold", show_footer=True)
    table.columns[0].footer = "total"
    table.columns[1].footer = f"{sum(stage_seconds.values()):.3f}"
    for stage, seconds in stage_seconds.items():
        table.add_row(stage, f"{seconds:.3f}")
    console.print(table)
