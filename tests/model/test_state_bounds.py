"""The most states that a hidden node can use: against a walk over every branch, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.random_trees import random_tree, trees
from tests.reference.state_bounds import slow_most_states

from latenttree.model.inference import Evidence
from latenttree.model.state_bounds import most_states
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

LIMITS = (1, 2, 3, 16, 64, 10**6)


@given(trees(min_observed=3, max_observed=25), st.integers(0, 2**32 - 1), st.sampled_from(LIMITS))
@settings(max_examples=500, deadline=None)
def test_bounds_are_those_of_every_branch(tree: Tree, seed: int, limit: int) -> None:
    """Dims of 0 are numbers, of 1 a constant; observed nodes may be inside."""
    dims = np.random.default_rng(seed).integers(0, 6, tree.n_observed)
    found = most_states(tree, dims, limit)
    np.testing.assert_array_equal(found, slow_most_states(tree, dims, limit))


def test_by_hand() -> None:
    """
        a(2)      c(2)
           \\     /
            h0 -- h1 -- e(0)
           /      \\
        b(3)      d(4)

    h0: without the branch of h1 it sees a and b, 6 configurations; without a it sees b and the
    numbers e, which set no bound. h1: without the numbers it sees a, b, c and d, 48; without the
    branch of h0 the numbers again.
    """
    tree = Tree.from_newick("((a,b),c,d,e);", observed=list("abcde"))
    dims = np.array([2, 3, 2, 4, 0])
    found = {limit: most_states(tree, dims, limit) for limit in (64, 10)}
    at = {int(v): i for i, v in enumerate(range(5, tree.n_nodes))}
    h0, h1 = int(tree.neighbors("a")[0]), int(tree.neighbors("e")[0])
    assert found[64][[at[h0], at[h1]]].tolist() == [6, 48]
    assert found[10][[at[h0], at[h1]]].tolist() == [6, 10]


def test_a_chain_of_hidden_nodes_is_bounded_at_its_ends() -> None:
    """Ends see two binary leaves on one side, whatever the length of the chain."""
    tree = random_tree(np.random.default_rng(0), 12, shape="caterpillar")
    found = most_states(tree, np.full(12, 2), 64)
    hidden = np.arange(12, tree.n_nodes)
    ends = [v for v in hidden.tolist() if (tree.neighbors(v) >= 12).sum() == 1]
    assert found[np.array(ends) - 12].tolist() == [4, 4]
    assert found.max() == 64


def test_a_tree_without_hidden_nodes_has_no_bounds() -> None:
    tree = Tree.build(list("abc"), np.array([[0, 1], [1, 2]]), np.ones(2))
    assert most_states(tree, np.array([2, 2, 2]), 16).shape == (0,)


@pytest.mark.parametrize("seed", range(5))
def test_as_many_states_give_every_distribution(seed: int) -> None:
    """Three binary leaves of one node: with the four states that the bound allows, the state tells
    the second and third leaf, and the first depends on it in any way."""
    tree = Tree.build(list("abc"), np.array([[0, 3], [1, 3], [2, 3]]), np.ones(3))
    (k,) = most_states(tree, np.array([2, 2, 2]), 64).tolist()
    assert k == 4
    joint = np.random.default_rng(seed).dirichlet(np.ones(8)).reshape(2, k)  # a, then (b, c)
    second, third = np.divmod(np.arange(k), 2)
    prior = joint.sum(axis=0)
    cpts = (joint / prior, np.eye(2)[:, second], np.eye(2)[:, third], prior[:, None])
    model = TreeModel(tree, 3, cpts)
    rows = Evidence(np.indices((2, 2, 2)).reshape(3, -1).T)
    np.testing.assert_allclose(np.exp(model.log_likelihood(rows)), joint.ravel(), rtol=1e-12)
