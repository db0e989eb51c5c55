"""Regions cut out of a model: shapes, messages and fits."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

import latenttree as lt
from latenttree.data import as_table
from latenttree.inference import Evidence, log_likelihood, messages
from latenttree.metrics import model_of
from latenttree.regions import (
    Shape,
    branch_correlations,
    contracted,
    contractions,
    cut_out,
    fit_region,
    fit_shape,
    incoming,
    interchanges,
    other_shapes,
    present_shape,
    region_around,
    small_tree,
    splits_in_two,
    star,
)
from latenttree.samples import Samples
from latenttree.search import Searcher, _read
from latenttree.small_em import as_branches
from latenttree.sweeps import topology_hash

QUARTET = Shape(np.array([[0, 4], [1, 4], [2, 5], [3, 5], [4, 5]]))


def data_and_model(seed: int = 0, n_samples: int = 3_000, **options: object):  # type: ignore[no-untyped-def]
    data = lt.datasets.make_latent_tree(
        12, 2, 3, shape="random", edge_length=(0.2, 0.6), n_samples=n_samples, random_state=seed
    )
    return data, model_of(data)


def cut(data, model, centre, radius=0):  # type: ignore[no-untyped-def]
    """A region with what comes into it."""
    region = region_around(model.tree, centre, radius)
    edges = [(u, v) for v, u in region.branches if u >= model.tree.n_observed]
    sent = messages(model, Evidence(data.X), np.array(edges).reshape(-1, 2))
    by_edge = {edge: sent[:, i] for i, edge in enumerate(edges)}
    return region, incoming(region, data.X, by_edge)


def inner_edges(tree: lt.Tree) -> list[tuple[int, int]]:
    return [(a, b) for a, b in tree.edges.tolist() if min(a, b) >= tree.n_observed]


@pytest.mark.parametrize("seed", range(5))
def test_a_region_has_the_likelihood_of_the_whole(seed: int) -> None:
    """Messages are scaled sample by sample, so log-likelihoods differ by a constant for each
    sample, the same whatever the parameters inside the region."""
    data, model = data_and_model(seed, 200)
    edge = inner_edges(model.tree)[0]
    region, evidence = cut(data, model, edge, radius=1)
    small = cut_out(model, region)
    one = log_likelihood(model, Evidence(data.X)) - log_likelihood(small, evidence)
    a, b = region.inside[:2]
    joint = 0.5 * model.joint(a, b) + 0.5 * np.outer(model.marginal(a), model.marginal(b))
    joints = [
        joint if {u, v} == {a, b} and u == a else joint.T if {u, v} == {a, b} else model.joint(u, v)
        for u, v in model.tree.edges.tolist()
    ]
    changed = type(model).from_joints(model.tree, joints)
    other = log_likelihood(changed, Evidence(data.X))
    other -= log_likelihood(cut_out(changed, region), evidence)
    # messages are float32: one part in 10^7 for each of up to 8
    np.testing.assert_allclose(one, other, atol=1e-5)


MIXED = ("gaussian", "categorical", "poisson")


def heard_by(model, table, centre, radius=0):  # type: ignore[no-untyped-def]
    """A region of a model with emissions, with what comes into it."""
    region = region_around(model.tree, centre, radius)
    edges = [
        (u, v) for v, u in region.branches if u >= model.tree.n_observed or u in model.emissions
    ]
    heard = _read(model, edges, Searcher(Samples(table), "likelihood"))
    return region, incoming(region, heard.codes, heard.sent), heard.weights


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_a_region_with_emissions_has_the_likelihood_of_the_whole(seed: int, missing: float) -> None:
    data = lt.datasets.make_latent_tree(
        12, 2, 3, shape="random", family=MIXED, missing=missing, n_samples=200, random_state=seed
    )
    model = data.model
    table = as_table(data.X, family=data.family)
    edge = inner_edges(model.tree)[0]
    region, evidence, _ = heard_by(model, table, edge, radius=1)
    (chunk,) = Samples(table)()
    a, b = edge
    joint = 0.5 * model.joint(a, b) + 0.5 * np.outer(model.marginal(a), model.marginal(b))
    joints = [
        joint if [u, v] == [a, b] else model.joint(u, v) for u, v in model.tree.edges.tolist()
    ]
    changed = type(model).from_joints(model.tree, joints, emissions=model.emissions)
    gains = [
        log_likelihood(m, chunk.evidence(m)) - log_likelihood(cut_out(m, region), evidence)
        for m in (model, changed)
    ]
    # messages and likelihoods are float32: one part in 10^7 for each of up to 8
    np.testing.assert_allclose(*gains, atol=1e-5)


def test_correlations_and_fits_with_weights_are_those_of_repeated_samples() -> None:
    data = lt.datasets.make_latent_tree(
        12, 2, 3, shape="random", family=MIXED, missing=0.2, n_samples=300, random_state=0
    )
    weights = np.random.default_rng(0).integers(1, 4, 300)
    table = as_table(data.X, family=data.family, sample_weight=weights)
    again = table.replace(weights=None).subset_rows(np.repeat(np.arange(300), weights))
    found = []
    for t in (table, again):
        region, evidence, w = heard_by(data.model, t, inner_edges(data.tree)[0], radius=1)
        small = cut_out(data.model, region)
        r = branch_correlations(small, evidence, w)
        shape = present_shape(data.tree, region)
        branches = as_branches(evidence, 2, w)
        other = next(iter(interchanges(shape, len(shape.edges) - 1)))
        fits = [fit_region(small, shape, branches, 1.0), fit_shape(small, other, branches, 1.0)]
        found.append((r, [fit.log_likelihood for fit in fits], fits[1].model.tables))
    (r1, values1, tables1), (r2, values2, tables2) = found
    np.testing.assert_allclose(r1, r2, atol=1e-6)
    np.testing.assert_allclose(values1, values2, rtol=1e-6)
    for x, y in zip(tables1, tables2, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)  # small fits stop at a gain of 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_correlations_are_determinants_of_whitened_pairs(k: int) -> None:
    data = lt.datasets.make_latent_tree(12, k, 4, shape="random", n_samples=500, random_state=k)
    model = model_of(data)
    region, evidence = cut(data, model, inner_edges(model.tree)[0])
    small = cut_out(model, region)
    found = branch_correlations(small, evidence)
    seen = []
    for i in range(small.tree.n_observed):
        v = int(small.tree.neighbors(i)[0])
        if i in evidence.soft:
            own = evidence.soft[i] * small.marginals[i]
            own = own / own.sum(axis=1, keepdims=True)
        else:
            own = np.eye(4)[evidence.codes[:, i]]
        y = (own @ small.conditional(v, i).T)[:, 1:]
        y = y - y.mean(axis=0)
        seen.append(np.linalg.solve(np.linalg.cholesky(y.T @ y), y.T))
    for i, one in enumerate(seen):
        for j, other in enumerate(seen):
            expected = abs(np.linalg.det(one @ other.T)) ** (1 / (k - 1))
            assert found[i, j] == pytest.approx(expected, abs=1e-6)  # a ridge of 1e-9


def test_regions_stay_small() -> None:
    _, model = data_and_model()
    for edge in inner_edges(model.tree):
        for radius in (0, 1, 2):
            region = region_around(model.tree, edge, radius)
            assert set(edge) <= set(region.inside)
            assert radius == 0 or len(region.branches) <= 8 or len(region.inside) == 2
            shape = present_shape(model.tree, region)
            assert shape.n_hidden(len(region.branches)) == len(region.inside)


def test_splits_in_two_are_all_and_different() -> None:
    """n branches: 2^(n-1) - n - 1 ways to part them with two or more on either side."""
    for m in (4, 5, 6):
        hashes = {int(topology_hash(m, s.edges)) for s in splits_in_two(m)}
        assert len(hashes) == len(list(splits_in_two(m))) == 2 ** (m - 1) - m - 1


def test_interchanges_of_a_quartet_are_the_two_other_trees() -> None:
    found = {int(topology_hash(4, s.edges)) for s in interchanges(QUARTET, 4)}
    every = {int(topology_hash(4, s.edges)) for s in splits_in_two(4)}
    assert found == every - {int(topology_hash(4, QUARTET.edges))}


def test_contractions_end_in_the_star() -> None:
    shape = Shape(np.array([[0, 5], [1, 5], [2, 6], [3, 7], [4, 7], [5, 6], [6, 7]]))
    lengths = np.array([1.0, 1, 1, 1, 1, 0.3, 0.2])
    sizes = [s.n_hidden(5) for s in contractions(5, shape, lengths)]
    assert sizes == [2, 1]
    *_, last = contractions(5, shape, lengths)
    assert topology_hash(5, last.edges) == topology_hash(5, star(5).edges)
    first = next(iter(contractions(5, shape, lengths)))
    assert topology_hash(5, first.edges) == topology_hash(5, contracted(5, shape, 6).edges)
    assert small_tree(5, first).n_hidden == 2


def test_other_shapes_are_others() -> None:
    data, model = data_and_model()
    region, evidence = cut(data, model, inner_edges(model.tree)[0], radius=1)
    small = cut_out(model, region)
    present = present_shape(model.tree, region)
    m = len(region.branches)
    r = branch_correlations(small, evidence)
    assert (np.abs(r - r.T) < 1e-12).all()
    assert ((r >= 0) & (r <= 1)).all()
    shapes = other_shapes(present, r, 3000.0, None)
    hashes = [int(topology_hash(m, s.edges)) for s in shapes]
    assert len(set(hashes)) == len(hashes)
    assert int(topology_hash(m, present.edges)) not in hashes
    for s in other_shapes(present, r, 3000.0, len(region.inside)):
        assert s.n_hidden(m) == len(region.inside)


def test_the_true_shape_wins() -> None:
    """At a true edge of length 0.4 or more with 20,000 samples the two interchanges are behind by
    dozens of log-likelihood units: no failure in 10 seeds."""
    for seed in range(10):
        data = lt.datasets.make_latent_tree(
            9, 2, 2, edge_length=0.4, n_samples=20_000, random_state=seed
        )
        model = model_of(data)
        region, evidence = cut(data, model, inner_edges(model.tree)[0])
        small, present = cut_out(model, region), present_shape(model.tree, region)
        branches = as_branches(evidence, 2)
        best = fit_region(small, present, branches, 1.0).log_likelihood
        edge = len(present.edges) - 1
        for shape in interchanges(present, edge):
            assert fit_shape(small, shape, branches, 1.0).log_likelihood < best - 3


def test_fitting_a_region_never_lowers_its_likelihood() -> None:
    data, model = data_and_model(n_samples=500)
    for edge in inner_edges(model.tree)[:3]:
        region, evidence = cut(data, model, edge, radius=1)
        small = cut_out(model, region)
        shape = present_shape(model.tree, region)
        fitted = fit_region(small, shape, as_branches(evidence, 2), 0.0)
        values = [log_likelihood(m, evidence).sum() for m in (small, fitted.model)]
        assert all(b >= a - 1e-6 for a, b in pairwise(values))
        np.testing.assert_allclose(values[-1], fitted.log_likelihood, rtol=1e-6)
