"""Similarities of 0/1 variables from counts against those from matrices of all pairs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.reference.binary import random_words, sparse_binary

import latenttree as lt
from latenttree.data import as_table
from latenttree.distances.correlations import pair_values
from latenttree.distances.counted_similarity import counted_similarity
from latenttree.distances.estimate import estimate_distances
from latenttree.distances.memory_plan import plan_memory
from latenttree.distances.similarity import component
from latenttree.distances.stage import measure_counts, similarity_of
from latenttree.structure.learn import structure_of_similarities


def test_some_of_the_variables_are_a_source_without_a_copy() -> None:
    table = sparse_binary(random_words(1, n=200, p=20))
    whole = counted_similarity(table)
    members = np.array([2, 3, 7, 11])
    part = component(whole, members)
    assert part.source.packed is whole.source.packed
    np.testing.assert_array_equal(part.rho, whole.rho[np.ix_(members, members)])


@pytest.mark.parametrize("form", ["codes", "sparse_binary"])
def test_a_tight_limit_gives_the_same_tree(form: str) -> None:
    truth = lt.datasets.make_latent_tree(27, 2, 2, n_samples=400, random_state=3)
    X = np.column_stack([truth.X, truth.X[:, 3], 1 - truth.X[:, 5]])
    table = as_table(X) if form == "codes" else sparse_binary(X)
    wide = measure_counts(table, plan_memory(table, 2, "1TiB"), 1)
    tight = measure_counts(table, plan_memory(table, 2, 1), 1)
    assert (wide.plan.mode, tight.plan.mode) == ("correlations", "on demand")
    assert wide.distances is tight.distances is None
    np.testing.assert_array_equal(wide.basis, tight.basis)
    np.testing.assert_array_equal(wide.similarity.copies, tight.similarity.copies)
    one, other = (
        structure_of_similarities(replace(found.similarity, feature_leaves=32), table.names).tree
        for found in (wide, tight)
    )
    np.testing.assert_array_equal(one.edges, other.edges)
    np.testing.assert_allclose(one.lengths, other.lengths, rtol=1e-12)  # same sums, same order


@pytest.mark.parametrize("form", ["codes", "sparse_binary"])
def test_correlations_alone_give_the_values_of_all_matrices(form: str) -> None:
    truth = lt.datasets.make_latent_tree(27, 2, 2, n_samples=150, random_state=4)
    table = as_table(truth.X) if form == "codes" else sparse_binary(truth.X)
    alone = measure_counts(table, plan_memory(table, 2, "1TiB"), 1)
    found = estimate_distances(table, 2)
    whole = similarity_of(found, table)
    np.testing.assert_array_equal(alone.similarity.mst, whole.mst)
    assert alone.n_unmeasurable == (27 * 27 - int(found.measurable.sum())) // 2
    every = np.column_stack(np.triu_indices(27, 1))
    for kind in range(3):
        one, other = np.empty(len(every)), np.empty(len(every))
        sources = (
            x.source._replace(use_kurtosis=True, use_inflation=True)
            for x in (alone.similarity, whole)
        )
        for source, out in zip(sources, (one, other), strict=True):
            pair_values(source, every, kind, out)
        np.testing.assert_allclose(one, other, rtol=1e-5 if kind else 0)
    few = np.array([0, 3, 7, 11, 19])
    assert alone.similarity.effective_samples(few) == pytest.approx(
        whole.effective_samples(few), rel=1e-5
    )
