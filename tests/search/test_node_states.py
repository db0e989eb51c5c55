"""Pruning: merged states against the whole joint, and the true numbers of states from samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.pruning import mixed_model, slow_log_likelihood, slow_merged
from tests.reference.random_trees import random_tree
from tests.reference.stages import fit_tree

import latenttree as lt
from latenttree.data import as_table
from latenttree.evaluation.simulation.shapes import make_tree
from latenttree.model.inference import sample
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Chunk, Samples, marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import refine
from latenttree.search.neighbourhood import (
    Heard,
    Targets,
    beliefs,
    dropping,
    fewer_states,
    hub_of,
    log_likelihood,
    merging,
    mixed,
    refit,
    with_hubs,
)
from latenttree.search.node_states import (
    LEAST_STATES,
    Pruned,
    Pruner,
    _Spoken,
    merged,
    prune,
    states_summary,
)


def small(seed: int, internal: bool = False) -> TreeModel:
    """Five observed nodes, hidden ones of two to four states."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5, internal_observed_fraction=0.4 if internal else 0.0)
    states = rng.integers(2, 5, tree.n_hidden)
    tables = []
    dims = [3] * 5 + states.tolist()
    root = 5 if tree.n_hidden else 0
    for v, u in enumerate(tree.rooted(root).parents.tolist()):
        columns = rng.dirichlet(np.ones(dims[v]), 1 if u < 0 else dims[u])
        tables.append(columns.T)
    return TreeModel(tree, root, tuple(tables))


def draws(model: TreeModel, n: int, seed: int) -> Any:
    p = model.tree.n_observed
    return sample(model, n, np.random.default_rng(seed))[:, :p].astype(np.int64)


def heard(model: TreeModel, v: int, chunk: Chunk) -> Heard:
    return _Spoken(model, chunk, [v], 1).to(v)


def wide_node(model: TreeModel) -> int:
    """A hidden node of most states."""
    p = model.tree.n_observed
    return p + int(model.dims[p:].argmax())


# ---- merging --------------------------------------------------------------------------


@pytest.mark.parametrize("internal", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_merged_is_the_joint_with_two_states_added_up(seed: int, internal: bool) -> None:
    model = small(seed, internal)
    for v in range(5, model.tree.n_nodes):
        if model.dims[v] > 2:
            found, expected = merged(model, v, 2, 0), slow_merged(model, v, 0, 2)
            for a, b in model.tree.edges.tolist():
                np.testing.assert_allclose(found.joint(a, b), expected.joint(a, b), atol=1e-12)


def test_merged_by_name_and_wrong_states() -> None:
    model = small(0)
    v = wide_node(model)
    named = merged(model, model.tree.names[v], 0, 1)
    assert named.dims[v] == model.dims[v] - 1
    for node, i, j in ((v, 0, 0), (v, 0, 9), (v, -1, 0), (0, 0, 1)):
        with pytest.raises(ValueError, match="two different states of a hidden node"):
            merged(model, node, i, j)


@pytest.mark.parametrize("seed", range(6))
def test_changes_of_likelihood_are_those_of_the_merged_models(seed: int) -> None:
    """Codes with gaps, samples with weights, hidden and observed neighbours."""
    model = small(seed)
    rng = np.random.default_rng(seed)
    v = wide_node(model)
    codes = draws(model, 30, seed)
    codes[rng.random(codes.shape) < 0.2] = -1
    weights = rng.integers(0, 4, len(codes)).astype(float)
    hub, parts = hub_of(model, v), [heard(model, v, Chunk(codes, weights=weights))]
    value, ways = fewer_states(hub, parts)
    k = len(hub.weights)
    assert len(ways) == k * (k - 1) // 2 + k
    assert value == pytest.approx(log_likelihood(hub, parts))
    before = slow_log_likelihood(model, codes, weights)
    for way in ways:
        whole = with_hubs(model, [mixed(hub, way.matrix, way.weights)])
        after = slow_log_likelihood(whole, codes, weights)
        # messages are float32: one part in 10^7 for each branch and sample
        assert way.change == pytest.approx(after - before, abs=1e-4)


def test_hubs_are_put_in_one_after_another() -> None:
    """In any order, and as each by itself where the others are far away."""
    model = with_states([3, 3, 3, 3, 3])
    ends = [mixed(hub_of(model, v), *dropping(model.marginals[v], 0)) for v in (7, 9, 11)]
    both = with_hubs(model, ends[::2])
    assert both.dims[7:].tolist() == [2, 3, 3, 3, 2]
    assert both.root == model.root
    step = with_hubs(with_hubs(model, ends[:1]), ends[2:])
    turned = with_hubs(model, ends[::-2])
    for a, b in model.tree.edges.tolist():
        np.testing.assert_allclose(both.joint(a, b), step.joint(a, b), atol=1e-12)
        np.testing.assert_allclose(both.joint(a, b), turned.joint(a, b), atol=1e-12)
    alone = with_hubs(model, ends[1:2])
    np.testing.assert_allclose(alone.marginals[9], ends[1].weights, atol=1e-12)
    for u, table in ends[1].tables.items():
        np.testing.assert_allclose(alone.conditional(u, 9), table, atol=1e-12)


def test_ways_come_best_first_and_duplicates_are_free() -> None:
    """A state cut in two equal halves: merging them changes nothing."""
    model = small(3)
    v = wide_node(model)
    k = int(model.dims[v])
    weights = np.append(model.marginals[v], 0.0)
    weights[0], weights[k] = weights[0] / 2, weights[0] / 2
    twice = mixed(hub_of(model, v), np.eye(k)[:, [*range(k), 0]], weights)
    split = with_hubs(model, [twice])
    parts = [heard(split, v, Chunk(draws(model, 200, 0)))]
    _, ways = fewer_states(hub_of(split, v), parts)
    changes = [way.change for way in ways]
    assert changes == sorted(changes, reverse=True)
    assert np.abs(changes).min() == pytest.approx(0, abs=1e-6)
    again = merged(split, v, 0, k)
    np.testing.assert_allclose(again.marginals[v], model.marginals[v], atol=1e-12)


def test_many_branches_do_not_underflow() -> None:
    data = lt.datasets.make_latent_tree(400, 3, 4, shape="star", n_samples=40, random_state=0)
    model: TreeModel = data.model
    hub, parts = hub_of(model, 400), [heard(model, 400, Chunk(data.X))]
    product, log_scale = beliefs(hub, parts[0])
    assert np.isfinite(log_scale).all()
    assert (product.max(axis=1) == 1).all()
    total = total_log_likelihood(model, lambda: iter([data.X]))
    assert log_likelihood(hub, parts) == pytest.approx(total, rel=1e-9)


def test_impossible_samples_tell_nothing() -> None:
    tree = make_tree(3, "star", 3, 0.5, 0.5, 0.0, np.random.default_rng(0))
    eye = np.eye(3)
    model = TreeModel(tree, 3, (eye, eye, eye, np.full((3, 1), 1 / 3)))
    codes = np.array([[0, 1, 2], [0, 0, 0], [1, 1, 1]])
    parts = [heard(model, 3, Chunk(codes))]
    assert log_likelihood(hub_of(model, 3), parts) == pytest.approx(2 * np.log(1 / 3))
    _, ways = fewer_states(hub_of(model, 3), parts)
    assert all(np.isfinite(way.change) for way in ways)


def test_weights_of_ways() -> None:
    weights = np.array([0.5, 0.3, 0.2])
    matrix, merged_weights = merging(weights, 2, 1)
    np.testing.assert_allclose(merged_weights, [0.5, 0.5])
    np.testing.assert_allclose(matrix, [[1, 0], [0, 0.6], [0, 0.4]])
    matrix, left = dropping(weights, 1)
    np.testing.assert_allclose(left, [5 / 7, 2 / 7])
    np.testing.assert_allclose(matrix, [[1, 0], [0, 0], [0, 1]])
    np.testing.assert_allclose(dropping(np.array([1.0, 0.0, 0.0]), 0)[1], [0.5, 0.5])


# ---- refitting ------------------------------------------------------------------------


def test_refitting_a_hub_never_loses_and_is_what_the_whole_gains() -> None:
    model = small(1)
    v = wide_node(model)
    chunk = Chunk(draws(small(2), 300, 0))
    parts = [heard(model, v, chunk)]
    spread = {u: model.marginals[u] for u in map(int, model.tree.neighbors(v))}
    hub = hub_of(model, v)
    values = [refit(hub, parts, Targets(0.0, spread), np.inf, max_steps=n)[1] for n in (1, 2, 3, 4)]
    assert (np.diff(values) >= -1e-9).all()
    assert values[-1] > values[0]
    new, value = refit(hub, parts, Targets(0.0, spread), -np.inf)
    assert value == pytest.approx(log_likelihood(new, parts), rel=1e-12)
    gained = total_log_likelihood(with_hubs(model, [new]), lambda: iter([chunk]))
    gained -= total_log_likelihood(model, lambda: iter([chunk]))
    assert value - log_likelihood(hub, parts) == pytest.approx(gained, abs=1e-3)


def test_a_hopeless_refit_is_given_up() -> None:
    model = small(1)
    v = wide_node(model)
    parts = [heard(model, v, Chunk(draws(model, 300, 0)))]
    spread = {u: model.marginals[u] for u in map(int, model.tree.neighbors(v))}
    hub = hub_of(model, v)
    value = log_likelihood(hub, parts)
    _, reached = refit(hub, parts, Targets(1.0, spread), value + 1e6, max_steps=10_000)
    assert reached < value + 1e6


# ---- pruning --------------------------------------------------------------------------


def star_of_stars(seed: int) -> tuple[TreeModel, Any]:
    """Nine leaves of six categories below four hidden nodes of two or three states, and 20,000
    samples.

    The node in the middle has a third state only where two of its neighbours do: with less, three
    states of it are not identifiable (Kruskal)."""
    rng = np.random.default_rng(seed)
    tree = make_tree(9, "balanced", 3, 0.5, 0.5, 0.0, rng)
    inner = int(next(v for v in range(9, 13) if min(map(int, tree.neighbors(v))) >= 9))
    states = rng.integers(2, 4, 4)
    if (np.delete(states, inner - 9) == 3).sum() < 2:
        states[inner - 9] = 2
    model = mixed_model(tree, states.tolist(), 6, rng)
    return model, sample(model, 20_000, rng)[:, :9]


def fitted(tree: lt.Tree, table: Any, n_states: int) -> TreeModel:
    return fit_tree(tree, table, n_states, max_iter=60, n_jobs=2).model


def check(found: Pruned, pruner: Pruner, before: TreeModel) -> None:
    p = before.tree.n_observed
    assert (np.diff(found.bic) > 0).all()
    assert found.bic[-1] == pytest.approx(pruner.bic(found.model, pruner.n_samples()))
    np.testing.assert_array_equal(found.states, found.model.dims[p:])
    assert found.n_merged == before.dims[p:].sum() - found.states.sum()
    assert (found.states >= LEAST_STATES).all()


def test_finds_the_true_numbers_of_states() -> None:
    """Of 100 such trees (seeds 1000 to 1099) all were found as they are. At a failure rate of 2 %
    more than one of eight fails with a probability of 0.01."""
    failed = 0
    for seed in range(8):
        truth, X = star_of_stars(seed)
        table = as_table(X)
        start = fitted(truth.tree, table, 3)
        pruner = Pruner(Samples(table), marginals=marginals(table))
        found = prune(start, pruner)
        check(found, pruner, start)
        failed += not np.array_equal(found.states, truth.dims[9:])
    assert failed <= 1


@pytest.mark.parametrize("n_states", [2, 3, 4])
def test_never_merges_what_the_data_need(n_states: int) -> None:
    """Edges of length 0.5: any merge costs hundreds of times the price of its parameters, so no
    seed may fail."""
    for seed in range(5):
        data = lt.datasets.make_latent_tree(
            12, n_states, 6, shape="random", n_samples=20_000, random_state=seed
        )
        samples = Samples(as_table(data.X))
        start = refine(data.model, samples, max_steps=20).model
        found = prune(start, Pruner(samples))
        assert found.n_merged == 0
        assert found.model is start
        assert len(found.bic) == 1


def test_never_below_two_states() -> None:
    """Independent variables: a single state would do, but two are the least."""
    X = np.random.default_rng(0).integers(0, 3, (3_000, 9))
    table = as_table(X)
    start = fitted(make_tree(9, "balanced", 3, 0.5, 0.5, 0.0, np.random.default_rng(0)), table, 4)
    pruner = Pruner(Samples(table))
    found = prune(start, pruner)
    check(found, pruner, start)
    assert (found.states == 2).all()


def test_a_state_without_weight_goes() -> None:
    data = lt.datasets.make_latent_tree(9, 2, 4, n_samples=4_000, random_state=0)
    model: TreeModel = data.model
    hub = hub_of(model, 9)
    empty = mixed(hub, np.eye(2)[:, [0, 1, 0]], np.append(hub.weights, 0.0))
    found = prune(with_hubs(model, [empty]), Pruner(Samples(as_table(data.X))))
    assert (found.states == 2).all()


@pytest.mark.parametrize("family", ["gaussian", "poisson", "multinomial", "mixed"])
def test_families_other_than_categorical(family: str) -> None:
    """Two states, fitted with three. Between the branches of a hidden node there is nothing left
    to explain, and BIC asks for a gain of more than 20: the failure rate is below 1 in 1,000."""
    data = lt.datasets.make_latent_tree(9, 2, 4, family=family, n_samples=3_000, random_state=0)
    table = as_table(data.X, family=data.family)
    start = fitted(data.tree, table, 3)
    pruner = Pruner(Samples(table), marginals=marginals(table))
    found = prune(start, pruner)
    check(found, pruner, start)
    assert (found.states == 2).all()
    assert prune(fitted(data.tree, table, 2), pruner).n_merged == 0


def test_gaps_and_weights_count_as_they_do_in_the_likelihood() -> None:
    """Samples of weight two are samples that stand there twice."""
    truth, X = star_of_stars(0)
    X = X[:4_000].astype(float)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    start = fitted(truth.tree, as_table(X, family="categorical"), 3)
    weights = np.repeat([1.0, 2.0], 2_000)
    once = as_table(X, family="categorical").replace(weights=weights)
    twice = as_table(np.concatenate([X, X[2_000:]]), family="categorical")
    one, two = (prune(start, Pruner(Samples(t), marginals=marginals(once))) for t in (once, twice))
    np.testing.assert_array_equal(one.states, two.states)
    np.testing.assert_allclose(one.bic, two.bic, rtol=1e-9)
    np.testing.assert_array_equal(one.states, truth.dims[9:])


def test_threads_and_chunks_do_not_matter() -> None:
    truth, X = star_of_stars(1)
    X = X[:6_000]
    start = fitted(truth.tree, as_table(X), 3)
    one, two = (prune(start, Pruner(lambda: iter([X]), n_jobs=n)) for n in (1, 2))
    assert one.bic == two.bic
    cut = prune(start, Pruner(lambda: iter([X[:1000], X[1000:]])))
    np.testing.assert_array_equal(one.states, cut.states)
    np.testing.assert_allclose(one.bic, cut.bic, rtol=1e-9)


def test_messages_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    truth, X = star_of_stars(2)
    start = fitted(truth.tree, as_table(X), 3)
    whole = prune(start, Pruner(lambda: iter([X])))
    monkeypatch.setattr("latenttree.search.node_states.MESSAGE_BYTES", 1)
    parts = prune(start, Pruner(lambda: iter([X])))
    assert whole.bic == parts.bic


# ---- report ---------------------------------------------------------------------------


def with_states(states: list[int]) -> TreeModel:
    rng = np.random.default_rng(0)
    tree = make_tree(len(states) + 2, "caterpillar", 3, 0.5, 0.5, 0.0, rng)
    return mixed_model(tree, states, 4, rng)


def test_sentences() -> None:
    assert states_summary(with_states([3, 3, 3])) == []
    assert states_summary(with_states([3, 2, 3])) == [
        "h1 has 2 states of 3: the data do not tell more apart there"
    ]
    assert states_summary(with_states([2, 2, 3, 4, 2, 2, 2])) == [
        "h2 has 3 states of 4: the data do not tell more apart there",
        "h0, h1, h4 and 2 others have 2 states of 4: the data do not tell more apart there",
    ]
