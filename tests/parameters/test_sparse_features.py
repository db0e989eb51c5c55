"""Views and moments of samples in which few variables are present, against those of codes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from tests.reference.enumeration import model_on
from tests.reference.random_trees import random_tree

from latenttree.data.chunk import Chunk
from latenttree.model.samples import InMemory
from latenttree.model.tree_model import TreeModel
from latenttree.moments import sparse_triples as present
from latenttree.moments.sparse_triples import sparse_triple_moments
from latenttree.moments.triples import TripleLayout, TripleMoments, triple_moments
from latenttree.parameters.estimate import estimate_by_moments
from latenttree.parameters.features import ViewValues, leaf_projections
from latenttree.parameters.solving import layout_of
from latenttree.parameters.views import Views, choose_views

CLOSE = 1e-5  # products of float32 numbers of size 1, sums in pieces of 256


class Case:
    """A random model of presence, some samples of it, weights, and how leaves are looked at."""

    def __init__(self, seed: int, k: int, inside: float) -> None:
        rng = np.random.default_rng(seed)
        p = int(rng.integers(5, 40))
        tree = random_tree(rng, p, max_degree=9, internal_observed_fraction=inside)
        self.model = model_on(rng, tree, np.where(np.arange(tree.n_nodes) < p, 2, k))
        self.codes = (rng.random((700, p)) < 0.3).astype(np.uint8)
        self.weights = rng.random(700)
        share = self.codes.mean(axis=0)
        self.projections: Sequence[Any] = [
            leaf_projections(rng.normal(size=(2, k - 1)), np.array([1 - s, s])) for s in share
        ]

    @property
    def dense(self) -> Chunk:
        return Chunk(self.codes, {}, self.weights)

    @property
    def sparse(self) -> Chunk:
        return Chunk(csr_array(self.codes), {}, self.weights)


def cases(k: int) -> list[Case]:
    return [Case(seed, k, inside) for seed in range(6) for inside in (0.0, 0.4)]


def both_features(case: Case, views: Views, model: TreeModel | None) -> tuple[Any, Any]:
    given = (views, case.projections, model)
    return ViewValues(*given, sparse=True), ViewValues(*given)


@pytest.mark.parametrize("k", [2, 3])
def test_features_are_those_of_codes(k: int) -> None:
    for case in cases(k):
        for hidden in (False, True):
            views = choose_views(case.model.tree, k - 1, hidden)
            new, old = both_features(case, views, case.model if hidden else None)
            expected = old.of(case.dense, 1)
            assert (expected[:, 0] == 1).all()
            np.testing.assert_allclose(new.of(case.sparse, 2), expected[:, 1:], atol=CLOSE)


def check_moments(found: TripleMoments, expected: TripleMoments) -> None:
    for name in ("own", "third", "cross", "n_samples"):
        np.testing.assert_allclose(
            getattr(found, name), getattr(expected, name), rtol=CLOSE, atol=CLOSE
        )
    for name in ("emitted", "counted"):
        assert len(getattr(found, name)) == len(getattr(expected, name))
        for a, b in zip(getattr(found, name), getattr(expected, name), strict=True):
            np.testing.assert_allclose(a, b, atol=CLOSE)


def moments_of(case: Case, views: Views, layout: TripleLayout, n_jobs: int = 2) -> TripleMoments:
    k = int(case.model.dims.max())
    look_up = ViewValues(views, case.projections, case.model, sparse=True)
    return sparse_triple_moments(InMemory([case.sparse]), look_up, layout, k, n_jobs)


@pytest.mark.parametrize("k", [2, 3])
def test_moments_are_those_of_codes(k: int) -> None:
    for case in cases(k):
        views = choose_views(case.model.tree, k - 1, hidden=True)
        layout = layout_of(case.model.tree, views, case.model.dims[: case.codes.shape[1]])
        look_up = ViewValues(views, case.projections, case.model)
        expected = triple_moments(InMemory([case.dense]), look_up, layout, k, 1)
        check_moments(moments_of(case, views, layout), expected)


def test_moments_do_not_depend_on_threads_and_hardly_on_pieces(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = Case(1, 2, 0.2)
    views = choose_views(case.model.tree, 1, hidden=True)
    layout = layout_of(case.model.tree, views, case.model.dims[: case.codes.shape[1]])
    one, two = (moments_of(case, views, layout, jobs) for jobs in (1, 3))
    for a, b in zip(one[:3], two[:3], strict=True):
        np.testing.assert_array_equal(a, b)
    monkeypatch.setattr(present, "MAX_VALUES", 1)
    check_moments(moments_of(case, views, layout), one)


def test_parameters_are_those_of_codes() -> None:
    """To what float32 features leave of them in the decompositions."""
    for seed in range(4):
        case = Case(seed, 2, 0.0)
        p = case.codes.shape[1]
        share = [np.array([1 - s, s]) for s in case.codes.mean(axis=0)]
        found, expected = (
            estimate_by_moments(
                case.model.tree,
                case.projections,
                case.model.dims[:p],
                share,
                InMemory([c]),
                2,
            )
            for c in (case.sparse, case.dense)
        )
        fine = expected.condition < 10
        np.testing.assert_allclose(found.condition[fine], expected.condition[fine], rtol=1e-2)
