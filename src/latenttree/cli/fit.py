"""``latenttree fit``: from a file to a model in a file."""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from latenttree.cli.options import (
    DATA_FILES,
    EVENT_FILES,
    PictureOptions,
    Seed,
    Threads,
    TrainingEvents,
    Verbose,
)
from latenttree.cli.pictures import check_picture_path, save_tree_picture
from latenttree.cli.printing import new_console, print_file, print_notes
from latenttree.cli.summary import print_fit
from latenttree.cli.training_data import TrainingTable, read_training, record_of
from latenttree.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

    from latenttree.data import Table
    from latenttree.estimator import LatentTree


@dataclass(frozen=True)
class LearningOptions:
    """How the tree and its probabilities are learned."""

    states: Annotated[
        str | None,
        typer.Option(
            help="States of a hidden variable, or 'auto'; 2 if left out, 4 for nucleotides. Its "
            "dimensions, 1 if left out, where it is gaussian."
        ),
    ] = None
    hidden: Annotated[
        Literal["categorical", "gaussian"],
        typer.Option(help="Hidden variables with states, or real ones: a Gaussian tree."),
    ] = "categorical"
    min_support: Annotated[
        float, typer.Option(min=0, max=1, help="Contract edges with less support than this.")
    ] = 0.5
    tree: Annotated[
        Literal["majority", "most_probable"],
        typer.Option(help="Every edge more likely real than not, or the tree of best BIC."),
    ] = "majority"
    search: Annotated[
        bool, typer.Option(help="Decide doubtful regions of the tree by likelihood.")
    ] = True
    refine: Annotated[
        bool, typer.Option(help="Improve the probabilities by EM; without it search is off too.")
    ] = True
    max_iter: Annotated[int, typer.Option(min=1, help="Most steps of EM.")] = 200
    smoothing: Annotated[
        float, typer.Option(min=0, help="Pseudo-samples that keep probabilities off zero.")
    ] = 1.0
    seed: Seed = None
    threads: Threads = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most memory to use, as 500MB or 8GiB: larger files are read part by part, and "
            "pairs of variables counted when needed. Most of what is free if left out.",
        ),
    ] = None

    @property
    def gaussian(self) -> bool:
        """Whether the hidden variables are real."""
        return self.hidden == "gaussian"

    def n_states(self) -> int | str | None:
        """The number that ``--states`` gives, "auto", or None where it is left out."""
        least = 1 if self.gaussian else 2
        if self.states is None or self.states == "auto":
            return self.states
        if not self.states.isascii() or not self.states.isdigit() or int(self.states) < least:
            raise DataError(
                f"--states is {self.states!r}",
                f"pass 'auto' or a whole number from {least} on",
                value=self.states,
                option="n_states",
            )
        return int(self.states)

    def arguments(self) -> dict[str, Any]:
        """Arguments of `LatentTree` but for the number of states."""
        own = {"states", "threads", "seed"}
        same = {name: value for name, value in vars(self).items() if name not in own}
        return same | {"refine": "em" if self.refine else None, "random_state": self.seed}


def fit_command(
    file: Annotated[
        Path,
        typer.Argument(
            help=f"Data: {DATA_FILES}; with --events a table with a row for each event: "
            f"{EVENT_FILES}, and .csv.gz, .csv.xz."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Model: .ltree. The tree alone: .json or .nwk.")
    ],
    learning: LearningOptions,
    reading: TrainingTable,
    picture: PictureOptions,
    events: TrainingEvents,
    verbose: Verbose = False,
) -> None:
    """Learn a tree and its probabilities from a file."""
    from latenttree.io.treefile import check_tree_path

    n_states = learning.n_states()
    check_tree_path(out)
    check_picture_path(picture.plot)
    table = read_training(file, reading, events, learning.gaussian, learning.memory_limit)
    console = new_console()
    _print_table(console, table, file)
    if n_states is None:
        n_states = _states_of_letters(console, table, file)
    record = record_of(events, reading)
    table = table.replace(notes=(*table.notes, *record))
    model = learn(table, learning.threads, n_states=n_states, **learning.arguments())
    print_fit(console, model, table.notes, verbose)
    _save(console, model, out)
    save_tree_picture(console, model.tree_, model.diagnostics_.support, picture)


def _print_table(console: Console, table: Table, file: Path) -> None:
    weight = "" if table.weights is None else f" (weight {table.total_weight:,.6g})"
    print_file(console, f"{len(table):,} samples{weight} of {table.n_vars:,} variables", file)
    print_notes(console, table.notes)


def _states_of_letters(console: Console, table: Table, file: Path) -> int | None:
    """States of the hidden letters of an alignment, which a note names; None for other files.

    All nucleotides that occur, but not all amino acids, whose conditional distributions would have
    hundreds of parameters each.
    """
    from latenttree.data.files.fasta import is_fasta

    if not is_fasta(file):
        return None
    letters = table.categories[0]
    assert letters is not None
    n_states, reason = 2, "fewer than there are amino acids"
    if set(letters.tolist()) <= set("ACGT"):
        n_states, reason = max(2, len(letters)), "as many as there are nucleotides"
    states = f"{n_states} states, {reason}"
    print_notes(console, [f"hidden variables have {states}; --states asks for another number"])
    return n_states


def learn(table: Any, threads: int | None, **options: Any) -> LatentTree:
    """The fitted model; that refinement was cut short is among the notes of its report."""
    from sklearn.exceptions import ConvergenceWarning

    from latenttree.estimator import LatentTree

    model = LatentTree(n_jobs=threads, verbose=sys.stderr.isatty(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def _save(console: Console, model: LatentTree, out: Path) -> None:
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
