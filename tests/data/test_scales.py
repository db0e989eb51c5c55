"""Whole numbers on a scale, fractions among them, and columns that are read in a surprising way."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from latenttree.config import FitConfig
from latenttree.data import DataWarning, as_table, read_table
from latenttree.data.columns.scales import is_scale, nearest_level, on_levels
from latenttree.data.stage import read

N = 400


def answers(low: int = 1, high: int = 5, step: int = 1, seed: int = 0) -> np.ndarray:
    """All levels, in random order."""
    values = np.arange(low, high + 1, step)
    return np.random.default_rng(seed).permutation(np.resize(values, N))


def frame(**columns: object) -> pd.DataFrame:
    return pd.DataFrame({**columns, "flag": np.arange(N) % 2})


def family(values: object, name: str = "x") -> str:
    return as_table(frame(**{name: values})).families[0]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2, 3], True),
        ([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10], True),
        ([10, 20, 30], True),
        ([1, 2, 4, 5], True),  # one of five levels is absent
        ([1, 3, 4], False),  # one of four
        ([0, 1], False),
        (list(range(12)), False),
        ([1, 2, 5, 10], False),
        ([-2, -1, 0, 1, 2], False),
        ([1.0, 1.5, 2.0], False),
        ([], False),
    ],
)
def test_what_a_scale_is(values: list[float], expected: bool) -> None:
    assert is_scale(np.array(values)) == expected
    assert is_scale(np.array(values * 500, dtype=float)) == expected


def test_scales_of_frames_and_files_are_ordinal(tmp_path: Path) -> None:
    data = frame(likert=answers(), nps=answers(0, 10), gap=answers(), wide=answers(0, 15))
    data["gap"] = data["gap"].astype(float).mask(np.arange(N) % 7 == 0)
    data["text"] = np.array(["a", "b", "c"])[np.arange(N) % 3]
    data["own"] = pd.Categorical(answers())
    data["order"] = pd.Categorical.from_codes(np.arange(N) % 3, list("lmh"), ordered=True)
    data["truth"] = np.arange(N) % 3 == 0
    expected = {"likert": "ordinal", "nps": "ordinal", "gap": "ordinal"}
    expected |= dict.fromkeys(("wide", "flag", "text", "truth"), "categorical")
    typed = expected | {"own": "categorical", "order": "ordinal"}
    csv, parquet = tmp_path / "x.csv", tmp_path / "x.parquet"
    data[list(expected)].to_csv(csv, index=False)
    data[list(expected)].to_parquet(parquet)
    for X in (data, pl.from_pandas(data[list(expected)]), csv, parquet):
        table = as_table(X)
        families = dict(zip(table.names, table.families, strict=True))
        assert families == {name: typed[name] for name in table.names}
    limited = read_table(csv, memory_limit="1GB")
    assert limited.families == as_table(csv).families
    assert any("few evenly spaced whole numbers, read as ordinal" in x for x in limited.notes)


def test_integers_of_arrays_are_codes() -> None:
    X = np.column_stack([answers(), answers(seed=1)])
    assert as_table(X).families == as_table(X.astype(float)).families == ("categorical",) * 2


def test_a_few_fractions_are_rounded(tmp_path: Path) -> None:
    values = answers().astype(float)
    known = values.copy()
    values[:8] = [3.2, 1.4, 4.9, 5.3, 0.7, 2.5, 1.9, np.nan]
    table = as_table(frame(x=values))
    assert table.families == ("ordinal", "categorical")
    assert table.categories[0].tolist() == [1, 2, 3, 4, 5]  # type: ignore[union-attr]
    assert table.codes is not None
    assert table.codes[:8, 0].tolist() == [2, 0, 4, 4, 0, 1, 1, -1]
    np.testing.assert_array_equal(table.codes[8:, 0], known[8:] - 1)
    frame(x=values).to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv").codes, table.codes)
    assert as_table(values[:, None]).families == ("ordinal",)  # an imputed array
    values = answers(0, 1).astype(float)
    values[0] = 0.4
    assert as_table(frame(x=values)).families[0] == "categorical"


def test_many_fractions_and_far_ones_are_numbers() -> None:
    values = answers().astype(float)
    for n, expected in ((19, "ordinal"), (20, "ordinal"), (21, "gaussian"), (N, "gaussian")):
        x = values.copy()
        x[:n] += 0.25
        assert family(x) == expected
    far = values.copy()
    far[0] = 77.5
    assert family(far) == "gaussian"
    weights = np.where(np.arange(N) < 20, 10.0, 1.0)
    x = values.copy()
    x[:20] += 0.25
    assert as_table(frame(x=x), sample_weight=weights).families[0] == "gaussian"
    assert as_table(frame(x=x), family={"x": "gaussian"}).families[0] == "gaussian"


def test_levels() -> None:
    levels = np.array([1, 2, 4])
    assert nearest_level(np.array([0.1, 1.5, 1.6, 3.0, 3.1, 9.0]), levels).tolist() == [
        *(1, 1, 2, 2, 4, 4)
    ]
    found = on_levels(np.array([1.2, 7.0, 7.5, 4.0]), levels)
    assert found is not None
    assert found.tolist() == [1.0, 7.0, 7.5, 4.0]  # far values are no levels
    assert on_levels(np.array([1.0, 2.0]), levels) is None
    assert on_levels(np.array([1, 2]), levels) is None


SURPRISES = {
    "a few fractions among few whole numbers": np.where(np.arange(N) == 3, 2.2, answers()),
    "few whole numbers and many fractions": answers() + 0.5 * (np.arange(N) % 4 == 0),
    "400 different whole numbers, one for each row": np.arange(N) ** 2,
    "300 different labels": [f"n{i % 300}" for i in range(N)],
    "2 different numbers, read as real": np.where(np.arange(N) % 3, 0.25, 0.75),
}


@pytest.mark.parametrize("message", SURPRISES)
def test_surprises_are_warned_about(message: str) -> None:
    with pytest.warns(DataWarning, match=message) as found:
        table = read(frame(x=SURPRISES[message]), None, FitConfig())
    assert len(found) == 1
    assert str(found[0].message) in table.notes


def test_ordinary_columns_are_silent() -> None:
    rng = np.random.default_rng(0)
    data = frame(
        likert=answers(),
        age=rng.integers(18, 90, N),
        real=rng.normal(size=N),
        text=rng.choice(list("abc"), N),
        gap=np.where(np.arange(N) % 5, answers(), np.nan),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read(data, None, FitConfig())
        read(data[["real", "gap"]].to_numpy(), None, FitConfig())
