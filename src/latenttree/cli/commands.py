"""The commands and their parameters: a dataclass each, whose docstring is the help.

The function `run` of the module of a command's name takes it. Fields that are dataclasses of
`options.py` stand for all their options.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from latenttree.cli.options import (
    DATA_FILES,
    EVENT_FILES,
    DataFile,
    LearningOptions,
    ModelFile,
    NewEvents,
    NewTable,
    PictureOptions,
    Seed,
    Threads,
    TrainingEvents,
    TrainingTable,
    Verbose,
    Weights,
)

KINDS = {
    "categories": ("codes", 2),
    "more-states": ("codes", 3),
    "sparse": ("sparse_binary", 2),
    "numbers": ("values", 2),
    "blocks": ("blocks", 3),
    "gaussian": ("values", 1),
}
"""What each name compiles for: a kind of table, and the states of hidden variables."""


def _out(help: str) -> Any:
    return typer.Option("--out", "-o", help=help)


@dataclass(frozen=True)
class Demo:
    """Learn the tree over the pixels of handwritten digits, draw it, and use its model."""

    out: Annotated[Path, typer.Option(help="Picture to write (.png, .pdf or .svg).")] = Path(
        "demo_digits.png"
    )
    threads: Threads = None


@dataclass(frozen=True)
class Fit:
    """Learn a tree and its probabilities from a file."""

    file: Annotated[
        Path,
        typer.Argument(
            help=f"Data: {DATA_FILES}; with --events a table with a row for each event: "
            f"{EVENT_FILES}, and .csv.gz, .csv.xz."
        ),
    ]
    out: Annotated[Path, _out("Model: .ltree. The tree alone: .json or .nwk.")]
    learning: LearningOptions
    reading: TrainingTable
    picture: PictureOptions
    events: TrainingEvents
    verbose: Verbose = False


@dataclass(frozen=True)
class Show:
    """Describe a saved model or tree, and draw it as text."""

    file: Annotated[Path, typer.Argument(help="A model or a tree: .ltree, .json or .nwk.")]
    picture: PictureOptions
    node: Annotated[
        str | None,
        typer.Option(help="Only this variable: its neighbours and conditional distributions."),
    ] = None
    draw: Annotated[
        bool | None, typer.Option("--draw/--no-draw", help="Draw in text; default up to 200 nodes.")
    ] = None
    max_lines: Annotated[
        int, typer.Option(min=2, help="Most lines of the drawing; what is left out is counted.")
    ] = 1000
    lengths: Annotated[bool, typer.Option("--lengths", help="Write the edge lengths.")] = False
    min_support: Annotated[
        float,
        typer.Option(
            min=0, max=1, help="Contract inner edges of less support in what is drawn; 0 draws all."
        ),
    ] = 0.5
    verbose: Verbose = False


@dataclass(frozen=True)
class Query:
    """Exact probabilities of variables, observed or hidden, given any others; of numbers the
    expectation."""

    model: ModelFile
    nodes: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Variables or hidden nodes to ask for.")
    ]
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="What is known: NAME=VALUE,NAME2=VALUE2; weights as NAME=yes:0.8/no:0.2, codes of "
            "a group as NAME=CODE+CODE. May be repeated."
        ),
    ] = None
    top: Annotated[int, typer.Option(min=1, help="Most values that are listed for a node.")] = 10


@dataclass(frozen=True)
class Score:
    """Log-likelihood of samples: the mean and BIC, or each by itself."""

    model: ModelFile
    file: DataFile
    reading: NewTable
    events: NewEvents
    out: Annotated[Path | None, _out("Also write every sample's value: .csv, .npz, .parquet.")] = (
        None
    )
    weights: Weights = None
    threads: Threads = None


@dataclass(frozen=True)
class Transform:
    """Posterior probabilities of every hidden variable, sample by sample; of a Gaussian tree the
    posterior means."""

    model: ModelFile
    file: DataFile
    out: Annotated[Path, _out("Table: .csv, .npz or .parquet.")]
    reading: NewTable
    events: NewEvents
    threads: Threads = None


@dataclass(frozen=True)
class Impute:
    """Fill the empty cells of a table."""

    model: ModelFile
    file: DataFile
    out: Annotated[Path, _out("The table without gaps: .csv.")]
    reading: NewTable
    method: Annotated[
        Literal["mode", "sample"],
        typer.Option(
            help="The most probable value (or expected number) of each gap, or a draw of all gaps "
            "of a row."
        ),
    ] = "mode"
    seed: Seed = None
    threads: Threads = None


@dataclass(frozen=True)
class Sample:
    """Draw new samples from a model."""

    model: ModelFile
    out: Annotated[Path, _out("Table: .csv or .parquet.")]
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also write the values of the hidden variables.")
    ] = False
    seed: Seed = None


@dataclass(frozen=True)
class Page:
    """Write a model as a web page: a map of the tree with search, topics and all probabilities, in
    one file that needs no network."""

    model: ModelFile
    out: Annotated[Path, _out("Web page: .html.")]
    color_by: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Colours at first: 'topic', or a column of --columns."),
    ] = None
    columns: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Labels or numbers of the variables to colour by: a .csv or .parquet with their "
            "names in the first column.",
        ),
    ] = None
    title: Annotated[str | None, typer.Option(help="Of the page.")] = None
    topics: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            show_default="10, 50 and 200, as suits the size",
            help="Topics that the variables are grouped into. May be repeated, for levels of "
            "detail.",
        ),
    ] = None
    threads: Threads = None


@dataclass(frozen=True)
class Compile:
    """Compile all kernels ahead: for an image, a class room, or a first fit without a wait."""

    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND", help=f"Of {', '.join(KINDS)}; all if left out."),
    ] = None
    threads: Threads = None


COMMANDS = (Demo, Fit, Show, Query, Score, Transform, Impute, Sample, Page, Compile)
"""In the order of ``--help``."""
