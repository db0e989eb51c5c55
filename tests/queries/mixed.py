"""A model of numbers, counts, groups and categories, and its joint distribution by enumeration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from tests.queries.categorical import Fitted

from latenttree.data import Schema, as_table
from latenttree.model.emissions import pooled, target_of
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Floats = NDArray[np.float64]

#      age  visits  real              bag  codes  colour
#        \    |    /                    \    |    /
#         +--- h0 ----------------------- h1 ----+
#         size /                             \ flag
NAMES = ("age", "visits", "real", "size", "bag", "codes", "colour", "flag")
EDGES = [(0, 8), (1, 8), (2, 8), (3, 8), (4, 9), (5, 9), (6, 9), (7, 9), (8, 9)]
FAMILY = {"visits": "poisson", "size": "gaussian", "real": "gaussian_full"}
N, K = 80, 3


def make_data(seed: int = 0, thin: bool = False) -> dict[str, Any]:
    """Values of every family that depend on two hidden states."""
    rng = np.random.default_rng(seed)
    h = rng.integers(0, K, (N, 2))
    bag = rng.poisson(np.array([[1, 2, 1, 1], [3, 1, 1, 1], [1, 1, 1, 4]])[h[:, 1]])
    codes = (rng.random((N, 4)) < np.array([0.2, 0.4, 0.6])[h[:, 1], None]).astype(int)
    return {
        "age": rng.normal(10.0 * h[:, 0], 5),
        "visits": rng.poisson(1 + 2 * h[:, 0]),
        "real": rng.normal(size=(N, 2)) + h[:, :1],
        "size": rng.integers(0, 50, N) + 10 * h[:, 0],
        "bag": sparse.csr_array(bag) if thin else bag,
        "codes": sparse.csr_array(codes) if thin else codes,
        "colour": np.array(["red", "green", "blue"])[(h[:, 1] + (rng.random(N) < 0.3)) % 3],
        "flag": (h[:, 1] > 0) ^ (rng.random(N) < 0.2),
    }


def make_model(X: Any, seed: int = 0, **options: Any) -> Fitted:
    """A model of random tables, and emissions fitted to random shares of the samples."""
    rng = np.random.default_rng(seed)
    table = as_table(X, **options)
    assert table.values is not None
    tree = Tree.build(table.names, EDGES, np.ones(9))
    emissions = {}
    for v, values in table.values.arrays.items():
        start = pooled(table.families[v], values, K)
        shares = rng.dirichlet(np.full(K, 0.3), N)
        emissions[v] = start.from_sums(start.sums(values, shares), 0.5, target_of(start, values))
    parents = tree.rooted(8).parents.tolist()
    dims = [1 if v in emissions else int(table.dims[v]) for v in range(8)] + [K, K]
    tables = [
        rng.dirichlet(np.ones(dims[v]), size=1 if u < 0 else dims[u]).T
        for v, u in enumerate(parents)
    ]
    estimator = Fitted()
    estimator.schema_ = Schema.of(X, table)
    estimator.model_ = TreeModel(tree, 8, tuple(tables), emissions)
    estimator.n_features_in_ = estimator.schema_.n_features
    return estimator


def log_joint(model: TreeModel, codes: Any, arrays: Mapping[int, Any]) -> Floats:
    """(n, K, K) `log P(h0, h1, sample)`, term by term."""
    with np.errstate(divide="ignore"):
        logs = [np.log(table) for table in model.cpts]
    found = np.zeros((len(codes), K, K)) + logs[8] + logs[9].T
    for v in range(8):
        side = found if v < 4 else found.transpose(0, 2, 1)  # a view: h0 or h1 second
        for s in range(len(codes)):
            if v in model.emissions and v in arrays:
                side[s] += model.emissions[v].log_likelihood(arrays[v][[s]])[0][:, None]
            elif v not in model.emissions and codes[s, v] >= 0:
                side[s] += logs[v][codes[s, v]][:, None]
    return found


def summed(logs: Floats, axis: Any = None) -> Floats:
    top = logs.max(axis=(1, 2), keepdims=True)
    shape = (
        len(logs),
        *[n for i, n in enumerate(logs.shape[1:], 1) if i not in np.atleast_1d(axis)],
    )
    total = np.exp(logs - top).sum(axis=axis)
    return np.asarray(np.log(total) + top.reshape(len(logs), *[1] * (len(shape) - 1)))


def posteriors(logs: Floats) -> tuple[Floats, Floats]:
    """Of h0 and of h1, `(n, K)` each."""
    whole = np.exp(logs - logs.max(axis=(1, 2), keepdims=True))
    whole /= whole.sum(axis=(1, 2), keepdims=True)
    return whole.sum(axis=2), whole.sum(axis=1)


def gapped(X: Mapping[str, Any], seed: int = 0) -> dict[str, Any]:
    """A third of all values, and of the coordinates of blocks, is missing; one row is empty."""
    rng = np.random.default_rng(seed)
    found = {}
    for name, values in X.items():
        dense = values.toarray() if sparse.issparse(values) else np.asarray(values)
        mask = rng.random(dense.shape) < 0.3
        mask[11] = True
        gap = None if dense.dtype.kind in "UOb" else np.nan
        found[name] = np.where(mask, gap, dense.astype(object if gap is None else float))
        if sparse.issparse(values):
            found[name] = sparse.csr_array(found[name])
    return found


close = {"rtol": 0, "atol": 1e-9}  # exact inference: rounding of a few dozen operations


def data_of(model: Fitted, seed: int = 0) -> dict[str, Any]:
    return make_data(seed, model.schema_.form_of(4) == "sparse")
