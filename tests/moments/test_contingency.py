"""Contingency tables of all pairs, moments from them, and sums of many samples."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import counts as slow
from tests.reference.columns import gram_of

from latenttree.data import Table, as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.moments import contingency as module
from latenttree.moments import pairs as pairs_module
from latenttree.moments.contingency import (
    contingency,
    counting_cost,
    gram_cost,
    projected,
    worth_counting,
)


def small_table(n: int = 700) -> Table:
    rng = np.random.default_rng(0)
    common = rng.integers(0, 3, n)
    return as_table(
        np.column_stack([(common + rng.integers(0, d, n)) % d for d in (2, 3, 5, 9, 30, 40)])
    )


@pytest.mark.parametrize("dear", ["packed_cost", "cell_increments_cost"])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_both_ways_count_every_cell(
    dear: str, n_jobs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = small_table()
    monkeypatch.setattr(module, dear, lambda *_: np.inf)
    found = contingency(table, n_jobs)
    assert table.codes is not None
    np.testing.assert_array_equal(found, slow.contingency(table.codes, table.dims))


def test_moments_in_any_direction() -> None:
    table = small_table()
    assert table.codes is not None
    basis = np.random.default_rng(1).standard_normal((int(table.offsets[-1]), 2))
    z = basis[table.offsets[:-1] + table.codes].reshape(table.n_samples, -1)
    found = projected(contingency(table), table.offsets, basis)
    np.testing.assert_allclose(found, z.T @ z, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize(("p", "d", "k"), [(9, 4, 3), (9, 3, 2), (31, 5, 4)])
def test_pairs_from_counts_are_those_from_samples(
    p: int, d: int, k: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fewer samples than kurtosis and errors are measured on: both see all of them. 1e-3 of a
    determinant down to 1e-3, in float32, and what whitening by float32 moments leaves."""
    table = as_table(make_latent_tree(p, k, d, n_samples=4_000, random_state=p).X)
    basis = np.random.default_rng(0).standard_normal((int(table.offsets[-1]), k - 1))
    basis = basis.astype(np.float32)
    monkeypatch.setattr(pairs_module, "worth_counting", lambda *_: True)
    counted = pairs_module.all_pairs(table, basis, 2)
    monkeypatch.setattr(pairs_module, "worth_counting", lambda *_: False)
    sampled = pairs_module.all_pairs(table, basis, 2)
    np.testing.assert_allclose(counted.determinant, sampled.determinant, rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(counted.kurtosis, sampled.kurtosis, rtol=1e-3)
    clear = np.abs(sampled.determinant) > 1e-3
    np.testing.assert_allclose(counted.error[clear], sampled.error[clear], rtol=3e-3)


def test_counting_is_for_few_categories() -> None:
    def table(p: int, d: int, n: int = 5_000) -> Table:
        codes = (np.arange(n)[:, None] + np.arange(p)) % d
        return as_table(codes)

    assert worth_counting(table(50, 3), n_directions=2)
    assert not worth_counting(table(50, 100), n_directions=2)
    assert not worth_counting(table(20, 400), n_directions=2)  # more cells than are held
    weighted = table(50, 3).replace(weights=np.ones(5_000))
    assert not worth_counting(weighted, n_directions=2)
    codes = weighted.codes
    assert codes is not None
    gappy = codes.astype(np.int8)
    gappy[0, 0] = -1
    assert not worth_counting(table(50, 3).replace(codes=gappy), n_directions=2)


def test_cost_grows_with_the_work() -> None:
    for cost, last in ((counting_cost, [4, 40, 400]), (gram_cost, [1, 2, 5])):
        for n in (100, 10_000):
            for p in (5, 50):
                values = [cost(n, p, x) for x in last]
                assert values == sorted(values)
                assert cost(2 * n, p, last[0]) > cost(n, p, last[0])
                assert cost(n, 2 * p, last[0]) >= cost(n, p, last[0])


def test_sums_of_two_million_samples_keep_their_digits() -> None:
    """Blocks of 4,095 squares of 100, each exact in float32, are no multiple of the step of float32
    at their total, 2 10^10: adding up in float32 would lose 240 every time."""
    n_blocks = 489
    x = np.full((4096 * n_blocks, 1), 100.0, np.float32)
    x[::4096] = 0.0
    found = gram_of(x, 2)
    exact = 4095 * 10_000 * n_blocks
    assert abs(float(found[0, 0]) - exact) <= 1024
