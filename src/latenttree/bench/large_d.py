"""A million dimensions."""

from __future__ import annotations

from typing import Any

from latenttree.bench.measure import measure_all
from latenttree.bench.record import make_record
from latenttree.bench.settings import Settings
from latenttree.bench.simulated import Balanced
from latenttree.bench.works import Paper, Target, Work

TITLE = "A million dimensions, k = 3"
ABOUT = """The paper's experiment with d = 1,000,000, p = 3, N = 1,000 (here 200 of the categories
are in use); beside it nine variables with a million categories by Zipf's law, N = 50,000.
Nothing of size d x d is ever made."""
MILLION = 1_000_000


def run(settings: Settings) -> dict[str, Any]:
    rows = measure_all(works(settings.quick), settings)
    return make_record("large-d", TITLE, ABOUT, settings, rows)


def works(quick: bool) -> list[Work]:
    if quick:
        return [_row(3, 20_000, 1_000, Paper(), Target(2.0, 0.0), n_used=200)]
    return [
        _row(3, MILLION, 1_000, Paper(10.6), Target(2.0, 0.0), n_used=200),
        _row(9, MILLION, 50_000, Paper(), Target(rf=0.0), n_used=200),
        _row(9, MILLION, 50_000, Paper(), Target(rf=0.0), marginal="zipf"),
    ]


def _row(
    p: int,
    d: int,
    n: int,
    paper: Paper,
    target: Target,
    marginal: str = "random",
    n_used: int | None = None,
) -> Work:
    which = f"{n_used} in use" if n_used else "Zipf"
    label = f"p = {p}, d = {d:,}, {which}, N = {n:,}"
    return Work(label, Balanced(p, d, n, 3, marginal, n_used), 3, paper, target)
