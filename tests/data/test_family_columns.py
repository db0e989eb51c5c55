"""Columns of a table: their families, missing values, notes; ordinal columns, and those that are
easily misread."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from tests.data.families import array, codes_of, mixed, rng, structural, with_gaps

from latenttree.data import (
    DataError,
    Schema,
    as_table,
    check_identifiers,
)


def test_a_mixed_frame_has_the_family_of_each_column() -> None:
    table = as_table(mixed(), family={"level": "ordinal", "count": "poisson"})
    assert table.kind == "codes"
    assert table.families == (
        "categorical",
        "ordinal",
        "categorical",
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
    assert as_table(frame[["flag", "text"]]).values is None
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
        "'gap' holds few evenly spaced whole numbers, read as ordinal; "
        "family={'gap': 'categorical'} reads it as categories",
        "'age' holds 51 different whole numbers with few rows for each, read as numbers; "
        "family={'age': 'categorical'} reads it as categories",
        "'gap' is missing in 67% of 300 rows; its distances rest on 100 rows",
    )
    quiet = {"age": "gaussian", "gap": "categorical"}
    assert len(as_table(frame, family=quiet).notes) == 1
    many = pd.DataFrame({f"x{j}": frame["gap"] for j in range(7)})
    found = as_table(many).notes
    assert "'x0', 'x1', 'x2', 'x3', 'x4' and 2 more hold few evenly" in found[0]
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
        assert as_table(frame).families == ("ordinal",)
        assert as_table(frame[:2]).families == ("categorical",)  # two levels
        assert list(as_table(frame).categories[0]) == ["low", "mid", "high"]  # type: ignore[arg-type]
    numbers = pd.DataFrame({"x": pd.Categorical([3, 1, 2], categories=[3, 2, 1], ordered=True)})
    assert as_table(numbers, family="ordinal").codes[:, 0].tolist() == [0, 2, 1]  # type: ignore[index]
    assert as_table(np.array([[-2], [0], [1]]), family="ordinal").dims.tolist() == [3]
    with pytest.raises(DataError, match=r"'ordinal' of column 'x': 'b' .* no order.*ordered=True"):
        as_table({"x": np.array(["b", "a"])}, family="ordinal")


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
        assert table.families == ("gaussian", "ordinal")
        assert table.notes[1:] == (
            "'zip' holds 57 different whole numbers with few rows for each, read as numbers; "
            "family={'zip': 'categorical'} reads it as categories",
        )
    assert len(as_table(frame, family={"zip": "categorical"}).notes) == 1
    assert as_table(frame.to_numpy()).families == ("categorical",) * 2  # codes
    assert "'x0' holds 57 different whole numbers" in as_table(frame.to_numpy()).notes[0]
    often = pd.concat([frame] * 2)
    assert as_table(often).families == ("categorical", "ordinal")
    small = frame.assign(zip=(values * 4 - 100).astype(np.int8))  # wraps around, also below 0
    assert as_table(small).families == ("gaussian", "ordinal")
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
