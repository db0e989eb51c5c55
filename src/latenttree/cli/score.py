"""``latenttree score``: log-likelihoods of samples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenttree.cli.model_file import load_model
from latenttree.cli.options import DataFile, ModelFile, NewEvents, TableOptions, Threads, Weights
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes

if TYPE_CHECKING:
    from rich.console import Console

    from latenttree.cli.new_data import NewData
    from latenttree.engine.arrays import Floats
    from latenttree.estimator import LatentTree


def score_command(
    model: ModelFile,
    file: DataFile,
    reading: TableOptions,
    events: NewEvents,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write every sample's value: .csv, .npz, .parquet."),
    ] = None,
    weights: Weights = None,
    threads: Threads = None,
) -> None:
    """Log-likelihood of samples: the mean and BIC, or each by itself."""
    from latenttree.cli.new_data import read_new_data
    from latenttree.cli.output_tables import check_output

    events.check()
    if out is not None:
        check_output(out, (".csv", ".npz", ".parquet"), file)
    fitted = load_model(model, threads)
    data = read_new_data(file, fitted, reading, events, weights)
    logs = _log_likelihoods(fitted, data)
    console = new_console()
    print_notes(console, data.notes)
    _print_scores(console, fitted, data, logs)
    if out is not None:
        _write(console, data, logs, out)


def _log_likelihoods(model: LatentTree, data: NewData) -> Floats:
    from latenttree.engine import resolve_jobs
    from latenttree.queries import SampleEvidence, answers_of

    with new_progress().stage("likelihood"):
        answers = answers_of(model.model_, model.schema_)
        return answers.log_likelihoods(SampleEvidence(data.rows), resolve_jobs(model.n_jobs))


def _print_scores(console: Console, model: LatentTree, data: NewData, logs: Floats) -> None:
    import numpy as np

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
    from latenttree.cli.output_tables import identifier_columns, table_writer

    names, columns = identifier_columns(data, out)
    with table_writer(out, [*names, "log_likelihood"]) as write:
        write([*columns, logs])
    print_file(console, "log-likelihoods", out)
