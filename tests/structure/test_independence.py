"""Links of the spanning tree between dependent variables; nothing from nothing."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from scipy.stats import chi
from sklearn.datasets import load_wine
from tests.reference.random_trees import random_tree

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.distances.similarity import Similarity, similarity_from_distances
from latenttree.distances.stage import count_states, measure
from latenttree.errors import DataWarning
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.structure.independence import (
    PAIR_LEVEL,
    _discoveries,
    _null_variance,
    _pair_evidence,
    _weakly_dependent,
    dependent_links,
    log_tail_of_product,
    parts_of,
)


def learn(X: Any, **options: Any) -> lt.LatentTree:
    return lt.LatentTree(**({"random_state": 0, "n_jobs": 1, "support": "model"} | options)).fit(X)


def test_tail_of_a_product_of_one_and_of_two() -> None:
    x = np.array([0.5, 1.0, 2.0, 4.0])
    np.testing.assert_allclose(log_tail_of_product(x, 1), chi(1).logsf(x), atol=0.1)
    rng = np.random.default_rng(0)
    roots = np.sqrt(chi(1).rvs(400_000, random_state=rng) * chi(2).rvs(400_000, random_state=rng))
    share = [(roots >= t).mean() for t in x[:3]]  # errors below a hundredth of each
    np.testing.assert_allclose(np.exp(log_tail_of_product(x[:3], 2)), share, rtol=0.05)


@pytest.mark.parametrize("p", [8, 40])
def test_independent_columns_have_no_hidden_node(p: int) -> None:
    """A pair stands out in one of twenty tables; a hidden node needs two pairs that meet."""
    for seed in range(5):
        X = np.random.default_rng(seed).integers(0, 2, (500, p))
        model = lt.LatentTree(n_states=2, random_state=0, support="model").fit(X)
        assert model.tree_.n_hidden == 0
        a, b = model.tree_.edges[np.flatnonzero(model.diagnostics_.support == 0)[0]]
        joint = model.model_.joint(int(a), int(b))
        np.testing.assert_allclose(joint, np.outer(joint.sum(1), joint.sum(0)), atol=1e-12)


def test_a_variable_alone_has_its_shares() -> None:
    """EM mixes pseudo-samples into the CPTs; what is alone has no CPT that needs any."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (90, 6)).astype(float)
    X[rng.random(X.shape) < 0.1] = np.nan
    weights = rng.integers(1, 4, 90)
    model = lt.LatentTree(random_state=0, n_jobs=1).fit(X, sample_weight=weights)
    held = model.tree_.edges[model.diagnostics_.support > 0]
    alone = sorted(set(range(6)) - set(held.ravel().tolist()))
    assert len(alone) >= 4
    for v in alone:
        known = np.isfinite(X[:, v])
        counts = np.bincount(X[known, v].astype(int), weights[known], minlength=3)
        np.testing.assert_allclose(model.model_.marginals[v], counts / counts.sum(), rtol=1e-12)


@pytest.mark.parametrize(("p", "n_categories"), [(8, 2), (30, 2), (30, 3)])
def test_independent_columns_have_no_hidden_node_at_the_default(p: int, n_categories: int) -> None:
    """In 200 tables each two links met in none of binary columns, and in two of three categories:
    two of four such tables once in 1,600 times."""
    found = [
        learn(np.random.default_rng(seed).integers(0, n_categories, (500, p))).tree_.n_hidden > 0
        for seed in range(4)
    ]
    assert sum(found) <= 1


def test_noise_around_a_block_is_joined_without_support() -> None:
    """The block has its own hidden nodes and no others, eight edges of support 0 join the noise.
    By design one link in a hundred is false, and parts are joined by features in a twentieth of
    tables: in 3 of 25 tables something was, or the block had another node. Where a tenth is so,
    four of ten are once in 80 times."""
    failed = 0
    for seed in range(10):
        data = make_latent_tree(9, 2, edge_length=0.4, n_samples=1_000, random_state=seed)
        noise = np.random.default_rng(1_000 + seed).integers(0, 2, (1_000, 8))
        model = learn(np.column_stack([data.X, noise]), n_states=2)
        edges, is_join = model.tree_.edges, model.diagnostics_.support == 0
        alone = not np.isin(np.arange(9, 17), edges[~is_join]).any()
        kept = model.tree_.n_hidden == data.tree.n_hidden
        failed += not (alone and kept and is_join.sum() == 8)
        part = parts_of(edges[~is_join], model.tree_.n_nodes)
        hidden = part[model.tree_.n_observed :]
        assert (hidden == part[0]).all()  # all hidden nodes are in the part of the block
        assert (part[:9] == part[0]).all()
    assert failed <= 3


# ---- links ---------------------------------------------------------------------------------------


def similarity_of(X: Any) -> Similarity:
    config = FitConfig(seed=0, n_jobs=1, n_states=2)
    table = as_table(X)
    found = measure(table, count_states(table, config), config).similarity
    assert found is not None
    return found


def weak_factor(seed: int, n: int, p: int, loading: float) -> Any:
    """Binary variables whose correlations are all `loading ** 2`."""
    rng = np.random.default_rng(seed)
    sign = 2 * rng.integers(0, 2, (n, 1)) - 1
    return (rng.random((n, p)) < 0.5 + 0.5 * loading * sign).astype(np.int64)


@pytest.mark.parametrize("p", [8, 40, 100])
def test_links_of_independent_variables(p: int) -> None:
    """A single one in a hundred tables, by design: three in fifty tables once in 70 times."""
    tables = (np.random.default_rng(seed).integers(0, 2, (400, p)) for seed in range(50))
    kept = [dependent_links(similarity_of(X)) for X in tables]
    assert sum(bool(links.any()) for links in kept) <= 2
    assert max(int(links.sum()) for links in kept) <= 1


@pytest.mark.parametrize("seed", range(5))
def test_weak_dependence_of_all_joins_all(seed: int) -> None:
    """Correlations of 0.04 in 500 samples, 0.9 standard errors: hardly a link stands out by itself
    (one in ten tables), but all do together (in all of 20)."""
    whole = similarity_of(weak_factor(seed, 500, 100, 0.2))
    single = _discoveries(_pair_evidence(whole, whole.of_pairs(whole.mst)), 100 * 99 / 2)
    assert single.sum() <= 2
    assert _weakly_dependent(whole, single)
    assert dependent_links(whole).all()


def test_the_same_with_columns_in_another_order_is_independent() -> None:
    """What shows is dependence, not the distribution of the variables: with every column in an
    order of its own nothing is left. Three standard errors are exceeded once in 700 times."""
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.permuted(weak_factor(seed, 500, 100, 0.2), axis=0)
        found += _weakly_dependent(similarity_of(X), np.zeros(99, dtype=np.bool_))
    assert found <= 1


def test_few_variables_are_not_taken_together() -> None:
    """Twenty variables that no link touches are needed, others may be linked."""
    whole = similarity_of(weak_factor(0, 500, 100, 0.3))
    kept = np.ones(99, dtype=np.bool_)
    assert not _weakly_dependent(whole, kept)
    leaves = np.flatnonzero(np.bincount(whole.mst.ravel()) == 1)
    loose = np.isin(whole.mst, leaves[:19]).any(axis=1)
    assert not _weakly_dependent(whole, ~loose)


def test_exact_distances_join_what_is_at_a_finite_distance() -> None:
    """Two copies of a tree, infinitely far apart: one edge of support 0."""
    own = random_tree(np.random.default_rng(0), 6).path_lengths()
    whole = similarity_from_distances(
        np.block([[own, np.full((6, 6), np.inf)], [np.full((6, 6), np.inf), own]])
    )
    linked = dependent_links(whole)
    assert linked.sum() == 10
    assert ((whole.mst < 6).sum(axis=1)[~linked] == 1).all()


def test_discoveries_are_those_of_benjamini_and_hochberg() -> None:
    rng = np.random.default_rng(0)
    for n_pairs in (30, 300, 3_000):
        for _ in range(50):
            p = rng.random(29) ** rng.integers(1, 8)
            found = _discoveries(np.log(p), n_pairs)
            ranks = sorted(range(29), key=lambda i: p[i])
            last = max(
                (i for i in range(29) if p[ranks[i]] <= PAIR_LEVEL * (i + 1) / n_pairs), default=-1
            )
            assert set(np.flatnonzero(found)) == set(ranks[: last + 1])


@pytest.mark.parametrize("n_directions", [1, 2, 3])
def test_mean_square_of_independent_similarities(n_directions: int) -> None:
    """Of the geometric mean of chi variables: by 200,000 draws, an error of half a hundredth."""
    rng = np.random.default_rng(0)
    product = np.prod(
        [chi(j).rvs(200_000, random_state=rng) for j in range(1, n_directions + 1)], 0
    )
    expected = np.mean(product ** (2 / n_directions))
    assert _null_variance(n_directions) == pytest.approx(expected, rel=0.02)


def test_parts_are_connected_components() -> None:
    rng = np.random.default_rng(0)
    for n in (1, 5, 30):
        links = rng.integers(0, n, (n // 2, 2))
        graph = networkx.Graph(links.tolist())
        graph.add_nodes_from(range(n))
        part = parts_of(links, n)
        expected = {frozenset(c) for c in networkx.connected_components(graph)}
        assert {frozenset(np.flatnonzero(part == i).tolist()) for i in set(part)} == expected


@pytest.mark.parametrize("n_states", [2, 3, 4])
def test_more_states_make_no_variable_independent(n_states: int) -> None:
    """Magnesium and proline of wines have a correlation of .39, 5 standard errors, in one direction
    alone: with two directions their determinant is noise."""
    model = learn(load_wine(as_frame=True).data, n_states=n_states)
    assert model.diagnostics_.independent == []
    assert model.diagnostics_.n_states == n_states


def test_a_table_of_noise_is_warned_about() -> None:
    X = np.random.default_rng(0).integers(0, 2, (500, 6))
    with pytest.warns(DataWarning, match="none of the 6 variables depends on another"):
        model = learn(X)
    assert model.tree_.draw().count("(independent)") == 5
