"""One EM step: the E-step of enumeration, the M-step of counts, and statistics of emissions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference.refine import even_targets, slow_counts, slow_em, slow_objective

from latenttree.data import as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.inference import Evidence
from latenttree.model.samples import Chunk, InMemory, Samples
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.em import visit
from latenttree.refinement.tree_problem import TreeProblem, mean_statistics


def case(seed: int, n: int = 40) -> tuple[TreeModel, Any]:
    data = make_latent_tree(5, 2, 3, shape="random", n_samples=n, random_state=seed)
    return data.model, np.asarray(data.X)


def problem_of(model: TreeModel, *parts: Any, smoothing: float = 1.0) -> TreeProblem:
    return TreeProblem(model, InMemory(parts), smoothing)


@pytest.mark.parametrize("seed", range(3))
def test_the_e_step_is_that_of_enumeration(seed: int) -> None:
    model, codes = case(seed)
    problem = problem_of(model, codes[:15], codes[15:])
    sums = problem.sums(problem.of_model(model))
    counts, value = slow_counts(model, Evidence(codes))
    flat = np.concatenate([np.ravel(c) for c in counts])
    np.testing.assert_allclose(sums.counts, flat, atol=1e-9)
    assert sums.value == pytest.approx(value, rel=1e-12)
    assert sums.statistics == {}


@pytest.mark.parametrize("seed", range(3))
def test_a_step_is_that_of_enumeration(seed: int) -> None:
    model, codes = case(seed)
    smoothing = 0.5
    problem = problem_of(model, codes, smoothing=smoothing)
    target = even_targets(model, model.marginals[:5])
    state = visit(problem, problem.of_model(model))
    expected = slow_em(model, Evidence(codes), smoothing, target, 1)
    found = problem.as_model(problem.maximise(state.sums))
    for x, y in zip(found.cpts, expected.cpts, strict=True):
        np.testing.assert_allclose(x, y, atol=1e-12)
    objective = slow_objective(model, Evidence(codes), smoothing, target)
    assert state.value == pytest.approx(objective, rel=1e-12)


def test_weights_multiply_samples() -> None:
    model, codes = case(0)
    weights = np.arange(len(codes)) % 3
    repeated = np.repeat(codes, weights, axis=0)
    weighted = Chunk(codes, weights=weights.astype(float))
    problems = (problem_of(model, part) for part in (weighted, repeated))
    one, other = (problem.sums(problem.of_model(model)) for problem in problems)
    np.testing.assert_allclose(one.counts, other.counts, atol=1e-9)
    assert one.value == pytest.approx(other.value, rel=1e-12)


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_statistics_of_emissions_sum_to_those_of_all_samples(family: str) -> None:
    """Posteriors sum to one, so the sum over the states does not depend on the model."""
    data = make_latent_tree(6, 2, family=family, n_samples=300, random_state=0)
    model, samples = data.model, Samples(as_table(data.X, family=data.family))
    problem = TreeProblem(model, samples)
    sums = problem.sums(problem.of_model(model))
    for v, mean in problem.means.items():
        np.testing.assert_allclose(sums.statistics[v].sum(axis=1) / 300, mean, rtol=1e-9)


def test_mean_statistics_of_a_categorical_model_are_none() -> None:
    model, codes = case(0)
    assert mean_statistics(model, InMemory([codes])) == {}
