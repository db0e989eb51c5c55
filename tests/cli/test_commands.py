"""The command line, run in process and once for real."""

from __future__ import annotations

import csv
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from typer.testing import CliRunner, Result

import latenttree as lt
from latenttree import __version__, cli
from latenttree.cli import exits, fit
from latenttree.cli.labels import StateLabels
from latenttree.io.treefile import load_tree, save_tree
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

#   a     c
#    \   /
#    h0-h1
#    /   \
#   b     [d]
TREE = Tree.build(["a", "b", "c", "[d]"], [(0, 4), (1, 4), (4, 5), (2, 5), (3, 5)], [1.0] * 5)


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli.app, [str(a) for a in arguments])


def refused(result: Result) -> str:
    """The one line on stderr of a command that was refused."""
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.output
    return result.stderr


NAMES = [f"{group}{i}" for group in "abc" for i in range(3)]


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


def write_csv(path: Path, rows: object, names: list[str] = NAMES) -> Path:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *rows])  # type: ignore[misc]
    return path


def read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file)
    return header, rows


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "table.csv", bits().tolist())


def words(rows: np.ndarray) -> list[list[object]]:
    """The bits with labels: text, text with a comma, whole numbers other than codes."""
    labels = [["no", "yes"], ["blue", "red, dark"], *([[3, 7]] * 7)]
    return [[labels[j][b] for j, b in enumerate(row)] for row in rows.tolist()]


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that `fit` wrote, of the bits in words."""
    folder = tmp_path_factory.mktemp("model")
    table, out = write_csv(folder / "table.csv", words(bits())), folder / "model.ltree"
    result = run("fit", table, "-o", out, "--seed", "0", "--threads", "1")
    assert result.exit_code == 0, result.output + result.stderr
    return out


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """Forty samples with three cells in ten empty, the columns turned round."""
    rows = np.asarray(words(bits(40)), dtype=object)
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = ""
    return write_csv(tmp_path / "gaps.csv", rows[:, ::-1].tolist(), NAMES[::-1])


def as_records(path: Path) -> list[dict[str, object]]:
    """The samples of `gaps` for the library, empty cells left out."""
    header, rows = read_csv(path)
    text = {"a0", "a1"}
    return [
        {name: v if name in text else int(v) for name, v in zip(header, row, strict=True) if v}
        for row in rows
    ]


# ---- help -----------------------------------------------------------------------------


def test_help_names_the_commands() -> None:
    result = run("--help")
    assert result.exit_code == 0
    for command in ["demo", "fit", "show", "query", "score", "transform", "impute", "sample"]:
        assert command in result.output
        assert run(command, "--help").exit_code == 0


def test_version() -> None:
    assert run("--version").output == f"latenttree {__version__}\n"


def test_unknown_command_is_a_usage_error() -> None:
    assert run("learn").exit_code == 2


# ---- show -----------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [".json", ".ltree", ".nwk"])
def test_show(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree{suffix}"
    save_tree(path, TREE)
    result = run("show", path)
    assert result.exit_code == 0, result.output
    assert "4 observed variables, 2 hidden variables" in result.output
    assert TREE.draw() in result.output
    assert re.search(r"h1 +2 +c  \[d\]", result.output)


def test_show_draws_large_trees_only_on_request(tmp_path: Path) -> None:
    star = Tree.build([f"x{i}" for i in range(300)], [(i, 300) for i in range(300)], [1.0] * 300)
    path = tmp_path / "star.json"
    save_tree(path, star)
    assert "x299" not in run("show", path).output
    assert "x299" in run("show", path, "--draw").output


def test_show_plots(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    for layout in ("radial", "top_down"):
        picture = tmp_path / f"{layout}.svg"
        result = run("show", tmp_path / "tree.json", "--plot", picture, "--layout", layout)
        assert result.exit_code == 0, result.output
        assert "<svg" in picture.read_text()


def test_show_refuses(tmp_path: Path) -> None:
    assert "nothing.json: No such file" in refused(run("show", tmp_path / "nothing.json"))
    (tmp_path / "bad.json").write_text("{}")
    assert "bad.json holds no valid tree" in refused(run("show", tmp_path / "bad.json"))
    save_tree(tmp_path / "tree.json", TREE)
    line = refused(run("show", tmp_path / "tree.json", "--plot", tmp_path / "tree.doc"))
    assert "'tree.doc' is no picture file; end it in .png, .pdf or .svg" in line


# ---- fit ------------------------------------------------------------------------------


def test_fit(table: Path, tmp_path: Path) -> None:
    out, picture = tmp_path / "model.ltree", tmp_path / "tree.png"
    result = run("fit", table, "-o", out, "--seed", "0", "--threads", "1", "--plot", picture)
    assert result.exit_code == 0, result.output + result.stderr
    assert "4,000 samples of 9 variables" in result.output
    assert "9 observed variables" in result.output
    assert picture.read_bytes().startswith(b"\x89PNG")
    saved = load_tree(out)
    for group in "abc":
        (parent,) = {int(saved.tree.neighbors(f"{group}{i}")[0]) for i in range(3)}
        assert parent >= saved.tree.n_observed
    assert saved.n_states == 2
    assert saved.stage_seconds
    assert run("show", out).exit_code == 0
    model = lt.load(out)
    assert f"model of {model.model_.n_parameters} parameters" in result.output
    assert model.schema_.names == tuple(NAMES)


def test_fit_hands_its_options_on(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "model.ltree"
    options = [
        "--no-search",
        "--no-refine",
        "--smoothing",
        "0.5",
        "--max-iter",
        "7",
        "--tree",
        "most_probable",
        "--seed",
        "3",
    ]
    assert run("fit", table, "-o", out, *options).exit_code == 0
    model = lt.load(out)
    chosen = (model.search, model.refine, model.smoothing, model.tree, model.random_state)
    assert chosen == (False, None, 0.5, "most_probable", 3)
    assert model.max_iter == 7
    assert run("fit", table, "-o", out, "--max-iter", "0").exit_code == 2


def test_fit_says_on_one_line_that_refinement_was_cut_short(table: Path, tmp_path: Path) -> None:
    result = run("fit", table, "-o", tmp_path / "model.ltree", "--max-iter", "1", "--no-search")
    assert result.exit_code == 0
    assert result.output.count("still gaining after 1 steps; raise --max-iter") == 1
    assert result.stderr == ""


def test_columns_with_integers_as_names(tmp_path: Path) -> None:
    """A model of a pandas table whose columns are numbered out of order."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, (500, 1))
    X = (hidden ^ (rng.random((500, 5)) < 0.2)) * np.array([1, 2, 3, 4, 5])
    model = lt.LatentTree(random_state=0, search=False, n_jobs=1).fit(
        pd.DataFrame(X, columns=[4, 3, 1, 0, 2])
    )
    model.save(tmp_path / "model.ltree")
    result = run("query", tmp_path / "model.ltree", "--given", "3=2", "4", "1")
    assert result.exit_code == 0, result.output + result.stderr
    for name, label in (("4", 1), ("1", 3)):
        p = model.predict_proba({3: 2}, int(name))[0]
        assert re.search(rf"^ *{name} +0 +{p[0]:.4f}.*\n +{label} +{p[1]:.4f}", result.output, re.M)
    out = tmp_path / "drawn.csv"
    assert run("sample", tmp_path / "model.ltree", "-n", "50", "-o", out).exit_code == 0
    drawn = pd.read_csv(out)
    assert {name: set(drawn[name]) for name in drawn} == {
        name: {0, i + 1} for i, name in enumerate("43102")
    }


def test_fit_keeps_the_tree_alone_where_there_are_no_probabilities(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Bare:
        """What a fit without parameters leaves: a tree, and no `model_`."""

        hidden = "categorical"
        tree_ = TREE
        diagnostics_ = lt.LatentTree(2, random_state=0).fit(bits(50)[:, :4]).diagnostics_

    Bare.diagnostics_.support = np.ones(TREE.n_edges)
    monkeypatch.setattr(fit, "learn", lambda *_, **__: Bare)
    out = tmp_path / "tree.ltree"
    result = run("fit", table, "-o", out)
    assert result.exit_code == 0, result.output + result.stderr
    assert "the file holds the tree alone" in result.output
    assert load_tree(out).tree.names == TREE.names
    assert "holds a tree without parameters" in refused(run("query", out, "a"))
    assert "a tree without probabilities" in refused(run("show", out, "--node", "a"))


def test_fit_reads_other_delimiters(tmp_path: Path) -> None:
    path, out = tmp_path / "table.csv", tmp_path / "tree.nwk"
    for mark, option in ((";", ";"), ("\t", "tab")):
        lines = [NAMES, *bits(500).tolist()]
        path.write_text("\n".join(mark.join(map(str, line)) for line in lines))
        assert f"pass --delimiter {option if mark != ';' else repr(mark)}" in refused(
            run("fit", path, "-o", out)
        )
        assert run("fit", path, "-o", out, "--delimiter", option).exit_code == 0
    assert "--delimiter is 'ab'" in refused(run("fit", path, "-o", out, "--delimiter", "ab"))


def test_fit_writes_newick_and_finds_the_number_of_states(table: Path, tmp_path: Path) -> None:
    out = tmp_path / "tree.nwk"
    result = run("fit", table, "-o", out, "--states", "auto", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert Tree.from_newick(out.read_text()).n_observed == 9


def test_fit_checks_before_it_works(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fit, "learn", lambda *_, **__: pytest.fail("the work has begun"))
    out = tmp_path / "tree.json"
    assert "--states is '1'; pass 'auto'" in refused(run("fit", table, "-o", out, "--states", "1"))
    assert "end it in .json" in refused(run("fit", table, "-o", tmp_path / "tree.xml"))
    assert "does not exist" in refused(run("fit", table, "-o", tmp_path / "no" / "tree.json"))
    assert "no file" in refused(run("fit", tmp_path / "none.csv", "-o", out))
    line = refused(run("fit", table, "-o", out, "--plot", tmp_path / "no" / "tree.png"))
    assert "does not exist; create it first" in line
    assert not out.exists()


def test_fit_refuses_a_constant_column_and_drops_it_on_request(tmp_path: Path, table: Path) -> None:
    rows = table.read_text().splitlines()
    path, out = tmp_path / "constant.csv", tmp_path / "tree.json"
    path.write_text("\n".join([rows[0] + ",same"] + [row + ",7" for row in rows[1:]]))
    assert "same" in refused(run("fit", path, "-o", out))
    result = run("fit", path, "-o", out, "--drop-constant", "--seed", "0")
    assert result.exit_code == 0, result.output + result.stderr
    assert load_tree(out).tree.n_observed == 9


# ---- show, of a model -----------------------------------------------------------------


def test_show_draws_the_support(fitted: Path) -> None:
    result = run("show", fitted)
    model = lt.load(fitted)
    assert f"a whole model: {model.model_.n_parameters} parameters" in result.output
    assert len(re.findall(r"h\d \[1\.00\]", result.output)) == 3
    assert "in brackets: support of the edge above" in result.output


def test_show_a_node(fitted: Path) -> None:
    model = lt.load(fitted)
    hidden = model.tree_.names[int(model.tree_.neighbors("a0")[0])]
    text = run("show", fitted, "--node", hidden).output
    assert f"{hidden}, hidden, 2 states" in text
    assert len(re.findall(rf"P\(\w+ \| {hidden}\)", text)) == len(model.tree_.neighbors(hidden))
    low, high = model.conditional("a1", hidden)[1]
    assert re.search(rf"red, dark +{low:.4f} +{high:.4f}", text)
    leaf = run("show", fitted, "--node", "a1").output
    assert "a1, observed, 2 states" in leaf
    assert re.search(rf"red, dark +{low:.4f} +{high:.4f}", leaf)
    assert "no node 'zz'; it has the variables 'a0'" in refused(run("show", fitted, "--node", "zz"))


# ---- query ----------------------------------------------------------------------------


def rows_of(result: Result) -> list[list[str]]:
    assert result.exit_code == 0, result.stderr
    return [re.split(r"  +", line.strip()) for line in result.output.splitlines()]


def test_query(fitted: Path) -> None:
    model = lt.load(fitted)
    result = run("query", fitted, "--given", "a0=yes,a1=red, dark,b0=3", "h0", "c1")
    lines = rows_of(result)
    known = {"a0": "yes", "a1": "red, dark", "b0": 3}
    assert f"probability of what is given: {np.exp(model.score(known)):.4g}" in result.output
    assert lines[1] == ["node", "value", "given this", "without"]
    for name, first in (("h0", 2), ("c1", 4)):
        after, before = model.predict_proba(known, name)[0], model.marginal(name)
        labels = model.classes_of(name)
        assert lines[first] == [name, str(labels[0]), f"{after[0]:.4f}", f"{before[0]:.4f}"]
        assert lines[first + 1] == [str(labels[1]), f"{after[1]:.4f}", f"{before[1]:.4f}"]


def test_query_soft_evidence_and_hidden_nodes(fitted: Path) -> None:
    model = lt.load(fitted)
    result = run("query", fitted, "--given", "h1=1", "--given", "a0=yes:0.8/no:0.2", "a1", "a0")
    known = {"h1": 1, "a0": {"yes": 0.8, "no": 0.2}}
    for name in ("a0", "a1"):
        expected = model.predict_proba(known, name)[0, 0]
        assert re.search(rf"{name} +\w+ +{expected:.4f} ", result.output)


def test_query_without_evidence_lists_the_most_probable_values(fitted: Path) -> None:
    lines = rows_of(run("query", fitted, "a0", "--top", "1"))
    high = lt.load(fitted).marginal("a0").max()
    assert lines[0] == ["node", "value", "P"]
    assert lines[1][2] == f"{high:.4f}"
    assert lines[2] == ["1 others", f"{1 - high:.4f}"]


@pytest.mark.parametrize(
    ("given", "asked", "message"),
    [
        ("a0", "b0", "--given 'a0' is not NAME=VALUE"),
        ("zz=1", "b0", "no node 'zz'; it has the variables"),
        ("a0=yes,zz=1", "b0", "no node 'zz'; it has the variables"),
        ("a0=maybe", "b0", "'a0' has the values 'no', 'yes'; use one"),
        ("a0=yes:-1", "b0", "'a0' has the values 'no', 'yes'; use one"),
        ("a0=yes,a0=no", "b0", "--given names 'a0' twice"),
        ("a0=yes", "a0", "'a0' is given ('yes'), so there is nothing to ask"),
        ("a0=yes", "zz", "no node 'zz'"),
        ("a0=yes:0", "b0", "probability zero under the model"),
    ],
)
def test_query_refuses(fitted: Path, given: str, asked: str, message: str) -> None:
    assert message in refused(run("query", fitted, "--given", given, asked))


def test_names_with_commas_are_found(tmp_path: Path) -> None:
    """Pixels are named "0,3"; a comma ends a value only where a node is named after it."""
    names = [f"{j},{j}" for j in range(9)]
    table, out = write_csv(tmp_path / "t.csv", bits().tolist(), names), tmp_path / "m.ltree"
    assert run("fit", table, "-o", out, "--seed", "0", "--no-search").exit_code == 0
    result = run("query", out, "--given", "0,0=1,1,1=0", "2,2")
    expected = lt.load(out).predict_proba({"0,0": 1, "1,1": 0}, "2,2")[0, 0]
    assert re.search(rf"2,2 +0 +{expected:.4f}", result.output), result.output + result.stderr


# ---- score, transform, impute, sample -------------------------------------------------


def test_score(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    model, records, out = lt.load(fitted), as_records(gaps), tmp_path / "scores.csv"
    result = run("score", fitted, gaps, "-o", out)
    assert f"mean log-likelihood   {model.score(records):.6g}" in result.output
    assert f"BIC                   {model.bic(records):.8g}" in result.output
    header, rows = read_csv(out)
    assert header == ["log_likelihood"]
    # Nine digits are written.
    np.testing.assert_allclose(
        [float(row[0]) for row in rows], model.score_samples(records), rtol=1e-8
    )


@pytest.mark.parametrize("suffix", [".csv", ".npz", ".parquet"])
def test_transform(fitted: Path, gaps: Path, tmp_path: Path, suffix: str) -> None:
    model, out = lt.load(fitted), tmp_path / f"posteriors{suffix}"
    result = run("transform", fitted, gaps, "-o", out)
    assert result.exit_code == 0, result.stderr
    if suffix == ".csv":
        header, rows = read_csv(out)
        values = np.array(rows, dtype=float)
    elif suffix == ".npz":
        with np.load(out) as archive:
            header, values = archive["names"].tolist(), archive["values"]
    else:
        frame = pytest.importorskip("pyarrow.parquet").read_table(out)
        header, values = frame.column_names, np.column_stack([c.to_numpy() for c in frame.columns])
    assert header == model.get_feature_names_out().tolist()
    np.testing.assert_allclose(values, model.transform(as_records(gaps)), rtol=1e-8)  # 9 digits


def test_impute_changes_nothing_but_gaps(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    out = tmp_path / "filled.csv"
    result = run("impute", fitted, gaps, "-o", out)
    header, rows = read_csv(gaps)
    found, filled = read_csv(out)
    n_gaps = sum(cell == "" for row in rows for cell in row)
    assert f"filled {n_gaps} gaps" in result.output
    assert found == header
    model = lt.load(fitted)
    for record, row, complete in zip(as_records(gaps), rows, filled, strict=True):
        for name, cell, value in zip(header, row, complete, strict=True):
            if cell:
                assert value == cell
            else:
                best = model.predict_proba(record, name)[0].argmax()
                assert value == str(model.classes_of(name)[best])


def test_impute_draws_on_request(fitted: Path, gaps: Path, tmp_path: Path) -> None:
    outs = [tmp_path / f"{i}.csv" for i in range(3)]
    for out, seed in zip(outs, ("1", "1", "2"), strict=True):
        assert run("impute", fitted, gaps, "-o", out, "--method", "sample", "--seed", seed)
    assert outs[0].read_bytes() == outs[1].read_bytes() != outs[2].read_bytes()


def test_sample(fitted: Path, tmp_path: Path) -> None:
    out, again = tmp_path / "X.csv", tmp_path / "Y.csv"
    for path in (out, again):
        assert run("sample", fitted, "-n", "30", "-o", path, "--seed", "5").exit_code == 0
    assert out.read_bytes() == again.read_bytes()
    header, rows = read_csv(out)
    assert header == NAMES
    assert len(rows) == 30
    assert {row[1] for row in rows} == {"blue", "red, dark"}
    assert run("score", fitted, out).exit_code == 0
    assert run("sample", fitted, "-o", out, "-n", "3", "--hidden").exit_code == 0
    assert read_csv(out)[0] == list(lt.load(fitted).tree_.names)


# ---- new data -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("names", "row", "message"),
    [
        (NAMES[1:], words(bits(2))[0][1:], "lacks 'a0'; the model needs all its 9 columns"),
        ([*NAMES, "id"], [*words(bits(2))[0], 1], "does not know: 'id'; drop them, or"),
        (NAMES, ["perhaps", *words(bits(2))[0][1:]], "sample 1, column 'a0': the value 'perhaps'"),
        ([*NAMES[:-1], "a0"], words(bits(2))[0], "'a0' occurs more than once"),
    ],
)
def test_new_data_that_do_not_fit(
    fitted: Path, tmp_path: Path, names: list[str], row: list[object], message: str
) -> None:
    path = write_csv(tmp_path / "new.csv", [row], names)
    for command in ("score", "transform", "impute"):
        out = tmp_path / "out.csv"
        assert message in refused(run(command, fitted, path, "-o", out))
        assert not out.exists()


def test_numbers_are_read_as_numbers() -> None:
    """Programs write 1.0 for 1 into columns with gaps."""
    whole, text = StateLabels(np.array([0, 1])), StateLabels(np.array(["0", "1"]))
    assert [whole.code(t) for t in ("1", "1.0", " 0 ", "2", "", "nan", "inf")] == [
        *(1, 1, 0),
        *([None] * 4),
    ]
    assert [text.code(t) for t in ("1", "1.0")] == [1, None]
    assert [StateLabels(np.array([False, True])).code(t) for t in ("true", "False", "1")] == [
        1,
        0,
        1,
    ]
    presence = StateLabels(np.arange(2), sparse_binary=True)
    assert [presence.code(t) for t in ("0", "5", "-1", "many")] == [0, 1, None, None]


def test_columns_dropped_in_training_may_come_or_stay_away(tmp_path: Path) -> None:
    rows, model = bits(1000).tolist(), tmp_path / "m.ltree"
    path = write_csv(tmp_path / "t.csv", [[*row, 4] for row in rows], [*NAMES, "same"])
    result = run("fit", path, "-o", model, "--drop-constant", "--seed", "0", "--no-search")
    assert result.exit_code == 0, result.stderr
    plain = write_csv(tmp_path / "plain.csv", rows)
    assert run("score", model, path).output == run("score", model, plain).output
    out = tmp_path / "filled.csv"
    assert run("impute", model, path, "-o", out).exit_code == 0
    assert read_csv(out) == read_csv(path)


def test_arrays_and_matrices(tmp_path: Path) -> None:
    """By position; a column that learning left out keeps its place."""
    X = np.column_stack([np.zeros(4000, dtype=int), bits()])
    table, model, out = (tmp_path / name for name in ("X.npz", "m.ltree", "p.csv"))
    for save, content in ((np.savez, X), (sparse.save_npz, sparse.csr_array(X))):
        save(table, content)
        fit = run("fit", table, "-o", model, "--drop-constant", "--seed", "0", "--no-search")
        assert fit.exit_code == 0, fit.stderr
        result = run("transform", model, table, "-o", out)
        assert (result.exit_code, result.stderr) == (0, "")
        expected = lt.load(model).transform({f"x{j}": X[:, j] for j in range(10)})
        np.testing.assert_allclose(np.array(read_csv(out)[1], dtype=float), expected, rtol=1e-8)
    np.savez(table, np.where(X == 1, np.nan, X.astype(float)))
    assert run("impute", model, table, "-o", out).exit_code == 0
    np.savez(table, X[:, 1:])
    assert "pass --vocab FILE" in refused(run("score", model, table))


def test_documents(tmp_path: Path) -> None:
    """Words that are too rare to learn from are still in the vocabulary of new documents."""
    X = np.column_stack([np.zeros(4000, dtype=int), bits()])
    pairs, train, new = np.argwhere(X), tmp_path / "docword.a.txt", tmp_path / "docword.b.txt"

    def write(path: Path, n: int) -> None:
        kept = pairs[pairs[:, 0] < n]
        lines = [str(n), "10", str(len(kept)), *(f"{i + 1} {j + 1} 2" for i, j in kept)]
        path.write_text("\n".join(lines))
        vocabulary = path.with_name(path.name.replace("docword", "vocab"))
        vocabulary.write_text("\n".join(["rare", *NAMES]))

    write(train, 4000)
    write(new, 3)
    model, out = tmp_path / "m.ltree", tmp_path / "s.csv"
    assert run("fit", train, "-o", model, "--seed", "0", "--no-search").exit_code == 0
    result = run("score", model, new, "-o", out)
    assert (result.exit_code, result.stderr) == (0, "")
    columns = dict(zip(["rare", *NAMES], X[:3].T, strict=True))
    expected = lt.load(model).score_samples(columns)
    found = [float(row[0]) for row in read_csv(out)[1]]
    np.testing.assert_allclose(found, expected, rtol=1e-8)  # nine digits are written


def test_impossible_samples(tmp_path: Path) -> None:
    tree = Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1.0] * 3)
    copy = np.eye(2)
    model = lt.LatentTree(2, random_state=0).fit(bits(500)[:, :3])
    model.tree_ = Tree.build(["x0", "x1", "x2"], tree.edges, [1.0] * 3)
    model.model_ = TreeModel(model.tree_, 3, (copy, copy, copy, np.full((2, 1), 0.5)))
    model.diagnostics_.support = np.ones(3)
    path, out = tmp_path / "m.ltree", tmp_path / "o.csv"
    model.save(path)
    new = write_csv(tmp_path / "new.csv", [[1, 1, 1], [0, 1, ""]], ["x0", "x1", "x2"])
    scored = run("score", path, new)
    assert "1 samples have probability zero under the model, the first of them sample 2" in (
        scored.output
    )
    for command in ("transform", "impute"):
        assert "sample 2 has probability zero" in refused(run(command, path, new, "-o", out))
        assert not out.exists()
    assert "correct it, or leave out" in refused(run("query", path, "--given", "x0=1,x1=0", "x2"))


def test_answers_check_before_they_work(
    fitted: Path, gaps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from latenttree.cli import impute, score, transform

    for module in (score, transform, impute):
        fail = lambda *_, **__: pytest.fail("the work has begun")  # noqa: E731
        monkeypatch.setattr(module, "load_model", fail)
    for command in ("score", "transform", "impute"):
        line = refused(run(command, fitted, gaps, "-o", tmp_path / "out.doc"))
        assert "'out.doc' does not tell how to write a table; end it in .csv" in line
        assert "does not exist" in refused(run(command, fitted, gaps, "-o", tmp_path / "no/x.csv"))
        assert "is the file that is read" in refused(run(command, fitted, gaps, "-o", gaps))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    line = refused(run("transform", fitted, gaps, "-o", tmp_path / "p.parquet"))
    assert "pip install 'latenttree[io]', or end the name in .csv" in line


def test_files_that_are_no_models(tmp_path: Path, gaps: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    assert "'tree.json' is no model" in refused(run("score", tmp_path / "tree.json", gaps))
    (tmp_path / "bad.ltree").write_bytes(b"PK")
    assert "bad.ltree holds no valid" in refused(run("score", tmp_path / "bad.ltree", gaps))
    assert "bad.ltree holds no valid" in refused(run("show", tmp_path / "bad.ltree"))
    assert "No such file" in refused(run("query", tmp_path / "none.ltree", "a"))


# ---- columns that are no variables ----------------------------------------------------


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    """The bits, with what real files have beside them."""
    found = pd.DataFrame(bits(), columns=NAMES)
    found.insert(0, "id", [f"p{i}" for i in range(len(found))])
    return found.assign(w=np.arange(len(found)) % 3, **{"first seen": "2020-01-01"})


def test_rows_that_are_numbered(frame: pd.DataFrame, fitted: Path, tmp_path: Path) -> None:
    path, out = tmp_path / "indexed.csv", tmp_path / "tree.json"
    frame[NAMES].to_csv(path)
    for line in (refused(run("fit", path, "-o", out)), refused(run("score", fitted, path))):
        assert "the first column has no name and numbers the rows" in line
        assert "index=False, or pass --ignore ''" in line
    result = run("fit", path, "-o", out, "--ignore", "", "--seed", "0", "--no-search")
    assert result.exit_code == 0, result.output + result.stderr
    assert load_tree(out).tree.n_observed == 9


def test_columns_that_are_ignored(frame: pd.DataFrame, tmp_path: Path) -> None:
    path, model, out = tmp_path / "t.csv", tmp_path / "model.ltree", tmp_path / "out.csv"
    frame.to_csv(path, index=False)
    aside = ["--ignore", "id", "--ignore", "first seen"]
    assert "--ignore NAME" in refused(run("fit", path, "-o", model, "--ignore", "first seen"))
    line = refused(run("fit", path, "-o", model, "--ignore", "ID"))
    assert "--ignore ID: t.csv has no such column; the columns are 'id'" in line
    options = [*aside, "--weights", "w", "--seed", "0", "--no-search", "--threads", "1"]
    result = run("fit", path, "-o", model, *options)
    assert result.exit_code == 0, result.output + result.stderr
    assert "2,666 samples (weight 3,999) of 9 variables" in result.output
    assert "stage" not in result.output
    assert "read with --weights w --ignore id --ignore 'first seen'" in run("show", model).output
    plain = tmp_path / "plain.csv"
    frame[[*NAMES, "w"]].query("w > 0").to_csv(plain, index=False)
    again = tmp_path / "again.ltree"
    assert run("fit", plain, "-o", again, *options[len(aside) :]).exit_code == 0
    np.testing.assert_array_equal(lt.load(again).tree_.edges, lt.load(model).tree_.edges)

    line = refused(run("transform", model, path, "-o", out))
    assert "does not know: 'id', 'w', 'first seen'" in line
    assert "--ignore id --ignore w --ignore 'first seen'" in line
    for command in ("score", "transform", "impute"):
        result = run(command, model, path, "-o", out, *aside, "--ignore", "w")
        assert result.exit_code == 0, result.output + result.stderr
    pd.testing.assert_frame_equal(pd.read_csv(out), frame)  # no gaps: as it was
    repeated = frame.loc[frame.index.repeat(frame["w"]), NAMES]
    repeated.to_csv(plain, index=False)
    weighed = run("score", model, path, *aside, "--weights", "w").output.splitlines()
    assert weighed[0] == "samples               4,000 (weight 3,999)"
    assert weighed[1:] == run("score", model, plain).output.splitlines()[1:]


def test_only_columns_are_ignored(tmp_path: Path, fitted: Path) -> None:
    sparse.save_npz(tmp_path / "m.npz", sparse.csr_array(bits(50)))
    for command, out in (["fit"], tmp_path / "o.json"), (["score", fitted], tmp_path / "o.csv"):
        line = refused(run(*command, tmp_path / "m.npz", "-o", out, "--ignore", "x"))
        assert "--ignore names a column of a .csv" in line


# ---- demo -----------------------------------------------------------------------------


def test_demo(tmp_path: Path) -> None:
    out = tmp_path / "digits.png"
    result = run("demo", "--out", out)
    assert result.exit_code == 0, result.output + result.stderr
    assert "1,797 handwritten digits" in result.output
    assert "3 pixels are blank in every digit and left out" in result.output
    assert "61 observed variables" in result.output
    share = re.search(r"for (\d+) of 61 pixels", result.output)
    assert share
    # A pixel has at most 8 of 60 others around it: chance would give 8.
    assert int(share[1]) >= 40
    digits = re.search(r"state 1 for (\d+)% of the \ds and (\d+)% of the \ds", result.output)
    assert digits
    assert int(digits[1]) - int(digits[2]) >= 80
    held_out = re.search(r"log-likelihood (\S+) for a digit, (\S+) if every", result.output)
    assert held_out
    assert float(held_out[1]) > float(held_out[2]) + 5
    assert result.stderr == ""
    assert out.read_bytes().startswith(b"\x89PNG")


# ---- endings --------------------------------------------------------------------------


def test_interrupt_leaves_nothing_behind(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(fit, "learn", interrupted)
    result = run("fit", table, "-o", tmp_path / "tree.json")
    assert (result.exit_code, result.stderr) == (130, "interrupted\n")
    assert sorted(tmp_path.iterdir()) == before


def test_long_errors_and_warnings_take_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    import warnings

    from typer import Exit

    def work() -> None:
        with exits.clean_exit():
            warnings.warn("first\n second", stacklevel=1)
            raise ValueError("what\n  and why")

    with pytest.raises(Exit) as caught:
        work()
    assert caught.value.exit_code == 2
    assert capsys.readouterr().err == "warning: first second\nerror: what and why\n"


def test_installed_command_and_closed_pipe(tmp_path: Path) -> None:
    save_tree(tmp_path / "tree.json", TREE)
    command = f"{sys.executable} -m latenttree.cli show {tmp_path / 'tree.json'}"
    done = subprocess.run(f"{command} | head -1", shell=True, capture_output=True, text=True)
    assert "4 observed variables" in done.stdout
    assert "Traceback" not in done.stderr
