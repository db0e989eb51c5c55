"""Rows as text: one list of columns for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from rich.console import Console

Row = Mapping[str, Any]
NUMERIC = ("", *"0123456789+-.")
"""How cells begin that are numbers."""
Text = Callable[[Row], str | None]


class Column(NamedTuple):
    """A heading, and the text of a row under it; None where there is none."""

    heading: str
    text: Text


class Grid(NamedTuple):
    """Headings, the text of every cell, and a title where a record has several grids."""

    headings: list[str]
    cells: list[list[str]]
    title: str = ""


def make_grid(rows: Iterable[Row], columns: Iterable[Column], title: str = "") -> Grid:
    """Only the columns in which some row has a text; the first of them written once for rows that
    follow each other."""
    rows, columns = list(rows), list(columns)
    texts = [[column.text(row) for row in rows] for column in columns]
    kept = [i for i, column in enumerate(texts) if any(text is not None for text in column)]
    cells = [[texts[i][r] or "-" for i in kept] for r in range(len(rows))]
    first = [line[0] for line in cells]
    for i in range(1, len(rows)):
        if first[i] == first[i - 1]:
            cells[i][0] = ""
    return Grid([columns[i].heading for i in kept], cells, title)


# ---- text of a value -----------------------------------------------------------------------------


def seconds(value: float | None) -> str | None:
    """Three digits, or whole seconds from 100 on."""
    if value is None:
        return None
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1e}"


def number(value: float | None, digits: int = 4) -> str | None:
    """With so many digits after the point."""
    return None if value is None else f"{value:.{digits}f}"


def times(value: float | None) -> str | None:
    """A factor."""
    if value is None:
        return None
    return f"{value:,.0f} x" if value >= 20 else f"{value:.1f} x"


def mebibytes(value: float | None) -> str | None:
    """Bytes in MiB."""
    return None if value is None else f"{value / 2**20:,.0f} MiB"


def judged(value: float, target: float, digits: int = 3) -> str:
    """A value, marked where it misses its target."""
    return f"{value:.{digits}f}" + (" (!)" if value > target else "")


# ---- columns over the runs of a row --------------------------------------------------------------


def values(row: Row, key: str) -> NDArray[np.float64]:
    """What the runs of a row have under a key, "ratio.em" for a key of a key; without the runs
    that have none."""
    found = []
    for value in row["runs"]:
        for part in key.split("."):
            value = None if value is None else value.get(part)
        if value is not None:
            found.append(float(value))
    return np.array(found)


def mean_and_error(x: Sequence[float] | NDArray[np.float64]) -> tuple[float, float]:
    """Mean and its standard error; the error is NaN where there is one value."""
    x = np.asarray(x, dtype=np.float64)
    error = float(x.std(ddof=1) / np.sqrt(len(x))) if len(x) > 1 else float("nan")
    return float(x.mean()), error


def plus_minus(x: Sequence[float] | NDArray[np.float64], digits: int = 3) -> str | None:
    """Mean ± standard error."""
    if not len(x):
        return None
    mean, error = mean_and_error(x)
    return f"{mean:.{digits}f}" + ("" if np.isnan(error) else f" ± {error:.{digits}f}")


def over_runs(reduce: Callable[[Any], Any], key: str, digits: int = 3) -> Text:
    """The text of a column: a number made of the runs' values under a key."""

    def text(row: Row) -> str | None:
        found = values(row, key)
        return f"{reduce(found):,.{digits}f}" if len(found) else None

    return text


def mean(key: str, digits: int = 3) -> Text:
    """The mean over runs."""
    return over_runs(np.mean, key, digits)


def largest(key: str, digits: int = 3) -> Text:
    """The largest of the runs."""
    return over_runs(np.max, key, digits)


def field(key: str, form: str = "") -> Text:
    """What the row itself has under a key, formatted."""
    return lambda row: None if row.get(key) is None else f"{row[key]:{form}}"


LABEL = Column("", field("label"))
N_RUNS = Column("seeds", lambda row: str(len(row["runs"])))


# ---- stages --------------------------------------------------------------------------------------


def mean_stages(runs: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Mean seconds of each stage over runs."""
    names = dict.fromkeys(stage for run in runs for stage in run)
    return {stage: float(np.mean([run.get(stage, 0.0) for run in runs])) for stage in names}


def stage_grid(rows: Sequence[Row], least: float = 0.005) -> Grid:
    """Seconds of each stage, a line for each row; stages that never count are left out."""
    known = [row for row in rows if row.get("stages")]
    names = list(dict.fromkeys(name for row in known for name in row["stages"]))
    heavy = [
        name
        for name in names
        if any(row["stages"].get(name, 0.0) > least * (row["seconds"] or 1.0) for row in known)
    ]
    cells = [
        [row["label"], *(f"{row['stages'].get(name, 0.0):.2f}" for name in heavy)] for row in known
    ]
    return Grid(["seconds of stages", *heavy], cells)


# ---- where the text goes -------------------------------------------------------------------------


def markdown(made: Grid) -> str:
    """A table; the first column to the left, numbers to the right."""
    lines = [made.headings, ["---", *["---:"] * (len(made.headings) - 1)], *made.cells]
    text = "\n".join("| " + " | ".join(_escaped(c) for c in cells) + " |" for cells in lines)
    return f"**{made.title}**\n\n{text}" if made.title else text


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", "<br>")


def show(part: Grid | str, console: Console) -> None:
    """A grid or a sentence on the terminal."""
    from rich.markup import escape
    from rich.table import Table

    if isinstance(part, str):
        console.print(part, style="dim", highlight=False, markup=False)
        return
    if not part.cells:
        return
    table = Table(title=escape(part.title) or None, title_justify="left")
    for i, heading in enumerate(part.headings):
        numeric = i > 0 and all(cells[i][:1] in NUMERIC for cells in part.cells)
        side = "right" if numeric else "left"
        table.add_column(escape(heading), justify=side, no_wrap=i == 0, overflow="fold")
    for cells in part.cells:
        table.add_row(*(_coloured(cell) for cell in cells))
    console.print(table, highlight=False)


def _coloured(cell: str) -> str:
    from rich.markup import escape

    if cell == "failed" or cell.startswith("no: ") or cell.endswith("(!)"):
        return f"[red]{escape(cell)}[/]"
    return f"[green]{cell}[/]" if cell == "yes" else escape(cell)
