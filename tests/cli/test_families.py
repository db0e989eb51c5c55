"""Commands on numbers, counts, labels, gaps, weights and Gaussian trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from tests.cli.commands import (
    N,
    accepted,
    fit_file,
    groups_of,
    hidden_bits,
    read_csv,
    refused,
    write_csv,
)

import latenttree as lt
from latenttree.cli.training_data import parse_families

MIXED = ["num", "count", "label"]
MIXED_NAMES = [f"{group}_{kind}" for group in "abc" for kind in MIXED]
COUNTS = [f"--family={name}=poisson" for name in MIXED_NAMES if name.endswith("count")]


def mixed_rows(gaps: float = 0.1) -> list[list[Any]]:
    """Three groups, each with a number, a count and a label of its hidden bit.

    Numbers of the two states are two standard deviations apart, counts have means 1 and 4, labels
    flip in one case of ten: within a group correlations are above 0.4, between groups below 0.64
    times as large, which 3,000 samples tell apart by more than ten standard errors.
    """
    rng = np.random.default_rng(1)
    columns: list[np.ndarray] = []
    for bit in hidden_bits().T:
        columns.append(np.round(2 * bit + rng.normal(size=N), 3).astype(object))
        columns.append(rng.poisson(1 + 3 * bit).astype(object))
        columns.append(np.where(bit ^ (rng.random(N) < 0.1), "yes", "no").astype(object))
    rows = np.column_stack(columns)
    rows[rng.random(rows.shape) < gaps] = ""
    return rows.tolist()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = write_csv(tmp_path_factory.mktemp("mixed") / "table.csv", MIXED_NAMES, mixed_rows())
    return fit_file(table, *COUNTS)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Forty samples with gaps, the columns turned round."""
    rows = [row[::-1] for row in mixed_rows(0.3)[:40]]
    return write_csv(tmp_path / "new.csv", MIXED_NAMES[::-1], rows)


def test_mixed_groups(mixed: Path) -> None:
    expected = {frozenset(f"{group}_{kind}" for kind in MIXED) for group in "abc"}
    assert groups_of(mixed) == expected
    model = lt.load(mixed)
    assert set(model.schema_.families) == {"gaussian", "poisson", "categorical"}


def test_score_as_the_library(mixed: Path, new: Path, tmp_path: Path) -> None:
    accepted("score", mixed, new, "-o", tmp_path / "logs.csv")
    _, rows = read_csv(tmp_path / "logs.csv")
    header, cells = read_csv(new)
    records = [
        {
            name: text if name.endswith("label") else float(text)
            for name, text in zip(header, row, strict=True)
            if text
        }
        for row in cells
    ]
    expected = lt.load(mixed).score_samples(records)
    assert np.allclose([float(row[0]) for row in rows], expected, rtol=1e-8)  # nine digits


def test_transform_of_numbers(mixed: Path, new: Path, tmp_path: Path) -> None:
    accepted("transform", mixed, new, "-o", tmp_path / "out.csv")
    header, rows = read_csv(tmp_path / "out.csv")
    assert header[:2] == ["h0=0", "h0=1"]
    assert np.allclose(np.asarray(rows, dtype=float)[:, :2].sum(axis=1), 1, atol=1e-8)


def test_impute_numbers(mixed: Path, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    before, rows = read_csv(new)
    n_gaps = sum(cell == "" for row in rows for cell in row)
    assert f"filled {n_gaps} gaps" in accepted("impute", mixed, new, "-o", out)
    after, filled = read_csv(out)
    assert after == before
    for row, full in zip(rows, filled, strict=True):
        assert all(full)
        assert all(a in ("", b) for a, b in zip(row, full, strict=True))
    counts = [row[before.index("a_count")] for row in filled]
    assert all(float(text) == int(float(text)) >= 0 for text in counts)
    accepted("impute", mixed, new, "-o", out, "--method", "sample", "--seed", "1")


def test_sample_numbers(mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "drawn.csv"
    accepted("sample", mixed, "-n", "2000", "--seed", "0", "--hidden", "-o", out)
    header, rows = read_csv(out)
    assert header[:9] == MIXED_NAMES
    assert header[9:] == list(lt.load(mixed).tree_.hidden_names)
    drawn = np.array([float(row[0]) for row in rows])
    given = np.array([float(row[0]) for row in mixed_rows(0.0)])
    # Two samples of one distribution: such a distance has a probability of about 1e-6 or less.
    assert stats.ks_2samp(drawn, given).pvalue > 1e-6
    assert {row[1] for row in rows} <= {str(x) for x in range(30)}


def test_query_numbers(mixed: Path) -> None:
    output = accepted("query", mixed, "a_count", "a_label", "--given", "a_num=4,b_count=5")
    assert "log-likelihood of what is given" in output
    (line,) = [line for line in output.splitlines() if "a_count" in line]
    given, without = map(float, line.split()[-2:])
    assert 3.5 < given < 4.5  # the mean of the upper state is 4, that of the lower 1
    assert 2 < without < 3
    assert "P or mean" in accepted("query", mixed, "a_num", "h0")
    message = refused("query", mixed, "a_label", "--given", "a_num=much")
    assert "'a_num' is a number; write it like a_num=1.5" in message


def test_show_numbers(mixed: Path) -> None:
    output = accepted("show", mixed, "--node", "a_num")
    assert "a_num, observed, gaussian" in output
    assert "E(a_num | h" in output
    assert "poisson" in accepted("show", mixed, "--node", "a_count")


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        ("a_num", "much", "sample 2, column 'a_num': 'much' is no number"),
        ("a_count", "-1", "column 'a_count', which holds counts"),
        ("a_count", "1.5", "column 'a_count', which holds counts"),
        ("a_num", "inf", "'inf' is no number"),
        ("a_label", "perhaps", "the value 'perhaps' did not occur in training"),
    ],
)
def test_wrong_values(mixed: Path, tmp_path: Path, column: str, value: str, message: str) -> None:
    rows = mixed_rows(0.0)[:3]
    rows[1][MIXED_NAMES.index(column)] = value
    path = write_csv(tmp_path / "bad.csv", MIXED_NAMES, rows)
    assert message in refused("score", mixed, path, "--handle-unknown", "error")


def test_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 3, N).tolist()
    rows = mixed_rows()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    weighed = write_csv(
        tmp_path / "a" / "table.csv",
        [*MIXED_NAMES, "w"],
        [[*row, w] for row, w in zip(rows, weights, strict=True)],
    )
    repeated = write_csv(
        tmp_path / "b" / "table.csv",
        MIXED_NAMES,
        [row for row, w in zip(rows, weights, strict=True) for _ in range(w)],
    )
    first, second = fit_file(weighed, "--weights", "w", *COUNTS), fit_file(repeated, *COUNTS)
    assert groups_of(first) == groups_of(second)
    scores = [accepted("score", model, repeated).splitlines()[1] for model in (first, second)]
    first_score, second_score = (float(line.split()[-1]) for line in scores)
    # Both are maxima of one likelihood; EM stops within about 1e-6 of it.
    assert first_score == pytest.approx(second_score, rel=1e-4)
    assert "no column 'v' of weights" in refused(
        "fit", weighed, "-o", tmp_path / "x.ltree", "--weights", "v"
    )


# ---- Gaussian trees -------------------------------------------------------------------


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Nine numbers in three groups: loadings 1, noise 0.5, hidden correlations 0.5."""
    rng = np.random.default_rng(0)
    root = rng.normal(size=(N, 1))
    hidden = np.sqrt(0.5) * root + np.sqrt(0.5) * rng.normal(size=(N, 3))
    values = np.repeat(hidden, 3, axis=1) + 0.5 * rng.normal(size=(N, 9))
    rows = np.round(values, 4).astype(object)
    rows[rng.random(rows.shape) < 0.05] = "NA"
    header = [f"{group}{i}" for group in "abc" for i in range(3)]
    return write_csv(tmp_path_factory.mktemp("numbers") / "table.csv", header, rows.tolist())


@pytest.fixture(scope="module")
def gaussian(numbers: Path) -> Path:
    return fit_file(numbers, "--hidden", "gaussian")


def test_gaussian_tree(numbers: Path, gaussian: Path, tmp_path: Path) -> None:
    assert groups_of(gaussian) == {frozenset(f"{g}{i}" for i in range(3)) for g in "abc"}
    assert "hidden variables with 1 dimension," in accepted("show", gaussian)
    assert "slopes of a0 on h0" in accepted("show", gaussian, "--node", "h0")
    assert "4 posterior values" in accepted(
        "transform", gaussian, numbers, "-o", tmp_path / "t.csv"
    )
    assert read_csv(tmp_path / "t.csv")[0] == ["h0", "h1", "h2", "h3"]
    accepted("score", gaussian, numbers)
    accepted("impute", gaussian, numbers, "-o", tmp_path / "i.csv")
    assert not any("NA" in row for row in read_csv(tmp_path / "i.csv")[1])
    accepted("sample", gaussian, "-n", "10", "--hidden", "-o", tmp_path / "s.csv")
    assert read_csv(tmp_path / "s.csv")[0][-4:] == ["h0", "h1", "h2", "h3"]


def test_query_a_gaussian_tree(gaussian: Path) -> None:
    output = accepted("query", gaussian, "a1", "--given", "a0=2")
    given, without = map(float, output.splitlines()[-1].split()[-2:])
    # The correlation is 0.8 and the spreads are equal; standard errors are below 0.05.
    assert given == pytest.approx(1.6, abs=0.2)
    assert without == pytest.approx(0, abs=0.1)
    output = accepted("query", gaussian, "a1", "--given", "h0=1")
    assert "log-likelihood of what is given: -1.4" in output
    assert "is a number" in refused("query", gaussian, "a1", "--given", "h0=yes")


def test_gaussian_trees_read_numbers(tmp_path: Path) -> None:
    rows = [[1.5, "yes"], [2.5, "no"], [0.5, "no"]]
    path = write_csv(tmp_path / "table.csv", ["a", "b"], rows)
    message = refused("fit", path, "-o", tmp_path / "x.ltree", "--hidden", "gaussian")
    assert "column 'b' holds text" in message
    assert "hidden=" not in message
    message = refused("fit", path, "-o", tmp_path / "x.ltree", "--states", "1")
    assert "pass 'auto', 'bic' or a whole number from 2 on" in message


# ---- families -------------------------------------------------------------------------


def test_families_in_words() -> None:
    assert parse_families([]) == "auto"
    assert parse_families(["poisson"]) == "poisson"
    assert parse_families(["a=b=poisson", "c = ordinal"]) == {"a=b": "poisson", "c": "ordinal"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["poisson", "a0=gaussian"], "--family poisson is for all columns, so it stands alone"),
        (["a0=gaussian", "a0=poisson"], "--family gives column 'a0' more than once"),
        (["a0=poison"], "family 'poison' of column 'a0' is unknown (did you mean 'poisson'?)"),
        (["zz=poisson"], "family names column 'zz', which the data do not have"),
        (["multihot"], "'multihot' is for a block of several columns"),
    ],
)
def test_wrong_families(numbers: Path, tmp_path: Path, options: list[str], message: str) -> None:
    given = [f"--family={option}" for option in options]
    assert message in refused("fit", numbers, "-o", tmp_path / "x.ltree", *given)
