"""Residuals of pairs: about 1 for data of a tree, more where there is none."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import latenttree as lt
from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.distances.stage import count_states, measure
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.structure.residuals import MANY_VARIABLES, TREE_FITS, mean_squared_residual
from latenttree.structure.stage import learn_structures

DIGITS = (load_digits().data > 8).astype(int)


def test_is_the_mean_over_all_pairs() -> None:
    data = make_latent_tree(9, n_samples=400, random_state=0)
    config, table = FitConfig(n_states=2), as_table(data.X)
    measured = measure(table, count_states(table, config), config)
    assert measured.similarity is not None
    tree, rho = data.tree, measured.similarity.rho
    expected = np.exp(-tree.path_lengths())
    z = [
        (rho[i, j] - expected[i, j]) / (1 - expected[i, j] ** 2) for i in range(9) for j in range(i)
    ]
    found = mean_squared_residual(measured.similarity, tree, 9)
    np.testing.assert_allclose(found, 400 * np.mean(np.square(z)), rtol=1e-6)


@pytest.mark.parametrize("shape", ["balanced", "caterpillar", "random"])
@pytest.mark.parametrize("n_samples", [500, 20_000])
def test_simulated_trees_fit(shape: str, n_samples: int) -> None:
    data = make_latent_tree(27, n_samples=n_samples, shape=shape, random_state=0)  # type: ignore[arg-type]
    report = lt.LatentTree(n_states=2, random_state=0, refine=None).fit(data.X).diagnostics_
    assert report.residual < TREE_FITS
    assert report.support_method == "model"


def test_pixels_do_not() -> None:
    model = lt.LatentTree(n_states=2, drop_constant=True, random_state=0, refine=None).fit(DIGITS)
    assert model.diagnostics_.residual > 5
    assert model.diagnostics_.support_method == "subsample"


def test_of_many_variables_some_are_taken() -> None:
    """The mean over 4,950 pairs differs from that over all by a few percent."""
    data = make_latent_tree(MANY_VARIABLES + 100, n_samples=1_000, random_state=0)
    config, table = FitConfig(n_states=2), as_table(data.X)
    measured = measure(table, count_states(table, config), config)
    found = learn_structures(measured, table, config)
    assert 0.5 < found.residual < TREE_FITS
