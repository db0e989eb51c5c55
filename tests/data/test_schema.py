"""`Schema`: new data are read like the training table, whatever container they come in."""

from __future__ import annotations

import copy
import json
import time
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing

from latenttree.data import DataError, Schema, Table, as_table, one_hot_codes

FRUIT = np.array([["apple", "red"], ["pear", "green"], ["apple", "green"], ["fig", "red"]])
FRUIT_CODES = np.array([[0, 1], [2, 0], [0, 0], [1, 1]])


def schema_of(X: Any, groups: Any = None, names: Any = None, drop_constant: bool = True) -> Schema:
    table = as_table(X, groups=groups, names=names, drop_constant=drop_constant)
    return Schema.of(X, table, groups=groups, names=names)


def codes_of(table: Table) -> NDArray[Any]:
    """What training made of the data; sparse binary tables and one-hot blocks as codes."""
    if table.codes is not None:
        return table.codes
    assert table.matrix is not None
    if table.kind == "sparse_binary":
        return np.asarray(table.matrix.toarray()).astype(int)
    found = one_hot_codes(table)
    assert found is not None
    return found


RNG = np.random.default_rng(0)
NUMBERS = RNG.integers(0, 4, (40, 3))
BITS = RNG.integers(0, 2, (40, 5))
PANDAS = pd.DataFrame(
    {
        "n": NUMBERS[:, 0] + 5,
        "flag": NUMBERS[:, 1] > 1,
        "text": np.array(["b", "a", "d", "c"])[NUMBERS[:, 2]],
        "level": pd.Categorical.from_codes(
            NUMBERS[:, 0], ["low", "mid", "high", "top"], ordered=True
        ),
        "nullable": pd.array(NUMBERS[:, 1], dtype="Int64"),
        "truth": pd.array(NUMBERS[:, 2] > 1, dtype="boolean"),
        "things": pd.Series(np.array(["u", "v", "w", "x"])[NUMBERS[:, 1]], dtype=object),
    }
)
POLARS = pl.DataFrame(
    {
        "n": pl.Series(NUMBERS[:, 0], dtype=pl.Int16),
        "flag": NUMBERS[:, 1] > 1,
        "text": np.array(["b", "a", "d", "c"])[NUMBERS[:, 2]].tolist(),
        "level": pl.Series(
            np.array(["low", "mid", "high", "top"])[NUMBERS[:, 0]].tolist(),
            dtype=pl.Enum(["low", "mid", "high", "top"]),
        ),
        "kind": pl.Series(np.array(list("pqrs"))[NUMBERS[:, 1]].tolist(), dtype=pl.Categorical),
    }
)
ONE_HOT = [np.eye(4)[NUMBERS[:, i]] for i in range(3)]
INPUTS: dict[str, tuple[Any, dict[str, Any]]] = {
    "integers": (NUMBERS, {}),
    "offset integers": (NUMBERS.astype(np.int16) * 1000 + 7, {}),
    "uint64": (NUMBERS.astype(np.uint64) + np.uint64(2**63), {}),
    "far apart": (NUMBERS * 10**12, {}),
    "floats": (NUMBERS * 2.0, {}),
    "floats with a constant": (np.column_stack([NUMBERS * 1.0, np.full(40, 7.0)]), {}),
    "pandas floats": (PANDAS.assign(n=NUMBERS[:, 0] * 1.0, same=2.0), {}),
    "polars floats": (POLARS.with_columns(n=NUMBERS[:, 0] * 1.0, same=pl.lit(2.0)), {}),
    "booleans": (BITS.astype(bool), {}),
    "strings": (np.array(["x", "yy", "z", "zzz"])[NUMBERS], {}),
    "bytes": (np.array([b"x", b"yy", b"z", b"zzz"])[NUMBERS], {}),
    "array with names": (NUMBERS, {"names": ["a", "b", "c"]}),
    "array with a constant": (np.column_stack([NUMBERS[:, :1], 0 * BITS[:, :1] + 9, BITS]), {}),
    "pandas": (PANDAS, {}),
    "pandas renamed": (PANDAS, {"names": list("ABCDEFG")}),
    "pandas with a constant": (PANDAS.assign(same="s", last=NUMBERS[:, 2]), {}),
    "pandas with numbered columns": (pd.DataFrame(NUMBERS), {}),
    "polars": (POLARS, {}),
    "polars with a constant": (POLARS.with_columns(same=pl.lit(True)), {}),
    "pyarrow": (pa.table({"a": NUMBERS[:, 0], "b": NUMBERS[:, 1]}), {}),
    "dict of vectors": ({"a": NUMBERS[:, 0], "b": FRUIT[NUMBERS[:, 1], 0]}, {}),
    "list of vectors": ([NUMBERS[:, 0], FRUIT[NUMBERS[:, 1], 0]], {}),
    "sparse array": (sparse.csr_array(BITS), {}),
    "sparse matrix": (sparse.csc_matrix(BITS * 3.0), {}),
    "sparse with constants": (
        sparse.csr_array(np.column_stack([0 * BITS[:, :1], BITS, 0 * BITS[:, :1] + 1])),
        {},
    ),
    "dense blocks": (ONE_HOT, {}),
    "sparse blocks": ([sparse.csr_array(b) for b in ONE_HOT], {}),
    "dict of blocks": ({"a": ONE_HOT[0], "b": NUMBERS[:, 1] + 3, "c": ONE_HOT[2] * 1}, {}),
    "blocks with a constant": ([ONE_HOT[0], np.tile([0.0, 1.0], (40, 1)), ONE_HOT[1]], {}),
    "groups": (sparse.csr_array(np.hstack(ONE_HOT)), {"groups": np.repeat(["a", "b", "c"], 4)}),
    "mixed groups": (
        np.hstack(ONE_HOT)[:, ::-1],
        {"groups": {"u": [11, 1, 5, 9], "v": [0, 2, 3, 4], "w": [10, 8, 7, 6]}},
    ),
    "table": (as_table(NUMBERS + 3), {}),
    "sparse binary table": (as_table(sparse.csr_array(BITS)), {}),
}
INPUTS["mixed groups"] = (
    np.hstack([ONE_HOT[0], ONE_HOT[1][:, ::-1]])[:, [0, 7, 1, 6, 2, 5, 3, 4]],
    {"groups": {"u": [0, 2, 4, 6], "v": [1, 3, 5, 7]}},
)


def same(a: Any, b: Any) -> None:
    """Equal values, in the same container with the same types."""
    assert type(a) is type(b)
    if isinstance(a, pd.DataFrame):
        pd.testing.assert_frame_equal(a, b)
    elif isinstance(a, pl.DataFrame):
        assert a.schema == b.schema
        assert a.equals(b)
    elif isinstance(a, pa.Table):
        assert a.equals(b)
    elif isinstance(a, dict):
        assert list(a) == list(b)
        same(list(a.values()), list(b.values()))
    elif isinstance(a, list):
        for x, y in zip(a, b, strict=True):
            same(x, y)
    elif isinstance(a, Table):
        assert a.names == b.names
        np.testing.assert_array_equal(codes_of(a), codes_of(b))
    elif sparse.issparse(a):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a.toarray(), b.toarray())
    else:
        assert a.dtype.kind == b.dtype.kind
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("form", INPUTS)
def test_the_training_data_come_back(form: str) -> None:
    """encode gives the codes of training, decode the input, and both survive JSON."""
    X, options = INPUTS[form]
    table = as_table(X, drop_constant=True, **options) if not isinstance(X, Table) else X
    first = Schema.of(X, table, **options)
    second = Schema.from_json(json.loads(json.dumps(first.to_json(), allow_nan=False)))
    expected = X
    if form == "sparse matrix":
        expected = sparse.csr_matrix(X > 0).astype(float)
    for schema in (first, second):
        codes = schema.encode(X)
        assert codes.dtype == np.int8
        np.testing.assert_array_equal(codes, codes_of(table))
        same(schema.decode(codes), expected)
        np.testing.assert_array_equal(schema.encode(schema.decode(codes)), codes)
        assert schema.names == table.names
        assert schema.dropped >= set(table.dropped)


@pytest.mark.parametrize("form", INPUTS)
def test_one_row_is_enough_and_none_is_not(form: str) -> None:
    X, options = INPUTS[form]
    if isinstance(X, Table):
        return
    schema = schema_of(X, **options)
    cut = (lambda a, n: {k: v[:n] for k, v in a.items()}) if isinstance(X, dict) else None
    if isinstance(X, list):
        cut = lambda a, n: [v[:n] for v in a]  # noqa: E731
    if isinstance(X, pa.Table):
        cut = lambda a, n: a.slice(0, n)  # noqa: E731
    cut = cut or (lambda a, n: a[:n])
    np.testing.assert_array_equal(schema.encode(cut(X, 1)), schema.encode(X)[:1])
    with pytest.raises(DataError, match=r"0 sample\(s\) \(shape=\(0, \d+\)\) while a minimum of 1"):
        schema.encode(cut(X, 0))


# --- missing values ------------------------------------------------------------------


def test_missing_values_of_every_kind() -> None:
    text = pd.DataFrame(FRUIT, columns=["fruit", "colour"])
    schema = schema_of(text)
    gaps = FRUIT_CODES.copy()
    gaps[1, 0] = gaps[3, 1] = -1
    holes: list[Any] = [np.nan, None, pd.NA, pd.NaT, float("nan")]
    for hole in holes:
        objects = text.astype(object)
        objects.iloc[1, 0] = objects.iloc[3, 1] = hole
        np.testing.assert_array_equal(schema.encode(objects), gaps)
    # "str" makes the text "None" of a gap before pandas 3
    for dtype in (
        "string",
        "category",
        *(["str"] if int(pd.__version__.split(".")[0]) >= 3 else []),
    ):
        frame = text.where(gaps == FRUIT_CODES, None).astype(dtype)
        np.testing.assert_array_equal(schema.encode(frame), gaps)
    table = pl.DataFrame(
        {"fruit": ["apple", None, "apple", "fig"], "colour": ["red", "green", "green", None]}
    )
    np.testing.assert_array_equal(schema.encode(table), gaps)
    cast = table.with_columns(pl.all().cast(pl.Categorical))
    np.testing.assert_array_equal(schema.encode(cast), gaps)


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32, np.float64, object])
def test_missing_numbers(dtype: Any) -> None:
    rng = np.random.default_rng(0)
    schema = schema_of(NUMBERS + 2)
    mask = rng.random(NUMBERS.shape) < 0.3
    expected = np.where(mask, -1, NUMBERS)
    masked = np.ma.array((NUMBERS + 2).astype(dtype), mask=mask)
    masked.data[mask] = 99  # whatever hides behind the mask
    np.testing.assert_array_equal(schema.encode(masked), expected)
    if np.dtype(dtype).kind in "fO":
        values = (NUMBERS + 2).astype(dtype)
        values[mask] = np.nan
        np.testing.assert_array_equal(schema.encode(values), expected)
        np.testing.assert_array_equal(schema.encode(pd.DataFrame(values)), expected)


@pytest.mark.parametrize("column", ["n", "flag", "text", "level", "nullable", "truth", "things"])
def test_missing_in_a_column_of_a_frame(column: str) -> None:
    schema = schema_of(PANDAS)
    X = PANDAS.copy()
    if X[column].dtype in (np.dtype(int), np.dtype(bool)):
        X[column] = X[column].astype(object)
    X.loc[3, column] = None
    expected = schema.encode(PANDAS)
    expected[3, list(PANDAS.columns).index(column)] = -1
    np.testing.assert_array_equal(schema.encode(X), expected)
    X[column] = None
    expected[:, list(PANDAS.columns).index(column)] = -1
    np.testing.assert_array_equal(schema.encode(X), expected)


def test_missing_in_polars() -> None:
    schema = schema_of(POLARS)
    expected = schema.encode(POLARS)
    expected[3] = -1
    gone = pl.int_range(pl.len()) == 3
    X = POLARS.with_columns(pl.when(gone).then(None).otherwise(pl.all()).name.keep())
    np.testing.assert_array_equal(schema.encode(X), expected)
    X = X.with_columns(pl.col("n").cast(pl.Float64), text=pl.lit(None))
    expected[:, 2] = -1
    np.testing.assert_array_equal(schema.encode(X), expected)


def test_missing_values_of_sparse_binary_data() -> None:
    schema = schema_of(sparse.csr_array(BITS))
    values = BITS.astype(float) * 3
    values[2, 1] = values[7, 4] = np.nan
    expected = np.where(np.isnan(values), -1, BITS)
    for X in (values, sparse.csr_array(values), sparse.coo_matrix(values), pd.DataFrame(values)):
        np.testing.assert_array_equal(schema.encode(X), expected)
    rows = schema.rows(sparse.csr_array(values))
    assert rows.codes is None, "a sparse matrix stays sparse"
    np.testing.assert_array_equal(rows.take(2, 8), expected[2:8])
    for X in (BITS, BITS.astype(bool), pd.DataFrame(BITS, columns=schema.names), BITS.tolist()):
        np.testing.assert_array_equal(schema.encode(X), BITS)


def test_missing_blocks() -> None:
    schema = schema_of(ONE_HOT)
    blocks = [b.copy() for b in ONE_HOT]
    blocks[0][3] = np.nan
    blocks[1][5] = 0
    expected = NUMBERS.copy()
    expected[3, 0] = expected[5, 1] = -1
    np.testing.assert_array_equal(schema.encode(blocks), expected)
    thin = [sparse.csr_array(b) for b in blocks]
    np.testing.assert_array_equal(schema.encode(thin), expected)
    by_code = schema.encode([blocks[0], blocks[1], NUMBERS[:, 2]])  # categories by number
    np.testing.assert_array_equal(by_code, expected)


# --- columns by name and by position --------------------------------------------------


def test_columns_are_found_by_name() -> None:
    X = PANDAS.assign(same=1)
    schema = schema_of(X)
    assert schema.dropped == {"same"}
    expected = schema.encode(X)
    shuffled = X[list(X.columns)[::-1]]
    np.testing.assert_array_equal(schema.encode(shuffled), expected)
    np.testing.assert_array_equal(schema.encode(PANDAS), expected)  # without the dropped column
    np.testing.assert_array_equal(schema.encode(X.assign(same="other")), expected)
    as_dict = {name: X[name].to_numpy() for name in shuffled}
    np.testing.assert_array_equal(schema.encode(as_dict), expected)
    words = "Feature names unseen at fit time:\n- age\n- zip\n"
    with refusing(refused(words, column="age", value=(("zip", "age"), ()))):
        schema.encode(X.assign(zip=1, age=2))
    words = "yet now missing:\n- flag\n- text\n"
    with refusing(refused(words, column="flag", value=((), ("flag", "text")))):
        schema.encode(X.drop(columns=["text", "flag"]))
    expected[:, [1, 2]] = -1
    partial = schema.encode(X.drop(columns=["text", "flag"]), unused=["text", "flag"])
    np.testing.assert_array_equal(partial, expected)


@pytest.mark.parametrize("form", INPUTS)
def test_unused_variables_are_not_read(form: str) -> None:
    X, options = INPUTS[form]
    schema = schema_of(X, **options)
    expected = schema.encode(X)
    expected[:, 1] = -1
    np.testing.assert_array_equal(schema.encode(X, unused=[schema.names[1]]), expected)
    if isinstance(X, np.ndarray) and X.dtype.kind in "iu" and not options:
        X = X.copy()
        X[:, schema.index[1]] = 77
        np.testing.assert_array_equal(schema.encode(X, unused=[schema.names[1]]), expected)


def test_the_result_is_arranged_like_a_frame() -> None:
    schema = schema_of(PANDAS.assign(same=1))
    like = PANDAS[["text", "n", *PANDAS.columns[3:], "flag"]].iloc[5:9]
    result = schema.decode(schema.encode(like), like=like)
    pd.testing.assert_frame_equal(result, like)
    other = POLARS.select("text", "n", "kind", "flag", "level")
    found = schema_of(POLARS)
    assert found.decode(found.encode(other), like=other).equals(other)
    assert isinstance(schema_of(NUMBERS).decode(NUMBERS, like=like), np.ndarray)


def test_many_wrong_names_are_cut_short() -> None:
    schema = schema_of(PANDAS)
    X = pd.DataFrame(NUMBERS[:, [0] * 7], columns=[f"z{i}" for i in range(7)])
    with pytest.raises(DataError, match=r"- z4\n- \.\.\.\nFeature names seen at fit time") as error:
        schema.encode(X)
    assert "order does not matter" in str(error.value)


def test_arrays_are_read_by_position() -> None:
    schema = schema_of(NUMBERS)
    with pytest.raises(DataError, match="X has 2 features, but LatentTree is expecting 3 features"):
        schema.encode(NUMBERS[:, :2])
    with pytest.raises(DataError, match="X has 2 features, but LatentTree is expecting 3 features"):
        schema.encode([NUMBERS[:, 0], NUMBERS[:, 1]])
    with pytest.raises(DataError, match="Reshape your data"):
        schema.encode(NUMBERS[0])
    grouped = schema_of(np.hstack(ONE_HOT), groups=np.repeat([0, 1, 2], 4))
    assert grouped.n_features == 12
    with pytest.raises(DataError, match="X has 11 features, but LatentTree is expecting 12"):
        grouped.encode(np.hstack(ONE_HOT)[:, 1:])


def test_names_on_one_side_only() -> None:
    frame = pd.DataFrame(NUMBERS, columns=["a", "b", "c"])
    with pytest.warns(UserWarning, match="X has feature names, but LatentTree was fitted without"):
        codes = schema_of(NUMBERS).encode(frame)
    np.testing.assert_array_equal(codes, NUMBERS)
    with pytest.warns(UserWarning, match="X does not have valid feature names"):
        codes = schema_of(frame).encode(NUMBERS)
    np.testing.assert_array_equal(codes, NUMBERS)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # names= are names too: then the order does not matter
        codes = schema_of(NUMBERS, names=["a", "b", "c"]).encode(frame[["c", "a", "b"]])
        np.testing.assert_array_equal(codes, NUMBERS)
        np.testing.assert_array_equal(schema_of(NUMBERS).encode(pd.DataFrame(NUMBERS)), NUMBERS)
        np.testing.assert_array_equal(schema_of(pd.DataFrame(NUMBERS)).encode(NUMBERS), NUMBERS)


def test_tables_are_read_by_name_and_label() -> None:
    schema = schema_of(NUMBERS + 3)
    part = as_table(NUMBERS[NUMBERS[:, 0] > 1] + 3)  # fewer categories, so other codes
    np.testing.assert_array_equal(schema.encode(part), NUMBERS[NUMBERS[:, 0] > 1])
    blocks = schema_of({"a": ONE_HOT[0], "b": NUMBERS[:, 1] + 3})
    table = as_table({"b": NUMBERS[:, 1] + 3, "a": ONE_HOT[0]})
    np.testing.assert_array_equal(blocks.encode(table), NUMBERS[:, :2])
    present = schema_of(sparse.csr_array(BITS), names=list("abcde"))
    table = as_table(sparse.csr_array(BITS[:, ::-1]), names=list("edcba"))
    np.testing.assert_array_equal(present.encode(table), BITS)


# --- bad values ------------------------------------------------------------------------


def test_an_unseen_category_is_named() -> None:
    X = pd.DataFrame({"n": range(8), "fruit": [*"abcdefgh"]})
    schema = schema_of(X)
    bad = X.copy()
    bad.loc[5, "fruit"] = "zebra"
    words = r"'a', 'b', 'c', 'd', 'e', \.\.\. \(8 categories\); use one of these, or mark it"
    with refusing(refused(words, column="fruit", row=5, value="zebra")):
        schema.encode(bad)
    bad.loc[2, "fruit"] = None  # rows are counted with the missing ones
    with refusing(refused("at row 5", column="fruit", row=5, value="zebra")):
        schema.encode(bad)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.array([[0, 1, 2], [0, 1, 4]]), refused("unseen", column="x2", row=1, value=4)),
        (np.array([[0, -1, 1]]), refused("unseen category", column="x1", row=0, value=-1)),
        (np.array([[0, 0.5, 1]]), refused("whole numbers", column="x1", row=0, value=0.5)),
        (np.array([[0, np.inf, 1]]), refused("infinity", column="x1", row=0, value=np.inf)),
        (np.array([[0, 1e300, 1]]), refused("unseen category", column="x1", row=0, value=1e300)),
        (np.array([["0", "1", "2"]]), refused(r"astype\(int\)", column="x0", row=0, value="0")),
        (np.array([[0, "1", 2]], dtype=object), refused("string", column="x1", row=0, value="1")),
        (np.array([[1j, 0, 0]]), refused("Complex data not supported")),
        ([[0, 1], [2]], refused("not a rectangular table")),
        (sparse.csr_array(NUMBERS), refused(r"pass X.toarray\(\)", value="csr_array")),
        (
            pd.DataFrame({"x0": [0], "x1": [pd.Timestamp(0)], "x2": [0]}),
            refused("not supported", column="x1"),
        ),
        (
            [ONE_HOT[0], NUMBERS[:, 1], NUMBERS[:, 2]],
            refused("the model expects a vector", column="x0", value=(40, 4)),
        ),
        (
            [NUMBERS[:, 0], NUMBERS[:1, 1], NUMBERS[:, 2]],
            refused("same number of samples", column="x1", value=1),
        ),
        (pd.Series([1, 2]), refused("single series", value=2)),
        (pl.LazyFrame({"x0": [1]}), refused("call .collect", value="LazyFrame")),
        (None, refused("X is None; pass a table")),
        ("x.csv", refused("no file 'x.csv'", path="x.csv")),
    ],
)
def test_bad_values_in_a_table_of_integers(X: Any, expected: Refused) -> None:
    with refusing(expected):
        schema_of(NUMBERS).encode(X)


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.array([[1, 2]]), refused(r"number 1 .*astype\(str\)", column="x0", row=0, value=1)),
        (
            np.array([["apple", ["red"]]], dtype=object),
            refused("unseen category", column="x1", row=0, value=["red"]),
        ),
    ],
)
def test_bad_values_in_a_table_of_strings(X: Any, expected: Refused) -> None:
    with refusing(expected):
        schema_of(FRUIT).encode(X)


FIRST = int(BITS[:, 0].argmax())  # row of the first 1 of the first column


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (-BITS, refused("finite, >= 0", column="x0", row=FIRST, value=-1)),
        (sparse.csr_array(-BITS), refused("negative value", row=int(BITS.any(1).argmax()))),
        (
            sparse.csr_array(np.inf * (BITS + 1.0)),
            refused("infinity", column="x0", row=0, value=np.inf),
        ),
        (
            BITS.astype(str),
            refused("binary data: pass numbers", column="x0", value=str(BITS[0, 0])),
        ),
        (
            BITS.astype(str).astype(object),
            refused("binary data: pass numbers", column="x0", value=str(BITS[0, 0])),
        ),
        (np.array([[object(), 1, 1, 1, 1]]), refused("binary data: pass numbers", column="x0")),
        (sparse.csr_array(BITS[:, 1:]), refused("X has 4 features", value=4)),
    ],
)
def test_bad_sparse_binary_data(X: Any, expected: Refused) -> None:
    with refusing(expected):
        schema_of(sparse.csr_array(BITS)).encode(X)


def test_blocks_must_be_one_hot() -> None:
    schema = schema_of({"a": ONE_HOT[0], "b": ONE_HOT[1]})
    wrong = ONE_HOT[0].copy()
    wrong[7] = [0.5, 0.5, 0, 0]
    words = "not one-hot"
    with refusing(refused(words, column="a", row=7, value=wrong[7])):
        schema.encode({"a": wrong, "b": ONE_HOT[1]})
    wrong[7] = [0, 2, 0, 0]
    with refusing(refused(words, column="a", row=7, value=wrong[7])):
        schema.encode({"a": sparse.csr_array(wrong), "b": ONE_HOT[1]})
    with refusing(refused("the model expects", column="a", value=(40, 3))):
        schema.encode({"a": ONE_HOT[0][:, :3], "b": ONE_HOT[1]})


def test_numbers_are_equal_across_types() -> None:
    """Booleans are 0 and 1, whole floats are integers, in both directions."""
    bits, flags = schema_of(BITS), schema_of(BITS.astype(bool))
    for dtype in (bool, np.int8, np.uint64, np.float32, object):
        np.testing.assert_array_equal(bits.encode(BITS.astype(dtype)), BITS)
        np.testing.assert_array_equal(flags.encode(BITS.astype(dtype)), BITS)


def test_the_input_is_left_alone() -> None:
    schema = schema_of(NUMBERS)
    codes = schema.encode(NUMBERS.astype(np.int8))
    codes[:] = -1
    copies = NUMBERS.astype(np.int8)
    schema.encode(copies)[:] = -1
    np.testing.assert_array_equal(copies, NUMBERS)


def test_decode_needs_known_codes() -> None:
    schema = schema_of(FRUIT)
    with refusing(refused("only known values", column="x0", row=1, value=-1)):
        schema.decode([[0, 0], [-1, 0]])
    with refusing(refused(r"outside 0\.\.1", column="x1", row=0, value=2)):
        schema.decode([[0, 2]])
    with refusing(refused("one column for each of 2 variables", value=(1, 3))):
        schema.decode([[0, 2, 1]])
    assert schema.decode(np.empty((0, 2), dtype=int)).shape == (0, 2)


@pytest.mark.parametrize(("d", "dtype"), [(128, np.int8), (129, np.int16), (40_000, np.int32)])
def test_codes_have_the_smallest_type(d: int, dtype: Any) -> None:
    X = np.arange(d)[:, None] + np.array([0, 7])
    schema = schema_of(X)
    codes = schema.encode(X[::-1])
    assert codes.dtype == dtype
    np.testing.assert_array_equal(codes[:, 1], np.arange(d)[::-1])


@given(
    values=st.lists(st.integers(-(2**62), 2**62), min_size=2, max_size=30, unique=True),
    seed=st.integers(0, 99),
)
@settings(max_examples=50, deadline=None)
def test_any_integers_as_categories(values: list[int], seed: int) -> None:
    """Counting, searching and hashing find the same codes as a dictionary."""
    X = pd.DataFrame({"a": pd.Categorical(values)})
    schema = schema_of(X)
    position = {label: i for i, label in enumerate(sorted(values))}
    drawn = np.random.default_rng(seed).choice(values, 50)
    expected = [[position[int(v)]] for v in drawn]
    np.testing.assert_array_equal(schema.encode(pd.DataFrame({"a": drawn})), expected)
    np.testing.assert_array_equal(schema.encode({"a": drawn.astype(object)}), expected)


@pytest.mark.slow
def test_a_large_array_is_read_fast() -> None:
    X = np.random.default_rng(0).integers(0, 10, (20_000, 729))
    plain, shifted = schema_of(X), schema_of(X + 3)
    best = []
    for schema, values in ((plain, X), (shifted, X + 3)):
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            schema.encode(values)
            seconds.append(time.perf_counter() - start)
        best.append(min(seconds))
    assert max(best) < 1.0, best  # 0.04 and 0.15 s where this was written


# --- one-hot tables -------------------------------------------------------------------


def test_one_hot_tables_have_codes() -> None:
    found = one_hot_codes(as_table(ONE_HOT))
    assert found is not None
    np.testing.assert_array_equal(found, NUMBERS)
    for change in ([0, 0, 0, 0], [1, 1, 0, 0], [0, 2, 0, 0], [0.5, 0.5, 0, 0]):
        blocks = [b.copy() for b in ONE_HOT]
        blocks[1][4] = change
        assert one_hot_codes(as_table(blocks)) is None
    # as many ones as blocks, but two of them in one block
    blocks = [b.copy() for b in ONE_HOT]
    blocks[0][4], blocks[1][4] = [1, 1, 0, 0], [0, 0, 0, 0]
    assert one_hot_codes(as_table(blocks)) is None
    assert one_hot_codes(as_table(NUMBERS)) is None


# --- JSON -----------------------------------------------------------------------------


def test_labels_that_json_does_not_have_are_refused() -> None:
    X = pd.DataFrame({"age": pd.cut(np.arange(20), 3), "b": NUMBERS[:20, 0]})
    schema = schema_of(X)
    np.testing.assert_array_equal(schema.encode(X)[:, 1], NUMBERS[:20, 0])
    with pytest.raises(DataError, match=r"column 'age' has labels of type Interval.*astype\(str\)"):
        schema.to_json()


@pytest.mark.parametrize(
    "labels", [[1.5, 2.25, 0.1], [np.float32(0.1), np.float32(7)], [True, False], ["ü", "\0", "日"]]
)
def test_labels_survive_json(labels: list[Any]) -> None:
    X = pd.DataFrame({"a": pd.Categorical(labels * 2)})
    schema = schema_of(X)
    second = Schema.from_json(json.loads(json.dumps(schema.to_json())))
    assert second.labels[0].dtype == schema.labels[0].dtype
    assert second.labels[0].tolist() == schema.labels[0].tolist()
    np.testing.assert_array_equal(second.encode(X), schema.encode(X))


def damage(record: Any, path: tuple[Any, ...], value: Any) -> Any:
    result = copy.deepcopy(record)
    place = result
    for step in path[:-1]:
        place = place[step]
    if value is KeyError:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return result


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("kind",), "images", "field 'kind' is 'images'"),
        (("kind",), "sparse_binary", "outside 2..2"),
        (("kind",), KeyError, "'kind' is missing"),
        (("names",), ["n"] * 8, "dims for 8 names"),
        (("names", 0), "flag", "names are not all different"),
        (("names", 0), 3, "holds int, not str"),
        (("dims", 0), 10**30, "dimension 1000"),
        (("dims", 0), -1, "dimension -1"),
        (("dims", 0), True, "holds bool, not int"),
        (("dims", 0), 3, "3 different categories"),
        (("dims",), [], "0 dims for 7 names"),
        (("categories",), [], "0 lists of categories"),
        (("categories", 0), None, "has no categories"),
        (("categories", 0, "type"), "datetime64[ns]", "field 'type'"),
        (("categories", 0, "type"), "int8", None),
        (("categories", 0, "values", 0), 10**40, "does not hold int64"),
        (("categories", 0, "values", 0), 1.5, "holds float, not int"),
        (("categories", 0, "values", 0), 6, "4 different categories"),
        (("columns",), [], "different columns of 0"),
        (("columns", 0, "name"), "flag", "columns are not all different"),
        (("columns", 0, "dtype"), "object; import os", "has the type"),
        (("columns", 0, "form"), "round", "field 'form'"),
        (("columns", 0, "levels"), [1], "is list, not labels"),
        (("columns", 7, "constant"), None, "its value is not there"),
        (("index", 0), 99, "index does not give 7 different columns"),
        (("index", 0), 1, "index does not give 7 different columns"),
        (("container",), "pickle", "field 'container'"),
        (("container",), "sparse array", "does not come from a sparse array"),
        (("container",), "array", "has the type"),
        (("named",), 1, "'named' is int, not bool"),
        (("whole_names",), True, "not the integers"),
        (("members",), [[0]], "groups do not share out"),
        (("members",), [[i] for i in range(8)], "groups do not go with"),
    ],
)
def test_damaged_records_are_refused(path: Any, value: Any, message: str | None) -> None:
    record = json.loads(json.dumps(schema_of(PANDAS.assign(same=1)).to_json()))
    bad = damage(record, path, value)
    if message is None:
        Schema.from_json(bad)
        return
    with pytest.raises(DataError, match=message) as error:
        Schema.from_json(bad)
    assert "damaged" in str(error.value)


@pytest.mark.parametrize("record", [None, [], "schema", 3])
def test_what_is_no_record_is_refused(record: Any) -> None:
    with pytest.raises(DataError, match="damaged"):
        Schema.from_json(record)
