"""Messages of samples in which few variables are present, against the kernel for all codes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.reference.enumeration import Floats, model_on
from tests.reference.random_trees import random_tree

from latenttree.data import as_table
from latenttree.model.inference import Evidence, messages, posteriors
from latenttree.model.inference.sparse_messages import SparseMessages
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import effective_samples
from latenttree.tree import Tree

CLOSE = 1e-5  # messages are float32, the arithmetic float64


def inner_edges(model: TreeModel) -> np.ndarray:
    """Both directions of the edges that leave a hidden node for a node with children."""
    tree = model.tree
    inner = np.zeros(tree.n_nodes, dtype=bool)
    inner[model.parents[model.parents >= 0]] = inner[model.root] = True
    both = np.concatenate([tree.edges, tree.edges[:, ::-1]])
    return both[(both[:, 0] >= tree.n_observed) & inner[both].all(axis=1)]


def check_messages(model: TreeModel, codes: np.ndarray) -> None:
    rows, edges = csr_array(codes.astype(np.uint8)), inner_edges(model)
    sparse = SparseMessages.of(model, rows)
    assert sparse is not None
    assert sparse.request(edges, by_sum=False) is not None
    found = messages(model, Evidence(rows), edges)
    expected = messages(model, Evidence(codes), edges)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=CLOSE)


def random_case(seed: int, inside: float) -> tuple[TreeModel, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 40))
    shape = str(rng.choice(["uniform", "caterpillar", "star", "balanced"]))
    tree = random_tree(rng, p, shape=shape, max_degree=7, internal_observed_fraction=inside)
    dims = np.where(np.arange(tree.n_nodes) < p, 2, rng.integers(2, 2 + seed % 3 + 1))
    if seed % 2:
        dims = np.where(np.arange(tree.n_nodes) < p, 2, rng.integers(2, 5, size=tree.n_nodes))
    codes = (rng.random((37, p)) < 0.2).astype(np.int64)
    codes[0], codes[1] = 0, 1
    return model_on(rng, tree, dims), codes


@pytest.mark.parametrize("inside", [0.0, 0.4])
def test_messages_of_any_tree(inside: float) -> None:
    for seed in range(40):
        check_messages(*random_case(seed, inside))


@pytest.mark.parametrize("p", [40, 3000])
def test_extreme_probabilities(p: int) -> None:
    """Hubs whose products are far beyond floats, in favour of a state and against it."""
    rng = np.random.default_rng(p)
    edges = [(i, p + i % 3) for i in range(p)] + [(p, p + 1), (p + 1, p + 2)]
    tree = Tree.build([f"x{i}" for i in range(p)], edges, np.ones(len(edges)))
    tables = [np.array([[0.5, 1 - q], [0.5, q]]) for q in 10.0 ** -rng.uniform(1, 20, size=p)]
    tables = [t[:, ::-1] if rng.random() < 0.5 else t for t in tables]
    turn = np.array([[1 - 1e-12, 1e-20], [1e-12, 1 - 1e-20]])
    root, prior = p, np.array([[1 - 1e-9], [1e-9]])
    parents = tree.rooted(root).parents
    hidden = [prior if parents[v] < 0 else turn for v in range(p, p + 3)]
    model = TreeModel(tree, root, (*tables, *hidden))
    codes = (rng.random((5, p)) < np.array([0.0, 0.01, 0.1, 0.5, 1.0])[:, None]).astype(np.int64)
    check_messages(model, codes)


def test_zeros_that_ratios_cannot_express_are_left_to_others() -> None:
    tree = Tree.build(
        list("abcdef"), [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)], np.ones(7)
    )
    sure, turn = np.eye(2), np.array([[0.9, 0.2], [0.1, 0.8]])
    model = TreeModel(tree, 6, (*[sure] * 6, np.array([[0.5], [0.5]]), turn))
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1]])
    assert SparseMessages.of(model, csr_array(codes)) is None
    assert SparseMessages.of(model, csr_array(codes), 1e-9) is not None
    found = messages(model, Evidence(csr_array(codes)), [(6, 7)])
    np.testing.assert_array_equal(found, messages(model, Evidence(codes), [(6, 7)]))


def squares(model: TreeModel, codes: np.ndarray, weights: Floats) -> Floats:
    q = posteriors(model, Evidence(codes)).hidden
    return np.asarray((weights[:, None] * q**2).sum(axis=0))


def test_squares_of_posteriors() -> None:
    for seed in range(20):
        model, codes = random_case(seed, 0.3)
        weights = np.random.default_rng(seed).random(len(codes))
        sparse = SparseMessages.of(model, csr_array(codes.astype(np.uint8)))
        assert sparse is not None
        p = model.tree.n_observed
        found = sparse.squares(csr_array(codes.astype(np.uint8)), weights, 1)[sparse.place[p:]]
        flat = found[np.arange(found.shape[1]) < model.dims[p:, None]]
        np.testing.assert_allclose(flat, squares(model, codes, weights), rtol=1e-9)


def test_effective_samples_are_the_same_by_both_ways() -> None:
    model, _ = random_case(2, 0.0)
    rng = np.random.default_rng(0)
    codes = (rng.random((500, model.tree.n_observed)) < 0.3).astype(np.int64)
    one = effective_samples(model, Samples(as_table(csr_array(codes))), 1)
    two = effective_samples(model, Samples(as_table(codes)), 1)
    np.testing.assert_allclose(one, two, rtol=1e-9)


def test_threads_do_not_matter() -> None:
    model, _ = random_case(4, 0.2)
    rng = np.random.default_rng(0)
    rows = csr_array((rng.random((3000, model.tree.n_observed)) < 0.2).astype(np.uint8))
    sparse = SparseMessages.of(model, rows)
    assert sparse is not None
    edges = inner_edges(model)
    one, two = (messages(model, Evidence(rows), edges, n_jobs=jobs) for jobs in (1, 3))
    np.testing.assert_array_equal(one, two)
    weights = rng.random(3000)
    np.testing.assert_array_equal(
        sparse.squares(rows, weights, 1), sparse.squares(rows, weights, 3)
    )
