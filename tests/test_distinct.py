"""Equal rows are taken together, wherever the table lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import Table, as_table, read_table
from latenttree.data.scratch import map_of
from latenttree.distinct import distinct, multiplicity, row_keys
from latenttree.samples import codes_of


def rows(seed: int, n: int = 3000, p: int = 6, d: int = 2) -> Any:
    return np.random.default_rng(seed).integers(0, d, (n, p)).astype(np.uint8)


def expected(X: Any, weights: Any = None) -> tuple[Any, Any]:
    """The different rows in the order of the first of each, and how often each counts."""
    _, first, which = np.unique(X, axis=0, return_index=True, return_inverse=True)
    counts = np.bincount(which.ravel(), weights)
    order = np.argsort(first)
    return X[first[order]], counts[order]


def check(table: Table, X: Any, weights: Any = None) -> Table:
    found = distinct(table)
    codes, counts = expected(X, weights)
    np.testing.assert_array_equal(codes_of(found, 0, found.n_samples), codes)
    np.testing.assert_allclose(found.weights, counts, rtol=1e-12)  # sums in another order
    return found


@pytest.mark.parametrize("part", [64, 1 << 17])
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_count_as_often_as_they_occur(
    monkeypatch: pytest.MonkeyPatch, part: int, weighted: bool
) -> None:
    monkeypatch.setattr("latenttree.distinct.PART", part)
    X = rows(0)
    weights = np.random.default_rng(1).random(len(X)) + 0.5 if weighted else None
    check(as_table(X, sample_weight=weights), X, weights)
    check(as_table(sparse.csr_array(X), sample_weight=weights), X, weights)


def test_rows_with_gaps() -> None:
    X = np.where(np.random.default_rng(2).random((2000, 5)) < 0.2, np.nan, rows(2, 2000, 5))
    found = check(as_table(X, family="categorical"), np.where(np.isnan(X), -1, X))
    assert found.has_missing


@pytest.mark.parametrize("form", ["npy", "npz"])
def test_tables_in_scratch_files_stay_there(tmp_path: Path, form: str) -> None:
    X = rows(3, 20_000)
    path = tmp_path / f"x.{form}"
    if form == "npy":
        np.save(path, X)
    else:
        sparse.save_npz(path, sparse.csr_array(X))
    table = read_table(path, memory_limit=1000)
    found = check(table, X)
    assert map_of(found.codes if form == "npy" else found.matrix.indices) is not None
    assert len(found) < len(table)


def test_hardly_any_equal_rows_are_left_as_they_are() -> None:
    table = as_table(rows(4, 1000, 30, 4))
    assert distinct(table) is table
    mixed = as_table(np.random.default_rng(5).normal(size=(50, 3)))
    assert distinct(mixed) is mixed


@pytest.mark.parametrize("n", [1, 62, 63, 1000])
def test_rows_count_at_the_first_of_their_equals(monkeypatch: pytest.MonkeyPatch, n: int) -> None:
    monkeypatch.setattr("latenttree.distinct.PART", 64)
    table = as_table(np.vstack([[[0, 1, 0], [1, 0, 1]], rows(7, n, 3, 2)]))
    keys = [tuple(key) for key in row_keys(table, 0, table.n_samples).tolist()]
    expected = [keys.count(key) * (keys.index(key) == i) for i, key in enumerate(keys)]
    assert multiplicity(table).tolist() == expected
