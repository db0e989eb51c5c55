"""What the tests of the commands share: runs in process, tables, trees."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner, Result

import latenttree as lt
from latenttree import cli
from latenttree.tree import Tree

#   a     c
#    \   /
#    h0-h1
#    /   \
#   b     [d]
TREE = Tree.build(["a", "b", "c", "[d]"], [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [1.0] * 5)

NAMES = [f"{group}{i}" for group in "abc" for i in range(3)]

N = 3000  # samples of the tables with groups


def run(*arguments: str | Path) -> Result:
    """The result of a command."""
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def accepted(*arguments: str | Path) -> str:
    """The output of a command that succeeds."""
    result = run(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def refused(*arguments: str | Path) -> str:
    """The one line on stderr of a command that is refused."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return result.stderr


def rows_of(result: Result) -> list[list[str]]:
    """The cells of a table that a command printed."""
    assert result.exit_code == 0, result.stderr
    return [re.split(r"  +", line.strip()) for line in result.output.splitlines()]


def fit_file(file: Path, *options: str | Path) -> Path:
    """The model that `fit` writes beside a file."""
    out = file.parent / "model.ltree"
    accepted("fit", file, "-o", out, "--seed", "0", "--threads", "1", *options)
    return out


def groups_of(path: Path) -> set[frozenset[str]]:
    """Names of the observed variables that share a hidden neighbour."""
    tree = lt.load(path).tree_
    groups = []
    for h in range(tree.n_observed, tree.n_nodes):
        groups.append(frozenset(tree.names[v] for v in tree.neighbors(h) if v < tree.n_observed))
    return {group for group in groups if group}


# ---- tables ---------------------------------------------------------------------------


def write_csv(path: Path, header: Sequence[str], rows: Any) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def bits(n: int = 4000) -> np.ndarray:
    """Nine binary columns in three groups of three.

    Each group copies its own hidden bit, and the three bits copy a common one, each with 10%
    of flips: cousins correlate at 0.8^4 = 0.41 and brothers at 0.8^2 = 0.64, which for 4,000
    samples is 14 standard errors (0.016) apart, so the groups cannot be missed.
    """
    rng = np.random.default_rng(0)

    def copy(column: np.ndarray) -> np.ndarray:
        return column ^ (rng.random(column.shape) < 0.1)

    root = rng.integers(0, 2, n)
    return np.column_stack([copy(h) for h in (copy(root) for _ in range(3)) for _ in range(3)])


def words(rows: np.ndarray) -> list[list[object]]:
    """The bits with labels: text, text with a comma, whole numbers other than codes."""
    labels = [["no", "yes"], ["blue", "red, dark"], *([[3, 7]] * 7)]
    return [[labels[j][b] for j, b in enumerate(row)] for row in rows.tolist()]


def as_records(path: Path) -> list[dict[str, object]]:
    """The samples of the table `gaps` for the library, empty cells left out."""
    header, rows = read_csv(path)
    text = {"a0", "a1"}
    return [
        {name: v if name in text else int(v) for name, v in zip(header, row, strict=True) if v}
        for row in rows
    ]


def hidden_bits() -> np.ndarray:
    """(N, 3) bits that copy a common one, each with 10% of flips."""
    rng = np.random.default_rng(0)
    root = rng.integers(0, 2, (N, 1))
    return root ^ (rng.random((N, 3)) < 0.1)
