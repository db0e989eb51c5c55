"""Every table at a tiny size, the runner, records and the page."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.io import savemat

from benchmarks import contest, fits, runs
from benchmarks.__main__ import main
from benchmarks.browser import missing
from benchmarks.recording import check, file_of, plain, read, run_table, write_page
from benchmarks.registry import MODULE_OF, find_table
from benchmarks.settings import Choice, Settings, data_file, data_files, data_folder, with_choices
from benchmarks.tables import growth, memory, threads
from benchmarks.tables import rivals as rivals_table
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree

ROOT = Path(__file__).parents[2]

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


# ---- every table ---------------------------------------------------------------------------------


def here(work: Callable[..., Any], *arguments: Any) -> Any:
    return work(*arguments)


@pytest.fixture
def in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """No new interpreters: starting them is what takes time, and one slow test does."""
    few = ("latenttree", "CLRG", "CorEx topic", "Chow-Liu", "independent")
    monkeypatch.setattr(rivals_table, "ORDER", few)
    monkeypatch.setattr(contest, "within_limits", lambda work, *a, **_: work(*a))
    monkeypatch.setattr(runs, "_in_processes", runs._here)
    for module in (fits, threads, growth, contest, memory):
        monkeypatch.setattr(module, "in_fresh_process", here)
        if hasattr(module, "warm_up"):
            monkeypatch.setattr(module, "warm_up", lambda *_: None)


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
    write_groups(folder)
    write_bits(folder, words)
    return folder


def write_bits(folder: Path, words: Any) -> None:
    """The words of documents as a set for density estimation: packed bits of three parts, with a
    column that is constant in the training rows."""
    (folder / "debd").mkdir()
    bits = np.column_stack([words[:, :8], np.arange(600) > 590]).astype(np.uint8)
    parts = {"train": bits[:400], "valid": bits[400:450], "test": bits[450:]}
    packed = {name: np.packbits(rows, axis=1) for name, rows in parts.items()}
    np.savez(folder / "debd" / "nltcs.npz", n_vars=9, **packed)


def write_groups(folder: Path) -> None:
    """Stocks, answers, an alignment and diagnoses, in the forms of the real ones."""
    for name in ("stocks", "bfi25", "phylo", "diabetes130", "phecode"):
        (folder / name).mkdir()
    rng = np.random.default_rng(1)
    common = np.repeat(rng.normal(size=(150, 3)), 3, axis=1)
    moves = 0.01 * (common + rng.normal(size=(150, 9)))
    names, groups = [f"s{i}" for i in range(9)], np.repeat(["a", "b", "c"], 3).tolist()
    prices = pd.DataFrame(100 * np.exp(moves.cumsum(axis=0)), columns=names)
    prices.to_csv(folder / "stocks" / "close_prices.csv.gz", index=False)
    sectors = pd.DataFrame({"ticker": names, "sector": groups})
    sectors.to_csv(folder / "stocks" / "info.csv", index=False)
    answers = pd.DataFrame(np.clip(np.round(2 * common + 3.5), 1, 6), columns=names)
    answers = answers.mask(rng.random(answers.shape) < 0.3, 3.0)
    answers.to_csv(folder / "bfi25" / "bfi.csv.gz", index=False)
    keys = {g: [f"-{n}" for n, h in zip(names, groups, strict=True) if h == g] for g in "abc"}
    (folder / "bfi25" / "bfi_keys.json").write_text(json.dumps(keys))
    sites = make_latent_tree(8, 4, 4, edge_length=0.3, n_samples=400, random_state=0).X
    lines = [f">t{v}\n{''.join('ACGT'[x] for x in sites[:, v])}" for v in range(8)]
    (folder / "phylo" / "DS1.fasta").write_text("\n".join(lines) + "\n")
    write_diagnoses(folder, common > 0.5, rng)


def write_diagnoses(folder: Path, ill: Any, rng: np.random.Generator) -> None:
    """Nine codes of three categories, twice as many patients as rows; two codes are a family."""
    codes = ["8", "8.1", "20", "30", "31", "32", "40", "41", "42"]
    patients, columns = np.nonzero(np.tile(ill, (20, 1)) ^ (rng.random((3_000, 9)) < 0.1))
    events = {"patient_nbr": patients, "icd9": [codes[j] for j in columns]}
    pd.DataFrame(events).to_csv(folder / "diabetes130" / "patient_icd9.csv.xz", index=False)
    whole = [
        code.partition(".")[0].zfill(3) + code[len(code.partition(".")[0]) :] for code in codes
    ]
    known = pd.DataFrame({"vocabulary_id": "ICD9CM", "code": whole, "phecode": codes})
    known.to_csv(folder / "phecode" / "phecode_map.csv", index=False)
    groups = np.repeat(["infectious", "neoplasms", "endocrine"], 3)
    info = pd.DataFrame({"phecode": codes, "description": "some illness", "group": groups})
    info.to_csv(folder / "phecode" / "pheinfo.csv", index=False)


SMALL: dict[str, list[str]] = {
    "synthetic": [],
    "large-d": [],
    "nips": [],
    "nytimes": [],
    "news20": [],
    "patients": [],
    "threads": [],
    "words100k": [],
    "growth": [],
    "rivals": [],
    "heldout": [],
    "clrg-em": ["--row", "N = 1,000", "--set", "restarts=1"],
    "exact": ["--seeds", "12"],
    "exact-parameters": ["--seeds", "4"],
    "ablation": ["--row", "d = 100", "--set", "from_truth=yes"],
    "deep": ["--set", "correlations=0.8", "--set", "samples=1000"],
    "harder": ["--row", "caterpillar, p = 27, d = 2, k = 2, N = 500"],
    "replication": ["--row", "simulated, random"],
    "independent": ["--row", "binary, 500 x 20"],
    "families": ["--row", "ordinal, k = 2", "--row", "scalars", "--set", "n_samples=4000"],
    "missing": ["--row", "categorical", "--set", "n_vars=9"],
    "stocks": ["--row", "gaps"],
    "questionnaire": [],
    "dna": [],
    "health": ["--set", "moments_only=yes"],
    "groups": [],
    "inference": ["--row", "posteriors"],
    "states": ["--row", "dense, k = 2"],
    "pgmpy": [],
    "first-fit": [],
    "memory-limit": ["--row", "wide", "--row", "docword", "--set", "limits=200MiB,4GiB"],
    "coherence": [],
    "topics": ["--row", "latenttree", "--row", "NMF"],
    "density": [],
    "streaming": ["--row", "events", "--row", "memmap", "--set", "megabytes=2"],
    "page": [],
}
"""Options that make every table small enough for a test."""

QUICK = ("density", "exact", "synthetic")
"""Tables that run in seconds; the others are tested by `make test-slow`."""


def test_every_table_is_tested_and_every_file_is_in_the_registry() -> None:
    assert list(SMALL.keys() ^ MODULE_OF.keys()) == []
    files = {path.stem for path in (ROOT / "benchmarks" / "tables").glob("[a-z]*.py")}
    assert files == set(MODULE_OF.values())


@pytest.mark.usefixtures("in_this_process")
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in SMALL]
)
def test_every_table_runs_and_leaves_json_markdown_and_a_figure(
    name: str, tmp_path: Path, corpora: Path
) -> None:
    if name == "pgmpy":
        pytest.importorskip("pgmpy")
    if name == "page" and missing() is not None:
        pytest.skip(str(missing()))
    arguments = [name, "--quick", "--out", str(tmp_path), "--data", str(corpora)]
    assert main([*arguments, "--threads", "1", "--seeds", "1", *SMALL[name]]) == 0
    record = read(file_of(name, tmp_path, quick=True))
    assert record["rows"]
    times = [row["seconds"] for row in record["rows"] if row["seconds"] is not None]
    assert min(times, default=1.0) > 0
    assert record["options"]["threads"] == 1
    if find_table(name).draw is None:
        return
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


def test_stored_exponents_come_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "STORED", tmp_path / "stored.json")
    assert growth.load_stored(True) == {}
    found = {"N": {"slope": 1.0, "error": 0.1}, "N: distances": {"slope": 9.0, "error": 0.1}}
    growth.store(found, quick=True)
    assert growth.load_stored(True) == {"N": {"slope": 1.0, "error": 0.1}}
    assert growth.load_stored(False) == {}


# ---- independent runs ----------------------------------------------------------------------------


class Sum(NamedTuple):
    """A case whose runs are a sum."""

    label: str
    base: int


def add(case: Sum, seed: int) -> dict[str, Any]:
    return {"seconds": 1.0 + seed, "sum": case.base + seed, "stages": {"a": 2.0 * seed}}


def nothing() -> None:
    """No kernels to load."""


@pytest.mark.parametrize("in_processes", [False, True])
def test_runs_of_all_cases_and_seeds(tmp_path: Path, in_processes: bool) -> None:
    settings = Settings("sums", seeds=2, first_seed=3, out=tmp_path, rows=("x",), jobs=1)
    cases = [Sum("x", 10), Sum("y", 20), Sum("xx", 30)]
    rows = runs.run_cases(add, cases, settings, 9, in_processes=in_processes, warm=nothing)
    assert [row["label"] for row in rows] == ["x", "xx"]
    assert [[run["sum"] for run in row["runs"]] for row in rows] == [[13, 14], [33, 34]]
    assert rows[0]["seconds"] == 4.5
    assert rows[0]["stages"] == {"a": 7.0}


def test_interrupted_runs_go_on(tmp_path: Path) -> None:
    done: list[int] = []
    last = 2

    def interrupted(case: Sum, seed: int) -> dict[str, Any]:
        if seed == last:
            raise RuntimeError
        done.append(seed)
        return add(case, seed)

    settings = Settings("sums", seeds=4, out=tmp_path, choices={"n": 1})
    with pytest.raises(RuntimeError):
        runs.run_cases(interrupted, [Sum("x", 0)], settings, 1, warm=nothing)
    with file_of("sums", tmp_path, False, "_runs.jsonl").open("a") as file:
        file.write('{"label": "x", "sou')  # cut short
    last, again = 9, replace(settings, resume=True)
    (row,) = runs.run_cases(interrupted, [Sum("x", 0)], again, 1, warm=nothing)
    assert [run["sum"] for run in row["runs"]] == [0, 1, 2, 3]
    assert done == [0, 1, 2, 3]  # none twice
    other = replace(again, choices={"n": 2})
    runs.run_cases(interrupted, [Sum("x", 0)], other, 1, warm=nothing)
    assert done == [0, 1, 2, 3] * 2  # other options are other runs


def test_values_as_json_knows_them() -> None:
    found = plain({1: np.float32(0.5), "a": (np.arange(2), float("nan")), "p": Path("x")})
    assert found == {"1": 0.5, "a": [[0, 1], None], "p": "x"}


def test_files_that_belong_together(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_text("")
    settings = Settings(data=tmp_path)
    assert data_files(settings, "a", "b") == [tmp_path / "a", tmp_path / "b"]
    assert data_files(settings, "a", "c") == []
