"""``latenttree impute``: a table without empty cells."""

from __future__ import annotations

from typing import TYPE_CHECKING

from latenttree.cli.columns import count_gaps, filled_columns
from latenttree.cli.commands import Impute
from latenttree.cli.model_file import load_model
from latenttree.cli.new_data import read_new_data
from latenttree.cli.new_samples import NewData
from latenttree.cli.output_tables import TABLES, check_output, refuse_impossible, table_writer
from latenttree.cli.printing import new_console, new_progress, print_file, print_notes
from latenttree.cli.reading_record import NewOptions
from latenttree.engine import resolve_jobs
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree
    from latenttree.queries import Filled


def run(asked: Impute) -> None:
    """Read the table, fill it, and write it."""
    check_output(asked.out, TABLES, asked.file)
    fitted = load_model(asked.model, asked.threads)
    data = read_new_data(asked.file, fitted, NewOptions(asked.reading))
    n_gaps, n_rows = count_gaps(fitted.schema_, data)
    filled = _fill(fitted, data, asked)
    as_texts = asked.out.suffix.lower() in (".csv", ".tsv")
    names, columns = filled_columns(fitted.schema_, data, filled, as_texts)
    with table_writer(asked.out, names) as write:
        write(columns)
    console = new_console()
    print_notes(console, data.notes)
    print_file(
        console, f"filled {counted(n_gaps, 'gap')} in {counted(n_rows, 'sample')}", asked.out
    )


def _fill(model: LatentTree, data: NewData, asked: Impute) -> Filled:
    from latenttree.queries import SampleEvidence, answers_of, as_generator  # loads much

    n_jobs = resolve_jobs(model.n_jobs)
    with new_progress().stage("filling"):
        answers = answers_of(model.model_, model.schema_)
        known = SampleEvidence(data.rows)
        refuse_impossible(answers.log_likelihoods(known, n_jobs))
        rng = as_generator(asked.seed) if asked.method == "sample" else None
        return answers.filled(known, rng, n_jobs)
