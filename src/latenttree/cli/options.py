"""Options that commands share, declared once.

Options that belong together are a dataclass. A command takes it as one parameter, and
`with_flat_options` shows Typer a parameter for each of its fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from latenttree.errors import DataError

PictureLayout = Literal["radial", "top_down"]

# What `data.files.formats` lists; here too, because --help must not import the data room.
DATA_FILES = ".csv, .parquet, .npy, .npz, docword.NAME.txt[.gz], .fasta"
COLUMN_FILES = ".csv or .parquet"
EVENT_FILES = ".csv, .tsv, .parquet"

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` wrote: .ltree.")]
DataFile = Annotated[
    Path,
    typer.Argument(
        help=f"Samples: {DATA_FILES} (empty cells are missing values); with --events a table with "
        f"a row for each event: {EVENT_FILES}, and .csv.gz, .csv.xz."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores if left out.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print the time of every stage.")]
Weights = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that says how often each row counts."),
]
Vocabulary = Annotated[Path | None, typer.Option(help="Names of variables, one a line.")]
Delimiter = Annotated[str, typer.Option(help="Between the cells of a .csv; 'tab' for a tab.")]
Ignored = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help=f"A column of a {COLUMN_FILES} that is no variable: an identifier, a date. May be "
        "repeated.",
    ),
]


# ---- options that belong together -----------------------------------------------------


@dataclass(frozen=True)
class PictureOptions:
    """Whether, and how, the tree is also drawn as a picture."""

    plot: Annotated[Path | None, typer.Option(help="Also draw it (.png, .pdf or .svg).")] = None
    layout: Annotated[PictureLayout, typer.Option(help="Of the picture.")] = "radial"


@dataclass(frozen=True)
class TableOptions:
    """How the cells of a file become samples: shared by `fit` and the commands on new data."""

    vocab: Vocabulary = None
    delimiter: Delimiter = ","
    ignore: Ignored = None

    @property
    def separator(self) -> str:
        """The character between cells that ``--delimiter`` names."""
        mark = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        if len(mark) != 1:
            raise DataError(
                f"--delimiter is {self.delimiter!r}",
                "pass a single character, or 'tab'",
                value=self.delimiter,
                option="delimiter",
            )
        return mark

    @property
    def ignored(self) -> Sequence[str]:
        """Columns that are no variables."""
        return self.ignore or ()


def _of_events(help: str, *flags: str, metavar: str | None = None) -> Any:
    """An option that --help lists with those of tables of events."""
    panel = "Tables of events (--events)"
    return typer.Option(*flags, metavar=metavar, rich_help_panel=panel, help=help)


def _of_column(what: str) -> Any:
    return _of_events(f"Column of {what}.", metavar="COLUMN")


@dataclass(frozen=True)
class EventOptions:
    """Options of tables with a row for each event; as given, None or empty where left out."""

    events: Annotated[bool, _of_events("The file has a row for each event.", "--events")] = False
    sample: Annotated[str | None, _of_column("samples")] = None
    code: Annotated[str | None, _of_column("codes")] = None
    time: Annotated[str | None, _of_column("times")] = None
    since: Annotated[str | None, _of_events("Events from then on only.", metavar="TIME")] = None
    until: Annotated[str | None, _of_events("Events up to then only.", metavar="TIME")] = None
    roll_up: Annotated[
        list[str] | None,
        _of_events(
            "Replace codes by their parents: a table of two columns, or the names of the two. May "
            "be repeated, then one after the other.",
            metavar="FILE[:CODE:PARENT]",
        ),
    ] = None
    groups: Annotated[
        str | None,
        _of_events(
            "The group of each code, likewise; a group is one variable with many codes.",
            metavar="FILE[:CODE:GROUP]",
        ),
    ] = None

    def arguments(self) -> dict[str, Any]:
        """Arguments of `read_events`."""
        plain = {n: getattr(self, n) for n in ("sample", "code", "time", "since", "until")}
        return plain | {
            "roll_up": [map_source(text) for text in self.roll_up or ()] or None,
            "groups": None if self.groups is None else map_source(self.groups),
        }

    def given(self) -> dict[str, Any]:
        """Flags, and their values, of the options besides ``--events`` that were given."""
        values = {f.name: getattr(self, f.name) for f in fields(self)[1:] if f.name != "unknown"}
        return {f"--{name.replace('_', '-')}": value for name, value in values.items() if value}

    def command_line(self) -> Iterator[str]:
        """The options as they were written on the command line."""
        if self.events:
            yield "--events"
        for flag, value in self.given().items():
            if value is True:
                yield flag
                continue
            for text in [value] if isinstance(value, str) else value:
                yield from (flag, text)

    def check(self) -> None:
        """Options of events are only given with ``--events``."""
        flags = list(self.given())
        if flags and not self.events:
            raise DataError(f"{flags[0]} is for tables of events", "pass --events too")


@dataclass(frozen=True)
class TrainingEvents(EventOptions):
    """Options of the events that a model is learned from."""

    binary: Annotated[
        bool,
        _of_events(
            "Every code of --groups a variable of its own, instead of one for each group.",
            "--binary",
        ),
    ] = False

    def check(self) -> None:
        """``--binary`` is only given with ``--groups``."""
        super().check()
        if self.binary and self.groups is None:
            raise DataError("--binary reads the codes of --groups FILE one by one", "pass that too")


@dataclass(frozen=True)
class NewEvents(EventOptions):
    """Options of events that are read with a model."""

    groups: Annotated[
        str | None,
        _of_events(
            "As it was given to fit: codes outside of it do not count. The model has the groups.",
            metavar="FILE[:CODE:GROUP]",
        ),
    ] = None
    unknown: Annotated[
        Literal["stop", "drop"],
        _of_events(
            "Where more than a tenth of the events have codes that the model does not know."
        ),
    ] = "stop"


def map_source(text: str) -> Any:
    """The argument of `read_events` for FILE, or for FILE:COLUMN:COLUMN.

    Columns are named where the file has more than two; colons may also be part of a file's name.
    """
    file, *columns = text.rsplit(":", 2)
    if len(columns) == 2 and not Path(text).exists():
        return (Path(file), *columns)
    return Path(text)


# ---- what Typer sees ------------------------------------------------------------------


def with_flat_options(command: Callable[..., None]) -> Callable[..., None]:
    """`command` with an option for each field of those parameters that are dataclasses."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _fields_as_parameters(groups[name])
        else:
            kind = inspect.Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=kind, annotation=hints[name]))

    @wraps(command)
    def run(**values: Any) -> None:
        grouped = {
            name: group(**{field.name: values.pop(field.name) for field in fields(group)})
            for name, group in groups.items()
        }
        command(**values, **grouped)

    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in parameters}
    return run


def _fields_as_parameters(group: Any) -> list[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    return [
        inspect.Parameter(field.name, kind, default=field.default, annotation=hints[field.name])
        for field in fields(group)
    ]
