"""Views: the right branches, whitened, and independent of the others given the hidden node."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from tests.reference.enumeration import branch, message
from tests.reference.random_trees import trees

from latenttree.data.chunk import Chunk
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.parameters.features import (
    ViewValues,
    all_leaf_projections,
    leaf_projections,
)
from latenttree.parameters.views import _branches, choose_views
from latenttree.tree import Tree


def slow_strength(tree: Tree, rank: int, u: int, v: int, combined: bool) -> tuple[float, int]:
    """Correlation of `u`'s branch with `v` and its nearest observed node, by recursion."""
    edge = next(e for e, ends in enumerate(tree.edges.tolist()) if set(ends) == {u, v})
    decay = float(np.exp(-tree.lengths[edge] / rank))
    if u < tree.n_observed:
        return decay, u
    behind = {
        w: slow_strength(tree, rank, w, u, combined) for w in tree.neighbors(u).tolist() if w != v
    }
    best = max(behind, key=lambda w: (behind[w][0], -w))
    load, nearest = behind[best]
    if combined:
        squares = [min(s, 1 - 1e-6) ** 2 for s, _ in behind.values()]
        gain = sum(a / (1 - a) for a in squares)
        load = float(np.sqrt(gain / (1 + gain)))
    return load * decay, nearest


@settings(max_examples=60, deadline=None)
@given(trees(min_observed=3, max_observed=12, max_degree=6))
def test_branches_are_measured_as_by_recursion(tree: Tree) -> None:
    for combined in (False, True):
        strength, nearest = _branches(tree, 2, combined)
        indptr, near, _ = tree.adjacency()
        assert len(strength) == len(nearest) == 2 * tree.n_edges
        for v in range(tree.n_nodes):
            for i in range(indptr[v], indptr[v + 1]):
                expected, node = slow_strength(tree, 2, int(near[i]), v, combined)
                np.testing.assert_allclose(strength[i], expected, rtol=1e-9)
                # ties between branches may go either way
                assert nearest[i] == node or not combined


@settings(max_examples=100, deadline=None)
@given(trees(min_observed=3, max_observed=30))
def test_views_lie_in_three_different_branches(tree: Tree) -> None:
    for hidden in (False, True):
        views = choose_views(tree, 1, hidden)
        wide = [v for v in range(tree.n_observed, tree.n_nodes) if len(tree.neighbors(v)) >= 6]
        assert views.branch.shape == views.view.shape == (tree.n_hidden + len(wide), 3)
        hubs = [v - tree.n_observed for v in wide]
        assert views.owner.tolist() == [*range(tree.n_hidden), *hubs]
        for i, (branches, row) in enumerate(zip(views.branch, views.view, strict=True)):
            v = tree.n_observed + int(views.owner[i])
            assert len(set(branches.tolist())) == 3
            if i >= tree.n_hidden:  # another group than the reference group
                assert set(branches.tolist()).isdisjoint(views.branch[views.owner[i]].tolist())
            for u, (source, to) in zip(branches.tolist(), views.source[row].tolist(), strict=True):
                assert u in tree.neighbors(v)
                if hidden and u >= tree.n_observed:
                    assert (source, to) == (u, v)
                else:
                    assert to == -1
                    assert source < tree.n_observed
                    assert source in side(tree, u, v)


def side(tree: Tree, u: int, v: int) -> set[int]:
    model = type("M", (), {"tree": tree})
    return branch(model, u, v)  # type: ignore[arg-type]


def test_views_are_shared_between_nodes() -> None:
    tree = make_latent_tree(27, 2, n_samples=0, random_state=0).tree
    views = choose_views(tree, 1, hidden=False)
    assert len({tuple(s) for s in views.source.tolist()}) == len(views.source)
    assert set(views.view.ravel().tolist()) == set(range(len(views.source)))


def test_the_three_most_telling_branches() -> None:
    #   a .1  b .2  c .3  d .4  all around one hidden node: d is left out
    tree = Tree.build(list("abcd"), [(i, 4) for i in range(4)], [0.1, 0.2, 0.3, 0.4])
    views = choose_views(tree, 1, hidden=False)
    assert views.branch.tolist() == [[0, 1, 2]]
    assert views.source[views.view[0], 0].tolist() == [0, 1, 2]


def test_a_hub_of_ten_thousand_leaves_takes_no_time() -> None:
    p = 10_000
    tree = Tree.build([f"x{i}" for i in range(p)], [(i, p) for i in range(p)], np.full(p, 0.5))
    start = time.perf_counter()
    choose_views(tree, 1, hidden=True)
    assert time.perf_counter() - start < 5  # 0.3 s; minutes if it were quadratic in the degree


def test_a_tree_without_hidden_nodes_has_no_views() -> None:
    views = choose_views(Tree.build(["a", "b"], np.array([[0, 1]]), [1.0]), 1, hidden=True)
    assert views.view.shape == views.branch.shape == (0, 3)
    assert views.source.shape == (0, 2)


# ---- values -----------------------------------------------------------------------------


@pytest.mark.parametrize(("d", "rank"), [(2, 1), (5, 1), (5, 4), (30, 3)])
def test_leaf_views_are_centred_and_white(d: int, rank: int) -> None:
    rng = np.random.default_rng(d)
    marginal = rng.dirichlet(np.ones(d))
    y = leaf_projections(rng.normal(size=(d, rank)), marginal)
    second = (y * marginal[:, None]).T @ y
    np.testing.assert_allclose(second, np.eye(rank + 1), atol=1e-6)  # the ridge is 1e-9


@pytest.mark.parametrize("case", ["no direction", "twice the same", "an unseen category"])
def test_leaf_views_of_poor_directions_are_finite(case: str) -> None:
    marginal = np.array([0.5, 0.5, 0.0]) if case == "an unseen category" else np.full(3, 1 / 3)
    basis = np.zeros((3, 2)) if case == "no direction" else np.outer([1.0, 0.0, -1.0], [1.0, 1.0])
    y = leaf_projections(basis, marginal)
    assert np.isfinite(y).all()
    np.testing.assert_allclose(marginal @ y, [1, 0, 0], atol=1e-9)


def small_model(seed: int, k: int = 3) -> tuple[TreeModel, Any]:
    data = make_latent_tree(
        5, k, 4, shape="caterpillar", edge_length=0.7, n_samples=40, random_state=seed
    )
    return data.model, data.X


def test_leaf_views_of_all_are_those_of_each() -> None:
    rng = np.random.default_rng(0)
    sizes = [3, 5, 3, 4, 5]
    bases = [rng.normal(size=(d, 2)) for d in sizes]
    shares = [rng.dirichlet(np.ones(d)) for d in sizes]
    found = all_leaf_projections(bases, shares)
    for basis, share, views in zip(bases, shares, found, strict=True):
        np.testing.assert_allclose(views, leaf_projections(basis, share), atol=1e-12)


def test_leaf_features_look_categories_up() -> None:
    model, codes = small_model(0)
    rng = np.random.default_rng(0)
    tables = [rng.normal(size=(4, 3)) for _ in range(5)]
    views = choose_views(model.tree, 2, hidden=False)
    y = ViewValues(views, tables).of(Chunk(codes.astype(np.uint8)), 1)
    assert y.dtype == np.float32
    for v, (a, _) in enumerate(views.source.tolist()):
        np.testing.assert_allclose(y[v].T, tables[a][codes[:, a]], rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_message_features_are_posteriors_given_the_branch(seed: int) -> None:
    model, codes = small_model(seed)
    tables = [np.random.default_rng(0).normal(size=(4, 3)) for _ in range(5)]
    views = choose_views(model.tree, 2, hidden=True)
    assert (views.source[:, 1] >= 0).any()
    assert (views.source[:, 1] < 0).any()
    y = ViewValues(views, tables, model).of(Chunk(codes), 1)
    for v, (u, w) in enumerate(views.source.tolist()):
        for s in range(5):
            if w < 0:
                np.testing.assert_allclose(y[v, :, s], tables[u][codes[s, u]], rtol=1e-6)
                continue
            weights = message(model, Evidence(codes), s, u, w) * model.marginals[u]
            posterior = weights / weights.sum()
            np.testing.assert_allclose(y[v, :, s], [1, *posterior[1:]], atol=1e-5)


def test_message_features_where_all_views_are_messages_or_leaves() -> None:
    model, codes = small_model(0)
    tables = [np.ones((4, 3)) for _ in range(5)]
    hidden = choose_views(model.tree, 2, hidden=True)
    for wanted in (hidden.source[:, 1] >= 0, hidden.source[:, 1] < 0):
        views = hidden._replace(source=hidden.source[wanted])
        y = ViewValues(views, tables, model).of(Chunk(codes), 2)
        assert y.shape == (wanted.sum(), 3, 40)
        assert np.isfinite(y).all()
        assert (y[:, 0] == 1).all()
