"""``latenttree query``: exact conditional distributions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenttree.cli.commands import Query
from latenttree.cli.json_output import print_json
from latenttree.cli.model_file import load_model
from latenttree.cli.printing import new_console, new_table
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.cli.node_values import NodeValues
    from latenttree.estimator import LatentTree


def run(asked: Query) -> None:
    """Ask the model, and print a table."""
    if asked.table is not None:
        from latenttree.cli.query_table import answer_table  # loads much

        answer_table(asked, asked.table)
        return
    fitted = load_model(asked.model, threads=1)
    from latenttree.cli.given import parse_given  # loads much

    if asked.out is not None:
        raise DataError("--out is for the answers of a table", "pass --table FILE too")
    record = parse_given(fitted, asked.given or [])
    _check_query(fitted, asked.nodes, record)
    log = _log_likelihood(fitted, record) if record else None
    answers = _answers(fitted, asked.nodes, record)
    if asked.json:
        answered = [answer.record() for answer in answers]
        print_json({"given": record, "log_likelihood": log, "answers": answered})
        return
    console = new_console()
    if log is not None:
        console.print(_evidence_line(fitted, record, log), highlight=False)
    _print_answers(console, answers, bool(record), asked.top)


@dataclass(frozen=True)
class Answer:
    """The distribution of a node, or its expectation.

    Attributes
    ----------
    node : its name.
    names : of the entries.
    without : (d,) entries where nothing is given.
    given : (d,) the same given the evidence; None without.
    """

    node: str
    names: NodeValues
    without: Floats
    given: Floats | None

    def record(self) -> dict[str, Any]:
        """What ``--json`` prints of it."""
        return {
            "node": self.node,
            "family": self.names.family,
            "values": self.names.texts,
            "given": self.given,
            "without": self.without,
        }


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


def _log_likelihood(model: LatentTree, record: dict[str, Any]) -> float:
    """Of what is given; an impossible one is an error."""
    log = float(model.score_samples(record)[0])
    if np.isneginf(log):
        raise DataError(
            "what is given has probability zero under the model, so it has no posterior",
            "correct it, or leave out what is in doubt",
        )
    return log


def _evidence_line(model: LatentTree, record: dict[str, Any], log: float) -> str:
    """The probability of what is given, where it has one."""
    from latenttree.model.tree_model import TreeModel  # loads much

    if any(map(_is_soft, record.values())):
        return f"log of the weighted probability of what is given: {log:.6g}"
    coded = model.schema_.coded
    nodes = map(model.tree_.index, record)
    gaussian = not isinstance(model.model_, TreeModel)  # whose hidden nodes have densities too
    if gaussian or any(v < len(coded) and not coded[v] for v in nodes):
        return f"log-likelihood of what is given: {log:.6g}"
    return f"probability of what is given: {np.exp(log):.4g} (log {log:.6g})"


def _answers(model: LatentTree, nodes: Sequence[str], record: dict[str, Any]) -> list[Answer]:
    from latenttree.cli.node_values import expectation, values_of

    names = [values_of(model.model_, model.schema_, model.tree_.index(node)) for node in nodes]
    states = [n for n, values in zip(nodes, names, strict=True) if values.kind == "states"]
    after = model.predict_proba(record, states) if record and states else {}
    answers = []
    for node, values in zip(nodes, names, strict=True):
        given = after[node][0] if node in after else None
        if record and given is None:
            given = expectation(model, record, model.tree_.index(node))
        answers.append(Answer(node, values, model.marginal(node), given))
    return answers


def _print_answers(console: Console, answers: Sequence[Answer], has_given: bool, top: int) -> None:
    plain = "P" if all(answer.names.kind == "states" for answer in answers) else "P or mean"
    heads = ("node", "value", "given this", "without") if has_given else ("node", "value", plain)
    table = new_table(*heads, left=2, header_style="bold")
    for answer in answers:
        columns = [x for x in (answer.given, answer.without) if x is not None]
        _add_rows(table, answer.node, answer.names, columns, top)
    console.print(table)


def _add_rows(
    table: Table, node: str, names: NodeValues, columns: Sequence[Floats], top: int
) -> None:
    """All states in order, or the most probable ones where there are too many."""
    for i, (text, *entries) in enumerate(names.rows(np.stack(columns, axis=1), columns[0], top)):
        table.add_row(escape(node) if i == 0 else "", escape(text), *entries)
