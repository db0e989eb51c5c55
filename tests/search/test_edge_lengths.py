"""Lengths of the edges of a model: those it was made with, many at once as one by one."""

from __future__ import annotations

import numpy as np

import latenttree as lt
from latenttree.evaluation.simulation import information_length
from latenttree.search.edge_lengths import information_lengths, model_lengths


def test_lengths_of_a_model_are_those_it_was_made_with() -> None:
    data = lt.datasets.make_latent_tree(
        16, 2, shape="random", edge_length=(0.3, 0.7), n_samples=10, random_state=3
    )
    # lengths are found by bisection to about 1e-9 when a model is made
    np.testing.assert_allclose(model_lengths(data.model), data.tree.lengths, atol=1e-6)


def test_lengths_of_many_edges_are_those_of_each() -> None:
    joints = np.random.default_rng(0).dirichlet(np.ones(12), size=5).reshape(5, 4, 3)
    joints[0, 1] = 0.0  # a category that never occurs
    for rank in (1, 2, 3):
        one_by_one = [information_length(joint, rank) for joint in joints]
        np.testing.assert_allclose(information_lengths(joints, rank), one_by_one, atol=1e-9)
