"""as_table: every input, the same distributions whatever the form, and every bad input."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis.extra.numpy as hnp
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.preprocessing import KBinsDiscretizer
from tests.data.refusals import Refused, refused, refusing

from latenttree.data import DataError, Table, as_table, check_n_states

RNG = np.random.default_rng(5)
CODES = np.column_stack([RNG.integers(0, d, 60) for d in (2, 3, 5)])
NAMES = ["a", "b", "c"]


def indicators(table: Table) -> np.ndarray:
    """(n, sum of dims) 0/1 matrix, the slow way: what each sample says of each category."""
    if table.codes is None:
        assert table.matrix is not None
        return np.asarray(table.matrix.toarray())
    columns = [
        table.codes[:, i] == c for i in range(table.n_vars) for c in range(int(table.dims[i]))
    ]
    return np.column_stack(columns).astype(float)


# --- the same data in every form -----------------------------------------------------

FORMS: dict[str, Callable[[], Any]] = {
    "int64": lambda: CODES,
    "uint8": lambda: CODES.astype(np.uint8),
    "column-major": lambda: np.asfortranarray(CODES),
    "gaps": lambda: CODES * 7 + 3,
    "floats": lambda: CODES.astype(float),
    "single floats": lambda: CODES.astype(np.float32) * 2,
    "float frame": lambda: pd.DataFrame(CODES, columns=NAMES).astype("Float64"),
    "one float column": lambda: pd.DataFrame(CODES, columns=NAMES).astype({"b": float}),
    "polars floats": lambda: pl.DataFrame(CODES, schema=NAMES).cast(pl.Float32),
    "wide": lambda: CODES * 10**12,
    "uint64": lambda: CODES.astype(np.uint64) + np.uint64(2**63),
    "str": lambda: np.char.add("v", CODES.astype(str)),
    "bytes": lambda: CODES.astype("S2"),
    "rows as lists": lambda: CODES.tolist(),
    "pandas": lambda: pd.DataFrame(CODES, columns=NAMES),
    "pandas nullable": lambda: pd.DataFrame(CODES, columns=NAMES).astype("Int64"),
    "pandas categorical": lambda: pd.DataFrame(CODES, columns=NAMES).astype("category"),
    "pandas strings": lambda: pd.DataFrame(CODES, columns=NAMES).astype(str),
    "pandas objects": lambda: pd.DataFrame(CODES, columns=NAMES).astype(object),
    "pandas pyarrow": lambda: pd.DataFrame(CODES, columns=NAMES).astype("int32[pyarrow]"),
    "polars": lambda: pl.DataFrame(CODES, schema=NAMES),
    "polars strings": lambda: pl.DataFrame(CODES, schema=NAMES).cast(pl.String),
    "polars categorical": lambda: (
        pl.DataFrame(CODES, schema=NAMES).cast(pl.String).cast(pl.Categorical)
    ),
    "polars enum": lambda: (
        pl.DataFrame(CODES, schema=NAMES).cast(pl.String).cast(pl.Enum(list("01234")))
    ),
    "pyarrow": lambda: pa.table({name: CODES[:, i] for i, name in enumerate(NAMES)}),
    "vectors": lambda: list(CODES.T),
    "dict of vectors": lambda: dict(zip(NAMES, CODES.T, strict=True)),
    "dict of series": lambda: {name: pd.Series(CODES[:, i]) for i, name in enumerate(NAMES)},
    "one-hot blocks": lambda: [np.eye(d)[CODES[:, i]] for i, d in enumerate((2, 3, 5))],
    "sparse blocks": lambda: {
        name: sparse.coo_matrix(np.eye(d, dtype=np.int8)[CODES[:, i]])
        for i, (name, d) in enumerate(zip(NAMES, (2, 3, 5), strict=True))
    },
    "mixed blocks": lambda: [CODES[:, 0], np.eye(3, dtype=bool)[CODES[:, 1]], CODES[:, 2]],
    "grouped sparse": lambda: sparse.csc_array(indicators(as_table(CODES))),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_distributions(form: str) -> None:
    groups = [0, 0, 1, 1, 1, 2, 2, 2, 2, 2] if form == "grouped sparse" else None
    table = as_table(FORMS[form](), groups=groups)
    expected = np.column_stack(
        [CODES[:, i] == c for i, d in enumerate((2, 3, 5)) for c in range(d)]
    )
    np.testing.assert_array_equal(indicators(table), expected)
    assert table.dims.tolist() == [2, 3, 5]
    assert table.offsets.tolist() == [0, 2, 5, 10]
    assert table.n_samples == 60


def test_the_codes_of_encoders_are_read() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    binned = KBinsDiscretizer(3, encode="ordinal", strategy="uniform").fit_transform(X)
    table = as_table(binned)
    np.testing.assert_array_equal(table.codes, binned)
    assert all(labels is not None and labels.tolist() == [0, 1, 2] for labels in table.categories)


def test_names_come_from_the_data() -> None:
    for form in ("pandas", "polars", "pyarrow", "dict of vectors", "sparse blocks"):
        assert as_table(FORMS[form]()).names == ("a", "b", "c")
    for form in ("int64", "vectors", "rows as lists"):
        assert as_table(FORMS[form]()).names == ("x0", "x1", "x2")
    assert as_table(pd.DataFrame(CODES)).names == ("0", "1", "2")
    assert as_table(CODES, names=list("uvw")).names == ("u", "v", "w")
    assert as_table(pd.DataFrame(CODES), names=list("uvw")).names == ("u", "v", "w")


def test_categories_are_the_sorted_labels() -> None:
    frame = pd.DataFrame(
        {
            "flag": [True, False, True, True],
            "number": [30, 10, 30, 20],
            "text": ["pear", "apple", "pear", "fig"],
            "cut": pd.cut([1.0, 2.0, 3.0, 4.0], 2),
            "declared": pd.Categorical([-1, 7, 7, -1], categories=[7, 5, -1]),
        }
    )
    table = as_table(frame)
    found = [list(labels) for labels in table.categories if labels is not None]
    assert found[:3] == [[False, True], [10, 20, 30], ["apple", "fig", "pear"]]
    assert [str(label) for label in found[3]] == ["(0.997, 2.5]", "(2.5, 4.0]"]
    assert found[4] == [-1, 7]  # 5 was declared and never seen: not a category
    assert table.codes is not None
    assert table.codes[:, 2].tolist() == [2, 0, 2, 1]


@given(
    hnp.arrays(
        st.sampled_from([np.uint8, np.int16, np.int64]),
        st.tuples(st.integers(2, 30), st.integers(1, 6)),
        elements=st.integers(0, 120),
    )
)
def test_codes_and_categories_reproduce_the_integers(array: np.ndarray) -> None:
    array[0], array[1] = 0, 1  # no constant columns
    table = as_table(array)
    assert table.codes is not None
    for i, labels in enumerate(table.categories):
        assert labels is not None
        assert labels.tolist() == sorted(set(array[:, i].tolist()))
        np.testing.assert_array_equal(labels[table.codes[:, i]], array[:, i])


@pytest.mark.parametrize(
    ("n_categories", "dtype"),
    [(256, np.uint8), (257, np.uint16), (65536, np.uint16), (65537, np.int32)],
)
def test_codes_have_the_smallest_dtype(n_categories: int, dtype: type) -> None:
    wide = np.arange(n_categories)
    table = as_table(np.column_stack([wide % 2, wide, wide % 3]))
    assert table.codes is not None
    assert table.codes.dtype == dtype
    assert table.codes.flags.c_contiguous
    np.testing.assert_array_equal(table.codes[:, 1], wide)
    np.testing.assert_array_equal(table.codes[:, 2], wide % 3)


def test_the_input_is_left_alone() -> None:
    # unsorted, with a duplicate and a stored zero
    matrix = sparse.csr_matrix(
        (np.array([1.0, 2.0, 3.0, 0.0, 5.0]), np.array([2, 0, 0, 1, 1]), np.array([0, 3, 4, 5])),
        shape=(3, 3),
    )
    before = [matrix.data.copy(), matrix.indices.copy(), matrix.indptr.copy()]
    table = as_table(matrix)
    for old, new in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        np.testing.assert_array_equal(old, new)
    assert table.matrix is not None
    np.testing.assert_array_equal(table.matrix.toarray(), [[1, 0, 1], [0, 0, 0], [0, 1, 0]])
    grouped = as_table(matrix, groups=[0, 0, 0])
    assert grouped.values is not None
    np.testing.assert_array_equal(
        grouped.values.arrays[0].toarray(), [[5, 0, 1], [0, 0, 0], [0, 5, 0]]
    )
    for old, new in zip(before, (matrix.data, matrix.indices, matrix.indptr), strict=True):
        np.testing.assert_array_equal(old, new)


@pytest.mark.parametrize("layout", ["csr", "csc", "coo", "lil", "dok", "bsr"])
def test_a_sparse_matrix_without_groups_is_binary(layout: str) -> None:
    rng = np.random.default_rng(5)
    counts = rng.poisson(0.7, (40, 6))
    for wrap in (sparse.csr_array, sparse.csr_matrix):
        table = as_table(wrap(counts).asformat(layout))
        assert table.kind == "sparse_binary"
        assert table.matrix is not None
        assert table.matrix.dtype == np.float32
        assert table.matrix.indices.dtype == np.int32
        assert table.matrix.has_canonical_format
        assert (table.matrix.data == 1).all()
        np.testing.assert_array_equal(table.matrix.toarray(), counts > 0)


def test_groups_by_label_and_by_name_agree() -> None:
    rng = np.random.default_rng(5)
    counts = rng.poisson(1.0, (30, 5))
    by_label = as_table(sparse.csr_array(counts), groups=["u", "v", "u", "w", "v"])
    by_name = as_table(sparse.csr_array(counts), groups={"u": [0, 2], "v": [1, 4], "w": [3]})
    dense = as_table(counts, groups=np.array(["u", "v", "u", "w", "v"]))
    for table in (by_label, by_name, dense):
        assert table.names == ("u", "v", "w")
        assert table.families == ("multinomial", "multinomial", "poisson")
        assert table.values is not None
        arrays = [table.values.arrays[v] for v in range(3)]
        blocks = [x.toarray() if sparse.issparse(x) else x for x in arrays]
        np.testing.assert_array_equal(np.hstack(blocks), counts[:, [0, 2, 1, 4, 3]])
    assert by_label.matrix is not None
    assert dense.matrix is not None
    np.testing.assert_array_equal(by_label.matrix.toarray(), dense.matrix.toarray())


def test_a_block_may_have_categories_that_never_occur() -> None:
    rng = np.random.default_rng(5)
    block = np.eye(50)[rng.integers(0, 4, 30)]
    table = as_table([block, block])
    assert table.dims.tolist() == [50, 50]


def test_a_table_passes_through() -> None:
    table = as_table(CODES)
    assert as_table(table) is table
    with pytest.raises(DataError, match="pass it alone"):
        as_table(table, names=["a", "b", "c"])


# --- sensible results at the edges ---------------------------------------------------


def test_one_column_is_a_table() -> None:
    assert as_table(CODES[:, :1]).n_vars == 1


def test_duplicate_columns_are_kept() -> None:
    assert as_table(CODES[:, [0, 0, 1]]).n_vars == 3


def test_a_category_seen_once_is_a_category() -> None:
    assert as_table(np.array([[0], [0], [0], [9]])).dims.tolist() == [2]


CONSTANT = np.column_stack([CODES[:, 0], np.full(60, 42), CODES[:, 1]])


@pytest.mark.parametrize(
    "data",
    [
        CONSTANT,
        pd.DataFrame(CONSTANT, columns=["x0", "x1", "x2"]),
        list(CONSTANT.T),
        [CONSTANT[:, [0, 2]], CONSTANT[:, [1, 1]], CONSTANT[:, [2, 0]]],
        sparse.csr_array((CONSTANT > 0) & [True, False, True]),
        sparse.csr_array((CONSTANT > 0) | [False, True, False]),
    ],
)
def test_drop_constant_lists_what_it_dropped(data: Any) -> None:
    table = as_table(data, drop_constant=True)
    assert table.dropped == ("x1",)
    assert table.names == ("x0", "x2")
    whole = as_table(data, drop_constant=True).rows(0, 60)
    assert whole.shape == (60, int(table.offsets[-1]) if table.codes is None else 2)
    with pytest.raises(DataError, match=r"column 'x1' has one value .* drop_constant=True"):
        as_table(data)


# --- bad input -----------------------------------------------------------------------

FLOATS = np.array([[0.5, 1.0], [1.5, 2.0], [2.5, 0.0]])
INF = np.array([[0.5, 1.0], [1.5, 2.0], [-np.inf, 0.0]])
S = sparse.csr_array(np.array([[1, 0, 2], [0, 3, 1], [1, 1, 0]]))
S_NAN = sparse.csr_array(np.array([[1, 0, 2], [0, np.nan, 1], [1, 1, 0]]))
S_FLAT = sparse.coo_array(np.array([0, 1, 1]))
S_NEGATIVE = sparse.csr_array(np.array([[1, 0, 2], [0, 3, -1], [1, 1, 0]]))

BAD: dict[str, tuple[Any, dict[str, Any], Refused]] = {
    "no rows": (np.empty((0, 3)), {}, refused(r"0 sample\(s\) \(shape=\(0, 3\)\)", value=(0, 3))),
    "no rows, frame": (pd.DataFrame({"a": []}), {}, refused(r"0 sample\(s\)", value=(0, 1))),
    "no rows, sparse": (sparse.csr_array((0, 3)), {}, refused(r"0 sample\(s\)", value=(0, 3))),
    "no columns": (
        np.empty((10, 0)),
        {},
        refused(
            r"0 feature\(s\) \(shape=\(10, 0\)\) while a minimum of \d* is required.", value=(10, 0)
        ),
    ),
    "no columns, sparse": (
        sparse.csr_array((10, 0)),
        {},
        refused(r"0 feature\(s\)", value=(10, 0)),
    ),
    "no blocks": ({}, {}, refused(r"0 feature\(s\)", value=(0, 0))),
    "one row": (np.array([[0, 1]]), {}, refused(r"1 sample\(s\) .* pass more rows", value=(1, 2))),
    "one dimension": (np.array([0, 1, 1]), {}, refused("Reshape your data", value=(3,))),
    "three dimensions": (
        np.zeros((2, 2, 2), int),
        {},
        refused(r"got 3D .*\(2, 2, 2\).*Reshape your data", value=(2, 2, 2)),
    ),
    "a number": (3, {}, refused("Reshape your data", value=())),
    "a series": (pd.Series([0, 1]), {}, refused("Reshape your data", value=2)),
    "ragged rows": ([[0, 1], [1]], {}, refused("X is not a rectangular table")),
    "complex": (np.array([[1j], [2j]]), {}, refused("Complex data not supported")),
    "complex, sparse": (
        sparse.csr_array(np.array([[1j], [2j]])),
        {},
        refused("Complex data not supported"),
    ),
    "complex block": ([np.array([1j, 2j])], {}, refused("Complex data not supported")),
    "infinity": (INF, {}, refused("infinity", column="x0", row=2, value=-np.inf)),
    "NaN, sparse": (S_NAN, {}, refused("NaN or infinity", column="x1", row=1, value=np.nan)),
    "NaT": (
        pd.DataFrame({"t": pd.to_datetime(["2020", None])}),
        {},
        refused("dates and times are not supported", column="t"),
    ),
    "all missing": (
        pd.DataFrame({"a": [0, 1], "t": [None, None]}),
        {},
        refused(
            "is missing .* in all . rows; drop the column", column="t", options=("drop_constant",)
        ),
    ),
    "all missing, polars": (
        pl.DataFrame({"t": [None, None]}),
        {},
        refused(
            "is missing .* in all . rows; drop the column", column="t", options=("drop_constant",)
        ),
    ),
    "all NaN": (
        np.full((3, 1), np.nan),
        {},
        refused(
            "is missing .* in all . rows; drop the column", column="x0", options=("drop_constant",)
        ),
    ),
    "negative code": (
        np.array([[0, 1], [1, -2]]),
        {},
        refused(
            "negative code .*>= 0.*missing value", column="x1", row=1, value=-2, options=("family",)
        ),
    ),
    "negative code, frame": (
        pd.DataFrame({"k": [0, -9]}),
        {},
        refused(
            "negative code .*>= 0.*missing value", column="k", row=1, value=-9, options=("family",)
        ),
    ),
    "negative code, objects": (
        pd.DataFrame({"k": [0, -9]}, dtype=object),
        {},
        refused(
            "negative code .*>= 0.*missing value", column="k", row=1, value=-9, options=("family",)
        ),
    ),
    "negative code, vector": (
        {"k": np.array([0, -1])},
        {},
        refused(
            "negative code .*>= 0.*missing value", column="k", row=1, value=-1, options=("family",)
        ),
    ),
    "negative count": (S_NEGATIVE, {}, refused("negative value", column="x2", row=1, value=-1)),
    "negative count, groups": (
        S_NEGATIVE,
        {"groups": [0, 0, 0]},
        refused("negative value", column="x2", row=1, value=-1),
    ),
    "a path": ("x.csv", {}, refused("no file 'x.csv'; check the path", path="x.csv")),
    "a Path": (Path("x.csv"), {}, refused("no file 'x.csv'; check the path", path="x.csv")),
    "bytes": (b"x.csv", {}, refused("X is b'x.csv'; pass a table, not a path")),
    "nothing": (None, {}, refused("X is None; pass a table")),
    "infinity, frame": (
        pd.DataFrame({"r": [0.5, np.inf]}),
        {},
        refused("infinity", column="r", row=1, value=np.inf),
    ),
    "dates": (
        pd.DataFrame({"t": pd.to_datetime(["2020", "2021"])}),
        {},
        refused("dates and times are not supported", column="t"),
    ),
    "dates, array": (
        np.array([["2020"], ["2021"]], "M8[Y]"),
        {},
        refused("dates and times are not supported", column="x0"),
    ),
    "lists": (
        pl.DataFrame({"t": [[1], [2]]}),
        {},
        refused("columns may be boolean, integer, float, string or categorical", column="t"),
    ),
    "object array": (
        np.array([[0, "a"], [{}, "b"]], dtype=object),
        {},
        refused("mixes types", column="x0", value=("dict", "int")),
    ),
    "array of objects": (
        np.array([[{1}], [{2}]], dtype=object),
        {},
        refused("'x0' holds set values .* argument must be a string or a number", column="x0"),
    ),
    "mixed objects": (
        pd.DataFrame({"m": ["a", 1, "b"]}),
        {},
        refused("mixes types.*convert it to one type", column="m", value=("int", "str")),
    ),
    "objects of sets": (
        pd.DataFrame({"m": [{1}, {2}]}),
        {},
        refused("holds set values", column="m"),
    ),
    "repeated names": (
        pd.DataFrame(CODES, columns=["a", "b", "a"]),
        {},
        refused("more than once; rename", column="a", value="a"),
    ),
    "names alike as text": (
        pd.DataFrame({1: [0, 1], "1": [1, 0]}),
        {},
        refused("variable names must be different, but", column="1", value="1"),
    ),
    "repeated given names": (
        CODES,
        {"names": ["a", "a", "b"]},
        refused("more than once", column="a", value="a"),
    ),
    "too few names": (
        CODES,
        {"names": ["a"]},
        refused("one name for each", option="names", value=1),
    ),
    "names as a string": (
        CODES,
        {"names": "abc"},
        refused("names must be a list of", option="names", value="abc", options=("names",)),
    ),
    "all constant": (
        np.ones((4, 2), int),
        {"drop_constant": True},
        refused("all 2 columns are constant", column="x0", value=1),
    ),
    "many constant": (
        np.column_stack([CODES[:, 0], np.ones((60, 7), int)]),
        {},
        refused(
            r"7 columns have one value in all 60 rows: 'x1' \(1\), .*'x5' \(1\) and 2 more",
            column="x1",
            value=1,
            options=("drop_constant",),
        ),
    ),
    "never present": (
        sparse.csr_array(np.eye(3)[:, [0, 1]] * [1, 0]),
        {},
        refused("has one value", column="x1", value=0, options=("drop_constant",)),
    ),
    "constant block": (
        [np.ones((4, 2)), np.eye(4)],
        {},
        refused("has one value", column="x0", value=np.ones(2), options=("drop_constant",)),
    ),
    "blocks of unequal length": (
        {"u": np.eye(4), "v": np.eye(5)},
        {},
        refused("align the rows", column="v", value=5),
    ),
    "block of three dimensions": (
        [np.zeros((3, 2, 2))],
        {},
        refused("dimensions", column="x0", value=(3, 2, 2)),
    ),
    "block without columns": (
        [np.zeros((3, 0))],
        {},
        refused("columns", column="x0", value=(3, 0)),
    ),
    "block of text": (
        [np.array([["a"], ["b"]])],
        {},
        refused("must be numeric.*1-D vector", column="x0[0]"),
    ),
    "group labels too few": (
        S,
        {"groups": [0, 1]},
        refused("groups has", option="groups", value=2, options=("groups",)),
    ),
    "group labels too many": (
        S,
        {"groups": [0, 1, 1, 2]},
        refused("groups has", option="groups", value=4, options=("groups",)),
    ),
    "group label missing": (
        S,
        {"groups": ["a", None, "b"]},
        refused(
            "groups has the label None for column", column="1", option="groups", options=("groups",)
        ),
    ),
    "group label NaN": (
        S,
        {"groups": [1.0, np.nan, 2.0]},
        refused(
            "groups has the label nan for column",
            column="1",
            option="groups",
            value=np.nan,
            options=("groups",),
        ),
    ),
    "group out of range": (
        S,
        {"groups": {"a": [0, 1], "b": [3]}},
        refused("'b' .*out of range", option="groups", value=3),
    ),
    "group below range": (
        S,
        {"groups": {"a": [0, 1, -1]}},
        refused("out of range", option="groups", value=-1),
    ),
    "group overlap": (
        S,
        {"groups": {"a": [0, 1], "b": [1, 2]}},
        refused("two groups, 'a' and 'b'", option="groups", value=1),
    ),
    "group empty": (
        S,
        {"groups": {"a": [0, 1, 2], "b": []}},
        refused("is empty", option="groups", value="b"),
    ),
    "group not a list": (
        S,
        {"groups": {"a": 0}},
        refused("must be a list of column numbers, got", option="groups", value=0),
    ),
    "column in no group": (
        S,
        {"groups": {"a": [0, 2]}},
        refused("is in no group", option="groups", value=1),
    ),
    "groups of a frame": (
        pd.DataFrame(CODES),
        {"groups": [0, 0, 1]},
        refused("pass a matrix", option="groups", value="DataFrame", options=("groups", "groups")),
    ),
    "lazy frame": (
        pl.LazyFrame({"a": [0, 1]}),
        {},
        refused(r"lazy frame .* call .collect\(\)", value="LazyFrame"),
    ),
}
if S_FLAT.ndim == 1:  # before SciPy 1.13 sparse arrays have two dimensions
    BAD["one sparse dimension"] = (S_FLAT, {}, refused("Reshape your data", value=(3,)))


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    data, options, expected = BAD[case]
    with refusing(expected):
        as_table(data, **options)


def test_dask_is_refused_by_name() -> None:
    collection = type("Array", (), {"__module__": "dask.array.core"})()
    with pytest.raises(DataError, match=r"Dask .* not supported yet, got Array; call .compute"):
        as_table(collection)


def test_data_error_is_a_value_error() -> None:
    assert issubclass(DataError, ValueError)


# --- number of states ----------------------------------------------------------------


@pytest.mark.parametrize("n_states", [2, np.int64(2), "auto"])
def test_n_states_that_fit(n_states: Any) -> None:
    assert check_n_states(as_table(CODES), n_states) in (2, "auto")


@pytest.mark.parametrize("n_states", [1, 0, -3, 2.0, "three", None, True])
def test_n_states_that_make_no_sense(n_states: Any) -> None:
    with pytest.raises(DataError, match=re.escape(f">= 2, 'auto' or 'bic', got {n_states!r}")):
        check_n_states(as_table(CODES), n_states)


def test_n_states_beyond_a_dimension_names_the_variables() -> None:
    rng = np.random.default_rng(5)
    message = "variable 'x0' has 2 categories, fewer than n_states=3; lower n_states or drop it"
    with pytest.raises(DataError, match=message):
        check_n_states(as_table(CODES), 3)
    binary = as_table(sparse.random(50, 8, density=0.5, random_state=0))
    message = r"8 variables are .* 'x4' has 2 categories \(and 3 more\), all fewer than n_states=3"
    with pytest.raises(DataError, match=message):
        check_n_states(binary, 3)
    wide = [rng.normal(size=(9, 18)), rng.normal(size=(9, 17))]
    with pytest.raises(DataError, match="9 samples are fewer than n_states=10"):
        check_n_states(as_table(wide), 10)
    counts = {"u": rng.poisson(2.0, (90, 2)), "v": rng.poisson(2.0, (90, 3))}
    message = "2 variables are .* 'u' has 1 free dimension, 'v' has 2 free dimensions, all fewer"
    with pytest.raises(DataError, match=message):
        check_n_states(as_table(counts), 4)
    message = "variable 'u' has 1 free dimension, fewer than n_states=3"
    with pytest.raises(DataError, match=message):
        check_n_states(as_table(counts), 3)
    assert check_n_states(as_table(counts), 2) == 2


def test_fewer_samples_than_states() -> None:
    table = as_table(np.arange(3)[:, None])
    with pytest.raises(DataError, match="3 samples are fewer than n_states=4"):
        check_n_states(table, 4)
