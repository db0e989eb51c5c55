"""``latenttree transform``: posteriors of the hidden variables, sample by sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from latenttree.cli.commands import Transform
from latenttree.cli.model_file import load_model
from latenttree.cli.new_data import read_new_data
from latenttree.cli.output_tables import (
    NUMBER_TABLES,
    check_output,
    identifier_columns,
    refuse_impossible,
    table_writer,
)
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.cli.reading_record import NewOptions
from latenttree.data.schema.rows import Rows
from latenttree.engine import resolve_jobs
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.queries import Answers


def run(asked: Transform) -> None:
    """Read the samples, and write their posteriors."""
    out = asked.out
    check_output(out, NUMBER_TABLES, asked.file)
    fitted = load_model(asked.model, asked.threads)
    from latenttree.queries import answers_of  # loads much

    answers = answers_of(fitted.model_, fitted.schema_)
    names = answers.names_out().tolist()
    if not names:
        raise DataError(f"{asked.model} has no hidden variables, so there are no posteriors")
    data = read_new_data(asked.file, fitted, NewOptions(asked.reading, asked.events))
    console = new_console()
    print_notes(console, data.notes)
    ids, columns = identifier_columns(data, out)
    parts = _posteriors(answers, data.rows, len(names), resolve_jobs(asked.threads))
    with new_progress().stage("posteriors"), table_writer(out, [*ids, *names]) as write:
        for start, values in parts:
            write([*(c[start : start + len(values)] for c in columns), *values.T])
    print_file(console, f"{counted(len(data), 'sample')} x {len(names):,} posterior values", out)


def _posteriors(
    answers: Answers, rows: Rows, width: int, n_jobs: int
) -> Iterator[tuple[int, Floats]]:
    """Ranges of samples: the first of each, and the posteriors of the hidden nodes."""
    from latenttree.cli.row_ranges import row_ranges  # loads much
    from latenttree.queries import SampleEvidence

    for start, part in row_ranges(rows, width):
        try:
            yield start, answers.hidden(SampleEvidence(part), n_jobs)
        except DataError:
            refuse_impossible(answers.log_likelihoods(SampleEvidence(part), n_jobs), start)
            raise
