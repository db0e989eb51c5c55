"""EM of small regions: the same optimum as the large one, and never a lower objective."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.refine import even_targets, slow_objective

from latenttree.evaluation.baselines.random_em import random_model
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.samples import InMemory
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.tree_em import run_em
from latenttree.search.region_em import RegionModel
from latenttree.search.region_em import fit_region_model as fit_arrays
from latenttree.search.region_patterns import LANE, Branches


def region(seed: int, n: int = 200, k: int = 2, shape: Any = "caterpillar", p: int = 5) -> Any:
    """A model whose branches are half codes, half messages over k states, and evidence on it."""
    rng = np.random.default_rng(seed)
    data = make_latent_tree(p, k, shape=shape, edge_length=0.4, n_samples=n, random_state=seed)
    codes = data.X.copy()
    soft = {}
    for b in range(0, p, 2):
        weights = np.eye(k)[codes[:, b]] + rng.uniform(0.05, 0.5, size=(n, k))
        soft[b] = (weights / weights.max(axis=1, keepdims=True)).astype(np.float32)
        codes[:, b] = -1
    start = random_model(
        data.tree, {v: data.model.marginals[v] for v in range(p)}, k, rng
    ).rerooted(p)
    return start, Evidence(codes, soft)


def as_branches(evidence: Evidence, k: int) -> Branches:
    """Every sample as a pattern of its own."""
    n, m = evidence.codes.shape
    wide = -(-n // LANE) * LANE
    codes = np.full((m, wide), -1, dtype=np.int32)
    codes[:, :n] = evidence.codes.T
    messages, is_message = np.ones((m, k, wide), dtype=np.float32), np.zeros(m, dtype=np.bool_)
    for b, message in evidence.soft.items():
        messages[b, :, :n], is_message[b] = message.T, True
    return Branches(codes, messages, is_message, (np.arange(wide) < n).astype(float))


def fit_region_model(model: TreeModel, *args: Any) -> tuple[TreeModel, float]:
    """A small fit of a model whose root is hidden."""
    m = model.tree.n_observed
    hidden = [v for v in model.order.tolist() if v >= m]
    place = {v: i for i, v in enumerate(hidden)} | {-1: -1}
    parents = np.array([place.get(u, -1) for u in model.parents.tolist()])
    nodes = [*hidden, *range(m)]
    start = RegionModel(parents[hidden], parents[:m], [model.cpts[v] for v in nodes])
    found, value = fit_arrays(start, *args)
    tables = dict(zip(nodes, found.cpts, strict=True))
    return model.with_flat(np.concatenate([tables[v].ravel() for v in range(len(nodes))])), value


def large_fit(model: TreeModel, evidence: Evidence, **options: Any) -> Any:
    p = model.tree.n_observed
    settings = {"max_steps": 3000, "tolerance": 1e-13} | options
    return run_em(model, InMemory([evidence]), marginals=model.marginals[:p], **settings)


@pytest.mark.parametrize("shape", ["star", "caterpillar", "random"])
@pytest.mark.parametrize("k", [2, 3])
def test_it_ends_where_the_large_one_ends(k: int, shape: str) -> None:
    for seed in range(2):
        model, evidence = region(seed, k=k, shape=shape)
        found, value = fit_region_model(model, as_branches(evidence, k), 1.0, 20_000, 1e-11)
        expected = large_fit(model, evidence)
        np.testing.assert_allclose(value, expected.trace[-1], rtol=0, atol=1e-6)
        target = even_targets(model, model.marginals[: model.tree.n_observed])
        if shape == "star" or k == 2:
            own = slow_objective(found, evidence, 1.0, target)
            np.testing.assert_allclose(value, own, rtol=1e-9)


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_more_steps_never_lower_the_objective(smoothing: float) -> None:
    for seed in range(4):
        model, evidence = region(seed)
        branches = as_branches(evidence, 2)
        values = [
            fit_region_model(model, branches, smoothing, max_steps, 0.0)[1]
            for max_steps in (0, 2, 4, 6, 8, 10, 20, 40, 80)
        ]
        assert (np.diff(values) >= -1e-10 * abs(values[-1])).all()
        assert values[-1] > values[0]


def test_the_first_value_is_the_objective_of_the_opened_start() -> None:
    model, evidence = region(0)
    start, value = fit_region_model(model, as_branches(evidence, 2), 1.0, 0, 0.0)
    assert value == pytest.approx(large_fit(model, evidence, max_steps=1).trace[0], rel=1e-10)
    for table in start.cpts:
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)


def test_the_model_has_the_value_that_is_returned() -> None:
    model, evidence = region(1)
    found, value = fit_region_model(model, as_branches(evidence, 2), 1.0, 30, 0.0)
    target = even_targets(model, model.marginals[:5])
    assert value == pytest.approx(slow_objective(found, evidence, 1.0, target), rel=1e-9)


def test_codes_alone_and_messages_alone() -> None:
    data = make_latent_tree(6, 2, 4, shape="random", n_samples=400, random_state=0)
    model = data.model
    value = fit_region_model(model, as_branches(Evidence(data.X), 2), 1.0, 400, 1e-10)[1]
    assert value == pytest.approx(large_fit(model, Evidence(data.X)).trace[-1], abs=1e-6)
    two = make_latent_tree(6, 2, shape="random", n_samples=400, random_state=0)
    unknown = np.full_like(two.X, -1)
    sure = Evidence(unknown, {b: np.eye(2)[two.X[:, b]] for b in range(6)})
    codes, messages = (
        fit_region_model(two.model, as_branches(e, 2), 1.0, 30, 0.0)[1]
        for e in (Evidence(two.X), sure)
    )
    assert codes == pytest.approx(messages, rel=1e-12)


def test_many_branches_do_not_underflow() -> None:
    """300 branches of 50 categories around one node: a sample has probability about 1e-470."""
    data = make_latent_tree(300, 2, 50, shape="star", edge_length=2.0, n_samples=50, random_state=0)
    model = data.model
    value = fit_region_model(model, as_branches(Evidence(data.X), 2), 1.0, 0, 0.0)[1]
    expected = large_fit(model, Evidence(data.X), max_steps=1).trace[0]
    assert value == pytest.approx(expected, rel=1e-10)


def test_unknown_codes_are_left_out() -> None:
    model, evidence = region(0)
    codes = np.array(evidence.codes)
    codes[np.random.default_rng(0).random(codes.shape) < 0.3] = -1
    gaps = Evidence(codes, evidence.soft)
    value = fit_region_model(model, as_branches(gaps, 2), 1.0, 20_000, 1e-11)[1]
    assert value == pytest.approx(large_fit(model, gaps).trace[-1], abs=1e-6)


def test_a_message_that_says_nothing_possible_leaves_its_sample_out() -> None:
    model, evidence = region(0, n=50)
    soft = {b: w.copy() for b, w in evidence.soft.items()}
    for w in soft.values():
        w[7] = 0.0
    rest = np.arange(50) != 7
    dropped = Evidence(evidence.codes[rest], {b: w[rest] for b, w in evidence.soft.items()})
    one, two = (
        fit_region_model(model, as_branches(e, 2), 1.0, 20, 0.0)[1]
        for e in (Evidence(evidence.codes, soft), dropped)
    )
    assert one == pytest.approx(two, rel=1e-12)


def test_the_same_bits_every_time() -> None:
    model, evidence = region(0)
    branches = as_branches(evidence, 2)
    one, two = (fit_region_model(model, branches, 1.0, 40, 0.0) for _ in range(2))
    assert one[1] == two[1]
    for x, y in zip(one[0].cpts, two[0].cpts, strict=True):
        np.testing.assert_array_equal(x, y)
