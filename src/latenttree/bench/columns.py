"""Rows as text: one list of columns for the terminal and for the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

Row = Mapping[str, Any]


class Column(NamedTuple):
    """A heading, and the text of a row under it; None where it has nothing to say."""

    heading: str
    text: Callable[[Row], str | None]


class Grid(NamedTuple):
    """Headings and the text of every cell."""

    headings: list[str]
    cells: list[list[str]]


def grid(rows: Sequence[Row], columns: Sequence[Column]) -> Grid:
    """Only the columns in which some row has something to say."""
    texts = [[column.text(row) for row in rows] for column in columns]
    kept = [i for i, column in enumerate(texts) if any(text is not None for text in column)]
    cells = [[texts[i][r] or "-" for i in kept] for r in range(len(rows))]
    return Grid([columns[i].heading for i in kept], cells)


def grid_in_parts(rows: Sequence[Row], columns: Sequence[Column]) -> Grid:
    """The same, with the first column said once for rows that follow each other."""
    made = grid(rows, columns)
    first = [cells[0] for cells in made.cells]
    for i, cells in enumerate(made.cells):
        if i and first[i] == first[i - 1]:
            cells[0] = ""
    return made


def seconds(value: float | None) -> str | None:
    """Three digits, or whole seconds from 100 on."""
    if value is None:
        return None
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value >= 1e-3 else f"{value:.1e}"


def number(value: float | None, digits: int = 4) -> str | None:
    return None if value is None else f"{value:.{digits}f}"


def times(value: float | None) -> str | None:
    """A factor."""
    if value is None:
        return None
    return f"{value:,.0f} x" if value >= 20 else f"{value:.1f} x"


def mebibytes(value: float | None) -> str | None:
    return None if value is None else f"{value / 2**20:,.0f} MiB"


def _paper_errors(row: Row) -> str | None:
    paper = row["paper"]
    if paper["structure_error"] is None:
        return None
    return f"{paper['structure_error']:g} / {paper['parameter_error']:g}"


def _parameter(row: Row) -> str | None:
    error, ratio = row.get("parameter_error"), row.get("ratio")
    if error is None:
        return None
    return f"{error:.4f}" + ("" if ratio is None else f" ({ratio:.2f} x)")


def _reached(row: Row) -> str | None:
    if row.get("failure"):
        return "failed"
    found = row.get("reached") or {}
    if not found:
        return None
    missed = [WORDS[name] for name, is_met in found.items() if not is_met]
    return "no: " + ", ".join(missed) if missed else "yes"


WORDS = {"seconds": "time", "rf": "RF", "ratio": "parameters", "memory": "memory"}

ROWS = (
    Column("work", lambda row: row["label"]),
    Column("paper: errors", _paper_errors),
    Column("paper, s (64 cores)", lambda row: seconds(row["paper"]["seconds"])),
    Column("structure error", lambda row: number(row.get("structure_error"))),
    Column("RF", lambda row: number(row.get("rf"))),
    Column(
        "RF, frequent",
        lambda row: number(row["rf_frequent"]) if row.get("n_frequent") else None,
    ),
    Column("parameter error (x oracle)", _parameter),
    Column("s", lambda row: seconds(row["seconds"])),
    Column("faster than paper", lambda row: times(row.get("speed_up_on_paper"))),
    Column("to reach, s", lambda row: seconds(row["target"]["seconds"])),
    Column("reached", _reached),
    Column("bound, s", lambda row: seconds(row["bound"]["seconds"]) if row.get("bound") else None),
    Column("x bound", lambda row: times(row.get("bound_ratio"))),
    Column("peak memory", lambda row: mebibytes(row.get("peak_bytes"))),
)
"""Of the tables whose rows are whole fits."""


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


def peaks_line(rows: Sequence[Row]) -> str | None:
    """What the bound was computed with."""
    peaks = next((row["peaks"] for row in rows if row.get("peaks")), None)
    if peaks is None:
        return None
    return (
        f"This machine, {peaks['n_jobs']} thread(s), measured in the same run: "
        f"{2 * peaks['multiply_adds'] / 1e9:,.0f} GFLOP/s (float32 matrix product), "
        f"{peaks['bytes'] / 1e9:,.1f} GB/s (reading), {peaks['increments'] / 1e9:,.1f} G "
        f"increments/s, {peaks['bit_words'] / 1e9:,.1f} G words/s (AND and count of bits)."
    )
