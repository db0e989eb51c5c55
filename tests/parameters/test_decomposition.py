"""Decomposition: exact on exact moments, near the oracle on samples, never without an answer."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize
from tests.reference import decomposition as reference
from tests.reference.decomposition import (
    Moments,
    Sample,
    Truth,
    decompose_views,
    error,
    moments_of,
)

from latenttree.errors import DataError
from latenttree.parameters.decomposition import Decomposition, decompose
from latenttree.parameters.moment_fit import ORDERS, PRIOR

Array = NDArray[np.float64]

EXACT = 1e-8  # conditions of the truths below are at most some hundreds: 1e-16 * 1e2^2 and room


def stacked(moments: Sequence[Moments]) -> tuple[Array, list[Array], list[Array]]:
    third, first, second = zip(*moments, strict=True)
    return np.stack(third), stack_each(first), stack_each(second)


def stack_each(parts: Sequence[Sequence[Array]]) -> list[Array]:
    return [np.stack(x) for x in zip(*parts, strict=True)]


def errors(found: Decomposition, truths: Sequence[Truth]) -> Array:
    rows = range(len(truths))
    return np.array(
        [error(found.weights[i], [f[i] for f in found.factors], truths[i]) for i in rows]
    )


def check_valid(found: Decomposition) -> None:
    assert np.isfinite(found.weights).all()
    assert all(np.isfinite(f).all() for f in found.factors)
    assert found.weights.min(initial=1.0) > 0
    np.testing.assert_allclose(found.weights.sum(axis=1), 1, rtol=1e-12)
    assert not np.isnan(found.condition).any()
    assert (found.condition > 0).all()
    assert np.isfinite(found.residual).all()


# ---- exact moments --------------------------------------------------------------------


@pytest.mark.parametrize("k", [2, 3, 4, 5, 8, 12, 20])
def test_exact_moments_give_exact_parameters(k: int) -> None:
    for seed in range(30 if k < 12 else 4):
        rng = np.random.default_rng([k, seed])
        dims = rng.integers(k, max(2 * k, 30), size=3)
        truth = reference.random_truth(rng, k, [int(d) for d in dims], 4.0)
        found = decompose_views(*moments_of(*truth), k)
        check_valid(found)
        assert errors(found, [truth])[0] < EXACT
        assert found.residual[0] < EXACT
        assert found.condition[0] < 100


@settings(max_examples=80, deadline=None)
@given(
    k=st.integers(2, 6),
    extra=st.tuples(*[st.integers(0, 6)] * 3),
    spread=st.floats(0, 8),
    units=st.tuples(*[st.floats(-4, 4)] * 3),
    seed=st.integers(0, 2**32 - 1),
)
def test_exact_for_any_dimensions_and_units(
    k: int, extra: Sequence[int], spread: float, units: Sequence[float], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    truth = reference.random_truth(rng, k, [k + e for e in extra], spread)
    scales = [10.0**u for u in units]
    scaled = [f * s for f, s in zip(truth.factors, scales, strict=True)]
    found = decompose_views(*moments_of(truth.weights, scaled), k)
    back = [f[0] / s for f, s in zip(found.factors, scales, strict=True)]
    assert error(found.weights[0], back, truth) < EXACT


@pytest.mark.parametrize("k", [2, 3, 5, 8])
@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-3])
def test_equal_and_nearly_equal_weights(k: int, tilt: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng([k, seed])
        truth = reference.random_truth(rng, k, [k, k, k], 2.0)
        weights = np.full(k, 1 / k) + tilt * (np.arange(k) - (k - 1) / 2)
        truth = Truth(weights, truth.factors)
        found = decompose(*stacked([moments_of(*truth)]))
        assert errors(found, [truth])[0] < EXACT


def test_rare_states_are_exact_too() -> None:
    """Weights far below the least that the fit starts with."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = reference.random_truth(rng, 4, [4, 4, 4], 2.0)
        truth = Truth(np.array([0.7, 0.2, 0.099, 0.001]), truth.factors)
        found = decompose(*stacked([moments_of(*truth)]))
        assert errors(found, [truth])[0] < EXACT


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_views_with_a_constant_keep_it(k: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng([k, seed])
        truth = reference.random_truth(rng, k, [k, k, k], 2.0)
        for f in truth.factors:
            f[0] = 1.0
        found = decompose(*stacked([moments_of(*truth)]))
        assert errors(found, [truth])[0] < EXACT
        assert all((f[:, 0] == 1).all() for f in found.factors)


def test_one_state() -> None:
    truth = Truth(np.ones(1), [np.array([[2.0]]), np.array([[-3.0]]), np.array([[0.5]])])
    found = decompose(*stacked([moments_of(*truth)]))
    assert errors(found, [truth])[0] < EXACT


@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_agrees_with_the_eigenvectors_of_one_slice(k: int) -> None:
    for seed in range(10):
        rng = np.random.default_rng([k, seed])
        truth = reference.random_truth(rng, k, [k, k, k], 2.0)
        moments = moments_of(*truth)
        slow = reference.one_slice(moments, rng.normal(size=k))
        assert errors(decompose(*stacked([moments])), [slow])[0] < 1e-6  # one slice may be poor


# ---- a second opinion -------------------------------------------------------------------


def parafac(third: Array, first: Sequence[Array], k: int, seed: int) -> Truth:
    """TensorLy's alternating least squares on the third moment, lengths from the means."""
    decomposition = pytest.importorskip("tensorly.decomposition")
    weights, factors = decomposition.parafac(
        third, k, n_iter_max=3000, init="svd", tol=1e-14, random_state=seed
    )
    shares = [np.linalg.solve(f, m) for f, m in zip(factors, first, strict=True)]
    # a_j = f_j s_j / w_j in every view, and weights_j f_j f_j f_j = w_j a_j a_j a_j
    w = np.sqrt(np.prod(shares, axis=0) / weights)
    return Truth(w, [f * s / w for f, s in zip(factors, shares, strict=True)])


@pytest.mark.parametrize("k", [2, 3, 4])
def test_agrees_with_tensorly_on_exact_moments(k: int) -> None:
    for seed in range(3):
        rng = np.random.default_rng([k, seed])
        truth = reference.random_truth(rng, k, [k, k, k], 0.5)
        moments = moments_of(*truth)
        other = parafac(moments.third, moments.first, k, seed)
        assert errors(decompose(*stacked([moments])), [other])[0] < 1e-4  # ALS ends slowly


def test_near_tensorly_on_samples_and_not_worse() -> None:
    """Both fit by least squares with other weights: nearer to each other than to the truth."""
    ours, apart, theirs = [], [], []
    for sample in samples(3, 20_000, (0.8, 0.7, 0.6), 12):
        other = parafac(sample.moments.third, sample.moments.first, 3, 0)
        found = decompose(*stacked([sample.moments]))
        ours.append(errors(found, [sample.truth])[0])
        apart.append(errors(found, [other])[0])
        theirs.append(error(*other, sample.truth))
    assert np.mean(apart) < np.mean(ours)
    assert np.mean(ours) < 1.05 * np.mean(theirs)


# ---- samples ----------------------------------------------------------------------------


def samples(k: int, n: int, strengths: Sequence[float], count: int) -> list[Sample]:
    out = []
    for seed in range(count):
        rng = np.random.default_rng([k, seed])
        weights = 0.7 * rng.dirichlet(np.full(k, 5.0)) + 0.3 / k
        tables = reference.random_tables(rng, k, strengths)
        out.append(reference.sampled(rng, weights, tables, n))
    return out


def solve_all(several: Sequence[Sample]) -> tuple[Decomposition, Array, Array]:
    """The decomposition, its errors and those of the oracle."""
    found = decompose(*stacked([s.moments for s in several]))
    check_valid(found)
    truths = [s.truth for s in several]
    return found, errors(found, truths), np.array([error(*s.oracle, s.truth) for s in several])


@pytest.mark.slow
@pytest.mark.parametrize("k", [2, 3, 5])
def test_error_falls_with_the_root_of_the_sample(k: int) -> None:
    """16 times the samples, a quarter of the error. Over 60 seeds the ratio of the mean errors has
    a standard deviation of about 8%; a ratio outside [3, 5.4] is more than three of them."""
    _, few, _ = solve_all(samples(k, 3_000, (0.8, 0.6, 0.5), 60))
    _, many, _ = solve_all(samples(k, 48_000, (0.8, 0.6, 0.5), 60))
    assert 3.0 < few.mean() / many.mean() < 5.4


@pytest.mark.slow
@pytest.mark.parametrize(
    ("k", "n", "strengths", "limit"),
    [
        (2, 5_000, (0.7, 0.7, 0.7), 1.1),
        (3, 5_000, (0.7, 0.7, 0.7), 1.1),
        (3, 5_000, (0.9, 0.6, 0.3), 1.6),
        (5, 5_000, (0.9, 0.6, 0.3), 1.6),
        (8, 5_000, (0.9, 0.6, 0.3), 1.6),
        (5, 1_000, (0.9, 0.9, 0.2), 1.6),
    ],
)
def test_near_the_best_possible(k: int, n: int, strengths: tuple[float, ...], limit: float) -> None:
    """Error against that of maximum likelihood started at the truth, median over 30 seeds: 1.0 for
    equal views, 1.2 to 1.3 for unequal ones. The median has a standard error of about 0.02 and
    0.08, so that a limit is more than three of them away."""
    several = samples(k, n, strengths, 30)
    _, ours, _ = solve_all(several)
    best = np.array([error(*s.likely, s.truth) for s in several])
    assert np.median(ours / best) < limit


@pytest.mark.parametrize(("k", "n"), [(2, 100), (3, 100), (5, 200), (8, 300), (8, 1000)])
def test_small_samples_have_an_answer(k: int, n: int) -> None:
    """Weak views and few samples: valid always, and no error from a state of no samples."""
    found, ours, oracle = solve_all(samples(k, n, (0.6, 0.5, 0.4), 40))
    assert np.median(ours / oracle) < 4
    assert found.weights.min() >= 0.5e-6


@pytest.mark.slow
def test_condition_foretells_the_error() -> None:
    """Views of many strengths: the condition ranks the errors (rank correlation over 120)."""
    rng = np.random.default_rng(3)
    several = []
    for strength in rng.uniform(0.25, 0.9, size=120):
        tables = reference.random_tables(rng, 3, (strength, strength, strength))
        several.append(reference.sampled(rng, np.array([0.4, 0.35, 0.25]), tables, 20_000))
    found, ours, oracle = solve_all(several)
    ranks = [np.argsort(np.argsort(x)) for x in (found.condition, ours / oracle)]
    assert np.corrcoef(*ranks)[0, 1] > 0.6
    assert (ours < 5 * found.condition * oracle).all()


def test_condition_is_the_amplification_by_definition() -> None:
    """`1 / s_min` of the derivative of the weighted moments, taken by differences."""
    for seed in range(5):
        truth = reference.random_truth(np.random.default_rng(seed), 3, [3, 3, 3], 2.0)
        columns = []
        for j in range(3):
            root = np.sqrt(truth.weights[j])
            for view, i in [(v, i) for v in range(3) for i in range(3)]:
                factors = [f.copy() for f in truth.factors]
                factors[view][i, j] += 1e-6 / root
                columns.append(weighted(truth.weights, factors))
            weights = truth.weights.copy()
            weights[j] += 1e-6 * root
            columns.append(weighted(weights, truth.factors))
        derivative = (np.array(columns) - weighted(*truth)) / 1e-6
        expected = 1 / np.linalg.svd(derivative)[1][-1]
        found = decompose(*stacked([moments_of(*truth)]))
        np.testing.assert_allclose(found.condition[0], expected, rtol=1e-4)


def weighted(weights: Array, factors: Sequence[Array]) -> Array:
    third, first, second = moments_of(weights, factors)
    parts = [np.atleast_1d(weights.sum()), np.ravel(first), np.ravel(second), third.ravel()]
    return np.concatenate([np.sqrt(o) * x for o, x in zip(ORDERS, parts, strict=True)])


def test_the_fit_is_a_minimum_of_its_objective() -> None:
    """A general optimiser, from ours and from the truth, finds nothing lower (views that have no
    constant coordinate, so that nothing is fixed)."""
    for seed in range(3):
        rng = np.random.default_rng(seed)
        truth = reference.random_truth(rng, 3, [3, 3, 3], 1.0)
        exact = moments_of(*truth)
        noisy = Moments(*(jitter(rng, part) for part in exact))
        found = decompose(*stacked([noisy]))

        def value(x: Array, noisy: Moments = noisy) -> float:
            w, *factors = np.split(x, [3, 12, 21])
            return reference.objective(
                noisy, np.exp(w), [f.reshape(3, 3) for f in factors], ORDERS, PRIOR
            )

        parts = [found.weights[0], *(f[0] for f in found.factors)]
        starts = [
            np.concatenate([np.log(w), *(f.ravel() for f in fs)])
            for w, *fs in (parts, [truth.weights, *truth.factors])
        ]
        lowest = min(minimize(value, start, method="BFGS").fun for start in starts)
        assert value(starts[0]) < lowest + 0.05  # the weights were scaled to sum 1 at the end


def jitter(rng: np.random.Generator, part: Array | list[Array]) -> Array | list[Array]:
    if isinstance(part, list):
        return [x + 0.01 * rng.normal(size=x.shape) for x in part]
    return part + 0.01 * rng.normal(size=part.shape)


# ---- order, batches, threads ------------------------------------------------------------


def test_states_are_ordered_by_weight() -> None:
    found, _, _ = solve_all(samples(4, 2_000, (0.8, 0.8, 0.8), 30))
    assert (np.diff(found.weights, axis=1) <= 1e-9).all()


def test_order_does_not_depend_on_the_order_given() -> None:
    """Also with equal weights, where the factors decide."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = reference.random_truth(rng, 4, [4, 4, 4], 1.0)
        for weights in (truth.weights, np.full(4, 0.25)):
            turn = rng.permutation(4)
            one = decompose(*stacked([moments_of(weights, truth.factors)]))
            turned = [f[:, turn] for f in truth.factors]
            two = decompose(*stacked([moments_of(weights[turn], turned)]))
            np.testing.assert_allclose(one.weights, two.weights, atol=EXACT)
            for f, g in zip(one.factors, two.factors, strict=True):
                np.testing.assert_allclose(f, g, atol=EXACT)


def test_batch_equals_one_by_one() -> None:
    """With and without a constant coordinate, well and badly determined, in one batch."""
    rng = np.random.default_rng(0)
    batch = [s.moments for s in samples(3, 500, (0.8, 0.6, 0.4), 20)]
    batch += [moments_of(*reference.random_truth(rng, 3, [3, 3, 3], 1.0)) for _ in range(20)]
    batch = [batch[i] for i in rng.permutation(len(batch))]
    together = decompose(*stacked(batch))
    for i, moments in enumerate(batch):
        alone = decompose(*stacked([moments]))
        np.testing.assert_allclose(alone.weights[0], together.weights[i], atol=EXACT)
        np.testing.assert_allclose(alone.condition[0], together.condition[i], rtol=1e-6)
        for f, g in zip(alone.factors, together.factors, strict=True):
            np.testing.assert_allclose(f[0], g[i], atol=EXACT)


def test_same_answer_in_several_threads() -> None:
    moments = stacked([s.moments for s in samples(5, 1_000, (0.8, 0.6, 0.4), 20)])
    once = decompose(*moments)
    with ThreadPoolExecutor(4) as pool:
        for again in pool.map(lambda _: decompose(*moments), range(4)):
            np.testing.assert_array_equal(once.weights, again.weights)


def test_no_triplets() -> None:
    found = decompose(np.empty((0, 3, 3, 3)), [np.empty((0, 3))] * 3, [np.empty((0, 3, 3))] * 3)
    assert found.weights.shape == (0, 3)
    assert [f.shape for f in found.factors] == [(0, 3, 3)] * 3


# ---- moments that do not determine anything ------------------------------------------------


def test_all_zero() -> None:
    found = decompose(np.zeros((2, 3, 3, 3)), [np.zeros((2, 3))] * 3, [np.zeros((2, 3, 3))] * 3)
    check_valid(found)
    assert np.isinf(found.condition).all()


def test_fewer_states_than_asked_for() -> None:
    """Two equal columns in one view, a state too many in all: said by the condition."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        truth = reference.random_truth(rng, 3, [3, 3, 3], 1.0)
        one = [f.copy() for f in truth.factors]
        one[0][:, 2] = one[0][:, 1]
        two = reference.random_truth(rng, 2, [3, 3, 3], 1.0)
        found = decompose(*stacked([moments_of(truth.weights, one), moments_of(*two)]))
        check_valid(found)
        assert found.condition[1] > 1e3
        assert found.residual[1] < 0.1


def test_independent_views() -> None:
    """Only the constant is shared: weights and factors mean nothing, the means stay."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        tables = [np.repeat(rng.dirichlet(np.ones(3))[:, None], 3, axis=1) for _ in range(3)]
        sample = reference.sampled(rng, np.full(3, 1 / 3), tables, 1_000)
        found = decompose(*stacked([sample.moments]))
        check_valid(found)
        assert found.condition[0] > 5


@settings(max_examples=100, deadline=None)
@given(k=st.integers(1, 5), scale=st.floats(-20, 20), seed=st.integers(0, 2**32 - 1))
def test_anything_finite_has_an_answer(k: int, scale: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = [10.0**scale * rng.integers(0, 2) for _ in range(7)]
    shapes = [(1, k, k, k), *[(1, k)] * 3, *[(1, k, k)] * 3]
    third, *rest = [s * rng.normal(size=shape) for s, shape in zip(sizes, shapes, strict=True)]
    check_valid(decompose(third, rest[:3], rest[3:]))


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e40])
def test_what_is_no_number_is_refused(bad: float) -> None:
    third, first, second = stacked([s.moments for s in samples(3, 100, (0.8, 0.8, 0.8), 2)])
    second[1][1, 0, 2] = bad
    with pytest.raises(DataError, match=r"second moments hold .* at \(1, 0, 2\)") as refused:
        decompose(third, first, second)
    np.testing.assert_equal(refused.value.value, bad)


def test_wrong_shapes_are_refused() -> None:
    third, first, second = stacked([s.moments for s in samples(3, 100, (0.8, 0.8, 0.8), 2)])
    with pytest.raises(ValueError, match=r"third has shape \(3, 3, 3\); give \(m, k, k, k\)"):
        decompose(third[0], first, second)
    with pytest.raises(ValueError, match="first has arrays of shapes"):
        decompose(third, first[:2], second)
