"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from latenttree.bench.columns import ROWS, Grid, grid, peaks_line, stage_grid

if TYPE_CHECKING:
    from rich.console import Console


def show_rows(record: Mapping[str, Any], console: Console) -> None:
    """The rows of a table of whole fits, their stages, and the machine."""
    if not record["rows"]:
        return
    show_grid(record["title"], grid(record["rows"], ROWS), console)
    show_grid("", stage_grid(record["rows"]), console)
    line = peaks_line(record["rows"])
    if line:
        console.print(line, style="dim", highlight=False)


def show_grid(title: str, made: Grid, console: Console) -> None:
    from rich.markup import escape
    from rich.table import Table

    if not made.cells:
        return
    table = Table(title=title or None, title_justify="left")
    for i, heading in enumerate(made.headings):
        first = i == 0
        table.add_column(escape(heading), justify="left" if first else "right", no_wrap=first)
    for cells in made.cells:
        table.add_row(*(_coloured(cell) for cell in cells))
    console.print(table, highlight=False)


def _coloured(cell: str) -> str:
    from rich.markup import escape

    if cell == "failed" or cell.startswith("no: "):
        return f"[red]{escape(cell)}[/]"
    return f"[green]{cell}[/]" if cell == "yes" else escape(cell)
