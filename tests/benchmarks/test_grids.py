"""Rows as text, for the terminal and for the page."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rich.console import Console

from benchmarks.fits import COLUMNS, body_of_fits, reached
from benchmarks.grids import (
    Grid,
    largest,
    make_grid,
    markdown,
    mean,
    mean_and_error,
    plus_minus,
    show,
    stage_grid,
    values,
)
from benchmarks.machine import Peaks
from benchmarks.sources import Target

PEAKS = Peaks(n_jobs=1, multiply_adds=100.0, bytes=50.0, increments=10.0, bit_words=20.0)


def row(**changes: Any) -> dict[str, Any]:
    whole = {
        "label": "p = 9",
        "paper": {"seconds": 3.8, "structure_error": 0.0, "parameter_error": 0.0104},
        "target": {"seconds": 1.0, "rf": 0.0, "ratio": 1.15, "memory": None},
        "seconds": 0.42,
        "rf": 0.0,
        "rf_frequent": 0.0,
        "structure_error": 0.0,
        "parameter_error": 0.011,
        "oracle_error": 0.01,
        "ratio": 1.1,
        "peak_bytes": 3 * 2**20,
        "stages": {"distances": 0.4, "reading": 0.0},
        "bound": {"seconds": 0.1},
        "bound_ratio": 4.2,
        "speed_up_on_paper": 9.05,
        "peaks": PEAKS._asdict(),
        "reached": {"seconds": True, "rf": True},
        "failure": None,
        "part": "",
        "x": None,
        "runs": [],
    }
    return whole | changes


def test_columns_without_a_word_are_left_out() -> None:
    made = make_grid([row(parameter_error=None, structure_error=None)], COLUMNS)
    assert "parameter error (x oracle)" not in made.headings
    assert "RF, frequent" not in made.headings
    assert dict(zip(made.headings, made.cells[0], strict=True)) == {
        "work": "p = 9",
        "paper: errors": "0 / 0.0104",
        "paper, s (64 cores)": "3.8",
        "RF": "0.0000",
        "s": "0.42",
        "faster than paper": "9.1 x",
        "to reach, s": "1",
        "reached": "yes",
        "bound, s": "0.1",
        "x bound": "4.2 x",
        "peak memory": "3 MiB",
    }


def test_what_was_not_reached_is_named() -> None:
    made = make_grid([row(reached={"seconds": False, "rf": True, "ratio": False})], COLUMNS)
    assert "no: time, parameters" in made.cells[0]
    assert "failed" in make_grid([row(failure="MemoryError")], COLUMNS).cells[0]


def test_reached_judges_what_is_known() -> None:
    assert reached(Target(1.0, 0.0, 1.15), {"seconds": 0.9, "rf": 0.1}) == {
        "seconds": True,
        "rf": False,
    }
    assert reached(Target(memory=10.0), {"peak_bytes": 11}) == {"memory": False}


def test_stages_that_never_count_are_left_out() -> None:
    assert stage_grid([row()]).headings == ["seconds of stages", "distances"]


def test_peaks_in_words() -> None:
    assert "1 thread(s)" in body_of_fits({"rows": [row()]})[2]
    assert body_of_fits({"rows": [row(peaks=None)]})[2] == ""


def test_markdown_escapes_bars() -> None:
    made = make_grid([row(label="a | b")], COLUMNS[:1])
    assert markdown(made).splitlines() == ["| work |", "| --- |", "| a \\| b |"]


def test_values_over_runs() -> None:
    runs = [{"ratio": {"em": 1.0}}, {"ratio": {"em": 2.0}}, {"ratio": {}}, {"ratio": None}]
    some = {"runs": runs}
    assert values(some, "ratio.em").tolist() == [1.0, 2.0]
    assert mean("ratio.em", 1)(some) == "1.5"
    assert largest("ratio.em", 0)(some) == "2"
    assert mean("other")(some) is None


def test_mean_and_error_by_hand() -> None:
    assert mean_and_error([1.0, 3.0]) == (2.0, pytest.approx(1.0))
    assert np.isnan(mean_and_error([5.0])[1])
    assert plus_minus([1.0, 3.0], 1) == "2.0 ± 1.0"
    assert plus_minus([5.0], 1) == "5.0"
    assert plus_minus([]) is None


def test_a_label_is_written_once_for_rows_that_follow_each_other() -> None:
    made = make_grid([row(), row(), row(label="p = 81")], COLUMNS[:1])
    assert made.cells == [["p = 9"], [""], ["p = 81"]]


def test_grids_on_the_terminal() -> None:
    console = Console(width=80, record=True, quiet=False, file=None)
    with console.capture() as captured:
        show(Grid(["name", "n"], [["a", "1"], ["[b]", "-"]], "Title"), console)
        show("a sentence with [brackets]", console)
    text = captured.get()
    assert "Title" in text
    assert "[b]" in text
    assert "a sentence with [brackets]" in text
