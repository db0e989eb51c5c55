"""Samples to learn from and held-out samples: disjoint, together all, by weight too."""

from __future__ import annotations

import numpy as np
import pytest

from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.model.held_out import split_samples


@pytest.mark.parametrize("fraction", [1e-9, 0.3, 1 - 1e-9])
def test_a_split_leaves_some_on_both_sides(fraction: float) -> None:
    table = as_table(np.arange(10)[:, None] % 2)
    train, held = split_samples(table, FitConfig(validation_fraction=fraction))
    assert held is not None
    assert train.n_samples + held.n_samples == 10
    assert train.n_samples >= 1
    assert held.n_samples == {1e-9: 1, 0.3: 3}.get(fraction, 9)


def test_no_split_without_a_reason() -> None:
    table = as_table(np.arange(10)[:, None] % 2)
    for options in (FitConfig(), FitConfig(refine=None, validation_fraction=0.5)):
        train, held = split_samples(table, options)
        assert train.n_samples == 10
        assert held is None


def test_weights_are_split_by_unit() -> None:
    """A row of weight 5 may lie on both sides; the weights of both sides add up to its own."""
    weights = np.array([5.0, 1.0, 4.0])
    table = as_table(np.array([[0], [1], [1]]), sample_weight=weights)
    train, held = split_samples(table, FitConfig(validation_fraction=0.5, seed=1))
    assert held is not None
    assert held.n_samples == 5
    assert train.n_samples == 5
