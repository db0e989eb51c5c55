"""Counts of pairs of 0/1 variables, all ways alike, and which way is taken."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse
from tests.reference import counts as slow
from tests.reference.columns import gram_of
from tests.reference.entries import entry

from latenttree.data import Table, as_table
from latenttree.data.table import sparse_binary_table
from latenttree.moments import binary, cooccurrence, full_subspaces
from latenttree.moments.binary import BINARY_DAMPING, counted_pairs, damped_inverse_sd
from latenttree.moments.cooccurrence import (
    Packed,
    all_counts,
    count_bits,
    packed,
    tile_counts,
)
from latenttree.moments.packing import (
    best_split,
    bits_cost,
    frequency_classes,
    frequent_columns,
    increments_cost,
)
from latenttree.moments.pairs import all_pairs

binary_pair = entry(binary.binary_pair)
pair_count = entry(cooccurrence.pair_count)

P = 150  # more than two strips, the last not whole


def zipf(n: int, seed: int = 0) -> NDArray[np.bool_]:
    """`(n, P)` ones of all frequencies, in no order; one column empty, one full, some rows
    empty."""
    rng = np.random.default_rng(seed)
    rate = rng.permutation(np.minimum(0.9, 4 / np.arange(1, P + 1)))
    X = rng.random((n, P)) < rate
    X[rng.random(n) < 0.1] = False
    X[:, 3], X[:, 70] = False, True
    return X


def csr(X: NDArray[np.bool_]) -> sparse.csr_array:
    return sparse.csr_array(X.astype(np.float32))


def pack_matrix(X: Any, n_jobs: int = 1, frequent: NDArray[np.bool_] | None = None) -> Packed:
    return packed(table_of(X), n_jobs, frequent)


def table_of(X: Any) -> Table:
    return sparse_binary_table([str(i) for i in range(X.shape[1])], X)


WAYS = {
    "bits": np.ones(P, bool),
    "increments": np.zeros(P, bool),
    "both": np.arange(P) % 3 == 0,
    "chosen": None,
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("n", [1, 64, 700, 4_100])
def test_all_ways_count_alike(n: int, way: str) -> None:
    X = zipf(n)
    store = pack_matrix(csr(X), 1, WAYS[way])
    np.testing.assert_array_equal(all_counts(store), slow.together(X))


def test_blas_counts_alike() -> None:
    X = zipf(5_000)
    by_blas = gram_of(X.astype(np.float32), 2)
    np.testing.assert_array_equal(all_counts(pack_matrix(csr(X))), by_blas)


@pytest.mark.parametrize("way", WAYS)
def test_tiles_are_parts_of_the_whole(way: str) -> None:
    X = zipf(900)
    store = pack_matrix(csr(X), 1, WAYS[way])
    whole = slow.together(X)[np.ix_(store.order, store.order)]
    rng = np.random.default_rng(1)
    for _ in range(60):
        b0, b1, a0, a1 = np.sort(rng.integers(0, P + 1, 4))
        out = np.full((a1 - a0, b1 - b0), 7, np.uint32)
        tile_counts(store, a0, a1, b0, b1, out)
        np.testing.assert_array_equal(out, whole[a0:a1, b0:b1])
    a0, a1 = 40, 110  # on the diagonal
    out = np.zeros((a1 - a0, a1), np.uint32)
    tile_counts(store, a0, a1, 0, a1, out)
    expected = whole[a0:a1, :a1]
    below = np.arange(a1) <= np.arange(a0, a1)[:, None]
    np.testing.assert_array_equal(out[below], expected[below])


@pytest.mark.parametrize("way", WAYS)
def test_single_pairs(way: str) -> None:
    X = zipf(300)
    store = pack_matrix(csr(X), 1, WAYS[way])
    expected = slow.together(X)
    found = [[pair_count(store, a, b) for b in range(P)] for a in range(P)]
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("share", [0.02, 0.5])
def test_codes_of_two_categories(share: float) -> None:
    """Packed from dense rows, or as sparse ones where few are in the second category."""
    X = np.random.default_rng(0).random((1_000, 20)) < share
    store = packed(as_table(X.astype(np.int64)), 2)
    assert (len(store.ranks) > 0) == (len(store.bits) < 20)
    np.testing.assert_array_equal(all_counts(store, 2), slow.together(X))


def test_threads_change_nothing() -> None:
    X = csr(zipf(9_000))
    one, many = pack_matrix(X, 1), pack_matrix(X, 3)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_array_equal(all_counts(one, 1), all_counts(many, 3))


def test_counts_beyond_what_float32_holds() -> None:
    n_words = 2**18 + 5  # 64 samples each: more than 2^24 of them
    bits = np.full((3, n_words), 2**64 - 1, np.uint64)
    bits[1, 7] = 2**64 - 2  # one sample less
    out = np.zeros((3, 3), np.uint32)
    count_bits(bits, bits, out)
    every = 64 * n_words
    one_less = [[every, every - 1, every], [every - 1] * 3, [every, every - 1, every]]
    np.testing.assert_array_equal(out, one_less)


# ---- which way -----------------------------------------------------------------------------


def test_cost_grows_with_the_work() -> None:
    n, p = np.meshgrid(np.logspace(2, 7, 11), np.logspace(1, 5, 9), indexing="ij")
    assert (np.diff(bits_cost(n, p), axis=0) > 0).all()
    assert (np.diff(bits_cost(n, p), axis=1) > 0).all()
    assert increments_cost(10, 5) < increments_cost(11, 5) < increments_cost(11, 6)


def test_best_split_is_the_least_sum() -> None:
    n_frequent, n_increments = np.array([0, 10, 10_000]), np.array([10**9, 10**5, 0])
    visits = np.array([10**6, 10**4, 0])
    assert best_split(1_000, n_frequent, n_increments, visits) == 1
    assert best_split(10**11, n_frequent, n_increments, visits) == 0  # bits are dear
    assert best_split(1_000, n_frequent, n_increments * 1_000, visits * 1_000) == 2


def columns_at(rates: NDArray[Any], n: int) -> Any:
    X = csr(np.random.default_rng(0).random((n, len(rates))) < rates)
    return table_of(X), np.bincount(X.indices, minlength=len(rates))


def test_dense_columns_are_bits_and_rare_ones_lists() -> None:
    """But for a few of the less rare ones: a pair of bits among the first is nearly free."""
    assert frequent_columns(*columns_at(np.full(200, 0.5), 3_000)).all()
    assert frequent_columns(*columns_at(np.full(1_000, 0.002), 3_000)).mean() < 0.2
    mixed = frequent_columns(*columns_at(np.r_[np.full(50, 0.4), np.full(2_000, 0.001)], 3_000))
    assert mixed[:50].all()
    assert mixed[50:].mean() < 0.2


def test_work_of_a_split_is_what_the_samples_make() -> None:
    """The split that is taken costs no more, by increments that were counted one by one, than any
    other threshold."""
    X = zipf(400)
    support = X.sum(0)
    chosen = frequent_columns(table_of(csr(X)), support)

    def cost(frequent: NDArray[np.bool_]) -> float:
        visits = int(support[~frequent].sum())
        work = increments_cost(slow.increments(X, frequent), visits)
        listing = 4.0 * support.sum() if visits else 0.0
        return float(bits_cost(len(X), frequent.sum()) + work + listing)

    others = [frequency_classes(support) < g for g in range(0, 30, 3)]
    assert cost(chosen) <= min(map(cost, others)) * (1 + 1e-9)


# ---- correlations, errors and kurtosis --------------------------------------------------------


def check_pairs(table: Table, X: NDArray[Any]) -> None:
    """float32 of a correlation that may be small: 1e-6 of it, 1e-5 where sums are float32 too."""
    whole = full_subspaces(table, 1)
    assert whole is not None
    det, error, kurtosis = all_pairs(table, whole.basis, 2)
    w = np.ones(len(X)) if table.weights is None else table.weights
    for found in (det, error, kurtosis):
        np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(det), 1.0)
    for a in range(X.shape[1]):
        for b in range(a):
            expected = slow.binary_pair(X[:, a] * 1.0, X[:, b] * 1.0, w, BINARY_DAMPING)
            assert det[a, b] == pytest.approx(expected[0], rel=1e-3, abs=3e-6)
            if abs(expected[0]) > 0.005:
                assert error[a, b] == pytest.approx(expected[1], rel=2e-3)
            assert kurtosis[a, b] == pytest.approx(expected[2], rel=1e-4)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", ["codes", "sparse_binary"])
def test_pairs_from_counts(kind: str, weighted: bool) -> None:
    rng = np.random.default_rng(0)
    common = rng.random((600, 1)) < 0.4
    X = rng.random((600, 12)) < np.where(common, 0.6, np.linspace(0.02, 0.5, 12))
    table = sparse_binary_table([str(i) for i in range(12)], csr(X))
    if kind == "codes":
        table = as_table(X.astype(np.int64))
    if weighted:
        table = table.replace(weights=rng.integers(1, 4, 600).astype(np.float64))
    check_pairs(table, X)


def test_a_constant_variable_is_related_to_none() -> None:
    X = zipf(500)
    det, error, kurtosis = (np.empty((P, P), np.float32) for _ in range(3))
    counted_pairs(pack_matrix(csr(X)), np.ones(P), (det, error, kurtosis), 1)
    others = np.arange(P) != 3
    assert (det[3, others] == 0).all()
    assert np.isposinf(error[3, others]).all()
    assert (kurtosis[3, others] == 1).all()


def test_sign_says_which_value_counts() -> None:
    X = csr(zipf(500))
    sign = np.where(np.arange(P) % 2, -1.0, 1.0)
    plain, turned = (
        tuple(np.ones((P, P), np.float32) for _ in range(3)),
        tuple(np.ones((P, P), np.float32) for _ in range(3)),
    )
    counted_pairs(pack_matrix(X), np.ones(P), plain, 1)
    counted_pairs(pack_matrix(X), sign, turned, 1)
    off = ~np.eye(P, dtype=bool)
    np.testing.assert_array_equal((plain[0] * np.outer(sign, sign))[off], turned[0][off])
    np.testing.assert_allclose(plain[1][off], turned[1][off], rtol=1e-6)


def test_one_pair_alone() -> None:
    X = zipf(500)
    store = pack_matrix(csr(X))
    mean = X.mean(0)
    root = damped_inverse_sd(mean, 500.0)
    det, error, kurtosis = (np.empty((P, P), np.float32) for _ in range(3))
    counted_pairs(store, np.ones(P), (det, error, kurtosis), 1)
    for a, b in ((0, 1), (5, 140), (70, 3), (33, 32)):
        second = pair_count(store, a, b) / 500.0 - mean[a] * mean[b]
        alone = binary_pair(second, mean[a], mean[b], root[a], root[b], 500.0)
        np.testing.assert_allclose(alone, (det[a, b], error[a, b], kurtosis[a, b]), rtol=1e-5)
