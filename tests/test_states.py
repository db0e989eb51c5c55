"""choose_states: the number of states that simulated data were drawn with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from latenttree.data import as_table
from latenttree.datasets import make_latent_tree
from latenttree.states import choose_states


@pytest.mark.parametrize("n_states", [2, 3, 4])
@pytest.mark.parametrize("n_categories", [None, 8])
def test_finds_the_states_of_the_truth(n_states: int, n_categories: int | None) -> None:
    """Siblings are 1.0 apart, so their weakest correlation is at least exp(-1), 20 times its noise
    of 1 / sqrt(4,000); directions beyond the truth are held to 2.2 times the noise. A miss needs
    half of the variables on the wrong side, so no seed may fail."""
    for seed in range(4):
        data = make_latent_tree(9, n_states, n_categories, n_samples=8_000, random_state=seed)
        assert choose_states(as_table(data.X), random_state=seed).n_states == n_states


def test_evidence_has_a_row_for_each_direction() -> None:
    data = make_latent_tree(9, 3, 6, n_samples=8_000, random_state=0)
    found = choose_states(as_table(data.X), random_state=0)
    correlation, share = found.table.T
    assert found.table.shape == (5, 2)  # 6 categories have 5 directions beyond the mean
    assert (np.diff(correlation) <= 0).all()
    assert ((share >= 0) & (share <= 1)).all()
    assert (share[:2] == 1).all()
    assert (share[2:] < 0.5).all()


def test_the_narrowest_variable_bounds_the_states() -> None:
    data = make_latent_tree(9, 3, 6, n_samples=8_000, random_state=0)
    X = data.X.copy()
    X[:, 0] %= 2
    assert choose_states(as_table(X), random_state=0).n_states == 2


def test_independent_variables_have_two_states_at_least() -> None:
    """No direction holds up (the share says so), and two states are the least a tree can have."""
    found = choose_states(as_table(np.random.default_rng(0).integers(0, 4, (4_000, 8))), 0)
    assert found.n_states == 2
    assert (found.table[:, 1] < 0.5).all()


def test_threads_do_not_change_the_evidence() -> None:
    table = as_table(make_latent_tree(9, 3, 6, n_samples=8_000, random_state=0).X)
    one, two = (choose_states(table, 0, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.table, two.table)


def test_presence_or_absence_has_two_states() -> None:
    data = make_latent_tree(9, 2, n_samples=4_000, random_state=0)
    assert choose_states(as_table(sparse.csr_array(data.X)), 0).n_states == 2
