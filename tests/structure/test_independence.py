"""Links of the spanning tree between dependent variables; nothing from nothing."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi

import latenttree as lt
from latenttree.structure.independence import log_tail_of_product


def test_tail_of_a_product_of_one_and_of_two() -> None:
    x = np.array([0.5, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(log_tail_of_product(x, 1), chi(1).logsf(x), atol=0.1)
    rng = np.random.default_rng(0)
    roots = np.sqrt(chi(1).rvs(400_000, random_state=rng) * chi(2).rvs(400_000, random_state=rng))
    share = [(roots >= t).mean() for t in x[:3]]  # errors below a hundredth of each
    np.testing.assert_allclose(np.exp(log_tail_of_product(x[:3], 2)), share, rtol=0.05)


@pytest.mark.parametrize("p", [8, 40])
def test_independent_columns_have_no_hidden_node(p: int) -> None:
    """A pair stands out in one of twenty tables; a hidden node needs two pairs that meet."""
    for seed in range(5):
        X = np.random.default_rng(seed).integers(0, 2, (500, p))
        model = lt.LatentTree(n_states=2, random_state=0, support="model").fit(X)
        assert model.tree_.n_hidden == 0
        a, b = model.tree_.edges[np.flatnonzero(model.diagnostics_.support == 0)[0]]
        joint = model.model_.joint(int(a), int(b))
        np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)
