"""The page of all tables, made from the JSON files: no number on it is typed by hand."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from latenttree.bench import TABLES
from latenttree.bench.columns import ROWS, Grid, grid, peaks_line, stage_grid
from latenttree.bench.record import file_of, read
from latenttree.bench.runner import save_figure, table
from latenttree.errors import DataError

HEAD = """# Benchmarks

Written by `latenttree bench report` from the results of `latenttree bench NAME`; every table and
figure of the paper has one. The paper's times are of 64 cores and 265 GB. "Bound" is the
least that any method must spend on the moments of all pairs on this machine: the cheapest of
matrix products, counters and bits, or reading the data once, whichever is longer. Times are of
whole fits (structure, parameters, refinement) with compiled kernels; peak memory is that of a
process that loads the data and fits.

```
latenttree bench all          # measure everything here (make bench)
latenttree bench report       # write this page
```
"""
IMAGES = "images/benchmarks"


def write_report(results: Path, page: Path, quick: bool = False) -> Path:
    """Collect the records of a folder on one page; figures go to `images/benchmarks` beside it."""
    records = found_records(results, quick)
    if not records:
        raise DataError(
            f"{results} has no results of full size; run `latenttree bench NAME` (without --quick) "
            "first, or name their folder with --out"
        )
    parts = [HEAD, *(section(record, page.parent) for record in records)]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text("\n".join(parts))
    return page


def found_records(results: Path, quick: bool) -> list[dict[str, Any]]:
    paths = [file_of(name, results, quick) for name in TABLES]
    return [read(path) for path in paths if path.is_file()]


def section(record: Mapping[str, Any], folder: Path) -> str:
    """Heading, what it is, the table, the stages, the machine, the figure."""
    name = record["benchmark"]
    picture = f"{IMAGES}/{name.replace('-', '_')}.png"
    parts = [f"## {record['title']}", f"`latenttree bench {name}`. {record['about']}"]
    own = getattr(table(name), "grid", None)
    if own is not None:
        parts.append(markdown(own(record)))
    else:
        parts += [markdown(grid(record["rows"], ROWS)), markdown(stage_grid(record["rows"]))]
        parts.append(peaks_line(record["rows"]) or "")
        parts += [f"{row['label']}: {row['failure']}" for row in record["rows"] if row["failure"]]
    if save_figure(record, folder / picture):
        parts.append(f"![{record['title']}]({picture})")
    parts.append(_where(record))
    return "\n\n".join(part for part in parts if part) + "\n"


def markdown(made: Grid) -> str:
    """A table; the first column to the left, numbers to the right."""
    lines = [made.headings, ["---", *["---:"] * (len(made.headings) - 1)], *made.cells]
    return "\n".join("| " + " | ".join(_escaped(c) for c in cells) + " |" for cells in lines)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|")


def _where(record: Mapping[str, Any]) -> str:
    found = record["environment"]
    load = found["load_average"]
    busy = f", load {load[0]:.1f} at the end" if load else ""
    return (
        f"*{found['time'][:10]}, {found['cpu'] or found['platform']}, {found['cores']} cores, "
        f"{record['options']['threads']} thread(s), Python {found['python']}, source "
        f"{found['source']}{busy}.*"
    )
