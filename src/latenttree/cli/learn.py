"""``latenttree fit``: from a file to a model in a file."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from latenttree.cli.common import (
    EVENTS,
    Delimiter,
    EventCode,
    EventGroups,
    EventRollUp,
    EventSample,
    EventSince,
    EventTime,
    EventUntil,
    Ignored,
    IsEvents,
    Picture,
    PictureLayout,
    Seed,
    Threads,
    Verbose,
    Vocabulary,
    check_picture_path,
    clean_exit,
    new_console,
    print_file,
    print_notes,
    save_figure,
    separator,
)
from latenttree.cli.inputs import (
    EventOptions,
    check_event_options,
    parse_families,
    read_training,
    record_of,
)
from latenttree.cli.summary import report, tree_figure

if TYPE_CHECKING:
    from rich.console import Console

    from latenttree.data import Table
    from latenttree.estimator import LatentTree

Choice = Literal["majority", "most_probable"]
Hidden = Literal["categorical", "gaussian"]


def fit(
    file: Annotated[
        Path,
        typer.Argument(
            help="Data: .csv, .parquet, .npy, .npz, docword.NAME.txt[.gz], .fasta; with --events "
            "a table with a row for each event: .csv, .csv.gz, .csv.xz, .parquet."
        ),
    ],
    out: Annotated[
        Path,
        typer.Option("--out", "-o", help="Model: .ltree. The tree alone: .json or .nwk."),
    ],
    states: Annotated[
        str | None,
        typer.Option(
            help="States of a hidden variable, or 'auto'; 2 if left out, 4 for nucleotides. Its "
            "dimensions, 1 if left out, where it is gaussian."
        ),
    ] = None,
    hidden: Annotated[
        Hidden, typer.Option(help="Hidden variables with states, or real ones: a Gaussian tree.")
    ] = "categorical",
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]NAME",
            help="Family of a column, or of all: categorical, ordinal, gaussian, poisson. May be "
            "repeated; columns that are not named are judged by their values.",
        ),
    ] = None,
    weights: Annotated[
        str | None,
        typer.Option(metavar="COLUMN", help="The column that says how often each row counts."),
    ] = None,
    ignore: Ignored = None,
    min_support: Annotated[
        float, typer.Option(min=0, max=1, help="Contract edges with less support than this.")
    ] = 0.5,
    tree: Annotated[
        Choice, typer.Option(help="Every edge more likely real than not, or the tree of best BIC.")
    ] = "majority",
    search: Annotated[
        bool, typer.Option(help="Settle doubtful regions of the tree by likelihood.")
    ] = True,
    refine: Annotated[
        bool, typer.Option(help="Improve the probabilities by EM; without it search is off too.")
    ] = True,
    max_iter: Annotated[int, typer.Option(min=1, help="Most steps of EM.")] = 200,
    smoothing: Annotated[
        float, typer.Option(min=0, help="Pseudo-samples that keep probabilities off zero.")
    ] = 1.0,
    seed: Seed = None,
    threads: Threads = None,
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most memory to use, as 500MB or 8GiB: larger files are read part by part, and "
            "pairs of variables counted when needed. Most of what is free if left out.",
        ),
    ] = None,
    plot: Picture = None,
    layout: PictureLayout = "radial",
    vocab: Vocabulary = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Drop words or codes that fewer samples have than this.")
    ] = 2,
    drop_constant: Annotated[
        bool, typer.Option("--drop-constant", help="Leave out columns with a single value.")
    ] = False,
    delimiter: Delimiter = ",",
    events: IsEvents = False,
    sample: EventSample = None,
    code: EventCode = None,
    time: EventTime = None,
    since: EventSince = None,
    until: EventUntil = None,
    roll_up: EventRollUp = None,
    groups: EventGroups = None,
    binary: Annotated[
        bool,
        typer.Option(
            "--binary",
            rich_help_panel=EVENTS,
            help="Every code of --groups a variable of its own, instead of one for each group.",
        ),
    ] = False,
    verbose: Verbose = False,
) -> None:
    """Learn a tree and its probabilities from a file."""
    with clean_exit():
        from latenttree.data.files.fasta import is_fasta
        from latenttree.io.treefile import check_tree_path

        n_states = parse_states(states, 1 if hidden == "gaussian" else 2)
        options = EventOptions(sample, code, time, since, until, roll_up or (), groups, binary)
        check_event_options(events, options)
        check_tree_path(out)
        if plot is not None:
            check_picture_path(plot)
        table = read_training(
            file,
            options if events else None,
            vocab=vocab,
            min_count=min_count,
            drop_constant=drop_constant,
            delimiter=separator(delimiter),
            family=parse_families(family or []),
            weights=weights,
            scores=hidden == "gaussian",
            ignore=ignore or (),
            memory_limit=memory_limit,
        )
        console = new_console()
        counted = "" if table.weights is None else f" (weight {table.total_weight:,.6g})"
        print_file(console, f"{len(table):,} samples{counted} of {table.n_vars:,} variables", file)
        print_notes(console, table.notes)
        if n_states is None and is_fasta(file):
            n_states, why = states_of_letters(table)
            print_notes(console, [why])
        record = record_of(options if events else None, weights, ignore or ())
        table = table.replace(notes=(*table.notes, *record))
        model = learn(
            table,
            threads,
            n_states=n_states,
            hidden=hidden,
            min_support=min_support,
            tree=tree,
            search=search,
            refine="em" if refine else None,
            max_iter=max_iter,
            smoothing=smoothing,
            random_state=seed,
            memory_limit=memory_limit,
        )
        report(console, model, table.notes, verbose)
        save(console, model, out)
        if plot is not None:
            save_figure(tree_figure(model.tree_, model.diagnostics_.support, layout), plot)
            print_file(console, "picture", plot)


def parse_states(text: str | None, least: int = 2) -> int | str | None:
    if text is None or text == "auto":
        return text
    if not text.isascii() or not text.isdigit() or int(text) < least:
        raise ValueError(f"--states is {text!r}; pass 'auto' or a whole number from {least} on")
    return int(text)


def states_of_letters(table: Table) -> tuple[int, str]:
    """States of the hidden letters of an alignment, and a sentence that says so: all nucleotides
    that occur, but not all amino acids, whose tables would have hundreds of numbers each."""
    letters = table.categories[0]
    assert letters is not None
    if not set(letters.tolist()) <= set("ACGT"):
        few = "2 states, fewer than there are amino acids"
        return 2, f"hidden variables have {few}; --states asks for another number"
    n = max(2, len(letters))
    what = f"{n} states, as many as there are nucleotides"
    return n, f"hidden variables have {what}; --states asks for another number"


def learn(table: Any, threads: int | None, **options: Any) -> LatentTree:
    """The fitted model; that refinement was cut short is among the notes of its report."""
    from sklearn.exceptions import ConvergenceWarning

    from latenttree.estimator import LatentTree

    model = LatentTree(n_jobs=threads, verbose=sys.stderr.isatty(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def save(console: Console, model: LatentTree, out: Path) -> None:
    """The whole model where the file and the variables allow it, else the tree."""
    from latenttree.io.treefile import save_tree

    if out.suffix.lower() == ".ltree" and hasattr(model, "model_"):
        model.save(out)
        print_file(console, f"model of {model.model_.n_parameters:,} parameters", out)
        return
    save_tree(out, model.tree_, model.diagnostics_)
    if out.suffix.lower() == ".ltree":
        print_notes(
            console,
            ["these variables have no probabilities here, so the file holds the tree alone"],
        )
    print_file(console, "tree", out)
