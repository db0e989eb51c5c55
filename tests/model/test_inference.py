"""Exact inference against enumeration of the joint, against log space, and against pgmpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import chi2
from tests.reference.enumeration import (
    Floats,
    joint,
    log_posteriors,
    message,
    model_on,
    onto,
    random_evidence,
    random_model,
)
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError, Place
from latenttree.model.inference import Evidence, dense_learning, dense_posteriors, dense_states
from latenttree.model.inference.dense_plan import DenseLayout
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

EXACT = 1e-10  # float64 over a few dozen operations
# The same operations in kernels that the compiler may make to round differently.
ROUNDING = {"rtol": 1e-12, "atol": 1e-12}


def star(p: int, tables: list[Floats], prior: Floats) -> TreeModel:
    tree = Tree.build([f"x{i}" for i in range(p)], [(i, p) for i in range(p)], np.ones(p))
    return TreeModel(tree, p, (*tables, prior[:, None]))


def directed_edges(model: TreeModel) -> NDArray[np.int64]:
    """All edges that leave a hidden node."""
    p = model.tree.n_observed
    both = np.concatenate([model.tree.edges, model.tree.edges[:, ::-1]])
    return both[both[:, 0] >= p]


# ---- against the whole joint ----------------------------------------------------------


def check_all_queries(model: TreeModel, evidence: Evidence) -> None:
    n_nodes, edges = model.tree.n_nodes, directed_edges(model)
    found = model.posteriors(evidence, range(n_nodes))
    pairs = model.inference.pairwise(evidence, range(model.tree.n_edges))
    states, best = model.most_probable(evidence)
    sent = model.messages(evidence, edges)
    counts, total = model.expected_counts(evidence)
    expected = [np.zeros_like(table) for table in model.cpts]
    logs = []
    np.testing.assert_allclose(found.log_likelihood, model.log_likelihood(evidence), **ROUNDING)
    for s in range(len(evidence)):
        whole = joint(model, evidence, s)
        z = whole.sum()
        logs.append(np.log(z) if z > 0 else -np.inf)
        for q, (u, w) in enumerate(edges.tolist()):
            truth = message(model, evidence, s, u, w)
            np.testing.assert_allclose(sent[s, q, : len(truth)], truth, atol=1e-6, rtol=0)
        if z == 0:
            assert all(np.isnan(x[s]).all() for x in (*found.values, *pairs))
            assert (states[s] == -1).all()
            continue
        for v, u in enumerate(model.parents.tolist()):
            truth = onto(whole, v) / z
            np.testing.assert_allclose(found.values[v][s], truth, atol=EXACT, rtol=0)
            expected[v] += (onto(whole, v)[:, None] if u < 0 else onto(whole, v, u)) / z
        for pair, (a, b) in zip(pairs, model.tree.edges.tolist(), strict=True):
            np.testing.assert_allclose(pair[s], onto(whole, a, b) / z, atol=EXACT, rtol=0)
        assert whole[tuple(states[s])] >= whole.max() * (1 - EXACT)
        assert best[s] == pytest.approx(np.log(whole.max()), abs=EXACT)
    np.testing.assert_allclose(found.log_likelihood, logs, atol=EXACT)
    assert total == pytest.approx(sum(logs), abs=EXACT)
    for count, truth in zip(counts, expected, strict=True):
        np.testing.assert_allclose(count, truth, atol=EXACT, rtol=0)


@pytest.mark.parametrize("block", range(10))
def test_all_queries_against_enumeration(block: int) -> None:
    """1,000 random small trees: one node, two, no hidden ones, observed inside, zeros in tables."""
    for seed in range(100 * block, 100 * (block + 1)):
        rng = np.random.default_rng(seed)
        model = random_model(rng)
        missing, soft = float(rng.choice([0.0, 0.3, 1.0])), float(rng.choice([0.0, 0.4]))
        check_all_queries(model, random_evidence(rng, model, 2, missing, soft))


@pytest.mark.parametrize("seed", range(12))
def test_many_states(seed: int) -> None:
    """Matrix products in the place of loops, among nodes of few states."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 5, internal_observed_fraction=0.2 * (seed % 2))
    dims = rng.choice([2, 16, 17], size=tree.n_nodes, p=[0.3, 0.4, 0.3])
    if np.prod(dims.astype(float)) > 5e6:
        dims[:4] = 2
    model = model_on(rng, tree, dims)
    check_all_queries(model, random_evidence(rng, model, 2, 0.2, 0.3 * (seed % 3)))


def test_weights_multiply_samples() -> None:
    rng = np.random.default_rng(0)
    model = random_model(rng, n_observed=5)
    evidence = random_evidence(rng, model, 40, 0.2, 0.0)
    times = rng.integers(0, 4, size=40)
    again = Evidence(np.repeat(evidence.codes, times, axis=0))
    weighted, one = model.expected_counts(evidence, weights=times)
    repeated, other = model.expected_counts(again)
    assert one == pytest.approx(other, rel=1e-12)
    for a, b in zip(weighted, repeated, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10)


def test_hidden_posteriors_are_one_array() -> None:
    rng = np.random.default_rng(3)
    model = random_model(rng, n_observed=6)
    found = model.posteriors(random_evidence(rng, model, 7, 0.2, 0.0))
    p = model.tree.n_observed
    assert found.hidden.shape == (7, model.dims[p:].sum())
    assert all(np.shares_memory(x, found.hidden) for x in found.values)
    np.testing.assert_array_equal(found.nodes, np.arange(p, model.tree.n_nodes))
    mixed = model.posteriors(Evidence.nothing(model, 2), [0, p])
    np.testing.assert_allclose(mixed.hidden[0], model.marginals[p], atol=EXACT)
    np.testing.assert_allclose(mixed.values[0][1], model.marginals[0], atol=EXACT)


def test_ties_go_to_the_lowest_state() -> None:
    model = star(3, [np.full((3, 2), 1 / 3)] * 3, np.array([0.5, 0.5]))
    states, _ = model.most_probable(Evidence.nothing(model))
    np.testing.assert_array_equal(states, np.zeros((1, 4)))


# ---- range -----------------------------------------------------------------------------


def check_against_logs(model: TreeModel, evidence: Evidence, atol: float = 1e-9) -> None:
    nodes = [*range(model.tree.n_observed, model.tree.n_nodes), 0]
    found = model.posteriors(evidence, nodes)
    for s in range(len(evidence)):
        truth, total = log_posteriors(model, evidence, s)
        # sums of 10,000 logarithms differ by their rounding
        assert found.log_likelihood[s] == pytest.approx(total, rel=1e-10)
        side_by_side = np.concatenate([truth[v] for v in nodes])
        np.testing.assert_allclose(found.array[s], side_by_side, atol=atol, rtol=0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["caterpillar", "star"])
def test_ten_thousand_variables(shape: str) -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 10_000, shape=shape)
    dims = np.where(np.arange(tree.n_nodes) < 10_000, 5, 3)
    model = model_on(rng, tree, dims)
    evidence = random_evidence(rng, model, 1, 0.1, 0.001, zeros=0.0)
    check_against_logs(model, evidence)
    counts, total = model.expected_counts(evidence)
    assert np.isfinite(total)
    assert all(np.isfinite(count).all() for count in counts)
    assert np.isfinite(model.most_probable(evidence)[1]).all()
    sent = model.messages(evidence, directed_edges(model)[:: 1 if shape == "star" else 97])
    np.testing.assert_allclose(sent.max(axis=2), 1.0, atol=1e-6)


@pytest.mark.parametrize("tiny", [0.1, 1e-20, 1e-300])
def test_opposite_halves_of_a_hub_cancel(tiny: float) -> None:
    """The product of the first half is beyond the range of floats; the second half undoes it."""
    one = np.array([[1 - tiny, tiny], [tiny, 1 - tiny]])
    model = star(2_000, [one] * 2_000, np.array([0.3, 0.7]))
    codes = np.repeat([0, 1], 1_000)[None]
    found = model.posteriors(Evidence(codes))
    np.testing.assert_allclose(found.values[0], [[0.3, 0.7]], atol=1e-10)
    truth = 1_000 * (np.log(tiny) + np.log1p(-tiny))
    assert found.log_likelihood[0] == pytest.approx(truth, rel=1e-12)
    sent = model.messages(Evidence(codes), [(2_000, 0), (2_000, 1_999)])
    odds = tiny / (1 - tiny)  # without one of the zeros, without one of the ones
    np.testing.assert_allclose(sent[0], [[odds, 1], [1, odds]], atol=1e-6)


def test_states_of_probability_1e_300() -> None:
    """All evidence says the state that is almost impossible; exact all the same."""
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 200, shape="caterpillar")
    model = model_on(rng, tree, np.full(tree.n_nodes, 2))
    rare = np.array([[1.0, 1.0], [1e-300, 2e-300]])
    tables = [t if t.shape[1] == 1 else rare for t in model.cpts]
    model = TreeModel(tree, model.root, tuple(tables))
    codes = np.ones((1, 200), dtype=np.int8)
    weights = {v: np.array([0.0, 1e-300]) for v in range(200, tree.n_nodes)}
    check_against_logs(model, Evidence(codes, weights))
    check_against_logs(model, Evidence(codes))


def test_impossible_evidence_is_said_and_harms_no_other_sample() -> None:
    never = np.array([[1.0, 1.0], [0.0, 0.0]])
    model = star(3, [never, np.eye(2), np.eye(2)], np.array([0.5, 0.5]))
    codes = np.array([[0, 1, 1], [1, 1, 1], [0, 0, 1], [0, 0, 0]])
    found = model.posteriors(Evidence(codes), [0, 3])
    expected = [np.log(0.5), -np.inf, -np.inf, np.log(0.5)]
    np.testing.assert_allclose(found.log_likelihood, expected, **ROUNDING)
    assert not np.isnan(found.array[[0, 3]]).any()
    assert np.isnan(found.array[[1, 2]]).all()
    states, best = model.most_probable(Evidence(codes))
    np.testing.assert_allclose(best, expected, **ROUNDING)
    np.testing.assert_array_equal(states[:, 3], [1, -1, -1, 0])
    counts, total = model.expected_counts(Evidence(codes))
    assert total == -np.inf
    assert [count.sum() for count in counts] == [2.0] * 4
    assert not np.isnan(model.messages(Evidence(codes), [(3, 0), (3, 1)])).any()
    drawn = model.sample(4, np.random.default_rng(0), Evidence(codes))
    np.testing.assert_array_equal(drawn[:, 3], [1, -1, -1, 0])


# ---- threads and pieces ----------------------------------------------------------------


def test_same_bits_on_any_number_of_threads() -> None:
    rng = np.random.default_rng(1)
    tree = random_tree(rng, 60, internal_observed_fraction=0.1)
    model = model_on(rng, tree, np.where(np.arange(tree.n_nodes) < 60, 7, 3))
    evidence = random_evidence(rng, model, 20_011, 0.1, 0.05)
    edges = directed_edges(model)[::9]
    for query in (
        lambda jobs: [model.log_likelihood(evidence, jobs)],
        lambda jobs: [model.posteriors(evidence, None, jobs).array],
        lambda jobs: model.inference.pairwise(evidence, [0, 5], jobs),
        lambda jobs: model.most_probable(evidence, jobs),
        lambda jobs: model.expected_counts(evidence, jobs)[0],
        lambda jobs: [model.expected_counts(evidence, jobs)[1]],
        lambda jobs: [model.messages(evidence, edges, jobs)],
    ):
        for one, three in zip(query(1), query(3), strict=True):
            np.testing.assert_array_equal(one, three)


def test_each_sample_is_answered_as_if_alone() -> None:
    rng = np.random.default_rng(2)
    model = random_model(rng, n_observed=6)
    evidence = random_evidence(rng, model, 130, 0.3, 0.0)
    found = model.posteriors(evidence)
    for s in (0, 63, 64, 129):
        alone = model.posteriors(Evidence(evidence.codes[s : s + 1]))
        np.testing.assert_allclose(found.array[s], alone.array[0], atol=1e-14)


def test_no_samples() -> None:
    model = random_model(np.random.default_rng(2), n_observed=6)
    none = Evidence(np.empty((0, 6), dtype=np.uint8))
    assert model.posteriors(none, n_jobs=2).array.shape[0] == 0
    assert model.most_probable(none)[0].shape == (0, model.tree.n_nodes)
    assert model.sample(0, np.random.default_rng(0)).shape == (0, model.tree.n_nodes)
    assert all((count == 0).all() for count in model.expected_counts(none)[0])


def test_all_queries_share_three_compiled_kernels() -> None:
    rng = np.random.default_rng(2)
    model = random_model(rng, n_observed=6)
    frozen = np.zeros((3, 6), dtype=np.int64)
    frozen.flags.writeable = False
    soft = np.ones((3, model.dims[0]))
    soft.flags.writeable = False
    evidence = Evidence(frozen, {0: soft})
    check_all_queries(model, evidence)
    model.expected_counts(evidence, weights=soft[:, 0])
    model.sample(3, rng, evidence)
    model.sample(3, rng)
    for module in (dense_learning, dense_posteriors, dense_states):
        assert len(module.answer.signatures) == 1


def test_a_model_in_mapped_memory_shares_it_too(tmp_path: Path) -> None:
    """As `joblib.load` with `mmap_mode` has it."""
    model = random_model(np.random.default_rng(2), n_observed=6)
    np.save(tmp_path / "order.npy", model.order)
    mapped = np.load(tmp_path / "order.npy", mmap_mode="r")
    model.__dict__["order"] = mapped  # a cached property
    assert DenseLayout(model, {}).order.flags.writeable


# ---- draws -----------------------------------------------------------------------------


def chi_square(model: TreeModel, evidence: Evidence | None, rng: np.random.Generator) -> float:
    """Probability of a chi-square as large as that of 5,000 draws over the whole joint."""
    n = 5_000
    drawn = model.sample(n, rng, evidence)
    whole = joint(model, evidence or Evidence.nothing(model), 0)
    expected = (whole / whole.sum()).ravel() * n
    seen = np.bincount(
        np.ravel_multi_index(tuple(drawn.T), whole.shape), minlength=whole.size
    ).astype(float)
    assert (seen[expected == 0] == 0).all()
    common = expected > 5  # the rest in one cell
    cells = [np.append(x[common], x[~common].sum()) for x in (seen, expected)]
    keep = cells[1] > 0
    statistic = ((cells[0] - cells[1])[keep] ** 2 / cells[1][keep]).sum()
    return float(chi2.sf(statistic, max(int(keep.sum()) - 1, 1)))


def test_draws_follow_the_joint() -> None:
    """Of 200 p-values none below 1e-7, and no more than 24 below 0.05.

    Were all uniform: chance of a false alarm 2e-5 + P(Binomial(200, 0.05) > 24) = 5e-5."""
    values = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        model = random_model(rng, n_observed=int(rng.integers(1, 5)))
        evidence = random_evidence(rng, model, 1, 0.5, 0.3)
        values.append(chi_square(model, None, rng))
        if np.isfinite(model.log_likelihood(evidence)[0]):
            values.append(chi_square(model, evidence, rng))
    assert min(values) > 1e-7
    assert sum(value < 0.05 for value in values) <= 24


def test_draws_repeat_with_the_seed() -> None:
    model = random_model(np.random.default_rng(2), n_observed=6)
    a, b = (model.sample(1_000, np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(a, b)


# ---- a second opinion ------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(2))
def test_agrees_with_pgmpy(seed: int) -> None:
    pytest.importorskip("pgmpy")
    from pgmpy.factors.discrete import TabularCPD
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork

    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 18)
    model = model_on(rng, tree, rng.integers(2, 5, size=tree.n_nodes))
    network = DiscreteBayesianNetwork()
    network.add_nodes_from(tree.names)
    for v, u in enumerate(model.parents.tolist()):
        given = {} if u < 0 else {"evidence": [tree.names[u]], "evidence_card": [model.dims[u]]}
        if u >= 0:
            network.add_edge(tree.names[u], tree.names[v])
        network.add_cpds(TabularCPD(tree.names[v], model.dims[v], model.cpts[v], **given))
    evidence = random_evidence(rng, model, 1, 0.4, 0.0)
    known = {tree.names[v]: int(x) for v, x in enumerate(evidence.codes[0]) if x >= 0}
    asked = [v for v in range(tree.n_nodes) if tree.names[v] not in known]
    found, elimination = model.posteriors(evidence, asked), VariableElimination(network)
    for v, ours in zip(asked, found.values, strict=True):
        theirs = elimination.query([tree.names[v]], evidence=known, show_progress=False).values
        np.testing.assert_allclose(ours[0], theirs, atol=1e-8, rtol=0)


# ---- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("codes", "soft", "value", "place"),
    [
        ([[0, 1]], {}, (1, 2), Place()),
        ([[0.0, 1.0, 0.0]], {}, (1, 3), Place()),
        ([[0, 1, 0], [0, 2, 0]], {}, 2, Place(column="x1", row=1)),
        ([[0, 1, -2]], {}, -2, Place(column="x2", row=0)),
        ([[0, 1, 0]], {3: np.ones(3)}, (3,), Place(node="h0")),
        ([[0, 1, 0]], {3: np.array([1.0, -1.0])}, -1.0, Place(node="h0")),
        ([[0, 1, 0]], {3: np.array([1.0, np.nan])}, np.nan, Place(node="h0")),
        ([[0, 1, 0]], {4: np.ones(2)}, 4, Place(node="4")),
    ],
)
def test_bad_evidence(
    codes: list[list[int]], soft: dict[int, Floats], value: Any, place: Place
) -> None:
    model = star(3, [np.full((2, 2), 0.5)] * 3, np.array([0.5, 0.5]))
    with pytest.raises(DataError) as refused:
        model.posteriors(Evidence(np.array(codes), soft))
    np.testing.assert_equal(refused.value.value, value)
    assert refused.value.place == place


def test_bad_requests() -> None:
    model = star(3, [np.full((2, 2), 0.5)] * 3, np.array([0.5, 0.5]))
    evidence = Evidence(np.zeros((2, 3), dtype=int))
    with pytest.raises(DataError, match=r"\(0, 3\) is no edge that leaves a hidden node"):
        model.messages(evidence, [(0, 3)])
    with pytest.raises(DataError, match=r"weights have shape \(3,\) for 2 samples"):
        model.expected_counts(evidence, weights=np.ones(3))
    with pytest.raises(DataError, match="evidence on 2 samples for 5 draws"):
        model.sample(5, np.random.default_rng(0), evidence)
    with pytest.raises(DataError, match=r"node 7; nodes are 0\.\.3"):
        model.posteriors(evidence, [7])
