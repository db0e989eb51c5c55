"""The runner: `python -m benchmarks TABLE...`, from the root of the repository."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.grids import Grid, show
from benchmarks.recording import run_table, write_page
from benchmarks.registry import MODULE_OF, find_table
from benchmarks.settings import ROOT, Settings, with_choices
from latenttree.errors import DataError

EPILOG = """Without a table: the list of all. `benchmarks/same_answers.py` and `same_speed.py` are
scripts of their own: whether two versions of the code give the same answers, in the same time."""


def parser() -> argparse.ArgumentParser:
    """The options of the runner."""
    made = argparse.ArgumentParser("python -m benchmarks", description=__doc__, epilog=EPILOG)
    add = made.add_argument
    add("tables", nargs="*", metavar="TABLE", help="names, `all`, or `report` for the page")
    add("--about", action="store_true", help="what the tables measure, and their own options")
    add("--quick", action="store_true", help="tiny sizes, to see it work")
    add("--seeds", type=int, help="repetitions of every row")
    add("--first-seed", type=int, default=0, help="seeds are this and the next (default 0)")
    add("--row", action="append", default=[], help="only rows with this in their label; repeatable")
    add("--set", action="append", default=[], metavar="NAME=VALUE", help="see --about; repeatable")
    add("--threads", type=int, help="of a fit (default: all cores)")
    add("--jobs", type=int, default=2, help="processes of tables that are not about time")
    add("--resume", action="store_true", help="go on with an interrupted run of the same source")
    add("--data", type=Path, help="folder of real data; else $LATENTTREE_DATA, ../shared/data")
    add("--out", type=Path, default=Settings.out, help="folder of results (out/benchmarks)")
    add("--page", type=Path, default=ROOT / "docs" / "benchmarks.md", help="of report: the page")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status 0; 1 where a table failed its check, 2 for what cannot be used."""
    args = parser().parse_args(arguments)
    wide = None if sys.stdout.isatty() else 160  # a file has room for the largest table
    console = Console(width=wide)
    try:
        return run(args, console)
    except DataError as error:
        console.print(f"error: {error}", style="red", highlight=False, markup=False)
        return 2


def run(args: argparse.Namespace, console: Console) -> int:
    """List, describe, collect or measure, as asked."""
    names = list(MODULE_OF) if "all" in args.tables else list(dict.fromkeys(args.tables))
    given = dict(_pair(text) for text in args.set)
    if not names:
        show(listing(), console)
        return 0
    tables = [find_table(name) for name in names if name != "report"]
    unknown = set(given) - {name for table in tables for name in table.choices}
    if unknown:
        raise DataError(
            f"no option of {', '.join(names)} is called {sorted(unknown)[0]!r}",
            "see --about for those there are",
            value=sorted(unknown)[0],
        )
    if args.about:
        for table in tables:
            describe(table.name, console)
        return 0
    settings = Settings(
        quick=args.quick, seeds=args.seeds, first_seed=args.first_seed, rows=tuple(args.row),
        threads=args.threads, jobs=args.jobs, resume=args.resume, data=args.data, out=args.out,
        console=console,
    )  # fmt: skip
    failed = [line for table in tables for line in measure(table.name, settings, given, console)]
    if "report" in names:
        console.print(f"page: {write_page(args.out, args.page, args.quick)}", highlight=False)
    return 1 if failed else 0


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise DataError(f"--set {text} has no value", "write NAME=VALUE", value=text)
    return name, value


def measure(name: str, settings: Settings, given: dict[str, str], console: Console) -> list[str]:
    """Run one table and print it; the sentences that make it fail, if there are any."""
    table = find_table(name)
    own = with_choices(settings, name, table.choices, given)
    own.say(f"== {name}")
    record = run_table(table, own)
    if record["rows"]:
        console.print(f"\n{record['title']}", style="bold", highlight=False)
        for part in table.text(record):
            show(part, console)
    failed: list[str] = record.get("failed", [])
    for line in failed:
        console.print(line, style="red", highlight=False, markup=False)
    return failed


def listing() -> Grid:
    """All tables: what each shows, and how long it takes."""
    tables = [find_table(name) for name in MODULE_OF]
    return Grid(["table", "time", "shows"], [[t.name, t.duration, t.shows] for t in tables])


def describe(name: str, console: Console) -> None:
    """What a table measures, and the options that it alone has."""
    table = find_table(name)
    console.print(f"{table.name}: {table.title}", style="bold", highlight=False)
    console.print(" ".join(table.about.split()), highlight=False, markup=False)
    for option, choice in table.choices.items():
        default = choice.default
        text = ",".join(map(str, default)) if isinstance(default, tuple) else default
        console.print(f"  --set {option}={text}  {choice.help}", highlight=False, markup=False)


if __name__ == "__main__":
    sys.exit(main())
