"""``latenttree query --table``: answers for every sample of a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from latenttree.cli.commands import Query
from latenttree.cli.model_file import load_model
from latenttree.cli.new_data import read_new_data
from latenttree.cli.node_values import NodeValues, expectations, values_of
from latenttree.cli.output_tables import (
    TABLES,
    check_output,
    identifier_columns,
    refuse_impossible,
    table_writer,
)
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.cli.reading_record import NewOptions
from latenttree.cli.row_ranges import row_ranges
from latenttree.engine import resolve_jobs
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.phrases import counted
from latenttree.queries import SampleEvidence, answers_of, node_indices

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def answer_table(asked: Query, file: Path) -> None:
    """Write, for every sample of the file, the distribution of each node given all its other
    columns."""
    if asked.given or asked.json:
        wrong = "--given" if asked.given else "--json"
        raise DataError(f"{wrong} does not go with --table", "leave it out")
    if asked.out is None:
        raise DataError("--table needs a file for the answers", "name it by --out")
    check_output(asked.out, TABLES, file)
    fitted = load_model(asked.model, asked.threads)
    nodes = node_indices(fitted.model_, asked.nodes, "the question")
    own = [fitted.tree_.names[v] for v in nodes if v < fitted.tree_.n_observed]
    data = read_new_data(file, fitted, NewOptions(asked.reading, asked.events), own)
    values = [values_of(fitted.model_, fitted.schema_, v) for v in nodes]
    names = [n for v, x in zip(nodes, values, strict=True) for n in _names(fitted, v, x)]
    ids, columns = identifier_columns(data, asked.out)
    ranges = row_ranges(data.rows, len(names) + fitted.tree_.n_nodes)
    with new_progress().stage("answering"), table_writer(asked.out, [*ids, *names]) as write:
        for start, part in ranges:
            evidence = SampleEvidence(part)
            found = _answers(fitted, evidence, nodes, values, start)
            write([*(c[start : start + len(found)] for c in columns), *found.T])
    console = new_console()
    print_notes(console, data.notes)
    print_file(console, f"{counted(len(data), 'sample')} x {len(names):,} answers", asked.out)


def _names(model: LatentTree, v: int, values: NodeValues) -> list[str]:
    """Of the columns: "node=label", "group[code]", or the name of a number."""
    name = model.tree_.names[v]
    if values.kind == "states":
        return [f"{name}={text}" for text in values.texts]
    return [name] if len(values.texts) == 1 else [f"{name}[{text}]" for text in values.texts]


def _answers(
    model: LatentTree,
    evidence: SampleEvidence,
    nodes: Sequence[int],
    values: Sequence[NodeValues],
    start: int,
) -> Floats:
    """(n, columns) the answers for a range of samples, the first of them number `start`."""
    n_jobs, answers = resolve_jobs(model.n_jobs), answers_of(model.model_, model.schema_)
    refuse_impossible(answers.log_likelihoods(evidence, n_jobs), start)
    states = [v for v, x in zip(nodes, values, strict=True) if x.kind == "states"]
    found = answers.probabilities(evidence, states, n_jobs) if states else []
    known = dict(zip(states, found, strict=True))
    parts = [known[v] if v in known else expectations(model, evidence, v, n_jobs) for v in nodes]
    return np.concatenate(parts, axis=1)
