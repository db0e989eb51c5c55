"""The commands and their parameters: a dataclass each, whose docstring is the help and an example.

The function `run` of the module of a command's name takes it. Fields that are dataclasses of
`options.py` stand for all their options.
"""

from __future__ import annotations

from collections.abc import Mapping
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


JSON_KEYS: Mapping[str, str] = {
    "fit": "data, n_samples, model, and those of show",
    "show": "n_observed, n_hidden, hidden_states, edges (node_a, node_b, length, sign, support, "
    "inner), support_method, n_resamples, n_parameters, fit, messages, stage_seconds; with --node "
    "node, hidden, family, values, marginal, neighbors (node, length, sign, support, conditional)",
    "topics": "levels, coarsest first, of topics (topic, parent, words, bits, directions, share, "
    "n_variables)",
    "describe": "node, hidden, described_by, states, shares, variables (name, bits, direction, "
    "labels, values), nearest_hidden (name, bits)",
    "groups": "groups, lists of variables",
    "compare": "first, second (file, n_hidden, n_inner_edges, n_contracted), robinson_foulds, "
    "normalized, group_agreement, n_left_out, shared, only_first, only_second, lists of the "
    "smaller sides of splits",
    "query": "given, log_likelihood, answers (node, family, values, given, without)",
    "score": "n_samples, weight, mean_log_likelihood, bic, n_parameters, n_impossible, "
    "first_impossible, notes",
}
"""Keys of the object that a command prints with ``--json``; those of objects inside in brackets."""


def _json(command: str) -> Any:
    keys = JSON_KEYS[command]
    return typer.Option("--json", help=f"Print one JSON object and nothing else. Keys: {keys}.")


def _out(help: str) -> Any:
    return typer.Option("--out", "-o", help=help)


TABLES = ".csv, .tsv, .parquet or .xlsx"
NUMBER_TABLES = ".csv, .tsv, .parquet, .xlsx or .npz"
SIMULATED = ("categorical", "binary", "ordinal", "gaussian", "poisson")
"""Families that are single columns of a file."""

TreeFile = Annotated[Path, typer.Argument(help="A model or a tree: .ltree, .json or .nwk.")]


@dataclass(frozen=True)
class Demo:
    """Learn the tree over the pixels of handwritten digits, draw it, and use its model.

    Example: latenttree demo --out digits.png
    """

    out: Annotated[Path, typer.Option(help="Picture to write (.png, .pdf or .svg).")] = Path(
        "demo_digits.png"
    )
    threads: Threads = None


@dataclass(frozen=True)
class Fit:
    """Learn a tree and its probabilities from a file.

    Example: latenttree fit table.csv -o model.ltree
    """

    file: Annotated[
        Path,
        typer.Argument(
            help=f"Data: {DATA_FILES}; with --events a table with a row for each event: "
            f"{EVENT_FILES}, and .csv.gz, .csv.xz. '-' for standard input."
        ),
    ]
    out: Annotated[Path, _out("Model: .ltree. The tree alone: .json or .nwk.")]
    learning: LearningOptions
    reading: TrainingTable
    picture: PictureOptions
    events: TrainingEvents
    verbose: Verbose = False
    json: Annotated[bool, _json("fit")] = False


@dataclass(frozen=True)
class Show:
    """Describe a saved model or tree, and draw it as text.

    Example: latenttree show model.ltree --node h0
    """

    file: TreeFile
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
    json: Annotated[bool, _json("show")] = False


@dataclass(frozen=True)
class Topics:
    """The hidden variables to read a model by, each with the variables that tell most about it.

    Example: latenttree topics model.ltree --level 10 --words 5
    """

    model: ModelFile
    level: Annotated[
        list[int] | None,
        typer.Option(
            min=1,
            metavar="NUMBER",
            show_default="10, 50 and 200, as suits the size",
            help="How many topics. May be repeated, for levels of detail that nest.",
        ),
    ] = None
    words: Annotated[int, typer.Option(min=1, help="Most variables listed for a topic.")] = 10
    threads: Threads = None
    json: Annotated[bool, _json("topics")] = False


@dataclass(frozen=True)
class Describe:
    """What a node stands for: the share of samples in each of its states, and the variables that
    tell most about it, near or far. (-): a higher state has less of them.

    Example: latenttree describe model.ltree h3
    """

    model: ModelFile
    node: Annotated[str, typer.Argument(metavar="NODE", help="A hidden node or a variable.")]
    n: Annotated[int, typer.Option("-n", min=1, help="Most variables that are listed.")] = 10
    json: Annotated[bool, _json("describe")] = False


@dataclass(frozen=True)
class Groups:
    """Cut the tree into groups of variables that go together.

    Example: latenttree groups model.ltree 5 -o groups.csv
    """

    file: TreeFile
    k: Annotated[int, typer.Argument(metavar="K", min=1, help="How many groups.")]
    min_size: Annotated[int, typer.Option(min=1, help="Least number of variables in a group.")] = 1
    unsigned: Annotated[
        bool,
        typer.Option("--unsigned", help="Variables that exclude each other may be in one group."),
    ] = False
    out: Annotated[Path | None, _out(f"Also write the group of every variable: {TABLES}.")] = None
    json: Annotated[bool, _json("groups")] = False


@dataclass(frozen=True)
class Name:
    """Name a hidden variable; without NODE and NAME all of them by the variables that tell most
    about them.

    Example: latenttree name model.ltree h3 sports
    """

    model: ModelFile
    node: Annotated[str | None, typer.Argument(metavar="NODE", help="A hidden node.")] = None
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Its new name.")] = None
    words: Annotated[
        int, typer.Option(min=1, help="Variables in the name of a node, where all are named.")
    ] = 2
    out: Annotated[
        Path | None, _out("Model to write: .ltree; in place of the one read if left out.")
    ] = None


@dataclass(frozen=True)
class Compare:
    """What two trees share: splits of the variables, the Robinson-Foulds distance, and both drawn
    side by side.

    Example: latenttree compare model.ltree other.nwk
    """

    first: TreeFile
    second: Annotated[Path, typer.Argument(help="Another one, over the same variables.")]
    draw: Annotated[
        bool | None, typer.Option("--draw/--no-draw", help="Draw in text; default up to 200 nodes.")
    ] = None
    min_support: Annotated[
        float,
        typer.Option(min=0, max=1, help="Contract inner edges of less support; 0 keeps all."),
    ] = 0.5
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw both as a picture (.png, .pdf or .svg), coloured by what they share."
        ),
    ] = None
    json: Annotated[bool, _json("compare")] = False


@dataclass(frozen=True)
class Export:
    """Write a model or a tree for other programs, in the format that the name of the file tells.

    Example: latenttree export model.ltree -o tree.graphml
    """

    file: TreeFile
    out: Annotated[
        Path,
        _out(
            "The tree: .nwk, .nex, .graphml, .gexf, .dot. All probabilities: .bif, .uai, .json. "
            "Tables of edges and of conditional distributions: .csv, .tsv, .parquet, .xlsx."
        ),
    ]


@dataclass(frozen=True)
class Query:
    """Exact probabilities of variables, observed or hidden, given any others; of numbers the
    expectation.

    Example: latenttree query model.ltree --given cough=yes,fever=no smoker h0
    """

    model: ModelFile
    nodes: Annotated[
        list[str], typer.Argument(metavar="NAME...", help="Variables or hidden nodes to ask for.")
    ]
    reading: NewTable
    events: NewEvents
    given: Annotated[
        list[str] | None,
        typer.Option(
            help="What is known: NAME=VALUE,NAME2=VALUE2; weights as NAME=yes:0.8/no:0.2, codes of "
            "a group as NAME=CODE+CODE. May be repeated."
        ),
    ] = None
    table: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Ask for each sample of a file, given all its other columns: any file that score "
            "takes; needs --out.",
        ),
    ] = None
    out: Annotated[Path | None, _out(f"Answers of --table: {TABLES}.")] = None
    top: Annotated[int, typer.Option(min=1, help="Most values that are listed for a node.")] = 10
    threads: Threads = None
    json: Annotated[bool, _json("query")] = False


@dataclass(frozen=True)
class Score:
    """Log-likelihood of samples: the mean and BIC, or each by itself.

    Example: latenttree score model.ltree new.csv
    """

    model: ModelFile
    file: DataFile
    reading: NewTable
    events: NewEvents
    out: Annotated[Path | None, _out(f"Also write every sample's value: {NUMBER_TABLES}.")] = None
    weights: Weights = None
    threads: Threads = None
    json: Annotated[bool, _json("score")] = False


@dataclass(frozen=True)
class Transform:
    """Posterior probabilities of every hidden variable, sample by sample; of a Gaussian tree the
    posterior means.

    Example: latenttree transform model.ltree new.csv -o posteriors.csv
    """

    model: ModelFile
    file: DataFile
    out: Annotated[Path, _out(f"Table: {NUMBER_TABLES}.")]
    reading: NewTable
    events: NewEvents
    threads: Threads = None


@dataclass(frozen=True)
class Impute:
    """Fill the empty cells of a table.

    Example: latenttree impute model.ltree new.csv -o filled.csv
    """

    model: ModelFile
    file: DataFile
    out: Annotated[Path, _out(f"The table without gaps: {TABLES}.")]
    reading: NewTable
    method: Annotated[
        Literal["mode", "sample"],
        typer.Option(
            help="The most probable value (or expected number) of each gap, or a draw of all gaps "
            "of a row."
        ),
    ] = "mode"
    seed: Seed = 0
    threads: Threads = None


@dataclass(frozen=True)
class Sample:
    """Draw new samples from a model.

    Example: latenttree sample model.ltree -n 1000 -o drawn.csv
    """

    model: ModelFile
    out: Annotated[Path, _out(f"Table: {TABLES}.")]
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also write the values of the hidden variables.")
    ] = False
    seed: Seed = 0


@dataclass(frozen=True)
class Simulate:
    """Draw samples from a random latent tree model, and write them with the true tree.

    Example: latenttree simulate -o drawn.csv --variables 20 -n 5000
    """

    out: Annotated[Path, _out(f"Samples: {TABLES}.")]
    tree: Annotated[
        Path | None,
        typer.Option(
            show_default="NAME.tree.json",
            help="The true tree: .json or .nwk.",
        ),
    ] = None
    variables: Annotated[int, typer.Option(min=1, help="Observed variables.")] = 9
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000
    states: Annotated[
        int | None, typer.Option(min=1, show_default="2", help="States of a hidden variable.")
    ] = None
    categories: Annotated[
        int | None,
        typer.Option(
            min=1, show_default="as many as states", help="Categories of an observed variable."
        ),
    ] = None
    shape: Annotated[
        Literal["balanced", "caterpillar", "star", "random"], typer.Option(help="Of the tree.")
    ] = "balanced"
    arity: Annotated[int, typer.Option(min=2, help="Children of a hidden node.")] = 3
    length: Annotated[
        float, typer.Option(help="Of the edges, -log of the correlation of their ends.")
    ] = 0.5
    family: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            show_default="categorical",
            help=f"Of the variables: {', '.join(SIMULATED)}. May be repeated: they take turns.",
        ),
    ] = None
    hidden: Annotated[
        Literal["categorical", "gaussian"],
        typer.Option(help="Hidden variables with states, or real ones: a Gaussian tree."),
    ] = "categorical"
    missing: Annotated[float, typer.Option(min=0, help="Share of empty cells.")] = 0.0
    with_hidden: Annotated[
        bool, typer.Option("--with-hidden", help="Also write the values of hidden variables.")
    ] = False
    seed: Seed = 0


@dataclass(frozen=True)
class Page:
    """Write a model as a web page: a map of the tree with search, topics and all probabilities, in
    one file that needs no network.

    Example: latenttree page model.ltree -o tree.html
    """

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
    """Compile all kernels ahead: for an image, a class room, or a first fit without a wait.

    Example: latenttree compile categories sparse
    """

    kinds: Annotated[
        list[str] | None,
        typer.Argument(metavar="KIND", help=f"Of {', '.join(KINDS)}; all if left out."),
    ] = None
    threads: Threads = None


COMMANDS = (
    *(Demo, Fit, Show, Topics, Describe, Groups, Name, Page, Compare, Export),
    *(Query, Score, Transform, Impute, Sample, Simulate, Compile),
)
"""In the order of ``--help``."""
