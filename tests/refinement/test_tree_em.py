"""EM: the slow one's optimum, an objective that never falls, and stopping by held-out samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.refine import even_targets, slow_counts, slow_em, slow_objective

from latenttree.data import as_table
from latenttree.evaluation.baselines.random_em import random_model
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.likelihood import smoothed, total_log_likelihood
from latenttree.model.samples import Chunk, InMemory, Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import GAIN_PER_TOL, PATIENCE, expected_gain
from latenttree.refinement.tree_em import Refinement, run_em
from latenttree.refinement.tree_problem import OPENING
from latenttree.tree import Tree


def chunks_of(*parts: Any) -> InMemory:
    return InMemory(parts)


def small(seed: int, n: int = 60, **options: Any) -> tuple[TreeModel, Any]:
    """A model of seven nodes with three states of the leaves, and samples from it."""
    settings = {"shape": "caterpillar", "edge_length": 0.5, "n_samples": n} | options
    data = make_latent_tree(5, 2, 3, random_state=seed, **settings)
    return data.model, data.X


def frequencies(codes: Any, dims: Any) -> list[Any]:
    return [
        np.bincount(codes[codes[:, i] >= 0, i], minlength=d) / (codes[:, i] >= 0).sum()
        for i, d in enumerate(dims)
    ]


def other_start(model: TreeModel, codes: Any, seed: int) -> TreeModel:
    p = model.tree.n_observed
    marginals = dict(enumerate(frequencies(codes, model.dims[:p])))
    return random_model(model.tree, marginals, int(model.dims[-1]), np.random.default_rng(seed))


def opened(model: TreeModel, target: list[Any]) -> TreeModel:
    """What refinement starts from: a little independence mixed in."""
    share = OPENING
    mixed = [(1 - share) * t + share * w[:, None] for t, w in zip(model.cpts, target, strict=True)]
    return TreeModel(model.tree, model.root, tuple(mixed), model.emissions)


def check_valid(model: TreeModel) -> None:
    for table in model.cpts:
        assert np.isfinite(table).all()
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)


def check_never_falls(found: Refinement) -> None:
    gains = np.diff(found.trace)
    # sums over samples round differently for every model: one part in 1e12
    assert (gains >= -1e-12 * abs(found.trace[-1])).all()


# ---- against the slow twin -------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_a_plain_step_is_the_slow_one(seed: int, smoothing: float) -> None:
    model, codes = small(seed, n=25)
    marginals = frequencies(codes, model.dims[:5])
    target = even_targets(model, marginals)
    found = run_em(
        model,
        chunks_of(codes[:10], codes[10:]),
        max_steps=3,
        tolerance=0,
        smoothing=smoothing,
        accelerate=False,
        marginals=marginals,
    )
    start = opened(model, target)
    expected = slow_em(start, Evidence(codes), smoothing, target, 4)  # the last one is not judged
    for x, y in zip(found.model.cpts, expected.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-10)
    objective = slow_objective(start, Evidence(codes), smoothing, target)
    np.testing.assert_allclose(found.trace[0], objective, rtol=1e-10)
    assert len(found.trace) == 4


@pytest.mark.parametrize("accelerate", [False, True])
def test_it_ends_at_the_optimum_of_the_slow_one(accelerate: bool) -> None:
    """Where the slow EM stands still: its next step changes nothing, and it is as high."""
    model, codes = small(1, n=40)
    marginals = frequencies(codes, model.dims[:5])
    target = even_targets(model, marginals)
    found = run_em(
        model,
        chunks_of(codes),
        max_steps=3000,
        tolerance=0,
        accelerate=accelerate,
        marginals=marginals,
    )
    again = slow_em(found.model, Evidence(codes), 1.0, target, 1)
    for x, y in zip(found.model.cpts, again.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-5)
    expected = slow_em(model, Evidence(codes), 1.0, target, 60)
    reached = slow_objective(found.model, Evidence(codes), 1.0, target)
    assert reached >= slow_objective(expected, Evidence(codes), 1.0, target) - 1e-9


def test_soft_evidence_and_gaps_are_counted_as_the_slow_one_does() -> None:
    model, codes = small(0, n=15)
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(codes.shape) < 0.3, -1, codes)
    evidence = Evidence(codes, {6: rng.random((15, 2)), 1: rng.random(3)})
    target = even_targets(model, model.marginals[:5])
    found = run_em(
        model, chunks_of(evidence), max_steps=1, tolerance=0, accelerate=False, smoothing=0.5
    )
    expected = slow_em(opened(model, target), evidence, 0.5, target, 2)
    for x, y in zip(found.model.cpts, expected.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-10)


def test_online_em_comes_first_with_many_samples() -> None:
    """Fewer steps over all of them, to the same optimum."""
    truth, codes = small(0, n=3000)
    start = other_start(truth, codes, 5)
    chunks = chunks_of(codes[:1000], codes[1000:])
    whole = run_em(start, chunks, max_steps=500, tolerance=1e-9)
    parts = run_em(start, chunks, max_steps=500, tolerance=1e-12, online_from=1000)
    assert parts.trace[0] > whole.trace[0]
    check_never_falls(parts)
    # the same maximum, or another one: they start from different places
    assert parts.trace[-1] == pytest.approx(whole.trace[-1], abs=1.0)
    few = run_em(start, chunks, max_steps=20, online_from=1000)  # taken as they are
    assert few.trace[0] == whole.trace[0]


def test_sparse_rows_are_refined_as_codes_are() -> None:
    data = make_latent_tree(12, 2, 2, n_samples=300, random_state=0)
    codes = np.asarray(data.X)
    start = other_start(data.model, codes, 1)
    weights = np.random.default_rng(0).random(300)
    found = [
        run_em(start, chunks_of(Chunk(rows, weights=weights)), max_steps=7)
        for rows in (codes, sparse.csr_array(codes))
    ]
    for x, y in zip(*(f.model.cpts for f in found), strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)
    np.testing.assert_allclose(found[0].trace, found[1].trace, rtol=1e-12)


# ---- families --------------------------------------------------------------------------------

FAMILIES: dict[str, dict[str, Any]] = {
    "numbers": {"family": "gaussian"},
    "spherical": {"family": "gaussian_spherical", "dim": 3},
    "diagonal": {"family": "gaussian_diagonal", "dim": 3},
    "full": {"family": "gaussian_full", "dim": 3},
    "tied": {"family": "gaussian_tied", "dim": 3},
    "counts": {"family": "poisson"},
    "vectors of counts": {"family": "poisson", "dim": 3},
    "bags": {"family": "multinomial", "dim": 4},
    "codes": {"family": "multihot", "dim": 4},
    "mixed": {"family": "mixed", "dim": None},
}


def drawn(case: str, n: int, missing: float, seed: int = 0, p: int = 6) -> tuple[TreeModel, Chunk]:
    """A true model with leaves of a family, and weighted samples of it with gaps."""
    data = make_latent_tree(
        p, 2, 3, n_samples=n, missing=missing, edge_length=0.4, random_state=seed, **FAMILIES[case]
    )
    rng = np.random.default_rng(seed)
    weights, X = rng.integers(1, 4, n).astype(float), data.X
    if missing and isinstance(X, dict):  # single coordinates of vectors too
        X = {
            v: np.where((x.ndim == 2) & (rng.random(x.shape) < 0.05), np.nan, x)
            for v, x in X.items()
        }
    table = as_table(X, family=data.family, sample_weight=weights)
    (chunk,) = Samples(table).chunks()
    return data.model, chunk


def slow_step(
    model: TreeModel, chunk: Chunk, smoothing: float, target: list[Any]
) -> tuple[TreeModel, float]:
    """One plain step, and the objective before it: every sample's joint distribution written down,
    its posteriors times its weight counted and summed one by one."""
    assert chunk.weights is not None
    counts = [
        smoothing * np.repeat(t[:, None], w.shape[1], 1)
        for t, w in zip(target, model.cpts, strict=True)
    ]
    value = 0.0
    sums = dict.fromkeys(model.emissions, 0.0)
    for i, weight in enumerate(chunk.weights):
        one = chunk.take(slice(i, i + 1))
        soft: dict[int, Any] = {}
        for v, emission in model.emissions.items():
            u = int(model.parents[v])
            soft[u] = soft.get(u, 0.0) + emission.log_likelihood(one.arrays[v])[0]
        evidence = Evidence(one.codes, {u: np.exp(x)[None] for u, x in soft.items()})
        part, log_value = slow_counts(model, evidence)
        value += weight * log_value
        counts = [a + weight * b for a, b in zip(counts, part, strict=True)]
        for v, emission in model.emissions.items():
            posterior = part[v].sum(axis=0)  # the table of v has one row: its parent's posterior
            sums[v] = sums[v] + weight * emission.sums(one.arrays[v], posterior[None])
    for table, t in zip(model.cpts, target, strict=True):
        value += smoothing * float((t @ np.log(np.maximum(table, 1e-300))).sum())
    means = {
        v: e.sums(chunk.arrays[v], chunk.weights[:, None])[:, 0] / chunk.weights.sum()
        for v, e in model.emissions.items()
    }
    value += smoothing * sum(e.log_prior(means[v]) for v, e in model.emissions.items())
    emissions = {v: e.from_sums(sums[v], smoothing, means[v]) for v, e in model.emissions.items()}
    tables = tuple(c / c.sum(axis=0) for c in counts)
    return TreeModel(model.tree, model.root, tables, emissions), value


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_step_with_every_family_is_the_slow_one(missing: float, smoothing: float) -> None:
    model, chunk = drawn("mixed", 25, missing)
    target = even_targets(model, model.marginals[:6])
    found = run_em(
        model,
        chunks_of(chunk.take(slice(0, 10)), chunk.take(slice(10, 25))),
        max_steps=1,
        tolerance=0,
        smoothing=smoothing,
        accelerate=False,
    )
    first, before = slow_step(opened(model, target), chunk, smoothing, target)
    expected, after = slow_step(first, chunk, smoothing, target)
    np.testing.assert_allclose(found.trace, [before, after], rtol=1e-9)
    for x, y in zip(found.model.cpts, expected.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)
    for v, emission in expected.emissions.items():
        np.testing.assert_allclose(
            found.model.emissions[v].vector(), emission.vector(), rtol=1e-7, atol=1e-7
        )


def shaken(model: TreeModel, chunk: Chunk, seed: int) -> TreeModel:
    """A start for EM far from the truth: emissions of samples in states that are drawn."""
    rng = np.random.default_rng(seed)
    emissions = {}
    for v, emission in model.emissions.items():
        values = chunk.arrays[v]
        posterior = rng.dirichlet(np.ones(emission.n_states), size=len(chunk))
        target = emission.sums(values, np.ones((len(chunk), 1)))[:, 0] / len(chunk)
        emissions[v] = emission.from_sums(emission.sums(values, posterior), 1.0, target)
    return model.with_flat(model.flat, emissions)


@pytest.mark.slow
@pytest.mark.parametrize("case", FAMILIES)
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_objective_never_falls_in_any_family(case: str, accelerate: bool) -> None:
    for seed, smoothing in enumerate((0.1, 1.0, 20.0)):
        model, chunk = drawn(case, 300, 0.2, seed)
        found = run_em(
            shaken(model, chunk, seed),
            chunks_of(chunk),
            max_steps=25,
            tolerance=0,
            smoothing=smoothing,
            accelerate=accelerate,
        )
        check_never_falls(found)
        check_valid(found.model)
        assert found.trace[-1] > found.trace[0]
        assert all(np.isfinite(e.vector()).all() for e in found.model.emissions.values())


def test_weights_are_repeated_samples_and_threads_give_the_same_bits() -> None:
    model, chunk = drawn("mixed", 200, 0.3)
    assert chunk.weights is not None
    again = chunk.take(np.repeat(np.arange(200), chunk.weights.astype(int)))
    start = shaken(model, chunk, 0)
    plain = Chunk(again.codes, again.arrays)
    one, other, two = (
        run_em(start, chunks_of(part), max_steps=10, tolerance=0, n_jobs=jobs)
        for part, jobs in ((chunk, 1), (plain, 1), (chunk, 2))
    )
    np.testing.assert_allclose(one.trace, other.trace, rtol=1e-10)
    assert one.trace == two.trace
    for v, emission in one.model.emissions.items():
        np.testing.assert_allclose(
            emission.vector(), other.model.emissions[v].vector(), rtol=1e-6, atol=1e-6
        )
        np.testing.assert_array_equal(emission.vector(), two.model.emissions[v].vector())


# ---- never lower -----------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("accelerate", [False, True])
def test_the_objective_never_falls(accelerate: bool, smoothing: float) -> None:
    for seed in range(4):
        truth, codes = small(seed, n=300)
        start = other_start(truth, codes, seed)
        found = run_em(
            start,
            chunks_of(codes),
            max_steps=60,
            tolerance=0,
            smoothing=smoothing,
            accelerate=accelerate,
        )
        check_never_falls(found)
        check_valid(found.model)
        assert found.trace[-1] > found.trace[0]


@pytest.mark.parametrize("max_steps", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("accelerate", [False, True])
def test_steps_are_counted(max_steps: int, accelerate: bool) -> None:
    truth, codes = small(0, n=300)
    start = other_start(truth, codes, 0)
    found = run_em(start, chunks_of(codes), max_steps=max_steps, tolerance=0, accelerate=accelerate)
    assert len(found.trace) == max_steps + 1
    assert not found.converged


def test_acceleration_arrives_in_fewer_steps() -> None:
    truth, codes = small(3, n=500)
    start = other_start(truth, codes, 1)
    plain, fast = (
        run_em(start, chunks_of(codes), max_steps=3000, tolerance=1e-9, accelerate=a)
        for a in (False, True)
    )
    assert plain.converged
    assert fast.converged
    assert len(fast.trace) < len(plain.trace)
    assert fast.trace[-1] >= plain.trace[-1] - 0.01


def test_it_ends_by_the_tolerance() -> None:
    truth, codes = small(0, n=300)
    best = run_em(truth, chunks_of(codes), tolerance=0, max_steps=2000).trace[-1]
    steps = []
    for share in (0.1, 0.01, 0.001):  # log-likelihood for each parameter
        found = run_em(truth, chunks_of(codes), tolerance=share / GAIN_PER_TOL)
        assert found.converged
        # a slow direction hides behind the fast ones for a while
        assert best - found.trace[-1] <= 10 * share * truth.n_parameters
        assert not found.held_out
        steps.append(len(found.trace))
    assert steps == sorted(steps)


def test_what_is_to_come_is_the_sum_of_gains_that_shrink_alike() -> None:
    assert expected_gain([8.0]) == np.inf
    assert expected_gain([8.0, 4.0]) == pytest.approx(4.0)
    gains = [0.8**t for t in range(6)]
    assert expected_gain(gains) == pytest.approx(0.9 * 0.8**4 * 4)  # of two, the mean
    assert expected_gain([8.0, 0.1]) == 0.1  # never less than the last
    assert expected_gain([1.0, 0.0]) == 0.0


def test_threads_and_chunks() -> None:
    data = make_latent_tree(27, 3, 5, n_samples=9000, random_state=0)
    start = data.model
    one, two = (
        run_em(start, chunks_of(data.X), max_steps=6, tolerance=0, n_jobs=n) for n in (1, 2)
    )
    assert one.trace == two.trace
    for x, y in zip(one.model.cpts, two.model.cpts, strict=True):
        np.testing.assert_array_equal(x, y)
    cut = run_em(
        start, chunks_of(data.X[:1000], data.X[1000:1001], data.X[1001:]), max_steps=6, tolerance=0
    )
    for x, y in zip(one.model.cpts, cut.model.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-9)


# ---- smoothing -------------------------------------------------------------------------------


def test_no_category_that_was_seen_is_impossible() -> None:
    truth, codes = small(0, n=400)
    codes[codes[:, 0] == 2, 0] = 1
    codes[7, 0] = 2  # a single sample has it
    marginals = frequencies(codes, truth.dims[:5])
    found = run_em(truth, chunks_of(codes), max_steps=200, marginals=marginals)
    assert min(table.min() for table in found.model.cpts) > 0
    everything = np.indices((3,) * 5).reshape(5, -1).T
    assert np.isfinite(found.model.log_likelihood(Evidence(everything))).all()


def test_a_category_that_was_never_seen_is_impossible() -> None:
    truth, codes = small(0, n=400)
    codes[codes[:, 0] == 2, 0] = 1
    marginals = frequencies(codes, truth.dims[:5])
    found = run_em(truth, chunks_of(codes), max_steps=5, marginals=marginals)
    assert found.model.marginals[0][2] < 1e-12


def test_smoothing_is_a_pull_towards_the_marginals() -> None:
    truth, codes = small(0, n=200)
    marginals = frequencies(codes, truth.dims[:5])
    strong = run_em(truth, chunks_of(codes), smoothing=1e7, max_steps=20, marginals=marginals)
    for v in range(5):
        for column in strong.model.conditional(v, int(truth.tree.neighbors(v)[0])).T:
            np.testing.assert_allclose(column, marginals[v], atol=1e-3)


def test_smoothing_without_refinement() -> None:
    """A model counted from samples, plus pseudo-samples: what `maximise` makes of full counts."""
    truth, _codes = small(0, n=0)
    tables = list(truth.cpts)
    tables[0] = np.array([[1.0, 0.2], [0.0, 0.3], [0.0, 0.5]])
    sharp = TreeModel(truth.tree, truth.root, tuple(tables))
    found = smoothed(sharp, 1000, 1.0)
    u = int(sharp.parents[0])
    weights = 1000 * sharp.marginals[u]
    expected = (tables[0] * weights + sharp.marginals[0][:, None]) / (weights + 1)
    np.testing.assert_allclose(found.cpts[0], expected, atol=1e-12)
    assert (found.cpts[0] > 0).all()
    same = smoothed(sharp, 1000, 0.0)
    for x, y in zip(same.cpts, sharp.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)


# ---- held-out samples ------------------------------------------------------------------------


def overfitting(seed: int) -> tuple[TreeModel, Any, Any]:
    """Few samples of many categories: the likelihood of other samples soon falls."""
    data = make_latent_tree(9, 3, 20, n_samples=600, edge_length=2.0, random_state=seed)
    start = other_start(data.model, data.X, seed)
    return start, data.X[:150], data.X[150:]


@pytest.mark.parametrize("accelerate", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_it_stops_when_held_out_samples_no_longer_gain(seed: int, accelerate: bool) -> None:
    start, train, held = overfitting(seed)
    long: dict[str, Any] = {"max_steps": 200, "smoothing": 0.1, "tolerance": 1e-9}
    free = run_em(start, chunks_of(train), accelerate=accelerate, **long)
    found = run_em(
        start,
        chunks_of(train),
        accelerate=accelerate,
        held_out=chunks_of(held[:200], held[200:]),
        **long,
    )
    assert found.converged
    assert len(found.trace) < len(free.trace)
    best = int(np.argmax(found.held_out))
    assert len(found.held_out) == best + 1 + PATIENCE
    own = total_log_likelihood(found.model, chunks_of(held))
    assert own == pytest.approx(found.held_out[best], rel=1e-12)
    assert own > total_log_likelihood(free.model, chunks_of(held))
    check_never_falls(found)


@pytest.mark.parametrize("max_steps", [1, 2, 3])
def test_the_last_model_is_judged_too(max_steps: int) -> None:
    truth, codes = small(0, n=2000)
    start = other_start(truth, codes, 0)
    found = run_em(
        start,
        chunks_of(codes[:1500]),
        max_steps=max_steps,
        tolerance=0,
        accelerate=False,
        held_out=chunks_of(codes[1500:]),
    )
    assert len(found.held_out) == max_steps + 1
    assert found.held_out == sorted(found.held_out)  # far from the optimum all gain
    value = total_log_likelihood(found.model, chunks_of(codes[1500:]))
    assert value == pytest.approx(found.held_out[-1], rel=1e-12)


def test_held_out_samples_that_are_impossible_from_the_start() -> None:
    truth, codes = small(0, n=200)
    codes[:, 0] = np.minimum(codes[:, 0], 1)
    marginals = frequencies(codes, truth.dims[:5])
    held = codes[:20].copy()
    held[0, 0] = 2
    start = other_start(truth, codes, 0)
    found = run_em(start, chunks_of(codes), held_out=chunks_of(held), marginals=marginals)
    check_valid(found.model)
    assert np.isneginf(found.held_out).all()


# ---- gaps ------------------------------------------------------------------------------------


def test_gaps_cost_little() -> None:
    """A fifth of the values missing at random: the model comes back nearly as well."""
    data = make_latent_tree(9, 2, 3, n_samples=8000, random_state=0)
    truth = data.model
    rng = np.random.default_rng(0)
    codes = np.where(rng.random(data.X.shape) < 0.2, -1, data.X)
    marginals = frequencies(codes, truth.dims[:9])
    found = run_em(truth, chunks_of(codes), marginals=marginals)
    check_never_falls(found)
    for x, y in zip(found.model.cpts, truth.cpts, strict=True):
        assert np.abs(x - y).max() < 0.1  # standard errors are about 0.01 to 0.02


def test_a_sample_and_a_variable_of_which_nothing_is_known() -> None:
    truth, codes = small(0, n=100)
    codes[3] = -1
    codes[:, 2] = -1
    found = run_em(truth, chunks_of(codes), max_steps=20)
    check_valid(found.model)
    check_never_falls(found)


# ---- random starts ---------------------------------------------------------------------------


def test_random_models_are_valid_and_keep_zeros() -> None:
    rng = np.random.default_rng(0)
    for shape in ("star", "random", "caterpillar"):
        tree = make_latent_tree(8, 3, shape=shape, n_samples=0, random_state=0).tree  # type: ignore[arg-type]
        marginals = {v: np.array([0.0, 0.5, 0.25, 0.25]) for v in range(8)}
        model = random_model(tree, marginals, 3, rng)
        check_valid(model)
        assert model.dims.tolist() == [4] * 8 + [3] * tree.n_hidden
        for v in range(8):
            assert model.marginals[v][0] == 0
    again = [random_model(tree, marginals, 3, np.random.default_rng(1)) for _ in range(2)]
    for x, y in zip(again[0].cpts, again[1].cpts, strict=True):
        np.testing.assert_array_equal(x, y)


def test_random_model_of_a_tree_without_hidden_nodes() -> None:
    tree = Tree.build(["a", "b"], np.array([[0, 1]]), [1.0])
    model = random_model(
        tree, {0: np.array([0.5, 0.5]), 1: np.full(3, 1 / 3)}, 2, np.random.default_rng(0)
    )
    check_valid(model)
    assert model.dims.tolist() == [2, 3]


def test_random_starts_reach_the_optimum_from_the_truth() -> None:
    truth, codes = small(2, n=1500)
    best = run_em(truth, chunks_of(codes), max_steps=500, tolerance=1e-9)
    reached = [
        run_em(
            other_start(truth, codes, seed), chunks_of(codes), max_steps=500, tolerance=1e-9
        ).trace[-1]
        for seed in range(6)
    ]
    assert max(reached) > best.trace[-1] - 1


# ---- without hidden nodes --------------------------------------------------------------------


@pytest.mark.parametrize("n_vars", [1, 2])
def test_a_model_without_hidden_nodes_is_counted_in_one_step(n_vars: int) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(500, n_vars))
    edges = np.array([[0, 1]] if n_vars == 2 else np.empty((0, 2)), dtype=int)
    tree = Tree.build([f"x{i}" for i in range(n_vars)], edges, np.ones(n_vars - 1))
    start = random_model(
        tree, {i: np.full(3, 1 / 3) for i in range(n_vars)}, 2, np.random.default_rng(1)
    )
    found = run_em(start, chunks_of(codes), smoothing=0.0)
    assert found.converged
    np.testing.assert_allclose(
        found.model.marginals[-1], np.bincount(codes[:, -1]) / 500, atol=1e-12
    )
