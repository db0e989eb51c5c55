"""A tree from a matrix of distances: names, and arguments that cannot be used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.random_trees import random_tree

import latenttree as lt
from latenttree.errors import DataError


def test_names() -> None:
    d = [[0, 3, 4], [3, 0, 5], [4, 5, 0]]
    assert lt.tree_from_distances(d).observed_names == ("x0", "x1", "x2")
    assert lt.tree_from_distances(d, names=["a", 2, "c"]).observed_names == ("a", "2", "c")


def test_the_matrix_is_left_alone() -> None:
    d = random_tree(np.random.default_rng(0), 10).path_lengths()
    before = d.copy()
    lt.tree_from_distances(d)
    np.testing.assert_array_equal(d, before)


BAD_MATRICES: dict[str, tuple[Any, Any, str, str]] = {  # matrix, value, what, remedy
    "empty": ([], (0,), "D has shape (0,)", "give a square matrix"),
    "not square": ([[0, 1]], (1, 2), "D has shape (1, 2)", "give a square matrix"),
    "three dimensions": (np.zeros((2, 2, 2)), (2, 2, 2), "shape (2, 2, 2)", "a square matrix"),
    "nothing": (None, (), "D has shape ()", "give a square matrix"),
    "negative": ([[0, -1], [-1, 0]], -1, "D[0, 1] = -1 is negative", "zero or more"),
    "diagonal": ([[0, 1], [1, 2]], 2, "D[1, 1] = 2 is on the diagonal", "must be zero"),
    "asymmetric": ([[0, 1], [2, 0]], (1, 2), "D[0, 1] = 1 but D[1, 0] = 2", "make it symmetric"),
    "half infinite": (
        [[0, np.inf], [1, 0]],
        (np.inf, 1),
        "D[0, 1] = inf but D[1, 0] = 1",
        "make it symmetric",
    ),
}


@pytest.mark.parametrize("case", BAD_MATRICES)
def test_bad_matrices_are_named(case: str) -> None:
    matrix, value, what, remedy = BAD_MATRICES[case]
    with pytest.raises(DataError) as error:
        lt.tree_from_distances(matrix)
    assert error.value.place.option == "D"
    assert error.value.value == value
    assert what in error.value.what
    assert remedy in error.value.remedy


def test_a_missing_distance_is_named() -> None:
    with pytest.raises(DataError) as error:
        lt.tree_from_distances([[0, np.nan], [np.nan, 0]])
    assert (error.value.place.option, error.value.place.row) == ("D", 0)
    assert np.isnan(error.value.value)
    assert str(error.value) == "D[0, 1] is NaN; give infinity for a pair without a distance"


@pytest.mark.parametrize("matrix", [[[0, "a"], ["a", 0]], [[0, 1], [1]], [[0, 1j], [1j, 0]]])
def test_a_matrix_that_is_not_numeric_is_named(matrix: Any) -> None:
    with pytest.raises(DataError) as error:
        lt.tree_from_distances(matrix)
    assert error.value.place.option == "D"
    assert "not a matrix of real numbers" in error.value.what


GOOD = np.array([[0, 3, 4], [3, 0, 5], [4, 5, 0.0]])
BAD_OPTIONS: dict[str, tuple[dict[str, Any], Any, str]] = {  # options, value, remedy
    "names": ({"names": ["a", "b"]}, 2, "give one for each row of D"),
    "errors of another shape": ({"standard_errors": np.zeros((2, 2))}, (2, 2), "for each distance"),
    "negative errors": ({"standard_errors": -GOOD}, -3, "give zero or more"),
    "NaN errors": ({"standard_errors": GOOD * np.nan}, np.nan, "give zero or more"),
    "no threads": ({"n_jobs": 0}, 0, "give a number of threads"),
    "support above one": ({"min_support": 2.0}, 2.0, "give a number from 0 to 1"),
    "negative epsilon": ({"epsilon": -1.0}, -1.0, "give a number above 0"),
    "epsilon that is no number": ({"epsilon": np.nan}, np.nan, "give a number above 0"),
}


@pytest.mark.parametrize("case", BAD_OPTIONS)
def test_bad_options_are_named(case: str) -> None:
    options, value, remedy = BAD_OPTIONS[case]
    with pytest.raises(DataError) as error:
        lt.tree_from_distances(GOOD, **options)
    assert error.value.place.option == next(iter(options))
    np.testing.assert_equal(error.value.value, value)
    assert remedy in error.value.remedy


def test_repeated_names_are_refused() -> None:
    with pytest.raises(ValueError, match="name 'a' is used more than once; make names unique"):
        lt.tree_from_distances(GOOD, names=["a", "b", "a"])
