"""The paper's synthetic table: balanced trees, N = 50,000, k = 3."""

from __future__ import annotations

from typing import Any

from latenttree.bench.measure import measure_all
from latenttree.bench.record import make_record
from latenttree.bench.settings import Settings
from latenttree.bench.simulated import Balanced
from latenttree.bench.works import Paper, Target, Work

TITLE = "Synthetic table: balanced trees, k = 3, N = 50,000"
ABOUT = """The paper's table of large d and large p. Balanced 3-ary trees, all edges of information
length 0.5. The paper notes sparsities of 0.8, 0.98 and 0.998 beside d = 1,000, 10,000 and 100,000,
read here as 200 categories in use; a variant with all categories in use, by Zipf's law, stands
beside each. The oracle counts with the hidden states known."""
N_SAMPLES = 50_000
SEEDS = 1


def run(settings: Settings) -> dict[str, Any]:
    rows = measure_all(works(settings.quick), settings, SEEDS)
    return make_record("synthetic", TITLE, ABOUT, settings, rows)


def works(quick: bool) -> list[Work]:
    if quick:
        return [
            _row(9, 10, Paper(), 1.0, n_samples=4_000),
            _row(9, 300, Paper(), None, n_samples=4_000, n_used=60),
        ]
    return [
        _row(9, 10, Paper(3.8, 0, 0.0104), 1.0),
        _row(9, 100, Paper(4.4, 0, 0.0967), 1.5),
        _row(9, 1_000, Paper(5.1, 0, 0.1014), 2.0, n_used=200),
        _row(9, 1_000, Paper(5.1, 0, 0.1014), 2.0, marginal="zipf"),
        _row(9, 10_000, Paper(29.9, 0, 0.0917), 3.0, 1.3, n_used=200),
        _row(9, 10_000, Paper(29.9, 0, 0.0917), 3.0, 1.3, marginal="zipf"),
        _row(9, 100_000, Paper(56.5, 0, 0.0812), 6.0, 1.5, n_used=200),
        _row(9, 100_000, Paper(56.5, 0, 0.0812), 6.0, 1.5, marginal="zipf"),
        _row(81, 100, Paper(323.7, 0.06, 0.1814), 5.0),
        _row(729, 100, Paper(4220.1, 0.16, 0.1913), 40.0),
    ]


def _row(
    p: int,
    d: int,
    paper: Paper,
    seconds: float | None,
    ratio: float = 1.15,
    n_samples: int = N_SAMPLES,
    marginal: str = "random",
    n_used: int | None = None,
) -> Work:
    label = f"p = {p}, d = {d:,}"
    if n_samples != N_SAMPLES:
        label += f", N = {n_samples:,}"
    if n_used is not None:
        label += f", {n_used} in use"
    elif marginal == "zipf":
        label += ", Zipf"
    target = Target(seconds, 0.0, ratio)
    return Work(label, Balanced(p, d, n_samples, 3, marginal, n_used), 3, paper, target)
