"""``latenttree transform``: posteriors of the hidden variables, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenttree.cli.model_file import load_model
from latenttree.cli.options import DataFile, ModelFile, NewEvents, TableOptions, Threads
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.data.schema.new_data import Rows
    from latenttree.engine.arrays import Floats
    from latenttree.queries import Answers


def transform_command(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv, .npz or .parquet.")],
    reading: TableOptions,
    events: NewEvents,
    threads: Threads = None,
) -> None:
    """Posterior probabilities of every hidden variable, sample by sample; of a Gaussian tree the
    posterior means."""
    from latenttree.cli.new_data import read_new_data
    from latenttree.cli.output_tables import check_output, identifier_columns, table_writer
    from latenttree.engine import resolve_jobs
    from latenttree.queries import answers_of

    events.check()
    check_output(out, (".csv", ".npz", ".parquet"), file)
    fitted = load_model(model, threads)
    answers = answers_of(fitted.model_, fitted.schema_)
    names = answers.names_out().tolist()
    if not names:
        raise DataError(f"{model} has no hidden variables, so there are no posteriors")
    data = read_new_data(file, fitted, reading, events)
    console = new_console()
    print_notes(console, data.notes)
    ids, columns = identifier_columns(data, out)
    parts = _posteriors(answers, data.rows, len(names), resolve_jobs(threads))
    with new_progress().stage("posteriors"), table_writer(out, [*ids, *names]) as write:
        for start, values in parts:
            write([*(c[start : start + len(values)] for c in columns), *values.T])
    print_file(console, f"{len(data):,} samples x {len(names):,} posterior values", out)


def _posteriors(
    answers: Answers, rows: Rows, width: int, n_jobs: int
) -> Iterator[tuple[int, Floats]]:
    """Ranges of samples: the first of each, and the posteriors of the hidden nodes."""
    from latenttree.cli.output_tables import refuse_impossible
    from latenttree.queries import SampleEvidence

    for start, part in _parts(rows, width + rows.n_vars):
        try:
            yield start, answers.hidden(SampleEvidence(part), n_jobs)
        except DataError:
            refuse_impossible(answers.log_likelihoods(SampleEvidence(part), n_jobs), start)
            raise


def _parts(rows: Rows, width: int) -> Iterator[tuple[int, Rows]]:
    """Ranges of samples whose working arrays, `width` numbers a sample, fit in memory."""
    from latenttree.data.schema.new_data import Rows
    from latenttree.queries.evidence import sample_ranges

    for start, stop in sample_ranges(rows.n_samples, width):
        codes, arrays = rows.take(start, stop), rows.arrays_at(start, stop)
        yield start, Rows(stop - start, codes, arrays=arrays, n_vars=rows.n_vars)
