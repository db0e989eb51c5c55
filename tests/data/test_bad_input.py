"""Bad input, end to end: a named error with the value and the remedy, or a documented result.

What the data layer refuses is tested there in detail; here it must reach the user of `fit`,
`read_table` and the command line unchanged, before long work, and leave nothing behind.
"""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.data.refusals import Refused, check_fields, refused, refusing
from typer.testing import CliRunner

import latenttree as lt
from latenttree.cli import app
from latenttree.data import read_table
from latenttree.distances.detection import DetectionLimitError
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import robinson_foulds


def codes(n: int = 200, p: int = 4, d: int = 2, seed: int = 0) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, d, (n, p))


def having(value: Any, row: int = 3, column: int = 2) -> NDArray[Any]:
    X = codes().astype(float if isinstance(value, float) else np.int64)
    X[row, column] = value
    return X


def constant(*columns: int) -> NDArray[np.int64]:
    X = codes()
    X[:, columns] = 1
    return X


def all_missing() -> NDArray[np.float64]:
    X = codes().astype(float)
    X[:, 1] = np.nan
    return X


def learn(X: Any, **options: Any) -> lt.LatentTree:
    return lt.LatentTree(**({"random_state": 0, "n_jobs": 1} | options)).fit(X)


BAD_DATA: dict[str, tuple[Any, dict[str, Any], Refused]] = {
    "nothing": (
        None,
        {},
        refused("X is None; pass a table"),
    ),
    "empty list": (
        [],
        {},
        refused("1D data of shape.* Reshape", value=(0,)),
    ),
    "empty dict": (
        {},
        {},
        refused(r"0 feature\(s\) .* at least one column", value=(0, 0)),
    ),
    "no rows": (
        codes(0),
        {},
        refused(r"0 sample\(s\) .* more rows", value=(0, 4)),
    ),
    "no columns": (
        codes(9, 0),
        {},
        refused(r"0 feature\(s\)", value=(9, 0)),
    ),
    "one row": (
        codes(1),
        {},
        refused(r"1 sample\(s\) .* pass more rows", value=(1, 4)),
    ),
    "no rows, DataFrame": (
        pd.DataFrame({"a": [], "b": []}),
        {},
        refused(r"0 sample\(s\)", value=(0, 2)),
    ),
    "no rows, sparse": (
        sparse.csr_array((0, 4)),
        {},
        refused(r"0 sample\(s\)", value=(0, 4)),
    ),
    "one dimension": (
        codes()[:, 0],
        {},
        refused("1D data of shape.* Reshape", value=(200,)),
    ),
    "constant": (
        constant(2),
        {},
        refused("in all 200 rows", column="x2", value=1, options=("drop_constant",)),
    ),
    "two constant": (
        constant(0, 3),
        {},
        refused(
            r"2 columns have one value .*'x0' \(1\), 'x3' \(1\)",
            column="x0",
            value=1,
            options=("drop_constant",),
        ),
    ),
    "all constant": (
        np.ones((9, 3), int),
        {},
        refused("all 3 columns are constant .* that vary", column="x0", value=1, options=()),
    ),
    "all constant, dropped": (
        np.ones((9, 3), int),
        {"drop_constant": True},
        refused("all 3 columns are constant", column="x0", value=1),
    ),
    "all missing": (
        all_missing(),
        {},
        refused("missing .* in all 200 rows", column="x1", options=("drop_constant",)),
    ),
    "infinity": (
        having(np.inf),
        {},
        refused("infinity.* replace the value", column="x2", row=3, value=np.inf),
    ),
    "negative code": (
        having(-1),
        {},
        refused("by NaN or None", column="x2", row=3, value=-1, options=("family",)),
    ),
    "constant floats": (
        codes() * 1e-15 + 0.5,
        {},
        refused(r"all 4 columns are constant \('x0' \(0.5\)", column="x0"),
    ),
    "float column as counts": (
        pd.DataFrame({"a": codes()[:, 0], "b": np.linspace(0.5, 1, 200)}),
        {"family": {"b": "poisson"}},
        refused("no whole number", column="b", row=0, value=0.5),
    ),
    "family of a column that is not there": (
        pd.DataFrame({"age": codes()[:, 0], "b": codes()[:, 1]}),
        {"family": {"agee": "gaussian"}},
        refused("did you mean 'age'", column="agee", option="family", value="agee"),
    ),
    "array of objects": (
        np.array([[{}], [{}]], dtype=object),
        {},
        refused("must be a string or a number", column="x0", value={}),
    ),
    "mixed object column": (
        pd.DataFrame({"a": [1, "u", 2, "v"], "b": [0, 1, 0, 1]}),
        {},
        refused("convert it to one type", column="a", value=("int", "str")),
    ),
    "objects without meaning": (
        pd.DataFrame({"a": [{1}, {2}], "b": [0, 1]}),
        {},
        refused("holds set values", column="a", value={1}),
    ),
    "complex": (
        codes() * 1j,
        {},
        refused("Complex data not supported"),
    ),
    "ragged": (
        [[0, 1], [1]],
        {},
        refused("not a rectangular table .* all rows one length"),
    ),
    "too few groups": (
        sparse.csr_array(codes()),
        {"groups": [0, 1]},
        refused("one label for each column", option="groups", value=2),
    ),
    "group out of range": (
        sparse.csr_array(codes()),
        {"groups": {"a": [0, 1, 2], "b": [7]}},
        refused("columns are integers 0..3", option="groups", value=7),
    ),
    "group twice": (
        sparse.csr_array(codes()),
        {"groups": {"a": [0, 1], "b": [1, 2, 3]}},
        refused("in two groups, 'a' and 'b'", option="groups", value=1),
    ),
    "group missing": (
        sparse.csr_array(codes()),
        {"groups": {"a": [0, 1], "b": [2]}},
        refused("add it to a group", option="groups", value=3),
    ),
    "groups of a DataFrame": (
        pd.DataFrame(codes()),
        {"groups": [0, 0, 1, 1]},
        refused("for a sparse or numeric matrix", option="groups", value="DataFrame"),
    ),
    "blocks of different length": (
        {"a": np.eye(3)[codes(9, 1, 3)[:, 0]], "b": np.eye(3)[codes(8, 1, 3)[:, 0]]},
        {},
        refused("'a' has 9, 'b' has 8; align", column="b", value=8),
    ),
    "fewer samples than states": (
        codes(3, 4, 9, seed=1),
        {"n_states": 4},
        refused("3 samples are fewer than", option="n_states", value=4),
    ),
}


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_named_and_leave_nothing_behind(case: str) -> None:
    X, options, expected = BAD_DATA[case]
    model = lt.LatentTree(random_state=0, n_jobs=1, **options)
    with refusing(expected):
        model.fit(X)
    assert [name for name in vars(model) if name.endswith("_")] == []


BAD_OPTIONS: dict[str, tuple[str, Any, str]] = {
    "n_states 1": ("n_states", 1, "must be an integer >= 2, 'auto' or 'bic', got 1"),
    "n_states 2.5": ("n_states", 2.5, "must be an integer >= 2, 'auto' or 'bic', got 2.5"),
    "n_states text": ("n_states", "many", "must be an integer >= 2, 'auto' or 'bic'"),
    "structure": ("structure", "upgma", "is unknown; choose one of ['lrg', 'chow_liu'"),
    "structure None": ("structure", None, "is unknown; choose one of"),
    "distances": ("distances", "euclid", "is unknown; choose one of"),
    "family": ("family", "real", "(did you mean 'gaussian'?); choose one of ['auto'"),
    "min_support high": ("min_support", 1.5, "is no probability"),
    "min_support low": ("min_support", -0.1, "is no probability"),
    "min_support NaN": ("min_support", np.nan, "is no probability"),
    "epsilon": ("epsilon", -1.0, "give a number above 0, or None"),
    "epsilon zero": ("epsilon", 0, "give a number above 0, or None"),
    "n_jobs": ("n_jobs", 0, "give a number of threads, or None for all cores"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_named(case: str) -> None:
    option, value, words = BAD_OPTIONS[case]
    data = make_latent_tree(9, n_samples=1000, random_state=0)
    model = lt.LatentTree(**({"random_state": 0} | {option: value}))
    with refusing(refused(re.escape(words), option=option, value=value)) as caught:
        model.fit(data.X)
    assert option in str(caught.value)
    assert not hasattr(model, "tree_")


@pytest.mark.parametrize("name", ["min_support", "epsilon"])
def test_options_of_the_wrong_type_are_named(name: str) -> None:
    with refusing(refused(f"{name}='high'", option=name, value="high")):
        learn(codes(), **{name: "high"})


def test_a_random_state_that_is_none() -> None:
    with pytest.raises(ValueError, match="'a' cannot be used to seed"):
        learn(codes(), random_state="a")


# ---- more states, or less signal, than the data have ---------------------------------


def test_more_states_than_the_data_show() -> None:
    data = make_latent_tree(9, 2, 10, n_samples=10_000, random_state=1)
    message = r"n_states=4, but the data show 2.*use n_states=2 or n_states='auto'"
    with pytest.raises(DetectionLimitError, match=message) as caught:
        learn(data.X, n_states=4, refine=None)
    check_fields(caught.value, refused("", option="n_states", value=4))
    grown = learn(data.X, n_states=4)
    assert grown.model_.dims[9:].max() == 4
    assert robinson_foulds(grown.tree_.collapse(0.5), data.tree) == 0


def test_below_the_detection_limit() -> None:
    """2,000 categories in 500 samples: nothing can be seen, and no tree is returned."""
    data = make_latent_tree(9, 3, 2000, n_samples=500, marginal="uniform", random_state=0)
    model = lt.LatentTree(n_states=3, random_state=0, n_jobs=1)
    with pytest.raises(DetectionLimitError, match=r"below the detection limit|the data show"):
        model.fit(data.X)
    assert not hasattr(model, "tree_")


def test_a_fit_that_fails_late_leaves_nothing_behind() -> None:
    data = make_latent_tree(9, 2, 10, n_samples=2000, random_state=1)
    model = lt.LatentTree(n_states=4, refine=None, random_state=0, n_jobs=1)
    with pytest.raises(DetectionLimitError):
        model.fit(data.X)
    assert [name for name in vars(model) if name.endswith("_")] == []


# ---- bad input for which a tree exists -----------------------------------------------


def test_one_column_is_a_tree_of_one_node() -> None:
    model = learn(codes(p=1))
    assert (model.tree_.n_observed, model.tree_.n_hidden) == (1, 0)
    assert model.diagnostics_.support.shape == (0,)


def test_two_columns_are_one_edge() -> None:
    data = make_latent_tree(9, n_samples=10_000, random_state=0)
    model = learn(data.X[:, :2])
    assert (model.tree_.n_hidden, len(model.tree_.edges)) == (0, 1)
    # the path between two siblings is 1.0, its standard error 0.024
    assert model.tree_.lengths[0] == pytest.approx(1.0, abs=0.12)


def test_two_independent_columns_have_no_support() -> None:
    model = learn(codes(n=2000, p=2))
    assert model.diagnostics_.support.tolist() == [0.0]


def test_a_constant_column_is_dropped_on_request() -> None:
    data = make_latent_tree(9, n_samples=10_000, random_state=0)
    X = np.column_stack([data.X, np.ones(len(data.X), dtype=int)])
    model = learn(X, drop_constant=True)
    assert model.tree_.same_topology(data.tree)


def with_copies() -> tuple[Any, lt.LatentTree]:
    data = make_latent_tree(9, n_samples=10_000, random_state=0)
    return data, learn(np.column_stack([data.X, data.X[:, 0], 1 - data.X[:, 4]]))


def test_duplicate_columns_stay_next_to_their_original() -> None:
    """A copy, and a copy with its two values exchanged."""
    _, model = with_copies()
    d = model.tree_.path_lengths()
    # damping of rare categories lengthens pendant edges by about 10 / n
    assert d[0, 9] < 0.01
    assert d[4, 10] < 0.01
    # nearest of all, so the rest of the tree is as without them
    assert d[0].argsort()[1] == 9
    assert d[4].argsort()[1] == 10


def test_duplicate_columns_are_reported() -> None:
    _, model = with_copies()
    assert model.diagnostics_.n_duplicates == 2
    assert any("copy" in message for message in model.diagnostics_.messages)


def test_independent_columns_are_joined_without_support() -> None:
    """The best of 28 noise correlations may stand out once in a while, not four times in six."""
    doubtful = [learn(codes(n=2000, p=8, seed=seed)).diagnostics_.support for seed in range(6)]
    assert sum((support == 0).all() for support in doubtful) >= 4


def test_independent_columns_are_no_more_parts_than_columns() -> None:
    for seed in range(6):
        report = learn(codes(n=2000, p=8, seed=seed)).diagnostics_
        assert report.n_components <= 8


def markov_chain(seed: int) -> NDArray[np.int64]:
    """x0 - x1 - x2, each a copy of its neighbour with 10% of flips, and an independent x3."""
    rng = np.random.default_rng(seed)
    b = rng.integers(0, 2, 20_000)
    a, c = (b ^ (rng.random(len(b)) < 0.1) for _ in range(2))
    return np.column_stack([a, b, c, rng.integers(0, 2, len(b))])


def test_a_chain_and_an_independent_column_keep_their_lengths() -> None:
    """d = -log 0.8 = 0.223 between neighbours, with a standard error of 0.005."""
    for seed in range(5):
        d = learn(markov_chain(seed)).tree_.path_lengths()
        assert d[0, 1] == pytest.approx(0.223, abs=0.025)
        assert d[1, 2] == pytest.approx(0.223, abs=0.025)


def test_an_independent_column_joined_to_an_observed_node_is_reported() -> None:
    """Once in a while noise stands out; not in five of ten."""
    parts = [learn(markov_chain(seed)).diagnostics_.n_components for seed in range(10)]
    assert parts.count(2) > 5


def two_independent_parts(seed: int) -> tuple[list[Any], lt.LatentTree]:
    parts = [
        make_latent_tree(9, n_samples=20_000, random_state=i) for i in (2 * seed, 2 * seed + 1)
    ]
    return parts, learn(np.column_stack([part.X for part in parts]))


def test_independent_parts_that_are_joined_are_reported() -> None:
    """Where the edge between two parts is seen to be one, all say so: support, count, message."""
    n_seen = 0
    for seed in range(8):
        _, model = two_independent_parts(seed)
        report = model.diagnostics_
        n_joins = int((report.support == 0).sum())
        assert report.n_components == n_joins + 1
        message = f"{n_joins + 1} parts without dependence"
        assert any(message in m for m in report.messages) == (n_joins > 0)
        n_seen += n_joins == 1
    assert n_seen >= 4


def test_independent_parts_are_seen_to_be_independent() -> None:
    """A join is kept for an edge once in twenty at most, so hardly ever twice in eight."""
    parts = [two_independent_parts(seed)[1].diagnostics_.n_components for seed in range(8)]
    assert parts.count(2) >= 7


def test_independent_parts_have_their_own_trees() -> None:
    for seed in range(5):
        parts, model = two_independent_parts(seed)
        assert model.tree_.n_hidden == sum(part.tree.n_hidden for part in parts)


def test_a_category_that_never_occurs_is_no_category() -> None:
    data = make_latent_tree(9, 3, n_samples=10_000, random_state=0)
    table = pd.DataFrame(data.X).astype("category")
    extra = table.apply(lambda column: column.cat.add_categories([7, 8]))
    a, b = learn(table, n_states=3), learn(extra, n_states=3)
    np.testing.assert_array_equal(a.tree_.lengths, b.tree_.lengths)


def test_a_category_seen_once_does_not_change_the_tree() -> None:
    data = make_latent_tree(9, 2, n_samples=10_000, random_state=0)
    X = data.X.copy()
    X[0, :3] = 2
    model = learn(X)
    assert model.tree_.same_topology(data.tree)


@pytest.mark.parametrize("row", [500, 501])
def test_a_variable_that_is_constant_in_half_the_samples(row: int) -> None:
    """Samples are halved by odd and even rows; a value seen once is in one of them only."""
    data = make_latent_tree(9, 3, n_samples=10_000, random_state=0)
    once = np.zeros(10_000, dtype=int)
    once[row] = 1
    tree = learn(np.column_stack([data.X, data.X[:, 0] + 3 * (data.X[:, 1] > 0), once])).tree_
    assert tree.n_observed == 11
    assert np.isfinite(tree.lengths).all()


def test_block_columns_that_never_occur() -> None:
    data = make_latent_tree(9, 3, n_samples=10_000, random_state=0)
    blocks = [np.eye(20)[data.X[:, i]] for i in range(9)]
    assert learn(blocks, n_states=3).tree_.same_topology(data.tree)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
def test_a_handful_of_rows_is_a_tree_or_a_named_error(n: int) -> None:
    X = make_latent_tree(9, n_samples=10_000, random_state=0).X[:n]
    try:
        tree = learn(X, drop_constant=True).tree_
    except DataError as error:
        assert error.remedy  # noqa: PT017
    else:
        assert np.isfinite(tree.lengths).all()


# ---- files ---------------------------------------------------------------------------


def docword(path: Path, header: str = "30\n4\n{nnz}", seed: int = 0) -> Path:
    present = np.argwhere(np.random.default_rng(seed).random((30, 4)) < 0.5)
    lines = [header.format(nnz=len(present))]
    lines += [f"{i + 1} {j + 1} 1" for i, j in present]
    path.write_text("\n".join(lines) + "\n")
    path.with_name(path.name.replace("docword", "vocab")).write_text("a\nb\nc\nd\n")
    return path


def refused_file(path: Path, tmp_path: Path) -> DataError:
    """The error that `read_table` raises, after the command line has said the same."""
    with pytest.raises(DataError) as caught:
        read_table(path)
    out = tmp_path / "out.ltree"
    result = CliRunner().invoke(app, ["fit", str(path), "-o", str(out)])
    assert result.exit_code == 2
    assert not out.exists()
    message = " ".join(str(caught.value).split()).replace("drop_constant=True", "--drop-constant")
    assert f"error: {message}" in result.stderr
    assert result.stderr.count("\n") == 1, "one line, no traceback"
    assert caught.value.place.path == str(path)
    return caught.value


def test_a_truncated_gzip(tmp_path: Path) -> None:
    plain = docword(tmp_path / "docword.zoo.txt")
    cut = tmp_path / "docword.cut.txt.gz"
    (tmp_path / "vocab.cut.txt").write_text("a\nb\nc\nd\n")
    whole = gzip.compress(plain.read_bytes())
    cut.write_bytes(whole[: len(whole) // 2])
    error = refused_file(cut, tmp_path)
    assert "cut" in error.what
    assert 0 < error.value < 53


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("30\n4\n999", refused("NNZ=999", line=3, value=53)),
        ("30\n4\n1", refused("NNZ=1 ", line=3, value=53)),
        ("2\n4\n{nnz}", refused("document 3 is out of range.* D=2", line=7, value=3)),
        ("30\n2\n{nnz}", refused("W=2", option="vocab", value=4)),
        ("thirty\n4\n{nnz}", refused("the whole number D", line=1, value="thirty")),
    ],
)
def test_a_docword_header_that_lies(tmp_path: Path, header: str, expected: Refused) -> None:
    error = refused_file(docword(tmp_path / "docword.lies.txt", header), tmp_path)
    assert re.search(expected.words, str(error))
    check_fields(error, expected)


def test_files_with_bad_values(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n0,\n1,?\n0,NA\n")
    check_fields(refused_file(path, tmp_path), refused("", column="b", value=None))
    path.write_text("a,b\n0,1\n0,0\n")
    check_fields(refused_file(path, tmp_path), refused("", column="a", value=0))
    path.write_text("")
    assert "empty" in refused_file(path, tmp_path).what


@pytest.mark.parametrize(
    ("option", "value"), [("--min-support", "1.5"), ("--states", "1"), ("--threads", "0")]
)
def test_options_out_of_range_on_the_command_line(tmp_path: Path, option: str, value: str) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n0,1\n1,0\n0,0\n")
    out = tmp_path / "out.ltree"
    result = CliRunner().invoke(app, ["fit", str(path), "-o", str(out), option, value])
    assert result.exit_code == 2
    assert option in result.stderr
    assert not out.exists()


def test_a_column_that_numbers_the_rows_is_refused() -> None:
    table = pd.DataFrame(codes(n=50, p=3)).assign(id=np.arange(50))
    words = "50 different values in 50 rows.*drop it"
    with refusing(refused(words, column="id", value=50, options=("family",))):
        learn(table)


def test_sparse_columns_can_be_named() -> None:
    data = make_latent_tree(5, n_samples=2000, random_state=0)
    words = ["ant", "bee", "cat", "dog", "eel"]
    model = learn(sparse.csr_array(data.X), names=words)
    assert model.tree_.observed_names == tuple(words)
