"""Samples as codes: the same from every kind of table, in bounded chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import Table, as_table
from latenttree.engine import BLOCK
from latenttree.model.samples import Samples, marginals

DIMS = (3, 2, 5)


def codes_array(n: int = 300) -> Any:
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, d, n) for d in DIMS], axis=1)
    codes[: max(DIMS)] = np.minimum(np.arange(max(DIMS))[:, None], np.array(DIMS) - 1)
    return codes


def one_hot(codes: Any, form: type = np.asarray) -> list[Any]:  # type: ignore[assignment]
    return [form(np.eye(d)[codes[:, i]]) for i, d in enumerate(DIMS)]


def read(samples: Samples) -> Any:
    return np.concatenate([chunk.codes for chunk in samples.chunks()])


@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint16])
def test_codes_come_back(dtype: Any) -> None:
    codes = codes_array().astype(dtype)
    np.testing.assert_array_equal(read(Samples(as_table(codes))), codes)


@pytest.mark.parametrize("form", [sparse.csr_array, sparse.csc_matrix, sparse.coo_array])
def test_stored_entries_are_one(form: Any) -> None:
    dense = (np.random.default_rng(1).random((200, 6)) < 0.3).astype(float)
    table = as_table(form(dense))
    assert table.kind == "sparse_binary"
    found = read(Samples(table))
    np.testing.assert_array_equal(found, dense.astype(int))
    assert found.dtype == np.uint8


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_one_hot_blocks_are_codes(form: Any) -> None:
    codes = codes_array()
    table = as_table(one_hot(codes, form))
    assert table.kind == "blocks"
    assert not table.has_values
    np.testing.assert_array_equal(read(Samples(table)), codes)


def block_table(first: Any) -> Table:
    return as_table([first, np.eye(3)[np.random.default_rng(1).integers(0, 3, len(first))]])


def changed(place: tuple[int, int], value: float) -> Any:
    """One-hot rows of three categories with one entry changed."""
    block = np.eye(3)[np.arange(30) % 3]
    block[place] = value
    return block


@pytest.mark.parametrize(
    "block",
    [
        changed((0, 1), 1.0),  # two categories in a sample
        changed((0, 0), 0.0),  # none
        changed((0, 0), 2.0),  # twice the same
        changed((0, 0), 0.5),
        np.roll(changed((0, 1), 1.0), 1, axis=0) * (np.arange(30) != 5)[:, None],  # 2 here, 0 there
    ],
)
def test_what_is_not_one_category_in_every_sample(block: Any) -> None:
    assert not block_table(np.eye(3)[np.arange(30) % 3]).has_values
    assert block_table(block).has_values


def test_codes_and_binary_values_are_always_one_category() -> None:
    assert not as_table(codes_array()).has_values
    assert not as_table(sparse.csr_array(np.random.default_rng(1).random((50, 4)) < 0.5)).has_values


def every_kind() -> list[Table]:
    codes = codes_array(3 * BLOCK + 17)
    binary = (np.random.default_rng(1).random((3 * BLOCK + 17, 3)) < 0.4).astype(float)
    return [as_table(codes), as_table(one_hot(codes)), as_table(sparse.csr_array(binary))]


@pytest.mark.parametrize("kind", range(3))
def test_chunks_are_bounded_and_the_same_every_time(kind: int) -> None:
    table = every_kind()[kind]
    whole = read(Samples(table))
    samples = Samples(table, chunk_codes=3 * 2 * BLOCK)
    chunks = [[chunk.codes for chunk in samples.chunks()] for _ in range(2)]
    assert [len(c) for c in chunks[0]] == [2 * BLOCK, BLOCK + 17]
    for one, two in zip(*chunks, strict=True):
        np.testing.assert_array_equal(one, two)
    np.testing.assert_array_equal(np.concatenate(chunks[0]), whole)
    assert max(len(c) for c in Samples(table, chunk_codes=1).chunks()) == BLOCK


def test_some_samples_are_held_out() -> None:
    table = every_kind()[0]
    keep = np.random.default_rng(1).random(table.n_samples) < 0.3
    kept, rest = (Samples(table, chosen, chunk_codes=1) for chosen in (keep, ~keep))
    assert kept.n_samples + rest.n_samples == table.n_samples
    whole = read(Samples(table))
    np.testing.assert_array_equal(read(kept), whole[keep])
    np.testing.assert_array_equal(read(rest), whole[~keep])


@pytest.mark.parametrize("kind", range(3))
def test_marginals_are_frequencies(kind: int) -> None:
    table = every_kind()[kind]
    codes = read(Samples(table)).astype(int)
    for i, found in enumerate(marginals(table)):
        expected = np.bincount(codes[:, i], minlength=int(table.dims[i])) / len(codes)
        np.testing.assert_allclose(found, expected, atol=1e-9)
        np.testing.assert_allclose(found.sum(), 1, atol=1e-9)


@pytest.mark.parametrize("kind", range(3))
def test_bases_by_category_are_those_of_the_stored_values(kind: int) -> None:
    table = every_kind()[kind]
    basis = np.random.default_rng(1).normal(size=(int(table.offsets[-1]), 2))
    codes = table.chunk(0, 50).codes
    if table.kind == "codes":
        stored = np.concatenate([np.eye(d)[codes[:, i]] for i, d in enumerate(DIMS)], axis=1)
    else:
        rows: Any = table.rows(0, 50)
        stored = rows.toarray()
    for i, by_category in enumerate(table.storage.by_category(basis, "nothing")):
        assert by_category.shape == (table.dims[i], 2)
        part = slice(table.offsets[i], table.offsets[i + 1])
        np.testing.assert_allclose(by_category[codes[:, i]], stored[:, part] @ basis[part])
