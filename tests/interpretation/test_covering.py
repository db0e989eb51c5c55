"""Greedy covers against the same choice made by trying every row."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.interpretation.covering import greedy_cover


def slow_cover(items: np.ndarray, gains: np.ndarray, n_items: int, n_chosen: int) -> list[int]:
    matrix = np.zeros((len(items), n_items))
    for row in range(len(items)):
        for item, gain in zip(items[row], gains[row], strict=True):
            if item >= 0:
                matrix[row, item] = gain
    reached, chosen = np.zeros(n_items), []
    for _ in range(n_chosen):
        sums = [np.maximum(reached, row).sum() - reached.sum() for row in matrix]
        best = int(np.argmax(sums))
        if sums[best] <= 1e-12:
            break
        chosen.append(best)
        reached = np.maximum(reached, matrix[best])
    return chosen


@pytest.mark.parametrize("seed", range(20))
def test_as_by_trying_every_row(seed: int) -> None:
    rng = np.random.default_rng(seed)
    items = np.array([rng.permutation(30)[:6] for _ in range(40)])
    items[rng.random(items.shape) < 0.1] = -1
    gains = rng.random(items.shape)
    expected = slow_cover(items, gains, 30, 12)
    assert greedy_cover(items, gains, 30, 12) == expected
    assert greedy_cover(items, gains, 30, 5) == expected[:5]


def test_ends_where_nothing_is_added() -> None:
    items, gains = np.array([[0, 1], [0, 1], [2, -1]]), np.array([[1.0, 1], [1, 0.5], [0.2, 9]])
    assert greedy_cover(items, gains, 3, 3) == [0, 2]
