"""Tables of every kind, with gaps and weights, for tests of moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table, as_table
from latenttree.engine import BLOCK

N = BLOCK + 700  # more than one block

FLOAT32 = {"rtol": 0, "atol": 2e-5}
"""Sums of N float32 terms of size 1, over N: the error is about sqrt(N) 6e-8, far below this."""


def codes_table() -> Table:
    """Columns of 2, 3, 5 and 9 categories, dependent through a common one."""
    rng = np.random.default_rng(0)
    common = rng.integers(0, 3, N)
    return as_table(
        np.column_stack([(common + rng.integers(0, d, N)) % d for d in (2, 3, 5, 9, 3, 4)])
    )


def sparse_binary_table() -> Table:
    rng = np.random.default_rng(1)
    common = rng.random(N) < 0.4
    rate = np.where(common[:, None], [0.7, 0.3, 0.5, 0.2, 0.1], [0.2, 0.1, 0.6, 0.05, 0.02])
    return as_table(sparse.csr_array((rng.random((N, 5)) < rate).astype(float)))


def blocks_table() -> Table:
    """Blocks of 1, 4 and 3 columns, numbers in bins and counts as they are, and categories."""
    rng = np.random.default_rng(2)
    common = rng.integers(0, 2, N)
    return as_table(
        [
            rng.standard_normal((N, 1)) + common[:, None],
            sparse.csr_array(rng.poisson(0.3 + common[:, None], (N, 4))),
            common ^ (rng.random(N) < 0.2),
            rng.standard_normal((N, 3)) - 2 * common[:, None],
        ],
        family={"x1": "poisson"},
    )


def weights(seed: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(seed)
    return np.where(rng.random(N) < 0.1, 0.0, rng.uniform(0.0, 3.0, N))


def with_gaps(x: NDArray[Any], share: float, rng: np.random.Generator) -> NDArray[np.float64]:
    """Whole rows of a block, or values of a column, are missing."""
    gaps = rng.random(len(x)) < share
    return np.where(gaps if x.ndim == 1 else gaps[:, None], np.nan, x)


def gappy_codes() -> Table:
    rng = np.random.default_rng(0)
    codes = codes_table().codes
    assert codes is not None
    columns = [with_gaps(x, share, rng) for x, share in zip(codes.T, np.arange(6) / 8, strict=True)]
    return as_table(np.column_stack(columns), sample_weight=weights(0))


def weighted_sparse_binary() -> Table:
    table = sparse_binary_table()
    return as_table(table.matrix, sample_weight=weights(1))


def gappy_blocks() -> Table:
    """Real, wide real, bag and multi-hot blocks; empty bags and lone codes are gaps too."""
    rng = np.random.default_rng(2)
    common = rng.integers(0, 2, N)[:, None]
    hot = (rng.random((N, 4)) < 0.2 + 0.3 * common).astype(float)
    hot[rng.random(hot.shape) < 0.1] = np.nan
    return as_table(
        {
            "real": with_gaps(rng.standard_normal((N, 2)) - 2 * common, 0.3, rng),
            "wide": with_gaps(rng.standard_normal((N, 17)) + common, 0.5, rng),
            "bag": rng.poisson(0.3 + common, (N, 3)),
            "hot": hot,
            "rates": rng.poisson(1 + common, (N, 2)),
        },
        family={"rates": "poisson"},
        sample_weight=weights(2),
    )


def mixed() -> Table:
    """Columns of a data frame and a block: kind "blocks", every variable with gaps of its own."""
    rng = np.random.default_rng(3)
    common = rng.integers(0, 3, N)
    columns = {
        "text": np.array(["u", "v", "w"])[(common + rng.integers(0, 2, N)) % 3].astype(object),
        "real": with_gaps(rng.standard_normal(N) + common, 0.4, rng),
        "count": with_gaps(rng.poisson(1 + common).astype(float), 0.2, rng),
        "block": with_gaps(rng.standard_normal((N, 20)) + common[:, None], 0.3, rng),
    }
    columns["text"][rng.random(N) < 0.25] = None
    return as_table(columns, family={"count": "poisson"})


def scores() -> Table:
    """Normal scores, for Gaussian trees."""
    rng = np.random.default_rng(4)
    x = rng.standard_normal((N, 4)) + rng.standard_normal((N, 1))
    columns = [with_gaps(column, 0.3, rng) for column in x.T]
    return as_table(np.column_stack(columns), scores=True, sample_weight=weights(4))


def random_basis(table: Table, n_directions: int) -> NDArray[np.float32]:
    return (
        np.random.default_rng(3).uniform(-1, 1, (int(table.offsets[-1]), n_directions)).astype("f4")
    )


GAPPY = pytest.mark.parametrize(
    "make", [gappy_codes, weighted_sparse_binary, gappy_blocks, mixed, scores]
)
KINDS = pytest.mark.parametrize("make", [codes_table, sparse_binary_table, blocks_table])
JOBS = pytest.mark.parametrize("n_jobs", [1, 2])
