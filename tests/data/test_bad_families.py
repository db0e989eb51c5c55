"""Bad input of every family through `fit`: a named error that leaves nothing behind, or a model
that behaves as stated."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing

import latenttree as lt
from latenttree.errors import DataError
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import robinson_foulds

N = 2_000
GAUSSIANS = ("gaussian_spherical", "gaussian_diagonal", "gaussian_full", "gaussian_tied")


def learn(X: Any, weights: Any = None, **options: Any) -> lt.LatentTree:
    n_states = "auto" if options.get("hidden") == "gaussian" else 2
    settings = {"random_state": 0, "n_jobs": 1, "n_states": n_states} | options
    return lt.LatentTree(**settings).fit(X, sample_weight=weights)


def drawn(family: Any = "gaussian", **options: Any) -> LatentTreeData:
    settings = {"n_samples": N, "edge_length": 0.3, "random_state": 0, "family": family}
    return make_latent_tree(9, 2, 3, **(settings | options))


def codes(n: int = 300, p: int = 4) -> NDArray[np.int64]:
    return np.random.default_rng(0).integers(0, 2, (n, p))


def having(X: Any, row: int, column: int, value: float) -> Any:
    changed = X.astype(float)
    changed[row, column] = value
    return changed


def stored(value: float) -> sparse.csr_array:
    matrix = sparse.csr_array(codes().astype(float))
    matrix[2, 1] = value
    return matrix


def blocks(**others: Any) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {f"b{i}": rng.normal(size=(300, 2)) for i in range(3)} | others


NUMBERS = np.random.default_rng(2).normal(size=(300, 4))
COUNTS = pd.DataFrame(codes() + 1, columns=list("uvwx"))
ROUNDING = 2 + 1e-15 * np.random.default_rng(3).normal(size=(300, 2))

NEGATIVE = int((COUNTS["u"] < 2).argmax())
HALF = int((COUNTS["u"] == 1).argmax())

BAD: dict[str, tuple[Any, dict[str, Any], Refused]] = {
    "constant number": (
        having(NUMBERS, 0, 0, 0) * [1, 1, 0, 1],
        {},
        refused(
            r"one value \(0\) in all 300 rows", column="x2", value=0, options=("drop_constant",)
        ),
    ),
    "constant block": (
        blocks(still=np.full((300, 3), 7.5)),
        {},
        refused(r"\(\[7.5 7.5 7.5\]\) in all 300 rows", column="still", value=np.full(3, 7.5)),
    ),
    "a block that varies by rounding": (
        blocks(still=ROUNDING),
        {},
        refused(r"one value \(\[2. 2.\]\)", column="still"),
    ),
    "constant codes": (
        sparse.csr_array(np.column_stack([codes(), np.ones((300, 2))])),
        {"groups": [0, 0, 1, 1, 2, 2]},
        refused("one value", column="2", value=np.ones(2)),
    ),
    "one value among gaps": (
        np.where(np.arange(300)[:, None] * [0, 1, 0, 0] > 0, np.nan, NUMBERS),
        {},
        refused("or missing", column="x1", value=NUMBERS[0, 1]),
    ),
    "nothing but gaps": (
        having(NUMBERS, 0, 0, 0) * [1, np.nan, 1, 1],
        {},
        refused("in all 300 rows; drop the column", column="x1", value=None),
    ),
    "an empty group": (
        sparse.csr_array(codes()),
        {"groups": {"a": [0, 1], "b": [], "c": [2, 3]}},
        refused("give it columns or remove it", option="groups", value="b"),
    ),
    "a negative count": (
        COUNTS - 2,
        {"family": {"u": "poisson"}},
        refused("4 columns cannot be used", column="u", row=NEGATIVE, value=-1),
    ),
    "a negative count in a bag": (
        blocks(bag=codes(p=3) - 1),
        {"family": {"bag": "multinomial"}},
        refused("family 'multinomial'", column="bag[0]", row=1, value=-1),
    ),
    "a negative value in a sparse block": (
        stored(-3.0),
        {"groups": [0, 0, 1, 1]},
        refused("negative value", column="x1", row=2, value=-3),
    ),
    "half a count": (
        COUNTS / 2,
        {"family": "poisson"},
        refused("no whole number", column="u", row=HALF, value=0.5),
    ),
    "NaN in a sparse matrix": (
        stored(np.nan),
        {},
        refused("of a sparse matrix", column="x1", row=2, value=np.nan),
    ),
    "NaN in a sparse group": (
        stored(np.nan),
        {"groups": [0, 0, 1, 1]},
        refused("of a sparse matrix", column="x1", row=2, value=np.nan),
    ),
    "infinity in a sparse matrix": (
        stored(np.inf),
        {},
        refused("of a sparse matrix", column="x1", row=2, value=np.inf),
    ),
    "infinity": (
        having(NUMBERS, 5, 2, np.inf),
        {},
        refused(r"infinity \(inf\)", column="x2", row=5, value=np.inf),
    ),
    "minus infinity": (
        having(NUMBERS, 5, 2, -np.inf),
        {},
        refused(r"infinity \(-inf\)", column="x2", row=5, value=-np.inf),
    ),
    "infinity in a Gaussian tree": (
        having(NUMBERS, 5, 2, np.inf),
        {"hidden": "gaussian"},
        refused("infinity", column="x2", row=5, value=np.inf),
    ),
    "infinity in a block": (
        blocks(wild=having(NUMBERS, 3, 1, np.inf)),
        {},
        refused("infinity", column="wild[1]", row=3, value=np.inf),
    ),
    "an unknown family": (
        NUMBERS,
        {"family": "gausian"},
        refused("did you mean 'gaussian'", column=None, option="family", value="gausian"),
    ),
    "an unknown family of a column": (
        COUNTS,
        {"family": {"v": "binomial"}},
        refused("is unknown", column="v", option="family", value="binomial"),
    ),
    "a family of no column": (
        COUNTS,
        {"family": {"y": "poisson"}},
        refused("columns are 'u', 'v', 'w', 'x'", column="y", option="family", value="y"),
    ),
    "a family for text": (
        pd.DataFrame({"t": ["a", "b"] * 150, "u": codes()[:, 0], "v": codes()[:, 1]}),
        {"family": {"t": "gaussian"}},
        refused("needs numbers", column="t", option="family", value="a"),
    ),
    "text in a Gaussian tree": (
        pd.DataFrame({"t": ["a", "b"] * 150, "u": codes()[:, 0], "v": codes()[:, 1]}),
        {"hidden": "gaussian"},
        refused("holds text", column="t", option="hidden", value="a", options=("hidden", "hidden")),
    ),
    "a Gaussian tree without dimensions": (
        NUMBERS,
        {"hidden": "gaussian", "n_states": 0},
        refused("must be an integer >= 1", option="n_states", value=0),
    ),
    "more dimensions than numbers": (
        NUMBERS,
        {"hidden": "gaussian", "n_states": 2},
        refused("'x0' has 1 free dimension", option="n_states", value=2),
    ),
    "an unknown kind of hidden variables": (
        NUMBERS,
        {"hidden": "normal"},
        refused("is unknown", option="hidden", value="normal"),
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_data_are_named_and_leave_nothing_behind(case: str) -> None:
    X, options, expected = BAD[case]
    model = lt.LatentTree(random_state=0, n_jobs=1, **options)
    with refusing(expected):
        model.fit(X)
    assert [name for name in vars(model) if name.endswith("_")] == []


BAD_WEIGHTS: dict[str, tuple[Any, Refused]] = {
    "negative": (np.r_[1.0, -2.0, np.ones(298)], refused("weights must be", row=1, value=-2)),
    "all zero": (np.zeros(300), refused("all 300 sample weights are zero", value=0)),
    "too few": (np.ones(10), refused("but X has 300 rows", value=(10,))),
    "too many": (np.ones(301), refused("but X has 300 rows", value=(301,))),
    "a matrix": (np.ones((300, 1)), refused("has shape", value=(300, 1))),
    "NaN": (np.full(300, np.nan), refused("weights must be finite", row=0, value=np.nan)),
    "infinite": (np.r_[np.ones(299), np.inf], refused("must be finite", row=299, value=np.inf)),
    "text": (["one"] * 300, refused("must hold numbers", value=np.dtype("<U3"))),
    "probabilities": (np.full(300, 1 / 300), refused("frequencies.*rescale them to counts")),
}


@pytest.mark.parametrize("case", BAD_WEIGHTS)
@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_bad_weights_are_named_and_leave_nothing_behind(case: str, hidden: Any) -> None:
    weights, expected = BAD_WEIGHTS[case]
    model = lt.LatentTree(hidden=hidden)
    with refusing(expected, option="sample_weight"):
        model.fit(NUMBERS, sample_weight=weights)
    assert [name for name in vars(model) if name.endswith("_")] == []


def test_a_column_left_with_one_value_by_its_weights() -> None:
    X = np.column_stack([codes(), np.arange(300) < 100])
    with refusing(refused("has one value.* in all 100 rows", column="x4", value=1)):
        learn(X, (np.arange(300) < 100).astype(float))


# ---- input for which a model exists ----------------------------------------------------------


def test_floats_that_are_few_whole_numbers_are_categories_with_a_note() -> None:
    data = drawn()
    X = data.X.copy()
    X[:, 0] = np.clip(np.rint(X[:, 0] - X[:, 0].min()), 0, 9)
    model = learn(X)
    assert model.schema_.families[0] == "categorical"
    assert model.tree_.same_topology(data.tree)
    (message,) = model.diagnostics_.messages
    assert message.startswith("'x0' holds floats that are few whole numbers, read as categories;")
    requested = learn(X, family={"x0": "gaussian"})
    assert requested.schema_.families[0] == "gaussian"
    assert requested.diagnostics_.messages == []
    assert requested.tree_.same_topology(data.tree)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_a_coordinate_that_does_not_vary_changes_nothing(family: str) -> None:
    data = drawn(family)
    wider = {name: np.column_stack([x, np.full(N, 3.0)]) for name, x in data.X.items()}
    model = learn(wider, family=family)
    assert model.tree_.same_topology(data.tree)
    assert np.isfinite(model.score_samples(wider)).all()


@pytest.mark.parametrize("family", GAUSSIANS)
def test_a_nearly_constant_block_stands_by_itself(family: str) -> None:
    """Three samples that differ say nothing about the others, and do no harm to their tree."""
    data = drawn(family)
    rare = np.full((N, 3), 2.0)
    rare[:3] += 1.0
    X = data.X | {"rare": rare}
    model = learn(X, family=family)
    rest = list(data.tree.observed_names)
    assert robinson_foulds(restricted(model.tree_, rest), data.tree) == 0
    assert np.isfinite(model.score_samples(X)).all()


def restricted(tree: lt.Tree, names: list[str]) -> lt.Tree:
    """The tree over some of its variables."""
    d = tree.path_lengths()
    at = [tree.index(name) for name in names]
    return lt.tree_from_distances(d[np.ix_(at, at)], names=names)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_collinear_columns_in_a_block(family: str) -> None:
    """Coordinates that follow from others: likelihoods are finite, the tree is the same."""
    data = drawn(family)
    X = {name: np.column_stack([x, 2 * x[:, 0], x.sum(axis=1)]) for name, x in data.X.items()}
    model = learn(X, family=family)
    assert model.tree_.same_topology(data.tree)
    assert np.isfinite(model.score_samples(X)).all()
    drawn_again, _ = model.sample(50, random_state=0)
    assert all(np.isfinite(x).all() for x in drawn_again.values())


@pytest.mark.parametrize("kind", ["equal", "scaled", "turned"])
def test_a_column_that_follows_from_another_hangs_beside_it(kind: str) -> None:
    """An equal column is reported as a copy; one that is a linear function has the same place."""
    data = drawn()
    other = {"equal": 1, "scaled": 1e6, "turned": -1}[kind] * data.X[:, 0]
    X = np.column_stack([data.X, other])
    model = learn(X)
    d = model.tree_.path_lengths()
    assert d[0].argsort()[1] == 9
    assert d[0, 9] < 0.06  # as leaves of one hidden node, 0.05 away from it
    names = list(data.tree.observed_names)
    assert robinson_foulds(restricted(model.tree_, names), data.tree) == 0
    assert model.diagnostics_.n_duplicates == (kind == "equal")
    assert np.isfinite(model.score_samples(X)).all()


def test_equal_blocks_and_equal_groups() -> None:
    data = drawn("gaussian_full")
    model = learn(data.X | {"copy": data.X["x4"]}, family="gaussian_full")
    assert model.diagnostics_.n_duplicates == 1
    d = model.tree_.path_lengths()
    assert d[4].argsort()[1] == 9
    many = drawn("multihot")
    matrix = sparse.csr_array(np.column_stack([*many.X.values(), many.X["x0"]]))
    model = learn(matrix, groups=np.repeat([f"g{i}" for i in range(10)], 3))
    assert model.diagnostics_.n_duplicates == 1
    assert np.isfinite(model.score_samples(matrix)).all()


SCALES = np.array([1e-12, 1e12, 1.0, 1e-12, 1e12, 1e6, 1e-6, 1e12, 1e-12])


@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_extreme_scales_of_columns_change_nothing(hidden: Any) -> None:
    data = drawn()
    plain, scaled = (learn(X, hidden=hidden) for X in (data.X, data.X * SCALES))
    assert plain.tree_.same_topology(data.tree)
    assert scaled.tree_ == plain.tree_
    logs = scaled.score_samples(data.X * SCALES) + np.log(SCALES).sum()
    np.testing.assert_allclose(logs, plain.score_samples(data.X), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(
        scaled.transform(data.X * SCALES), plain.transform(data.X), atol=1e-6
    )


def test_the_largest_and_smallest_numbers() -> None:
    """Squares over- and underflow; nothing is squared before it is scaled."""
    data = drawn()
    scale = np.array([1e-300, 1e300] * 4 + [1.0])
    model = learn(data.X * scale)
    assert model.tree_.same_topology(data.tree)
    assert np.isfinite(model.score_samples(data.X * scale)).all()


@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_a_mean_far_from_zero_changes_nothing(hidden: Any) -> None:
    data = drawn()
    plain, moved = (learn(X, hidden=hidden) for X in (data.X, data.X + 1e8))
    assert moved.tree_.same_topology(plain.tree_)
    # 1e8 leaves eight digits of a number of size 1
    np.testing.assert_allclose(moved.score(data.X + 1e8), plain.score(data.X), atol=1e-4)


@pytest.mark.parametrize("family", GAUSSIANS)
def test_extreme_scales_of_blocks_change_nothing(family: str) -> None:
    data = drawn(family)
    scaled = {name: x * s for (name, x), s in zip(data.X.items(), SCALES, strict=True)}
    one, other = learn(data.X, family=family), learn(scaled, family=family)
    assert one.tree_.same_topology(data.tree)
    assert other.tree_.same_topology(data.tree)
    logs = other.score_samples(scaled) + 3 * np.log(SCALES).sum()
    np.testing.assert_allclose(logs, one.score_samples(data.X), rtol=1e-6, atol=1e-5)
    within = {name: x * [1e-12, 1.0, 1e12] for name, x in data.X.items()}
    third = learn(within, family=family)
    assert third.tree_.same_topology(data.tree)
    if family != "gaussian_spherical":  # whose coordinates share one variance
        np.testing.assert_allclose(third.score(within), one.score(data.X), rtol=1e-6)


@pytest.mark.parametrize("hidden", ["categorical", "gaussian"])
def test_a_column_missing_in_most_rows_is_reported(hidden: Any) -> None:
    data = drawn()
    X = data.X.copy()
    X[np.random.default_rng(0).random(N) < 0.6, 3] = np.nan
    n_known = int((~np.isnan(X[:, 3])).sum())
    model = learn(X, hidden=hidden)
    assert model.tree_.same_topology(data.tree)
    (message,) = [m for m in model.diagnostics_.messages if "missing" in m]
    assert f"distances rest on {n_known:,} rows" in message


def test_the_same_in_blocks() -> None:
    data = drawn("gaussian_diagonal")
    gaps = np.random.default_rng(0).random((N, 1)) < 0.6
    X = data.X | {"x3": np.where(gaps, np.nan, data.X["x3"])}
    model = learn(X)
    assert model.tree_.same_topology(data.tree)
    assert any("'x3' is missing in 6" in m for m in model.diagnostics_.messages)


@pytest.mark.parametrize("n", [2, 3, 5, 20])
@pytest.mark.parametrize(
    "family", ["gaussian", "poisson", "multinomial", "multihot", "gaussian_full", "tree"]
)
def test_a_handful_of_rows_is_a_model_or_a_named_error(n: int, family: str) -> None:
    options = {"hidden": "gaussian"} if family == "tree" else {"family": family}
    X = drawn("gaussian" if family == "tree" else family).X
    few = {name: x[:n] for name, x in X.items()} if isinstance(X, dict) else X[:n]
    try:
        model = learn(few, **options | {"max_iter": 500})
    except DataError:
        return  # any other error fails
    assert np.isfinite(model.tree_.lengths).all()
    assert np.isfinite(model.score_samples(few)).all()


def test_one_or_two_numbers_have_a_tree_and_no_model() -> None:
    X = drawn().X
    for p in (1, 2):
        model = learn(X[:, :p])
        assert model.tree_.n_observed == p
        assert not hasattr(model, "model_")
        assert any("no model" in message for message in model.diagnostics_.messages)
        with pytest.raises(DataError, match="this tree has no probabilities"):
            model.score(X[:, :p])


def test_empty_bags_and_rows_without_codes() -> None:
    """An empty bag says nothing; a group without codes is a state of its own."""
    data = drawn("multinomial")
    empty = np.random.default_rng(0).random((N, 1)) < 0.3
    X = {name: np.where(empty & (name != "x0"), 0, x) for name, x in data.X.items()}
    model = learn(X, family="multinomial")
    assert model.tree_.same_topology(data.tree)
    nothing = {name: np.zeros((1, 3)) for name in X}
    np.testing.assert_allclose(model.score_samples(nothing), 0, atol=1e-9)
    coded = drawn("multihot")
    fitted = learn(coded.X, family="multihot")
    none = {name: np.zeros((1, 3)) for name in coded.X}
    assert fitted.score_samples(none)[0] < -0.1
