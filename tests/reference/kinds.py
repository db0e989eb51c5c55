"""Small tables of every kind, with the options to learn from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from latenttree.evaluation.datasets import make_latent_tree

N = 1_200


def drawn(seed: int = 0, **options: Any) -> Any:
    settings = {"n_observed": 9, "n_samples": N, "edge_length": 0.3, "random_state": seed}
    return make_latent_tree(**(settings | options))


def categories() -> tuple[Any, dict[str, Any]]:
    """More categories than states: subspaces from one half of the samples, moments from the
    other."""
    return drawn(n_states=2, n_categories=5).X, {}


def three_states() -> tuple[Any, dict[str, Any]]:
    return drawn(n_states=3, n_categories=8).X, {"n_states": 3}


def gaps() -> tuple[Any, dict[str, Any]]:
    return drawn(n_states=2, n_categories=3, missing=0.2).X, {}


def binary() -> tuple[Any, dict[str, Any]]:
    return drawn().X, {}


def sparse_binary() -> tuple[Any, dict[str, Any]]:
    return sparse.csr_array(drawn().X), {}


def numbers() -> tuple[Any, dict[str, Any]]:
    return drawn(family="gaussian").X, {}


def counts() -> tuple[Any, dict[str, Any]]:
    return drawn(family="poisson").X, {"family": "poisson"}


def bags() -> tuple[Any, dict[str, Any]]:
    return drawn(family="multinomial", n_categories=4).X, {}


def groups() -> tuple[Any, dict[str, Any]]:
    """A sparse matrix whose columns are codes, six to a group."""
    blocks = drawn(family="multihot", n_categories=6).X
    matrix = sparse.csr_array(np.column_stack(list(blocks.values())))
    return matrix, {"groups": np.repeat([f"group {i}" for i in range(9)], 6)}


def frame() -> tuple[Any, dict[str, Any]]:
    """A DataFrame of labels, ordered grades, numbers and counts, all with gaps."""
    families = ("categorical", "gaussian", "poisson")
    columns = drawn(n_categories=3, family=families, missing=0.15).X
    table = pd.DataFrame(columns)
    for name in ("x0", "x3"):
        known = table[name].notna()
        table[name] = table[name].map({0: "low", 1: "mid", 2: "high"}).where(known, None)
    counted = {f"x{i}": "poisson" for i in (2, 5, 8)}
    return table, {"family": {"x6": "ordinal"} | counted}


def gaussian_tree() -> tuple[Any, dict[str, Any]]:
    return drawn(n_states=1, hidden="gaussian", missing=0.1).X, {"hidden": "gaussian"}


def gaussian_blocks() -> tuple[Any, dict[str, Any]]:
    X = drawn(n_states=2, n_categories=3, hidden="gaussian").X
    return X, {"hidden": "gaussian", "n_states": 2}


CASES = {
    make.__name__: make
    for make in (
        categories,
        three_states,
        gaps,
        binary,
        sparse_binary,
        numbers,
        counts,
        bags,
        groups,
        frame,
        gaussian_tree,
        gaussian_blocks,
    )
}


def rows_of(X: Any, index: NDArray[Any]) -> Any:
    """Some rows of a table, in that order."""
    if isinstance(X, dict):
        return {name: x[index] for name, x in X.items()}
    return X.iloc[index].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[index]


def parameters(model: Any) -> list[NDArray[np.float64]]:
    """All numbers of a fitted model."""
    if hasattr(model, "cpts"):
        return [*model.cpts, *(e.vector() for _, e in sorted(model.emissions.items()))]
    return [np.asarray(x) for x in model.to_arrays().values()]
