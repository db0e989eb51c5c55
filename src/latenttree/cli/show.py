"""``latenttree show``: what is in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.console import Console

from latenttree.cli.commands import Show
from latenttree.cli.json_output import print_json, tree_record
from latenttree.cli.model_file import holds_model
from latenttree.cli.pictures import save_tree_picture
from latenttree.cli.printing import new_console, print_notes
from latenttree.cli.show_node import node_record, print_node
from latenttree.cli.summary import (
    print_neighbours,
    print_stages,
    print_summary,
    shown_support,
    supported,
)
from latenttree.cli.terminal import can_print
from latenttree.errors import DataError
from latenttree.io.treefile import SavedTree, load_tree
from latenttree.phrases import counted
from latenttree.plots.canvas import check_picture_path
from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.goodness_of_fit import TreeFit
    from latenttree.io.archive import Saved

MAX_DRAWN = 200  # nodes that are drawn without being asked


def run(asked: Show) -> None:
    """Print what is in the file, and draw it."""
    check_picture_path(asked.picture.plot)
    saved, whole = load_tree(asked.file), _whole_model(asked.file)
    console = new_console(quiet=asked.json)
    if asked.node is not None:
        model = _with_probabilities(asked.file, whole)
        print_json(node_record(model, asked.node)) if asked.json else print_node(
            console, model, asked.node
        )
        return
    if asked.json:
        print_json(_record(saved, whole))
    else:
        _print(console, saved, whole, asked)
    save_tree_picture(console, saved.tree, asked.picture, shown_support(asked.min_support))


def _record(saved: SavedTree, whole: Saved | None) -> dict[str, Any]:
    if whole is None:
        return tree_record(saved.tree, saved)
    return tree_record(saved.tree, saved, whole.model.n_parameters, _fit_of(whole))


def _print(console: Console, saved: SavedTree, whole: Saved | None, asked: Show) -> None:
    shown = supported(saved.tree, asked.min_support)
    _print_tree(console, saved, whole, shown, asked.verbose)
    if shown.n_nodes <= MAX_DRAWN if asked.draw is None else asked.draw:
        # Plain print: rich would wrap the lines and read names in brackets as markup.
        print("\n" + _drawing(shown, asked.lengths, asked.max_lines))


def _print_tree(
    console: Console, saved: SavedTree, whole: Saved | None, shown: Tree, verbose: bool
) -> None:
    """All but the drawing."""
    gaussian = whole is not None and whole.params.get("hidden") == "gaussian"
    print_summary(console, saved.tree, saved, gaussian)
    if whole is not None:
        console.print(f"a whole model: {whole.model.n_parameters:,} parameters")
        fit = _fit_of(whole)
        if fit is not None:
            console.print(fit.summary(), highlight=False)
    print_neighbours(console, shown)
    n_left_out = saved.tree.n_hidden - shown.n_hidden
    if n_left_out:
        some = counted(n_left_out, "inner edge")
        console.print(f"shown without {some} of little support; --min-support 0 shows all")
    if verbose:
        print_stages(console, saved.stage_seconds)
    print_notes(console, saved.messages)


def _fit_of(whole: Saved) -> TreeFit | None:
    """How well the tree describes pairs of variables."""
    from latenttree.goodness_of_fit import TreeFit

    return TreeFit.restored(whole.diagnostics.get("fit"))


def _whole_model(file: Path) -> Saved | None:
    """The model in a file, None where it holds a tree alone."""
    if not holds_model(file):
        return None
    from latenttree.io.archive import load_archive  # loads much

    return load_archive(file)


def _with_probabilities(file: Path, whole: Saved | None) -> Saved:
    if whole is None:
        what = f"{file} holds a tree without probabilities"
        raise DataError(what, "--node needs a model (.ltree)", path=str(file))
    return whole


# ---- the drawing ----------------------------------------------------------------------


def _drawing(tree: Tree, lengths: bool, max_lines: int) -> str:
    """The tree as text; inner nodes are followed by the support of the edge above them."""
    support = np.full(tree.n_edges, np.nan) if tree.support is None else tree.support
    shown = support == 0
    shown[tree.internal_edges()] = True
    shown &= ~np.isnan(support)
    above = tree.parent_edges(tree.centre()).tolist()
    notes = {v: f"[{support[e]:.2f}]" for v, e in enumerate(above) if e >= 0 and shown[e]}
    style: Literal["unicode", "ascii"] = (
        "unicode" if can_print("\u251c\u2500\u2514\u2502") else "ascii"
    )
    heading = "in brackets: support of the edge above\n" if notes else ""
    return heading + tree.draw(lengths, style=style, max_lines=max_lines, notes=notes)
