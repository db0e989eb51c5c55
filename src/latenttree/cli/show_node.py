"""A node of a model: its distribution, and those along the edges to its neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenttree.cli.printing import new_table
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.cli.node_values import NodeValues
    from latenttree.data import Schema
    from latenttree.io.archive import Saved

MAX_VALUES = 8  # values of a neighbour in the table of a node
MAX_STATES = 12  # states that stand side by side


def node_record(saved: Saved, name: str) -> dict[str, Any]:
    """What ``--json`` prints of a node. Tables have a row for each value of the observed end of the
    edge, and a column for each of the other."""
    from latenttree.cli.node_values import values_of
    from latenttree.data import Schema
    from latenttree.queries import node_index

    model, schema = saved.model, Schema.from_json(saved.schema)
    v = node_index(model, name)
    values = values_of(model, schema, v)
    return {
        "node": model.tree.names[v],
        "hidden": v >= model.tree.n_observed,
        "family": values.family,
        "values": values.texts,
        "marginal": model.marginal(v),
        "neighbors": [_edge_record(saved, schema, v, u) for u in model.tree.neighbors(v).tolist()],
    }


def _edge_record(saved: Saved, schema: Schema, v: int, u: int) -> dict[str, Any]:
    from latenttree.cli.node_values import values_of

    model, tree = saved.model, saved.model.tree
    child, given = (u, v) if v >= tree.n_observed else (v, u)
    e = int(tree.parent_edges(v)[u])
    return {
        "node": tree.names[u],
        "length": tree.lengths[e],
        "sign": tree.signs[e],
        "support": np.asarray(saved.support)[e],
        "conditional": {
            "node": tree.names[child],
            "given": tree.names[given],
            "rows": values_of(model, schema, child).texts,
            "columns": values_of(model, schema, given).texts,
            "values": model.conditional(child, given),
        },
    }


def print_node(console: Console, saved: Saved, name: str) -> None:
    """Tables of a node: its marginal distribution, and the conditional one along each edge."""

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
