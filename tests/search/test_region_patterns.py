"""Samples of a region taken together as patterns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.patterns import slow_patterns

from latenttree.search.region_patterns import LANE, as_patterns


def drawn(seed: int, n: int = 500, k: int = 2) -> Any:
    """Codes of three nodes and messages along two edges, of few different values."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(-1, 3, size=(3, n)).astype(np.int32)
    messages = rng.choice(np.float32([1.0, 0.9, 0.5, 0.45, 0.01, 1e-9, 0.0]), size=(n, 2, k))
    messages[:, :, 0] = 1.0
    weights = rng.integers(0, 4, n).astype(float)
    return codes, messages, weights


@pytest.mark.parametrize("k", [2, 3])
def test_patterns_are_those_of_a_dictionary(k: int) -> None:
    for seed in range(5):
        codes, messages, weights = drawn(seed, k=k)
        place, is_message = np.array([2, 1, 0, 0]), np.array([False, True, False, True])
        found = as_patterns(codes, messages, weights, place, is_message)
        expected = slow_patterns(codes, messages, weights, place, is_message)
        n = len(found.weights)
        assert n % LANE == 0
        assert n - len(expected) < LANE
        assert (found.weights[len(expected) :] == 0).all()
        for c, (weight, own, message) in enumerate(expected):
            assert found.weights[c] == weight
            assert found.codes[:, c].tolist() == own
            for b in np.flatnonzero(is_message):
                np.testing.assert_allclose(found.messages[b, :, c], message[b], rtol=1e-6)


def test_codes_alone_lose_nothing() -> None:
    codes, messages, weights = drawn(0)
    found = as_patterns(codes, messages, weights, np.arange(3), np.zeros(3, dtype=bool))
    used = found.weights > 0
    rows, index = np.unique(codes[:, weights > 0], axis=1, return_inverse=True)
    order = np.lexsort(found.codes[::-1, used])
    np.testing.assert_array_equal(found.codes[:, used][:, order], rows)
    totals = np.bincount(index.ravel(), weights[weights > 0])
    np.testing.assert_array_equal(found.weights[used][order], totals)


def test_samples_of_no_weight_are_no_patterns() -> None:
    codes, messages, weights = drawn(1)
    found = as_patterns(codes, messages, 0 * weights, np.arange(2), np.array([True, False]))
    assert found.weights.shape == (LANE,)
    assert not found.weights.any()
