"""From samples to a Gaussian tree: consistent, as good as the likelihood allows, in any units."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.gaussian import random_case, random_gaussian, with_gaps
from tests.reference.random_trees import random_tree
from tests.reference.stages import fit_gaussian

import latenttree as lt
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.gauge import canonical_gauge
from latenttree.refinement.fitted import Fitted
from latenttree.tree import Tree


def truth(seed: int, p: int, k: int, d: int, strength: Any = (0.6, 0.8)) -> GaussianTreeModel:
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, p, shape="balanced", max_degree=4)
    dims = np.where(np.arange(tree.n_nodes) < p, d, k)
    return canonical_gauge(random_gaussian(rng, tree, dims, strength=strength))


def drawn(model: GaussianTreeModel, seed: int, n: int, share: float = 0.0) -> tuple[Any, Any]:
    rng = np.random.default_rng(1000 + seed)
    X, hidden = model.sample(n, rng)
    return with_gaps(rng, X, share), hidden


def fit(model: GaussianTreeModel, X: Any, **options: Any) -> Fitted:
    k = int(model.dims[-1]) if model.tree.n_hidden else 1
    return fit_gaussian(model.tree, X, model.offsets, k, **options)


def loadings(model: GaussianTreeModel, leaf: int, unit: Any) -> Any:
    return model.loadings[leaf] / unit[:, None]


def squared_errors(
    model: GaussianTreeModel, X: Any, hidden: Any, found: Any
) -> tuple[float, float]:
    """Squared error of the standardised loadings of all leaves: of an estimate, each hidden node
    turned to fit best, and of the oracle, which regresses on the hidden values."""
    p, k = model.tree.n_observed, int(model.dims[-1])
    error = oracle = 0.0
    units = [np.sqrt(model.variances(v)) for v in range(p)]
    for h in range(p, model.tree.n_nodes):
        leaves = [v for v in range(p) if model.parents[v] == h]
        if not leaves:
            continue
        columns = np.concatenate(
            [np.arange(model.offsets[v], model.offsets[v + 1]) for v in leaves]
        )
        true = np.concatenate([loadings(model, v, units[v]) for v in leaves])
        near = np.concatenate([loadings(found, v, units[v]) for v in leaves])
        left, _, right = np.linalg.svd(near.T @ true)
        error += float(((near @ left @ right - true) ** 2).sum())
        state = hidden[:, (h - p) * k : (h - p + 1) * k]
        design = np.column_stack([np.ones(len(X)), state])
        regressed = np.linalg.lstsq(design, X[:, columns], rcond=None)[0][1:].T
        unit = np.concatenate([units[v] for v in leaves])
        oracle += float(((regressed / unit[:, None] - true) ** 2).sum())
    return error, oracle


# ---- accuracy -------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 3)])
def test_error_shrinks_with_the_root_of_the_sample(k: int, d: int) -> None:
    """Root mean squares over 8 seeds of about 20 loadings each, at 16 times the samples: expected
    ratio 4; each has relative deviation about 1 / sqrt(2 * 100), so 3 to 5.4 is four of them."""
    errors = np.zeros(2)
    for seed in range(8):
        model = truth(seed, 9, k, d)
        for i, n in enumerate((2000, 32_000)):
            X, hidden = drawn(model, seed, n)
            errors[i] += squared_errors(model, X, hidden, fit(model, X).model)[0]
    assert 3.0 < np.sqrt(errors[0] / errors[1]) < 5.4


@pytest.mark.slow
def test_near_the_oracle_where_the_leaves_tell_the_hidden_values() -> None:
    """k = 2, leaves of six coordinates, N = 50,000: little is lost by not seeing the hidden values.
    (Where a node has three weak scalars, the maximum of the likelihood itself is 1.5 to 2 times the
    oracle.) Measured 1.2; deviation over 300 loadings below 0.05."""
    errors = np.zeros(2)
    for seed in range(3):
        model = truth(seed, 9, 2, 6, strength=(0.8, 0.9))
        X, hidden = drawn(model, seed, 50_000)
        errors += squared_errors(model, X, hidden, fit(model, X).model)
    assert np.sqrt(errors[0] / errors[1]) <= 1.3


@pytest.mark.parametrize("share", [0.0, 0.3])
@pytest.mark.parametrize(("k", "d"), [(1, 1), (2, 3)])
def test_as_likely_as_the_maximum_next_to_the_truth(k: int, d: int, share: float) -> None:
    """Twice the gain over the truth is chi-squared with as many degrees as parameters: within five
    deviations, with probability of failure below 1e-5."""
    model = truth(5, 9, k, d)
    X, _ = drawn(model, 5, 5000, share)
    found = fit(model, X)
    gain = 2 * (found.model.log_likelihood(X) - model.log_likelihood(X)).sum()
    n = model.n_parameters
    assert found.converged
    assert n - 5 * np.sqrt(2 * n) < gain < n + 5 * np.sqrt(2 * n)


def test_a_star_of_three_has_the_covariance_of_the_samples() -> None:
    """As many parameters as moments: the maximum reproduces them."""
    tree = random_tree(np.random.default_rng(0), 3)
    model = random_gaussian(np.random.default_rng(0), tree, np.ones(4, dtype=np.int64))
    X, _ = drawn(model, 0, 500)
    found = fit(model, X, smoothing=0.0, tol=1e-12)
    np.testing.assert_allclose(found.model.covariance(range(3)), np.cov(X.T, bias=True), rtol=1e-5)


def test_imputation_by_a_fitted_model_is_as_good_as_by_the_truth() -> None:
    model = truth(2, 27, 1, 1)
    X, _ = drawn(model, 2, 20_000)
    held = np.random.default_rng(0).random(X.shape) < 0.3
    gaps = np.where(held, np.nan, X)
    unit = np.sqrt(np.concatenate([model.variances(v) for v in range(27)]))
    losses = [
        (((m.impute(gaps) - X) / unit)[held] ** 2).mean() for m in (fit(model, gaps).model, model)
    ]
    assert losses[0] < 1.005 * losses[1]  # 160,000 values, 80 parameters


# ---- what must not matter -------------------------------------------------------------


def assert_same_model(a: GaussianTreeModel, b: GaussianTreeModel, rtol: float) -> None:
    for name in ("means", "loadings", "noise"):
        for x, y in zip(getattr(a, name), getattr(b, name), strict=True):
            size = float(np.abs(y).max(initial=1e-300))
            np.testing.assert_allclose(x, y, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_integer_weights_are_repeated_rows(share: float) -> None:
    model = truth(1, 9, 2, 2)
    X, _ = drawn(model, 1, 400, share)
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    one = fit(model, X, weights=weights)
    other = fit(model, X[np.repeat(np.arange(len(X)), weights)])
    assert_same_model(one.model, other.model, rtol=1e-6)
    np.testing.assert_allclose(one.effective_samples, other.effective_samples, rtol=1e-6)
    np.testing.assert_allclose(one.trace[0], other.trace[0], rtol=1e-10)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_threads_change_nothing(share: float) -> None:
    model = truth(4, 9, 2, 2)
    X, _ = drawn(model, 4, 9000, share)
    one, two = fit(model, X, max_iter=10), fit(model, X, max_iter=10, n_jobs=2)
    assert one.trace == two.trace
    for a, b in zip(one.model.loadings, two.model.loadings, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("share", [0.0, 0.2])
def test_units_change_nothing(share: float) -> None:
    """Columns in units from 1e-12 to 1e12."""
    model = truth(6, 9, 1, 1)
    X, _ = drawn(model, 6, 600, share)
    unit = 10.0 ** np.linspace(-12, 12, 9)
    one, other = fit(model, X), fit(model, X * unit)
    shift = (~np.isnan(X)).sum(axis=0) @ np.log(unit)
    np.testing.assert_allclose(np.array(other.trace) + shift, one.trace, rtol=1e-8)
    for v in range(9):
        np.testing.assert_allclose(
            other.model.loadings[v], one.model.loadings[v] * unit[v], rtol=1e-6
        )


# ---- every shape of tree --------------------------------------------------------------


def test_trees_without_hidden_nodes() -> None:
    """A chain of observed scalars: regressions; one variable: its mean and variance."""
    rng = np.random.default_rng(0)
    X = np.cumsum(rng.standard_normal((400, 3)), axis=1)
    tree = Tree.build(["a", "b", "c"], [(0, 1), (1, 2)], [1.0, 1.0])
    found = fit_gaussian(tree, X, np.arange(4), 1, smoothing=0.0)
    covariance = np.cov(X.T, bias=True)
    expected = covariance[0, 1] / covariance[0, 0]
    np.testing.assert_allclose(found.model.conditional("b", "a"), expected, rtol=1e-6)
    assert found.effective_samples.shape == (0,)
    assert found.model.posterior_means(X).shape == (400, 0)
    alone = fit_gaussian(Tree.build(["a"], [], []), X[:, :1], [0, 1], 1, smoothing=0.0).model
    np.testing.assert_allclose(alone.noise[0], X[:, :1].var(), rtol=1e-9)
    np.testing.assert_allclose(alone.means[0], X[:, 0].mean(), rtol=1e-9)


@pytest.mark.slow
def test_small_noisy_samples_of_any_tree() -> None:
    """A handful of samples with gaps on every kind of tree: a valid model, finite likelihoods."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        model = random_case(rng, p=int(rng.integers(1, 9)))
        X = with_gaps(rng, model.sample(12, rng)[0], 0.15)
        X[:2] = model.sample(2, rng)[0]  # no column without two values
        found = fit(model, X, max_iter=40)
        assert np.isfinite(found.model.log_likelihood(X)).all()
        assert np.diff(found.trace).min() > -1e-9 * abs(found.trace[-1])
        assert ((found.effective_samples >= 0) & (found.effective_samples <= len(X))).all()


def test_collinear_columns() -> None:
    """Copies and sums of columns, within a vector and between: the floor of the noise holds."""
    model = truth(0, 9, 1, 2)
    X, _ = drawn(model, 0, 300)
    X[:, 1] = 2 * X[:, 0]
    X[:, 4] = X[:, 2] + 1
    found = fit(model, X)
    assert np.isfinite(found.model.log_likelihood(X)).all()
    assert np.diff(found.trace).min() > -1e-9 * abs(found.trace[-1])


def test_wide_leaves_have_diagonal_noise() -> None:
    rng = np.random.default_rng(0)
    tree = random_tree(rng, 5, shape="star")
    model = random_gaussian(rng, tree, np.array([20] * 4 + [1, 1]), diagonal=True)
    X, _ = drawn(model, 0, 2000, 0.1)
    found = fit(model, X).model
    assert [a.ndim for a in found.noise] == [1] * 4 + [2] * 2
    gain = 2 * (found.log_likelihood(X) - model.log_likelihood(X)).sum()
    n = model.n_parameters
    assert abs(gain - n) < 5 * np.sqrt(2 * n)


# ---- the result -----------------------------------------------------------------------


def test_the_result_says_how_it_came_about() -> None:
    model = truth(3, 9, 1, 1)
    X, _ = drawn(model, 3, 2000)
    whole = lt.LatentTree(hidden="gaussian", random_state=0, n_jobs=1).fit(X)
    assert {"parameters", "refinement"} <= set(whole.diagnostics_.stage_seconds)
    found = fit(model, X)
    assert found.converged
    assert found.condition.shape == found.effective_samples.shape == (model.tree.n_hidden,)
    # what a sample tells of a hidden node is what its posterior moves
    spread = found.model.posterior_means(X).var(axis=0)
    np.testing.assert_allclose(found.effective_samples / 2000, spread, atol=0.02)
    plain = fit(model, X, refine=None)
    assert plain.trace == []
    assert plain.model.log_likelihood(X).sum() < found.model.log_likelihood(X).sum()
    # with pseudo-samples in the trace, the last step's gain is all that is between
    without = fit(model, X, smoothing=0.0)
    total = without.model.log_likelihood(X).sum()
    np.testing.assert_allclose(without.trace[-1], total, rtol=0, atol=0.01)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"X": np.ones((1, 3))}, "1 sample"),
        ({"X": np.array([[0, 1, 2], [np.inf, 0, 1.0]])}, "inf.* at row 1, column 'x0'"),
        ({"X": np.ones((5, 3))}, "all 3 columns are constant"),
        ({"sample_weight": -np.ones(5)}, "sample_weight of row 0 is -1"),
        ({"sample_weight": np.zeros(5)}, "all 5 sample weights are zero"),
        ({"sample_weight": np.ones(4)}, "but X has 5 rows"),
        ({"n_states": 0}, "n_states must be an integer >= 1"),
    ],
)
def test_wrong_input_is_refused(change: dict[str, Any], message: str) -> None:
    """Before anything is learned: moments and EM trust what the table has checked."""
    X = np.random.default_rng(0).standard_normal((5, 3))
    given = {"X": X, "n_states": 1} | change
    model = lt.LatentTree(hidden="gaussian", n_states=given.pop("n_states"))
    with pytest.raises(DataError, match=message):
        model.fit(**given)
