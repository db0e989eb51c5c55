"""Every kind of input answers the same questions: columns, take, concat, what a schema keeps."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from latenttree.data import as_table
from latenttree.data.columns.vectors import vector_of
from latenttree.data.containers import Container, TableInput, container_of

N = 12
NUMBERS = np.arange(N * 3).reshape(N, 3) % 5
COLUMNS = {f"c{j}": NUMBERS[:, j] for j in range(3)}

INPUTS: dict[str, Any] = {
    "array": NUMBERS,
    "list of rows": NUMBERS.tolist(),
    "masked": np.ma.MaskedArray(NUMBERS, NUMBERS == 4),
    "objects": NUMBERS.astype(object),
    "sparse array": sparse.csr_array(NUMBERS),
    "sparse matrix": sparse.csc_matrix(NUMBERS),
    "dict": COLUMNS,
    "list": list(COLUMNS.values()),
    "pandas": pd.DataFrame(COLUMNS),
    "polars": pl.DataFrame(COLUMNS),
    "pyarrow": pa.table(COLUMNS),
}
WORDS = {"list of rows": "array", "masked": "array", "objects": "array"}


def values_of(container: Container) -> list[list[Any]]:
    """Every column as Python values, None where it is missing."""
    found = []
    for j, column in container.columns():
        vector = vector_of(column, f"x{j}")
        values = np.full(vector.n, None, dtype=object)
        values[slice(None) if vector.gaps is None else ~vector.gaps] = vector.known.tolist()
        found.append(values.tolist())
    return found


def expected_of(name: str) -> list[list[Any]]:
    lost = 4 if name == "masked" else None
    return [[None if v == lost else v for v in column] for column in NUMBERS.T.tolist()]


@pytest.mark.parametrize("name", INPUTS)
def test_columns(name: str) -> None:
    container = container_of(INPUTS[name])
    assert (container.name, container.shape) == (WORDS.get(name, name), (N, 3))
    assert values_of(container) == expected_of(name)
    wanted = list(container.columns({2}))
    assert [j for j, _ in wanted] == [2]
    named = name in ("dict", "pandas", "polars", "pyarrow")
    assert (container.own_names is not None) == named
    assert container.described(1).name == ("c1" if named else "x1")


@pytest.mark.parametrize("name", INPUTS)
def test_take(name: str) -> None:
    keep = np.arange(N) % 3 > 0
    taken = container_of(INPUTS[name]).take(keep)
    assert taken.shape == (8, 3)
    rows = np.flatnonzero(keep)
    assert values_of(taken) == [[column[i] for i in rows] for column in expected_of(name)]


@pytest.mark.parametrize("name", INPUTS)
def test_concat_of_parts_is_the_whole(name: str) -> None:
    whole = container_of(INPUTS[name])
    parts = [whole.take(np.arange(N) < 5), whole.take(np.arange(N) >= 5)]
    joined = container_of(parts[0].concat(parts[1:]))
    assert (joined.words, joined.shape) == (whole.words, whole.shape)
    assert values_of(joined) == expected_of(name)


@pytest.mark.parametrize("name", INPUTS)
def test_a_copy_shares_no_memory(name: str) -> None:
    container = container_of(INPUTS[name])
    copy = container.copied()
    assert values_of(copy) == values_of(container)
    for (_, one), (_, other) in zip(container.columns(), copy.columns(), strict=True):
        if isinstance(one.values, np.ndarray):
            assert not np.shares_memory(one.values, other.values)


def test_groups_are_blocks() -> None:
    groups = {"a": [2, 0], "b": [1]}
    for X in (NUMBERS, sparse.csr_array(NUMBERS), np.ma.MaskedArray(NUMBERS, NUMBERS == 4)):
        container = container_of(X, groups)
        assert (container.shape, list(container.own_names or ())) == ((N, 2), ["a", "b"])
        assert container.has_blocks
        block = container.column(0)
        dense = block.values.toarray() if sparse.issparse(block.values) else block.values
        np.testing.assert_array_equal(dense, NUMBERS[:, [2, 0]])
        if np.ma.isMaskedArray(X):
            np.testing.assert_array_equal(block.mask, NUMBERS[:, [2, 0]] == 4)


def test_a_table_gives_its_labels_back() -> None:
    frame = pd.DataFrame({"a": ["x", None, "y"] * 4, "b": np.arange(N) / 7, "c": NUMBERS[:, 0]})
    container = TableInput(as_table(frame))
    labels, numbers, codes = values_of(container)
    assert labels == ["x", None, "y"] * 4
    assert numbers == frame["b"].tolist()
    assert codes == frame["c"].tolist()


def test_a_table_of_one_hot_blocks_gives_codes_of_vectors_back() -> None:
    table = as_table({"a": ["x", None, "y"] * 4, "b": np.eye(3)[np.arange(N) % 3]})
    labels, block = (column for _, column in TableInput(table).columns())
    vector = vector_of(labels, "a")
    assert vector.known.tolist() == ["x", "y"] * 4
    np.testing.assert_array_equal(block.values.toarray(), np.eye(3)[np.arange(N) % 3])


@pytest.mark.parametrize("name", ["array", "sparse array", "dict", "list", "pandas", "polars"])
def test_the_value_of_a_constant_column(name: str) -> None:
    X = INPUTS[name]
    container = container_of(X).take(np.arange(N) == 3)
    assert [container.constant(j).tolist() for j in range(3)] == [[v] for v in NUMBERS[3]]  # type: ignore[union-attr]
