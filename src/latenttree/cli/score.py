"""``latenttree score``: log-likelihoods of samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from latenttree.cli.commands import Score
from latenttree.cli.json_output import print_json
from latenttree.cli.model_file import load_model
from latenttree.cli.new_data import read_new_data
from latenttree.cli.new_samples import NewData
from latenttree.cli.output_tables import (
    NUMBER_TABLES,
    check_output,
    identifier_columns,
    table_writer,
)
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.cli.reading_record import NewOptions
from latenttree.cli.wording import in_words
from latenttree.engine import resolve_jobs
from latenttree.engine.arrays import Floats
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def run(asked: Score) -> None:
    """Read the samples, print their scores, and write them where asked."""
    if asked.out is not None:
        check_output(asked.out, NUMBER_TABLES, asked.file)
    fitted = load_model(asked.model, asked.threads)
    options = NewOptions(asked.reading, asked.events, asked.weights, counts=True)
    data = read_new_data(asked.file, fitted, options)
    logs = _log_likelihoods(fitted, data)
    if asked.out is not None:
        _write(data, logs, asked.out)
    record = _record(fitted, data, logs)
    if asked.json:
        print_json(record)
    else:
        _print(new_console(), record, data, asked.out)


def _log_likelihoods(model: LatentTree, data: NewData) -> Floats:
    from latenttree.queries import SampleEvidence, answers_of

    with new_progress().stage("likelihood"):
        answers = answers_of(model.model_, model.schema_)
        return answers.log_likelihoods(SampleEvidence(data.rows), resolve_jobs(model.n_jobs))


def _record(model: LatentTree, data: NewData, logs: Floats) -> dict[str, Any]:
    from latenttree.queries import weighted_sum

    total, n = weighted_sum(logs, data.weights)
    impossible = np.flatnonzero(np.isneginf(logs))
    return {
        "n_samples": len(logs),
        "weight": n,
        "mean_log_likelihood": total / n,
        "bic": model.model_.n_parameters * np.log(n) - 2 * total,
        "n_parameters": model.model_.n_parameters,
        "n_impossible": len(impossible),
        "first_impossible": int(impossible[0]) + 1 if len(impossible) else None,
        "notes": [in_words(note) for note in data.notes],
    }


def _print(console: Console, record: Mapping[str, Any], data: NewData, out: Path | None) -> None:
    print_notes(console, data.notes)
    weight = "" if data.weights is None else f" (weight {record['weight']:,.6g})"
    console.print(f"samples               {record['n_samples']:,}{weight}")
    console.print(f"mean log-likelihood   {record['mean_log_likelihood']:.6g}")
    console.print(f"BIC                   {record['bic']:.8g}")
    if record["n_impossible"]:
        note = (
            f"{counted(record['n_impossible'], 'sample')} of probability zero under the model, the "
            f"first of them sample {record['first_impossible']}; fit with --smoothing above 0 to "
            "keep every value possible"
        )
        print_notes(console, [note])
    if out is not None:
        print_file(console, "log-likelihoods", out)


def _write(data: NewData, logs: Floats, out: Path) -> None:
    names, columns = identifier_columns(data, out)
    with table_writer(out, [*names, "log_likelihood"]) as write:
        write([*columns, logs])
