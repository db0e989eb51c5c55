"""``score``, ``transform``, ``impute`` and ``sample``: a model at work on files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from latenttree.cli.common import (
    DataFile,
    Delimiter,
    EventCode,
    EventRollUp,
    EventSample,
    EventSince,
    EventTime,
    EventUntil,
    Ignored,
    IsEvents,
    KnownGroups,
    ModelFile,
    Seed,
    Threads,
    UnknownCodes,
    Vocabulary,
    clean_exit,
    load_model,
    new_console,
    new_progress,
    print_file,
    print_notes,
    separator,
)
from latenttree.cli.inputs import EventOptions, check_event_options, recorded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from latenttree.cli.newdata import NewData
    from latenttree.data.schema.new_data import Rows
    from latenttree.estimator import LatentTree
    from latenttree.queries import Answers, Filled

DRAWN_AT_ONCE = 1 << 24  # states held in memory while samples are drawn and written


def score(
    model: ModelFile,
    file: DataFile,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Also write every sample's value: .csv, .npz, .parquet."),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says how often each row counts."),
    ] = None,
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
    ignore: Ignored = None,
    events: IsEvents = False,
    sample: EventSample = None,
    code: EventCode = None,
    time: EventTime = None,
    since: EventSince = None,
    until: EventUntil = None,
    roll_up: EventRollUp = None,
    groups: KnownGroups = None,
    unknown: UnknownCodes = "stop",
) -> None:
    """Log-likelihood of samples: the mean and BIC, or each by itself."""
    with clean_exit():
        import numpy as np

        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import Asked, answers_of

        options = EventOptions(sample, code, time, since, until, roll_up or (), groups)
        check_event_options(events, options)
        if out is not None:
            check_output(out, (".csv", ".npz", ".parquet"), file)
        fitted = load_model(model, threads)
        data = _read(
            file,
            fitted,
            vocab=vocab,
            delimiter=separator(delimiter),
            ignore=ignore or (),
            weights=weights,
            events=options if events else None,
            drop_unknown=unknown == "drop",
        )
        with new_progress().stage("likelihood"):
            answers = answers_of(fitted.model_, fitted.schema_)
            logs = answers.log_likelihoods(Asked(data.rows), _jobs(threads))
        console = new_console()
        n, total = _total(logs, data.weights)
        penalty = fitted.model_.n_parameters * np.log(n)
        counted = "" if data.weights is None else f" (weight {n:,.6g})"
        print_notes(console, data.notes)
        console.print(f"samples               {len(logs):,}{counted}")
        console.print(f"mean log-likelihood   {total / n:.6g}")
        console.print(f"BIC                   {penalty - 2 * total:.8g}")
        print_notes(console, _impossible_note(logs))
        if out is not None:
            ids, columns = _identifiers(data, out)
            with table_writer(out, [*ids, "log_likelihood"]) as write:
                write([*columns, logs])
            print_file(console, "log-likelihoods", out)


def transform(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv, .npz or .parquet.")],
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
    ignore: Ignored = None,
    events: IsEvents = False,
    sample: EventSample = None,
    code: EventCode = None,
    time: EventTime = None,
    since: EventSince = None,
    until: EventUntil = None,
    roll_up: EventRollUp = None,
    groups: KnownGroups = None,
    unknown: UnknownCodes = "stop",
) -> None:
    """Posterior probabilities of every hidden variable, sample by sample; of a Gaussian tree the
    posterior means."""
    with clean_exit():
        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import answers_of

        options = EventOptions(sample, code, time, since, until, roll_up or (), groups)
        check_event_options(events, options)
        check_output(out, (".csv", ".npz", ".parquet"), file)
        fitted = load_model(model, threads)
        answers = answers_of(fitted.model_, fitted.schema_)
        names = answers.names_out().tolist()
        if not names:
            raise ValueError(f"{model} has no hidden variables, so there are no posteriors")
        data = _read(
            file,
            fitted,
            vocab=vocab,
            delimiter=separator(delimiter),
            ignore=ignore or (),
            events=options if events else None,
            drop_unknown=unknown == "drop",
        )
        console = new_console()
        print_notes(console, data.notes)
        ids, columns = _identifiers(data, out)
        parts = _posteriors(answers, data.rows, len(names), _jobs(threads))
        with new_progress().stage("posteriors"), table_writer(out, [*ids, *names]) as write:
            for start, found in parts:
                write([*(c[start : start + len(found)] for c in columns), *found.T])
        print_file(console, f"{len(data):,} samples x {len(names):,} posterior values", out)


def impute(
    model: ModelFile,
    file: DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The table without gaps: .csv.")],
    method: Annotated[
        Literal["mode", "sample"],
        typer.Option(
            help="The most probable value (or expected number) of each gap, or a draw of all gaps "
            "of a row."
        ),
    ] = "mode",
    seed: Seed = None,
    threads: Threads = None,
    vocab: Vocabulary = None,
    delimiter: Delimiter = ",",
    ignore: Ignored = None,
) -> None:
    """Fill the empty cells of a table."""
    with clean_exit():
        from latenttree.cli.columns import count_gaps, filled_columns
        from latenttree.cli.outputs import check_output, table_writer
        from latenttree.queries import answers_of, as_generator

        check_output(out, (".csv",), file)
        fitted = load_model(model, threads)
        data = _read(file, fitted, vocab=vocab, delimiter=separator(delimiter), ignore=ignore or ())
        n_gaps, n_rows = count_gaps(fitted.schema_, data)
        with new_progress().stage("filling"):
            answers = answers_of(fitted.model_, fitted.schema_)
            _check_all_possible(answers, data.rows, _jobs(threads))
            rng = as_generator(seed) if method == "sample" else None
            complete = answers.filled(data.rows, rng, _jobs(threads))
        names, columns = filled_columns(fitted.schema_, data, complete)
        with table_writer(out, names) as write:
            write(columns)
        print_file(new_console(), f"filled {n_gaps:,} gaps in {n_rows:,} samples", out)


def sample(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv or .parquet.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also write the values of the hidden variables.")
    ] = False,
    seed: Seed = None,
) -> None:
    """Draw new samples from a model."""
    with clean_exit():
        from latenttree.cli.columns import column_names, columns_of
        from latenttree.cli.outputs import check_output, table_writer

        check_output(out, (".csv", ".parquet"))
        fitted = load_model(model)
        schema = fitted.schema_
        names = column_names(schema) + (_hidden_names(fitted) if hidden else [])
        with new_progress().stage("drawing"), table_writer(out, names) as write:
            for drawn, states in _draws(fitted, n, seed):
                write(columns_of(schema, drawn) + (list(states.T) if hidden else []))
        print_file(new_console(), f"{n:,} samples of {len(names):,} variables", out)


# ---- small helpers --------------------------------------------------------------------


def _jobs(threads: int | None) -> int:
    from latenttree.engine import resolve_jobs

    return resolve_jobs(threads)


def _read(file: Path, model: LatentTree, **how: Any) -> NewData:
    """The samples of a file; `how` is that of `Reading`."""
    from latenttree.cli.newdata import Reading, read_new

    fitted_with = recorded(model.diagnostics_.messages)
    return read_new(file, model.schema_, Reading(**how, fitted_with=fitted_with))


def _total(logs: NDArray[np.float64], weights: NDArray[np.float64] | None) -> tuple[float, float]:
    """How many samples there are, and the sum over them; rows of weight 0 do not count."""
    if weights is None:
        return len(logs), float(logs.sum())
    counts = weights > 0  # an impossible row of weight 0 would make the sum NaN
    return float(weights.sum()), float(weights[counts] @ logs[counts])


def _identifiers(data: NewData, out: Path) -> tuple[list[str], list[NDArray[Any]]]:
    """The samples of events, which no order of rows tells, where the file can hold them."""
    if data.samples is None or out.suffix.lower() == ".npz":
        return [], []
    return ["sample"], [data.samples]


def _posteriors(
    answers: Answers, rows: Rows, width: int, n_jobs: int
) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Ranges of samples: the first of each, and what they say about the hidden nodes."""
    from latenttree.errors import DataError
    from latenttree.queries import Asked

    for start, part in _parts(rows, width + rows.n_vars):
        try:
            yield start, answers.hidden(Asked(part), n_jobs)
        except DataError:
            _check_possible(answers.log_likelihoods(Asked(part), n_jobs), start)
            raise


def _parts(rows: Rows, width: int) -> Iterator[tuple[int, Rows]]:
    """Ranges of samples whose working arrays, `width` numbers a sample, fit in memory."""
    from latenttree.data.schema.new_data import Rows
    from latenttree.queries.evidence import spans

    for start, stop in spans(rows.n_samples, width):
        codes, arrays = rows.take(start, stop), rows.arrays_at(start, stop)
        yield start, Rows(stop - start, codes, arrays=arrays, n_vars=rows.n_vars)


def _draws(model: LatentTree, n: int, seed: int | None) -> Iterator[tuple[Filled, NDArray[Any]]]:
    from latenttree.engine import blocks
    from latenttree.queries import answers_of, as_generator

    rng, answers = as_generator(seed), answers_of(model.model_, model.schema_)
    width = model.tree_.n_nodes + int(model.schema_.dims[~model.schema_.coded].sum())
    for start, stop in blocks(n, max(1, DRAWN_AT_ONCE // width)):
        yield answers.sample(stop - start, rng)


def _hidden_names(model: LatentTree) -> list[str]:
    """A column for each hidden node; of a Gaussian tree one for each of its dimensions."""
    if model.hidden == "gaussian":
        return [str(name) for name in model.get_feature_names_out()]
    return list(model.tree_.hidden_names)


def _impossible_note(logs: NDArray[np.float64]) -> list[str]:
    import numpy as np

    bad = np.flatnonzero(np.isneginf(logs))
    if not len(bad):
        return []
    return [
        f"{len(bad):,} samples have probability zero under the model, the first of them sample "
        f"{bad[0] + 1}; fit with --smoothing above 0 to keep every value possible"
    ]


def _check_all_possible(answers: Answers, rows: Rows, n_jobs: int) -> None:
    from latenttree.queries import Asked

    _check_possible(answers.log_likelihoods(Asked(rows), n_jobs), 0)


def _check_possible(logs: NDArray[np.float64], start: int) -> None:
    import numpy as np

    from latenttree.errors import DataError

    bad = np.flatnonzero(np.isneginf(logs))
    if len(bad):
        raise DataError(
            f"sample {start + bad[0] + 1} has probability zero under the model, so nothing follows "
            "from it; correct it, or empty the cells that are in doubt"
        )
