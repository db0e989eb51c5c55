"""Refinement by another engine: the model of the same samples, whatever their family."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.reference.engines import Elsewhere
from tests.reference.stages import fit_table

from latenttree.config import FitConfig
from latenttree.data import Table, as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.held_out import split_samples
from latenttree.model.samples import Samples, marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import effective_samples
from latenttree.refinement.tree_em import run_em

FAMILIES: dict[str, dict[str, Any]] = {
    "codes": {"n_categories": 3},
    "sparse": {"n_categories": 2},
    "numbers": {"family": "gaussian"},
    "counts": {"family": "poisson"},
    "groups": {"family": "multihot", "dim": 4},
    "mixed": {"family": "mixed", "dim": None},
}


def drawn(case: str, n: int) -> tuple[TreeModel, Table]:
    data = make_latent_tree(6, 2, n_samples=n, edge_length=0.4, random_state=0, **FAMILIES[case])
    X = sparse.csr_array(np.asarray(data.X)) if case == "sparse" else data.X
    weights = np.random.default_rng(0).integers(1, 4, n).astype(float)
    return data.model, as_table(X, family=data.family or "auto", sample_weight=weights)


def close(a: Any, b: Any) -> None:
    # sums over chunks of other sizes round differently
    np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("case", FAMILIES)
@pytest.mark.parametrize("online_from", [5000, 10**9])
def test_the_model_is_the_same(case: str, online_from: int) -> None:
    model, table = drawn(case, 9000)
    config = FitConfig(validation_fraction=0.2)
    found = []
    for engine in (table.engine, Elsewhere()):
        own = table.replace(engine=engine)
        train, held_out = split_samples(own, config)
        shares = marginals(own)
        options: Any = {"marginals": shares, "online_from": online_from, "max_steps": 40}
        for judged in (None, held_out):
            end = run_em(model, train, held_out=judged, **options)
            found.append((end, effective_samples(end.model, Samples(own))))
    for (one, here), (other, there) in zip(found[:2], found[2:], strict=True):
        close(one.trace, other.trace)
        close(one.held_out, other.held_out)
        close(here, there)
        for x, y in zip(one.model.cpts, other.model.cpts, strict=True):
            close(x, y)
        for v, emission in one.model.emissions.items():
            close(emission.vector(), other.model.emissions[v].vector())


def test_gaussian_trees_are_the_same() -> None:
    data = make_latent_tree(
        9, 1, family="gaussian", hidden="gaussian", n_samples=6000, random_state=0
    )
    table = as_table(data.X, family=data.family)
    found = [
        fit_table(table.replace(engine=engine), hidden="gaussian", n_states=1).fitted
        for engine in (table.engine, Elsewhere())
    ]
    one, other = (fitted.model for fitted in found if fitted is not None)
    for x, y in zip(one.loadings, other.loadings, strict=True):  # type: ignore[union-attr]
        close(x, y)
