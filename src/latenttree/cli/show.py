"""``latenttree show``: what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenttree.cli.commands import Show
from latenttree.cli.pictures import save_tree_picture
from latenttree.cli.printing import new_console, new_table, print_notes
from latenttree.cli.summary import (
    print_neighbours,
    print_stages,
    print_summary,
    shown_support,
    supported,
)
from latenttree.cli.terminal import can_print
from latenttree.errors import DataError
from latenttree.io.treefile import SavedTree, load_tree
from latenttree.io.zip_archive import ZipReader
from latenttree.phrases import counted
from latenttree.plots.canvas import check_picture_path
from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.cli.node_values import NodeValues
    from latenttree.data import Schema
    from latenttree.io.archive import Saved

MAX_DRAWN = 200  # nodes that are drawn without being asked
MAX_VALUES = 8  # values of a neighbour in the table of a node
MAX_STATES = 12  # states that stand side by side


def run(asked: Show) -> None:
    """Print what is in the file, and draw it."""
    check_picture_path(asked.picture.plot)
    saved, whole = load_tree(asked.file), _whole_model(asked.file)
    console = new_console()
    if asked.node is not None:
        _print_node(console, _with_probabilities(asked.file, whole), asked.node)
        return
    shown = supported(saved.tree, asked.min_support)
    _print_tree(console, saved, whole, shown, asked.verbose)
    if shown.n_nodes <= MAX_DRAWN if asked.draw is None else asked.draw:
        # Plain print: rich would wrap the lines and read names in brackets as markup.
        print("\n" + _drawing(shown, asked.lengths, asked.max_lines))
    save_tree_picture(console, saved.tree, asked.picture, shown_support(asked.min_support))


def _print_tree(
    console: Console, saved: SavedTree, whole: Saved | None, shown: Tree, verbose: bool
) -> None:
    """All but the drawing."""
    gaussian = whole is not None and whole.params.get("hidden") == "gaussian"
    print_summary(console, saved.tree, saved, gaussian)
    if whole is not None:
        console.print(f"a whole model: {whole.model.n_parameters:,} parameters")
        _print_fit_of_pairs(console, whole)
    print_neighbours(console, shown)
    n_left_out = saved.tree.n_hidden - shown.n_hidden
    if n_left_out:
        some = counted(n_left_out, "inner edge")
        console.print(f"shown without {some} of little support; --min-support 0 shows all")
    if verbose:
        print_stages(console, saved.stage_seconds)
    print_notes(console, saved.messages)


def _print_fit_of_pairs(console: Console, whole: Saved) -> None:
    """How well the tree describes pairs of variables, in a line."""
    from latenttree.goodness_of_fit import TreeFit

    fit = TreeFit.restored(whole.diagnostics.get("fit"))
    if fit is not None:
        console.print(fit.summary(), highlight=False)


def _whole_model(file: Path) -> Saved | None:
    """The model in a file, None where it holds a tree alone."""
    if file.suffix.lower() != ".ltree":
        return None
    from latenttree.io.archive import MODEL, load_archive  # loads much

    if MODEL not in ZipReader(file.read_bytes()).names:
        return None
    return load_archive(file)


def _with_probabilities(file: Path, whole: Saved | None) -> Saved:
    if whole is None:
        what = f"{file} holds a tree without probabilities"
        raise DataError(what, "--node needs a model (.ltree)", path=str(file))
    return whole


# ---- the drawing ----------------------------------------------------------------------


def _drawing(tree: Tree, lengths: bool, max_lines: int) -> str:
    """The tree as text; inner nodes are followed by the support of the edge above them."""
    support = np.full(tree.n_edges, np.nan) if tree.support is None else tree.support
    shown = support == 0
    shown[tree.internal_edges()] = True
    shown &= ~np.isnan(support)
    above = tree.parent_edges(tree.centre()).tolist()
    notes = {v: f"[{support[e]:.2f}]" for v, e in enumerate(above) if e >= 0 and shown[e]}
    style: Literal["unicode", "ascii"] = (
        "unicode" if can_print("\u251c\u2500\u2514\u2502") else "ascii"
    )
    heading = "in brackets: support of the edge above\n" if notes else ""
    return heading + tree.draw(lengths, style=style, max_lines=max_lines, notes=notes)


# ---- a node ---------------------------------------------------------------------------


def _print_node(console: Console, saved: Saved, name: str) -> None:

    from latenttree.cli.node_values import values_of
    from latenttree.data import Schema
    from latenttree.queries import node_index

    model, schema = saved.model, Schema.from_json(saved.schema)
    v = node_index(model, name)
    hidden = v >= model.tree.n_observed
    values = values_of(model, schema, v)
    kind = "hidden" if hidden else "observed"
    size = counted(len(values.texts), "state") if values.sums_to_one else values.family
    console.print(f"[bold]{escape(name)}[/bold], {kind}, {size}", highlight=False)
    table = new_table("value", values.symbol, header_style="bold")
    _add_values(table, values, model.marginal(v)[:, None])
    console.print(table)
    for u in model.tree.neighbors(v).tolist():
        # Rows are the values of the observed end, columns the states of the hidden one.
        child, given = (u, v) if hidden else (v, u)
        _print_edge(console, saved, schema, child, given)


def _print_edge(console: Console, saved: Saved, schema: Schema, child: int, given: int) -> None:

    from latenttree.cli.node_values import values_of

    model, tree = saved.model, saved.model.tree
    names = [escape(tree.names[w]) for w in (child, given)]
    rows, columns = values_of(model, schema, child), values_of(model, schema, given)
    slopes = columns.kind != "states"  # of a Gaussian tree
    title = (
        f"slopes of {names[0]} on {names[1]}" if slopes else f"{rows.symbol}({' | '.join(names)})"
    )
    note = _edge_note(saved, child, given)
    console.print(f"\n[bold]{title}[/bold]{note}", highlight=False)
    shown = columns.texts[:MAX_STATES]
    heads = [names[1]] if shown == ["mean"] else [f"{names[1]}={escape(text)}" for text in shown]
    table = new_table(names[0], *heads)
    _add_values(table, rows, model.conditional(child, given)[:, : len(shown)])
    console.print(table)


def _edge_note(saved: Saved, a: int, b: int) -> str:
    tree = saved.model.tree
    e = int(tree.parent_edges(a)[b])
    support = float(np.asarray(saved.support)[e])
    inner = e in tree.internal_edges().tolist()
    known = f", support {support:.2f}" if inner and not np.isnan(support) else ""
    return f"  length {tree.lengths[e]:.3f}{known}"


def _add_values(table: Table, names: NodeValues, values: NDArray[Any]) -> None:
    """A row for each value; where there are too many, those that differ most between columns."""
    spread = values.max(axis=1) - (values.min(axis=1) if values.shape[1] > 1 else 0)
    for text, *entries in names.rows(values, spread, MAX_VALUES):
        table.add_row(escape(text), *entries)
