"""Commands on tables of events."""

from __future__ import annotations

import lzma
import re
from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import (
    N,
    accepted,
    fit_file,
    groups_of,
    hidden_bits,
    read_csv,
    refused,
    run,
    write_csv,
)

import latenttree as lt
from latenttree.cli.options import map_source


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine groups of four codes: in a group of which a hidden bit is set the even codes are
    frequent (0.3 against 0.05), else the odd ones."""
    rng = np.random.default_rng(3)
    rows, groups = [], []
    for j, bit in enumerate(hidden_bits().T):
        for k in range(3):
            for c in range(4):
                code = f"{j}{k}.{c}"
                groups.append([code, "diagnosis", f"G{j}{k}"])
                present = rng.random(N) < np.where(bit == c % 2, 0.3, 0.05)
                rows += [[f"p{i}", code, f"{2019 + i % 2}-06-01"] for i in np.flatnonzero(present)]
    folder = tmp_path_factory.mktemp("events")
    write_csv(folder / "map.csv", ["code", "kind", "group"], groups)
    plain = write_csv(folder / "events.csv", ["patient_id", "code", "date"], rows)
    (folder / "events.csv.xz").write_bytes(lzma.compress(plain.read_bytes()))
    return folder / "events.csv.xz"


def event_map(events: Path) -> str:
    return f"{events.parent / 'map.csv'}:code:group"


@pytest.fixture(scope="module")
def grouped(events: Path) -> Path:
    return fit_file(events, "--events", "--groups", event_map(events))


def test_groups_of_codes(grouped: Path) -> None:
    assert groups_of(grouped) == {frozenset(f"G{j}{k}" for k in range(3)) for j in range(3)}
    output = accepted("show", grouped, "--node", "G00")
    assert "G00, observed, multihot" in output
    for text in ("none", "00.0", "00.3"):
        assert text in output


def test_query_codes(grouped: Path) -> None:
    before = accepted("query", grouped, "G01")
    assert "none" in before
    output = accepted("query", grouped, "G01", "--given", "G00=00.0+00.2")
    (line,) = [line for line in output.splitlines() if "01.0" in line]
    given, without = map(float, line.split()[-2:])
    assert given > without + 0.05 or given < without - 0.05
    assert "given this" in accepted("query", grouped, "G01", "--given", "G00=none")
    message = refused("query", grouped, "G01", "--given", "G00=17")
    assert "'G00' has the codes '00.0', '00.1'" in message
    assert "join those that are there by '+'" in message


def test_events_of_a_model(events: Path, grouped: Path, tmp_path: Path) -> None:
    out = tmp_path / "posterior.csv"
    output = accepted("transform", grouped, events, "--events", "-o", out, "--until", "2019")
    assert "events outside the time span left out" in output
    header, rows = read_csv(out)
    assert header[:3] == ["sample", "h0=0", "h0=1"]
    assert all(int(row[0][1:]) % 2 == 0 for row in rows)
    accepted("transform", grouped, events, "--events", "-o", tmp_path / "posterior.npz")
    assert "samples" in accepted("score", grouped, events, "--events")


def test_sample_codes(grouped: Path, tmp_path: Path) -> None:
    accepted("sample", grouped, "-n", "5", "-o", tmp_path / "drawn.csv")
    header, rows = read_csv(tmp_path / "drawn.csv")
    assert header[0] == "G00[00.0]"
    assert {cell for row in rows for cell in row} <= {"0", "1"}


def test_binary_codes_and_roll_up(events: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    options = ["--no-search", "--no-refine", "--threads", "1"]
    accepted("fit", events, "--events", "-o", out, "--roll-up", event_map(events), *options)
    model = lt.load(out)
    assert model.schema_.kind == "sparse_binary"
    assert set(model.tree_.observed_names) == {f"G{j}{k}" for j in range(3) for k in range(3)}
    output = accepted("score", out, events, "--events", "--roll-up", event_map(events))
    assert "samples               2,99" in output  # a few have no event at all
    assert f"read with --events --roll-up {event_map(events)}" in accepted("show", out)
    binary = ["--groups", event_map(events), "--binary", "--min-count", "20"]
    output = accepted("fit", events, "--events", "-o", out, *binary, *options)
    assert "of 36 variables" in output


def test_codes_that_the_model_does_not_know(events: Path, tmp_path: Path) -> None:
    """Parents and codes in one file: without the map, which has both, the codes are unknown.

    Even and odd codes make up for each other: groups are independent, and no node is hidden."""
    model, out = tmp_path / "model.ltree", tmp_path / "scores.csv"
    names = [f"G{j}{k}" for j in range(3) for k in range(3)]
    header, rows = read_csv(events.parent / "events.csv")
    some = [[patient, f"G{code[:2]}", date] for patient, code, date in rows[::2]]
    both = write_csv(tmp_path / "both.csv", header, some + rows[1::2])
    pairs = [[code, group] for code, _, group in read_csv(events.parent / "map.csv")[1]]
    parents = write_csv(tmp_path / "m.csv", ["c", "g"], pairs + [[name, name] for name in names])
    options = ["--no-search", "--no-refine", "--threads", "1"]
    accepted("fit", both, "--events", "-o", model, "--roll-up", parents, *options)
    forgetful = tmp_path / "forgetful.ltree"
    fitted = lt.load(model)
    fitted.diagnostics_.messages = []  # as of a fit in Python
    fitted.save(forgetful)
    for file in (both, events):  # of the second no code is known
        result = run("score", forgetful, file, "--events", "-o", out)
        assert result.exit_code == 1
        assert re.search(r"error: [\d,]+ of [\d,]+ occurrences \(\d+%\) have codes", result.stderr)
        assert "most often '" in result.stderr
        assert "give --roll-up and --groups with which the codes become" in result.stderr
        assert "--unknown drop" in result.stderr
        assert not out.exists()
    output = accepted("score", forgetful, both, "--events", "-o", out, "--unknown", "drop")
    assert "codes that the model does not know left out" in output
    accepted("score", forgetful, both, "--events", "-o", out, "--roll-up", parents)
    output = accepted("score", model, both)
    assert f"note: read as in training: --events --roll-up {parents}" in output
    parents.rename(tmp_path / "elsewhere.csv")
    assert f"fitted with --roll-up {parents}, and no such file is here" in refused(
        "score", model, both
    )
    accepted("score", model, both, "--roll-up", tmp_path / "elsewhere.csv")


def test_groups_are_those_of_training(events: Path, tmp_path: Path) -> None:
    """Codes outside the map, which fit left out, are then no surprise."""
    model = tmp_path / "model.ltree"
    pairs = [[code, group] for code, _, group in read_csv(events.parent / "map.csv")[1]]
    few = write_csv(tmp_path / "few.csv", ["c", "g"], [p for p in pairs if p[1] < "G2"])
    options = ["--no-search", "--no-refine", "--threads", "1"]
    accepted("fit", events, "--events", "-o", model, "--groups", few, *options)
    assert "outside the map --groups" in accepted("score", model, events)
    few.rename(tmp_path / "elsewhere.csv")
    assert run("score", model, events).exit_code == 1
    assert "outside the map --groups" in accepted(
        "score", model, events, "--groups", tmp_path / "elsewhere.csv"
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--code", "code"], "--code is for tables of events; pass --events too"),
        (["--roll-up", "map.csv"], "--roll-up is for tables of events"),
        (["--events", "--binary"], "--binary reads the codes of --groups FILE one by one"),
        (["--events", "--sample", "who"], "no column 'who' in the events (--sample)"),
        (["--events", "--since", "soon"], "--since soon, but column 'date' holds dates"),
        (["--events", "--groups", "none.csv"], "no file 'none.csv'"),
        (["--events", "--groups", "MAP"], "name them: --groups FILE:CODE:TARGET"),
        (["--events", "--roll-up", "MAP:code:what"], "no column 'what' in the map --roll-up"),
        (["--events", "--groups", "TWICE"], "--groups has code '00.1' in 2 groups ('G00', 'G01')"),
        (["--events", "--roll-up", "MAP:group:code"], "no code is left"),
        (["--events", "--family", "poisson"], "--family does not go with --events"),
        (["--events", "--hidden", "gaussian"], "--hidden gaussian does not go with --events"),
        (["--events", "--min-count", "9999"], "in fewer than 9999 samples"),
    ],
)
def test_wrong_events(events: Path, tmp_path: Path, options: list[str], message: str) -> None:
    twice = write_csv(tmp_path / "t.csv", ["c", "g"], [["00.1", "G00"], ["00.1", "G01"]])
    given = [option.replace("MAP", str(events.parent / "map.csv")) for option in options]
    given = [option.replace("TWICE", str(twice)) for option in given]
    assert message in refused("fit", events, "-o", tmp_path / "x.ltree", *given)


def test_events_for_other_models(events: Path, fitted: Path) -> None:
    message = refused("score", fitted, events, "--events")
    assert "--events is for models that were learned with --events" in message


def test_map_files(tmp_path: Path) -> None:
    odd = tmp_path / "a:b:c.csv"
    odd.write_text("code,group\n")
    assert map_source(str(odd)) == odd
    assert map_source("map.csv") == Path("map.csv")
    assert map_source("C:/map.csv:code:group") == (Path("C:/map.csv"), "code", "group")
