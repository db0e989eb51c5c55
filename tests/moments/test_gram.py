"""Gram products by tiles against one product of float64."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.columns import gram_of
from tests.reference.tables import (
    FLOAT32,
    JOBS,
)

from latenttree.engine import BLOCK


@JOBS
@pytest.mark.parametrize(("n", "width"), [(50, 3), (BLOCK, 40), (BLOCK + 900, 600)])
def test_gram_sums_products(n: int, width: int, n_jobs: int) -> None:
    """600 columns are more than a tile of 512, 4,996 samples more than a block of 4,096."""
    rng = np.random.default_rng(5)
    x = rng.standard_normal((n, width)) @ rng.standard_normal((width, width)) / np.sqrt(width) + 0.5
    x = x.astype(np.float32)
    second = gram_of(x, n_jobs)
    expected = x.T.astype(np.float64) @ x
    np.testing.assert_allclose(second / n, expected / n, **FLOAT32)
    np.testing.assert_array_equal(second, second.T)


def test_gram_has_the_same_bits_on_any_number_of_threads() -> None:
    x = np.random.default_rng(6).standard_normal((BLOCK + 50, 700)).astype(np.float32)
    results = [gram_of(x, n_jobs) for n_jobs in (1, 2, 3)]
    np.testing.assert_array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
