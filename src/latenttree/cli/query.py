"""``latenttree query``: exact conditional distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenttree.cli.commands import Query
from latenttree.cli.model_file import load_model
from latenttree.cli.printing import new_console, new_table
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.cli.node_values import NodeValues
    from latenttree.estimator import LatentTree


def run(asked: Query) -> None:
    """Ask the model, and print a table."""
    fitted = load_model(asked.model, threads=1)
    from latenttree.cli.given import parse_given  # loads much

    record = parse_given(fitted, asked.given or [])
    _check_query(fitted, asked.nodes, record)
    console = new_console()
    if record:
        console.print(_evidence_line(fitted, record), highlight=False)
    _print_answers(console, fitted, asked.nodes, record, asked.top)


def _check_query(model: LatentTree, nodes: Sequence[str], record: dict[str, Any]) -> None:
    from latenttree.queries import node_indices

    node_indices(model.model_, nodes, "the question")
    known = next((n for n in nodes if n in record and not _is_soft(record[n])), None)
    if known is not None:
        what = f"{known!r} is given ({record[known]!r}), so there is nothing to ask"
        remedy = "leave it out of the names, or of --given"
        raise DataError(what, remedy, value=record[known], node=known)


def _is_soft(value: Any) -> bool:
    return isinstance(value, dict)


def _evidence_line(model: LatentTree, record: dict[str, Any]) -> str:
    """The probability of what is given; an impossible one is an error."""
    from latenttree.model.tree_model import TreeModel  # loads much

    log = float(model.score_samples(record)[0])
    if np.isneginf(log):
        raise DataError(
            "what is given has probability zero under the model, so it has no posterior",
            "correct it, or leave out what is in doubt",
        )
    if any(map(_is_soft, record.values())):
        return f"log of the weighted probability of what is given: {log:.6g}"
    coded = model.schema_.coded
    nodes = map(model.tree_.index, record)
    gaussian = not isinstance(model.model_, TreeModel)  # whose hidden nodes have densities too
    if gaussian or any(v < len(coded) and not coded[v] for v in nodes):
        return f"log-likelihood of what is given: {log:.6g}"
    return f"probability of what is given: {np.exp(log):.4g} (log {log:.6g})"


def _print_answers(
    console: Console, model: LatentTree, nodes: Sequence[str], record: dict[str, Any], top: int
) -> None:
    from latenttree.cli.node_values import expectation, values_of

    names = [values_of(model.model_, model.schema_, model.tree_.index(node)) for node in nodes]
    states = [n for n, values in zip(nodes, names, strict=True) if values.kind == "states"]
    after = model.predict_proba(record, states) if record and states else {}
    plain = "P" if len(states) == len(nodes) else "P or mean"
    heads = ("node", "value", "given this", "without") if record else ("node", "value", plain)
    table = new_table(*heads, left=2, header_style="bold")
    for node, values in zip(nodes, names, strict=True):
        columns = [model.marginal(node)]
        if record and node in after:
            columns.insert(0, after[node][0])
        elif record:
            columns.insert(0, expectation(model, record, model.tree_.index(node)))
        _add_rows(table, node, values, columns, top)
    console.print(table)


def _add_rows(
    table: Table, node: str, names: NodeValues, columns: Sequence[Floats], top: int
) -> None:
    """All states in order, or the most probable ones where there are too many."""
    for i, (text, *entries) in enumerate(names.rows(np.stack(columns, axis=1), columns[0], top)):
        table.add_row(escape(node) if i == 0 else "", escape(text), *entries)
