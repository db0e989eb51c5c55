"""``latenttree score``: log-likelihoods of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from latenttree.cli.commands import Score
from latenttree.cli.model_file import load_model
from latenttree.cli.new_data import NewData, read_new_data
from latenttree.cli.output_tables import check_output, identifier_columns, table_writer
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.engine import resolve_jobs
from latenttree.engine.arrays import Floats

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def run(asked: Score) -> None:
    """Read the samples, print their scores, and write them where asked."""
    asked.events.check()
    if asked.out is not None:
        check_output(asked.out, (".csv", ".npz", ".parquet"), asked.file)
    fitted = load_model(asked.model, asked.threads)
    data = read_new_data(asked.file, fitted, asked.reading, asked.events, asked.weights)
    logs = _log_likelihoods(fitted, data)
    console = new_console()
    print_notes(console, data.notes)
    _print_scores(console, fitted, data, logs)
    if asked.out is not None:
        _write(console, data, logs, asked.out)


def _log_likelihoods(model: LatentTree, data: NewData) -> Floats:
    from latenttree.queries import SampleEvidence, answers_of

    with new_progress().stage("likelihood"):
        answers = answers_of(model.model_, model.schema_)
        return answers.log_likelihoods(SampleEvidence(data.rows), resolve_jobs(model.n_jobs))


def _print_scores(console: Console, model: LatentTree, data: NewData, logs: Floats) -> None:

    from latenttree.queries import weighted_sum

    total, n = weighted_sum(logs, data.weights)
    bic = model.model_.n_parameters * np.log(n) - 2 * total
    weight = "" if data.weights is None else f" (weight {n:,.6g})"
    console.print(f"samples               {len(logs):,}{weight}")
    console.print(f"mean log-likelihood   {total / n:.6g}")
    console.print(f"BIC                   {bic:.8g}")
    impossible = np.flatnonzero(np.isneginf(logs))
    if len(impossible):
        note = (
            f"{len(impossible):,} samples have probability zero under the model, the first of them "
            f"sample {impossible[0] + 1}; fit with --smoothing above 0 to keep every value possible"
        )
        print_notes(console, [note])


def _write(console: Console, data: NewData, logs: Floats, out: Path) -> None:
    names, columns = identifier_columns(data, out)
    with table_writer(out, [*names, "log_likelihood"]) as write:
        write([*columns, logs])
    print_file(console, "log-likelihoods", out)
