"""Table: the views and subsets that later stages use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import DataError, Table, as_table
from latenttree.data.subsets import halves

CODES = np.array([[0, 2, 1], [1, 0, 0], [0, 1, 1], [1, 2, 0], [0, 0, 1]])
ONES = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]])


def codes_table() -> Table:
    return as_table(CODES, names=["a", "b", "c"])


def sparse_binary_table() -> Table:
    return as_table(sparse.csr_array(ONES))


def blocks_table() -> Table:
    return as_table(sparse.csr_array(ONES), groups=["u", "u", "v", "v"])


def dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


ALL = pytest.mark.parametrize("make", [codes_table, sparse_binary_table, blocks_table])


def test_shapes_of_the_three_kinds() -> None:
    codes, binary, blocks = codes_table(), sparse_binary_table(), blocks_table()
    assert (codes.kind, binary.kind, blocks.kind) == ("codes", "sparse_binary", "blocks")
    assert codes.dims.tolist() == [2, 3, 2]
    assert codes.offsets.tolist() == [0, 2, 5, 7]
    assert codes.widths.tolist() == [2, 3, 2]
    assert binary.dims.tolist() == [2, 2, 2, 2]
    assert binary.offsets.tolist() == [0, 1, 2, 3, 4]
    assert binary.widths.tolist() == [1, 1, 1, 1]
    # two codes and "none of them", and a block that is one-hot
    assert blocks.dims.tolist() == blocks.widths.tolist() == [3, 2]
    assert blocks.families == ("multihot", "categorical")
    assert [t.n_vars for t in (codes, binary, blocks)] == [3, 4, 2]


@ALL
@pytest.mark.parametrize(("start", "stop"), [(0, 2), (2, 5), (4, 100), (3, 3)])
def test_rows_are_the_rows_of_the_whole(make: Callable[[], Table], start: int, stop: int) -> None:
    table = make()
    whole = dense(table.rows(0, table.n_samples))
    np.testing.assert_array_equal(dense(table.rows(start, stop)), whole[start:stop])


@ALL
def test_rows_share_memory(make: Callable[[], Table]) -> None:
    table = make()
    rows: Any = table.rows(1, 4)
    if table.kind == "codes":
        assert np.shares_memory(rows, table.codes)
    else:
        assert table.matrix is not None
        assert np.shares_memory(rows.data, table.matrix.data)
        assert np.shares_memory(rows.indices, table.matrix.indices)


@ALL
@pytest.mark.parametrize("index", [[3, 0], np.array([True, False, True, True, False]), slice(1, 3)])
def test_subset_rows(make: Callable[[], Table], index: Any) -> None:
    table = make()
    whole = dense(table.rows(0, table.n_samples))
    part = table.subset_rows(index)
    np.testing.assert_array_equal(dense(part.rows(0, 99)), whole[index])
    assert part.n_samples == len(whole[index])
    assert part.dims.tolist() == table.dims.tolist()


@ALL
def test_spread_rows_of_a_small_table_is_the_table(make: Callable[[], Table]) -> None:
    table = make()
    for n in (3, 5, 100):
        assert table.thinned(n) is table


@pytest.mark.parametrize("n", [1, 10, 100, 333])
def test_spread_rows_are_spread(n: int) -> None:
    """One from each stretch, even and odd samples alike, about as many as requested."""
    number = np.arange(1000)
    table = as_table(np.column_stack([number, number % 2]))
    part = table.thinned(n)
    assert part.codes is not None
    rows = part.codes[:, 0].astype(int)
    assert n / 2 <= part.n_samples <= n + 1
    step = 1000 // n
    np.testing.assert_array_equal(rows // step, np.arange(len(rows)))
    assert n < 100 or 0.3 < (rows % 2).mean() < 0.7
    np.testing.assert_array_equal(part.dims, table.dims)


def test_spread_rows_of_sparse_tables() -> None:
    ones = (np.random.default_rng(0).random((90, 4)) < 0.5).astype(float)
    for groups in (None, ["u", "u", "v", "v"]):
        table = as_table(sparse.csr_array(ones), groups=groups)
        part = table.thinned(10)
        rows = 9 * np.arange(10) + np.random.default_rng(0).integers(0, 9, 10)
        np.testing.assert_array_equal(dense(part.rows(0, 99)), dense(table.rows(0, 99))[rows])


@pytest.mark.parametrize("period", [2, 3, 4])
def test_halves_do_not_see_the_period_of_the_rows(period: int) -> None:
    """About as many samples of every phase in each half: 2,000, up to four standard deviations."""
    number = np.arange(4000 * period)
    one, other = halves(as_table(np.column_stack([number % period, number % 7])))
    assert abs(one.n_samples - other.n_samples) <= 1
    for half in (one, other):
        codes = half.chunk(0, half.n_samples).codes
        counts = np.bincount(codes[:, 0], minlength=period)
        assert np.abs(counts - 2000).max() < 4 * np.sqrt(1000)


def is_copy(table: Table, a: int, b: int, least: int = 1) -> bool:
    return bool(table.copies([(a, b)], least)[0])


def test_copies_say_the_same_up_to_names() -> None:
    a = np.array([0, 1, 2, 1, 0, 0])
    table = as_table(np.column_stack([a, (a + 1) % 3, a > 0, [0, 1, 2, 1, 0, 1]]))
    assert is_copy(table, 0, 1)
    assert is_copy(table, 1, 0)
    assert is_copy(table, 0, 0)
    assert not is_copy(table, 0, 2), "two categories become one"
    assert not is_copy(table, 2, 0)
    assert not is_copy(table, 0, 3), "one sample differs"


def test_copies_need_samples_beside_the_most_frequent_value() -> None:
    """Three samples are not 0."""
    a = np.array([0, 1, 2, 1, 0, 0])
    table = as_table(np.column_stack([a, 2 - a]))
    assert is_copy(table, 0, 1, least=3)
    assert not is_copy(table, 0, 1, least=4)
    binary = as_table(sparse.csr_array(np.column_stack([a > 0, a > 0, a > 1]).astype(float)))
    assert is_copy(binary, 0, 1, least=3)
    assert not is_copy(binary, 0, 1, least=4)
    assert not is_copy(binary, 0, 2)


def test_copies_among_blocks() -> None:
    one = np.array([[1.0, 0], [0, 2], [3, 0], [0, 1]])
    other = np.array([[1.0, 0], [0, 2], [3, 1], [0, 1]])
    table = as_table([one, one.copy(), other, one[:, :1]], family="poisson")
    assert is_copy(table, 0, 1)
    assert not is_copy(table, 0, 2)
    assert not is_copy(table, 0, 3), "of another width"


def test_select_reorders_variables() -> None:
    table = codes_table().select(["c", "a"])
    assert table.names == ("c", "a")
    assert table.codes is not None
    assert table.codes.flags.c_contiguous
    np.testing.assert_array_equal(table.codes, CODES[:, [2, 0]])
    blocks = blocks_table().select([1])
    assert blocks.names == ("v",)
    np.testing.assert_array_equal(dense(blocks.matrix), ONES[:, 2:])
    binary = sparse_binary_table().select([3, -4])
    np.testing.assert_array_equal(dense(binary.matrix), ONES[:, [3, 0]])
    assert binary.matrix is not None
    assert binary.matrix.has_sorted_indices


@pytest.mark.parametrize(
    ("variables", "match"),
    [(["z"], "no variable 'z'"), ([7], "no variable 7"), (["a", 0], "selected twice")],
)
def test_select_names_what_is_wrong(variables: list[str | int], match: str) -> None:
    with pytest.raises(DataError, match=match):
        codes_table().select(variables)


def test_repr_is_one_readable_line() -> None:
    assert repr(codes_table()) == (
        "Table(codes: 5 samples x 3 variables [a, b, c], dimensions 2..3)"
    )
    assert "[x0, x1, x2, x3]" in repr(sparse_binary_table())


def test_inconsistent_parts_are_refused() -> None:
    table = codes_table()
    with pytest.raises(ValueError, match="needs 3 dims"):
        table.replace(dims=table.dims[:2])
    with pytest.raises(ValueError, match=r"shape \(5, 3\), got \(4, 3\)"):
        table.replace(codes=CODES[:4])
