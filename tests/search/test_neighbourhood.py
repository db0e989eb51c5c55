"""The neighbourhood of a hidden node: changes of its states, their likelihood, and refits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.node_states import mixed_model, slow_log_likelihood, slow_merged
from tests.reference.random_trees import random_tree

import latenttree as lt
from latenttree.evaluation.simulation.shapes import make_tree
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Chunk, InMemory
from latenttree.model.tree_model import TreeModel
from latenttree.search.neighbourhood import (
    BranchEvidence,
    Targets,
    beliefs,
    drop_state,
    fewer_states,
    log_likelihood_at,
    merge_states,
    mixed,
    neighbourhood_of,
    refit,
    with_neighbourhoods,
)
from latenttree.search.regions import gather_evidence, region_around
from latenttree.search.state_edits import branch_evidence


def small(seed: int, internal: bool = False) -> TreeModel:
    """Five observed nodes, hidden ones of two to four states."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5, internal_observed_fraction=0.4 if internal else 0.0)
    states = rng.integers(2, 5, tree.n_hidden)
    cpts = []
    dims = [3] * 5 + states.tolist()
    root = 5 if tree.n_hidden else 0
    for v, u in enumerate(tree.rooted(root).parents.tolist()):
        columns = rng.dirichlet(np.ones(dims[v]), 1 if u < 0 else dims[u])
        cpts.append(columns.T)
    return TreeModel(tree, root, tuple(cpts))


def draws(model: TreeModel, n: int, seed: int) -> Any:
    p = model.tree.n_observed
    return model.sample(n, np.random.default_rng(seed))[:, :p].astype(np.int64)


def evidence(model: TreeModel, v: int, chunk: Chunk) -> BranchEvidence:
    region = region_around(model.tree, (v,), 0)
    found = gather_evidence(model, [region], InMemory([chunk]), True)  # type: ignore[arg-type]
    (part,) = branch_evidence(model, region, found)
    return part


def wide_node(model: TreeModel) -> int:
    """A hidden node of most states."""
    p = model.tree.n_observed
    return p + int(model.dims[p:].argmax())


def with_states(states: list[int]) -> TreeModel:
    rng = np.random.default_rng(0)
    tree = make_tree(len(states) + 2, "caterpillar", 3, 0.5, 0.5, 0.0, rng)
    return mixed_model(tree, states, 4, rng)


def merged(model: TreeModel, v: int, i: int, j: int) -> TreeModel:
    """The model with two states of a hidden node merged."""
    neighbourhood = neighbourhood_of(model, v)
    return with_neighbourhoods(
        model, [mixed(neighbourhood, *merge_states(neighbourhood.weights, i, j))]
    )


# ---- merging states -------------------------------------------------------------------


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_merged_is_the_joint_with_two_states_added_up(seed: int, internal: bool) -> None:
    model = small(seed, internal)
    for v in range(5, model.tree.n_nodes):
        if model.dims[v] > 2:
            found, expected = merged(model, v, 2, 0), slow_merged(model, v, 0, 2)
            for a, b in model.tree.edges.tolist():
                np.testing.assert_allclose(found.joint(a, b), expected.joint(a, b), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_likelihood_are_those_of_the_merged_models(seed: int) -> None:
    """Codes with gaps, samples with weights, hidden and observed neighbours."""
    model = small(seed)
    rng = np.random.default_rng(seed)
    v = wide_node(model)
    codes = draws(model, 30, seed)
    codes[rng.random(codes.shape) < 0.2] = -1
    weights = rng.integers(0, 4, len(codes)).astype(float)
    neighbourhood, parts = (
        neighbourhood_of(model, v),
        [evidence(model, v, Chunk(codes, weights=weights))],
    )
    value, candidates = fewer_states(neighbourhood, parts)
    k = len(neighbourhood.weights)
    assert len(candidates) == k * (k - 1) // 2 + k
    assert value == pytest.approx(log_likelihood_at(neighbourhood, parts))
    before = slow_log_likelihood(model, codes, weights)
    for candidate in candidates:
        whole = with_neighbourhoods(
            model, [mixed(neighbourhood, candidate.matrix, candidate.weights)]
        )
        after = slow_log_likelihood(whole, codes, weights)
        # messages are float32: one part in 10^7 for each branch and sample
        assert candidate.change == pytest.approx(after - before, abs=1e-4)


def test_neighbourhoods_are_replaced_one_after_another() -> None:
    """In any order, and as each by itself where the others are far away."""
    model = with_states([3, 3, 3, 3, 3])
    ends = [
        mixed(neighbourhood_of(model, v), *drop_state(model.marginals[v], 0)) for v in (7, 9, 11)
    ]
    both = with_neighbourhoods(model, ends[::2])
    assert both.dims[7:].tolist() == [2, 3, 3, 3, 2]
    assert both.root == model.root
    step = with_neighbourhoods(with_neighbourhoods(model, ends[:1]), ends[2:])
    turned = with_neighbourhoods(model, ends[::-2])
    for a, b in model.tree.edges.tolist():
        np.testing.assert_allclose(both.joint(a, b), step.joint(a, b), atol=1e-12)
        np.testing.assert_allclose(both.joint(a, b), turned.joint(a, b), atol=1e-12)
    alone = with_neighbourhoods(model, ends[1:2])
    np.testing.assert_allclose(alone.marginals[9], ends[1].weights, atol=1e-12)
    for u, table in ends[1].cpts.items():
        np.testing.assert_allclose(alone.conditional(u, 9), table, atol=1e-12)


def test_candidates_come_best_first_and_duplicates_are_free() -> None:
    """A state cut in two equal halves: merging them changes nothing."""
    model = small(3)
    v = wide_node(model)
    k = int(model.dims[v])
    weights = np.append(model.marginals[v], 0.0)
    weights[0], weights[k] = weights[0] / 2, weights[0] / 2
    twice = mixed(neighbourhood_of(model, v), np.eye(k)[:, [*range(k), 0]], weights)
    split = with_neighbourhoods(model, [twice])
    parts = [evidence(split, v, Chunk(draws(model, 200, 0)))]
    _, candidates = fewer_states(neighbourhood_of(split, v), parts)
    changes = [candidate.change for candidate in candidates]
    assert changes == sorted(changes, reverse=True)
    assert np.abs(changes).min() == pytest.approx(0, abs=1e-6)
    again = merged(split, v, 0, k)
    np.testing.assert_allclose(again.marginals[v], model.marginals[v], atol=1e-12)


def test_many_branches_do_not_underflow() -> None:
    data = lt.datasets.make_latent_tree(400, 3, 4, shape="star", n_samples=40, random_state=0)
    model: TreeModel = data.model
    neighbourhood, parts = neighbourhood_of(model, 400), [evidence(model, 400, Chunk(data.X))]
    product, log_scale = beliefs(neighbourhood, parts[0])
    assert np.isfinite(log_scale).all()
    assert (product.max(axis=1) == 1).all()
    total = total_log_likelihood(model, InMemory([data.X]))
    assert log_likelihood_at(neighbourhood, parts) == pytest.approx(total, rel=1e-9)


def test_impossible_samples_are_ignored() -> None:
    tree = make_tree(3, "star", 3, 0.5, 0.5, 0.0, np.random.default_rng(0))
    eye = np.eye(3)
    model = TreeModel(tree, 3, (eye, eye, eye, np.full((3, 1), 1 / 3)))
    codes = np.array([[0, 1, 2], [0, 0, 0], [1, 1, 1]])
    parts = [evidence(model, 3, Chunk(codes))]
    assert log_likelihood_at(neighbourhood_of(model, 3), parts) == pytest.approx(2 * np.log(1 / 3))
    _, candidates = fewer_states(neighbourhood_of(model, 3), parts)
    assert all(np.isfinite(candidate.change) for candidate in candidates)


def test_weights_of_merged_and_dropped_states() -> None:
    weights = np.array([0.5, 0.3, 0.2])
    matrix, merged_weights = merge_states(weights, 2, 1)
    np.testing.assert_allclose(merged_weights, [0.5, 0.5])
    np.testing.assert_allclose(matrix, [[1, 0], [0, 0.6], [0, 0.4]])
    matrix, left = drop_state(weights, 1)
    np.testing.assert_allclose(left, [5 / 7, 2 / 7])
    np.testing.assert_allclose(matrix, [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_allclose(drop_state(np.array([1.0, 0.0, 0.0]), 0)[1], [0.5, 0.5])


# ---- refitting ------------------------------------------------------------------------


def test_refitting_a_neighbourhood_never_loses_and_is_what_the_whole_gains() -> None:
    model = small(1)
    v = wide_node(model)
    chunk = Chunk(draws(small(2), 300, 0))
    parts = [evidence(model, v, chunk)]
    spread = {u: model.marginals[u] for u in map(int, model.tree.neighbors(v))}
    neighbourhood = neighbourhood_of(model, v)
    values = [
        refit(neighbourhood, parts, Targets(0.0, spread), np.inf, max_steps=n)[1]
        for n in (1, 2, 3, 4)
    ]
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0]
    new, value = refit(neighbourhood, parts, Targets(0.0, spread), -np.inf)
    assert value == pytest.approx(log_likelihood_at(new, parts), rel=1e-12)
    gained = total_log_likelihood(with_neighbourhoods(model, [new]), InMemory([chunk]))
    gained -= total_log_likelihood(model, InMemory([chunk]))
    assert value - log_likelihood_at(neighbourhood, parts) == pytest.approx(gained, abs=1e-3)


def test_a_hopeless_refit_is_stopped() -> None:
    model = small(1)
    v = wide_node(model)
    parts = [evidence(model, v, Chunk(draws(model, 300, 0)))]
    spread = {u: model.marginals[u] for u in map(int, model.tree.neighbors(v))}
    neighbourhood = neighbourhood_of(model, v)
    value = log_likelihood_at(neighbourhood, parts)
    _, reached = refit(neighbourhood, parts, Targets(1.0, spread), value + 1e6, max_steps=10_000)
    assert reached < value + 1e6
