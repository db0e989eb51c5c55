"""Hidden copies of the Chow-Liu tree: mutual information by definition, parts, leaves."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from scipy import sparse
from tests.reference.mutual_information import mutual_information as slow_information

from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.distances.similarity import Similarity
from latenttree.distances.stage import count_states, measure
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.structure.copies import can_count, hidden_chow_liu, mutual_information
from latenttree.structure.independence import parts_of


def similarity_of(table: Table) -> Similarity:
    config = FitConfig(seed=0, n_jobs=1, n_states=2)
    found = measure(table, count_states(table, config), config).similarity
    assert found is not None
    return found


def codes(seed: int = 0, n: int = 200, **options: Any) -> Any:
    return make_latent_tree(7, 2, 3, n_samples=n, random_state=seed, **options).X


def test_mutual_information_by_its_definition() -> None:
    for seed in range(3):
        X = codes(seed)
        found = mutual_information(as_table(X), n_jobs=2)
        np.testing.assert_allclose(found, slow_information(X), atol=1e-12)


def test_a_weight_counts_as_copies_do() -> None:
    X, weights = codes(), np.random.default_rng(0).integers(1, 4, 200)
    found = mutual_information(as_table(X, sample_weight=weights))
    np.testing.assert_allclose(found, slow_information(np.repeat(X, weights, axis=0)), atol=1e-12)


def test_of_missing_values_the_samples_that_have_both() -> None:
    X = codes(missing=0.3)
    found = mutual_information(as_table(X))
    for a, b in ((0, 1), (2, 6), (5, 3)):
        both = X[~np.isnan(X[:, [a, b]]).any(axis=1)][:, [a, b]].astype(int)
        assert found[a, b] == pytest.approx(slow_information(both)[0, 1], abs=1e-12)


def test_what_can_be_counted() -> None:
    X = codes()
    assert can_count(as_table(X))
    assert not can_count(as_table(sparse.csr_array(X % 2)))
    assert not can_count(as_table({"a": X[:, 0], "b": np.random.default_rng(0).normal(size=200)}))


@pytest.mark.parametrize("kind", ["codes", "sparse", "gaussian"])
def test_every_variable_is_the_leaf_of_its_copy(kind: str) -> None:
    """The tree of the copies is the largest spanning tree of mutual information where that can be
    counted, else that of the similarities; a leaf of it needs no copy."""
    family = "gaussian" if kind == "gaussian" else "categorical"
    X = make_latent_tree(9, 2, family=family, n_samples=1_000, random_state=0).X
    table = as_table(sparse.csr_array(X) if kind == "sparse" else X)
    similarity = similarity_of(table)
    found = hidden_chow_liu(similarity, table)
    assert found.shape == "hidden Chow-Liu"
    assert (found.n_components, found.support.min()) == (1, 1.0)
    tree = found.tree
    assert (tree.degree()[:9] == 1).all()
    expected = similarity.mst
    if kind == "codes":
        graph = networkx.from_numpy_array(slow_information(X))
        spanning = networkx.maximum_spanning_tree(graph)
        expected = np.array([e for e in spanning.edges if e[0] != e[1]])
    degree = np.bincount(np.asarray(expected).ravel())
    assert tree.n_hidden == (degree > 1).sum()
    stands_for = {int(tree.neighbors(v)[0]): v for v in np.flatnonzero(degree > 1).tolist()}
    hosts = {(a, b) for a, b in tree.edges.tolist() if b not in stands_for or a != stands_for[b]}
    between = {frozenset(stands_for.get(v, v) for v in edge) for edge in hosts}
    assert between == {frozenset(map(int, edge)) for edge in expected}


@pytest.mark.parametrize("kind", ["codes", "sparse"])
def test_independent_parts_are_joined_without_support(kind: str) -> None:
    """Two blocks; by design such blocks are linked in a tenth of tables, which these are not."""
    blocks = [make_latent_tree(6, 2, n_samples=2_000, random_state=s).X for s in (0, 1)]
    X = np.column_stack(blocks)
    table = as_table(sparse.csr_array(X) if kind == "sparse" else X)
    found = hidden_chow_liu(similarity_of(table), table)
    assert found.n_components == 2
    assert (found.support == 0).sum() == 1
    part = parts_of(found.tree.edges[found.support > 0], found.tree.n_nodes)[:12]
    assert (part[:6] == part[0]).all()
    assert (part[6:] == part[6]).all()
    whole = hidden_chow_liu(similarity_of(table), table, resolved=True)
    assert (whole.n_components, whole.support.min()) == (1, 1.0)
