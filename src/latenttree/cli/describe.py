"""``latenttree show``: what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenttree.cli.common import (
    Picture,
    PictureLayout,
    Verbose,
    check_picture_path,
    clean_exit,
    new_console,
    print_file,
    print_notes,
    save_figure,
)
from latenttree.cli.summary import print_groups, print_stages, print_summary, tree_figure
from latenttree.cli.terminal import can_print

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from rich.console import Console

    from latenttree.cli.values import Entries
    from latenttree.data import Schema
    from latenttree.io.archive import Saved
    from latenttree.io.drawing import Style
    from latenttree.tree import Tree

MAX_DRAWN = 200  # nodes that are drawn without being asked
MAX_VALUES = 8  # values of a neighbour in the table of a node
MAX_STATES = 12  # states that stand side by side


def show(
    file: Annotated[Path, typer.Argument(help="A model or a tree: .ltree, .json or .nwk.")],
    node: Annotated[
        str | None,
        typer.Option(help="Only this variable: its neighbours and conditional distributions."),
    ] = None,
    draw: Annotated[
        bool | None, typer.Option("--draw/--no-draw", help="Draw in text; default up to 200 nodes.")
    ] = None,
    max_lines: Annotated[
        int, typer.Option(min=2, help="Most lines of the drawing; what is left out is counted.")
    ] = 1000,
    lengths: Annotated[bool, typer.Option("--lengths", help="Write the edge lengths.")] = False,
    plot: Picture = None,
    layout: PictureLayout = "radial",
    verbose: Verbose = False,
) -> None:
    """Describe a saved model or tree, and draw it as text."""
    with clean_exit():
        from latenttree.io.treefile import load_tree

        if plot is not None:
            check_picture_path(plot)
        saved, whole = load_tree(file), _whole_model(file)
        console = new_console()
        if node is not None:
            _print_node(console, _with_probabilities(file, whole), node)
            return
        gaussian = whole is not None and whole.params.get("hidden") == "gaussian"
        print_summary(console, saved.tree, saved.support, saved.n_states, gaussian)
        if whole is not None:
            console.print(f"a whole model: {whole.model.n_parameters:,} parameters")
        print_groups(console, saved.tree)
        if verbose:
            print_stages(console, saved.stage_seconds)
        print_notes(console, saved.messages)
        if saved.tree.n_nodes <= MAX_DRAWN if draw is None else draw:
            # Plain print: rich would wrap the lines and read names in brackets as markup.
            print("\n" + _drawing(saved.tree, saved.support, lengths, max_lines))
        if plot is not None:
            save_figure(tree_figure(saved.tree, saved.support, layout), plot)
            print_file(console, "picture", plot)


def _whole_model(file: Path) -> Saved | None:
    """The model in a file, None where it holds a tree alone."""
    if file.suffix.lower() != ".ltree":
        return None
    from latenttree.io.archive import MODEL, load_archive
    from latenttree.io.zipped import ZipReader

    if MODEL not in ZipReader(file.read_bytes()).names:
        return None
    return load_archive(file)


def _with_probabilities(file: Path, whole: Saved | None) -> Saved:
    if whole is None:
        raise ValueError(
            f"{file} holds a tree without probabilities; --node needs a model (.ltree)"
        )
    return whole


# ---- the drawing ----------------------------------------------------------------------


def _drawing(tree: Tree, support: NDArray[np.float64], lengths: bool, max_lines: int) -> str:
    """The tree as text, with the support of the edge above behind every inner node."""
    import numpy as np

    from latenttree.io.drawing import draw

    inner = np.zeros(tree.n_edges, dtype=bool)
    inner[tree.internal_edges()] = True
    parents = tree.rooted(tree.n_observed if tree.n_hidden else tree.n_nodes - 1).parents
    notes = {}
    for e in np.flatnonzero(~np.isnan(support) & (inner | (support == 0))).tolist():
        a, b = tree.edges[e].tolist()
        notes[b if parents[b] == a else a] = f"[{support[e]:.2f}]"
    style: Style = "unicode" if can_print("\u251c\u2500\u2514\u2502") else "ascii"
    heading = "in brackets: support of the edge above\n" if notes else ""
    return heading + draw(tree, lengths, style=style, max_lines=max_lines, notes=notes)


# ---- a node ---------------------------------------------------------------------------


def _print_node(console: Console, saved: Saved, name: str) -> None:
    from rich.markup import escape
    from rich.table import Table

    from latenttree.cli.values import entries_of
    from latenttree.data import Schema

    model, schema = saved.model, Schema.from_json(saved.schema)
    v = _node(model.tree, name)
    hidden = v >= model.tree.n_observed
    entries = entries_of(model, schema, v)
    kind = "hidden" if hidden else "observed"
    what = f"{len(entries.texts)} states" if entries.sums_to_one else entries.family
    console.print(f"[bold]{escape(name)}[/bold], {kind}, {what}", highlight=False)
    table = Table("value", entries.symbol, box=None, header_style="bold")
    table.columns[1].justify = "right"
    _add_values(table, entries, model.marginal(v)[:, None])
    console.print(table)
    for u in model.tree.neighbors(v).tolist():
        # Rows are the values of the observed end, columns the states of the hidden one.
        child, given = (u, v) if hidden else (v, u)
        _print_edge(console, saved, schema, child, given)


def _print_edge(console: Console, saved: Saved, schema: Schema, child: int, given: int) -> None:
    from rich.markup import escape
    from rich.table import Table

    from latenttree.cli.values import entries_of

    model, tree = saved.model, saved.model.tree
    names = [escape(tree.names[w]) for w in (child, given)]
    rows, columns = entries_of(model, schema, child), entries_of(model, schema, given)
    slopes = columns.kind != "states"  # of a Gaussian tree
    title = (
        f"slopes of {names[0]} on {names[1]}" if slopes else f"{rows.symbol}({' | '.join(names)})"
    )
    note = _edge_note(saved, child, given)
    console.print(f"\n[bold]{title}[/bold]{note}", highlight=False)
    shown = columns.texts[:MAX_STATES]
    heads = [names[1]] if shown == ["mean"] else [f"{names[1]}={escape(text)}" for text in shown]
    table = Table(names[0], *heads, box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    _add_values(table, rows, model.conditional(child, given)[:, : len(shown)])
    console.print(table)


def _edge_note(saved: Saved, a: int, b: int) -> str:
    import numpy as np

    tree = saved.model.tree
    edges = np.sort(tree.edges, axis=1)
    e = int(np.flatnonzero((edges == sorted((a, b))).all(axis=1))[0])
    support = float(np.asarray(saved.support)[e])
    inner = e in tree.internal_edges().tolist()
    known = f", support {support:.2f}" if inner and not np.isnan(support) else ""
    return f"  length {tree.lengths[e]:.3f}{known}"


def _add_values(table: Any, entries: Entries, values: NDArray[Any]) -> None:
    """A row for each value; where there are too many, those that tell the columns apart best."""
    import numpy as np
    from rich.markup import escape

    from latenttree.cli.values import written

    order = np.arange(len(entries.texts))
    if len(order) > MAX_VALUES:
        spread = values.max(axis=1) - (values.min(axis=1) if values.shape[1] > 1 else 0)
        order = np.argsort(-spread, kind="stable")
    for x in order[:MAX_VALUES].tolist():
        table.add_row(escape(entries.texts[x]), *(written(p, entries) for p in values[x]))
    rest = order[MAX_VALUES:]
    if len(rest) and entries.sums_to_one:
        sums = values[rest].sum(axis=0)
        table.add_row(f"{len(rest)} others", *(f"{p:.4f}" for p in sums))
    elif len(rest):
        table.add_row(f"and {len(rest)} more")


def _node(tree: Tree, name: str) -> int:
    from latenttree.data.checks import listing

    if name not in tree.names:
        raise ValueError(
            f"the model has no node {name!r}; it has the variables {listing(tree.observed_names)} "
            f"and the hidden nodes {listing(tree.hidden_names) or 'none'}"
        )
    return tree.index(name)
