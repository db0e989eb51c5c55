"""Inference that visits only what differs from the defaults, against enumeration and log space."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.enumeration import Floats, log_posteriors, model_on, random_model
from tests.reference.random_trees import random_tree
from tests.reference.refine import slow_counts

from latenttree.model.inference import Evidence
from latenttree.model.inference.sparse_forms import SparseLayout, SparsePass, departures
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

EXACT = 1e-10  # float64 over a few dozen operations


def flat(tables: tuple[Floats, ...] | list[Floats]) -> Floats:
    return np.concatenate([t.ravel() for t in tables])


def some_codes(
    rng: np.random.Generator, model: TreeModel, n: int, missing: float
) -> NDArray[np.int64]:
    """Most values zero; the first sample all zero, the last all unknown."""
    p = model.tree.n_observed
    codes = np.where(rng.random((n, p)) < 0.6, 0, rng.integers(model.dims[:p], size=(n, p)))
    codes[rng.random((n, p)) < missing] = -1
    codes[0] = 0
    codes[-1] = -1 if missing else 0
    return codes


def walk_of(model: TreeModel, default: NDArray[np.int64]) -> SparsePass | None:
    layout = SparseLayout(model, default)
    loaded = layout.load(flat(model.cpts))
    return None if loaded is None else SparsePass(layout, loaded)


def check_against_enumeration(
    model: TreeModel, codes: NDArray[np.int64], default: NDArray[np.int64]
) -> bool:
    walk = walk_of(model, default)
    if walk is None:
        return False
    samples = departures(codes, default, model.dims)
    weights = np.arange(1.0, len(codes) + 1)
    pairs, leaves, logs = walk.sums(samples, weights, 1)
    expected = [np.zeros_like(t) for t in model.cpts]
    for s in range(len(codes)):
        with np.errstate(divide="ignore", invalid="ignore"):
            counts, value = slow_counts(model, Evidence(codes[s : s + 1]))
        np.testing.assert_allclose(logs[s], value, atol=EXACT)
        if np.isfinite(value):
            expected = [e + weights[s] * c for e, c in zip(expected, counts, strict=True)]
    found = walk.layout.counts(walk.loaded, pairs, leaves)
    np.testing.assert_allclose(found, flat(expected), atol=EXACT * weights.sum())
    # another kernel, which the compiler may make to round differently
    np.testing.assert_allclose(walk.log_likelihood(samples, 1), logs, rtol=1e-12, atol=1e-12)
    return True


def test_counts_and_likelihoods_of_any_tree() -> None:
    """Hidden and observed nodes inside, different numbers of states, any default, gaps, zeros."""
    checked = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        model = random_model(rng)
        default = rng.integers(model.dims[: model.tree.n_observed])
        codes = some_codes(rng, model, 4, float(rng.choice([0.0, 0.3])))
        checked += check_against_enumeration(model, codes, default)
    assert checked >= 30  # the others have zeros where the ratios need a number


def check_against_log_space(model: TreeModel, codes: NDArray[np.int64]) -> None:
    """Posteriors and likelihood of every sample."""
    default = np.zeros(codes.shape[1], dtype=np.int64)
    walk = walk_of(model, default)
    assert walk is not None
    values, logs = walk.posteriors(departures(codes, default, model.dims), 1)
    q = values.reshape(len(codes), len(walk.layout.nodes), walk.layout.k)
    for s in range(len(codes)):
        expected, value = log_posteriors(model, Evidence(codes), s)
        np.testing.assert_allclose(logs[s], value, rtol=1e-10, atol=1e-10)
        for u, v in enumerate(walk.layout.nodes.tolist()):
            d = model.dims[v]
            np.testing.assert_allclose(q[s, u, :d], expected[v], atol=1e-8)
            assert (q[s, u, d:] == 0).all()


@pytest.mark.parametrize("inside", [0.0, 0.3])
def test_posteriors_on_larger_trees(inside: float) -> None:
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 60, max_degree=8, internal_observed_fraction=inside)
    dims = np.where(np.arange(tree.n_nodes) < 60, 2, rng.integers(2, 4, size=tree.n_nodes))
    model = model_on(rng, tree, dims)
    check_against_log_space(model, some_codes(rng, model, 6, 0.1))


@pytest.mark.parametrize("p", [40, 3000])
def test_extreme_probabilities(p: int) -> None:
    """Hubs whose products are far beyond floats, in favour of a state and against it."""
    rng = np.random.default_rng(p)
    edges = [(i, p + i % 3) for i in range(p)] + [(p, p + 1), (p + 1, p + 2)]
    tree = Tree.build([f"x{i}" for i in range(p)], edges, np.ones(len(edges)))
    tables = [np.array([[0.5, 1 - q], [0.5, q]]) for q in 10.0 ** -rng.uniform(1, 40, size=p)]
    turn = np.array([[1 - 1e-12, 1e-30], [1e-12, 1 - 1e-30]])
    root, prior = p, np.array([[1 - 1e-9], [1e-9]])
    parents = tree.rooted(root).parents
    hidden = [prior if parents[v] < 0 else turn for v in range(p, p + 3)]
    model = TreeModel(tree, root, (*tables, *hidden))
    codes = (rng.random((5, p)) < np.array([0.0, 0.01, 0.1, 0.5, 1.0])[:, None]).astype(np.int64)
    check_against_log_space(model, codes)


def test_zeros_that_ratios_cannot_express_are_left_to_others() -> None:
    tree = Tree.build(["a", "b", "c"], [(i, 3) for i in range(3)], np.ones(3))
    sure = np.array([[1.0, 0.0], [0.0, 1.0]])
    model = TreeModel(tree, 3, (sure, sure, sure, np.array([[0.5], [0.5]])))
    assert walk_of(model, np.zeros(3, dtype=np.int64)) is None


def test_threads_do_not_matter() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 30)
    model = model_on(rng, tree, np.full(tree.n_nodes, 2))
    default = np.zeros(30, dtype=np.int64)
    walk, samples = (
        walk_of(model, default),
        departures(some_codes(rng, model, 3000, 0.1), default, model.dims),
    )
    assert walk is not None
    weights = rng.random(3000)
    one, two = walk.sums(samples, weights, 1), walk.sums(samples, weights, 3)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
