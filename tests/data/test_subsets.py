"""Parts of weighted tables: halves and thinned rows hold each row by its weight."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference import moments as slow
from tests.reference.tables import (
    GAPPY,
    N,
    codes_table,
)

from latenttree.data import Table
from latenttree.data.subsets import halves
from latenttree.data.values import Values
from latenttree.moments import coordinates


@GAPPY
@pytest.mark.parametrize("n", [50, 1000, 2 * N])
def test_parts_of_a_weighted_table_are_those_of_repeated_rows(make, n: int) -> None:  # type: ignore[no-untyped-def]
    """Integer weights: halves and spread rows hold each row as often as the repeated table's do."""
    table = make()
    rng = np.random.default_rng(n)
    table = table.replace(weights=rng.integers(1, 6, table.n_samples).astype(float))
    numbered = table.replace(values=numbers(table.n_samples))
    again = slow.repeated(numbered)
    pairs = [(numbered.thinned(n), again.thinned(n))]
    pairs += zip(halves(numbered), halves(again), strict=True)
    for weighted, plain in pairs:
        np.testing.assert_array_equal(counts(weighted, N), counts(plain, N))
        assert weighted.total_weight == plain.n_samples
    for x, y in zip(
        coordinates.coordinate_moments(table), coordinates.coordinate_moments(again), strict=True
    ):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)


def numbers(n: int) -> Values:
    """Values that tell rows apart."""
    return Values(("categorical",), np.arange(n)[:, None], {})


def counts(table: Table, n: int) -> NDArray[np.float64]:
    """How often each numbered row is in a table."""
    assert table.values is not None
    return np.bincount(table.values.codes[:, 0], slow.weights_of(table), n)


def test_weights_that_are_no_integers_are_shared_out() -> None:
    table = codes_table().replace(weights=np.random.default_rng(0).uniform(0.1, 4.0, N))
    numbered = table.replace(values=numbers(N))
    even, odd = halves(numbered)
    np.testing.assert_allclose(counts(even, N) + counts(odd, N), table.weights)
    # a place of weight 1 goes to one half or is cut once: halves differ by less than 2
    assert abs(even.total_weight - odd.total_weight) < 2
    part = numbered.thinned(500)
    assert 250 <= part.total_weight <= 1001
