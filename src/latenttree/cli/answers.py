"""``score``, ``transform``, ``impute`` and ``sample``: a model at work on files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from latenttree.cli.common import (
    DataFile,
    Delimiter,
    ModelFile,
    Seed,
    Threads,
    Vocabulary,
    clean_exit,
    load_model,
    new_console,
    new_progress,
    print_file,
    print_notes,
    separator,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from latenttree.cli.newdata import NewData
    from latenttree.estimator import LatentTree

DRAWN_AT_ONCE = 1 << 24  # states held in memory while samples are drawn and written


def score(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write every sample's value: .csv, .npz, .parquet."),
    ] = None,
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
) -> None:
    """Log-likelihood of samples: the mean and BIC, or each by itself."""
    with clean_exit():
        import numpy as np

        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import Asked, answers_of

        if out is not None:
            check_output(out, (".csv", ".npz", ".parquet"), file)
        fitted = load_model(model, threads)
        data = _read(file, fitted, vocab, delimiter)
        with new_progress().stage("likelihood"):
            answers = answers_of(fitted.model_, fitted.schema_)
            logs = answers.log_likelihoods(Asked(data.rows), _jobs(threads))
        console = new_console()
        n, k = len(logs), fitted.model_.n_parameters
        console.print(f"samples               {n:,}")
        console.print(f"mean log-likelihood   {logs.mean():.6g}")
        console.print(f"BIC                   {k * np.log(n) - 2 * logs.sum():.8g}")
        print_notes(console, _impossible_note(logs))
        if out is not None:
            with table_writer(out, ["log_likelihood"]) as write:
                write([logs])
            print_file(console, "log-likelihoods", out)


def transform(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv, .npz or .parquet.")],
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
) -> None:
    """Posterior probabilities of every hidden variable, sample by sample."""
    with clean_exit():
        from latenttree import inference
        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import Asked, hidden_names_out

        check_output(out, (".csv", ".npz", ".parquet"), file)
        fitted = load_model(model, threads)
        names = hidden_names_out(fitted.model_).tolist()
        if not names:
            raise ValueError(f"{model} has no hidden variables, so there are no posteriors")
        data = _read(file, fitted, vocab, delimiter)
        width = len(names) + fitted.tree_.n_observed
        with new_progress().stage("posteriors"), table_writer(out, names) as write:
            for start, _, evidence in Asked(data.rows).ranges(fitted.model_, width):
                found = inference.posteriors(fitted.model_, evidence, None, _jobs(threads))
                _check_possible(found.log_likelihood, start)
                write(list(found.array.T))
        console = new_console()
        print_file(console, f"{len(data):,} samples x {len(names):,} probabilities", out)


def impute(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The table without gaps: .csv.")],
    method: Annotated[
        Literal["mode", "sample"],
        typer.Option(help="The most probable value of each gap, or a draw of all gaps of a row."),
    ] = "mode",
    seed: Seed = None,
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
) -> None:
    """Fill the empty cells of a table."""
    with clean_exit():
        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import answers_of, as_generator

        check_output(out, (".csv",), file)
        fitted = load_model(model, threads)
        data = _read(file, fitted, vocab, delimiter)
        codes = data.rows.take(0, len(data))
        n_gaps, n_rows = int((codes < 0).sum()), int((codes < 0).any(axis=1).sum())
        with new_progress().stage("filling"):
            _check_all_possible(fitted, data, _jobs(threads))
            rng = as_generator(seed) if method == "sample" else None
            answers = answers_of(fitted.model_, fitted.schema_)
            complete = answers.filled(data.rows, rng, _jobs(threads)).codes
        names, columns = _filled_columns(fitted, data, complete)
        with table_writer(out, names) as write:
            write(columns)
        print_file(new_console(), f"filled {n_gaps:,} gaps in {n_rows:,} samples", out)


def sample(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv or .parquet.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also write the states of the hidden variables.")
    ] = False,
    seed: Seed = None,
) -> None:
    """Draw new samples from a model."""
    with clean_exit():
        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import classes_of

        check_output(out, (".csv", ".parquet"))
        fitted = load_model(model)
        names = fitted.tree_.names if hidden else fitted.tree_.observed_names
        labels = [classes_of(fitted.model_, fitted.schema_, v) for v in range(len(names))]
        with new_progress().stage("drawing"), table_writer(out, names) as write:
            for states in _draws(fitted, n, seed):
                write([known[states[:, v]] for v, known in enumerate(labels)])
        print_file(new_console(), f"{n:,} samples of {len(names):,} variables", out)


# ---- small helpers --------------------------------------------------------------------


def _jobs(threads: int | None) -> int:
    from latenttree.engine import resolve_jobs

    return resolve_jobs(threads)


def _read(file: Path, model: LatentTree, vocab: Path | None, delimiter: str) -> NewData:
    from latenttree.cli.newdata import read_new

    return read_new(file, model.schema_, vocab, separator(delimiter))


def _draws(model: LatentTree, n: int, seed: int | None) -> Iterator[NDArray[Any]]:
    from latenttree import inference
    from latenttree.engine import blocks
    from latenttree.queries import as_generator

    rng = as_generator(seed)
    for start, stop in blocks(n, max(1, DRAWN_AT_ONCE // model.tree_.n_nodes)):
        yield inference.sample(model.model_, stop - start, rng)


def _filled_columns(
    model: LatentTree, data: NewData, codes: NDArray[Any]
) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and columns of a table without gaps; what the file said stays as it was written."""
    labels = model.schema_.labels
    if data.cells is None:
        return list(model.schema_.names), [labels[i][codes[:, i]] for i in range(len(labels))]
    position = {name: i for i, name in enumerate(model.schema_.input_names)}
    columns = []
    for j, name in enumerate(data.cells.header):
        i = model.schema_.variable_of(position[name])
        columns.append(_merged(data, j, i, None if i is None else labels[i][codes[:, i]]))
    return list(data.cells.header), columns


def _merged(data: NewData, j: int, i: int | None, values: NDArray[Any] | None) -> NDArray[Any]:
    """The texts of column `j`, and `values` where variable `i` has a gap."""
    import numpy as np

    assert data.cells is not None
    column = np.asarray(data.cells.texts[j], dtype=object)[data.cells.codes[j]]
    if i is not None and values is not None:
        gaps = data.rows.take(0, len(data))[:, i] < 0
        column[gaps] = [str(value) for value in values[gaps].tolist()]
    return column


def _impossible_note(logs: NDArray[np.float64]) -> list[str]:
    import numpy as np

    bad = np.flatnonzero(np.isneginf(logs))
    if not len(bad):
        return []
    return [
        f"{len(bad):,} samples have probability zero under the model, the first of them sample "
        f"{bad[0] + 1}; fit with --smoothing above 0 to keep every value possible"
    ]


def _check_all_possible(model: LatentTree, data: NewData, n_jobs: int) -> None:
    from latenttree.queries import Asked, answers_of

    answers = answers_of(model.model_, model.schema_)
    _check_possible(answers.log_likelihoods(Asked(data.rows), n_jobs), 0)


def _check_possible(logs: NDArray[np.float64], start: int) -> None:
    import numpy as np

    from latenttree.errors import DataError

    bad = np.flatnonzero(np.isneginf(logs))
    if len(bad):
        raise DataError(
            f"sample {start + bad[0] + 1} has probability zero under the model, so nothing follows "
            "from it; correct it, or empty the cells that are in doubt"
        )
