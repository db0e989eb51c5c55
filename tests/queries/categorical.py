"""A model of categories with random CPTs, and answers by enumeration of its joint distribution."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from tests.reference.enumeration import joint, onto

from latenttree.data import Schema, as_table
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.queries import QueryMixin
from latenttree.tree import Tree

#       fruit   colour       size   ripe
#          \      |            |    /
#           +---- h0 -------- h1 --+----- shop
NAMES = ("fruit", "colour", "size", "ripe", "shop")
EDGES = [(0, 5), (1, 5), (2, 6), (3, 6), (4, 6), (5, 6)]
FRAME = pd.DataFrame(
    {
        "fruit": ["apple", "fig", "pear", "apple"],
        "colour": pd.Categorical(["red", "green", "red", "green"], ["red", "green"]),
        "size": [10, 20, 30, 20],
        "ripe": [True, False, False, True],
        "shop": [3, 1, 1, 3],
    }
)
DIMS = (3, 2, 3, 2, 2, 2, 2)


class Fitted(QueryMixin, BaseEstimator):
    """An estimator that is given its model."""

    tree_: Tree

    def __init__(
        self,
        n_jobs: int | None = 1,
        random_state: Any = 0,
        handle_unknown: Literal["missing", "error"] = "error",
    ) -> None:
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.handle_unknown = handle_unknown

    def fit(self, X: Any, y: Any = None) -> Fitted:
        return self


def make_model(names: tuple[str, ...], dims: tuple[int, ...], seed: int = 0) -> TreeModel:
    rng = np.random.default_rng(seed)
    tree = Tree.build(names, EDGES, np.ones(6))
    parents = tree.rooted(5).parents
    tables = [
        rng.dirichlet(np.ones(dims[v]) * 0.7, size=1 if u < 0 else dims[u]).T
        for v, u in enumerate(parents.tolist())
    ]
    return TreeModel(tree, 5, tuple(tables))


def fitted(X: Any = FRAME, dims: tuple[int, ...] = DIMS, seed: int = 0, **options: Any) -> Fitted:
    estimator = Fitted(**options)
    table = as_table(X, family="categorical")
    estimator.schema_ = Schema.of(X, table)
    estimator.model_ = make_model(table.names, dims, seed)
    estimator.n_features_in_ = estimator.schema_.n_features
    if isinstance(X, pd.DataFrame):
        estimator.feature_names_in_ = np.asarray(X.columns, dtype=object)
    return estimator


def answer(model: TreeModel, codes: Any, node: int, soft: Any = None) -> NDArray[np.float64]:
    """(n, d) by enumeration."""
    evidence = Evidence(np.atleast_2d(codes), soft or {})
    found = [onto(joint(model, evidence, s), node) for s in range(len(evidence))]
    return np.array([x / x.sum() for x in found])


def gapped(frame: pd.DataFrame, seed: int = 0) -> pd.DataFrame:
    mask = np.random.default_rng(seed).random(frame.shape) < 0.4
    return frame.astype(object).where(~mask, None)


BIG = FRAME.sample(200, replace=True, random_state=0, ignore_index=True)
close = {"rtol": 0, "atol": 1e-10}  # exact inference: rounding of a few dozen operations
