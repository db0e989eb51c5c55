"""Records: the JSON file of a table, its text in Markdown, its figure, and the page of all tables.

A record is `{"schema", "benchmark", "title", "about", "environment", "options", "rows", ...}`;
tables add keys of their own. A row has at least `ROW_KEYS`. No number on the page is typed by hand.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.grids import markdown
from benchmarks.machine import environment
from benchmarks.registry import MODULE_OF, Record, Table, find_table
from benchmarks.settings import Settings
from latenttree.errors import DataError
from latenttree.io.atomic import replacing

SCHEMA = 2
KEYS = ("schema", "benchmark", "title", "about", "environment", "options", "rows")
ROW_KEYS = ("label", "seconds")

HEAD = """# Benchmarks

Written by `python -m benchmarks report` from the results of `python -m benchmarks TABLE`. The
paper's times are of 64 cores and 265 GB. "Bound" is the least that any method must spend on the
moments of all pairs on this machine: the cheapest of matrix products, counters and bits, or reading
the data once, whichever is longer. Times are of whole fits (structure, parameters, refinement) with
compiled kernels; peak memory is that of a process that loads the data and fits.

```
make bench                    # the tables, what each shows, how long it takes
make bench TABLE=all          # measure everything here
make bench TABLE=report       # write this page
```
"""
IMAGES = "images/benchmarks"


def run_table(table: Table, settings: Settings) -> dict[str, Any]:
    """Measure one table; its files are in `settings.out` afterwards, if it has a row."""
    record = {
        "schema": SCHEMA,
        "benchmark": table.name,
        "title": table.title,
        "about": " ".join(table.about.split()),
        **table.measure(settings),
        "environment": environment(),  # with the load of the machine at the end
        "options": settings.options(),
    }
    return write(record, settings) if record["rows"] else record


def file_of(name: str, folder: Path, quick: bool, suffix: str = ".json") -> Path:
    """The file of a table's results."""
    return folder / f"{name.replace('-', '_')}{'_quick' if quick else ''}{suffix}"


def write(record: dict[str, Any], settings: Settings) -> dict[str, Any]:
    """Write a record as JSON, as Markdown and as a figure, each whole or not at all; returned as
    it will be read."""
    settings.out.mkdir(parents=True, exist_ok=True)
    files = {
        suffix: file_of(record["benchmark"], settings.out, settings.quick, suffix)
        for suffix in (".json", ".md", ".png")
    }
    text = json.dumps(plain(record), indent=1, allow_nan=False) + "\n"
    written: dict[str, Any] = json.loads(text)
    check(written)
    _write_text(files[".json"], text)
    drawn = save_figure(written, files[".png"])
    _write_text(files[".md"], section(written, files[".png"].name if drawn else None))
    settings.say("results: " + ", ".join(str(path) for path in files.values() if path.is_file()))
    return written


def _write_text(path: Path, text: str) -> None:
    with replacing(path) as partial:
        Path(partial).write_text(text)


def plain(value: Any) -> Any:
    """As JSON knows it: NumPy values as numbers and lists, NaN as null, other keys as text."""
    if isinstance(value, Mapping):
        return {str(key): plain(x) for key, x in value.items()}
    if isinstance(value, np.ndarray | list | tuple):
        return [plain(x) for x in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return str(value) if isinstance(value, Path) else value


def read(path: Path) -> dict[str, Any]:
    """The record of a JSON file."""
    record: dict[str, Any] = json.loads(path.read_text())
    check(record, str(path))
    return record


def check(record: Mapping[str, Any], where: str = "the record") -> None:
    """Refuse what a table or the page could not be made of."""
    again = "run the table again with `python -m benchmarks`"
    missing = [key for key in KEYS if key not in record]
    if missing:
        raise DataError(f"{where} has no {missing}", again, path=where)
    if record["schema"] != SCHEMA:
        raise DataError(
            f"{where} has schema {record['schema']}, this version reads {SCHEMA}",
            again,
            value=record["schema"],
            path=where,
        )
    for row in record["rows"]:
        lacking = [key for key in ROW_KEYS if key not in row]
        if lacking:
            raise DataError(f"a row of {where} has no {lacking}: {sorted(row)}", again, path=where)


def save_figure(record: Record, path: Path) -> bool:
    """Write the figure; False where the table has none or Matplotlib is not installed."""
    draw = find_table(record["benchmark"]).draw
    if draw is None:
        return False
    try:
        figure = draw(record)
    except ImportError:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        figure.savefig(partial, dpi=160, facecolor="white", format=path.suffix[1:])
    return True


# ---- Markdown ------------------------------------------------------------------------------------


def section(record: Record, picture: str | None) -> str:
    """Heading, what it is, tables and sentences, the figure, the machine."""
    name = record["benchmark"]
    parts = [f"## {record['title']}", f"`make bench TABLE={name}`. {record['about']}"]
    for part in find_table(name).text(record):
        parts.append(part if isinstance(part, str) else markdown(part))
    if picture is not None:
        parts.append(f"![{record['title']}]({picture})")
    parts.append(_where(record))
    return "\n\n".join(part for part in parts if part) + "\n"


def _where(record: Record) -> str:
    machine = record["environment"]
    load = machine["load_average"]
    busy = f", load {load[0]:.1f} at the end" if load else ""
    return (
        f"*{machine['time'][:10]}, {machine['cpu'] or machine['platform']}, {machine['cores']} "
        f"cores, {record['options']['threads']} thread(s), Python {machine['python']}, source "
        f"{machine['source']}{busy}.*"
    )


def write_page(results: Path, page: Path, quick: bool = False) -> Path:
    """Collect the records of a folder on one page; figures go to `images/benchmarks` beside it."""
    paths = [file_of(name, results, quick) for name in MODULE_OF]
    records = [read(path) for path in paths if path.is_file()]
    if not records:
        raise DataError(
            f"{results} has no results of {'quick' if quick else 'full'} size",
            "run `python -m benchmarks TABLE` first, or name their folder with --out",
            path=str(results),
        )
    parts = [HEAD]
    for record in records:
        picture = f"{IMAGES}/{record['benchmark'].replace('-', '_')}.png"
        drawn = save_figure(record, page.parent / picture)
        parts.append(section(record, picture if drawn else None))
    page.parent.mkdir(parents=True, exist_ok=True)
    _write_text(page, "\n".join(parts))
    return page
