"""Table: the views and subsets that later stages use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import DataError, Table, as_table

CODES = np.array([[0, 2, 1], [1, 0, 0], [0, 1, 1], [1, 2, 0], [0, 0, 1]])
ONES = np.array([[1, 0, 1, 0], [0, 1, 1, 0], [1, 1, 0, 1], [0, 0, 1, 0], [1, 0, 0, 1]])


def codes_table() -> Table:
    return as_table(CODES, names=["a", "b", "c"])


def presence_table() -> Table:
    return as_table(sparse.csr_array(ONES))


def blocks_table() -> Table:
    return as_table(sparse.csr_array(ONES), groups=["u", "u", "v", "v"])


def dense(rows: Any) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else np.asarray(rows)


ALL = pytest.mark.parametrize("make", [codes_table, presence_table, blocks_table])


def test_shapes_of_the_three_kinds() -> None:
    codes, presence, blocks = codes_table(), presence_table(), blocks_table()
    assert (codes.kind, presence.kind, blocks.kind) == ("codes", "presence", "blocks")
    assert codes.dims.tolist() == [2, 3, 2]
    assert codes.offsets.tolist() == [0, 2, 5, 7]
    assert codes.widths.tolist() == [2, 3, 2]
    assert presence.dims.tolist() == [2, 2, 2, 2]
    assert presence.offsets.tolist() == [0, 1, 2, 3, 4]
    assert presence.widths.tolist() == [1, 1, 1, 1]
    assert blocks.dims.tolist() == blocks.widths.tolist() == [2, 2]
    assert [t.n_vars for t in (codes, presence, blocks)] == [3, 4, 2]


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


def test_select_reorders_variables() -> None:
    table = codes_table().select(["c", "a"])
    assert table.names == ("c", "a")
    assert table.codes is not None
    assert table.codes.flags.c_contiguous
    np.testing.assert_array_equal(table.codes, CODES[:, [2, 0]])
    blocks = blocks_table().select([1])
    assert blocks.names == ("v",)
    np.testing.assert_array_equal(dense(blocks.matrix), ONES[:, 2:])
    presence = presence_table().select([3, -4])
    np.testing.assert_array_equal(dense(presence.matrix), ONES[:, [3, 0]])
    assert presence.matrix is not None
    assert presence.matrix.has_sorted_indices


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
    assert "[x0, x1, x2, x3]" in repr(presence_table())


def test_inconsistent_parts_are_refused() -> None:
    table = codes_table()
    with pytest.raises(ValueError, match="needs 3 dims"):
        table._replace(dims=table.dims[:2])
    with pytest.raises(ValueError, match=r"shape \(5, 3\), got \(4, 3\)"):
        table._replace(codes=CODES[:4])
