"""make_latent_tree beyond categories: families, mixed trees, gaps, Gaussian trees; the oracle."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from benchmarks.oracle import oracle
from latenttree.data import Table, as_table
from latenttree.errors import DataError
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import parameter_error
from latenttree.evaluation.simulation import seen_length
from latenttree.model.inference import Evidence
from latenttree.model.samples import evidence_of

FAMILIES = (
    "gaussian",
    "gaussian_spherical",
    "gaussian_diagonal",
    "gaussian_full",
    "gaussian_tied",
    "poisson",
    "multinomial",
    "multihot",
)
ALL = pytest.mark.parametrize("family", FAMILIES)


def simulated(family: Any, n: int, seed: int = 0, **options: Any) -> LatentTreeData:
    chosen: dict[str, Any] = {"n_states": 3, "n_categories": 4, "shape": "star"} | options
    return make_latent_tree(3, family=family, n_samples=n, random_state=seed, **chosen)


def prior_of(data: LatentTreeData, v: int) -> np.ndarray:
    return np.asarray(data.model.marginals[int(data.model.parents[v])])


def sampled_length(data: LatentTreeData, table: Table, v: int) -> float:
    """From canonical correlations of the table's own coordinates with the true hidden states."""
    if table.codes is not None:
        x = np.eye(int(table.dims[v]))[table.codes[:, v]]
    else:
        x = table.matrix[:, table.offsets[v] : table.offsets[v + 1]].toarray().astype(float)
    h = np.eye(3)[data.hidden[:, 0]]
    x, h = x - x.mean(axis=0), h - h.mean(axis=0)
    explained = np.linalg.pinv(x.T @ x, rcond=1e-6) @ (x.T @ h)
    explained = np.linalg.pinv(h.T @ h, rcond=1e-6) @ (h.T @ x) @ explained
    squares = np.sort(np.linalg.eigvals(explained).real)[-2:]
    return float(-0.5 * np.log(squares).sum())


# ---- lengths -----------------------------------------------------------------------------------


@ALL
@pytest.mark.parametrize("length", [0.3, 1.0])
def test_edges_have_the_length_that_was_asked(family: str, length: float) -> None:
    data = simulated(family, 1, leaf_length=length, edge_length=length)
    for v, emission in data.emissions.items():
        # t to ten digits; bins of counts jump from one count to the next
        error = 0.02 if family == "poisson" else 1e-6
        assert seen_length(emission, prior_of(data, v)) == pytest.approx(length, abs=error)


@pytest.mark.slow
@ALL
def test_the_structure_sees_that_length(family: str) -> None:
    """From 40,000 samples: the standard error of a length of 0.5 is below 0.01; 64 bins of noise
    add about 64 / 40,000 to each squared correlation. Five of these for 24 leaves. Where bins see
    more than the coordinates, which full covariances were made for, a length is shorter."""
    data = simulated(family, 40_000)
    table = as_table(data.X, family=data.family)
    for v in range(3):
        found = sampled_length(data, table, v)
        slack = 0.15 if family in ("gaussian_full", "gaussian_tied") else 0.05
        assert 0.5 - slack < found < 0.55


# ---- samples -----------------------------------------------------------------------------------


@pytest.mark.parametrize("family", [*FAMILIES, "mixed"])
def test_samples_follow_their_emissions(family: str) -> None:
    """Mean statistics in each hidden state within 5.5 standard errors: with about 600 of them in
    all, false alarm below one in 20,000."""
    data = simulated(family, 6000)
    for v, emission in data.emissions.items():
        values, states = data.values(v), data.hidden[:, 0]
        posterior = np.eye(3)[states]
        counts = posterior.sum(axis=0)
        mean = emission.sums(values, posterior) / counts
        each = np.stack([emission.sums(values[[i]], np.ones((1, 1)))[:, 0] for i in range(900)])
        spread = np.stack([each[states[:900] == j].std(axis=0) for j in range(3)], axis=1)
        error = np.abs(mean - emission.expected_sums())
        # a rare code may not be among the 900
        assert (error <= 5.5 * (spread + 0.05) / np.sqrt(counts)).all()


def test_the_model_explains_the_samples_better_than_another() -> None:
    """Log-likelihoods of 5,000 mixed samples under their own truth and under another seed's."""
    one, other = (
        make_latent_tree(9, 3, 4, family="mixed", n_samples=5000, random_state=s) for s in (0, 1)
    )
    table = as_table(one.X, family=one.family)
    chunk = table.chunk(0, 5000)
    scores = []
    for data in (one, other):
        evidence: Evidence = evidence_of(chunk, data.model)
        scores.append(data.model.log_likelihood(evidence).mean())
    assert scores[0] > scores[1] + 1


def test_containers() -> None:
    plain = {f: simulated(f, 50).X for f in ("categorical", "gaussian", "poisson")}
    assert plain["categorical"].dtype == np.int32
    assert plain["gaussian"].shape == plain["poisson"].shape == (50, 3)
    mixed = make_latent_tree(7, 2, 3, family="mixed", n_samples=50, random_state=0)
    assert list(mixed.X) == list(mixed.tree.observed_names)
    assert [mixed.X[f"x{v}"].ndim for v in range(7)] == [1, 1, 1, 2, 2, 2, 1]
    assert mixed.family["x4"] == "multihot"
    blocks = simulated("poisson", 20, dim=5)
    assert blocks.X["x0"].shape == (20, 5)
    turns = simulated(["gaussian", "categorical"], 20)
    assert turns.families == ("gaussian", "categorical", "gaussian")


def test_wide_blocks_of_counts_are_sparse() -> None:
    for family in ("multinomial", "poisson"):
        data = simulated(family, 30, dim=2000)
        assert sparse.issparse(data.X["x0"])
        assert data.X["x0"].shape == (30, 2000)


def test_bags_have_their_size() -> None:
    data = simulated("multinomial", 30, bag_size=7)
    assert (data.X["x0"].sum(axis=1) == 7).all()


def test_the_seed_decides_everything() -> None:
    one, same = (
        make_latent_tree(6, family="mixed", n_samples=40, missing=0.2, random_state=3)
        for _ in range(2)
    )
    for name, x in one.X.items():
        np.testing.assert_array_equal(x, same.X[name])


@pytest.mark.parametrize("family", ["categorical", "gaussian", "mixed"])
def test_a_share_is_missing(family: str) -> None:
    """Of 6 x 4000 values; five standard deviations of the share are 0.015."""
    data = make_latent_tree(6, family=family, n_samples=4000, missing=0.3, random_state=0)
    full = make_latent_tree(6, family=family, n_samples=4000, random_state=0)
    gaps = []
    for v in range(6):
        x, complete = data.values(v), full.values(v)
        gap = np.isnan(x)
        if x.ndim == 2:
            assert (gap.all(axis=1) == gap.any(axis=1)).all()  # vectors are missing as a whole
        np.testing.assert_array_equal(x[~gap], complete[~gap])
        gaps.append(gap.reshape(4000, -1)[:, 0].mean())
    assert np.mean(gaps) == pytest.approx(0.3, abs=0.015)
    assert as_table(data.X, family=data.family).has_missing


# ---- the oracle --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("family", [*FAMILIES, "categorical", "mixed"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_the_oracle_nears_the_truth_with_the_root_of_n(family: str, missing: float) -> None:
    """Errors at 500 and 32,000 samples, mean over 9 leaves: the ratio is 8. A leaf's error is the
    root of at least 3 squares, so its deviation is at most 0.4 of it, that of the ratio 0.19."""
    errors = [
        parameter_error(oracle(data), data)
        for data in (
            make_latent_tree(9, 3, 4, family=family, n_samples=n, missing=missing, random_state=0)
            for n in (500, 32_000)
        )
    ]
    assert 8 / 2 < errors[0] / errors[1] < 8 * 2


def test_the_oracle_has_means_by_state() -> None:
    data = simulated("gaussian", 500, missing=0.2)
    found = oracle(data)
    for x in range(3):
        for j in range(3):
            expected = np.nanmean(data.X[data.hidden[:, 0] == j, x])
            np.testing.assert_allclose(found.conditional(x, "h0")[0, j], expected, rtol=1e-9)
    order = [2, 0, 1]
    assert parameter_error(found, data) == pytest.approx(
        parameter_error(found.relabelled({3: order}), data), rel=1e-12
    )


# ---- Gaussian trees ----------------------------------------------------------------------------


def covariances(data: LatentTreeData) -> np.ndarray:
    columns = [np.reshape(data.values(v), (len(data.hidden), -1)) for v in range(9)]
    return np.cov(np.hstack(columns).T)


@pytest.mark.parametrize(("k", "dim"), [(1, None), (1, 2), (2, None), (2, 3)])
def test_gaussian_trees_have_their_lengths(k: int, dim: int | None) -> None:
    """Pairs of leaves: `-log det` of the canonical correlations is the path between them."""
    data = make_latent_tree(9, k, hidden="gaussian", dim=dim, n_samples=0, random_state=1)
    model, paths = data.model, data.tree.path_lengths()
    d = model.dims[0]
    spread = model.covariance()
    for a, b in [(0, 1), (0, 5), (3, 8)]:
        A, B = (slice(v * d, (v + 1) * d) for v in (a, b))
        roots = [np.linalg.inv(np.linalg.cholesky(spread[s, s])) for s in (A, B)]
        s = np.linalg.svd(roots[0] @ spread[A, B] @ roots[1].T, compute_uv=False)
        assert -np.log(s[:k]).sum() == pytest.approx(paths[a, b], abs=1e-9)
    hidden = range(data.tree.n_observed, data.tree.n_nodes)
    for v in hidden:
        np.testing.assert_allclose(model.marginal_covariance(v), np.eye(k), atol=1e-12)


def test_gaussian_samples_have_the_covariance_of_the_model() -> None:
    """36 + 9 covariances of 20,000 samples, each within 5.5 standard errors."""
    data = make_latent_tree(9, 1, hidden="gaussian", n_samples=20_000, random_state=0)
    assert data.X.shape == (20_000, 9)
    assert data.hidden.shape == (20_000, data.tree.n_hidden, 1)
    expected = data.model.covariance()[:9, :9]
    error = np.sqrt((np.outer(np.diag(expected), np.diag(expected)) + expected**2) / 20_000)
    assert (np.abs(covariances(data) - expected) < 5.5 * error).all()


def test_gaussian_gaps_and_blocks() -> None:
    data = make_latent_tree(9, 2, hidden="gaussian", missing=0.2, n_samples=500, random_state=0)
    assert data.X["x0"].shape == (500, 2)
    assert 0.1 < np.isnan(data.X["x0"]).mean() < 0.3


# ---- refusals ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "option", "value"),
    [
        ({"family": "gamma"}, "family", "gamma"),
        ({"family": []}, "family", ()),
        ({"family": "binary", "n_states": 3}, "n_states", 3),
        ({"family": "multihot", "n_states": 3, "dim": 2}, "dim", 2),
        ({"family": "multinomial", "bag_size": 0}, "bag_size", 0),
        ({"family": "gaussian", "internal_observed": 0.5}, "internal_observed", 0.5),
        ({"hidden": "poisson"}, "hidden", "poisson"),
        ({"hidden": "gaussian", "family": "poisson"}, "family", ("poisson",)),
        ({"hidden": "gaussian", "n_states": 3, "dim": 2}, "dim", 2),
        ({"missing": 1.0}, "missing", 1.0),
        ({"missing": 0.1, "family": "multinomial", "dim": 2000}, "missing", 0.1),
    ],
)
def test_wrong_options_are_named(options: dict[str, Any], option: str, value: Any) -> None:
    with pytest.raises(DataError) as refused:
        make_latent_tree(**({"n_samples": 5, "random_state": 0} | options))
    assert (refused.value.place.option, refused.value.value) == (option, value)
    assert refused.value.remedy


def test_numbers_must_be_leaves_of_hidden_nodes() -> None:
    with pytest.raises(DataError, match="is not the leaf of a hidden node") as refused:
        make_latent_tree(2, family="gaussian", n_samples=5, random_state=0)
    assert (refused.value.place.node, refused.value.value) == ("x0", "gaussian")
