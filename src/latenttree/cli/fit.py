"""``latenttree fit``: from a file to a model in a file."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from latenttree.cli.commands import Fit
from latenttree.cli.json_output import print_json, tree_record
from latenttree.cli.pictures import save_tree_picture
from latenttree.cli.printing import new_console, print_file, print_notes
from latenttree.cli.reading_record import record_of
from latenttree.cli.summary import print_fit, shown_support
from latenttree.cli.training_data import read_training
from latenttree.data import Table
from latenttree.errors import Caution
from latenttree.io.treefile import check_tree_path, save_tree
from latenttree.plots.canvas import check_picture_path

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def run(asked: Fit) -> None:
    """Read the file, learn, print and save."""
    learning, n_states = asked.learning, asked.learning.n_states()
    learning.check()
    check_tree_path(asked.out)
    check_picture_path(asked.picture.plot)
    table = read_training(
        asked.file, asked.reading, asked.events, learning.gaussian, learning.memory_limit
    )
    console = new_console(quiet=asked.json)
    _print_table(console, table, asked.file)
    if n_states is None and not learning.gaussian:
        _note_states(console, table)
    record = record_of(asked.events, asked.reading)
    table = table.replace(notes=(*table.notes, *record))
    model = learn(table, learning.threads, n_states=n_states or "auto", **learning.arguments())
    print_fit(console, model, table.notes, asked.verbose)
    _save(console, model, asked.out)
    shown = shown_support(asked.learning.min_support)
    save_tree_picture(console, model.tree_, asked.picture, shown)
    if asked.json:
        print_json(_record(model, table, asked))


def _record(model: LatentTree, table: Table, asked: Fit) -> dict[str, Any]:
    n_parameters = model.model_.n_parameters if hasattr(model, "model_") else None
    report = model.diagnostics_
    own = {"data": asked.file, "n_samples": len(table), "model": asked.out}
    return own | tree_record(model.tree_, report, n_parameters, report.fit)


def _print_table(console: Console, table: Table, file: Path) -> None:
    weight = "" if table.weights is None else f" (weight {table.total_weight:,.6g})"
    print_file(console, f"{len(table):,} samples{weight} of {table.n_vars:,} variables", file)
    notes = [note for note in table.notes if not isinstance(note, Caution)]
    print_notes(console, notes)  # the others are warnings of the fit


def _note_states(console: Console, table: Table) -> None:
    """Say how many states hidden variables have where the data decide it."""
    from latenttree.distances.stage import nucleotides  # loads much

    letters = nucleotides(table)
    if letters is not None:
        note = f"hidden variables have {letters} states, as many as there are nucleotides"
        print_notes(console, [f"{note}; --states asks for another number"])


def learn(table: Any, threads: int | None, **options: Any) -> LatentTree:
    """The fitted model; that refinement was cut short is among the notes of its report."""

    from sklearn.exceptions import ConvergenceWarning

    from latenttree.estimator import LatentTree  # after the data are read

    model = LatentTree(n_jobs=threads, verbose=sys.stderr.isatty(), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(table)


def _save(console: Console, model: LatentTree, out: Path) -> None:
    """The whole model where the file and the variables allow it, else the tree."""
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
