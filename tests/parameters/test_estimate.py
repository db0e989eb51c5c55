"""Parameters from moments: exact where the moments are, near the oracle where they are counted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.parameters import (
    exact_moments,
    exact_tables,
    largest_error,
    random_truth,
    rarest_state,
    slow_moments,
    slow_solve,
    solve_exactly,
)

from benchmarks.oracle import oracle
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.data.chunk import Chunk
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import parameter_error
from latenttree.model.samples import InMemory, Samples, model_dims
from latenttree.model.tree_model import TreeModel
from latenttree.moments import triples
from latenttree.moments.triples import TripleMoments, triple_moments
from latenttree.parameters.estimate import _depth, estimate_by_moments
from latenttree.parameters.features import ViewValues, leaf_projections
from latenttree.parameters.moment_start import (
    condition_numbers,
    moment_start,
    pooled_families,
    projections_of,
    view_basis,
)
from latenttree.parameters.solving import WORST_GAIN, layout_of, solve_moments
from latenttree.parameters.views import choose_views
from latenttree.refinement.stage import refine_fully
from latenttree.tree import Tree

# ---- exact moments in, exact parameters out -------------------------------------------------

# The decomposition holds weights at 1e-6 (its FLOOR), so rarer states cannot come back. Where
# none is rarer and errors are amplified less than 1e6 times, as in 952 of 1,000 models, the largest
# error was 5e-9: see benchmarks/tables/exact_parameters.py.
RAREST, WORST_CONDITION = 2e-6, 1e6


@pytest.mark.parametrize("first", range(0, 100, 20))
def test_exact_moments_give_exact_parameters(first: int) -> None:
    n_judged = 0
    for seed in range(first, first + 20):
        _, k, truth = random_truth(seed)
        found = solve_exactly(truth, k)
        check_distributions(found.model)
        assert found.condition.shape == (truth.tree.n_hidden,)
        if rarest_state(truth) >= RAREST and found.condition.max() < WORST_CONDITION:
            n_judged += 1
            assert largest_error(found.model, truth) < 1e-6, f"seed {seed}"
    assert n_judged >= 14


@pytest.mark.parametrize("shape", ["balanced", "random", "caterpillar"])
def test_observed_nodes_inside(shape: Any) -> None:
    for seed in range(3):
        data = make_latent_tree(
            12, 3, shape=shape, internal_observed=0.4, n_samples=0, random_state=seed
        )
        truth = data.model
        assert (truth.tree.degree()[: truth.tree.n_observed] > 1).any()
        assert largest_error(solve_exactly(truth, 3).model, truth) < 1e-9


def test_the_condition_tells_weak_edges_from_strong_ones() -> None:
    conditions = [
        solve_exactly(
            make_latent_tree(9, 2, edge_length=x, n_samples=0, random_state=0).model, 2
        ).condition.max()
        for x in (0.1, 0.5, 1.0, 2.0)
    ]
    assert conditions == sorted(conditions)
    assert conditions[-1] > 10 * conditions[0]


def check_distributions(model: TreeModel) -> None:
    """Everything on the simplex, every edge the same from both ends, marginals consistent."""
    for table, marginal in zip(model.cpts, model.marginals, strict=True):
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-12)
        np.testing.assert_allclose(marginal.sum(), 1, atol=1e-12)
    for a, b in model.tree.edges.tolist():
        forth = model.conditional(a, b) * model.marginals[b]
        back = model.conditional(b, a) * model.marginals[a]
        np.testing.assert_allclose(forth, back.T, atol=1e-12)
        np.testing.assert_allclose(forth.sum(axis=1), model.marginals[a], atol=1e-12)
        assert (model.conditional(b, a) >= 0).all()
        np.testing.assert_allclose(model.conditional(b, a).sum(axis=0), 1, atol=1e-12)


# ---- moments of samples ---------------------------------------------------------------------


def sampled(n: int = 500, k: int = 3, seed: int = 0) -> tuple[LatentTreeData, Any, Any, Any]:
    """Data on a tree with internal observed nodes, so that every kind of edge occurs, and what
    `triple_moments` is asked for."""
    data = make_latent_tree(
        16, k, shape="caterpillar", internal_observed=0.4, n_samples=n, random_state=seed
    )
    rng = np.random.default_rng(seed)
    views = choose_views(data.tree, k - 1, hidden=False)
    layout = layout_of(data.tree, views, np.full(data.tree.n_observed, k))
    marginals = data.marginals[: data.tree.n_observed]
    tables = [leaf_projections(rng.normal(size=(k, k - 1)), m) for m in marginals]
    return data, views, layout, ViewValues(views, tables)


def values(views: NDArray[np.float32]) -> NDArray[np.float32]:
    """Views sample by sample, `(n, n_views, k)`."""
    return views.transpose(2, 0, 1)


def check_moments(found: TripleMoments, expected: Any, atol: float) -> None:
    for name in ("own", "third", "cross", "emitted", "counted"):
        values = expected[name] if isinstance(expected, dict) else getattr(expected, name)
        mine = getattr(found, name)
        assert len(mine) == len(values)
        for x, y in zip(mine, values, strict=True):
            np.testing.assert_allclose(x, y, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.int32])
def test_moments_are_means_over_samples(dtype: Any) -> None:
    data, _, layout, features = sampled()
    assert len(layout.hidden)
    assert len(layout.emitted)
    assert len(layout.counted)
    codes = data.X.astype(dtype)
    found = triple_moments(InMemory([codes]), features, layout, 3, n_jobs=1)
    # products of float32 views, and sums of 256 of them, are in float32
    check_moments(
        found, slow_moments(codes, values(features.of(Chunk(codes), 1)), layout, 3), atol=1e-6
    )
    assert found.n_samples == 500


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_moments_are_over_the_samples_that_have_all_of_it(weighted: bool, n_jobs: int) -> None:
    data, _, layout, features = sampled()
    rng = np.random.default_rng(0)
    gaps = rng.random(data.X.shape) < np.linspace(0.0, 0.6, data.X.shape[1])
    codes = np.where(gaps, -1, data.X).astype(np.int8)
    weights = rng.uniform(0.0, 3.0, len(codes)) if weighted else None
    chunk = Chunk(codes, weights=weights)
    found = triple_moments(
        InMemory([chunk.take(slice(0, 200)), chunk.take(slice(200, 500))]),
        features,
        layout,
        3,
        n_jobs,
    )
    # views are float32, and so are their products with weights where codes are counted
    check_moments(
        found, slow_moments(codes, values(features.of(chunk, 1)), layout, 3, weights), atol=1e-6
    )
    assert found.n_samples == pytest.approx(500 if weights is None else weights.sum())


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("weighted", [False, True])
def test_moments_of_statistics(missing: float, weighted: bool) -> None:
    """Every family beside the others. Statistics are per sample up to a factor that is near one:
    the exact number of samples where nothing is missing, a fit to it otherwise."""
    data = make_latent_tree(
        12, 2, 3, family="mixed", missing=missing, n_samples=400, random_state=0
    )
    weights = np.random.default_rng(0).integers(1, 4, 400) if weighted else None
    table = as_table(data.X, family=data.family, sample_weight=weights)
    views = choose_views(data.tree, 1, hidden=False)
    layout = layout_of(data.tree, views, model_dims(table))
    features = ViewValues(views, projections_of(table, view_basis(table, 2, None, FitConfig())))
    families = {v: pool.emission for v, pool in pooled_families(table, 2).items()}
    assert len(families) == 10
    (chunk,) = Samples(table).chunks()
    found = triple_moments(InMemory([chunk]), features, layout, 2, 1, families)
    statistics = {a: each_statistic(family, chunk.arrays[a]) for a, family in families.items()}
    expected = slow_moments(
        chunk.codes, values(features.of(chunk, 1)), layout, 2, chunk.weights, statistics
    )
    for e, a in enumerate(layout.emitted[:, 1].tolist()):
        if a in families:
            factor = scale_between(found.emitted[e], expected["emitted"][e])
            # 10 statistics with standard deviations below 1 over 150 samples or more
            assert (abs(factor - 1) < (0.3 if missing else 1e-6)).all()
            expected["emitted"][e] *= factor[:, None]
    check_moments(found, expected, atol=1e-4)


def scale_between(found: Any, expected: Any) -> Any:
    """The factor of each view, by least squares."""
    return np.einsum("tsk,tsk->s", found, expected) / np.einsum("tsk,tsk->s", expected, expected)


def each_statistic(family: Any, values: Any) -> NDArray[np.float64]:
    """Statistics `(n, T)` of every sample."""
    n = values.shape[0]
    return np.stack([family.sums(values[i : i + 1], np.ones((1, 1)))[:, 0] for i in range(n)])


def test_bags_whose_first_item_never_occurs() -> None:
    """No statistic of a bag counts samples; its moments are those of the bag without the item."""
    data = make_latent_tree(9, 2, 4, family="multinomial", n_samples=2000, random_state=0)
    wider = {name: np.column_stack([np.zeros(2000), x]) for name, x in data.X.items()}
    models = [
        moment_start(data.tree, as_table(X), 2, None, FitConfig()).model for X in (data.X, wider)
    ]
    for v in range(9):
        plain, wide = (m.emissions[v].mean() for m in models)
        assert np.isfinite(wide).all()
        assert (wide[0] < 1e-9).all()
        error = min(abs(wide[1:, order] - plain).max() for order in ([0, 1], [1, 0]))
        assert error < 0.02  # the empty item changes the directions by rounding only


def test_a_view_begins_with_one_so_moments_hold_those_of_lower_order() -> None:
    data, views, layout, features = sampled()
    found = triple_moments(InMemory([data.X]), features, layout, 3, n_jobs=1)
    np.testing.assert_allclose(found.third[:, 0, 0, 0], 1, atol=1e-12)
    np.testing.assert_allclose(
        found.third[:, :, 0, 0], found.own[views.view[:, 0]][:, 0], atol=1e-12
    )


def test_threads_give_the_same_bits_and_chunks_the_same_sums(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, _, layout, features = sampled(n=3000)
    whole = triple_moments(InMemory([data.X]), features, layout, 3, n_jobs=1)
    check_moments(triple_moments(InMemory([data.X]), features, layout, 3, n_jobs=2), whole, atol=0)
    cuts = (slice(0, 700), slice(700, 700), slice(700, 2500), slice(2500, None))
    pieces = [Chunk(data.X[cut]) for cut in cuts]
    # chunks cut the sums of 256 float32 products elsewhere
    check_moments(triple_moments(InMemory(pieces), features, layout, 3, n_jobs=2), whole, atol=1e-6)
    monkeypatch.setattr(triples, "MAX_VALUES", 1)
    check_moments(
        triple_moments(InMemory([data.X]), features, layout, 3, n_jobs=2), whole, atol=1e-6
    )


def test_memory_of_the_views_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    data, _, layout, features = sampled(n=3000)
    seen: list[int] = []

    class Watched:
        """Remembers the sizes of chunks."""

        def of(self, chunk: Chunk, n_jobs: int) -> NDArray[np.float32]:
            """The features."""
            seen.append(len(chunk))
            return np.asarray(features.of(chunk, n_jobs))

    monkeypatch.setattr(triples, "MAX_VALUES", 512 * layout.n_views * 3)
    triple_moments(InMemory([data.X]), Watched(), layout, 3, n_jobs=1)
    assert seen == [512] * 5 + [440]


def test_samples_approach_the_exact_moments() -> None:
    # Entries err by less than 5 standard deviations of a mean of 200,000 products: a few hundred
    # entries, so failure has probability below 1e-3 for the (fixed) seed.
    data, views, layout, features = sampled(n=200_000)
    p = data.tree.n_observed
    rng = np.random.default_rng(0)
    tables = [leaf_projections(rng.normal(size=(3, 2)), m) for m in data.marginals[:p]]
    found = triple_moments(InMemory([data.X]), features, layout, 3, n_jobs=1)
    exact = exact_moments(data.model, views, layout, tables)
    for name in ("own", "third"):
        np.testing.assert_allclose(getattr(found, name), getattr(exact, name), atol=0.05)
    for x, y in zip(found.counted, exact.counted, strict=True):
        np.testing.assert_allclose(x, y, atol=0.006)


# ---- the pieces -----------------------------------------------------------------------------


def test_depth_counts_steps_to_the_nearest_observed_node() -> None:
    #  balanced, three children each: leaves, 9 hidden, 3 hidden, root
    assert _depth(make_latent_tree(27, 2, n_samples=0).tree) == 3
    assert _depth(make_latent_tree(8, 2, shape="star", n_samples=0).tree) == 1
    assert _depth(make_latent_tree(12, 2, shape="caterpillar", n_samples=0).tree) == 1
    assert _depth(Tree.build(["a", "b"], np.array([[0, 1]]), [1.0])) == 0


@pytest.mark.parametrize("n_vars", [1, 2, 3])
def test_trees_without_hidden_nodes_are_counted(n_vars: int) -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(1000, n_vars)).astype(np.uint8)
    edges = np.array([(i, i + 1) for i in range(n_vars - 1)], dtype=int).reshape(-1, 2)
    tree = Tree.build([f"x{i}" for i in range(n_vars)], edges, np.ones(n_vars - 1))
    dims = np.full(n_vars, 3)
    marginals = [np.bincount(codes[:, i], minlength=3) / 1000 for i in range(n_vars)]
    found = estimate_by_moments(tree, [], dims, marginals, InMemory([codes]), 2)
    assert not len(found.condition)
    for v in range(n_vars):
        np.testing.assert_allclose(found.model.marginals[v], marginals[v], atol=1e-12)
    if n_vars > 1:
        joint = np.zeros((3, 3))
        np.add.at(joint, (codes[:, 0], codes[:, 1]), 1 / 1000)
        np.testing.assert_allclose(found.model.joint(0, 1), joint, atol=1e-12)


def test_views_without_any_signal_still_give_distributions() -> None:
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, size=(200, 9)).astype(np.uint8)
    data = make_latent_tree(9, 3, n_samples=0, random_state=0)
    found = moment_start(data.tree, as_table(codes), 3, None, FitConfig())
    check_distributions(found.model)


# ---- from samples ---------------------------------------------------------------------------


@pytest.mark.parametrize("hidden_features", [False, True])
def test_threads_give_the_same_model(hidden_features: bool) -> None:
    data = make_latent_tree(27, 3, 6, n_samples=5000, random_state=0)
    one, two = (
        moment_start(
            data.tree,
            as_table(data.X),
            3,
            None,
            FitConfig(hidden_features=hidden_features, n_jobs=n_jobs),
        )
        for n_jobs in (1, 2)
    )
    check_distributions(one.model)
    for x, y in zip(one.model.cpts, two.model.cpts, strict=True):
        np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(one.condition, two.condition)


@pytest.mark.slow
def test_errors_are_near_the_oracle_that_sees_the_hidden_states() -> None:
    """Parameter error over the oracle's, p = 9, d = 10, k = 3, N = 20,000, mean of 10 seeds.

    Over 100 other seeds: moments 1.130 (standard deviation 0.043), EM 1.049 (0.028). Means of ten
    are five standard deviations below the bounds: they fail with probability below 1e-5."""
    ratios = []
    for seed in range(10):
        data = make_latent_tree(9, 3, 10, n_samples=20_000, random_state=seed)
        table, best = as_table(data.X), parameter_error(oracle(data), data)
        whole = moment_start(data.tree, table, 3, None, FitConfig(refine=None, n_jobs=2))
        start = moment_start(data.tree, table, 3, None, FitConfig(n_jobs=2))
        end = refine_fully(start, table, FitConfig(n_jobs=2))
        check_distributions(whole.model)
        check_distributions(start.model)
        check_distributions(end.model)
        ratios.append([parameter_error(m, data) / best for m in (whole.model, end.model)])
    moments, refined = np.mean(ratios, axis=0)
    assert moments < 1.20
    assert refined < 1.10
    assert refined < moments


def test_errors_shrink_with_the_root_of_the_samples() -> None:
    # 16 times the samples: a quarter of the error. Over 20 other seeds the ratio was 0.18 to 0.30.
    errors = []
    for n in (4000, 64_000):
        data = make_latent_tree(9, 3, 6, n_samples=n, random_state=1)
        table, alone = as_table(data.X), FitConfig(refine=None, n_jobs=2)
        found = moment_start(data.tree, table, 3, None, alone)
        errors.append(parameter_error(found.model, data))
    assert 0.12 < errors[1] / errors[0] < 0.45


def test_more_samples_than_a_million_are_trusted_more() -> None:
    """Weak directions are left out as noise with few samples, and used with exact moments."""
    for seed in (1, 4, 7):  # "drawn"
        _, k, truth = random_truth(seed)
        views = choose_views(truth.tree, k - 1, hidden=False)
        layout = layout_of(truth.tree, views, truth.dims[: truth.tree.n_observed])
        moments = exact_moments(truth, views, layout, exact_tables(truth, k))
        few = solve_moments(truth.tree, views, layout, moments._replace(n_samples=1e4))
        check_distributions(few.model)
        many = solve_moments(truth.tree, views, layout, moments._replace(n_samples=1e30))
        assert largest_error(many.model, truth) < 1e-6 or many.condition.max() > WORST_CONDITION


@pytest.mark.parametrize("shape", ["star", "caterpillar", "balanced"])
@pytest.mark.parametrize("k", [2, 3])
def test_all_edges_at_once_are_as_one_by_one(shape: Any, k: int) -> None:
    data = make_latent_tree(14, k, k + 1, shape=shape, arity=7, n_samples=4000, random_state=k)
    views = choose_views(data.tree, k - 1, hidden=False)
    layout = layout_of(data.tree, views, data.model.dims[:14])
    tables = exact_tables(data.model, k)
    moments = triple_moments(InMemory([data.X]), ViewValues(views, tables), layout, k, n_jobs=1)
    found = solve_moments(data.tree, views, layout, moments).model
    slow = slow_solve(data.tree, views, layout, moments, WORST_GAIN)
    for x, y in zip(found.cpts, slow.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-7)


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_second_triplet_is_aligned_with_the_reference_triplet(k: int) -> None:
    """A star of eight leaves is decomposed twice, from three leaves and three others; the orders of
    the states differ, and an answer that mixed them would be far off."""
    for seed in range(5):
        truth = make_latent_tree(8, k, 2 * k, shape="star", n_samples=0, random_state=seed).model
        views = choose_views(truth.tree, k - 1, hidden=False)
        assert views.owner.tolist() == [0, 0]
        found = solve_exactly(truth, k).model
        assert parameter_error(found, truth) < 1e-8


def test_conditions_of_some_nodes_are_those_of_a_round_of_messages() -> None:
    """With the messages of the last round's model the moments are nearly the same."""
    data = make_latent_tree(27, 2, 3, n_samples=3000, random_state=0)
    table, tree = as_table(data.X), data.tree
    found = moment_start(tree, table, 2, None, FitConfig(refine=None))
    marked = np.arange(tree.n_hidden) % 3 == 1
    some = condition_numbers(found.model, table, 2, None, marked, FitConfig())
    assert some.shape == (marked.sum(),)
    np.testing.assert_allclose(some, found.condition[marked], rtol=0.05)
