"""as_table: families, missing values, notes; what the structure and what likelihoods see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.stats import norm, rankdata

from latenttree.data import (
    CODED,
    DataError,
    Schema,
    Table,
    as_table,
    check_identifiers,
    check_n_states,
    free_dimensions,
    one_hot_codes,
)

N = 400


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixed(n: int = N, seed: int = 0) -> pd.DataFrame:
    r = rng(seed)
    return pd.DataFrame(
        {
            "flag": r.random(n) < 0.5,
            "code": r.integers(0, 3, n),
            "text": r.choice(["x", "y"], n),
            "level": pd.Categorical(
                r.choice(["low", "mid", "high"], n), categories=["low", "mid", "high"], ordered=True
            ),
            "real": r.normal(size=n),
            "count": r.poisson(3, n),
        }
    )


def with_gaps(frame: pd.DataFrame, seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    gaps = rng(seed).random(frame.shape) < 0.2
    holes: dict[str, Any] = {}
    for j, name in enumerate(frame):
        column = frame[name].astype(
            {"flag": "boolean", "count": "Int64"}.get(name, frame[name].dtype)
        )
        holes[name] = column.mask(gaps[:, j])
    return pd.DataFrame(holes), gaps


def dense(x: Any) -> np.ndarray:
    return np.asarray(x.toarray() if sparse.issparse(x) else x)


def structural(table: Table, v: int) -> np.ndarray:
    """(n, dim) the coordinates of a variable."""
    if table.codes is not None:
        return (table.codes[:, [v]] == np.arange(table.dims[v])).astype(float)
    assert table.matrix is not None
    return dense(table.matrix[:, table.offsets[v] : table.offsets[v + 1]])


def array(table: Table, v: int) -> Any:
    assert table.values is not None
    return table.values.arrays[v]


# --- mixed DataFrames ----------------------------------------------------------------


def test_a_mixed_frame_has_the_family_of_each_column() -> None:
    table = as_table(mixed(), family={"level": "ordinal", "count": "poisson"})
    assert table.kind == "codes"
    assert table.families == (
        *("categorical",) * 3,
        "ordinal",
        "gaussian",
        "poisson",
    )
    assert table.dims.tolist() == [2, 3, 2, 3, 10, len(np.unique(table.codes[:, 5]))]
    assert list(table.categories[3]) == ["low", "mid", "high"]  # type: ignore[arg-type]
    assert table.categories[4] is None
    assert table.values is not None
    assert set(table.values.arrays) == {4, 5}
    np.testing.assert_array_equal(table.values.arrays[4], mixed()["real"])
    np.testing.assert_array_equal(table.values.arrays[5], mixed()["count"])
    assert all(x.dtype == np.float64 and x.flags.c_contiguous for x in table.values.arrays.values())
    assert (table.values.codes[:, 4:] == -1).all()
    np.testing.assert_array_equal(table.values.codes[:, :4], table.codes[:, :4])
    assert table.values.codes.dtype == np.int8


def test_values_are_none_where_all_is_categorical() -> None:
    frame = mixed()[["flag", "code", "text", "level"]]
    assert as_table(frame).values is None
    assert as_table(frame, family="categorical").values is None
    ordinal = as_table(frame, family={"level": "ordinal"}).values
    assert ordinal is not None
    assert ordinal.arrays == {}


def test_codes_of_numbers_take_no_memory() -> None:
    table = as_table(rng().normal(size=(50, 3)))
    assert table.values is not None
    assert table.values.codes.strides == (0, 0)
    assert (table.values.codes == -1).all()


FRAMES = {
    "pandas": lambda frame: frame,
    "polars": pl.from_pandas,
    "pyarrow": lambda frame: pa.Table.from_pandas(frame, preserve_index=False),
    "pandas on pyarrow": lambda frame: frame.convert_dtypes(dtype_backend="pyarrow"),
}


@pytest.mark.parametrize("library", FRAMES)
def test_gaps_in_any_column(library: str) -> None:
    whole = mixed()
    frame, gaps = with_gaps(whole)
    families = {"count": "poisson", "level": "categorical"}
    table = as_table(FRAMES[library](frame), family=families)
    full = as_table(FRAMES[library](whole), family=families)
    assert table.codes is not None
    assert full.codes is not None
    assert table.codes.dtype == np.int8
    assert table.has_missing
    np.testing.assert_array_equal(table.codes < 0, gaps)
    np.testing.assert_array_equal(
        table.codes[:, :4], np.where(gaps, -1, full.codes.astype(int))[:, :4]
    )
    for v in (4, 5):
        np.testing.assert_array_equal(array(table, v), np.where(gaps[:, v], np.nan, array(full, v)))
    assert [list(x) for x in table.categories[:4]] == [list(x) for x in full.categories[:4]]  # type: ignore[arg-type]


OBJECTS: dict[str, tuple[list[Any], list[Any], list[int]]] = {
    "text": (["a", None, "b"], ["a", "b"], [0, -1, 1]),
    "text and NaN": (["a", np.nan, "b"], ["a", "b"], [0, -1, 1]),
    "text and NA": (["a", pd.NA, "b"], ["a", "b"], [0, -1, 1]),
    "integers": ([3, None, 1], [1, 3], [1, -1, 0]),
    "booleans": ([True, None, False], [False, True], [1, -1, 0]),
    "whole floats": ([3.0, None, 1.0], [1, 3], [1, -1, 0]),
    "integers and floats": ([3, None, 1.0], [1, 3], [1, -1, 0]),
    "large integers": ([10**30, None, 1], [1, 10**30], [1, -1, 0]),
}


@pytest.mark.parametrize("case", OBJECTS)
def test_objects_with_gaps(case: str) -> None:
    values, labels, codes = OBJECTS[case]
    column = np.empty(3, dtype=object)
    column[:] = values
    for data in (
        column[:, None],
        {"x0": column},
        pd.DataFrame({"x0": pd.Series(values, dtype=object)}),
    ):
        table = as_table(data)
        assert list(table.categories[0]) == labels  # type: ignore[arg-type]
        assert table.codes is not None
        assert table.codes[:, 0].tolist() == codes


def test_object_columns_have_their_own_types() -> None:
    table = as_table(np.array([["a", 1, 0.5], ["b", None, 2], [None, 2, 0.25]], dtype=object))
    assert table.families == ("categorical", "categorical", "gaussian")


def test_masked_arrays() -> None:
    codes = np.ma.masked_equal(np.array([[0, 1], [1, 9], [9, 0], [1, 1]]), 9)
    table = as_table(codes)
    assert table.codes is not None
    assert table.codes.tolist() == [[0, 1], [1, -1], [-1, 0], [1, 1]]
    text = np.ma.array([["a"], ["b"], ["c"]], mask=[[0], [0], [1]])
    assert as_table(text).codes.tolist() == [[0], [1], [-1]]  # type: ignore[union-attr]
    real = np.ma.array([[0.5], [1.5], [7.0]], mask=[[0], [0], [1]])
    np.testing.assert_array_equal(array(as_table(real), 0), [0.5, 1.5, np.nan])
    block = np.ma.array(rng().normal(size=(9, 2)), mask=False)
    block[3] = np.ma.masked
    table = as_table([block, codes_of(9)])
    assert np.isnan(array(table, 0)[3]).all()
    assert table.missing is not None
    assert np.argwhere(table.missing).tolist() == [[3, 0]]
    grouped = as_table(np.ma.array(codes, dtype=float), groups=["u", "u"])
    assert np.isnan(array(grouped, 0)).sum() == 2


def codes_of(n: int, d: int = 3) -> np.ndarray:
    return np.arange(n) % d


@pytest.mark.parametrize(
    ("d", "gaps", "dtype"),
    [(128, True, np.int8), (129, True, np.int16), (256, False, np.uint8), (40_000, True, np.int32)],
)
def test_codes_with_gaps_are_of_the_smallest_signed_dtype(d: int, gaps: bool, dtype: Any) -> None:
    column = np.arange(2 * d).astype(float) % d
    column[:1] = np.nan if gaps else 0
    table = as_table(np.column_stack([column, codes_of(2 * d)]), family="categorical")
    assert table.codes is not None
    assert table.codes.dtype == dtype
    assert table.codes.max() == d - 1
    assert table.codes.min() == (-1 if gaps else 0)


# --- float columns -------------------------------------------------------------------


def test_floats_are_real_unless_few_whole_numbers() -> None:
    n = 100
    columns = {
        "real": rng().normal(size=n),
        "few": np.arange(n) % 20 * 1.0,
        "more": np.arange(n) % 21 * 1.0,
        "negative": np.arange(n) % 3 - 1.0,
        "one half": np.where(np.arange(n) == 50, 0.5, 1.0),
        "huge": np.where(np.arange(n) % 2, 1e300, 0.0),
    }
    frame = pd.DataFrame(columns)
    expected = ["gaussian", "categorical", *["gaussian"] * 4]
    for data in (frame, frame.to_numpy(), columns, pl.from_pandas(frame)):
        table = as_table(data)
        assert list(table.families) == expected
        assert table.categories[1].dtype == np.int64  # type: ignore[union-attr]
        assert sum("few whole numbers" in note for note in table.notes) == 1
    assert as_table(frame, family="gaussian").families == ("gaussian",) * 6
    assert as_table(frame, family={"one half": "categorical"}).dims[4] == 2


def test_notes_on_what_could_surprise() -> None:
    n = 300
    frame = pd.DataFrame(
        {
            "age": np.arange(n) % 51,
            "few": np.arange(n) % 50,
            "gap": np.where(np.arange(n) % 3, np.nan, np.arange(n) % 7),
            "half": np.where(np.arange(n) % 2, np.nan, 0.1 + np.arange(n) % 8),
        }
    )
    notes = as_table(frame).notes
    assert notes == (
        "'gap' holds floats that are few whole numbers, read as categories; "
        "family={'gap': 'gaussian'} reads it as a number",
        "'age' holds 51 different whole numbers with few rows for each, read as numbers; "
        "family={'age': 'categorical'} reads it as categories",
        "'gap' is missing in 67% of 300 rows; its distances rest on 100 rows",
    )
    quiet = {"age": "gaussian", "gap": "categorical"}
    assert len(as_table(frame, family=quiet).notes) == 1
    many = pd.DataFrame({f"x{j}": frame["gap"] for j in range(7)})
    found = as_table(many).notes
    assert "'x0', 'x1', 'x2', 'x3', 'x4' and 2 more hold floats" in found[0]
    assert "7 variables are missing in more than half of 300 rows" in found[1]
    assert "'x4' rest on 100 rows (and 2 more)" in found[1]
    bag = as_table({"bag": rng().poisson(2, (50, 3)), "other": codes_of(50)}).notes
    assert bag[0].startswith("'bag' holds whole numbers, read as bags of counts")


def test_extreme_scales_side_by_side() -> None:
    x = rng().normal(size=(1000, 2))
    table = as_table(x * [1e-12, 1e12])
    plain = as_table(x)
    assert table.codes is not None
    np.testing.assert_array_equal(table.codes, plain.codes)
    for scale in ([1e-12, 1e12], [1e-200, 1e200]):
        blocks = [np.tile(x * scale, 9), codes_of(1000)]  # 18 wide: standardised
        z = structural(as_table(blocks), 0)
        np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-4)
        np.testing.assert_allclose(
            z, structural(as_table([np.tile(x, 9), codes_of(1000)]), 0), atol=1e-5
        )
    counts = sparse.csr_array(rng().poisson(1.0, (1000, 2)) * [1e-12, 1e12])
    z = structural(as_table([counts, codes_of(1000)], family={"x0": "gaussian"}), 0)
    np.testing.assert_allclose(z.std(axis=0), 1, rtol=1e-4)


def test_a_number_of_negligible_spread_is_constant() -> None:
    x = 1e6 + 1e-7 * rng().normal(size=60)
    data = {"x": x, "y": codes_of(60)}
    with pytest.raises(DataError, match=r"'x' has one value \(1e\+06\) in all 60 rows"):
        as_table(data)
    assert as_table(data, drop_constant=True).dropped == ("x",)
    block = {"b": np.column_stack([x, x]), "y": codes_of(60)}
    with pytest.raises(DataError, match=r"'b' has one value \(\[1000000. 1000000.\]\)"):
        as_table(block)
    with pytest.raises(DataError, match=r"'x' has one value"):
        as_table(data, scores=True)


def test_a_single_known_value_is_constant() -> None:
    frame = pd.DataFrame({"t": ["a", None, "a", None], "u": [1, 2, 2, 1]})
    with pytest.raises(DataError, match=r"'t' has one value \(a, or missing\) in all 4 rows"):
        as_table(frame)
    assert as_table(frame, drop_constant=True).names == ("u",)


# --- blocks --------------------------------------------------------------------------


def some_blocks(n: int = N) -> dict[str, np.ndarray]:
    r = rng(3)
    return {
        "one": np.eye(4)[r.integers(0, 4, n)],
        "hot": (r.random((n, 3)) < 0.3).astype(float),
        "bag": r.poisson(0.8, (n, 5)).astype(float),
        "real": r.normal(size=(n, 2)),
        "wide": r.normal(size=(n, 20)) * 7 + 3,
    }


@pytest.mark.parametrize("kind", ["dense", "grouped"])
def test_families_of_blocks(kind: str) -> None:
    blocks = some_blocks()
    if kind == "dense":
        table = as_table(blocks)
    else:
        labels = [name for name, block in blocks.items() for _ in range(block.shape[1])]
        table = as_table(np.hstack(list(blocks.values())), groups=labels)
    assert table.kind == "blocks"
    assert table.families == (
        "categorical",
        "multihot",
        "multinomial",
        "gaussian_diagonal",
        "gaussian_diagonal",
    )
    assert table.dims.tolist() == [4, 4, 5, 20, 20]
    assert free_dimensions(table).tolist() == [3, 4, 4, 18, 20]
    assert table.matrix is not None
    assert table.matrix.has_canonical_format
    assert table.matrix.dtype == np.float32
    assert table.values is not None
    np.testing.assert_array_equal(table.values.codes[:, 0], blocks["one"].argmax(axis=1))
    assert (table.values.codes[:, 1:] == -1).all()
    for v, name in enumerate(list(blocks)[1:], 1):
        np.testing.assert_array_equal(array(table, v), blocks[name])


def test_structural_forms_of_blocks() -> None:
    blocks = some_blocks()
    table = as_table(blocks)
    np.testing.assert_array_equal(structural(table, 0), blocks["one"])
    some = blocks["hot"].sum(axis=1) > 0
    np.testing.assert_array_equal(structural(table, 1), np.column_stack([some, blocks["hot"]]))
    total = blocks["bag"].sum(axis=1)
    assert (total == 0).any()
    assert table.missing is not None
    np.testing.assert_array_equal(table.missing[:, 2], total == 0)
    shares = blocks["bag"] / np.maximum(total, 1)[:, None]
    np.testing.assert_allclose(structural(table, 2), shares, rtol=1e-6)
    bins = structural(table, 3)
    assert bins.shape == (N, 20)
    for j in range(2):
        alone = as_table(blocks["real"][:, [j]])
        np.testing.assert_array_equal(bins[:, 10 * j : 10 * j + 10], structural(alone, 0))
    wide = blocks["wide"]
    np.testing.assert_allclose(
        structural(table, 4), (wide - wide.mean(axis=0)) / wide.std(axis=0), atol=1e-5
    )


def test_sparse_blocks_have_the_forms_of_dense_ones() -> None:
    blocks = {name: block for name, block in some_blocks().items() if name not in ("real", "wide")}
    found = as_table({name: sparse.coo_array(block) for name, block in blocks.items()})
    expected = as_table(blocks)
    assert found.families == expected.families
    assert found.matrix is not None
    assert expected.matrix is not None
    np.testing.assert_array_equal(found.matrix.toarray(), expected.matrix.toarray())
    np.testing.assert_array_equal(found.missing, expected.missing)
    assert sparse.issparse(array(found, 1))
    x = sparse.random(N, 40, density=0.2, random_state=0, format="csr")
    table = as_table([x, codes_of(N)])
    assert table.families == ("gaussian_diagonal", "categorical")
    np.testing.assert_allclose(
        structural(table, 0), x.toarray() / x.toarray().std(axis=0), rtol=1e-4
    )
    negative = as_table([-x, codes_of(N)], family={"x0": "gaussian_spherical"})
    np.testing.assert_allclose(structural(negative, 0), -structural(table, 0), rtol=1e-6)


def test_poisson_blocks_are_scaled() -> None:
    counts = rng().poisson([1.0, 5.0, 30.0], (N, 3))
    for data in (counts, sparse.csr_array(counts)):
        table = as_table([data, codes_of(N)], family={"x0": "poisson"})
        np.testing.assert_allclose(structural(table, 0), counts / counts.std(axis=0), rtol=1e-5)
        np.testing.assert_array_equal(dense(array(table, 0)), counts)
        assert free_dimensions(table)[0] == 3


def test_a_block_of_one_number_is_binned() -> None:
    counts = rng().poisson(3.0, (N, 1))
    alone = as_table(counts, family="poisson")
    for data in (counts, sparse.csr_array(counts)):
        table = as_table([data, codes_of(N)])
        assert table.families == ("poisson", "categorical")
        np.testing.assert_array_equal(structural(table, 0), structural(alone, 0))
        assert free_dimensions(table)[0] == table.dims[0] - 1


def test_vectors_and_blocks_mixed() -> None:
    blocks = some_blocks()
    x = np.where(np.arange(N) % 5, rng().normal(size=N), np.nan)
    data = {"real": blocks["real"], "x": x, "t": np.array(["a", "b"])[codes_of(N, 2)]}
    table = as_table(data)
    assert table.families == ("gaussian_diagonal", "gaussian", "categorical")
    assert table.missing is not None
    gaps = np.column_stack([np.zeros(N), np.isnan(x), np.zeros(N)])
    np.testing.assert_array_equal(table.missing, gaps)
    alone = as_table(x[:, None])
    np.testing.assert_array_equal(structural(table, 1), structural(alone, 0))
    np.testing.assert_array_equal(array(table, 1), x)
    assert list(table.categories[2]) == ["a", "b"]  # type: ignore[arg-type]
    assert free_dimensions(table).tolist() == [18, 7, 1]


def test_missing_blocks_and_coordinates() -> None:
    blocks = {name: block.copy() for name, block in some_blocks().items()}
    for block in blocks.values():
        block[7] = np.nan
    for name in ("hot", "bag", "real", "wide"):
        blocks[name][9, 0] = np.nan
        blocks[name][11, 1] = np.nan
    table = as_table(blocks)
    assert table.families == as_table(some_blocks()).families
    assert table.missing is not None
    assert table.missing[7].all()
    bag_lost = np.isnan(blocks["bag"]).any(axis=1) | (np.nansum(blocks["bag"], axis=1) == 0)
    np.testing.assert_array_equal(table.missing[:, 2], bag_lost)
    assert not table.missing[9, [0, 1, 3, 4]].any()
    assert table.matrix is not None
    assert table.matrix[[7]].nnz == 0
    assert np.isnan(array(table, 2)[[9, 11]]).all()  # no part of a bag is a bag
    for v, name in enumerate(list(blocks)):
        if name in ("hot", "real", "wide"):
            np.testing.assert_array_equal(array(table, v), blocks[name])
    assert table.values is not None
    assert table.values.codes[7, 0] == -1
    # a missing coordinate: the frequencies of its bins, 0 once standardised
    real = structural(table, 3)
    assert real.shape[1] == 2 * 9  # 398 values in each coordinate
    counts = real[np.setdiff1d(np.arange(N), [7, 9]), :9].sum(axis=0)
    np.testing.assert_allclose(real[9, :9], counts / counts.sum(), rtol=1e-5)
    assert set(real[9, 9:]) == {0.0, 1.0}
    assert structural(table, 4)[9, 0] == 0
    hot = structural(table, 1)
    np.testing.assert_allclose(hot[9, 1], np.nanmean(blocks["hot"][:, 0]), rtol=1e-5)


def test_some_of_them_is_known_where_a_code_is_present() -> None:
    x = np.array([[1.0, np.nan], [0, np.nan], [0, 0], [0, 1], [1, 1], [0, 0]])
    hot = structural(as_table([x, codes_of(6)]), 0)
    assert hot[0, 0] == 1
    assert hot[1, 0] == pytest.approx(3 / 5)  # three of five rows whose answer is known
    assert hot[1, 2] == pytest.approx(1 / 2)


def test_one_hot_blocks_with_gaps_are_codes() -> None:
    codes = np.array([[0, 1], [2, -1], [-1, 0], [1, 1]])
    blocks = [np.where(codes[:, [j]] < 0, np.nan, np.eye(3)[codes[:, j]]) for j in range(2)]
    table = as_table(blocks)
    assert table.values is None
    assert table.has_missing
    np.testing.assert_array_equal(one_hot_codes(table), codes)
    assert table.storage.known(table.chunk(0, 4)).tolist() == (codes >= 0).tolist()  # type: ignore[union-attr]
    mixed = one_hot_codes(as_table([np.eye(3)[[0, 2, 1]], np.array([1, 0, 1])]))
    np.testing.assert_array_equal(mixed, [[0, 1], [2, 0], [1, 1]])
    assert one_hot_codes(as_table([rng().normal(size=(9, 2))])) is None


def test_zero_rows_of_a_categorical_block_are_missing_on_request() -> None:
    x = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])
    assert as_table([x, codes_of(4)]).families[0] == "multihot"
    table = as_table([x, codes_of(4)], family={"x0": "categorical"})
    assert table.values is None
    assert one_hot_codes(table)[:, 0].tolist() == [0, -1, 1, 1]  # type: ignore[index]


def test_collinear_columns_are_fine() -> None:
    x = rng().normal(size=(N, 2))
    block = np.column_stack([x, x.sum(axis=1), 2 * x[:, 0], np.ones(N)])
    table = as_table([block, np.tile(block, 4), codes_of(N)])
    assert table.dims.tolist() == [41, 20, 3]
    assert table.matrix is not None
    assert np.isfinite(table.matrix.data).all()


def test_multihot_of_one_hot_rows_is_categorical() -> None:
    block = np.eye(3)[codes_of(30)]
    table = as_table([block, codes_of(30)], family={"x0": "multihot"})
    assert table.families == ("categorical", "categorical")


def test_names_of_real_families() -> None:
    block, x = rng().normal(size=(N, 3)), rng().normal(size=N)
    for asked, of_block, of_vector in [
        ("gaussian", "gaussian_diagonal", "gaussian"),
        ("gaussian_diagonal", "gaussian_diagonal", "gaussian"),
        ("gaussian_spherical", "gaussian_spherical", "gaussian"),
        ("gaussian_full", "gaussian_full", "gaussian"),
        ("gaussian_tied", "gaussian_tied", "gaussian_tied"),
    ]:
        assert as_table({"b": block, "x": x}, family=asked).families == (of_block, of_vector)


# --- ordinal -------------------------------------------------------------------------


def test_ordinal_keeps_its_own_order() -> None:
    values = ["high", "low", None, "mid", "low"]
    levels = ["low", "mid", "never", "high"]
    pandas = pd.DataFrame({"x": pd.Categorical(values, categories=levels, ordered=True)})
    polars = pl.DataFrame({"x": pl.Series(values, dtype=pl.Enum(levels))})
    for frame in (pandas, polars):
        table = as_table(frame, family="ordinal")
        assert list(table.categories[0]) == ["low", "mid", "high"]  # type: ignore[arg-type]
        assert table.codes[:, 0].tolist() == [2, 0, -1, 1, 0]  # type: ignore[index]
        assert table.families == ("ordinal",)
        assert as_table(frame).families == ("categorical",)
        assert list(as_table(frame).categories[0]) == ["low", "mid", "high"]  # type: ignore[arg-type]
    numbers = pd.DataFrame({"x": pd.Categorical([3, 1, 2], categories=[3, 2, 1], ordered=True)})
    assert as_table(numbers, family="ordinal").codes[:, 0].tolist() == [0, 2, 1]  # type: ignore[index]
    assert as_table(np.array([[-2], [0], [1]]), family="ordinal").dims.tolist() == [3]
    with pytest.raises(DataError, match=r"'ordinal' of column 'x': 'b' .* no order.*ordered=True"):
        as_table({"x": np.array(["b", "a"])}, family="ordinal")


# --- scores, for Gaussian trees ------------------------------------------------------


def test_scores_are_numbers() -> None:
    frame = mixed().drop(columns="text")
    table = as_table(frame, scores=True)
    assert table.kind == "blocks"
    assert table.families == ("gaussian",) * 5
    assert table.dims.tolist() == [1] * 5
    numbers = frame.assign(level=frame["level"].cat.codes).to_numpy(dtype=float)
    for v in range(5):
        np.testing.assert_array_equal(array(table, v), numbers[:, v])
    z = norm.ppf((rankdata(numbers, axis=0) - 0.5) / len(numbers))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    assert table.matrix is not None
    np.testing.assert_allclose(table.matrix.toarray(), z, atol=1e-5)
    assert free_dimensions(table).tolist() == [1] * 5
    assert check_n_states(table, 1, gaussian=True) == 1
    with pytest.raises(DataError, match=r"5 variables are .* 'flag' has 1 free dimension"):
        check_n_states(table, 2, gaussian=True)


def test_scores_with_gaps() -> None:
    frame, gaps = with_gaps(mixed().drop(columns="text"))
    table = as_table(frame, scores=True)
    np.testing.assert_array_equal(table.missing, gaps)
    assert table.matrix is not None
    z = table.matrix.toarray()
    assert (z[gaps] == 0).all()
    for v in range(5):
        np.testing.assert_allclose(z[~gaps[:, v], v].std(), 1, rtol=1e-4)
        np.testing.assert_array_equal(np.isnan(array(table, v)), gaps[:, v])


def test_scores_of_matrices_and_blocks() -> None:
    x = rng().poisson(1.0, (N, 4)) - 1.0
    expected = as_table(x, scores=True)
    found = as_table(sparse.csr_array(x), scores=True)
    assert found.matrix is not None
    assert expected.matrix is not None
    np.testing.assert_array_equal(found.matrix.toarray(), expected.matrix.toarray())
    grouped = as_table(x, groups=["u", "u", "v", "v"], scores=True)
    assert grouped.families == ("gaussian", "gaussian")
    np.testing.assert_array_equal(grouped.matrix.toarray(), expected.matrix.toarray())  # type: ignore[union-attr]
    assert array(as_table(sparse.csr_array(x), groups=[0, 0, 1, 1], scores=True), 0).shape == (N, 2)


def test_scores_of_a_table() -> None:
    frame, _ = with_gaps(mixed().drop(columns="text"))
    table = as_table(frame, family={"level": "ordinal"})
    again, direct = as_table(table, scores=True), as_table(frame, scores=True)
    np.testing.assert_array_equal(again.matrix.toarray(), direct.matrix.toarray())  # type: ignore[union-attr]
    np.testing.assert_array_equal(again.missing, direct.missing)
    with pytest.raises(DataError, match="column 'text' holds text"):
        as_table(as_table(mixed()), scores=True)
    ones = sparse.csr_array(rng().integers(0, 2, (N, 3)))
    binary = as_table(as_table(ones), scores=True)
    np.testing.assert_array_equal(array(binary, 1), ones.toarray()[:, 1])
    blocks = as_table(as_table(some_blocks()), scores=True)
    assert blocks.families == ("gaussian",) * 5
    assert array(blocks, 0).shape == (N, 4)


# --- what is wrong -------------------------------------------------------------------

REALS = {"age": np.array([0.5, 1.5, 2.25, 3.0]), "code": np.array([0, 1, 1, 0])}
TEXT = {"t": np.array(["a", "b", "a"])}
COUNTS = np.array([[1, 2], [0, 3], [4, 0]])

BAD: dict[str, tuple[Any, dict[str, Any], str]] = {
    "unknown family": (
        REALS,
        {"family": "gausian"},
        r"family 'gausian' is unknown \(did you mean 'gaussian'\?\); choose one of \['auto', 'cat",
    ),
    "unknown family of a column": (
        REALS,
        {"family": {"age": "normal"}},
        "family 'normal' of column 'age' is unknown.*choose one of",
    ),
    "family of no column": (
        REALS,
        {"family": {"agee": "gaussian"}},
        r"'agee', which the data do not have \(did you mean 'age'\?\); the columns are 'age', 'co",
    ),
    "family of a strange type": (REALS, {"family": 3}, "family=3 is neither a name"),
    "family None": (REALS, {"family": {"age": None}}, "family None of column 'age' is unknown"),
    "numbers of text": (
        TEXT,
        {"family": "gaussian"},
        r"'gaussian' needs numbers, but column 't' holds str values \(first 'a'\)",
    ),
    "counts of text": (TEXT, {"family": "poisson"}, "'poisson' needs numbers, but column 't'"),
    "negative count": (
        {"k": np.array([3, -2, 1])},
        {"family": "poisson"},
        "negative count -2 at row 1, column 'k': family 'poisson' holds whole numbers",
    ),
    "negative count after a gap": (
        {"k": np.array([np.nan, 3, -2, 1])},
        {"family": "poisson"},
        "negative count -2 at row 2, column 'k'",
    ),
    "half a count": (REALS, {"family": {"age": "poisson"}}, r"no whole number, 0.5 at row 0"),
    "negative count in a bag": (
        [COUNTS - 1, TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        r"negative count -1 at row 1, column 'x0\[0\]': family 'multinomial'",
    ),
    "half a count in a block": (
        [COUNTS * 0.5, TEXT["t"]],
        {"family": {"x0": "poisson"}},
        r"no whole number, 0.5 at row 0, column 'x0\[0\]'",
    ),
    "half a count in a sparse group": (
        sparse.csr_array(COUNTS * 0.5),
        {"groups": ["u", "u"], "family": "multinomial"},
        "no whole number, 0.5 at row 0, column 'x0'",
    ),
    "counts are not codes": (
        [COUNTS, TEXT["t"]],
        {"family": {"x0": "multihot"}},
        r"value 2 at row 0, column 'x0\[1\]': family 'multihot' holds codes",
    ),
    "a block that is not one-hot": (
        [COUNTS, TEXT["t"]],
        {"family": {"x0": "categorical"}},
        "row 0 of block 'x0' is not one-hot",
    ),
    "a bag of one": (
        [COUNTS[:, :1], TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        "use 'poisson'",
    ),
    "a binary block": ([COUNTS], {"family": "binary"}, "'multihot' reads it as a group"),
    "a binary column of three values": (
        {"k": np.array([0, 1, 2])},
        {"family": "binary"},
        r"allows two values, but it has 3 \(0, 1, 2, ...\)",
    ),
    "a bag of a column": (REALS, {"family": "multinomial"}, "'age' is a single one; pass a dict"),
    "full covariance of a sparse block": (
        [sparse.csr_array(COUNTS), TEXT["t"]],
        {"family": {"x0": "gaussian_full"}},
        "'gaussian_full' needs a dense block, but 'x0' is sparse",
    ),
    "numbers of a sparse matrix": (
        sparse.csr_array(COUNTS),
        {"family": "poisson"},
        r"'poisson': a sparse matrix without groups is read as binary variables.*X.toarray\(\)",
    ),
    "negative in a sparse block": (
        [sparse.csr_array(COUNTS - 1), TEXT["t"]],
        {},
        r"negative value -1 at row 1, column 'x0\[0\]'",
    ),
    "a coordinate that is always missing": (
        [np.array([[1.5, np.nan], [2.5, np.nan]])],
        {},
        r"column 'x0\[1\]' is missing .* in all 2 rows",
    ),
    "a bag that is always empty": (
        [np.zeros((3, 2)), TEXT["t"]],
        {"family": {"x0": "multinomial"}},
        "'x0' is missing .* in all 3 rows",
    ),
    "the same shares in every bag": (
        [np.outer([1, 2, 3], [2, 4]), TEXT["t"]],
        {},
        r"'x0' has one value \(\[0.333333 0.666667\]\)",
    ),
    "infinity in a block": ([np.array([[0.5], [np.inf]])], {}, r"inf.* row 1, column 'x0\[0\]'"),
    "text as scores": (TEXT, {"scores": True}, r"'t' holds text \(first 'a'\).*hidden='gaussian'"),
    "unordered labels as scores": (
        pd.DataFrame({"c": pd.Categorical(["u", "v"])}),
        {"scores": True},
        "'c' holds unordered labels",
    ),
    "categories as scores": (
        REALS,
        {"scores": True, "family": {"code": "categorical"}},
        "family 'categorical' of 'code' does not go with hidden='gaussian'",
    ),
    "negative codes": (
        {"k": np.array([0, -1])},
        {},
        r"code -1 at row 1.*NaN or None.*family=\{'k': 'gaussian'\}",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_named(case: str) -> None:
    data, options, match = BAD[case]
    with pytest.raises(DataError, match=match):
        as_table(data, **options)


def test_a_table_keeps_its_families() -> None:
    table = as_table(REALS)
    assert as_table(table) is table
    with pytest.raises(DataError, match="families; pass it alone"):
        as_table(table, family={"age": "gaussian"})


def test_labels_of_numbers_may_be_numbers() -> None:
    frame = pd.DataFrame({"c": pd.Categorical([2.5, -1.0, 2.5, None])})
    assert as_table(frame).families == ("categorical",)
    np.testing.assert_array_equal(
        array(as_table(frame, family="gaussian"), 0), [2.5, -1, 2.5, np.nan]
    )


def test_identifiers_are_categories() -> None:
    n = 50
    frame = pd.DataFrame({"id": np.arange(n), "y": codes_of(n)})
    with pytest.raises(DataError, match=r"'id' has 50 different values in 50 rows"):
        check_identifiers(as_table(frame))
    check_identifiers(as_table(frame, family={"id": "gaussian"}))
    with pytest.raises(DataError, match=r"'id' has 50 .*pass family={'id': 'gaussian'}"):
        check_identifiers(as_table(frame, family={"id": "ordinal"}))
    check_identifiers(as_table(frame.assign(id=rng().normal(size=n))))
    gappy = frame.assign(id=[f"row {i}" if i % 2 else None for i in range(n)])
    with pytest.raises(DataError, match=r"'id' has 25 different values in 25 rows"):
        check_identifiers(as_table(gappy))
    block = {"b": rng().normal(size=(n, 2)), "id": np.arange(n).astype(str)}
    with pytest.raises(DataError, match=r"'id' has 50 different"):
        check_identifiers(as_table(block))


def test_n_states_of_numbers() -> None:
    x = rng().normal(size=(100, 2))
    table = as_table(pd.DataFrame({"x": x[:, 0], "y": x[:, 1] > 0}), family={"y": "categorical"})
    with pytest.raises(DataError, match="variable 'y' has 2 categories, fewer than n_states=3"):
        check_n_states(table, 3)
    with pytest.raises(DataError, match=r"2 variables .* 'x0' has 4 bins of different values"):
        check_n_states(as_table(x), 5)
    assert check_n_states(as_table(x), 4) == 4


@pytest.mark.parametrize("family", [None, *CODED])
def test_polars_decimals(family: str | None) -> None:
    column = pl.Series(["0.5", None, "2.25"]).cast(pl.Decimal(scale=2))
    table = as_table(pl.DataFrame({"x": column}), family=family or "auto")
    read_as = "categorical" if family == "binary" else family
    assert table.families == (read_as or "gaussian",)
    assert table.codes[1, 0] == -1  # type: ignore[index]


# --- columns that are easily misread -------------------------------------------------


def test_whole_floats_that_number_the_rows_are_identifiers() -> None:
    n = 60
    ids = np.arange(n, dtype=float)
    ids[7] = np.nan
    frame = pd.DataFrame({"id": ids, "y": codes_of(n)})
    with pytest.raises(DataError, match=r"'id' has 59 .*if it is a number, pass family={'id'"):
        check_identifiers(as_table(frame))
    check_identifiers(as_table(frame, family={"id": "gaussian"}))
    check_identifiers(as_table(frame.assign(id=3 * ids)))  # too far apart
    check_identifiers(as_table(frame.assign(id=ids % 30)))  # not all different
    check_identifiers(as_table(frame[:20]))
    with pytest.raises(DataError, match=r"(?s)^2 columns .*\n- column 'x0' .*\n- column 'x1' "):
        check_identifiers(as_table(np.column_stack([np.arange(n), ids, codes_of(n)])))


def test_many_integers_of_a_frame_are_numbers() -> None:
    values = np.arange(1100) % 57  # 19 or 20 rows for each
    frame = pd.DataFrame({"zip": values, "y": codes_of(1100)})
    for library in FRAMES.values():
        table = as_table(library(frame))
        assert table.families == ("gaussian", "categorical")
        assert table.notes == (
            "'zip' holds 57 different whole numbers with few rows for each, read as numbers; "
            "family={'zip': 'categorical'} reads it as categories",
        )
    assert as_table(frame, family={"zip": "categorical"}).notes == ()
    assert as_table(frame.to_numpy()).families == ("categorical",) * 2  # codes
    assert "'x0' holds 57 different whole numbers" in as_table(frame.to_numpy()).notes[0]
    often = pd.concat([frame] * 2)
    assert as_table(often).families == ("categorical",) * 2
    small = frame.assign(zip=(values * 4 - 100).astype(np.int8))  # wraps around, also below 0
    assert as_table(small).families == ("gaussian", "categorical")
    with pytest.raises(DataError, match="like an identifier"):
        check_identifiers(as_table(frame.assign(zip=np.arange(1100))))
    check_identifiers(as_table(frame.assign(zip=np.arange(1100) ** 2)))


def test_errors_of_all_columns_are_raised_together() -> None:
    n = 40
    frame = pd.DataFrame(
        {
            "id": np.arange(n),
            "day": pd.date_range("2020-01-01", periods=n),
            "odd": ["a", 1] * (n // 2),
            "far": np.inf,
            "one": 1,
            "none": np.nan,
            "y": codes_of(n),
        }
    )
    with pytest.raises(DataError) as caught:
        as_table(frame)
    first, *lines = str(caught.value).split("\n")
    assert first == "6 columns cannot be used as they are:"
    for name, line in zip(frame, lines, strict=False):
        assert repr(name) in line
    assert "drop it, or make a number of it, for example (d - d.min()).dt.days" in lines[1]
    with pytest.raises(DataError, match=r"(?s)^12 columns .*\n- and 4 more$"):
        as_table(pd.DataFrame({f"d{j}": frame["day"] for j in range(12)}))


def test_columns_without_values_are_dropped() -> None:
    frame = pd.DataFrame({"y": codes_of(30), "none": np.nan, "z": codes_of(30)[::-1], "no": None})
    with pytest.raises(DataError, match=r"'none' is missing .* in all 30 rows"):
        as_table(frame)
    for X in (frame, pl.from_pandas(frame), frame.to_numpy(dtype=float)):
        table = as_table(X, drop_constant=True)
        assert table.n_vars == 2
        assert "are missing in all rows: left out" in table.notes[-1]
        schema = Schema.from_json(Schema.of(X, table).to_json())
        back = schema.decode(np.zeros((3, 2), dtype=int))
        assert pd.isna(np.asarray(back, dtype=object)[:, [1, 3]]).all()


@pytest.mark.parametrize(
    ("name", "meant"),
    [("normal", "gaussian"), ("Real", "gaussian"), ("counts", "poisson"), ("bernoulli", "binary")],
)
def test_other_names_of_families(name: str, meant: str) -> None:
    with pytest.raises(DataError, match=f"did you mean '{meant}"):
        as_table(mixed(), family=name)


def test_categories_with_gaps_come_back_as_categories() -> None:
    levels = ["low", "mid", "high"]
    values = ["mid", None, "low", "high", "mid", "low"]
    ordered = pd.Categorical(values, categories=levels, ordered=True)
    pandas = pd.DataFrame({"a": ordered, "b": pd.Categorical(values)})
    schema = Schema.of(pandas, as_table(pandas))
    assert schema.labels[0].tolist() == levels
    assert (schema.decode([[0, 0], [2, 1]]).dtypes == pandas.dtypes).all()
    polars = pl.DataFrame(
        {"a": pl.Series(values, dtype=pl.Enum(levels)), "b": pl.Series(values).cast(pl.Categorical)}
    )
    assert Schema.of(polars, as_table(polars)).decode([[0, 0], [2, 1]]).schema == polars.schema
