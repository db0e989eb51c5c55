"""What commands print: notes, names of files, progress."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenttree.cli.wording import in_words

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from latenttree.engine import Progress

PIPE_WIDTH = 160  # columns of tables where there is no terminal to ask


def new_console() -> Console:
    """A console on stdout, wide where stdout is no terminal."""
    from rich.console import Console

    unknown = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if unknown else None)


def new_progress() -> Progress:
    """Stages on stderr, if it is a terminal."""
    from latenttree.engine import Progress

    return Progress(verbose=sys.stderr.isatty())


def new_table(*heads: str, left: int = 1, **options: Any) -> Table:
    """A table without lines: the first `left` columns to the left, the others to the right."""
    from rich.table import Table

    table = Table(*heads, box=None, **options)
    for column in table.columns[left:]:
        column.justify = "right"
    return table


def print_notes(console: Console, notes: Sequence[str]) -> None:
    """A line for each note, in the words of the command line."""
    from rich.markup import escape

    for note in notes:
        console.print(f"note: {escape(in_words(note))}", highlight=False)


def print_file(console: Console, content: str, path: Path) -> None:
    """What a file holds, and its name."""
    from rich.markup import escape

    console.print(f"{content}: [bold]{escape(str(path))}[/bold]", highlight=False, soft_wrap=True)
