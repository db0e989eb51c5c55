"""Rows of ones, by both backends, against enumeration, log space, and the same samples as codes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.reference.enumeration import Floats, log_posteriors, model_on
from tests.reference.random_trees import random_tree
from tests.reference.refine import slow_counts

from latenttree.data import as_table
from latenttree.model.inference import Evidence
from latenttree.model.inference.evidence import Ones
from latenttree.model.inference.interface import Inference
from latenttree.model.inference.sparse import SparseBackend
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import effective_samples
from latenttree.tree import Tree

EXACT = 1e-10  # float64 over a few dozen operations
CLOSE = 1e-5  # messages are float32, the arithmetic float64


def ones_of(codes: np.ndarray) -> Evidence:
    return Evidence(csr_array(codes.astype(np.uint8)))


def by_backend(model: TreeModel, sparse: bool) -> Inference:
    """The inference of a model with the choice of the backend made."""
    model.layouts["is_sparse"] = sparse
    inference = Inference(model)
    assert (inference.sparse is not None) == sparse
    assert inference.dense.reads_ones()
    return inference


def inner_edges(model: TreeModel) -> np.ndarray:
    """Both directions of the edges that leave a hidden node for a node with children."""
    tree = model.tree
    inner = np.zeros(tree.n_nodes, dtype=bool)
    inner[model.parents[model.parents >= 0]] = inner[model.root] = True
    both = np.concatenate([tree.edges, tree.edges[:, ::-1]])
    return both[(both[:, 0] >= tree.n_observed) & inner[both].all(axis=1)]


def random_case(seed: int, inside: float, p: int | None = None) -> tuple[TreeModel, np.ndarray]:
    """Hidden and observed nodes inside, equal or different numbers of states, none or all ones."""
    rng = np.random.default_rng(seed)
    p = int(rng.integers(4, 40)) if p is None else p
    shape = str(rng.choice(["uniform", "caterpillar", "star", "balanced"]))
    tree = random_tree(rng, p, shape=shape, max_degree=7, internal_observed_fraction=inside)
    hidden = np.arange(tree.n_nodes) >= p
    dims = np.where(hidden, rng.integers(2, 2 + seed % 3 + 1), 2)
    if seed % 2:
        dims = np.where(hidden, rng.integers(2, 5, size=tree.n_nodes), 2)
    if seed % 5 == 4:
        dims = np.where(hidden, rng.integers(15, 18, size=tree.n_nodes), 2)
    codes = (rng.random((37, p)) < 0.2).astype(np.int64)
    codes[0], codes[1] = 0, 1
    return model_on(rng, tree, dims), codes


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("inside", [0.0, 0.4])
def test_counts_and_likelihoods_of_any_tree(inside: float, sparse: bool) -> None:
    for seed in range(20):
        model, codes = random_case(seed, inside, p=5)
        codes = codes[:6]
        inference, weights = by_backend(model, sparse), np.arange(1.0, 7.0)
        found, total = inference.expected_counts(ones_of(codes), weights=weights)
        logs = inference.log_likelihood(ones_of(codes))
        expected = np.zeros(len(model.flat))
        for s in range(len(codes)):
            counts, value = slow_counts(model, Evidence(codes[s : s + 1]))
            np.testing.assert_allclose(logs[s], value, atol=EXACT)
            expected += weights[s] * np.concatenate([c.ravel() for c in counts])
        np.testing.assert_allclose(found, expected, atol=EXACT * weights.sum())
        assert total == pytest.approx(weights @ logs, rel=1e-12)


def check_against_log_space(model: TreeModel, codes: np.ndarray, sparse: bool) -> None:
    """Posteriors and likelihood of every sample."""
    found = by_backend(model, sparse).posteriors(ones_of(codes))
    for s in range(len(codes)):
        expected, value = log_posteriors(model, Evidence(codes), s)
        np.testing.assert_allclose(found.log_likelihood[s], value, rtol=1e-10, atol=1e-10)
        for v, q in zip(found.nodes.tolist(), found.values, strict=True):
            np.testing.assert_allclose(q[s], expected[v], atol=1e-8)


def extreme_case(p: int, most: float, least: float) -> tuple[TreeModel, np.ndarray]:
    """Nodes whose products are far beyond floats, in favour of a state and against it."""
    rng = np.random.default_rng(p)
    edges = [(i, p + i % 3) for i in range(p)] + [(p, p + 1), (p + 1, p + 2)]
    tree = Tree.build([f"x{i}" for i in range(p)], edges, np.ones(len(edges)))
    tables = [np.array([[0.5, 1 - q], [0.5, q]]) for q in 10.0 ** -rng.uniform(1, most, size=p)]
    tables = [t[:, ::-1] if rng.random() < 0.5 else t for t in tables]
    turn = np.array([[1 - 1e-12, least], [1e-12, 1 - least]])
    root, prior = p, np.array([[1 - 1e-9], [1e-9]])
    parents = tree.rooted(root).parents
    hidden = [prior if parents[v] < 0 else turn for v in range(p, p + 3)]
    shares = np.array([0.0, 0.01, 0.1, 0.5, 1.0])[:, None]
    return TreeModel(tree, root, (*tables, *hidden)), (rng.random((5, p)) < shares).astype(int)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("p", [40, 3000])
def test_extreme_probabilities(p: int, sparse: bool) -> None:
    check_against_log_space(*extreme_case(p, 40, 1e-30), sparse)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("inside", [0.0, 0.3])
def test_posteriors_on_larger_trees(inside: float, sparse: bool) -> None:
    for seed in (1, 4):
        model, codes = random_case(seed, inside, p=60)
        check_against_log_space(model, codes[:6], sparse)


def check_messages(model: TreeModel, codes: np.ndarray, sparse: bool) -> None:
    edges, evidence, inference = inner_edges(model), ones_of(codes), by_backend(model, sparse)
    found = inference.messages(evidence, edges)
    expected = inference.messages(Evidence(codes), edges)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, atol=CLOSE)
    out = np.zeros((len(edges) + 1, found.shape[2] - 1, len(codes)), dtype=np.float32)
    place = np.arange(len(edges)) + 1
    inference.write_posteriors(evidence, edges, out, place, model.marginals)
    for i, (u, _) in enumerate(edges.tolist()):
        weighted = expected[:, i, : model.dims[u]].astype(float) * model.marginals[u]
        truth = weighted / weighted.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(out[i + 1, : model.dims[u] - 1].T, truth[:, 1:], atol=CLOSE)
    assert not out[0].any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("inside", [0.0, 0.4])
def test_messages_of_any_tree(inside: float, sparse: bool) -> None:
    for seed in range(40):
        check_messages(*random_case(seed, inside), sparse)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("p", [40, 3000])
def test_messages_of_extreme_probabilities(p: int, sparse: bool) -> None:
    check_messages(*extreme_case(p, 20, 1e-20), sparse)


@pytest.mark.parametrize("sparse", [False, True])
def test_messages_of_impossible_samples(sparse: bool) -> None:
    """A variable that is never one, is one: the other side of an edge is still possible."""
    model, codes = random_case(2, 0.0, p=30)
    never = np.array([[1.0], [0.0]]) * np.ones((1, model.cpts[0].shape[1]))
    model = TreeModel(model.tree, model.root, (never, *model.cpts[1:]))
    assert 0 < codes[:, 0].sum() < len(codes)
    assert (by_backend(model, sparse).log_likelihood(ones_of(codes)) == -np.inf).any()
    edges, inference = inner_edges(model), by_backend(model, sparse)
    found = inference.messages(ones_of(codes), edges)
    np.testing.assert_allclose(found, inference.messages(Evidence(codes), edges), atol=CLOSE)
    assert (found[codes[:, 0] == 1] > 0).any()


def test_zeros_that_ratios_cannot_express_are_read_as_codes() -> None:
    tree = Tree.build(
        list("abcdef"), [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)], np.ones(7)
    )
    sure, turn = np.eye(2), np.array([[0.9, 0.2], [0.1, 0.8]])
    model = TreeModel(tree, 6, (*[sure] * 6, np.array([[0.5], [0.5]]), turn))
    codes = np.array([[0, 0, 0, 1, 1, 1], [0, 1, 0, 1, 1, 1]])
    assert SparseBackend.of(model) is None
    assert not model.inference.dense.reads_ones()
    assert model.with_flat(np.maximum(model.flat, 1e-9)).inference.dense.reads_ones()
    evidence = ones_of(codes)
    found = model.messages(evidence, [(6, 7)])
    np.testing.assert_array_equal(found, model.messages(Evidence(codes), [(6, 7)]))
    np.testing.assert_array_equal(
        model.log_likelihood(evidence), model.log_likelihood(Evidence(codes))
    )


def test_posteriors_of_leaves_are_read_as_codes() -> None:
    model, codes = random_case(1, 0.0)
    found = model.posteriors(ones_of(codes), [0, 1])
    np.testing.assert_array_equal(found.values[1][:, 1], codes[:, 1])


def squares(model: TreeModel, codes: np.ndarray, weights: Floats) -> Floats:
    q = model.posteriors(Evidence(codes)).hidden
    return np.asarray((weights[:, None] * q**2).sum(axis=0))


def test_squares_of_posteriors() -> None:
    for seed in range(20):
        model, codes = random_case(seed, 0.3)
        weights = np.random.default_rng(seed).random(len(codes))
        for evidence, sparse in (
            (ones_of(codes), True),
            (ones_of(codes), False),
            (Evidence(codes), 0),
        ):
            found = by_backend(model, bool(sparse)).squares(evidence, weights)
            np.testing.assert_allclose(found, squares(model, codes, weights), rtol=1e-9)


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
    rows = Evidence(csr_array((rng.random((3000, model.tree.n_observed)) < 0.2).astype(np.uint8)))
    edges, weights = inner_edges(model), rng.random(3000)
    for sparse in (False, True):
        inference = by_backend(model, sparse)
        for query in (
            lambda jobs, of=inference: of.log_likelihood(rows, jobs),
            lambda jobs, of=inference: of.posteriors(rows, None, jobs).array,
            lambda jobs, of=inference: of.expected_counts(rows, jobs, weights)[0],
            lambda jobs, of=inference: of.messages(rows, edges, jobs),
            lambda jobs, of=inference: of.squares(rows, weights, jobs),
        ):
            np.testing.assert_array_equal(query(1), query(3))


def test_the_cheaper_backend_is_chosen() -> None:
    """Few ones in many variables: sparse; ones in every second variable: dense."""
    for rate, sparse in ((0.001, True), (0.5, False)):
        rng = np.random.default_rng(0)
        tree = random_tree(rng, 300, max_degree=6)
        dims = np.where(np.arange(tree.n_nodes) < 300, 2, 16)
        model = model_on(rng, tree, dims)
        leaf = np.array([[1 - rate], [rate]])
        tables = [leaf * np.ones((1, len(t.T))) if v < 300 else t for v, t in enumerate(model.cpts)]
        model = TreeModel(tree, model.root, tuple(tables))
        assert (model.inference.sparse is not None) == sparse


def test_rows_of_another_width_are_refused() -> None:
    model, codes = random_case(3, 0.0)
    with pytest.raises(ValueError, match=f"rows have {codes.shape[1] + 1} variables"):
        model.log_likelihood(ones_of(np.hstack([codes, codes[:, :1]])))
    assert len(Ones.of(csr_array(codes))) == len(codes)
