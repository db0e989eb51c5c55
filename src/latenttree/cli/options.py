"""Options that commands share, declared once.

Options that belong together are a dataclass; `flat_parameters` shows Typer a parameter for each of
its fields.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from latenttree.errors import DataError

PictureLayout = Literal["radial", "top_down"]

# What `data.files.formats` lists; here too, because --help must not import the data room.
DATA_FILES = (
    ".csv, .tsv, .parquet, .feather, .xlsx, .npy, .npz, .mtx, .h5ad, docword.NAME.txt[.gz], .fasta"
)
COLUMN_FILES = ".csv, .tsv, .parquet, .feather or .xlsx"
EVENT_FILES = ".csv, .tsv, .parquet, .feather, .xlsx"

LEAST_COUNT = 2
"""Samples that have a word or a code at least, unless asked for more."""

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` wrote: .ltree.")]
DataFile = Annotated[
    Path,
    typer.Argument(
        help=f"Samples: {DATA_FILES} (empty cells are missing values); with --events a table with "
        f"a row for each event: {EVENT_FILES}, and .csv.gz, .csv.xz. '-' for standard input."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores if left out.")]
Seed = Annotated[
    int, typer.Option(min=0, help="Seed of the random numbers: the same gives the same result.")
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print the time of every stage.")]
Weights = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column that says how often each row counts."),
]
Vocabulary = Annotated[Path | None, typer.Option(help="Names of variables, one a line.")]
Delimiter = Annotated[
    str | None,
    typer.Option(
        show_default="a comma; a tab in a .tsv",
        help="Between the cells of a .csv or .tsv; 'tab' for a tab.",
    ),
]
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
    delimiter: Delimiter = None
    ignore: Ignored = None

    @property
    def separator(self) -> str | None:
        """The character between cells that ``--delimiter`` names; None where the name of the file
        decides."""
        if self.delimiter is None:
            return None
        mark = "\t" if self.delimiter in ("tab", "\\t") else self.delimiter
        if len(mark) != 1:
            what = f"--delimiter is {self.delimiter!r}"
            remedy = "pass a single character, or 'tab'"
            raise DataError(what, remedy, value=self.delimiter, option="delimiter")
        return mark

    @property
    def ignored(self) -> Sequence[str]:
        """Columns that are no variables."""
        return self.ignore or ()


@dataclass(frozen=True)
class NewTable(TableOptions):
    """How the file of new samples is read. What training left out or used as weights is here too,
    and its delimiter is the default."""

    handle_unknown: Annotated[
        Literal["missing", "error"] | None,
        typer.Option(
            help="Labels that did not occur in training: missing values with a warning, or an "
            "error; as the model says if left out."
        ),
    ] = None


@dataclass(frozen=True)
class TrainingTable(TableOptions):
    """How the file that a model is learned from is read."""

    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[COLUMN=]NAME",
            help="Family of a column, or of all: categorical, ordinal, gaussian, poisson. May be "
            "repeated; columns that are not named are judged by their values.",
        ),
    ] = None
    weights: Weights = None
    min_count: Annotated[
        int, typer.Option(min=1, help="Drop words or codes that fewer samples have than this.")
    ] = LEAST_COUNT
    drop_constant: Annotated[
        bool, typer.Option("--drop-constant", help="Leave out columns with a single value.")
    ] = False


@dataclass(frozen=True)
class LearningOptions:
    """How the tree and its probabilities are learned."""

    states: Annotated[
        str | None,
        typer.Option(
            metavar="NUMBER|auto|bic",
            show_default="auto; 4 for nucleotides",
            help="States of a hidden variable: a number, 'auto' for as many as held-out samples "
            "support, two for words and codes, or 'bic' for the most parsimonious model. Where it "
            "is gaussian, its dimensions.",
        ),
    ] = None
    hidden: Annotated[
        Literal["categorical", "gaussian"],
        typer.Option(help="Hidden variables with states, or real ones: a Gaussian tree."),
    ] = "categorical"
    min_support: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=1,
            show_default="0.5, unless held-out samples ask for all edges",
            help="Contract edges with a smaller posterior probability than this.",
        ),
    ] = None
    support: Annotated[
        Literal["auto", "subsample", "bootstrap", "model"],
        typer.Option(
            help="Of an edge. subsample: the chance that it comes back in other samples, by trees "
            "of thirds of these; bootstrap: how often it is in trees of bootstrap samples; model: "
            "its posterior probability, at no cost; auto: model where the tree fits, else "
            "subsample."
        ),
    ] = "auto"
    resamples: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default="25; fewer beyond 750 variables",
            help="Trees that are learned for the support.",
        ),
    ] = None
    tree: Annotated[
        Literal["majority", "most_probable"],
        typer.Option(help="Every edge more likely real than not, or the tree of best BIC."),
    ] = "majority"
    search: Annotated[
        bool, typer.Option(help="Decide doubtful regions of the tree by likelihood.")
    ] = True
    observed_as_leaves: Annotated[
        bool,
        typer.Option("--observed-as-leaves", help="Every variable of the table is a leaf."),
    ] = False
    refine: Annotated[
        bool, typer.Option(help="Improve the probabilities by EM; without it search is off too.")
    ] = True
    max_iter: Annotated[int, typer.Option(min=1, help="Most steps of EM.")] = 200
    smoothing: Annotated[
        float, typer.Option(min=0, help="Pseudo-samples that keep probabilities off zero.")
    ] = 1.0
    seed: Seed = 0
    threads: Threads = None
    memory_limit: Annotated[
        str | None,
        typer.Option(
            metavar="SIZE",
            help="Most memory to use, as 500MB or 8GiB: larger files are read part by part, and "
            "pairs of variables counted when needed. Most of what is free if left out.",
        ),
    ] = None

    @property
    def gaussian(self) -> bool:
        """Whether the hidden variables are real."""
        return self.hidden == "gaussian"

    def n_states(self) -> int | str | None:
        """The number that ``--states`` gives, "auto" or "bic", or None where it is left out: the
        file decides."""
        least = 1 if self.gaussian else 2
        if self.states is None or self.states in ("auto", "bic"):
            return self.states
        if not self.states.isascii() or not self.states.isdigit() or int(self.states) < least:
            what = f"--states is {self.states!r}"
            remedy = f"pass 'auto', 'bic' or a whole number from {least} on"
            raise DataError(what, remedy, value=self.states, option="n_states")
        return int(self.states)

    def arguments(self) -> dict[str, Any]:
        """Arguments of `LatentTree` but for the number of states."""
        own = {"states", "threads", "seed", "resamples"}
        same = {name: value for name, value in vars(self).items() if name not in own}
        return same | {
            "min_support": "auto" if self.min_support is None else self.min_support,
            "refine": "em" if self.refine else None,
            "n_resamples": self.resamples,
            "random_state": self.seed,
        }

    def check(self) -> None:
        """``--resamples`` is only given where trees are learned for the support."""
        if self.resamples is not None and self.support == "model":
            what = f"--resamples is {self.resamples}, but --support model learns no further trees"
            remedy = "leave out --resamples, or pass --support subsample"
            raise DataError(what, remedy, value=self.resamples, option="n_resamples")


def _of_events(help: str, *flags: str, metavar: str | None = None) -> Any:
    """An option that --help lists with those of tables of events."""
    panel = "Tables of events (--events)"
    return typer.Option(*flags, metavar=metavar, rich_help_panel=panel, help=help)


def _of_column(what: str) -> Any:
    return _of_events(f"Column of {what}.", metavar="COLUMN")


@dataclass(frozen=True)
class EventOptions:
    """Options of tables with a row for each event; as given, None or empty where left out."""

    events: Annotated[
        bool | None,
        _of_events(
            "The file has a row for each event; as in training if left out.",
            "--events/--no-events",
        ),
    ] = None
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

    def pairs(self) -> Iterator[tuple[str, ...]]:
        """Flags with their values, as they were written on the command line."""
        if self.events:
            yield ("--events",)
        for flag, value in self.given().items():
            if value is True:
                yield (flag,)
                continue
            for text in [value] if isinstance(value, str) else value:
                yield flag, text

    def check(self) -> None:
        """Options of events are only given with ``--events``."""
        flags = list(self.given())
        if flags and not self.events:
            raise DataError(f"{flags[0]} is for tables of events", "pass --events too")


@dataclass(frozen=True)
class TrainingEvents(EventOptions):
    """Options of the events that a model is learned from."""

    events: Annotated[bool, _of_events("The file has a row for each event.", "--events")] = False
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
    """Options of events that are read with a model: those of training where left out, but for the
    time span."""

    groups: Annotated[
        str | None,
        _of_events(
            "Codes outside of it do not count. As in training if left out; the model has the "
            "groups.",
            metavar="FILE[:CODE:GROUP]",
        ),
    ] = None
    unknown: Annotated[
        Literal["stop", "drop"] | None,
        _of_events(
            "Where more than a tenth of the events have codes that the model does not know; stop "
            "if left out, unless training dropped rare codes by --min-count."
        ),
    ] = None


def map_source(text: str) -> Any:
    """The argument of `read_events` for FILE, or for FILE:COLUMN:COLUMN.

    Columns are named where the file has more than two; colons may also be part of a file's name.
    """
    file, *columns = text.rsplit(":", 2)
    if len(columns) == 2 and not Path(text).exists():
        return (Path(file), *columns)
    return Path(text)


# ---- what Typer sees ------------------------------------------------------------------


def flat_parameters(options: Any) -> Iterator[inspect.Parameter]:
    """A parameter for each field of a dataclass, and of the dataclasses among them."""
    hints = get_type_hints(options, include_extras=True)
    for field in fields(options):
        hint, default = hints[field.name], field.default
        if is_dataclass(hint):
            yield from flat_parameters(hint)
        else:
            default = inspect.Parameter.empty if default is MISSING else default
            kind = inspect.Parameter.KEYWORD_ONLY
            yield inspect.Parameter(field.name, kind, default=default, annotation=hint)


def from_flat(options: Any, values: Mapping[str, Any]) -> Any:
    """The dataclass with the values of its flat parameters."""
    hints = get_type_hints(options)
    return options(
        **{
            name: from_flat(hint, values) if is_dataclass(hint) else values[name]
            for name, hint in hints.items()
        }
    )
