"""The search by likelihood and BIC over regions of a fitted model."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.reference.stages import fit_tree

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.evaluation.metrics import robinson_foulds
from latenttree.model.inference import Evidence
from latenttree.model.likelihood import bic_score, total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.model.tree_model import TreeModel
from latenttree.search.region_model import cut_out
from latenttree.search.region_replacement import replace_regions
from latenttree.search.regions import region_around
from latenttree.search.topology_edits import DOUBTS, doubtful_regions, search_structure
from latenttree.structure.learn import Structure
from latenttree.tree import Tree


def data_of(seed: int, n: int = 2_000, **options: Any) -> lt.datasets.LatentTreeData:
    settings = {"n_observed": 16, "n_states": 2, "shape": "random", "edge_length": (0.3, 0.7)}
    return lt.datasets.make_latent_tree(n_samples=n, random_state=seed, **(settings | options))


def table_of(data: lt.datasets.LatentTreeData) -> Table:
    return as_table(data.X, family=data.family)


def interchanged(tree: Tree, seed: int) -> Tree:
    """A wrong tree: two branches across one inner edge have changed places."""
    rng = np.random.default_rng(seed)
    inner = [(a, b) for a, b in tree.edges.tolist() if min(a, b) >= tree.n_observed]
    a, b = inner[rng.integers(len(inner))]
    one = next(u for u in tree.neighbors(a) if u != b)
    two = next(u for u in tree.neighbors(b) if u != a)
    swap = {frozenset((a, one)): (b, one), frozenset((b, two)): (a, two)}
    edges = [swap.get(frozenset(e), tuple(e)) for e in tree.edges.tolist()]
    return Tree.build(tree.observed_names, np.array(edges), tree.lengths)


def searched(data: lt.datasets.LatentTreeData, tree: Tree, criterion: str, support: float = 0.6):  # type: ignore[no-untyped-def]
    table = table_of(data)
    model = fit_tree(tree, table, int(data.model.dims[-1])).model
    start = replace(Structure.of_tree(model.tree), support=np.full(len(model.tree.edges), support))
    found = search_structure(start, model, Samples(table), criterion, FitConfig())  # type: ignore[arg-type]
    return start, model, *found


def value(model: TreeModel, data: lt.datasets.LatentTreeData) -> float:
    total = total_log_likelihood(model, Samples(table_of(data)))
    return bic_score(model, total, len(data.hidden))


@pytest.mark.parametrize("criterion", ["likelihood", "bic"])
@pytest.mark.parametrize("seed", range(4))
def test_a_wrong_edge_is_put_right_and_bic_never_falls(seed: int, criterion: str) -> None:
    """With 10,000 samples and edges of 0.3 or more a wrong interchange costs dozens of units of
    log-likelihood; all of these seeds must come back to a tree at least as good as the truth's."""
    data = data_of(seed, 10_000)
    wrong = interchanged(data.tree, seed)
    assert robinson_foulds(wrong, data.tree) > 0
    _, model, structure, better = searched(data, wrong, criterion)
    assert value(better, data) >= value(model, data)
    steps = structure.search[-1]
    assert all(b >= a for a, b in pairwise(steps))
    if criterion == "likelihood":
        assert structure.tree.same_topology(data.tree)
    truth = fit_tree(data.tree, as_table(data.X), 2).model
    # both are refined to a relative tolerance of 1e-7: about 0.01
    assert value(better, data) >= value(truth, data) - 0.5


FAMILIES: dict[str, dict[str, Any]] = {
    "numbers": {"family": "gaussian", "n_observed": 12},
    "three states": {"family": "gaussian_diagonal", "n_states": 3, "dim": 3, "n_observed": 12},
    "counts": {"family": "poisson", "n_observed": 12},
    "mixed": {"family": "mixed", "n_categories": 3, "n_observed": 12},
    "gaps": {"family": ("gaussian", "categorical"), "missing": 0.2, "n_observed": 12},
}


@pytest.mark.parametrize("case", FAMILIES)
def test_a_wrong_edge_is_put_right_whatever_the_leaves(case: str) -> None:
    """As with categories: with 6,000 samples a wrong interchange costs dozens of units, also where
    leaves that are no categories hang from the nodes that change places."""
    seed = list(FAMILIES).index(case)
    data = data_of(seed, 6_000, **FAMILIES[case])
    wrong = interchanged(data.tree, seed)
    assert robinson_foulds(wrong, data.tree) > 0
    _, model, structure, better = searched(data, wrong, "likelihood")
    assert structure.tree.same_topology(data.tree)
    assert better.tree == structure.tree
    assert set(better.emissions) == set(model.emissions)
    assert value(better, data) > value(model, data)
    assert all(b >= a for a, b in pairwise(structure.search[-1]))
    assert np.isfinite(structure.tree.lengths).all()


def test_any_inner_edge_of_numbers_can_be_put_right() -> None:
    """Interchanges across several inner edges of one tree whose leaves are numbers."""
    data = data_of(3, 4_000, family="gaussian", n_observed=8)
    for seed in range(4):
        wrong = interchanged(data.tree, seed)
        _, _, structure, better = searched(data, wrong, "likelihood")
        assert structure.tree.same_topology(data.tree)
        assert all(len(structure.tree.neighbors(v)) == 1 for v in better.emissions)


def test_weights_are_repeated_samples_in_a_search() -> None:
    data = data_of(1, 1_500, family="mixed", n_categories=3, missing=0.1)
    weights = np.random.default_rng(0).integers(1, 4, 1_500)
    table = as_table(data.X, family=data.family, sample_weight=weights)
    again = table.replace(weights=None).subset_rows(np.repeat(np.arange(1_500), weights))
    wrong = interchanged(data.tree, 1)
    model = fit_tree(wrong, table, 2).model
    start = replace(Structure.of_tree(model.tree), support=np.full(len(model.tree.edges), 0.6))
    one, other = (
        search_structure(start, model, Samples(t), "likelihood", FitConfig())[0]
        for t in (table, again)
    )
    assert one.tree.same_topology(other.tree)
    assert len(one.search[-1]) > 1
    np.testing.assert_allclose(one.search[-1], other.search[-1], rtol=1e-9)
    np.testing.assert_allclose(one.support, other.support, atol=1e-6)


def test_nothing_in_doubt_nothing_changes() -> None:
    data = data_of(1)
    start, model, structure, same = searched(data, interchanged(data.tree, 1), "likelihood", 1.0)
    assert same is model
    assert structure.tree is start.tree


def test_edges_without_support_are_left_alone() -> None:
    tree = data_of(0).tree
    assert list(doubtful_regions(tree, np.zeros(len(tree.edges)), DOUBTS["bic"])) == []


def test_replacing_regions_by_themselves_changes_nothing() -> None:
    data = data_of(2, 50)
    model = data.model
    edge = next(e for e in model.tree.edges.tolist() if min(e) >= 16)
    region = region_around(model.tree, edge, 1)
    again = replace_regions(model, [(region, cut_out(model, region)[1])])
    assert again.tree.same_topology(model.tree)
    before, after = (m.log_likelihood(Evidence(data.X)) for m in (model, again))
    np.testing.assert_allclose(before, after, atol=1e-9)


@pytest.mark.parametrize("case", FAMILIES)
def test_replacing_regions_by_themselves_keeps_emissions(case: str) -> None:
    data = data_of(2, 50, **FAMILIES[case])
    model, p = data.model, data.tree.n_observed
    for edge in model.tree.edges.tolist():
        if min(edge) < p:
            continue
        region = region_around(model.tree, edge, 1)
        again = replace_regions(model, [(region, cut_out(model, region)[1])])
        assert again.tree.same_topology(model.tree)
        samples = Samples(table_of(data))
        before, after = (total_log_likelihood(m, samples) for m in (model, again))
        assert after == pytest.approx(before, rel=1e-9)


def test_threads_do_not_change_the_answer() -> None:
    data = data_of(4, 1_000)
    wrong = interchanged(data.tree, 4)
    table = as_table(data.X)
    model = fit_tree(wrong, table, 2).model
    start = Structure.of_tree(model.tree)
    found = [
        search_structure(start, model, Samples(table), "bic", FitConfig(n_jobs=jobs))[1]
        for jobs in (1, 2)
    ]
    assert found[0].tree == found[1].tree
    for a, b in zip(found[0].cpts, found[1].cpts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_estimator_gives_both_trees() -> None:
    """The most probable tree has a BIC (scikit-learn's sign: lower is better) at least as good."""
    data = lt.datasets.make_latent_tree(
        20, 2, 2, shape="random", edge_length=(0.15, 1.0), n_samples=500, random_state=5
    )
    majority = lt.LatentTree(2, random_state=0).fit(data.X)
    probable = lt.LatentTree(2, random_state=0, tree="most_probable").fit(data.X)
    off = lt.LatentTree(2, random_state=0, search=False).fit(data.X)
    assert probable.bic(data.X) <= majority.bic(data.X) + 0.1
    assert majority.bic(data.X) <= off.bic(data.X) + 0.1
    for model in (majority, probable, off):
        assert len(model.diagnostics_.support) == len(model.tree_.edges)
        assert model.tree_.same_topology(model.model_.tree)
