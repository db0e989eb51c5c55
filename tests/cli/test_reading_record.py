"""New data are read as the data of training were, where no option says otherwise."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.cli.commands import NAMES, accepted, bits, refused, run, words, write_csv

import latenttree as lt
from latenttree.cli.reading_record import remembered
from latenttree.data.files import standard_input

QUICK = ["--states", "2", "--no-search", "--support", "model", "--threads", "1"]


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """Labelled bits beside an identifier and weights."""
    found = pd.DataFrame(words(bits(600)), columns=NAMES)
    return found.assign(id=np.arange(600), times=1 + np.arange(600) % 2)


@pytest.fixture(scope="module")
def model(frame: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record")
    frame.to_csv(folder / "t.csv", sep=";", index=False)
    options = ["--delimiter", ";", "--ignore", "id", "--weights", "times", *QUICK]
    accepted("fit", folder / "t.csv", "-o", folder / "m.ltree", *options)
    return folder / "m.ltree"


def test_what_is_remembered(model: Path) -> None:
    known = remembered(lt.load(model).diagnostics_.messages)
    assert known == {"--delimiter": [";"], "--weights": ["times"], "--ignore": ["id"]}
    assert remembered(["no record", "read with care"]) == {}


def test_score_reads_as_fit_did(model: Path, frame: pd.DataFrame, tmp_path: Path) -> None:
    same = model.parent / "t.csv"
    output = accepted("score", model, same)
    assert output.startswith("note: read as in training: --delimiter ';' --weights times --ignore")
    assert "samples               600 (weight 900)" in output
    expected = lt.load(model).score(frame[NAMES], sample_weight=frame["times"])
    assert f"mean log-likelihood   {expected:.6g}" in output
    explicit = accepted(
        "score", model, same, *["--delimiter", ";", "--weights", "times", "--ignore", "id"]
    )
    assert explicit == output.split("\n", 1)[1]


def test_columns_of_training_may_stay_away(
    model: Path, frame: pd.DataFrame, tmp_path: Path
) -> None:
    frame[NAMES].to_csv(tmp_path / "plain.tsv", sep="\t", index=False)
    output = accepted("score", model, tmp_path / "plain.tsv")
    assert output.startswith("samples               600\n")
    frame[NAMES].to_csv(tmp_path / "comma.csv", index=False)
    assert "pass --delimiter" in refused("score", model, tmp_path / "comma.csv")
    accepted("score", model, tmp_path / "comma.csv", "--delimiter", ",")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".xlsx", ".feather"])
def test_every_command_takes_every_table(
    model: Path, frame: pd.DataFrame, tmp_path: Path, suffix: str
) -> None:
    path, gaps = tmp_path / f"new{suffix}", frame[:30].copy()
    gaps.loc[:9, "a0"] = None
    write = {
        ".csv": lambda: gaps.to_csv(path, sep=";", index=False),
        ".tsv": lambda: gaps.to_csv(path, sep="\t", index=False),
        ".parquet": lambda: gaps.to_parquet(path),
        ".xlsx": lambda: gaps.to_excel(path, index=False),
        ".feather": lambda: gaps.to_feather(path),
    }
    write[suffix]()
    fitted = lt.load(model)
    for out in ("t.tsv", "t.xlsx", "t.parquet"):
        accepted("transform", model, path, "-o", tmp_path / out)
    found = pd.read_excel(tmp_path / "t.xlsx")
    # nine digits are written to texts
    np.testing.assert_allclose(found, fitted.transform(gaps[NAMES]), rtol=1e-8)
    pd.testing.assert_frame_equal(found, pd.read_parquet(tmp_path / "t.parquet"))
    pd.testing.assert_frame_equal(found, pd.read_table(tmp_path / "t.tsv"), rtol=1e-8)
    accepted("impute", model, path, "-o", tmp_path / "filled.parquet")
    filled = pd.read_parquet(tmp_path / "filled.parquet")
    assert filled["b0"].tolist() == gaps["b0"].tolist()
    assert not filled["a0"].isna().any()
    options = ["a0", "b1", "h0", "--table", path, "-o", tmp_path / "answers.csv"]
    assert "30 samples x 6 answers" in accepted("query", model, *options)
    answers = pd.read_csv(tmp_path / "answers.csv")
    known = fitted.predict_proba(gaps[NAMES], ["a0", "b1", "h0"])
    assert list(answers.columns[:3]) == ["a0=no", "a0=yes", "b1=3"]
    # the asked columns are no evidence for each other
    np.testing.assert_allclose(answers, np.hstack(list(known.values())), rtol=1e-8)


def test_standard_input(
    model: Path, frame: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = frame[:20].to_csv(sep=";", index=False).encode()
    (tmp_path / "same.csv").write_bytes(content)
    expected = accepted("score", model, tmp_path / "same.csv")
    standard_input._standard_input.cache_clear()
    monkeypatch.setattr(standard_input.sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
    from latenttree.cli.commands import Score
    from latenttree.cli.options import NewEvents, NewTable
    from latenttree.cli.score import run as score

    lines: list[str] = []
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    score(Score(model, Path("-"), NewTable(), NewEvents()))
    lines = sys.stdout.getvalue().splitlines()
    standard_input._standard_input.cache_clear()
    assert lines[1:] == expected.splitlines()[1:]


def test_arrays_have_the_names_of_training(tmp_path: Path) -> None:
    np.save(tmp_path / "X.npy", bits(400))
    (tmp_path / "names.txt").write_text("\n".join(NAMES))
    model = tmp_path / "m.ltree"
    accepted("fit", tmp_path / "X.npy", "-o", model, "--vocab", tmp_path / "names.txt", *QUICK)
    named = accepted("score", model, tmp_path / "X.npy", "--vocab", tmp_path / "names.txt")
    assert accepted("score", model, tmp_path / "X.npy") == named


def test_numbers_in_a_table_of_answers(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (500, 1))
    X = pd.DataFrame(hidden * 2.0 + rng.normal(size=(500, 4)), columns=list("abcd"))
    X.to_csv(tmp_path / "X.csv", index=False)
    for i, options in enumerate((["--states", "2"], ["--hidden", "gaussian"])):
        model, out = tmp_path / f"m{i}.ltree", tmp_path / f"a{i}.csv"
        accepted("fit", tmp_path / "X.csv", "-o", model, *options, "--support", "model")
        accepted("query", model, "a", "--table", tmp_path / "X.csv", "-o", out)
        fitted, found = lt.load(model), pd.read_csv(out)["a"]
        for record, value in zip(X[list("bcd")][:5].to_dict("records"), found, strict=False):
            # nine digits are written
            assert value == pytest.approx(fitted.impute(record)["a"], rel=1e-8)


def test_wrong_questions_about_tables(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    out = ["-o", tmp_path / "x.csv"]
    assert "--table needs a file" in refused("query", fitted, "a0", "--table", gaps)
    assert "--out is for the answers of a table" in refused("query", fitted, "a0", *out)
    line = refused("query", fitted, "a0", "--table", gaps, *out, "--given", "b0=3")
    assert "--given does not go with --table" in line


def test_rare_codes_that_training_dropped_are_no_surprise(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = np.repeat(rng.integers(0, 2, (500, 2)), 3, axis=1) ^ (rng.random((500, 6)) < 0.1)
    rows = [(f"p{i}", f"c{j}") for i, j in np.argwhere(codes)]
    rows += [(f"p{i}", f"rare{i % 200}") for i in range(500)]
    path = write_csv(tmp_path / "events.csv", ["person", "code"], rows)
    model = tmp_path / "m.ltree"
    options = ["--events", "--support", "model", "--no-search"]
    accepted("fit", path, "-o", model, *options, "--min-count", "10")
    assert "codes that the model does not know left out" in accepted("score", model, path)
    assert run("score", model, path, "--unknown", "stop").exit_code == 1
