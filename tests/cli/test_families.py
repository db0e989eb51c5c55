"""The command line on events, alignments, numbers, gaps, weights and Gaussian trees."""

from __future__ import annotations

import csv
import lzma
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner, Result

import latenttree as lt
from latenttree import cli
from latenttree.cli.options import map_source
from latenttree.cli.training_data import parse_families

N = 3000


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def accepted(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + result.stderr
    return result.output


def refused(*arguments: str | Path) -> str:
    """The one line on stderr of a command that was refused."""
    result = run(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return result.stderr


def fit(file: Path, *options: str | Path) -> Path:
    out = file.parent / "model.ltree"
    accepted("fit", file, "-o", out, "--seed", "0", "--threads", "1", *options)
    return out


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


def write_csv(path: Path, header: list[str], rows: object) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])  # type: ignore[misc]
    return path


def hidden_bits() -> np.ndarray:
    """(N, 3) bits that copy a common one, each with 10% of flips."""
    rng = np.random.default_rng(0)
    root = rng.integers(0, 2, (N, 1))
    return root ^ (rng.random((N, 3)) < 0.1)


def groups_of(path: Path) -> set[frozenset[str]]:
    """Names of the observed variables that share a hidden neighbour."""
    tree = lt.load(path).tree_
    found = []
    for h in range(tree.n_observed, tree.n_nodes):
        found.append(frozenset(tree.names[v] for v in tree.neighbors(h) if v < tree.n_observed))
    return {group for group in found if group}


# ---- numbers, counts, labels, gaps and weights ----------------------------------------

MIXED = ["num", "count", "label"]
NAMES = [f"{group}_{kind}" for group in "abc" for kind in MIXED]
COUNTS = [f"--family={name}=poisson" for name in NAMES if name.endswith("count")]


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
    table = write_csv(tmp_path_factory.mktemp("mixed") / "table.csv", NAMES, mixed_rows())
    return fit(table, *COUNTS)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """Forty samples with gaps, the columns turned round."""
    rows = [row[::-1] for row in mixed_rows(0.3)[:40]]
    return write_csv(tmp_path / "new.csv", NAMES[::-1], rows)


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
    assert header[:9] == NAMES
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
    rows[1][NAMES.index(column)] = value
    assert message in refused("score", mixed, write_csv(tmp_path / "bad.csv", NAMES, rows))


def test_weights(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    weights = rng.integers(0, 3, N).tolist()
    rows = mixed_rows()
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    weighed = write_csv(
        tmp_path / "a" / "table.csv",
        [*NAMES, "w"],
        [[*row, w] for row, w in zip(rows, weights, strict=True)],
    )
    repeated = write_csv(
        tmp_path / "b" / "table.csv",
        NAMES,
        [row for row, w in zip(rows, weights, strict=True) for _ in range(w)],
    )
    first, second = fit(weighed, "--weights", "w", *COUNTS), fit(repeated, *COUNTS)
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
    return fit(numbers, "--hidden", "gaussian")


def test_gaussian_tree(numbers: Path, gaussian: Path, tmp_path: Path) -> None:
    assert groups_of(gaussian) == {frozenset(f"{g}{i}" for i in range(3)) for g in "abc"}
    assert "hidden variables of 1 dimension," in accepted("show", gaussian)
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
    assert "no states" in refused("query", gaussian, "a1", "--given", "h0=1")


def test_gaussian_trees_read_numbers(tmp_path: Path) -> None:
    rows = [[1.5, "yes"], [2.5, "no"], [0.5, "no"]]
    path = write_csv(tmp_path / "table.csv", ["a", "b"], rows)
    message = refused("fit", path, "-o", tmp_path / "x.ltree", "--hidden", "gaussian")
    assert "column 'b' holds text" in message
    assert "hidden=" not in message
    message = refused("fit", path, "-o", tmp_path / "x.ltree", "--states", "1")
    assert "pass 'auto' or a whole number from 2 on" in message


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


# ---- events ---------------------------------------------------------------------------


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
    return fit(events, "--events", "--groups", event_map(events))


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
    """Parents and codes in one file: without the map, which has both, the codes are unknown."""
    model, out = tmp_path / "model.ltree", tmp_path / "posterior.csv"
    names = [f"G{j}{k}" for j in range(3) for k in range(3)]
    header, rows = read_csv(events.parent / "events.csv")
    some = [[patient, f"G{code[:2]}", date] for patient, code, date in rows[::2]]
    both = write_csv(tmp_path / "both.csv", header, some + rows[1::2])
    pairs = [[code, group] for code, _, group in read_csv(events.parent / "map.csv")[1]]
    parents = write_csv(tmp_path / "m.csv", ["c", "g"], pairs + [[name, name] for name in names])
    options = ["--no-search", "--no-refine", "--threads", "1"]
    accepted("fit", both, "--events", "-o", model, "--roll-up", parents, *options)
    for file in (both, events):  # of the second no code is known
        result = run("transform", model, file, "--events", "-o", out)
        assert result.exit_code == 1
        assert re.search(r"error: [\d,]+ of [\d,]+ occurrences \(\d+%\) have codes", result.stderr)
        assert "most often '" in result.stderr
        assert f"fitted with --events --roll-up {parents}: give --roll-up" in result.stderr
        assert "--unknown drop" in result.stderr
        assert not out.exists()
    output = accepted("transform", model, both, "--events", "-o", out, "--unknown", "drop")
    assert "codes that the model does not know left out" in output
    accepted("transform", model, both, "--events", "-o", out, "--roll-up", parents)


def test_groups_are_given_again(events: Path, tmp_path: Path) -> None:
    """Codes outside the map, which fit left out, are then no surprise."""
    model = tmp_path / "model.ltree"
    pairs = [[code, group] for code, _, group in read_csv(events.parent / "map.csv")[1]]
    few = write_csv(tmp_path / "few.csv", ["c", "g"], [p for p in pairs if p[1] < "G2"])
    options = ["--no-search", "--no-refine", "--threads", "1"]
    accepted("fit", events, "--events", "-o", model, "--groups", few, *options)
    assert run("score", model, events, "--events").exit_code == 1
    assert "outside the map --groups" in accepted(
        "score", model, events, "--events", "--groups", few
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


def test_events_for_other_models(events: Path, mixed: Path) -> None:
    message = refused("score", mixed, events, "--events")
    assert "--events is for models that were learned with --events" in message


def test_map_files(tmp_path: Path) -> None:
    odd = tmp_path / "a:b:c.csv"
    odd.write_text("code,group\n")
    assert map_source(str(odd)) == odd
    assert map_source("map.csv") == Path("map.csv")
    assert map_source("C:/map.csv:code:group") == (Path("C:/map.csv"), "code", "group")


# ---- alignments -----------------------------------------------------------------------


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
    assert lt.load(out).n_states == 4
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


def test_proteins_have_two_states(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(0, 20, 500)
    letters = np.array(list("ACDEFGHIKLMNPQRSTVWY"))
    taxa = [np.where(rng.random(500) < 0.2, rng.integers(0, 20, 500), first) for _ in range(3)]
    path, out = tmp_path / "p.fasta", tmp_path / "model.ltree"
    path.write_text("".join(f">{n}\n{''.join(letters[x])}\n" for n, x in enumerate(taxa)))
    output = accepted("fit", path, "-o", out, "--seed", "0", "--verbose")
    assert "hidden variables have 2 states, fewer than there are amino acids; --states" in output
    assert "seconds" in output
    assert lt.load(out).n_states == 2


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
