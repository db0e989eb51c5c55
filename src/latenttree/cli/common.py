"""What the subcommands share: options, endings, the files they take and give."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from latenttree.cli.remedies import in_words

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.console import Console

    from latenttree.engine import Progress
    from latenttree.estimator import LatentTree

Layout = Literal["radial", "top_down"]

ModelFile = Annotated[Path, typer.Argument(help="A model that `fit` wrote: .ltree.")]
DataFile = Annotated[
    Path,
    typer.Argument(
        help="Samples: .csv (empty cells are gaps), .npz, docword.NAME.txt[.gz], .fasta; with "
        "--events a table with a row for each event."
    ),
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads; all cores if left out.")]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the random numbers.")]
Picture = Annotated[Path | None, typer.Option(help="Also draw it (.png, .pdf or .svg).")]
PictureLayout = Annotated[Layout, typer.Option(help="Of the picture.")]
Vocabulary = Annotated[Path | None, typer.Option(help="Names of variables, one a line.")]
Delimiter = Annotated[str, typer.Option(help="Between the cells of a .csv; 'tab' for a tab.")]
Ignored = Annotated[
    list[str] | None,
    typer.Option(
        "--ignore",
        metavar="COLUMN",
        help="A column of the .csv that is no variable: an identifier, a date. May be repeated.",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", help="Also print the time of every stage.")]

EVENTS = "Tables of events (--events)"
IsEvents = Annotated[
    bool,
    typer.Option("--events", rich_help_panel=EVENTS, help="The file has a row for each event."),
]
EventSample = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", rich_help_panel=EVENTS, help="Column of samples."),
]
EventCode = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=EVENTS, help="Column of codes.")
]
EventTime = Annotated[
    str | None, typer.Option(metavar="COLUMN", rich_help_panel=EVENTS, help="Column of times.")
]
EventSince = Annotated[
    str | None,
    typer.Option(metavar="TIME", rich_help_panel=EVENTS, help="Events from then on only."),
]
EventUntil = Annotated[
    str | None,
    typer.Option(metavar="TIME", rich_help_panel=EVENTS, help="Events up to then only."),
]
EventRollUp = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FILE[:CODE:PARENT]",
        rich_help_panel=EVENTS,
        help="Replace codes by their parents: a table of two columns, or the names of the two. "
        "May be repeated, then one after the other.",
    ),
]
EventGroups = Annotated[
    str | None,
    typer.Option(
        metavar="FILE[:CODE:GROUP]",
        rich_help_panel=EVENTS,
        help="The group of each code, likewise; a group is one variable with many codes.",
    ),
]
KnownGroups = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="FILE[:CODE:GROUP]",
        rich_help_panel=EVENTS,
        help="As it was given to fit: codes outside of it do not count. The model has the groups.",
    ),
]
UnknownCodes = Annotated[
    Literal["stop", "drop"],
    typer.Option(
        "--unknown",
        rich_help_panel=EVENTS,
        help="Where more than a tenth of the events have codes that the model does not know.",
    ),
]

PIPE_WIDTH = 160  # columns of tables where there is no terminal to ask


# ---- endings --------------------------------------------------------------------------


@contextmanager
def clean_exit() -> Iterator[None]:
    """Turn what a user can cause into one line and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # `| head` closed the pipe: typer ends quietly
            raise
        except (ValueError, OSError, ImportError, MemoryError) as error:
            print(f"error: {one_line(error)}", file=sys.stderr)
            raise typer.Exit(getattr(error, "exit_code", 2)) from None


def one_line(error: BaseException) -> str:
    """What is wrong, on one line and in the words of the command line."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return in_words(" ".join(str(error).split()) or type(error).__name__)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


# ---- files ----------------------------------------------------------------------------


def check_picture_path(path: Path) -> None:
    """Fail before the work, not after it, where a picture cannot be written."""
    from latenttree.io.atomic import check_folder
    from latenttree.plots.figure import import_matplotlib

    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{path.name!r} is no picture file; end it in .png, .pdf or .svg")
    check_folder(path)
    import_matplotlib()


def save_figure(figure: Figure, path: Path) -> None:
    from latenttree.io.atomic import replacing

    with replacing(path) as partial:
        figure.savefig(partial, dpi=160, facecolor="white")


def load_model(path: Path, threads: int | None = None) -> LatentTree:
    """The model in a file; what is no model is refused by its name before it is read."""
    from latenttree.errors import DataError
    from latenttree.estimator import load

    if path.suffix.lower() != ".ltree":
        raise DataError(
            f"{path.name!r} is no model; name a file that `latenttree fit FILE -o model.ltree` "
            "wrote (.json and .nwk keep the tree without its probabilities)"
        )
    model = load(path)
    return model.set_params(n_jobs=threads, verbose=sys.stderr.isatty())


def separator(text: str) -> str:
    """The mark between cells that ``--delimiter`` names."""
    mark = "\t" if text in ("tab", "\\t") else text
    if len(mark) != 1:
        raise ValueError(f"--delimiter is {text!r}; pass a single character, or 'tab'")
    return mark


# ---- what is printed ------------------------------------------------------------------


def new_console() -> Console:
    from rich.console import Console

    unknown = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=PIPE_WIDTH if unknown else None)


def new_progress() -> Progress:
    """Stages on stderr, where somebody looks at it."""
    from latenttree.engine import Progress

    return Progress(verbose=sys.stderr.isatty())


def print_notes(console: Console, notes: Sequence[str]) -> None:
    from rich.markup import escape

    for note in notes:
        console.print(f"note: {escape(in_words(note))}", highlight=False)


def print_file(console: Console, what: str, path: Path) -> None:
    from rich.markup import escape

    console.print(f"{what}: [bold]{escape(str(path))}[/bold]", highlight=False, soft_wrap=True)
