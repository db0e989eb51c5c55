"""``latenttree bench``: the paper's tables and figures on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from latenttree.bench import TABLES
from latenttree.cli.exits import clean_exit
from latenttree.cli.options import Threads
from latenttree.cli.printing import new_console

if TYPE_CHECKING:
    from rich.console import Console

    from latenttree.bench.settings import Settings

NAMES = (*TABLES, "all", "report")
OUT, PAGE = Path("out/benchmarks"), Path("docs/benchmarks.md")


def bench(
    name: Annotated[str, typer.Argument(help=f"A table: {', '.join(NAMES)}.")],
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, to see it work.")] = False,
    seeds: Annotated[int | None, typer.Option(min=1, help="Repetitions of every row.")] = None,
    row: Annotated[
        list[str] | None, typer.Option(help="Only rows with this in their label. May be repeated.")
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of real data; else $LATENTTREE_DATA, ../shared/data."),
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder of JSON files and figures.")] = OUT,
    page: Annotated[Path, typer.Option(help="Of report: the page to write.")] = PAGE,
    threads: Threads = None,
    limit: Annotated[
        float | None, typer.Option(min=1.0, help="Of rivals, heldout: seconds for each fit.")
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Of growth: fail where an exponent got worse.")
    ] = False,
    store: Annotated[
        bool, typer.Option("--store", help="Of growth: keep the exponents for later checks.")
    ] = False,
) -> None:
    """Measure a table or figure of the paper here: times, errors, memory, the lower bound.

    `all` runs every table, `report` collects what was measured on one page.
    """
    with clean_exit():
        from latenttree.bench.settings import Settings

        console = new_console()
        check_name(name)
        if name == "report":
            write_page(out, page, quick, console)
            return
        settings = Settings(
            quick, seeds, data, out, threads, tuple(row or ()), check, store, limit, console
        )
        worse = [line for n in (TABLES if name == "all" else (name,)) for line in run(n, settings)]
        if worse and check:
            raise typer.Exit(1)


def check_name(name: str) -> None:
    if name not in NAMES:
        raise ValueError(f"no table is called {name!r}; choose of {', '.join(NAMES)}")


def run(name: str, settings: Settings) -> list[str]:
    """One table; the exponents that got worse, if it has any."""
    from latenttree.bench.runner import run_table

    settings.say(f"== {name}")
    record = run_table(name, settings)
    worse: list[str] = record.get("worse", [])
    return worse


def write_page(out: Path, page: Path, quick: bool, console: Console) -> None:
    from latenttree.bench.report import write_report
    from latenttree.cli.printing import print_file

    print_file(console, "page", write_report(out, page, quick))
