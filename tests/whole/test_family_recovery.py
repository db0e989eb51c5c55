"""Every family alone and all together: the true tree, parameters near the best there are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import latenttree as lt
from benchmarks.oracle import oracle
from latenttree.data import as_table
from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree
from latenttree.evaluation.metrics import parameter_error, robinson_foulds
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples
from latenttree.refinement.tree_em import run_em

N = 10_000
SIZES = (9, 10, 15)
"""Variables of the trees of three seeds."""

CASES: dict[str, dict[str, Any]] = {
    "categories": {"family": "categorical", "n_categories": 4},
    "binary": {"family": "binary"},
    "numbers": {"family": "gaussian"},
    "spherical": {"family": "gaussian_spherical", "dim": 4},
    "diagonal": {"family": "gaussian_diagonal", "dim": 4},
    "wide": {"family": "gaussian_diagonal", "dim": 20},
    "full": {"family": "gaussian_full", "dim": 4},
    "tied": {"family": "gaussian_tied", "dim": 4},
    "counts": {"family": "poisson"},
    "count vectors": {"family": "poisson", "dim": 4},
    "bags": {"family": "multinomial", "dim": 5},
    "codes": {"family": "multihot", "dim": 5},
    "mixed": {"family": "mixed", "n_categories": 4},
}
RUNS = [
    (case, k) for case in CASES for k in (2, 3) if (case, k) not in (("binary", 3), ("wide", 3))
]


def drawn(p: int, k: int, seed: int, **options: Any) -> LatentTreeData:
    settings = {"n_samples": N, "edge_length": 0.5, "random_state": seed}
    return make_latent_tree(p, k, **(settings | options))


def learn(data: LatentTreeData, k: int) -> lt.LatentTree:
    return lt.LatentTree(k, family=data.family, random_state=0, n_jobs=2).fit(data.X)


def check_best(model: lt.LatentTree, data: LatentTreeData) -> None:
    """The likelihood is the highest that there is near the truth, and so are the parameters."""
    samples = Samples(as_table(data.X, family=data.family))
    best = run_em(data.model, samples, max_steps=100, n_jobs=2).model
    reached, there = (total_log_likelihood(m, samples, 2) for m in (model.model_, best))
    # both stop where less than 1/20 is to be gained for each parameter
    assert reached > there - 0.1 * best.n_parameters
    assert parameter_error(model, data) < 1.1 * parameter_error(best, data)


@pytest.mark.slow
@pytest.mark.parametrize(("case", "k"), RUNS)
def test_the_tree_comes_back(case: str, k: int) -> None:
    """10,000 samples, all edges 0.5: RF 0 in each of three seeds, and refinement never falls.

    Errors over those of the oracle, which sees the hidden states: over trees of 9, 18 and 27
    variables means were 0.99 to 1.13 for three states; for two, which are less certain, 1.05 to
    1.42. Maxima of the likelihood are no better."""
    ratios = []
    for seed, p in enumerate(SIZES):
        data = drawn(p, k, seed, **CASES[case])
        model = learn(data, k)
        assert robinson_foulds(model.tree_, data.tree) == 0
        gains = np.diff(model.diagnostics_.log_likelihood_trace)
        assert (gains >= -1e-9 * abs(model.diagnostics_.log_likelihood_trace[-1])).all()
        ratios.append(parameter_error(model, data) / parameter_error(oracle(data), data))
        if seed == 0:
            check_best(model, data)
    assert np.mean(ratios) < (1.3 if k == 3 else 1.6)


def graded(data: LatentTreeData, n_grades: int) -> pd.DataFrame:
    """Numbers cut into equally frequent grades."""
    frame = pd.DataFrame(data.X)
    return frame.apply(lambda x: pd.qcut(x, n_grades, labels=False))


@pytest.mark.parametrize("k", [2, 3])
def test_ordered_grades(k: int) -> None:
    """Five ordered grades, given as numbers of family "ordinal": their scores alone show them."""
    for seed, p in enumerate(SIZES):
        data = drawn(p, k, seed, family="gaussian", edge_length=0.35)
        frame = graded(data, 5)
        frame.columns = pd.Index(data.tree.observed_names)
        model = lt.LatentTree(k, family="ordinal", random_state=0).fit(frame)
        assert robinson_foulds(model.tree_, data.tree) == 0


@pytest.mark.parametrize(("k", "dim"), [(1, None), (1, 3), (2, 3)])
def test_gaussian_trees(k: int, dim: int | None) -> None:
    for seed, p in enumerate(SIZES):
        data = drawn(p, k, seed, hidden="gaussian", dim=dim)
        model = lt.LatentTree(k, hidden="gaussian", random_state=0, n_jobs=2).fit(data.X)
        assert robinson_foulds(model.tree_, data.tree) == 0
        found, true = (m.covariance() for m in (model.model_, data.model))
        d = sum(1 if dim is None else dim for _ in range(p))
        found, true = found[:d, :d], true[:d, :d]
        scale = np.sqrt(np.diag(true))
        # correlations have standard errors of 0.01 and less: five of them
        np.testing.assert_allclose(
            found / np.outer(scale, scale), true / np.outer(scale, scale), atol=0.06
        )


def test_blocks_of_all_families_in_one_table() -> None:
    """Every family at once, 27 variables, some sparse, some with gaps."""
    families = list(dict.fromkeys(options["family"] for options in CASES.values()))
    families.remove("mixed")
    data = make_latent_tree(
        27, 2, 4, family=families, n_samples=N, edge_length=0.4, missing=0.1, random_state=0
    )
    model = learn(data, 2)
    assert robinson_foulds(model.tree_, data.tree) == 0
    check_best(model, data)
    assert {e.family for e in model.model_.emissions.values()} == set(families) - {
        "categorical",
        "binary",
    }
