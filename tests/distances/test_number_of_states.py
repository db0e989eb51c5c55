"""choose_states: the number of states that simulated data were drawn with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from tests.reference.node_states import mixed_model

from latenttree.data import as_table
from latenttree.distances.number_of_states import choose_states
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.simulation.shapes import make_tree


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
    correlation, share = found.directions.T
    assert found.directions.shape == (5, 2)  # 6 categories have 5 directions beyond the mean
    assert (np.diff(correlation) <= 0).all()
    assert ((share >= 0) & (share <= 1)).all()
    assert (share[:2] == 1).all()
    assert (share[2:] < 0.5).all()


def test_the_narrowest_variable_bounds_the_states() -> None:
    data = make_latent_tree(9, 3, 6, n_samples=8_000, random_state=0)
    X = data.X.copy()
    X[:, 0] %= 2
    assert choose_states(as_table(X), random_state=0).n_states == 2


def test_narrow_variables_do_not_bound_the_states_of_parameters() -> None:
    """A third of the variables has two values; the others still show three states."""
    for seed in range(4):
        data = make_latent_tree(12, 3, 6, n_samples=8_000, random_state=seed)
        X = data.X.copy()
        X[:, ::3] %= 2
        found = choose_states(as_table(X), random_state=seed)
        assert (found.n_states, found.most_states) == (2, 3)


def test_states_of_a_part_of_the_tree() -> None:
    """Two hidden nodes have three states: too few for distances, enough for parameters. The leaves
    of one of them are a sixth of all, and show it at twenty times the noise."""
    for seed in range(4):
        rng = np.random.default_rng(seed)
        tree = make_tree(18, "balanced", 3, 0.5, 0.5, 0.0, rng)
        model = mixed_model(tree, [3, 3, *[2] * (tree.n_hidden - 2)], 6, rng)
        found = choose_states(as_table(model.sample(20_000, rng)[:, :18]), random_state=seed)
        assert (found.n_states, found.most_states) == (2, 3)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "multinomial", "multihot", "mixed"])
@pytest.mark.parametrize("n_states", [2, 3])
def test_families_and_gaps(family: str, n_states: int) -> None:
    """As with categories: no seed may fail."""
    gaps = 0.0 if family in ("multinomial", "mixed") else 0.2
    for seed in range(2):
        data = make_latent_tree(
            9, n_states, 6, family=family, missing=gaps, n_samples=8_000, random_state=seed
        )
        table = as_table(data.X, family=data.family)
        assert choose_states(table, random_state=seed).n_states == n_states


def test_weights_are_samples_that_stand_there_so_often() -> None:
    data = make_latent_tree(9, 3, 6, n_samples=3_000, random_state=0)
    weights = np.repeat([1.0, 2.0], 1_500)
    once = as_table(data.X).replace(weights=weights)
    twice = as_table(np.repeat(data.X, weights.astype(int), axis=0))
    one, two = (choose_states(table, 0) for table in (once, twice))
    np.testing.assert_allclose(one.directions, two.directions, atol=1e-5)
    assert one.n_states == two.n_states == 3


def test_noise_stays_below_its_bound() -> None:
    """Two states in eight categories, directions of noise within one state: 18 variables x 20 trees
    with one false alarm in two hundred on average give more than eight with a probability below
    1e-3, though neighbours raise theirs together."""
    false = 0.0
    for seed in range(20):
        data = make_latent_tree(18, 2, 8, n_samples=4_000, random_state=seed)
        false += 18 * choose_states(as_table(data.X), seed).directions[1, 1]
    assert false <= 8


def test_independent_variables_have_two_states_at_least() -> None:
    """No direction holds up (the share says so), and two states are the least a tree can have."""
    found = choose_states(as_table(np.random.default_rng(0).integers(0, 4, (4_000, 8))), 0)
    assert found.n_states == 2
    assert (found.directions[:, 1] < 0.5).all()


def test_threads_do_not_change_the_evidence() -> None:
    table = as_table(make_latent_tree(9, 3, 6, n_samples=8_000, random_state=0).X)
    one, two = (choose_states(table, 0, n_jobs=n_jobs) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.directions, two.directions)


def test_presence_or_absence_has_two_states() -> None:
    data = make_latent_tree(9, 2, n_samples=4_000, random_state=0)
    assert choose_states(as_table(sparse.csr_array(data.X)), 0).n_states == 2
