"""Fitted models with tables, from random parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.queries import categorical, mixed

from latenttree.report import Diagnostics
from latenttree.tables import TableMixin


class Tabled(TableMixin, categorical.Fitted):
    """An estimator that is given its model, with the tables of it."""

    smoothing = 1.0


def tabled(fitted: Any) -> Tabled:
    """The same model with tables."""
    model = Tabled()
    model.model_, model.schema_, model.tree_ = fitted.model_, fitted.schema_, fitted.model_.tree
    model.n_features_in_ = fitted.n_features_in_
    n_edges = model.tree_.n_edges
    model.diagnostics_ = Diagnostics(2, support=np.ones(n_edges))
    return model


def categories(seed: int = 0) -> Tabled:
    return tabled(categorical.fitted(seed=seed))


def mixture(seed: int = 0) -> Tabled:
    return tabled(mixed.make_model(mixed.make_data(seed), seed, family=mixed.FAMILY))


Floats = NDArray[np.float64]
