"""Contracted edges come back where held-out samples are clearly better described with them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.data.distinct_rows import distinct_rows
from latenttree.distances.memory_plan import MemoryPlan
from latenttree.distances.stage import count_states, measure
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.search.edges_that_pay import choose_structure
from latenttree.structure.learn import Structure, Structures
from latenttree.tree import Tree

CONFIG = FitConfig(n_states=2)

# Two groups of three, and the star that is left when the edge between them is contracted:
#
#     a   b   c        d   e   f           a b c d e f
#      \  |  /          \  |  /             \ \|  |/ /
#       (h0)---------------(h1)               ( h0 )
TWO_GROUPS = Tree.build(
    list("abcdef"),
    [(0, 6), (1, 6), (2, 6), (6, 7), (3, 7), (4, 7), (5, 7)],
    [0.5, 0.5, 0.5, 0.8, 0.5, 0.5, 0.5],
)
STAR = TWO_GROUPS.contract(TWO_GROUPS.internal_edges())
BOTH = Structures(Structure.of_tree(STAR), Structure.of_tree(TWO_GROUPS))


def chosen(X: Any, found: Structures = BOTH, config: FitConfig = CONFIG, **changed: Any) -> Any:
    table = as_table(X)
    states = count_states(table, config)
    measured = replace(measure(table, states, config), **changed)
    return choose_structure(found, distinct_rows(table), states, measured, config)


def drawn(tree: Tree, n: int, seed: int) -> Any:
    return make_latent_tree(tree.n_observed, n_samples=n, tree=tree, random_state=seed).X


@pytest.mark.parametrize("seed", range(3))
def test_an_edge_that_is_there_comes_back(seed: int) -> None:
    """Of 20,000 samples 2,000 are held out, which prefer it by 7 to 10 standard errors in twenty
    seeds."""
    found = chosen(drawn(TWO_GROUPS, 20_000, seed))
    assert found.structure is BOTH.whole
    assert found.start.model.tree.same_topology(TWO_GROUPS)


@pytest.mark.parametrize("seed", range(5))
def test_an_edge_that_is_not_there_stays_contracted(seed: int) -> None:
    """It cannot help: held-out samples prefer it by -1.4 to 1.6 standard errors in twenty seeds."""
    found = chosen(drawn(STAR, 4000, seed))
    assert found.structure is BOTH.supported
    assert found.start.model.tree.same_topology(STAR)


@pytest.mark.parametrize(
    "changed", [{"whole": None}, {"n": 150}, {"refine": None}, {"mode": "on demand"}]
)
def test_trees_are_not_compared(changed: dict[str, Any]) -> None:
    """Where nothing was contracted, with few samples, without EM, and where pairs do not fit."""
    X = drawn(TWO_GROUPS, changed.get("n", 20_000), 0)
    found = BOTH._replace(whole=None) if "whole" in changed else BOTH
    config = replace(CONFIG, refine=None) if "refine" in changed else CONFIG
    plan = {}
    if "mode" in changed:
        plan = {"plan": MemoryPlan("on demand", 0, 0, 0, 0)}
    assert chosen(X, found, config, **plan).structure is BOTH.supported


def test_weights_are_repetitions() -> None:
    """A row of weight 2 is two rows."""
    X = drawn(TWO_GROUPS, 1000, 0)
    twice = lt.LatentTree(2, random_state=0).fit(np.repeat(X, 2, axis=0)).tree_
    weighted = lt.LatentTree(2, random_state=0).fit(X, sample_weight=np.full(1000, 2.0)).tree_
    assert twice.same_topology(weighted)


def test_a_star_of_real_data_is_resolved() -> None:
    """Pixels of digits come from no tree: with all edges their likelihood is clearly higher."""
    from sklearn.datasets import load_digits

    X = (load_digits().data > 8).astype(int)
    X = X[:, (X.mean(axis=0) > 0.02) & (X.mean(axis=0) < 0.98)]
    options: dict[str, Any] = {"n_states": 2, "random_state": 0, "support": "model"}
    kept = lt.LatentTree(**options).fit(X[:1200])
    every = lt.LatentTree(**options, min_support=0.0).fit(X[:1200])
    assert kept.score(X[1200:]) > every.score(X[1200:]) - 0.2


@pytest.mark.parametrize("seed", range(3))
def test_many_categories_do_not_bring_edges_back(seed: int) -> None:
    """With 1,000 categories the model of the tree with all edges smooths more, and held-out samples
    preferred it, clearly, although its edges are not there."""
    data = make_latent_tree(
        9, 3, 1_000, edge_length=0.5, marginal="zipf", n_samples=20_000, random_state=seed
    )
    model = lt.LatentTree(n_states=3, support="model", random_state=0).fit(data.X)
    assert model.tree_.same_topology(data.tree)
