"""Rows of arrays in scratch files are those of arrays in memory, and their pages are let go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data.row_access import rearranged_rows, take_rows
from latenttree.data.streaming.scratch import Arrays, ScratchMap, about_to_read, map_of

RNG = np.random.default_rng(0)
INDICES: dict[str, Any] = {
    "slice": slice(100, 900),
    "sorted": np.sort(RNG.integers(0, 3000, 700)),
    "any order": RNG.permutation(3000),
    "mask": RNG.random(3000) < 0.3,
    "list": [5, 3, 2999],
    "none": np.empty(0, dtype=np.int64),
}


def in_scratch(*arrays: Any) -> list[Any]:
    files = Arrays(0)
    for array in arrays:
        files.add([array], array.shape, array.dtype)
    return files.finish()


def sparse_in_scratch(X: sparse.csr_array) -> sparse.csr_array:
    data, indices, indptr = in_scratch(X.data, X.indices, X.indptr)
    return sparse.csr_array((data, indices, indptr), shape=X.shape, copy=False)


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
@pytest.mark.parametrize("max_read", [1, 1 << 23])
def test_rows_of_arrays(index: Any, max_read: int) -> None:
    rng = np.random.default_rng(0)
    for X in (rng.integers(0, 9, (3000, 7)).astype(np.int8), rng.normal(size=3000)):
        (held,) = in_scratch(X)
        memory = map_of(held)
        assert isinstance(memory, ScratchMap)
        memory.max_read = max_read
        found = take_rows(held, index)
        np.testing.assert_array_equal(found, X[index])
        assert found.dtype == X.dtype
        if isinstance(index, np.ndarray) and index.dtype != np.bool_ and len(index):
            kept = rearranged_rows(held, index)
            assert isinstance(map_of(kept), ScratchMap)
            np.testing.assert_array_equal(kept, X[index])


@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_rows_of_sparse_matrices(index: Any) -> None:
    rng = np.random.default_rng(0)
    X = sparse.csr_array((rng.random((3000, 20)) < 0.1).astype(np.float32))
    held = sparse_in_scratch(X)
    np.testing.assert_array_equal(take_rows(held, index).toarray(), X[index].toarray())
    if isinstance(index, np.ndarray) and index.dtype != np.bool_ and len(index):
        kept = rearranged_rows(held, index)
        assert isinstance(map_of(kept.indices), ScratchMap)
        np.testing.assert_array_equal(kept.toarray(), X[index].toarray())


def test_pages_are_released_when_many_bytes_were_read() -> None:
    X = np.arange(1000)
    (held,) = in_scratch(X)
    memory = map_of(held)
    assert isinstance(memory, ScratchMap)
    memory.max_read = 100
    since_release = []
    for _ in range(5):
        about_to_read(held, 40)
        since_release.append(memory.n_read)
    assert since_release == [40, 80, 40, 80, 40]
    np.testing.assert_array_equal(held, X)  # read again from the file
    about_to_read(X, 4000)  # in memory: nothing to release
    assert memory.n_read == 40
