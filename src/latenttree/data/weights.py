"""Sample weights: how often each row counts, as if it stood in the table so many times."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.errors import DataError, Option, Text

LEAST_TOTAL = 2.0
"""Weights are counts of rows, and nothing is learned from fewer than two."""

MOST_TOTAL = 2.0**53
"""Beyond it a sum loses rows of weight one."""

RESCALE = "rescale them to counts, for example sample_weight * n / sample_weight.sum()"


def checked_numbers(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """(n,) float64 weights: finite, none negative."""
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf":
        raise DataError(
            Text(Option("sample_weight"), f" must hold numbers, got type {weights.dtype}"),
            "convert it",
            value=weights.dtype,
            option="sample_weight",
        )
    if weights.shape != (n,):
        raise DataError(
            Text(Option("sample_weight"), f" has shape {weights.shape}, but X has {n} rows"),
            "give one weight for each row, as a vector",
            value=weights.shape,
            option="sample_weight",
        )
    weights = weights.astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            Text(Option("sample_weight"), f" of row {row} is {weights[row]}"),
            "correct it, or leave the row out: weights must be finite and >= 0",
            value=weights[row],
            row=row,
            option="sample_weight",
        )
    if weights.max(initial=0) > MOST_TOTAL:
        row = int(weights.argmax())
        what = Text(Option("sample_weight"), f" of row {row} is {weights[row]:.4g}")
        raise _too_large(what, weights[row], row)
    return weights


def _too_large(what: str, value: float, row: int | None = None) -> DataError:
    return DataError(
        Text(what, ", but weights are frequencies, and sums beyond 2^53 lose rows of weight 1"),
        RESCALE,
        value=value,
        row=row,
        option="sample_weight",
    )


def check_weights(sample_weight: Any, n: int, least: float = LEAST_TOTAL) -> NDArray[np.float64]:
    """(n,) float64 weights: finite, none negative, worth at least `least` rows together."""
    weights = checked_numbers(sample_weight, n)
    total = float(weights.sum())
    if total == 0:
        raise DataError(
            f"all {n} sample weights are zero",
            "give rows that count a weight above 0",
            value=0.0,
            option="sample_weight",
        )
    if total > MOST_TOTAL:
        raise _too_large(f"sample weights add up to {total:.4g}", total)
    if total < least:
        raise DataError(
            f"sample weights add up to {total:.4g}, but they are frequencies: a row "
            "of weight 3 counts as three rows",
            RESCALE,
            value=total,
            option="sample_weight",
        )
    return weights


def weighted_rows(X: Any, sample_weight: Any) -> tuple[Any, NDArray[np.float64] | None]:
    """`X` without its rows of weight 0, and the weights of the others; None where all are 1."""
    if sample_weight is None:
        return X, None
    weights = check_weights(sample_weight, n_rows(X))
    keep = weights > 0
    if not keep.all():
        X, weights = take_rows(X, keep), weights[keep]
    return X, None if (weights == 1).all() else weights


def n_rows(X: Any) -> int:
    """Samples in any input that `as_table` takes."""
    if isinstance(X, Mapping) and not sparse.issparse(X):  # some of SciPy's are both
        X = list(X.values())
    elif hasattr(X, "shape"):
        return int(X.shape[0]) if len(X.shape) else 0
    elif not hasattr(X, "__len__"):
        return len(np.asarray(X)) if hasattr(X, "__array__") else 0
    elif not _has_blocks(X):
        return len(X)
    return n_rows(X[0]) if len(X) else 0


def take_rows(X: Any, keep: NDArray[np.bool_]) -> Any:
    """The rows that a mask keeps, in the same container."""
    if sparse.issparse(X):
        return sparse.csr_array(X)[keep]
    if isinstance(X, Mapping):
        return {name: take_rows(block, keep) for name, block in X.items()}
    if isinstance(X, np.ndarray):
        return X[keep]
    if isinstance(X, list | tuple):
        if _has_blocks(X):
            return [take_rows(block, keep) for block in X]
        return [row for row, kept in zip(X, keep, strict=True) if kept]
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.DataFrame | nw.Series):
        return frame.filter(keep.tolist()).to_native()
    return np.asarray(X)[keep]


def _has_blocks(X: Any) -> bool:
    return any(sparse.issparse(item) or isinstance(item, np.ndarray) for item in X)
