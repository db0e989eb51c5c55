"""The hidden Chow-Liu tree: against mutual information pair by pair, and with independent parts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from tests.reference.mutual_information import mutual_information as slow_information

from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.distances.stage import States, measure
from latenttree.structure.copies import hidden_chow_liu, mutual_information
from latenttree.structure.learn import Structure
from latenttree.structure.summary import independent_variables


def chains(n: int = 2000) -> NDArray[np.int64]:
    """Two Markov chains of four variables, and two variables by themselves, three states each."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (n, 10))
    for j in (1, 2, 3, 5, 6, 7):
        X[:, j] = np.where(rng.random(n) < 0.4, X[:, j], X[:, j - 1])
    return X


def structure_of(table: Table, *, separate: bool = True) -> Structure:
    similarity = measure(table, States(2, 1), FitConfig()).similarity
    assert similarity is not None
    return hidden_chow_liu(similarity, table, separate=separate)


def test_mutual_information_is_that_of_single_pairs() -> None:
    X = chains(300)
    found = mutual_information(as_table(X))
    upper = np.triu_indices(X.shape[1], 1)
    np.testing.assert_allclose(found[upper], slow_information(X)[upper], atol=1e-12)


def test_variables_are_leaves_of_hidden_chains() -> None:
    """x0 - h - h - x3: an inner variable hangs from its hidden copy."""
    structure = structure_of(as_table(chains()))
    tree = structure.tree
    assert (tree.degree()[: tree.n_observed] == 1).all()
    assert structure.shape == "hidden Chow-Liu"
    for first in (0, 4):
        inner = [int(tree.neighbors(first + i)[0]) for i in (1, 2)]
        assert inner[1] in tree.neighbors(inner[0])
        assert int(tree.neighbors(first)[0]) == inner[0]
        assert int(tree.neighbors(first + 3)[0]) == inner[1]


def test_independent_parts_are_joined_by_edges_of_support_0() -> None:
    structure = structure_of(as_table(chains()))
    assert structure.n_components == 4
    assert int((structure.support == 0).sum()) == 3
    assert independent_variables(structure) == ["x8", "x9"]
    assert structure.tree.n_hidden == 4  # two in each chain
    assert np.isinf(structure.standard_errors[structure.support == 0]).all()


def test_one_part_where_asked_for() -> None:
    structure = structure_of(as_table(chains()), separate=False)
    assert structure.n_components == 1
    assert (structure.support == 1).all()
