"""``latenttree impute``: a table without empty cells."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from latenttree.cli.model_file import load_model
from latenttree.cli.options import DataFile, ModelFile, Seed, TableOptions, Threads
from latenttree.cli.printing import new_console, new_progress, print_file

if TYPE_CHECKING:
    from latenttree.cli.new_data import NewData
    from latenttree.estimator import LatentTree
    from latenttree.queries import Filled

Method = Literal["mode", "sample"]


def impute_command(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The table without gaps: .csv.")],
    reading: TableOptions,
    method: Annotated[
        Method,
        typer.Option(
            help="The most probable value (or expected number) of each gap, or a draw of all gaps "
            "of a row."
        ),
    ] = "mode",
    seed: Seed = None,
    threads: Threads = None,
) -> None:
    """Fill the empty cells of a table."""
    from latenttree.cli.columns import count_gaps, filled_columns
    from latenttree.cli.new_data import read_new_data
    from latenttree.cli.output_tables import check_output, table_writer

    check_output(out, (".csv",), file)
    fitted = load_model(model, threads)
    data = read_new_data(file, fitted, reading)
    n_gaps, n_rows = count_gaps(fitted.schema_, data)
    filled = _fill(fitted, data, method, seed)
    names, columns = filled_columns(fitted.schema_, data, filled)
    with table_writer(out, names) as write:
        write(columns)
    print_file(new_console(), f"filled {n_gaps:,} gaps in {n_rows:,} samples", out)


def _fill(model: LatentTree, data: NewData, method: Method, seed: int | None) -> Filled:
    from latenttree.cli.output_tables import refuse_impossible
    from latenttree.engine import resolve_jobs
    from latenttree.queries import SampleEvidence, answers_of, as_generator

    n_jobs = resolve_jobs(model.n_jobs)
    with new_progress().stage("filling"):
        answers = answers_of(model.model_, model.schema_)
        refuse_impossible(answers.log_likelihoods(SampleEvidence(data.rows), n_jobs))
        rng = as_generator(seed) if method == "sample" else None
        return answers.filled(data.rows, rng, n_jobs)
