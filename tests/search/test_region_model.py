"""Regions cut out of a model: topologies, messages and fits."""

from __future__ import annotations

import numpy as np
import pytest

import latenttree as lt
from latenttree.data import as_table
from latenttree.model import samples as model_samples
from latenttree.model.inference import Evidence
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.search.region_em import RegionModel
from latenttree.search.region_model import (
    branch_correlations,
    current_topology,
    cut_out,
    fit_region,
    start_of,
)
from latenttree.search.region_patterns import Branches
from latenttree.search.region_topologies import interchanges, topology_of
from latenttree.search.regions import Region, RegionEvidence, gather_evidence, region_around
from latenttree.search.topology_edits import patterns
from latenttree.tree import Tree


def data_and_model(seed: int = 0, n_samples: int = 3_000, **options: object):  # type: ignore[no-untyped-def]
    data = lt.datasets.make_latent_tree(
        12, 2, 3, shape="random", edge_length=(0.2, 0.6), n_samples=n_samples, random_state=seed
    )
    return data, data.model


def cut(data, model, centre, radius=0):  # type: ignore[no-untyped-def]
    """A region with what comes into it."""
    return evidence_into(model, as_table(data.X), centre, radius)


def evidence_into(model, table, centre, radius=0):  # type: ignore[no-untyped-def]
    """A region of a model, with what comes into it: every sample as it is."""
    region = region_around(model.tree, centre, radius)
    return region, gather_evidence(model, [region], Samples(table))


def evidence_of(region: Region, evidence: RegionEvidence) -> Evidence:
    (chunk,) = evidence.chunks
    codes = np.full((len(chunk.weights), len(region.branches)), -1, dtype=np.int32)
    soft = {}
    for b, (v, u) in enumerate(region.branches):
        if (u, v) in evidence.place:
            soft[b] = chunk.messages[:, evidence.place[u, v]]
        else:
            codes[:, b] = chunk.codes[evidence.row[u]]
    return Evidence(codes, soft)


def as_model(small: RegionModel) -> TreeModel:
    """The tree model over branches 0..m-1 and hidden nodes m, m + 1, ..."""
    m, n_hidden = len(small.branch_parent), len(small.parent)
    inner = [(m + i, m + u) for i, u in enumerate(small.parent.tolist())][1:]
    edges = [(b, m + u) for b, u in enumerate(small.branch_parent.tolist())] + inner
    names = tuple(f"b{i}" for i in range(m)) + tuple(f"h{i}" for i in range(n_hidden))
    tree = Tree(names, m, np.array(edges), np.ones(len(edges)))
    return TreeModel(tree, m, tuple(small.cpts[n_hidden:] + small.cpts[:n_hidden]))


def log_likelihoods(small: RegionModel, evidence: Evidence) -> np.ndarray:
    return as_model(small).log_likelihood(evidence)


def pattern_value(small: RegionModel, branches: Branches) -> float:
    """Log-likelihood of the patterns of a region."""
    soft = {b: branches.messages[b].T for b in np.flatnonzero(branches.is_message).tolist()}
    return float(branches.weights @ log_likelihoods(small, Evidence(branches.codes.T, soft)))


def inner_edges(tree: lt.Tree) -> list[tuple[int, int]]:
    return [(a, b) for a, b in tree.edges.tolist() if min(a, b) >= tree.n_observed]


@pytest.mark.parametrize("seed", range(5))
def test_a_region_has_the_likelihood_of_the_whole(seed: int) -> None:
    """Messages are scaled sample by sample, so log-likelihoods differ by a constant for each
    sample, the same whatever the parameters inside the region."""
    data, model = data_and_model(seed, 200)
    edge = inner_edges(model.tree)[0]
    region, evidence = cut(data, model, edge, radius=1)
    evidence = evidence_of(region, evidence)
    one = model.log_likelihood(Evidence(data.X))
    one -= log_likelihoods(cut_out(model, region)[1], evidence)
    a, b = region.inside[:2]
    joint = 0.5 * model.joint(a, b) + 0.5 * np.outer(model.marginal(a), model.marginal(b))
    joints = [
        joint if {u, v} == {a, b} and u == a else joint.T if {u, v} == {a, b} else model.joint(u, v)
        for u, v in model.tree.edges.tolist()
    ]
    changed = type(model).from_joints(model.tree, joints)
    other = changed.log_likelihood(Evidence(data.X))
    other -= log_likelihoods(cut_out(changed, region)[1], evidence)
    # messages are float32: one part in 10^7 for each of up to 8
    np.testing.assert_allclose(one, other, atol=1e-5)


MIXED = ("gaussian", "categorical", "poisson")


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_a_region_with_emissions_has_the_likelihood_of_the_whole(seed: int, missing: float) -> None:
    data = lt.datasets.make_latent_tree(
        12, 2, 3, shape="random", family=MIXED, missing=missing, n_samples=200, random_state=seed
    )
    model = data.model
    table = as_table(data.X, family=data.family)
    edge = inner_edges(model.tree)[0]
    region, evidence = evidence_into(model, table, edge, radius=1)
    evidence = evidence_of(region, evidence)
    (chunk,) = Samples(table).chunks()
    a, b = edge
    joint = 0.5 * model.joint(a, b) + 0.5 * np.outer(model.marginal(a), model.marginal(b))
    joints = [
        joint if [u, v] == [a, b] else model.joint(u, v) for u, v in model.tree.edges.tolist()
    ]
    changed = type(model).from_joints(model.tree, joints, emissions=model.emissions)
    gains = [
        m.log_likelihood(model_samples.evidence_of(chunk, m))
        - log_likelihoods(cut_out(m, region)[1], evidence)
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
        region, evidence = evidence_into(data.model, t, inner_edges(data.tree)[0], radius=1)
        topology, small = cut_out(data.model, region)
        branches = patterns(region, evidence)
        r = branch_correlations(small, branches)
        other = next(iter(interchanges(topology, topology.splits[0])))
        fits = [
            fit_region(small, topology, branches, 1.0),
            fit_region(start_of(small, other), other, branches, 1.0),
        ]
        found.append((r, [fit.log_likelihood for fit in fits], fits[1].model.cpts))
    (r1, values1, tables1), (r2, values2, tables2) = found
    np.testing.assert_allclose(r1, r2, atol=1e-6)
    np.testing.assert_allclose(values1, values2, rtol=1e-6)
    for x, y in zip(tables1, tables2, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-4)  # small fits stop at a gain of 0.02


@pytest.mark.parametrize("k", [2, 3])
def test_correlations_are_determinants_of_whitened_pairs(k: int) -> None:
    data = lt.datasets.make_latent_tree(12, k, 4, shape="random", n_samples=500, random_state=k)
    model = data.model
    region, evidence = cut(data, model, inner_edges(model.tree)[0])
    branches = patterns(region, evidence)
    small = cut_out(model, region)[1]
    found, whole = branch_correlations(small, branches), as_model(small)
    seen = []
    for i in range(len(region.branches)):
        if branches.is_message[i]:
            own = branches.messages[i].T * whole.marginals[i]
            own = own / own.sum(axis=1, keepdims=True)
        else:
            own = np.eye(4)[branches.codes[i]]
        y = (own @ whole.conditional(int(whole.parents[i]), i).T)[:, 1:]
        y = (y - np.average(y, axis=0, weights=branches.weights)).T * np.sqrt(branches.weights)
        seen.append(np.linalg.solve(np.linalg.cholesky(y @ y.T), y))
    for i, one in enumerate(seen):
        for j, other in enumerate(seen):
            expected = abs(np.linalg.det(one @ other.T)) ** (1 / (k - 1))
            assert found[i, j] == pytest.approx(expected, abs=1e-6)  # a ridge of 1e-9


@pytest.mark.parametrize("k", [2, 3])
def test_patterns_lose_little_likelihood(k: int) -> None:
    """Gains of one topology over another from patterns and from all 20,000 samples differ by a
    small part of the 2 that a change must gain."""
    data = lt.datasets.make_latent_tree(
        24, k, 3, shape="random", edge_length=(0.2, 0.6), n_samples=20_000, random_state=k
    )
    model = data.model
    for edge in inner_edges(model.tree)[:6]:
        region, evidence = cut(data, model, edge)
        topology, small = cut_out(model, region)
        evidence, branches = evidence_of(region, evidence), patterns(region, evidence)
        start = start_of(small, next(iter(interchanges(topology, topology.splits[0]))))
        all_samples = log_likelihoods(start, evidence) - log_likelihoods(small, evidence)
        few = pattern_value(start, branches) - pattern_value(small, branches)
        # a start may be thousands behind, and what is lost is in proportion
        assert few == pytest.approx(all_samples.sum(), abs=0.3, rel=2e-3)


def test_regions_stay_small() -> None:
    _, model = data_and_model()
    for edge in inner_edges(model.tree):
        for radius in (0, 1, 2):
            region = region_around(model.tree, edge, radius)
            assert set(edge) <= set(region.inside)
            assert radius == 0 or len(region.branches) <= 8 or len(region.inside) == 2
            topology, hidden = current_topology(model.tree, region)
            assert sorted(hidden) == sorted(region.inside)
            assert topology == topology_of(len(region.branches), topology.splits)


def test_the_present_shape_starts_from_the_present_model() -> None:
    _, model = data_and_model()
    for edge in inner_edges(model.tree):
        topology, small = cut_out(model, region_around(model.tree, edge, 1))
        again = start_of(small, topology)
        np.testing.assert_array_equal(again.parent, small.parent)
        for one, other in zip(again.cpts, small.cpts, strict=True):
            np.testing.assert_allclose(one, other, atol=1e-12)


def test_the_true_shape_wins() -> None:
    """At a true edge of length 0.4 or more with 20,000 samples the two interchanges are behind by
    dozens of log-likelihood units: no failure in 10 seeds."""
    for seed in range(10):
        data = lt.datasets.make_latent_tree(
            9, 2, 2, edge_length=0.4, n_samples=20_000, random_state=seed
        )
        model = data.model
        region, evidence = cut(data, model, inner_edges(model.tree)[0])
        current, small = cut_out(model, region)
        branches = patterns(region, evidence)
        best = fit_region(small, current, branches, 1.0).log_likelihood
        for topology in interchanges(current, current.splits[0]):
            assert (
                fit_region(start_of(small, topology), topology, branches, 1.0).log_likelihood
                < best - 3
            )


def test_fitting_a_region_never_lowers_its_likelihood() -> None:
    data, model = data_and_model(n_samples=500)
    for edge in inner_edges(model.tree)[:3]:
        region, evidence = cut(data, model, edge, radius=1)
        topology, small = cut_out(model, region)
        branches = patterns(region, evidence)
        fitted = fit_region(small, topology, branches, 0.0)
        before, after = (pattern_value(x, branches) for x in (small, fitted.model))
        assert after >= before - 1e-6
        assert fitted.log_likelihood == pytest.approx(after, rel=1e-6)
