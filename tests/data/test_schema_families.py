"""`Schema` of every family: numbers, counts, groups of codes and blocks, with gaps anywhere."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing
from tests.data.test_schema import damage, same

from latenttree.data import DataError, Schema, Table, as_table

RNG = np.random.default_rng(0)
N = 60
AGE = RNG.normal(40, 12, N)
VISITS = RNG.poisson(3.0, N)
COLOUR = np.array(["red", "green", "blue"])[RNG.integers(0, 3, N)]
LEVELS = ["low", "mid", "high", "top"]
LEVEL = RNG.integers(0, 3, N)  # "top" never occurs
REAL = RNG.normal(size=(N, 3)) * [1.0, 10.0, 100.0]
BAG = RNG.poisson(0.7, (N, 5))
CODES = (RNG.random((N, 4)) < 0.4).astype(int)
HOT = np.eye(3)[RNG.integers(0, 3, N)]

PANDAS = pd.DataFrame(
    {
        "age": AGE,
        "short": AGE.astype(np.float32) / 3,
        "visits": VISITS,
        "size": RNG.integers(100, 200, N).astype(np.int16),
        "maybe": pd.array(RNG.integers(0, 9, N), dtype="Int64"),
        "flag": AGE > 40,
        "colour": COLOUR,
        "level": pd.Categorical.from_codes(LEVEL, LEVELS, ordered=True),
        "dose": pd.Categorical(np.array([1, 2, 5])[LEVEL]),
    }
)
POLARS = pl.DataFrame(
    {
        "age": AGE,
        "short": pl.Series(AGE / 3, dtype=pl.Float32),
        "visits": pl.Series(VISITS, dtype=pl.UInt8),
        "size": pl.Series(VISITS + 100, dtype=pl.Int16),
        "colour": COLOUR.tolist(),
        "level": pl.Series([LEVELS[i] for i in LEVEL], dtype=pl.Enum(LEVELS)),
    }
)
SCORES = PANDAS.drop(columns=["colour", "dose"])
FAMILY = {"visits": "poisson", "size": "gaussian", "maybe": "gaussian", "dose": "gaussian"}
MIXED = {
    "age": AGE,
    "colour": COLOUR,
    "real": REAL,
    "bag": BAG,
    "codes": CODES,
    "hot": HOT,
    "thin": sparse.csr_array(BAG),
    "thin codes": sparse.csr_array(CODES),
}
GROUPS = {"real": [1, 4, 0], "bag": [2, 6, 3], "hot": [7, 5, 8]}
GROUPED = np.empty((N, 9))
GROUPED[:, GROUPS["real"]], GROUPED[:, GROUPS["bag"]], GROUPED[:, GROUPS["hot"]] = (
    REAL,
    BAG[:, :3],
    HOT,
)
COUNTS = np.hstack([BAG, CODES, HOT])
COUNT_GROUPS = {"bag": range(5), "codes": range(5, 9), "hot": range(9, 12)}
INPUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "floats": (np.column_stack([AGE, AGE**2, REAL]), {}),
    "short floats": (np.column_stack([AGE, AGE**2]).astype(np.float32), {}),
    "floats and codes": (np.column_stack([AGE, LEVEL, LEVEL % 2]), {}),
    "integers": (np.column_stack([VISITS, LEVEL]), {"family": {"x0": "gaussian"}}),
    "counts": (np.column_stack([VISITS, BAG]), {"family": "poisson"}),
    "pandas": (PANDAS, {"family": FAMILY}),
    "pandas ordinal": (PANDAS[["age", "level"]], {"family": {"level": "ordinal"}}),
    "polars": (POLARS, {"family": {"visits": "poisson", "size": "gaussian"}}),
    "pyarrow": (
        pa.table({"age": AGE, "visits": VISITS, "colour": COLOUR}),
        {"family": {"visits": "poisson"}},
    ),
    "blocks": (MIXED, {}),
    "list of blocks": (list(MIXED.values()), {}),
    "full": ([REAL, AGE, REAL[:, :2] ** 2], {"family": {"x0": "gaussian_full"}}),
    "sparse real": ([sparse.csr_array(REAL), AGE], {"family": "gaussian"}),
    "constants": ({"age": AGE, "same": np.tile([1.5, 2.5], (N, 1)), "real": REAL}, {}),
    "grouped": (GROUPED, {"groups": GROUPS}),
    "sparse grouped": (sparse.csr_array(COUNTS), {"groups": COUNT_GROUPS}),
    "sparse matrix grouped": (sparse.csc_matrix(COUNTS * 1.0), {"groups": COUNT_GROUPS}),
    "scores": (SCORES, {"scores": True}),
    "polar scores": (POLARS.drop("colour"), {"scores": True}),
    "array scores": (np.column_stack([VISITS, LEVEL, AGE > 40]), {"scores": True}),
    "block scores": ({"real": REAL, "codes": CODES, "n": VISITS}, {"scores": True}),
    "sparse scores": (sparse.csr_array(BAG), {"scores": True}),
    "table": (as_table(MIXED), {}),
    "table of columns": (as_table(PANDAS, family=FAMILY), {}),
}


def table_of(X: Any, **options: Any) -> Table:
    return as_table(X, drop_constant=True, **options)


def schema_of(X: Any, **options: Any) -> Schema:
    groups = options.get("groups")
    return Schema.of(X, table_of(X, **options), groups=groups)


def again(schema: Schema) -> Schema:
    return Schema.from_json(json.loads(json.dumps(schema.to_json(), allow_nan=False)))


def dense(values: Any) -> NDArray[Any]:
    return np.asarray(values.toarray() if sparse.issparse(values) else values)


def same_values(found: Any, expected: Any) -> None:
    """Arrays by variable: of the same form, with the same numbers and the same gaps."""
    assert set(found) == set(expected)
    for v, values in expected.items():
        assert sparse.issparse(found[v]) == sparse.issparse(values)
        assert found[v].shape == values.shape
        assert found[v].dtype.kind == "f"
        np.testing.assert_array_equal(dense(found[v]), dense(values))


def rows_of(X: Any, index: NDArray[Any]) -> Any:
    if isinstance(X, dict):
        return {name: rows_of(value, index) for name, value in X.items()}
    if isinstance(X, list):
        return [rows_of(value, index) for value in X]
    if isinstance(X, Table):
        return X.subset_rows(index)
    if isinstance(X, pa.Table):
        return X.take(index)
    return X.iloc[index] if isinstance(X, pd.DataFrame) else X[index]


@pytest.mark.parametrize("form", INPUTS)
def test_the_training_data_come_back(form: str) -> None:
    """`rows` gives the values of training, `decode` the input, and both survive JSON."""
    X, options = INPUTS[form]
    table = table_of(X, **options)
    assert table.values is not None
    first = Schema.of(X, table, groups=options.get("groups"))
    assert first.families == table.families
    for schema in (first, again(first)):
        rows = schema.rows(X)
        np.testing.assert_array_equal(rows.take(0, N), table.values.codes)
        same_values(rows.arrays, table.values.arrays)
        part = {v: x[10:20] for v, x in table.values.arrays.items()}
        same_values(rows.arrays_at(10, 20), part)
        result = schema.decode(rows.take(0, N), rows.arrays)
        if isinstance(X, Table):
            assert result.families == X.families
            assert result.kind == X.kind
            same_values(result.values.arrays, X.values.arrays)
        elif isinstance(X, sparse.spmatrix):
            same(result, sparse.csr_matrix(X))
        else:
            same(result, X)


@pytest.mark.parametrize("form", INPUTS)
def test_a_few_rows_are_read_alike(form: str) -> None:
    """Also a single row, which alone would look constant, or like another family."""
    X, options = INPUTS[form]
    schema = schema_of(X, **options)
    whole = schema.rows(X)
    for index in (np.array([3]), np.array([7, 5, 7])):
        part = rows_of(sparse.csr_array(X) if sparse.issparse(X) else X, index)
        rows = schema.rows(part)
        np.testing.assert_array_equal(rows.take(0, len(index)), whole.take(0, N)[index])
        same_values(rows.arrays, {v: x[index] for v, x in whole.arrays.items()})
        schema.decode(rows.take(0, len(index)), rows.arrays)


@pytest.mark.parametrize("form", INPUTS)
def test_unused_variables_are_not_read(form: str) -> None:
    X, options = INPUTS[form]
    schema = schema_of(X, **options)
    whole = schema.rows(X)
    for v, name in enumerate(schema.names):
        rows = schema.rows(X, unused=[name])
        same_values(rows.arrays, {u: x for u, x in whole.arrays.items() if u != v})
        codes = whole.take(0, N).copy()
        codes[:, v] = -1
        np.testing.assert_array_equal(rows.take(0, N), codes)


# --- gaps --------------------------------------------------------------------------------


def test_gaps_of_a_frame() -> None:
    """NaN, None and pandas.NA in columns of every type."""
    rng = np.random.default_rng(0)
    schema = schema_of(PANDAS, family=FAMILY)
    mask = rng.random(PANDAS.shape) < 0.3
    mask[0] = True  # a row of which nothing is known
    expected = schema.rows(PANDAS)
    for hole in (None, np.nan, pd.NA):
        X = PANDAS.astype(object).where(~mask, hole)
        rows = schema.rows(X)
        for v in range(schema.n_vars):
            if schema.coded[v]:
                codes = np.where(mask[:, v], -1, expected.take(0, N)[:, v])
                np.testing.assert_array_equal(rows.take(0, N)[:, v], codes)
            else:
                values = np.where(mask[:, v], np.nan, expected.arrays[v])
                np.testing.assert_array_equal(rows.arrays[v], values)
    X = PANDAS.assign(maybe=PANDAS["maybe"].where(~mask[:, 4], pd.NA), level=None)
    rows = schema.rows(X)
    assert rows.arrays[4].dtype == np.float64
    np.testing.assert_array_equal(np.isnan(rows.arrays[4]), mask[:, 4])
    assert (rows.take(0, N)[:, 7] == -1).all()


def test_gaps_of_polars() -> None:
    schema = schema_of(POLARS, family={"visits": "poisson", "size": "gaussian"})
    expected = schema.rows(POLARS).arrays
    gone = pl.int_range(pl.len()) == 3
    X = POLARS.with_columns(pl.when(gone).then(None).otherwise(pl.all()).name.keep())
    rows = schema.rows(X)
    assert (rows.take(0, N)[3] == -1).all()
    for v, values in expected.items():
        np.testing.assert_array_equal(rows.arrays[v], np.where(np.arange(N) == 3, np.nan, values))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, object])
def test_gaps_of_arrays(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([AGE, LEVEL, VISITS * 1.5])
    schema = schema_of(X)
    mask = np.asarray(rng.random(X.shape) < 0.3)
    values = X.astype(dtype)
    masked = np.ma.array(values.copy(), mask=mask)
    values[mask] = np.nan
    for Y in (values, masked):
        rows = schema.rows(Y)
        np.testing.assert_array_equal(rows.take(0, N)[:, 1], np.where(mask[:, 1], -1, LEVEL))
        for v in (0, 2):
            expected = np.where(mask[:, v], np.nan, X[:, v].astype(dtype).astype(float))
            np.testing.assert_array_equal(rows.arrays[v], expected)


def test_gaps_of_blocks() -> None:
    """Single coordinates may be missing; a sparse block with gaps becomes dense."""
    rng = np.random.default_rng(0)
    schema = schema_of(MIXED)
    mask = rng.random(REAL.shape) < 0.3
    holes = np.where(rng.random(BAG.shape) < 0.3, np.nan, BAG)
    X: dict[str, Any] = MIXED | {
        "real": np.where(mask, np.nan, REAL),
        "codes": np.ma.array(CODES, mask=rng.random(CODES.shape) < 0.3),
        "thin": sparse.csr_array(holes),
    }
    for Y in (X, list(X.values())):
        if isinstance(Y, dict):
            rows = schema.rows(Y)
        else:
            with pytest.warns(UserWarning, match="does not have valid feature names"):
                rows = schema.rows(Y)
        np.testing.assert_array_equal(rows.arrays[2], X["real"])
        np.testing.assert_array_equal(rows.arrays[4], X["codes"].astype(float).filled(np.nan))
        np.testing.assert_array_equal(rows.arrays[6], holes)
    schema = schema_of(GROUPED, groups=GROUPS)
    gaps = np.ma.array(GROUPED, mask=rng.random(GROUPED.shape) < 0.2)
    filled = gaps.filled(np.nan)
    hidden = np.ma.array(GROUPED, mask=gaps.mask & ~np.isin(np.arange(9), GROUPS["hot"]))
    for Z in (filled, hidden):
        rows = schema.rows(Z)
        for v, name in enumerate(schema.names[:2]):
            np.testing.assert_array_equal(rows.arrays[v], filled[:, GROUPS[name]])


def test_gaps_in_training_and_in_tables() -> None:
    rng = np.random.default_rng(0)
    X = PANDAS[["age", "visits", "colour"]].astype({"visits": float})
    X = X.where(rng.random(X.shape) < 0.8)
    table = as_table(X, family={"visits": "poisson"})
    assert table.values is not None
    schema = Schema.of(X, table)
    for Y in (X, table):
        rows = schema.rows(Y)
        np.testing.assert_array_equal(rows.take(0, N), table.values.codes)
        same_values(rows.arrays, table.values.arrays)
    plain = pd.DataFrame({"a": COLOUR, "b": LEVEL.astype(object)}).where(rng.random((N, 2)) < 0.7)
    coded = as_table(plain, family="categorical")
    assert coded.values is None
    np.testing.assert_array_equal(Schema.of(plain, coded).encode(plain), coded.codes)
    np.testing.assert_array_equal(Schema.of(plain, coded).encode(coded), coded.codes)
    hot = as_table({"hot": np.where(np.arange(N)[:, None] < 3, np.nan, HOT), "c": COLOUR})
    np.testing.assert_array_equal(Schema.of(hot, hot).encode(hot)[:3, 0], [-1, -1, -1])


def test_the_value_of_a_dropped_column_with_gaps() -> None:
    X = pd.DataFrame({"a": AGE, "b": LEVEL, "c": 2.5, "d": "s"})
    X.loc[:4, "c"] = np.nan
    X.loc[:2, "d"] = None
    schema = schema_of(X)
    assert schema.dropped == {"c", "d"}
    rows = schema.rows(X)
    result = schema.decode(rows.take(0, N), rows.arrays, like=X)
    assert (result["c"] == 2.5).all()
    assert (result["d"] == "s").all()
    block = np.tile([1.0, 2.0], (N, 1))
    block[0, 1] = np.nan
    blocks = {"age": AGE, "same": block, "real": REAL}
    schema = schema_of(blocks)
    rows = schema.rows(blocks)
    np.testing.assert_array_equal(schema.decode(rows.take(0, N), rows.arrays)["same"][0], [1, 2])


# --- the right form ----------------------------------------------------------------------


def test_blocks_have_the_form_of_training() -> None:
    schema = schema_of(MIXED)
    other = MIXED | {"bag": sparse.csc_array(BAG), "thin": BAG * 1.0, "real": REAL.astype(object)}
    same_values(schema.rows(other).arrays, schema.rows(MIXED).arrays)


def test_numbers_are_read_whatever_their_type() -> None:
    schema = schema_of(PANDAS[["age", "visits"]], family={"age": "gaussian", "visits": "poisson"})
    for dtype in (int, np.uint8, np.float32, object, "Int64", "Float64"):
        X = pd.DataFrame({"age": AGE.astype(int) % 50, "visits": VISITS}).astype(dtype)
        np.testing.assert_array_equal(schema.rows(X).arrays[1], VISITS)
    flags = pd.DataFrame({"age": AGE > 40, "visits": VISITS > 1})
    np.testing.assert_array_equal(schema.rows(flags).arrays[0], AGE > 40)


def test_numbers_are_rounded_to_the_type_of_their_column() -> None:
    schema = schema_of(SCORES, scores=True)
    values = {v: np.full(2, 2.6) for v in range(schema.n_vars)}
    values[3] = np.array([1e9, -1e9])  # int16
    result = schema.decode(np.full((2, schema.n_vars), -1), values)
    assert (result.dtypes == SCORES.dtypes).all()
    assert result["age"].tolist() == [2.6, 2.6]
    assert result["visits"].tolist() == [3, 3]
    assert result["size"].tolist() == [32767, -32768]
    assert result["maybe"].tolist() == [3, 3]
    assert result["flag"].tolist() == [True, True]
    assert result["level"].tolist() == ["top", "top"]
    values[schema.names.index("level")] = np.array([-4.0, 0.6])
    assert schema.decode(np.full((2, 7), -1), values)["level"].tolist() == ["low", "mid"]
    schema = schema_of(PANDAS, family=FAMILY)
    rows = schema.rows(PANDAS.iloc[:3])
    dose = dict(rows.arrays) | {8: np.array([3.4, 3.6, -1.0])}
    assert schema.decode(rows.take(0, 3), dose)["dose"].tolist() == [2, 5, 1]
    counts = COUNTS[:, :9].astype(np.int64)
    schema = schema_of(counts, groups={"bag": range(5), "codes": range(5, 9)})
    filled = {0: np.full((2, 5), 1.7), 1: np.ones((2, 4))}
    result = schema.decode(np.full((2, 2), -1), filled)
    assert result.dtype == np.int64
    assert (result[:, :5] == 2).all()


def test_ordered_categories_keep_their_order() -> None:
    schema = schema_of(PANDAS[["age", "level"]], family={"level": "ordinal"})
    assert schema.labels[1].tolist() == LEVELS[:3]
    np.testing.assert_array_equal(schema.encode(PANDAS[["age", "level"]])[:, 1], LEVEL)
    with refusing(refused("unseen category", column="level", row=0, value="top")):
        schema.encode(PANDAS[["age", "level"]].assign(level="top"))
    scores = schema_of(SCORES, scores=True)
    assert (scores.rows(SCORES.assign(level="top")).arrays[6] == 3).all()
    with refusing(refused("unseen category", column="level", row=0, value="huge")):
        scores.rows(SCORES.assign(level="huge"))


def test_ordinal_tables_as_scores() -> None:
    ordinal = as_table(PANDAS[["age", "level"]], family={"level": "ordinal"})
    schema = again(Schema.of(ordinal, as_table(ordinal, scores=True)))
    np.testing.assert_array_equal(schema.rows(ordinal).arrays[1], LEVEL)
    assert schema.families == ("gaussian", "gaussian")


# --- bad values --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("age", np.inf, "values must be finite"),
        ("age", "old", "numbers of family 'gaussian'"),
        ("visits", -1, "which holds counts: whole numbers"),
        ("visits", 0.5, "which holds counts: whole numbers"),
        ("visits", np.inf, "values must be finite"),
        ("visits", "3", r"astype\(float\)"),
        ("colour", 3.0, "number 3.0"),
        ("level", "huge", "unseen category"),
    ],
)
def test_bad_numbers_of_a_frame(name: str, value: Any, words: str) -> None:
    schema = schema_of(PANDAS, family=FAMILY)
    X = PANDAS.astype({name: object})
    X.loc[5, name] = value
    X.loc[2, name] = None  # rows are counted with the missing ones
    with refusing(refused(words, column=name, row=5, value=value)):
        schema.rows(X)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("real", -np.inf, "values must be finite"),
        ("bag", -2, "which holds counts"),
        ("bag", 0.25, "which holds counts"),
        ("codes", 2, "which holds codes that are 0 or 1"),
        ("codes", 0.5, "which holds codes that are 0 or 1"),
    ],
)
@pytest.mark.parametrize("thin", [False, True])
def test_bad_values_of_a_block(name: str, value: float, words: str, thin: bool) -> None:
    block = np.array(MIXED[name], dtype=float)
    block[7, 1] = value
    X = MIXED | {name: sparse.csr_array(block) if thin else block}
    with refusing(refused(words, column=f"{name}[1]", row=7, value=value)):
        schema_of(MIXED).rows(X)


@pytest.mark.parametrize("thin", [False, True])
def test_a_block_that_is_not_one_hot(thin: bool) -> None:
    block = np.array(MIXED["hot"], dtype=float)
    block[7, 1] = 2
    X = MIXED | {"hot": sparse.csr_array(block) if thin else block}
    with refusing(refused("not one-hot", column="hot", row=7, value=block[7])):
        schema_of(MIXED).rows(X)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"real": REAL[:, :2]}, refused(r"\(n, 3\)", column="real", value=(60, 2))),
        ({"real": AGE}, refused(r"\(n, 3\)", column="real", value=(60,))),
        ({"age": REAL}, refused("a vector of n numbers", column="age", value=(60, 3))),
        ({"real": REAL.astype(str)}, refused("must be numeric", column="real")),
        (
            {"real": REAL.astype(str).astype(object)},
            refused("convert the column", column="real[0]", row=0, value=str(REAL[0, 0])),
        ),
        ({"age": AGE.astype("datetime64[s]")}, refused("datetime", column="age", row=0)),
    ],
)
def test_wrong_forms(change: dict[str, Any], expected: Refused) -> None:
    with refusing(expected):
        schema_of(MIXED).rows(MIXED | change)


def test_a_sparse_matrix_for_a_table_of_numbers() -> None:
    schema = schema_of(np.column_stack([AGE, LEVEL]))
    with refusing(refused(r"pass X.toarray\(\)", value="csr_array")):
        schema.rows(sparse.csr_array(np.column_stack([AGE, LEVEL])))
    schema = schema_of(np.column_stack([AGE, AGE**2]))
    rows = schema.rows(sparse.csr_array(np.column_stack([AGE, AGE**2])))
    np.testing.assert_array_equal(rows.arrays[1], AGE**2)


def test_only_known_values_can_be_decoded() -> None:
    schema = schema_of(MIXED)
    rows = schema.rows(MIXED)
    codes, arrays = rows.take(0, N), dict(rows.arrays)
    with refusing(refused("have none", column="age", value=None)):
        schema.decode(codes)
    with refusing(refused("have shape", column="real", value=(60, 2))):
        schema.decode(codes, arrays | {2: REAL[:, :2]})
    with refusing(refused("hold NaN", column="age", value=np.nan)):
        schema.decode(codes, arrays | {0: AGE * np.nan})
    with refusing(refused("only known values", column="colour", row=0, value=-1)):
        schema.decode(np.full_like(codes, -1), arrays)


# --- JSON --------------------------------------------------------------------------------


def test_files_of_an_older_version_are_categorical() -> None:
    X = PANDAS[["colour", "flag"]]
    record = schema_of(X).to_json()
    del record["families"]
    schema = Schema.from_json(record)
    assert schema.families == ("categorical", "categorical")
    np.testing.assert_array_equal(schema.encode(X), schema_of(X).encode(X))
    grouped = np.hstack([HOT, HOT[:, ::-1]])
    record = schema_of(grouped, groups=[0, 0, 0, 1, 1, 1]).to_json()
    del record["families"]
    for column in record["columns"]:
        column["form"] = "vector"
    schema = Schema.from_json(record)
    codes = schema.encode(grouped)
    np.testing.assert_array_equal(codes[:, 0], HOT.argmax(axis=1))
    np.testing.assert_array_equal(schema.decode(codes), grouped)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("families", 0), "normal", "of the family 'normal'"),
        (("families", 0), 3, "holds int, not str"),
        (("families",), [], "0 families for 9 names"),
        (("families",), "gaussian", "'families' is str, not list"),
        (("families", 0), "categorical", "variable 'age' has no categories"),
        (("families", 6), "gaussian", "'colour' has categories, but is of the family"),
        (("dims", 0), 2, "'age' is a number of dimension 2"),
        (("columns", 0, "form"), "dense", "has the type 'double'"),
    ],
)
def test_damaged_families_are_refused(path: Any, value: Any, message: str) -> None:
    record = json.loads(json.dumps(schema_of(PANDAS, family=FAMILY).to_json()))
    if path == ("columns", 0, "form"):
        record["columns"][0]["dtype"] = "double"
    with pytest.raises(DataError, match=message) as error:
        Schema.from_json(damage(record, path, value))
    assert "damaged" in str(error.value)
