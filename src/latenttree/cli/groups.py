"""``latenttree groups``: groups of variables, cut from a tree."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.console import Console
from rich.markup import escape

from latenttree.cli.commands import Groups
from latenttree.cli.json_output import print_json
from latenttree.cli.output_tables import TABLES, check_output, table_writer
from latenttree.cli.printing import new_console, new_table, print_file, print_notes
from latenttree.engine.arrays import Ints
from latenttree.io.treefile import load_tree
from latenttree.phrases import counted

MAX_NAMES = 20  # of a group on the terminal


def run(asked: Groups) -> None:
    """Cut the tree, print the groups, and write them where asked."""
    if asked.out is not None:
        check_output(asked.out, TABLES, asked.file)
    tree = load_tree(asked.file).tree
    labels = tree.cut(asked.k, min_size=asked.min_size, signed=not asked.unsigned)
    names = np.array(tree.observed_names, dtype=object)
    groups = [names[labels == label].tolist() for label in range(labels.max(initial=-1) + 1)]
    if asked.out is not None:
        _write(asked, names.tolist(), labels)
    if asked.json:
        print_json({"groups": groups})
        return
    console = new_console()
    _print(console, groups, asked.k)
    if asked.out is not None:
        print_file(console, counted(len(groups), "group"), asked.out)


def _print(console: Console, groups: Sequence[Sequence[str]], k: int) -> None:
    table = new_table("group", "size", "variables", header_style="bold")
    table.columns[2].justify = "left"
    for label, members in enumerate(groups):
        n_more = len(members) - MAX_NAMES
        more = f", and {n_more} more" if n_more > 0 else ""
        shown = escape("  ".join(members[:MAX_NAMES])) + more
        table.add_row(str(label), str(len(members)), shown)
    console.print(table)
    if len(groups) < k:
        print_notes(console, [f"no more than {counted(len(groups), 'group')} of this size"])


def _write(asked: Groups, names: Sequence[str], labels: Ints) -> None:
    assert asked.out is not None
    with table_writer(asked.out, ["variable", "group"]) as write:
        write([np.array(names, dtype=object), labels])
