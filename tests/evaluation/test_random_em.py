"""EM from random starts against `refine`, the true model's likelihood, and itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree.data import as_table
from latenttree.errors import DataError
from latenttree.evaluation.baselines import random_em
from latenttree.evaluation.baselines.random_em import random_model
from latenttree.evaluation.metrics import parameter_error
from latenttree.evaluation.simulation import LatentTreeData
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import InMemory, Samples, marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import canonical_states
from latenttree.refinement.tree_em import run_em

# Sums over 9 nodes and thousands of samples in another order; steps of EM contract differences.
ROUNDING = 1e-9


def nine(seed: int, n_samples: int = 2_000, n_states: int = 2) -> LatentTreeData:
    return lt.datasets.make_latent_tree(9, n_states, n_samples=n_samples, random_state=seed)


def likelihood(model: TreeModel, data: LatentTreeData) -> float:
    return total_log_likelihood(model, InMemory([data.X]))


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
@pytest.mark.parametrize("n_states", [2, 3])
def test_one_restart_is_plain_refinement_of_all_samples(n_states: int, smoothing: float) -> None:
    data = nine(0, n_states=n_states)
    table = as_table(data.X)
    base = dict(enumerate(marginals(table)))
    start = random_model(data.tree, base, n_states, np.random.default_rng(7))
    # refine mixes independence into its start, so the paths differ; the maximum does not
    slow = run_em(
        start,
        Samples(table),
        max_steps=200,
        tolerance=0.0,
        smoothing=smoothing,
        accelerate=False,
        marginals=marginals(table),
    )
    fast = random_em(
        data.tree,
        data.X,
        n_states,
        n_restarts=1,
        max_iter=2_000,
        tol=1e-13,
        smoothing=smoothing,
        random_state=7,
    )
    # near the maximum; 200 steps leave a gap of less than a thousandth of a unit
    assert fast.log_likelihood == pytest.approx(likelihood(fast.model, data), abs=1e-6)
    assert fast.log_likelihood >= likelihood(slow.model, data) - 1e-3


@pytest.mark.parametrize("seed", range(5))
def test_distinct_rows_count_like_all_samples(seed: int) -> None:
    """The same steps on all samples, one by one."""
    data = nine(seed, n_samples=500)
    table = as_table(data.X)
    tree = data.tree
    start = random_model(tree, dict(enumerate(marginals(table))), 2, np.random.default_rng(seed))
    for _ in range(4):
        start = slow_step(start, data.X)
    found = random_em(
        tree, data.X, 2, n_restarts=1, max_iter=4, tol=0.0, smoothing=0.0, random_state=seed
    )
    for a, b in zip(found.model.cpts, canonical_states(start).cpts, strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=ROUNDING)


def slow_step(model: TreeModel, X: Any) -> TreeModel:
    """An EM step with the posterior of each sample from all joint states of the hidden nodes."""
    p, m, k = model.tree.n_observed, model.tree.n_hidden, 2
    counts = [np.zeros_like(t) for t in model.cpts]
    for row in X:
        weights = {}
        for hidden in np.ndindex(*(k,) * m):
            states = (*row, *hidden)
            weights[states] = float(np.prod([_factor(model, v, states) for v in range(p + m)]))
        total = sum(weights.values())
        for states, weight in weights.items():
            for v in range(p + m):
                u = int(model.parents[v])
                counts[v][states[v], states[u] if u >= 0 else 0] += weight / total
    return TreeModel(model.tree, model.root, tuple(c / c.sum(axis=0) for c in counts))


def _factor(model: TreeModel, v: int, states: tuple[int, ...]) -> float:
    u = int(model.parents[v])
    return float(model.cpts[v][states[v], states[u] if u >= 0 else 0])


@pytest.mark.parametrize("seed", range(5))
def test_steps_and_restarts_never_lower_the_likelihood(seed: int) -> None:
    data = nine(seed)

    def value(**options: Any) -> float:
        found = random_em(data.tree, data.X, 2, smoothing=0.0, random_state=seed, **options)
        return found.log_likelihood

    steps = [value(n_restarts=1, max_iter=i, tol=0.0) for i in (1, 2, 3, 5, 8, 13, 21)]
    starts = [value(n_restarts=i, max_iter=20) for i in (1, 2, 5, 10)]
    assert (np.diff(steps) >= -1e-6).all()  # rounding of sums of some 1e4
    assert (np.diff(starts) >= 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_restarts_reach_the_maximum_near_the_truth(seed: int) -> None:
    """Of 200 starts on such data every one reached it: a start that does not is one in 70 or
    rarer (95%), ten that do not in a row are not to be seen."""
    data = nine(seed, n_samples=20_000)
    top = run_em(
        data.model, InMemory([data.X]), max_steps=500, tolerance=1e-11, smoothing=0.0
    ).model
    found = random_em(data.tree, data.X, 2, n_restarts=10, smoothing=0.0, tol=1e-10)
    # what tol leaves on the way up is about a hundred last steps of 1e-10 of 1e5
    assert found.log_likelihood >= likelihood(top, data) - 0.01
    assert parameter_error(found.model, top) < 0.01


def test_the_same_seed_gives_the_same_model_on_any_number_of_threads() -> None:
    data = nine(3)
    one, other = (
        random_em(data.tree, data.X, 2, n_restarts=2, random_state=5, n_jobs=jobs)
        for jobs in (1, 2)
    )
    assert one.log_likelihood == other.log_likelihood
    for a, b in zip(one.model.cpts, other.model.cpts, strict=True):
        np.testing.assert_array_equal(a, b)


def test_no_restart_is_begun_when_it_is_enough() -> None:
    data = nine(3)
    asked: list[int] = []

    def enough() -> bool:
        asked.append(0)
        return len(asked) == 2

    stopped = random_em(data.tree, data.X, 2, n_restarts=5, max_iter=20, random_state=0,
                        enough=enough)  # fmt: skip
    two = random_em(data.tree, data.X, 2, n_restarts=2, max_iter=20, random_state=0)
    assert len(asked) == 2
    assert stopped.log_likelihood == two.log_likelihood


def test_a_tree_without_hidden_nodes_is_counted() -> None:
    X = np.array([[0, 0], [0, 1], [1, 1], [1, 1]])
    tree = lt.Tree.build(("x0", "x1"), [(0, 1)], [1.0])
    model = random_em(tree, X, 2, n_restarts=1, smoothing=0.0).model
    np.testing.assert_allclose(model.joint("x0", "x1"), [[0.25, 0.25], [0.0, 0.5]], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_restarts": 0}, "n_restarts=0; give a number of starts"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"tol": -1.0}, r"tol=-1\.0"),
        ({"smoothing": np.nan}, "smoothing=nan"),
    ],
)
def test_bad_options(options: dict[str, Any], message: str) -> None:
    data = nine(0, n_samples=100)
    with pytest.raises(DataError, match=message):
        random_em(data.tree, data.X, 2, **options)


def test_the_variables_are_those_of_the_tree() -> None:
    data = nine(0, n_samples=100)
    with pytest.raises(DataError, match=r"9 variables .*8 variables .*in its order"):
        random_em(data.tree, data.X[:, :8], 2)
