"""What commands print: notes, names of files, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from latenttree.cli.wording import in_words
from latenttree.engine.progress import Progress

PIPE_WIDTH = 160  # columns of tables where there is no terminal to ask


def new_console(quiet: bool = False) -> Console:
    """A console on stdout, wide where stdout is no terminal; `quiet` prints nothing."""
    unknown = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if unknown else None, quiet=quiet)


def new_progress() -> Progress:
    """Stages on stderr, if it is a terminal."""
    return Progress(verbose=sys.stderr.isatty())


def new_table(*heads: str, left: int = 1, **options: Any) -> Table:
    """A table without lines: the first `left` columns to the left, the others to the right."""
    table = Table(*heads, box=None, **options)
    for column in table.columns[left:]:
        column.justify = "right"
    return table


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """A line for each note, in the words of the command line."""
    for note in notes:
        console.print(f"note: {escape(in_words(note))}", highlight=False)


def print_file(console: Console, content: str, path: Path) -> None:
    """What a file holds, and its name."""
    console.print(f"{content}: [bold]{escape(str(path))}[/bold]", highlight=False, soft_wrap=True)
