"""Equal rows are taken together, wherever the table lies."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import Table, as_table, read_table
from latenttree.data.content_order import in_content_order
from latenttree.data.distinct_rows import distinct_rows
from latenttree.data.streaming.scratch import map_of


def rows(seed: int, n: int = 3000, p: int = 6, d: int = 2) -> Any:
    return np.random.default_rng(seed).integers(0, d, (n, p)).astype(np.uint8)


def expected(X: Any, weights: Any = None) -> tuple[Any, Any]:
    """The different rows, and how often each counts."""
    rows, which = np.unique(X, axis=0, return_inverse=True)
    return rows, np.bincount(which.ravel(), weights)


def check(table: Table, X: Any, weights: Any = None) -> Table:
    found = distinct_rows(in_content_order(table))
    codes, counts = expected(X, weights)
    some = found.chunk(0, found.n_samples).codes
    order = np.lexsort(some.T[::-1])
    np.testing.assert_array_equal(some[order], codes)
    assert found.weights is not None
    np.testing.assert_allclose(found.weights[order], counts, rtol=1e-12)  # sums in another order
    return found


@pytest.mark.parametrize("weighted", [False, True])
def test_rows_count_as_often_as_they_occur(weighted: bool) -> None:
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
    assert distinct_rows(table) is table
    mixed = as_table(np.random.default_rng(5).normal(size=(50, 3)))
    assert distinct_rows(mixed) is mixed
