"""A family behind the interface gives what the tables of the model give."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import latenttree as lt
from latenttree.model.emissions import Multinomial, soft_evidence
from latenttree.model.inference import Evidence


def bags(codes: np.ndarray, d: int) -> np.ndarray:
    """A bag of one item for each code; an empty one, which is missing, where the code is -1."""
    return np.concatenate([np.eye(d), np.zeros((1, d))])[codes]


def outside(seed: int, gaps: bool):  # type: ignore[no-untyped-def]
    """A model, its samples, and two of its leaves behind the interface instead of in the codes."""
    data = lt.datasets.make_latent_tree(9, 3, 5, n_samples=300, random_state=seed)
    model, codes = data.model, data.X.copy()
    if gaps:
        codes[np.random.default_rng(seed).random(codes.shape) < 0.2] = -1
    apart = {v: Multinomial(model.cpts[v]) for v in (0, 4)}
    hidden = codes.copy()
    hidden[:, list(apart)] = -1
    values = {v: bags(codes[:, v], len(model.cpts[v])) for v in apart}
    soft, scale = soft_evidence(apart, model.parents, values)
    return model, codes, apart, values, Evidence(hidden, soft), scale


@pytest.mark.parametrize("gaps", [False, True])
def test_likelihood_and_posteriors_are_the_same(gaps: bool) -> None:
    model, codes, _, _, evidence, scale = outside(0, gaps)
    whole = model.posteriors(Evidence(codes))
    apart = model.posteriors(evidence)
    np.testing.assert_allclose(apart.hidden, whole.hidden, atol=1e-12)
    np.testing.assert_allclose(
        model.log_likelihood(evidence) + scale, whole.log_likelihood, atol=1e-10
    )


def test_sums_are_the_expected_counts() -> None:
    model, codes, apart, values, evidence, _ = outside(1, False)
    counts, _ = model.expected_counts(Evidence(codes))
    for v, emission in apart.items():
        q = model.posteriors(evidence, [int(model.parents[v])]).values[0]
        np.testing.assert_allclose(emission.sums(values[v], q), counts[v], atol=1e-9)
        halves = [emission.sums(values[v][s], q[s]) for s in (slice(0, 150), slice(150, None))]
        np.testing.assert_allclose(sum(halves), counts[v], atol=1e-9)


def test_the_best_member_has_the_frequencies_plus_pseudo_samples() -> None:
    """No share is zero, where logarithms would be infinite."""
    start = Multinomial(np.full((3, 2), 1 / 3))
    values = bags(np.array([0, 0, 1, 2, -1]), 3)
    posterior = np.array([[1.0, 0], [1, 0], [0, 1], [0.5, 0.5], [1, 0]])
    target = np.array([0.5, 0.25, 0.25])
    plain = start.from_sums(start.sums(values, posterior), 0.0, target).table
    np.testing.assert_allclose(plain, [[0.8, 0], [0, 2 / 3], [0.2, 1 / 3]], atol=1e-6)
    assert (plain > 0).all()
    smooth = start.from_sums(start.sums(values, posterior), 1.0, target).table
    np.testing.assert_allclose(smooth[:, 0], np.array([2.5, 0.25, 0.75]) / 3.5)
    empty = start.from_sums(np.zeros((3, 2)), 0.0, target).table
    np.testing.assert_allclose(empty, np.repeat(target[:, None], 2, axis=1))


def test_samples_follow_the_table() -> None:
    """Chi-square of 20,000 draws in each of two states: false alarm one in a million."""
    rng = np.random.default_rng(0)
    table = np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]])
    states = np.repeat([0, 1], 20_000)
    drawn = Multinomial(table).sample(states, rng)
    for j in (0, 1):
        counts = drawn[states == j].sum(axis=0)
        assert stats.chisquare(counts, 20_000 * table[:, j]).pvalue > 1e-6


def test_parameters_are_counted_and_means_are_the_table() -> None:
    emission = Multinomial(np.full((4, 3), 0.25))
    assert (emission.n_states, emission.n_parameters) == (3, 9)
    np.testing.assert_array_equal(emission.mean(), emission.table)
