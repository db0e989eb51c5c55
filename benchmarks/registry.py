"""All tables, and the interface that each of them has.

A file in `tables/` ends with `TABLES = (Table(...),)`. `MODULE_OF` names the file of each table, in
the order of the list and of the page.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from benchmarks.grids import Column, Grid, make_grid
from benchmarks.settings import Choice, Settings
from latenttree.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Record = Mapping[str, Any]

MODULE_OF = {
    "synthetic": "synthetic",
    "large-d": "synthetic",
    "nips": "words",
    "nytimes": "words",
    "news20": "words",
    "patients": "patients",
    "clrg-em": "clrg_em",
    "threads": "threads",
    "words100k": "words100k",
    "growth": "growth",
    "rivals": "rivals",
    "heldout": "heldout",
    "exact": "exact",
    "exact-parameters": "exact",
    "ablation": "ablation",
    "deep": "deep",
    "harder": "harder",
    "coherence": "coherence",
    "topics": "topics",
    "density": "density",
    "replication": "replication",
    "independent": "independent",
    "families": "families",
    "missing": "missing",
    "stocks": "stocks",
    "questionnaire": "questionnaire",
    "dna": "dna",
    "health": "health",
    "groups": "groups",
    "inference": "inference",
    "states": "inference",
    "pgmpy": "inference",
    "first-fit": "first_fit",
    "memory-limit": "memory",
    "streaming": "memory",
    "page": "page",
}
"""The file of each table."""


@dataclass(frozen=True)
class Table:
    """One benchmark.

    name : on the command line; files of results are named after it.
    shows : what it shows, one line of the list of tables.
    duration : of the full size on 2 cores, roughly.
    title, about : of the page; `about` says what is measured, on which data, and what the
        columns mean.
    measure : `{"rows": [...]}` and whatever else the JSON file keeps. A row has a "label" and
        "seconds" (None where nothing was timed). Sentences under "failed" make the run fail.
    columns : of the rows, for a table that is nothing but a line for each of them.
    body : otherwise the record as tables of text and sentences between them.
    draw : the figure of a record.
    choices : options of this table alone, `--set NAME=VALUE`.
    """

    name: str
    shows: str
    duration: str
    title: str
    about: str
    measure: Callable[[Settings], dict[str, Any]]
    columns: tuple[Column, ...] = ()
    body: Callable[[Record], list[Grid | str]] | None = None
    draw: Callable[[Record], Figure] | None = None
    choices: Mapping[str, Choice] = field(default_factory=dict)

    def text(self, record: Record) -> list[Grid | str]:
        """The record as tables of text and sentences."""
        if self.body is not None:
            return self.body(record)
        return [make_grid(record["rows"], self.columns)]


def find_table(name: str) -> Table:
    """The table of that name; its module is imported."""
    if name not in MODULE_OF:
        raise DataError(
            f"no table is called {name!r}", f"choose of {', '.join(MODULE_OF)}", value=name
        )
    module = import_module(f"benchmarks.tables.{MODULE_OF[name]}")
    found: Table = next(table for table in module.TABLES if table.name == name)
    return found
