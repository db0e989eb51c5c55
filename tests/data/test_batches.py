"""Batches joined again are the table that the caller would have made of them."""

from __future__ import annotations

import copy
import pickle
import tracemalloc
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import polars.testing
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing

from latenttree.data import as_table
from latenttree.data.batches import Batches
from latenttree.errors import DataError


def joined(parts: list[Any], weights: Any = None) -> Any:
    batches = Batches()
    for i, part in enumerate(parts):
        batches.add(part, None if weights is None else weights[i])
    X, found = batches.joined()
    return X if weights is None else (X, found)


def cut(n: int, k: int) -> list[slice]:
    """k parts of n rows, the first of one row."""
    ends = np.unique(np.concatenate([[0, 1], np.linspace(1, n, k, dtype=int)]))
    return [slice(a, b) for a, b in pairwise(ends)]


def same_array(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)


# ---- arrays -------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
TEXT = np.array(["no", "yes", "perhaps", ""])
ARRAYS = {
    "uint8": RNG.integers(0, 200, (60, 4)).astype(np.uint8),
    "int64": RNG.integers(-3, 70_000, (60, 4)),
    "large": RNG.integers(-(2**62), 2**62, (60, 4)),
    "uint64": RNG.integers(0, 2**64, (60, 4), dtype=np.uint64),
    "bool": RNG.random((60, 4)) < 0.5,
    "float64": np.where(RNG.random((60, 4)) < 0.1, np.nan, RNG.normal(size=(60, 4))),
    "float32": RNG.normal(size=(60, 4)).astype(np.float32),
    "float16": RNG.normal(size=(60, 4)).astype(np.float16),
    "text": TEXT[RNG.integers(0, 4, (60, 4))],
    "bytes": TEXT.astype("S")[RNG.integers(0, 4, (60, 4))],
    "fortran": np.asfortranarray(RNG.integers(0, 9, (60, 4))),
    "big-endian": RNG.integers(0, 9, (60, 4)).astype(">i4"),
}


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("k", [2, 7, 60])
def test_arrays(name: str, k: int) -> None:
    parts = [ARRAYS[name][rows] for rows in cut(60, k)]
    same_array(joined(parts), np.concatenate(parts))


def test_objects_keep_their_types() -> None:
    columns = [
        ["a", None, "b"] * 20,
        [1, None, 2] * 20,
        [True, False, None] * 20,
        [0.5, 1, np.nan] * 20,
    ]
    X = np.array(columns, dtype=object).T
    found = joined([X[rows] for rows in cut(60, 9)])
    assert found.dtype == object
    assert list(map(repr, found.ravel())) == list(map(repr, X.ravel()))
    assert [type(v) for v in found.ravel()] == [type(v) for v in X.ravel()]


@pytest.mark.parametrize(
    "parts",
    [
        (np.array([[1, 2]]), np.array([[0.5, np.nan]]), np.array([[3, 4]])),
        (np.array([[True, False]]), np.array([[1, 2]], dtype=np.int8), np.array([[300, 2]])),
        (np.array([["a", "b"]]), np.array([["abc", "b"]]), np.array([["a", "b"]])),
        (np.array([[1, 2]]), np.array([[None, 2]], dtype=object), np.array([[3.5, 4]])),
        (np.array([["a", "b"]]), np.array([[None, "b"]], dtype=object), np.array([["cd", "b"]])),
        (np.full((1, 2), np.nan), np.array([["a", None]], dtype=object)),
        (np.float32([[1, 2]]), np.float64([[0.1, 2]])),
    ],
)
def test_arrays_that_change_their_type(parts: Any) -> None:
    found, expected = joined(list(parts)), np.concatenate(parts)
    assert found.dtype == expected.dtype
    assert list(map(repr, found.ravel())) == list(map(repr, expected.ravel()))


@pytest.mark.skipif(not hasattr(np.dtypes, "StringDType"), reason="NumPy 2")
@pytest.mark.parametrize("options", [{}, {"na_object": np.nan}])
def test_text_of_any_length(options: Any) -> None:
    dtype = np.dtypes.StringDType(**options)
    X = np.array([["a", "some longer text"], ["b", "c"], ["a", ""]], dtype=dtype)
    if options:
        X[1, 0] = np.nan
    found = joined([X[:1], X[1:]])
    assert found.dtype == dtype
    assert list(map(repr, found.ravel())) == list(map(repr, X.ravel()))


def test_masked_arrays() -> None:
    rng = np.random.default_rng(0)
    X = np.ma.MaskedArray(ARRAYS["int64"], rng.random((60, 4)) < 0.2)
    parts = [X[rows] for rows in cut(60, 9)]
    parts[2] = np.asarray(parts[2].filled(7))  # one without a mask
    found, expected = joined(parts), np.ma.concatenate(parts)
    np.testing.assert_array_equal(found.mask, expected.mask)
    np.testing.assert_array_equal(found.filled(0), expected.filled(0))


def test_lists_of_rows() -> None:
    rows = [["a", "x"], ["b", "y"], ["a", "long"]]
    same_array(joined([rows[:1], rows[1:]]), np.asarray(rows))
    assert joined([[[1, 2]], [[None, 2]]]).tolist() == [[1, 2], [None, 2]]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_random_pieces_of_integers(data: st.DataObject) -> None:
    bounds = st.sampled_from([2, 200, 300, 40_000, 70_000, 2**31, 2**40])
    parts = []
    for _ in range(data.draw(st.integers(1, 12))):
        n, high = data.draw(st.integers(1, 20)), data.draw(bounds)
        low = -high if data.draw(st.booleans()) else 0
        parts.append(np.random.default_rng(n).integers(low, high, (n, 2)))
    same_array(joined(parts), np.concatenate(parts))


# ---- sparse matrices and blocks -----------------------------------------------------------


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "csr_matrix"])
@pytest.mark.parametrize("dtype", [np.int64, np.float32, np.bool_])
def test_sparse(form: str, dtype: Any) -> None:
    rng = np.random.default_rng(0)
    dense = (rng.poisson(0.3, (60, 5)) * 100).astype(dtype)
    parts = [getattr(sparse, form)(dense[rows]) for rows in cut(60, 9)]
    found = joined(parts)
    assert type(found) is (sparse.csr_matrix if form == "csr_matrix" else sparse.csr_array)
    assert found.dtype == dense.dtype
    np.testing.assert_array_equal(found.toarray(), dense)


def test_sparse_types_are_promoted() -> None:
    parts = [sparse.csr_array([[1, 0]]), sparse.csr_array([[0.5, 0]]), sparse.csr_array((2, 2))]
    found = joined(parts)
    assert found.dtype == np.float64
    assert found.toarray().tolist() == [[1, 0], [0.5, 0], [0, 0], [0, 0]]


def blocks() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        "vector": rng.integers(0, 3, 60),
        "text": TEXT[rng.integers(0, 4, 60)],
        "dense": rng.normal(size=(60, 3)),
        "counts": rng.poisson(2.0, (60, 2)),
        "sparse": sparse.csr_array(rng.poisson(0.3, (60, 6))),
    }


def test_blocks() -> None:
    X = blocks()
    parts = [{name: block[rows] for name, block in X.items()} for rows in cut(60, 9)]
    parts[3] = dict(reversed(parts[3].items()))
    found = joined(parts)
    assert list(found) == list(X)
    for name, block in X.items():
        if name == "sparse":
            np.testing.assert_array_equal(found[name].toarray(), block.toarray())
        else:
            same_array(found[name], block)
    listed = joined([list(part.values()) for part in parts if list(part) == list(X)])
    assert isinstance(listed, list)


# ---- DataFrames ---------------------------------------------------------------------------


def gaps(values: Any) -> list[Any]:
    return [None if i % 7 == 3 else value for i, value in enumerate(values)]


def frame_columns() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    words = TEXT[rng.integers(0, 4, 60)].tolist()
    return {
        "whole": rng.integers(0, 300, 60),
        "real": rng.normal(size=60),
        "single": rng.normal(size=60).astype(np.float32),
        "bit": rng.random(60) < 0.5,
        "words": words,
        "gaps in words": gaps(words),
        "big": rng.integers(-(2**40), 2**40, 60),
    }


def pandas_frame() -> pd.DataFrame:
    frame = pd.DataFrame(frame_columns())
    whole, words = frame["whole"].tolist(), frame["words"].tolist()
    frame["object"] = pd.Series(gaps(words), dtype=object)
    frame["object ints"] = pd.Series(gaps(whole), dtype=object)
    frame["Int64"] = pd.Series(gaps(whole), dtype="Int64")
    frame["UInt16"] = pd.Series(gaps(whole), dtype="UInt16")
    frame["Float32"] = pd.Series(gaps(frame["real"]), dtype="Float32")
    frame["boolean"] = pd.Series(gaps(frame["bit"]), dtype="boolean")
    frame["string"] = pd.Series(gaps(words), dtype="string")
    frame["category"] = pd.Series(gaps(words)).astype(pd.CategoricalDtype(TEXT[::-1].tolist()))
    frame["numbers"] = pd.Series(gaps(whole), dtype="Int64").astype("category")
    frame["ordered"] = pd.Categorical(words, categories=TEXT.tolist(), ordered=True)
    frame["arrow"] = pd.Series(gaps(whole), dtype="int64[pyarrow]")
    frame["arrow text"] = pd.Series(gaps(words), dtype="string[pyarrow]")
    frame["arrow real"] = pd.Series(gaps(frame["real"]), dtype="double[pyarrow]")
    frame["arrow bit"] = pd.Series(gaps(frame["bit"]), dtype="bool[pyarrow]")
    return frame


@pytest.mark.parametrize("k", [2, 9, 60])
def test_pandas(k: int) -> None:
    frame = pandas_frame()
    frame.index = pd.Index(range(100, 160))
    parts = [frame.iloc[rows] for rows in cut(60, k)]
    expected = pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(joined(parts), expected)


def test_pandas_columns_in_any_order_and_with_any_name() -> None:
    frame = pandas_frame()[["whole", "words", "bit"]]
    frame.columns = pd.Index([3, "words", 1.5], name="which")
    parts = [frame.iloc[rows] for rows in cut(60, 5)]
    parts[2] = parts[2][[1.5, 3, "words"]]
    pd.testing.assert_frame_equal(joined(parts), frame)


def test_pandas_columns_that_change_their_type() -> None:
    parts = [
        pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [True, False], "d": [1, 2]}),
        pd.DataFrame({"a": [1.0, np.nan], "b": [np.nan, np.nan], "c": [None, True], "d": [1, 2]}),
        pd.DataFrame({"a": [3, 2], "b": [None, "z"], "c": [None, None], "d": [1, 300]}).astype(
            {"d": "Int64"}
        ),
    ]
    found, expected = joined(parts), pd.concat(parts, ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)
    assert found.dtypes["a"] == np.float64


def test_pandas_categories_are_those_of_all_batches() -> None:
    parts = [
        pd.DataFrame({"a": pd.Categorical(["x", None], categories=["y", "x"])}),
        pd.DataFrame({"a": pd.Categorical(["x", "z"], categories=["x", "z", "w"])}),
        pd.DataFrame({"a": pd.Categorical([None, None])}),
        pd.DataFrame({"a": pd.Categorical(["y", "w"])}),
    ]
    found = joined(parts)["a"]
    assert found.cat.categories.tolist() == ["y", "x", "z", "w"]
    assert found.astype(object).where(found.notna(), None).tolist() == [
        *["x", None, "x", "z", None, None, "y", "w"]
    ]


def polars_frame() -> pl.DataFrame:
    columns = frame_columns()
    whole, words = columns["whole"].tolist(), columns["words"]
    return pl.DataFrame(columns).with_columns(
        pl.Series("Int64", gaps(whole), dtype=pl.Int64),
        pl.Series("UInt16", gaps(whole), dtype=pl.UInt16),
        pl.Series("Float32", gaps(columns["real"]), dtype=pl.Float32),
        pl.Series("nan", [float("nan") if v is None else v for v in gaps(columns["real"])]),
        pl.Series("Boolean", gaps(columns["bit"].tolist()), dtype=pl.Boolean),
        pl.Series("Categorical", gaps(words), dtype=pl.Categorical),
        pl.Series("Enum", gaps(words), dtype=pl.Enum(TEXT.tolist())),
        pl.Series("nothing", [None] * 60, dtype=pl.Null),
        pl.Series("decimal", [str(v) for v in whole]).cast(pl.Decimal(10, 2)),
    )


@pytest.mark.parametrize("k", [2, 9, 60])
def test_polars(k: int) -> None:
    frame = polars_frame()
    parts = [frame[rows] for rows in cut(60, k)]
    parts[1] = parts[1].select(reversed(frame.columns))
    polars.testing.assert_frame_equal(joined(parts), frame, categorical_as_str=True)


def test_polars_columns_that_change_their_type() -> None:
    parts = [
        pl.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [None, None]}),
        pl.DataFrame({"a": [0.5, None], "b": [None, None], "c": [True, None]}),
        pl.DataFrame({"a": [None, None], "b": ["z", None], "c": [False, None]}),
    ]
    expected = pl.concat(parts, how="vertical_relaxed")
    polars.testing.assert_frame_equal(joined(parts), expected)


def test_other_frames() -> None:
    table = pa.table({"a": [1, 2, 3, 4], "b": ["x", None, "y", "x"]})
    parts = [table.slice(0, 1), table.slice(1, 2).select(["b", "a"]), table.slice(3)]
    assert joined(parts).equals(table)
    batches = Batches()
    batches.add(table)
    with pytest.raises(DataError, match="batch 2: column 'a' is of type Float64, but of "):
        batches.add(pa.table({"a": [0.5], "b": ["x"]}))


# ---- weights ------------------------------------------------------------------------------


def test_weights() -> None:
    rng = np.random.default_rng(0)
    X = ARRAYS["int64"]
    parts = [X[:1], X[1:20], X[20:]]
    w = rng.integers(0, 4, 60)
    same_array(joined(parts, [w[:1], w[1:20], w[20:]])[1], w.astype(float))
    found = joined(parts, [None, w[1:20].tolist(), None])[1]
    assert found.tolist() == [1.0, *w[1:20].tolist(), *[1.0] * 40]
    assert joined(parts, [None] * 3)[1] is None
    assert joined([X[:2]], [np.zeros(2)])[1].tolist() == [0, 0]  # other batches may count


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ([1.0], r"batch 2: sample_weight has shape \(1,\), but X has 2 rows"),
        ([1.0, -1.0], r"batch 2: sample_weight of row 1 is -1.0"),
        ([1.0, np.nan], r"batch 2: sample_weight of row 1 is nan"),
        (["a", "b"], "batch 2: sample_weight must hold numbers"),
    ],
)
def test_wrong_weights(weights: Any, message: str) -> None:
    batches = Batches()
    batches.add(np.array([[1, 2]]))
    with pytest.raises(DataError, match=message):
        batches.add(np.array([[1, 2], [3, 4]]), weights)
    assert batches.n_rows == 1


# ---- what is refused ----------------------------------------------------------------------

FRAME = pd.DataFrame({"a": [1, 2], "b": ["x", "y"], "c": [True, False], "d": [0.5, 1.5]})
ORDERED = pd.DataFrame({"a": pd.Categorical(["x"], categories=["x", "y"], ordered=True)})
FIRST_AND_WRONG = {
    "container": (
        FRAME,
        np.zeros((2, 4)),
        refused("it is an array, earlier batches were a pandas Data", value="array"),
    ),
    "library": (
        FRAME,
        pl.DataFrame({"a": [1]}),
        refused("it is a polars DataFrame, earlier", value="polars DataFrame"),
    ),
    "missing": (
        FRAME,
        FRAME.drop(columns=["b"]),
        refused("column 'b' is not there; give", column="b"),
    ),
    "two missing": (
        FRAME,
        FRAME[["a", "b"]],
        refused(r"column 'c' is not there \(and 1 more\)", column="c"),
    ),
    "extra": (
        FRAME,
        FRAME.assign(e=1),
        refused("column 'e' was not in earlier batches", column="e"),
    ),
    "text": (
        FRAME,
        FRAME.assign(a="x"),
        refused("column 'a' holds text, but numbers in earlier", column="a", value="text"),
    ),
    "number": (
        FRAME,
        FRAME.assign(b=1),
        refused("column 'b' holds numbers, but text in earlier", column="b", value="numbers"),
    ),
    "boolean": (
        FRAME,
        FRAME.assign(a=True),
        refused("column 'a' holds booleans, but numbers", column="a", value="booleans"),
    ),
    "mixed": (
        FRAME,
        FRAME.assign(b=pd.Series(["x", 1], dtype=object)),
        refused(r"column 'b' mixes types \(int, str\)", column="b", value=("int", "str")),
    ),
    "dates": (
        FRAME,
        FRAME.assign(b=pd.to_datetime(["2020-01-01"] * 2)),
        refused(r"column 'b' has type Datetime.*not supported", column="b"),
    ),
    "lists": (
        FRAME,
        FRAME.assign(b=[[1], [2]]),
        refused("column 'b' holds list values", column="b"),
    ),
    "infinite": (
        FRAME,
        FRAME.assign(d=[np.inf, 0]),
        refused("infinity .* column 'd'", column="d", row=0, value=np.inf),
    ),
    "no rows": (
        FRAME,
        FRAME[:0],
        refused(r"0 sample\(s\)", value=(0, 4)),
    ),
    "twice": (
        FRAME,
        FRAME.set_axis(list("aacd"), axis=1),
        refused("'a' occurs more than once", column="a", value="a"),
    ),
    "order": (
        ORDERED,
        ORDERED.assign(a=pd.Categorical(["x"], categories=["y", "x"], ordered=True)),
        refused(
            "of the ordered categories y, x, but of the ordered categories x, y in earlier",
            column="a",
            value=("y", "x"),
        ),
    ),
    "category type": (
        pd.DataFrame({"a": pd.Categorical(["x"])}),
        pd.DataFrame({"a": pd.Categorical([1])}),
        refused("categories of type int64", column="a"),
    ),
    "enum": (
        pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum(["x", "y"]))}),
        pl.DataFrame({"a": pl.Series(["x"], dtype=pl.Enum(["y", "x"]))}),
        refused("of the ordered categories y, x, but", column="a", value=("y", "x")),
    ),
    "polars text": (
        pl.DataFrame({"a": [1]}),
        pl.DataFrame({"a": ["x"]}),
        refused("column 'a' holds text", column="a", value="text"),
    ),
    "width": (
        np.zeros((2, 3)),
        np.zeros((2, 2)),
        refused("X has 2 features, but LatentTree is expecting 3", value=2),
    ),
    "flat": (
        np.zeros((2, 3)),
        np.zeros(3),
        refused("Reshape your data", value=(3,)),
    ),
    "array text": (
        np.zeros((2, 3)),
        np.full((2, 3), "x"),
        refused("column 'x0' holds text", column="x0", value="text"),
    ),
    "array inf": (
        np.zeros((2, 3)),
        np.full((2, 3), -np.inf),
        refused("infinity .* column 'x0'", column="x0", row=0, value=-np.inf),
    ),
    "array mixed": (
        np.array([["a", 1]], dtype=object),
        np.array([["a", "b"]], dtype=object),
        refused("column 'x1' holds text, but numbers", column="x1", value="text"),
    ),
    "complex": (
        np.zeros((2, 3)),
        np.zeros((2, 3), dtype=complex),
        refused("Complex data not supported"),
    ),
    "dense": (
        sparse.csr_array((2, 3)),
        np.zeros((2, 3)),
        refused("it is an array, earlier batches were a s", value="array"),
    ),
    "sparse width": (
        sparse.csr_array((2, 3)),
        sparse.csr_array((2, 4)),
        refused("X has 4 features", value=4),
    ),
    "sparse nan": (
        sparse.csr_array((2, 3)),
        sparse.csr_array([[0, np.nan, 0]]),
        refused("NaN or infinity .* at row 0, column 'x1'", column="x1", row=0, value=np.nan),
    ),
    "block": (
        {"u": np.zeros((2, 3))},
        {"v": np.zeros((2, 3))},
        refused("column 'u' is not there", column="u"),
    ),
    "block width": (
        {"u": np.zeros((2, 3))},
        {"u": np.zeros((2, 2))},
        refused(
            "column 'u' is dense, 2 columns wide, but dense, 3 columns wide in earlier",
            column="u",
            value="dense, 2 columns wide",
        ),
    ),
    "block vector": (
        {"u": np.zeros((2, 3))},
        {"u": np.zeros(2)},
        refused("column 'u' is a vector, but dense, 3", column="u", value="vector"),
    ),
    "block form": (
        {"u": np.zeros((2, 3))},
        {"u": sparse.csr_array((2, 3))},
        refused("column 'u' is sparse, 3 columns wide, but dense, 3", column="u"),
    ),
    "block rows": (
        {"u": np.zeros((2, 3)), "v": np.zeros(2)},
        {"u": np.zeros((2, 3)), "v": np.zeros(3)},
        refused("same number of samples", column="v", value=3),
    ),
    "blocks": (
        [np.zeros(2)],
        [np.zeros(2), np.zeros(2)],
        refused("the list has 2 blocks, earlier", value=2),
    ),
    "path": (
        FRAME,
        "table.csv",
        refused("pass a table, not a path", value="table.csv"),
    ),
    "nothing": (
        FRAME,
        None,
        refused("X is None"),
    ),
    "table": (
        FRAME,
        as_table(np.array([[0, 1], [1, 0]])),
        refused("it is a Table"),
    ),
}


@pytest.mark.parametrize(
    ("first", "wrong", "expected"), FIRST_AND_WRONG.values(), ids=FIRST_AND_WRONG
)
def test_a_batch_that_does_not_fit_changes_nothing(
    first: Any, wrong: Any, expected: Refused
) -> None:
    batches = Batches()
    batches.add(first, None)
    before = repr(batches.joined())
    with refusing(expected) as caught:
        batches.add(wrong, None)
    assert str(caught.value).startswith("batch 2: ")
    assert (repr(batches.joined()), batches.n_batches) == (before, 1)
    batches.add(first, None)
    assert batches.n_batches == 2
    again = Batches()
    for _ in range(2):
        again.add(first)
    assert repr(batches.joined()) == repr(again.joined())


def test_no_batches() -> None:
    with pytest.raises(DataError, match="no batches"):
        Batches().joined()


def test_an_interruption_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever it comes: every column that is checked may be the last."""
    from latenttree.data import batches as module

    frame, batches = pandas_frame(), Batches()
    batches.add(frame[:30])
    true, calls = module._series_word, iter(range(10**6))

    def stop(*given: Any) -> Any:
        if next(calls) == 11:
            raise KeyboardInterrupt
        return true(*given)

    other = frame[30:].assign(words="never seen again")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_series_word", stop)
        with pytest.raises(KeyboardInterrupt):
            batches.add(other)
    pd.testing.assert_frame_equal(batches.joined()[0], frame[:30])
    batches.add(frame[30:])
    pd.testing.assert_frame_equal(batches.joined()[0], frame)


# ---- memory -------------------------------------------------------------------------------


def test_a_copy_is_kept_and_a_copy_is_given() -> None:
    for X in (np.ones((3, 2)), pd.DataFrame({"a": np.ones(3)}), {"a": np.ones((3, 2))}):
        batches = Batches()
        batches.add(X)
        for change in (X, batches.joined()[0]):
            values = change["a"] if hasattr(change, "keys") else change
            values[:] = 7.0
        found = batches.joined()[0]
        assert np.all(np.asarray(found["a"] if hasattr(found, "keys") else found) == 1.0)


SIZED = {
    "array": np.zeros((50_000, 10), dtype=np.int8),
    "pandas": pd.DataFrame({f"x{j}": np.zeros(50_000) for j in range(10)}),
    "blocks": {"a": np.zeros((50_000, 10), dtype=np.float32)},
    "sparse": sparse.random_array((50_000, 20), density=0.5, format="csr", rng=0),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_copy_is_as_large_as_the_batch(name: str) -> None:
    X = SIZED[name]
    parts = [X["a"]] if name == "blocks" else [X.data, X.indices] if name == "sparse" else [X]
    sizes = [part.memory_usage().sum() if name == "pandas" else part.nbytes for part in parts]
    batches = Batches()
    tracemalloc.start()
    batches.add(X)
    stored = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert stored <= 1.02 * sum(sizes) + 300_000  # row pointers of a CSR, code read on first use


def test_many_small_batches() -> None:
    batches = Batches()
    for i in range(3000):
        batches.add(np.array([[i % 7, i]]))
    assert batches.joined()[0][:, 1].tolist() == list(range(3000))


CONTAINERS = {
    "array": lambda: ARRAYS["text"],
    "pandas": pandas_frame,
    "polars": polars_frame,
    "blocks": blocks,
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_pickles_and_copies_go_on(name: str) -> None:
    X, batches = CONTAINERS[name](), Batches()
    batches.add(X)
    for other in (pickle.loads(pickle.dumps(batches)), copy.deepcopy(batches)):
        other.add(X)
        assert other.n_rows == 120
        assert batches.n_rows == 60
    assert repr(pickle.loads(pickle.dumps(batches)).joined()) == repr(batches.joined())
