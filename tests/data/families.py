"""Tables of several families, and what the structure sees of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from latenttree.data import (
    Table,
)

N = 400


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def mixed(n: int = N, seed: int = 0) -> pd.DataFrame:
    r = rng(seed)
    return pd.DataFrame(
        {
            "flag": r.random(n) < 0.5,
            "code": r.integers(0, 3, n),
            "text": r.choice(["x", "y"], n),
            "level": pd.Categorical(
                r.choice(["low", "mid", "high"], n), categories=["low", "mid", "high"], ordered=True
            ),
            "real": r.normal(size=n),
            "count": r.poisson(3, n),
        }
    )


def with_gaps(frame: pd.DataFrame, seed: int = 1) -> tuple[pd.DataFrame, np.ndarray]:
    gaps = rng(seed).random(frame.shape) < 0.2
    holes: dict[str, Any] = {}
    for j, name in enumerate(frame):
        column = frame[name].astype(
            {"flag": "boolean", "count": "Int64"}.get(name, frame[name].dtype)
        )
        holes[name] = column.mask(gaps[:, j])
    return pd.DataFrame(holes), gaps


def dense(x: Any) -> np.ndarray:
    return np.asarray(x.toarray() if sparse.issparse(x) else x)


def structural(table: Table, v: int) -> np.ndarray:
    """(n, dim) the coordinates of a variable."""
    if table.codes is not None:
        return (table.codes[:, [v]] == np.arange(table.dims[v])).astype(float)
    assert table.matrix is not None
    return dense(table.matrix[:, table.offsets[v] : table.offsets[v + 1]])


def array(table: Table, v: int) -> Any:
    assert table.values is not None
    return table.values.arrays[v]


def codes_of(n: int, d: int = 3) -> np.ndarray:
    return np.arange(n) % d
