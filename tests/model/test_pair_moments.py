"""Implied covariances of all pairs equal those of one exact inference for each pair."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference.pair_moments import covariance

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.goodness_of_fit.scores import score_of
from latenttree.model.pair_moments import implied_covariance


@pytest.mark.parametrize("family", ["ordinal", "categorical"])
@pytest.mark.parametrize("seed", range(4))
def test_categories(family: str, seed: int) -> None:
    shape = ("balanced", "caterpillar")[seed % 2]
    data = make_latent_tree(
        7, 3, shape=shape, internal_observed=0.3 * (seed > 1), n_samples=10, random_state=seed
    )
    scores = [score_of(data.model, family, v) for v in range(data.tree.n_observed)]
    attached = {s.variable: (s.node, s.means) for s in scores if s is not None}
    found = implied_covariance(data.model, attached)
    ends = np.cumsum([0, *(s.width for s in scores if s is not None)])
    for a, one in enumerate(scores):
        for b, other in enumerate(scores[:a]):
            assert one is not None
            assert other is not None
            block = found[ends[a] : ends[a + 1], ends[b] : ends[b + 1]]
            slow = covariance(data.model, a, b, one.weights, other.weights)
            np.testing.assert_allclose(block, slow, atol=1e-6)  # single precision of inference


def test_gaussian_trees() -> None:
    data = make_latent_tree(9, hidden="gaussian", dim=1, n_states=1, n_samples=10, random_state=0)
    model, p = data.model, data.tree.n_observed
    scores = [score_of(model, "gaussian", v) for v in range(p)]
    found = implied_covariance(model, {s.variable: (s.node, s.means) for s in scores if s})
    covariances = model.covariance(range(p))
    unit = np.sqrt(np.diag(covariances))
    expected = covariances / np.outer(unit, unit) - np.eye(p)
    np.testing.assert_allclose(found, expected, atol=1e-12)  # rounding
