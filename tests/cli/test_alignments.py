"""Commands on alignments of sequences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import (
    N,
    accepted,
    groups_of,
    read_csv,
    refused,
)

import latenttree as lt


@pytest.fixture(scope="module")
def alignment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four taxa and 3,000 sites; each letter changes with probability 0.1 along each edge of

    a       c
     \\     /
      x - y
     /     \\
    b       d
    """
    rng = np.random.default_rng(0)

    def evolve(letters: np.ndarray) -> np.ndarray:
        return np.where(rng.random(N) < 0.1, rng.integers(0, 4, N), letters)

    x = rng.integers(0, 4, N)
    y = evolve(x)
    path = tmp_path_factory.mktemp("alignment") / "four.fasta"
    lines = []
    for name, parent in zip("abcd", (x, x, y, y), strict=True):
        text = np.array(list("ACGT"))[evolve(parent)]
        text[rng.random(N) < 0.1] = "-"
        lines.append(f">{name}\n" + "\n".join("".join(text)[i : i + 60] for i in range(0, N, 60)))
    path.write_text("\n".join(lines))
    return path


def test_alignment(alignment: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    output = accepted("fit", alignment, "-o", out, "--seed", "0")
    assert "hidden variables have 4 states, as many as there are nucleotides" in output
    assert set(lt.load(out).diagnostics_.hidden_states) == {4}
    assert "3,000 samples of 4 variables" in output
    assert output.count("alignment of nucleotides: 10.") == 1
    assert groups_of(out) == {frozenset("ab"), frozenset("cd")}
    one = tmp_path / "one.fasta"
    one.write_text(">d\nA\n>c\nN\n>b\nC\n>a\n-\n")
    output = accepted("score", out, one)
    assert "samples               1\n" in output
    accepted("impute", out, one, "-o", tmp_path / "filled.csv")
    header, rows = read_csv(tmp_path / "filled.csv")
    assert header == list("abcd")
    assert rows == [["C", "C", "A", "A"]]


def test_states_of_proteins_are_found(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 500)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    taxa = [np.where(rng.random(500) < 0.2, rng.integers(0, 20, 500), first) for _ in range(3)]
    path, out = tmp_path / "p.fasta", tmp_path / "model.ltree"
    path.write_text("".join(f">{n}\n{''.join(letters[x])}\n" for n, x in enumerate(taxa)))
    output = accepted("fit", path, "-o", out, "--seed", "0", "--verbose")
    assert "nucleotides" not in output
    assert "seconds" in output
    model = lt.load(out)
    assert model.n_states == "auto"
    assert model.diagnostics_.n_states > 2


def test_wrong_alignments(tmp_path: Path) -> None:
    path = tmp_path / "bad.fasta"
    path.write_text(">a\nACGT\n>b\nACG\n")
    assert "'b' has 3" in refused("fit", path, "-o", tmp_path / "x.ltree")
    path.write_text(">a\nACGT\n>b\nACG1\n")
    message = refused("fit", path, "-o", tmp_path / "x.ltree")
    assert "'1' in 'b', site 4" in message
    assert "alphabet=" not in message
    path.write_text(">a\nACGT\n>b\nACGT\n")
    message = refused("fit", path, "-o", tmp_path / "x.ltree", "--family", "poisson")
    assert "letters of bad.fasta are categories" in message
