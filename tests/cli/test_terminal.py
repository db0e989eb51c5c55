"""The command line where standard output is no UTF-8: nothing stops half way."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import latenttree as lt
from latenttree.cli.terminal import typed

SOURCES = {"PYTHONPATH": str(Path(lt.__file__).parents[1])}
ASCII = {"PYTHONIOENCODING": "ascii"}
POSIX = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
NAMES = ["größe", "氏名", "c", "d", "e", "f"]
GROESSE = r"gr\xf6\xdfe"


def run(folder: Path, setting: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command in a fresh process; its output must be ASCII to be read here."""
    command = [sys.executable, "-m", "latenttree.cli", *arguments]
    return subprocess.run(
        [part.encode() for part in command],
        cwd=folder, env=os.environ | SOURCES | setting,
        capture_output=True, encoding="ascii", timeout=300,
    )  # fmt: skip


def done(folder: Path, setting: dict[str, str], *arguments: str) -> str:
    found = run(folder, setting, *arguments)
    assert found.returncode == 0, found.stderr
    assert "Error" not in found.stderr
    return found.stdout


def write(path: Path, rows: list[list[object]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([NAMES, *rows])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table of two groups of three, the same with gaps, and a model, fitted in ASCII."""
    path = tmp_path_factory.mktemp("terminal")
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (400, 2))
    hidden[:, 1] = np.where(rng.random(400) < 0.7, hidden[:, 0], hidden[:, 1])
    bits = hidden[:, [0, 0, 0, 1, 1, 1]] ^ (rng.random((400, 6)) < 0.1)
    rows: list[list[object]] = [[("nein", "jä")[r[0]], *r[1:]] for r in bits.tolist()]
    write(path / "table.csv", rows)
    write(path / "gaps.csv", [["", *row[1:]] for row in rows[:20]])
    shown = done(path, ASCII, "fit", "table.csv", "-o", "m.ltree")
    assert GROESSE in shown
    return path


@pytest.mark.slow
@pytest.mark.parametrize("setting", [ASCII, POSIX], ids=["encoding", "locale"])
def test_show_in_full(folder: Path, setting: dict[str, str]) -> None:
    shown = done(folder, setting, "show", "m.ltree", "--draw", "--lengths")
    lines = shown.splitlines()
    last = [line for line in lines if line.lstrip(" |`").startswith("-- ")]
    assert len(last) == 7  # all nodes but the root
    assert any(line.startswith(f"|-- {GROESSE} ") for line in lines)
    node = done(folder, setting, "show", "m.ltree", "--node", "größe")
    assert rf"P({GROESSE} | h0)" in node
    assert r"j\xe4" in node


@pytest.mark.slow
def test_box_characters_where_they_can_be_shown(folder: Path) -> None:
    command = [sys.executable, "-m", "latenttree.cli", "show", "m.ltree", "--draw"]
    environment = os.environ | SOURCES | {"PYTHONIOENCODING": "utf-8"}
    found = subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=300)
    assert "├── größe" in found.stdout.decode()


@pytest.mark.slow
@pytest.mark.parametrize("setting", [ASCII, POSIX], ids=["encoding", "locale"])
def test_questions(folder: Path, setting: dict[str, str]) -> None:
    answer = done(folder, setting, "query", "m.ltree", "größe", "--given", "氏名=1")
    assert GROESSE in answer
    assert r"j\xe4" in answer


@pytest.mark.slow
def test_tables_are_written_in_utf8(folder: Path) -> None:
    done(folder, POSIX, "score", "m.ltree", "table.csv", "-o", "score.csv")
    done(folder, POSIX, "transform", "m.ltree", "table.csv", "-o", "hidden.csv")
    done(folder, POSIX, "impute", "m.ltree", "gaps.csv", "-o", "full.csv")
    done(folder, POSIX, "sample", "m.ltree", "-n", "5", "-o", "new.csv")
    for name in ("full.csv", "new.csv"):
        text = (folder / name).read_text(encoding="utf-8")
        assert "größe,氏名" in text
    assert "jä" in (folder / "full.csv").read_text(encoding="utf-8")


def test_help(folder: Path) -> None:
    for command in ("demo", "fit"):
        assert "Options" in done(folder, POSIX, command, "--help")


@pytest.mark.slow
@pytest.mark.parametrize("setting", [ASCII, POSIX], ids=["encoding", "locale"])
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("show", "m.ltree", "--node", "gröse"), rf"(did you mean '{GROESSE}'?)"),
        (("query", "m.ltree", "c", "--given", "größe=7"), rf"--given {GROESSE}=7: "),
        (("fit", "table.csv", "--ignore", "nö", "-o", "x.ltree"), r"--ignore 'n\xf6': "),
    ],
)  # fmt: skip
def test_errors_name_the_variables(
    folder: Path, setting: dict[str, str], arguments: tuple[str, ...], message: str
) -> None:
    found = run(folder, setting, *arguments)
    assert found.returncode == 2
    assert found.stderr.startswith("error: ")
    assert message in found.stderr


@pytest.mark.slow
def test_a_file_of_any_name_is_read(folder: Path) -> None:
    (folder / "tür.csv").write_bytes((folder / "table.csv").read_bytes())
    assert "samples" in done(folder, POSIX, "score", "m.ltree", "tür.csv")


def test_what_was_typed() -> None:
    assert typed(["gr\udcc3\udcb6n", "plain", "\udcff"]) == [
        "grün".replace("ü", "ö"),
        "plain",
        "\udcff",
    ]
    assert typed(None) is None
