"""Every family: likelihoods, sums, fits and samples, against slow versions and definitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.special import logsumexp
from tests.reference import emissions as slow

from latenttree.errors import DataError
from latenttree.model.emissions import (
    Emission,
    MultiHot,
    pooled,
    restored,
    soft_evidence,
    sums_of,
    target_of,
)
from latenttree.model.emissions.multihot import LEAST_SOME, chances_of_some

Maker = Callable[[np.random.Generator, int], Any]


def mixture(rng: np.random.Generator, n: int, d: int) -> Any:
    """Two groups of real vectors, apart in all coordinates."""
    groups = rng.integers(0, 2, n)[:, None]
    return rng.normal(size=(n, d)) * (1 + groups) + 2.5 * groups


def bags(rng: np.random.Generator, n: int) -> Any:
    chances = np.array([[0.5, 0.2, 0.1, 0.2], [0.1, 0.2, 0.5, 0.2]])[rng.integers(0, 2, n)]
    return np.array([rng.multinomial(rng.integers(1, 9), p) for p in chances], dtype=float)


def codes_of(rng: np.random.Generator, n: int) -> Any:
    chances = np.array([[0.6, 0.3, 0.05, 0.1, 0.2], [0.05, 0.1, 0.4, 0.3, 0.02]])
    return (rng.random((n, 5)) < chances[rng.integers(0, 2, n)]).astype(float)


def counts(rng: np.random.Generator, n: int, d: int) -> Any:
    return rng.poisson(np.array([1.0, 6.0])[rng.integers(0, 2, n)][:, None] * np.ones(d)) * 1.0


MAKERS: dict[str, tuple[str, Maker]] = {
    "scalar": ("gaussian", lambda rng, n: mixture(rng, n, 1)[:, 0]),
    "diagonal": ("gaussian_diagonal", lambda rng, n: mixture(rng, n, 3)),
    "spherical": ("gaussian_spherical", lambda rng, n: mixture(rng, n, 3)),
    "full": ("gaussian_full", lambda rng, n: mixture(rng, n, 3) @ np.triu(np.ones((3, 3)))),
    "tied": ("gaussian_tied", lambda rng, n: mixture(rng, n, 3) @ np.triu(np.ones((3, 3)))),
    "full scalar": ("gaussian_full", lambda rng, n: mixture(rng, n, 1)[:, 0]),
    "sparse diagonal": (
        "gaussian_diagonal",
        lambda rng, n: sparse.csr_array(mixture(rng, n, 4) * (rng.random((n, 4)) < 0.4)),
    ),
    "sparse spherical": (
        "gaussian_spherical",
        lambda rng, n: sparse.csr_array(mixture(rng, n, 4) * (rng.random((n, 4)) < 0.4)),
    ),
    "count": ("poisson", lambda rng, n: counts(rng, n, 1)[:, 0]),
    "counts": ("poisson", lambda rng, n: counts(rng, n, 3)),
    "sparse counts": ("poisson", lambda rng, n: sparse.csr_array(counts(rng, n, 3))),
    "bags": ("multinomial", bags),
    "sparse bags": ("multinomial", lambda rng, n: sparse.csr_array(bags(rng, n))),
    "multihot": ("multihot", codes_of),
    "sparse multihot": ("multihot", lambda rng, n: sparse.csr_array(codes_of(rng, n))),
}
ALL = pytest.mark.parametrize("name", sorted(MAKERS))
GAPPY = ("scalar", "diagonal", "spherical", "full", "tied", "count", "counts", "bags", "multihot")
WITH_GAPS = pytest.mark.parametrize(
    ("name", "gaps"), [*((name, 0.0) for name in MAKERS), *((name, 0.3) for name in GAPPY)]
)


def made(name: str, n: int, seed: int = 0, gaps: float = 0.0) -> tuple[str, Any]:
    rng = np.random.default_rng(seed)
    family, maker = MAKERS[name]
    values = maker(rng, n)
    if gaps:
        values = np.where(rng.random(values.shape) < gaps, np.nan, values)
    return family, values


def fitted(name: str, n: int = 60, k: int = 2, seed: int = 0, gaps: float = 0.0) -> Any:
    """A member in general position, its values and their target."""
    family, values = made(name, n, seed, gaps)
    start = pooled(family, values, k)
    target = target_of(start, values)
    weights = np.random.default_rng(seed + 1).dirichlet(np.full(k, 0.5), n)
    return start.from_sums(start.sums(values, weights), 1.0, target), values, target


# ---- likelihoods and sums against slow versions --------------------------------------------


@ALL
def test_likelihood_is_that_of_the_definition(name: str) -> None:
    emission, values, _ = fitted(name)
    np.testing.assert_allclose(
        emission.log_likelihood(values),
        slow.log_likelihood(emission, values),
        rtol=1e-9,
        atol=1e-12,
    )


@pytest.mark.parametrize("name", GAPPY)
def test_gaps_are_summed_out(name: str) -> None:
    emission, values, _ = fitted(name, gaps=0.3)
    found = emission.log_likelihood(values)
    np.testing.assert_allclose(found, slow.log_likelihood(emission, values), rtol=1e-9, atol=1e-12)
    nothing = np.full_like(values, np.nan)
    assert (emission.log_likelihood(nothing) == 0).all()
    assert (emission.sums(nothing, np.ones((len(values), 2))) == 0).all()


@WITH_GAPS
def test_sums_are_those_of_single_samples(name: str, gaps: float) -> None:
    emission, values, _ = fitted(name, gaps=gaps)
    weights = np.random.default_rng(5).normal(size=(60, 3))  # moments have negative ones
    found = emission.sums(values, weights)
    np.testing.assert_allclose(found, slow.sums(emission, values, weights), atol=1e-9)
    halves = [emission.sums(values[s], weights[s]) for s in (slice(0, 23), slice(23, None))]
    np.testing.assert_allclose(sum(halves), found, atol=1e-9)


@ALL
def test_likelihood_is_linear_in_the_statistics(name: str) -> None:
    """`sum_i w_ij log P(x_i | j)` differs from `sums . natural` by what no parameter changes."""
    emission, values, target = fitted(name)
    other = emission.from_sums(emission.expected_sums()[:, ::-1], 0.5, target)
    weights = np.random.default_rng(2).random((60, 2))
    sums = emission.sums(values, weights)
    rests = [
        (weights * e.log_likelihood(values)).sum() - (sums * e.natural()).sum()
        for e in (emission, other)
    ]
    np.testing.assert_allclose(rests[0], rests[1], atol=1e-8)


def test_threads_change_nothing() -> None:
    """To the last bit, for all families side by side on two hidden nodes."""
    found = {v: fitted(name) for v, name in enumerate(sorted(MAKERS))}
    emissions = {v: e for v, (e, _, _) in found.items()}
    values = {v: x for v, (_, x, _) in found.items()}
    parents = {v: 100 + v % 2 for v in found}
    weights = {v: np.random.default_rng(v).normal(size=(60, 2)) for v in found}
    soft, scale = soft_evidence(emissions, parents, values)
    sums = sums_of(emissions, values, weights)
    again, scale_again = soft_evidence(emissions, parents, values, n_jobs=3)
    np.testing.assert_array_equal(scale, scale_again)
    for u in (100, 101):
        np.testing.assert_array_equal(soft[u], again[u])
        logs = sum(emissions[v].log_likelihood(values[v]) for v in found if parents[v] == u)
        ratios = np.exp(logs - logs.max(axis=1, keepdims=True))
        np.testing.assert_allclose(soft[u], ratios, rtol=1e-9, atol=1e-300)
    for v, part in sums_of(emissions, values, weights, n_jobs=3).items():
        np.testing.assert_array_equal(part, sums[v])
        np.testing.assert_allclose(part, emissions[v].sums(values[v], weights[v]), atol=1e-9)


@pytest.mark.parametrize(
    "name", ["sparse diagonal", "sparse spherical", "sparse counts", "sparse bags"]
)
def test_sparse_is_dense(name: str) -> None:
    emission, values, target = fitted(name)
    dense, weights = values.toarray(), np.random.default_rng(3).normal(size=(60, 2))
    np.testing.assert_allclose(
        emission.log_likelihood(values), emission.log_likelihood(dense), rtol=1e-10, atol=1e-12
    )
    np.testing.assert_allclose(
        emission.sums(values, weights), emission.sums(dense, weights), atol=1e-10
    )
    start = pooled(emission.family, dense, 2)
    other = start.from_sums(
        start.sums(dense, np.abs(weights)), 1.0, target_of(start, dense)
    ).log_likelihood(dense)
    own = emission.from_sums(emission.sums(values, np.abs(weights)), 1.0, target)
    np.testing.assert_allclose(own.log_likelihood(values), other, rtol=1e-8)


def test_a_sparse_block_of_100_000_coordinates_stays_sparse() -> None:
    """A dense copy of it would be 1.6 GB."""
    rng = np.random.default_rng(0)
    places = rng.integers(2000, size=20_000), rng.integers(100_000, size=20_000)
    x = sparse.csr_array((rng.random(20_000), places), shape=(2000, 100_000))
    for family in ("gaussian_diagonal", "gaussian_spherical", "poisson", "multinomial"):
        values = x.astype(np.float64)
        values.data = np.ceil(values.data * 3)
        start = pooled(family, values, 3)
        fit = start.from_sums(
            start.sums(values, rng.dirichlet(np.ones(3), 2000)), 1.0, target_of(start, values)
        )
        assert np.isfinite(fit.log_likelihood(values)).all()
    few = fit.sample(np.array([0, 1, 2]), rng)
    assert sparse.issparse(few)
    assert few.shape == (3, 100_000)


# ---- fits ------------------------------------------------------------------------------------


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@ALL
def test_a_fit_is_a_maximum(name: str, smoothing: float) -> None:
    """Steps away from it in any direction, small or large, lower the smoothed likelihood."""
    emission, values, target = fitted(name, n=200)
    weights = np.random.default_rng(4).dirichlet([2.0, 2.0], 200)
    best = emission.from_sums(emission.sums(values, weights), smoothing, target)

    def objective(e: Emission) -> float:
        return float((weights * e.log_likelihood(values)).sum()) + smoothing * e.log_prior(target)

    top, rng = objective(best), np.random.default_rng(6)
    for size in (1e-3, 0.1):
        for _ in range(20):
            vector = best.vector()
            other = best.with_vector(vector + size * rng.normal(size=len(vector)))
            assert objective(other) <= top + 1e-9 * abs(top)


@pytest.mark.parametrize("smoothing", [0.0, 2.0])
@WITH_GAPS
def test_em_of_a_mixture_only_climbs(name: str, gaps: float, smoothing: float) -> None:
    k, n = 3, 300
    family, values = made(name, n, 8, gaps)
    emission = pooled(family, values, k)
    target = target_of(emission, values)
    start = np.random.default_rng(9).dirichlet(np.ones(k), n)
    emission = emission.from_sums(emission.sums(values, start), smoothing, target)
    prior, last = np.full(k, 1 / k), -np.inf
    for _ in range(40):
        joint = emission.log_likelihood(values) + np.log(prior)
        evidence = logsumexp(joint, axis=1)
        score = evidence.sum() + smoothing * emission.log_prior(target)
        assert score >= last - 1e-8 * abs(score)
        last = score
        q = np.exp(joint - evidence[:, None])
        prior = q.mean(axis=0)
        emission = emission.from_sums(emission.sums(values, q), smoothing, target)


@ALL
def test_an_empty_state_is_the_pooled_one(name: str) -> None:
    emission, values, target = fitted(name)
    start = pooled(emission.family, values, 2)
    empty = emission.from_sums(np.zeros_like(emission.natural()), 0.0, target)
    np.testing.assert_allclose(
        empty.log_likelihood(values), start.log_likelihood(values), rtol=1e-6, atol=1e-9
    )


@ALL
def test_impossible_sums_give_a_possible_member(name: str) -> None:
    """Sums of noise, with negative counts, rates and variances."""
    emission, values, target = fitted(name)
    rng = np.random.default_rng(11)
    for size in (1e-6, 1.0, 1e6):
        for _ in range(20):
            sums = size * rng.normal(size=emission.natural().shape)
            member = emission.from_sums(sums, 0.0, target)
            assert np.isfinite(member.log_likelihood(values)).all()
            assert np.isfinite(member.mean()).all()


def one_group(means: np.ndarray) -> np.ndarray:
    owner = np.zeros(len(means), dtype=np.int64)
    return chances_of_some(means, owner[:1], owner)[0]


def test_a_chance_of_some_code_solves_its_equation() -> None:
    """Also where exactly one code occurs: a categorical variable."""
    rng = np.random.default_rng(0)
    q = rng.uniform(1e-7, 0.9, (6, 200)) * rng.uniform(1e-6, 1.0, 200)
    some = -np.expm1(np.log1p(-q).sum(axis=0))
    np.testing.assert_allclose(one_group(q / some), some, rtol=1e-5)
    assert one_group(np.array([[0.2], [0.5], [0.3]])) == LEAST_SOME
    one = np.eye(4)[rng.choice(4, 500, p=[0.1, 0.2, 0.3, 0.4])]
    start = pooled("multihot", one, 1)
    shares = one.mean(axis=0)
    np.testing.assert_allclose(start.mean()[1:, 0], shares, rtol=1e-6)
    np.testing.assert_allclose(
        start.log_likelihood(one)[:, 0], np.log(shares)[one.argmax(axis=1)], atol=1e-6
    )


@pytest.mark.parametrize("size", [1e-12, 1e-150, 1e12, 1e150])
@pytest.mark.parametrize("name", ["scalar", "diagonal", "spherical", "full", "tied"])
def test_units_do_not_matter(name: str, size: float) -> None:
    emission, values, _ = fitted(name)
    family, weights = emission.family, np.random.default_rng(1).dirichlet(np.full(2, 0.5), 60)
    start = pooled(family, values * size, 2)
    other = start.from_sums(
        start.sums(values * size, weights), 1.0, target_of(start, values * size)
    )
    d = values[0].size
    np.testing.assert_allclose(
        other.log_likelihood(values * size) + d * np.log(size),
        emission.log_likelihood(values),
        rtol=1e-6,
        atol=1e-6,
    )


def test_tiny_beside_huge_and_far_from_zero() -> None:
    """Coordinates of 1e-12 and 1e12, and noise of 1e-3 around a million, keep their digits."""
    rng = np.random.default_rng(0)
    groups = np.repeat([0, 1], 500)
    z = rng.normal(size=(1000, 3)) + 4 * groups[:, None]
    values = z * [1e-12, 1e12, 1e-3] + [0.0, 0.0, 1e6]
    posterior = np.eye(2)[groups]
    for family in ("gaussian_diagonal", "gaussian_full"):
        start = pooled(family, values, 2)
        fit = start.from_sums(start.sums(values, posterior), 0.0, target_of(start, values))
        means = np.stack([values[groups == j].mean(axis=0) for j in (0, 1)], axis=1)
        np.testing.assert_allclose(fit.mean()[:2], means[:2], rtol=1e-9)
        np.testing.assert_allclose(fit.mean()[2] - 1e6, means[2] - 1e6, atol=1e-8)
        found = fit.log_likelihood(values)
        assert ((found[:, 1] > found[:, 0]) == (groups == 1)).mean() > 0.99


def test_constant_and_collinear_coordinates_survive() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 1))
    values = np.hstack([x, 2 * x, np.full((200, 1), 7.0), np.zeros((200, 1))])
    for family in ("gaussian_diagonal", "gaussian_spherical", "gaussian_full", "gaussian_tied"):
        start = pooled(family, values, 2)
        fit = start.from_sums(
            start.sums(values, rng.dirichlet(np.ones(2), 200)), 0.0, target_of(start, values)
        )
        assert np.isfinite(fit.log_likelihood(values)).all()


def test_weights_are_repetitions() -> None:
    for name in MAKERS:
        family, values = made(name, 40)
        times = np.random.default_rng(0).integers(0, 4, 40)
        often = values[np.repeat(np.arange(40), times)]
        a, b = pooled(family, values, 2, times.astype(float)), pooled(family, often, 2)
        np.testing.assert_allclose(
            a.log_likelihood(values), b.log_likelihood(values), rtol=1e-7, atol=1e-9
        )


# ---- parameters as vectors and arrays, states renamed and merged ------------------------------


@ALL
def test_round_trips(name: str) -> None:
    emission, values, target = fitted(name)
    expected = emission.log_likelihood(values)
    again = {
        "vector": emission.with_vector(emission.vector()),
        "arrays": restored(emission.family, emission.to_arrays()),
        "sums": emission.from_sums(emission.expected_sums(), 0.0, target),
    }
    for other in again.values():
        np.testing.assert_allclose(other.log_likelihood(values), expected, rtol=1e-6, atol=1e-9)
        assert (other.family, other.n_states) == (emission.family, 2)
    for array in emission.to_arrays().values():
        assert isinstance(array, np.ndarray)
        assert array.dtype != object


@ALL
def test_parameters_are_counted(name: str) -> None:
    """Free parameters are directions of the vector in which likelihoods differ."""
    emission, values, _ = fitted(name, n=100)
    vector = emission.vector()
    steps = 1e-5 * np.eye(len(vector))
    slopes = [
        emission.with_vector(vector + s).log_likelihood(values)
        - emission.with_vector(vector - s).log_likelihood(values)
        for s in steps
    ]
    singular = np.linalg.svd(np.stack([s.ravel() for s in slopes]), compute_uv=False)
    assert (singular > 1e-5 * singular[0]).sum() == emission.n_parameters


@ALL
def test_states_are_renamed_and_mixed(name: str) -> None:
    emission, values, _ = fitted(name, k=3)
    order = [2, 0, 1]
    np.testing.assert_allclose(
        emission.relabelled(order).log_likelihood(values), emission.log_likelihood(values)[:, order]
    )
    matrix = np.array([[0.25, 0.0], [0.75, 0.0], [0.0, 1.0]])
    merged = emission.mixed(matrix)
    assert merged.n_states == 2
    expected = emission.expected_sums() @ matrix
    if name not in ("tied", "spherical", "sparse spherical"):  # they share the spread out
        np.testing.assert_allclose(merged.expected_sums(), expected, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(merged.mean(), emission.mean() @ matrix, rtol=1e-6)


# ---- samples -----------------------------------------------------------------------------------


@ALL
def test_samples_have_the_moments_of_their_state(name: str) -> None:
    """Mean statistics of 20,000 draws a state, each within 5.5 standard errors: with about 200 of
    them, false alarm below one in 100,000."""
    emission, _, _ = fitted(name)
    rng, n = np.random.default_rng(12), 20_000
    states = rng.permutation(np.repeat([0, 1], n))
    drawn = emission.sample(states, rng)
    assert drawn.shape[0] == 2 * n
    posterior = np.eye(2)[states]
    t = np.stack([emission.sums(drawn[i : i + 1], np.ones((1, 1)))[:, 0] for i in range(4000)])
    deviation = np.stack([t[states[:4000] == j].std(axis=0) for j in (0, 1)], axis=1)
    error = emission.sums(drawn, posterior) / n - emission.expected_sums()
    if name == "bags" or name == "sparse bags":
        assert (slow.rows_of(drawn).sum(axis=1) == emission.size).all()
    assert (np.abs(error) <= 5.5 * deviation / np.sqrt(n) + 1e-3 / np.sqrt(n)).all()


@ALL
def test_moments_are_those_of_draws(name: str) -> None:
    """Means and standard deviations of 40,000 draws of a mixture, each within 5.5 standard errors:
    with fewer than 200 of them, false alarm below one in 100,000."""
    emission, _, _ = fitted(name)
    rng, n = np.random.default_rng(5), 40_000
    states = (rng.random(n) < 0.7).astype(np.int64)
    drawn = slow.rows_of(emission.sample(states, rng))
    mean, std = emission.moments(np.array([[0.3, 0.7]]))
    assert mean.shape == std.shape == (1, drawn.shape[1])
    off = drawn - mean[0]
    error = np.abs(off.mean(axis=0))
    assert (error <= 5.5 * off.std(axis=0) / np.sqrt(n) + 1e-9).all()
    error = np.abs((off**2).mean(axis=0) - std[0] ** 2)
    assert (error <= 5.5 * (off**2).std(axis=0) / np.sqrt(n) + 1e-9).all()


@ALL
def test_imputed_values_are_of_the_family(name: str) -> None:
    emission, values, _ = fitted(name)
    posterior = np.array([[1.0, 0.0], [0.3, 0.7]])
    found = emission.impute(posterior)
    assert found.shape == (2, *values.shape[1:])
    dense = slow.rows_of(found)
    if emission.family.startswith("gaussian"):
        np.testing.assert_allclose(dense, posterior @ emission.mean().T)
    elif emission.family == "multihot":
        assert set(np.unique(dense)) <= {0.0, 1.0}
    elif emission.family != "multinomial":
        assert (dense == np.rint(dense)).all()


def test_a_group_of_codes_is_imputed_as_none_where_none_is_likely() -> None:
    emission = MultiHot(np.array([0.9, 0.1]), np.array([[0.3, 0.9], [0.4, 0.1]]))
    np.testing.assert_array_equal(emission.impute(np.eye(2)), [[0, 0], [1, 0]])


# ---- refusals ------------------------------------------------------------------------------------


def test_an_unknown_family_is_named() -> None:
    with pytest.raises(ValueError, match="'gamma' is unknown"):
        pooled("gamma", np.ones(3), 2)


def test_too_wide_a_covariance_is_refused() -> None:
    with pytest.raises(DataError, match=r"5,000 coordinates .* 'gaussian_diagonal'") as refused:
        pooled("gaussian_full", sparse.csr_array((3, 5000)), 2)
    assert (refused.value.place.option, refused.value.value) == ("family", 5000)
