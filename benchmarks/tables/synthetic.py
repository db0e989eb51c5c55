"""The paper's synthetic table, and its experiment with a million dimensions: balanced trees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.data.simulated import Balanced
from benchmarks.fits import fits_table
from benchmarks.grids import Column, Grid, field, make_grid, mean, plus_minus, values
from benchmarks.registry import Table
from benchmarks.settings import Settings
from benchmarks.sources import NOTHING_ASKED, NOTHING_REPORTED, Paper, Target, Work

ABOUT = """The paper's table of large d and large p. Balanced 3-ary trees, all edges of information
length 0.5. The paper notes sparsities of 0.8, 0.98 and 0.998 beside d = 1,000, 10,000 and 100,000,
read here as 200 categories in use; a variant with all categories in use, by Zipf's law, stands
beside each. The oracle counts with the hidden states known."""
ABOUT_LARGE_D = """The paper's experiment with d = 1,000,000, p = 3, N = 1,000 (here 200 of the
categories are in use); beside it nine variables with a million categories by Zipf's law, and with
thousands that are all alike, N = 50,000. Nothing of size d x d is ever made. The last row is below
the detection limit and must be refused."""
ABOUT_BIAS = """ Bias: estimated over true length of an edge, less one, mean over the edges between
hidden nodes or to the leaves; only of trees with the right topology."""
N_SAMPLES, N_STATES, MILLION = 50_000, 3, 1_000_000


def synthetic(settings: Settings) -> list[Work]:
    """The rows of the paper's table."""
    if settings.quick:
        return [
            balanced(9, 10, target=Target(1.0, 0.0, 1.15), n_samples=4_000),
            balanced(9, 300, 60, target=Target(None, 0.0, 1.15), n_samples=4_000),
        ]
    few, many, most = Paper(5.1, 0, 0.1014), Paper(29.9, 0, 0.0917), Paper(56.5, 0, 0.0812)
    return [
        balanced(9, 10, None, Paper(3.8, 0, 0.0104), Target(1.0, 0.0, 1.15)),
        balanced(9, 100, None, Paper(4.4, 0, 0.0967), Target(1.5, 0.0, 1.15)),
        balanced(9, 1_000, 200, few, Target(2.0, 0.0, 1.15)),
        balanced(9, 1_000, "zipf", few, Target(2.0, 0.0, 1.15)),
        balanced(9, 10_000, 200, many, Target(3.0, 0.0, 1.3)),
        balanced(9, 10_000, "zipf", many, Target(3.0, 0.0, 1.3)),
        balanced(9, 100_000, 200, most, Target(6.0, 0.0, 1.5)),
        balanced(9, 100_000, "zipf", most, Target(6.0, 0.0, 1.5)),
        balanced(81, 100, None, Paper(323.7, 0.06, 0.1814), Target(5.0, 0.0, 1.15)),
        balanced(729, 100, None, Paper(4220.1, 0.16, 0.1913), Target(40.0, 0.0, 1.15)),
    ]


def large_d(settings: Settings) -> list[Work]:
    """The paper's three variables, and nine; the last row is below the detection limit."""
    below = replace(balanced(9, 20_000, "uniform", n_samples=5_000), is_refused=True)
    if settings.quick:
        return [
            balanced(3, 20_000, 200, target=Target(2.0, 0.0), n_samples=1_000),
            balanced(9, 1_000, "uniform", n_samples=20_000),
            below,
        ]
    return [
        balanced(3, MILLION, 200, Paper(10.6), Target(2.0, 0.0), n_samples=1_000),
        balanced(9, MILLION, 200, target=Target(rf=0.0)),
        balanced(9, MILLION, "zipf", target=Target(rf=0.0)),
        balanced(9, 5_000, "uniform"),
        balanced(9, 10_000, "uniform"),
        below,
    ]


def balanced(
    p: int,
    d: int,
    used: int | str | None = None,
    paper: Paper = NOTHING_REPORTED,
    target: Target = NOTHING_ASKED,
    n_samples: int = N_SAMPLES,
) -> Work:
    """A row; `used` is the number of categories in use, or how all of them are distributed."""
    n_used, marginal = (None, used) if isinstance(used, str) else (used, "random")
    which = {"zipf": ", Zipf", "uniform": ", uniform", None: ""}.get(used, f", {used} in use")
    size = "" if n_samples == N_SAMPLES else f", N = {n_samples:,}"
    source = Balanced(p, d, n_samples, N_STATES, marginal, n_used)
    return Work(f"p = {p}, d = {d:,}{which}{size}", source, N_STATES, paper, target)


def with_bias(table: Table) -> Table:
    """A table of whole fits that shows the bias of edge lengths too."""

    def body(record: Mapping[str, Any]) -> list[Grid | str]:
        return [*table.text(record), make_grid(record["rows"], BIAS)]

    return replace(table, about=table.about + ABOUT_BIAS, body=body)


BIAS = (
    Column("work", field("label")),
    Column("bias of hidden edges, %", lambda row: plus_minus(values(row, "bias"), 1)),
    Column("of pendant edges, %", lambda row: plus_minus(values(row, "pendant_bias"), 1)),
    Column("rounds", mean("n_rounds", 1)),
)

TABLES = (
    with_bias(
        fits_table(
            synthetic,
            name="synthetic",
            shows="the paper's table of large d and large p: errors, time, memory, lower bound",
            duration="3 min",
            title="Synthetic table: balanced trees, k = 3, N = 50,000",
            about=ABOUT,
        )
    ),
    with_bias(
        fits_table(
            large_d,
            name="large-d",
            shows="up to a million categories: time, bias of lengths, what is refused",
            duration="1 min",
            title="A million dimensions, k = 3",
            about=ABOUT_LARGE_D,
        )
    ),
)
