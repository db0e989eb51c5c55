"""The benchmarks: every command at tiny sizes, and the pure parts by hand."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from benchmarks import contest, fits
from benchmarks.__main__ import main
from benchmarks.bounds import Shape, lower_bound, operations
from benchmarks.exponents import Exponent, fit_exponent, is_worse, worse_than_stored
from benchmarks.fits import COLUMNS, body_of_fits, reached
from benchmarks.grids import make_grid, markdown, stage_grid
from benchmarks.machine import Peaks, measure_peaks
from benchmarks.recording import check, file_of, read, run_table, write_page
from benchmarks.registry import MODULE_OF, find_table
from benchmarks.settings import Choice, Settings, data_file, data_folder, with_choices
from benchmarks.sources import Target
from benchmarks.tables import growth, threads
from benchmarks.tables import rivals as rivals_table
from latenttree.errors import DataError

PEAKS = Peaks(n_jobs=1, multiply_adds=100.0, bytes=50.0, increments=10.0, bit_words=20.0)

# ---- the bound, by hand --------------------------------------------------------------------------


def test_operations_by_hand() -> None:
    # p = 4 variables with k - 1 = 2 features: w = 8, 8 * 9 / 2 = 36 products a sample; 6 pairs of
    # variables; 130 samples are three words of 64 bits
    shape = Shape(n_samples=130, n_vars=4, rank=2, n_bytes=0.0)
    assert operations(shape) == {"products": 130 * 36, "increments": 130 * 6}
    binary = Shape(130, 4, 1, 0.0, present_pairs=77.0, is_binary=True)
    assert operations(binary) == {"products": 130 * 10, "increments": 77.0, "bits": 6 * 3}


def test_the_bound_is_the_cheapest_way_or_the_reading() -> None:
    # products 1,300 / 100 = 13 s, increments 77 / 10 = 7.7 s, bits 18 / 20 = 0.9 s; reading 0.2 s
    found = lower_bound(Shape(130, 4, 1, 10.0, 77.0, True), PEAKS)
    assert (found.way, found.operations, found.seconds) == ("bits", 18, 0.9)
    # 500 bytes at 50 a second take longer than all of it
    assert lower_bound(Shape(130, 4, 1, 500.0, 77.0, True), PEAKS).seconds == 10.0
    assert lower_bound(Shape(130, 4, 1, 10.0), PEAKS).way == "products"


def test_peaks_of_this_machine() -> None:
    found = measure_peaks(1, scale=0.01)
    # any machine of this century does more than a million of anything in a second
    assert min(found[1:]) > 1e6


# ---- exponents -----------------------------------------------------------------------------------


def test_a_power_law_gives_its_exponent() -> None:
    sizes = [10, 20, 40, 80]
    found = fit_exponent(sizes, [3e-3 * n**1.7 for n in sizes])
    assert found.slope == pytest.approx(1.7, abs=1e-12)
    assert found.factor == pytest.approx(3e-3, rel=1e-9)
    assert found.error < 1e-12


def test_the_error_of_an_exponent_agrees_with_its_spread() -> None:
    """Noise of 5% on five sizes, 2,000 times: the slopes spread as their error says.

    The mean of the squared errors is unbiased for the variance; both have some 3% noise.
    """
    rng = np.random.default_rng(0)
    sizes = np.array([1, 2, 4, 8, 16.0])
    found = [
        fit_exponent(sizes.tolist(), (sizes**2 * np.exp(rng.normal(0, 0.05, 5))).tolist())
        for _ in range(2_000)
    ]
    spread = np.std([f.slope for f in found])
    stated = math.sqrt(np.mean([f.error**2 for f in found]))
    assert np.mean([f.slope for f in found]) == pytest.approx(2.0, abs=5 * 0.02 / math.sqrt(2_000))
    assert stated == pytest.approx(spread, rel=0.15)


def test_one_size_has_no_exponent() -> None:
    with pytest.raises(ValueError, match="needs two"):
        fit_exponent([5, 5], [1.0, 2.0])


@pytest.mark.parametrize(
    ("new", "stored", "worse"),
    [
        ((1.30, 0.02), (1.00, 0.02), True),  # 0.3 beyond 2 sqrt(2) 0.03
        ((1.08, 0.01), (1.00, 0.01), False),  # below 2 sqrt(2) 0.03 = 0.085
        ((1.30, 0.20), (1.00, 0.02), False),  # within its own error
        ((0.70, 0.01), (1.00, 0.01), False),  # better
    ],
)
def test_worse_is_more_than_both_errors(
    new: tuple[float, float], stored: tuple[float, float], worse: bool
) -> None:
    assert is_worse(Exponent(*new, 1.0), Exponent(*stored, 1.0)) is worse


def test_a_slower_machine_is_not_worse_but_growth_is() -> None:
    sizes = [10, 20, 40, 80]
    stored = {"p": fit_exponent(sizes, [n**2 for n in sizes])._asdict()}
    slower = {"p": fit_exponent(sizes, [50 * n**2 for n in sizes])._asdict()}
    cubic = {"p": fit_exponent(sizes, [1e-3 * n**3 for n in sizes])._asdict()}
    assert worse_than_stored(slower, stored) == []
    assert worse_than_stored(cubic, stored)[0].startswith("p: time grows with exponent 3.00")
    assert worse_than_stored(cubic, {}) == []


def test_stored_exponents_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "STORED", tmp_path / "stored.json")
    assert growth.load_stored(True) == {}
    found = {"N": {"slope": 1.0, "error": 0.1}, "N: distances": {"slope": 9.0, "error": 0.1}}
    growth.store(found, quick=True)
    assert growth.load_stored(True) == {"N": {"slope": 1.0, "error": 0.1}}
    assert growth.load_stored(False) == {}


# ---- rows as text --------------------------------------------------------------------------------


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


# ---- where the data are --------------------------------------------------------------------------


def test_data_folder_by_option_then_by_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATENTTREE_DATA", str(tmp_path))
    assert data_folder(Settings()) == tmp_path
    other = tmp_path / "other"
    other.mkdir()
    assert data_folder(Settings(data=other)) == other
    assert data_file(Settings(data=other), "nips/none.txt") is None
    with pytest.raises(DataError, match="is no folder"):
        data_folder(Settings(data=tmp_path / "nowhere"))


# ---- every command -------------------------------------------------------------------------------


def here(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new interpreters: starting them is what takes time, and one slow test does."""
    few = ("latenttree", "CLRG", "CorEx topic", "Chow-Liu", "independent")
    monkeypatch.setattr(rivals_table, "ORDER", few)
    monkeypatch.setattr(contest, "within_limits", lambda work, *a, **_: work(*a))
    for module in (fits, threads, growth, contest):
        monkeypatch.setattr(module, "in_fresh_process", here)
        if hasattr(module, "warm_up"):
            monkeypatch.setattr(module, "warm_up", lambda: None)


@pytest.fixture(scope="module")
def corpora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three tiny corpora in the forms of the real ones: 12 words in three topics."""
    folder = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    topics = rng.random((600, 3)) < 0.4
    words = rng.random((600, 12)) < np.repeat(np.where(topics, 0.8, 0.05), 4, axis=1)
    documents, columns = np.nonzero(words)
    names = ["training", "algorithm", *(f"w{i}" for i in range(10))]
    (folder / "nips").mkdir()
    lines = ["600", "12", str(len(columns))]
    lines += [f"{d + 1} {w + 1} 1" for d, w in zip(documents, columns, strict=True)]
    with gzip.open(folder / "nips" / "docword.nips.txt.gz", "wt") as file:
        file.write("\n".join(lines) + "\n")
    (folder / "nips" / "vocab.nips.txt").write_text("\n".join(names) + "\n")
    (folder / "nytimes").mkdir()
    counts = sparse.csr_matrix(words.astype(np.int16))
    sparse.save_npz(folder / "nytimes" / "counts.npz", counts)
    names = ["game", "stock", *names[2:]]
    (folder / "nytimes" / "vocab.txt").write_text("\n".join(names) + "\n")
    (folder / "news20").mkdir()
    names = np.array(["space", "windows", *names[2:]], dtype=object)
    content = {"documents": sparse.csc_matrix(words.T.astype(float)), "wordlist": names}
    savemat(folder / "news20" / "20news_w100.mat", content)
    return folder


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize("name", MODULE_OF)
def test_every_table_runs_and_leaves_json_and_a_figure(
    name: str, tmp_path: Path, corpora: Path
) -> None:
    arguments = [name, "--quick", "--out", str(tmp_path), "--data", str(corpora)]
    assert main([*arguments, "--threads", "1", "--seeds", "1"]) == 0
    record = read(file_of(name, tmp_path, quick=True))
    assert record["rows"]
    assert all(found["seconds"] > 0 for found in record["rows"] if not found.get("failure"))
    assert record["options"]["threads"] == 1
    assert file_of(name, tmp_path, True, ".png").stat().st_size > 5_000
    page = tmp_path / "docs" / "page.md"
    write_page(tmp_path, page, quick=True)
    assert record["title"] in page.read_text()
    assert record["title"] in file_of(name, tmp_path, True, ".md").read_text()
    assert (page.parent / "images" / "benchmarks" / f"{name.replace('-', '_')}.png").is_file()


@pytest.mark.usefixtures("in_this_process")
def test_a_row_of_whole_fits_has_all_that_the_table_shows(tmp_path: Path) -> None:
    settings = Settings(quick=True, out=tmp_path, threads=1, rows=("d = 10",))
    record = run_table(find_table("synthetic"), settings)
    (found,) = record["rows"]
    assert found["rf"] == 0.0  # p = 9, d = 10, N = 4,000: edges of 0.5 are 20 standard errors
    assert found["failure"] is None
    assert found["seconds"] >= found["bound"]["seconds"] > 0
    assert found["ratio"] == pytest.approx(found["parameter_error"] / found["oracle_error"])
    assert {"distances", "parameters", "refinement"} <= found["stages"].keys()
    assert found["runs"][0]["seed"] == 0


@pytest.mark.usefixtures("in_this_process")
def test_a_row_that_fails_says_why_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> None:
        raise DataError("too little data")

    monkeypatch.setattr(fits, "fit_drawn", refuse)
    record = run_table(find_table("synthetic"), Settings(quick=True, out=tmp_path, threads=1))
    assert [found["failure"] for found in record["rows"]] == ["DataError: too little data"] * 2
    assert "too little data" in write_page(tmp_path, tmp_path / "page.md", True).read_text()


@pytest.mark.usefixtures("in_this_process")
def test_growth_fails_where_an_exponent_got_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stored = tmp_path / "stored.json"
    monkeypatch.setattr(growth, "STORED", stored)

    def fit_size(sweep: growth.Sweep, size: int, repeats: int) -> dict[str, Any]:
        return {"label": "x", "sweep": sweep.name, "size": size, "seconds": size**power,
                "stages": {"distances": float(size)}}  # fmt: skip

    monkeypatch.setattr(growth, "fit_size", fit_size)
    arguments = ["growth", "--quick", "--out", str(tmp_path), "--set", "check=yes"]
    power = 1.0
    assert main([*arguments, "--set", "store=yes"]) == 0
    assert json.loads(stored.read_text())["quick"]["N"]["slope"] == 1.0
    assert main(arguments) == 0
    power = 1.5
    assert main(arguments) == 1
    assert "N: time grows with exponent 1.50" in capsys.readouterr().out


def test_what_is_unknown_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, text in (
        (["nothing"], "no table is called 'nothing'"),
        (["growth", "--set", "power=2"], "is called 'power'"),
        (["growth", "--set", "check"], "--set check has no value"),
        (["growth", "--set", "check=perhaps"], "'perhaps' is neither yes nor no"),
        (["report", "--out", str(tmp_path)], "has no results of full size"),
    ):
        assert main(arguments) == 2
        assert text in capsys.readouterr().out


def test_the_list_has_every_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in MODULE_OF)
    assert main(["growth", "--about"]) == 0
    assert "--set check=False" in capsys.readouterr().out


def test_choices_are_read_as_their_defaults_are() -> None:
    known = {"a": Choice(3, ""), "b": Choice((0.5, 1.0), ""), "c": Choice(True, "", quick=False)}
    found = with_choices(Settings(quick=True), "x", known, {"b": "1,2,3"})
    assert found.choices == {"a": 3, "b": (1.0, 2.0, 3.0), "c": False}
    with pytest.raises(DataError, match="--set a=x cannot be used"):
        with_choices(Settings(), "x", known, {"a": "x"})


def test_a_record_of_another_form_is_refused() -> None:
    with pytest.raises(DataError, match=r"has no \['schema'"):
        check({"rows": []})
    whole = dict.fromkeys(("benchmark", "title", "about", "environment", "options"), "x")
    with pytest.raises(DataError, match="has schema 99"):
        check(whole | {"schema": 99, "rows": []})
    with pytest.raises(DataError, match=r"has no \['seconds'\]"):
        check(whole | {"schema": 2, "rows": [{"label": "x"}]})


def test_absent_data_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["nips", "--quick", "--out", str(out), "--data", str(tmp_path)]) == 0
    assert "skipped: no nips/docword.nips.txt.gz" in capsys.readouterr().out
    assert not out.exists()


def test_thread_counts_double_up_to_all() -> None:
    assert threads.thread_counts(1) == [1]
    assert threads.thread_counts(2) == [1, 2]
    assert threads.thread_counts(6) == [1, 2, 4, 6]


@pytest.mark.slow
def test_rows_have_processes_of_their_own(tmp_path: Path) -> None:
    settings = Settings(quick=True, out=tmp_path, threads=1, rows=("d = 10",))
    (found,) = run_table(find_table("synthetic"), settings)["rows"]
    assert 50 * 2**20 < found["peak_bytes"] < 2**31  # interpreter and libraries, and no more
