"""The same model whether samples are here or in other processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import sparse
from tests.engine.process_engine import elsewhere

import latenttree as lt
from latenttree.data import as_table
from latenttree.data.columns.builder import table_of_scores
from latenttree.data.content_order import in_content_order
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io.model_arrays import arrays_of

N = 9_000  # three blocks of samples


class Case(NamedTuple):
    """Samples, how they are read, how they are fitted, and how far numbers may differ."""

    X: Any
    read: dict[str, Any]
    fit: dict[str, Any]
    close: float


EXACT = 1e-9
"""Sums of float64 in another order."""

HALVED = 1e-5
"""Some of the samples (a half, those not held out) have other blocks of float32 sums where each
process takes its own part of them."""


def drawn(p: int = 8, k: int = 2, d: int | None = None, close: float = EXACT, **how: Any) -> Case:
    data = make_latent_tree(p, k, d, n_samples=N, random_state=0, **how)
    return Case(data.X, {"family": data.family}, {"n_states": k}, close)


def words() -> Any:
    rng = np.random.default_rng(0)
    topic = rng.integers(0, 4, N)
    chance = np.where(topic[:, None] == np.arange(40) % 4, 0.4, 0.03)
    return sparse.csr_array((rng.random((N, 40)) < chance).astype(np.uint8))


def weights() -> Any:
    return np.random.default_rng(1).integers(1, 4, N).astype(np.float64)


def numbers(**how: Any) -> Any:
    return make_latent_tree(9, 1, hidden="gaussian", n_samples=N, random_state=0, **how).X


CASES: dict[str, Any] = {
    "binary": lambda: drawn(12),
    "categories": lambda: drawn(8, 3, 5, HALVED),
    "missing categories": lambda: drawn(8, 3, 5, HALVED, missing=0.1),
    "ordinal": lambda: drawn(8, 2, 5, family="ordinal"),
    "poisson": lambda: drawn(8, family="poisson", close=HALVED),
    "numbers": lambda: drawn(8, family="gaussian", close=HALVED),
    "missing numbers": lambda: drawn(8, family="gaussian", missing=0.1, close=HALVED),
    "blocks": lambda: drawn(8, family="gaussian_diagonal", dim=3, close=HALVED),
    "multihot": lambda: drawn(8, 2, 6, family="multihot", close=HALVED),
    "mixed with gaps": lambda: drawn(10, 2, 4, family="mixed", missing=0.1, close=HALVED),
    "sparse binary": lambda: Case(words(), {}, {"n_states": 2}, EXACT),
    "sparse weights": lambda: Case(words(), {"sample_weight": weights()}, {"n_states": 2}, EXACT),
    "weights": lambda: drawn(8, 2)._replace(read={"sample_weight": weights()}),
    "held out": lambda: drawn(8, 2, close=HALVED)._replace(fit={"validation_fraction": 0.2}),
    "auto": lambda: drawn(9, 3, 4, HALVED)._replace(fit={"n_states": "auto"}),
    "hidden Gaussian": lambda: Case(numbers(), {}, {"hidden": "gaussian", "n_states": 1}, HALVED),
    "hidden gaps": lambda: Case(
        numbers(missing=0.1), {}, {"hidden": "gaussian", "n_states": 1}, HALVED
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_model_is_the_same(name: str, tmp_path: Path) -> None:
    case = CASES[name]()
    table = as_table(case.X, **case.read)
    if case.fit.get("hidden") == "gaussian":
        table = table_of_scores(table)
    table = in_content_order(table)
    options = {"random_state": 0, "n_jobs": 1} | case.fit
    here = lt.LatentTree(**options).fit(table)
    with elsewhere(table, tmp_path) as far:
        there = lt.LatentTree(**options).fit(far)
    np.testing.assert_array_equal(there.tree_.edges, here.tree_.edges)
    close = {"rtol": case.close, "atol": case.close}
    np.testing.assert_allclose(there.tree_.lengths, here.tree_.lengths, **close)
    one, two = (arrays_of(model.model_) for model in (there, here))
    assert one.keys() == two.keys()
    for part in one:
        np.testing.assert_allclose(one[part][0], two[part][0], **close, err_msg=part)
