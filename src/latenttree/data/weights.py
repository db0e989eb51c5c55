"""Sample weights are frequencies: a row of weight w counts as w rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import option_error
from latenttree.data.containers import Container
from latenttree.errors import DataError

MIN_TOTAL = 2.0
"""Nothing is learned from fewer than two rows."""

MAX_TOTAL = 2.0**53
"""Sums beyond this lose rows of weight one."""

RESCALE = "rescale them to counts, for example sample_weight * n / sample_weight.sum()"


def checked_numbers(sample_weight: Any, n: int) -> NDArray[np.float64]:
    """(n,) float64 weights: finite, none negative."""
    weights = np.asarray(sample_weight)
    if weights.dtype.kind not in "biuf":
        what = f" must hold numbers, got type {weights.dtype}"
        raise option_error("sample_weight", what, "convert it", weights.dtype)
    if weights.shape != (n,):
        what = f" has shape {weights.shape}, but X has {n} rows"
        remedy = "give one weight for each row, as a vector"
        raise option_error("sample_weight", what, remedy, weights.shape)
    weights = weights.astype(np.float64)
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        row = int(bad.argmax())
        what = f" of row {row} is {weights[row]}"
        remedy = "correct it, or leave the row out: weights must be finite and >= 0"
        raise option_error("sample_weight", what, remedy, weights[row], row)
    if weights.max(initial=0) > MAX_TOTAL:
        row = int(weights.argmax())
        raise _too_large(f" of row {row} is {weights[row]:.4g}", weights[row], row)
    return weights


def _too_large(what: str, value: float, row: int | None = None) -> DataError:
    """The error of a weight, or a sum of weights, beyond `MAX_TOTAL`."""
    why = ", but weights are frequencies, and sums beyond 2^53 lose rows of weight 1"
    return option_error("sample_weight", what + why, RESCALE, value, row)


def check_weights(sample_weight: Any, n: int, least: float = MIN_TOTAL) -> NDArray[np.float64]:
    """(n,) float64 weights: finite, none negative, adding up to at least `least`."""
    weights = checked_numbers(sample_weight, n)
    total = float(weights.sum())
    if total == 0:
        remedy = "give rows that count a weight above 0"
        raise option_error("sample_weight", f"all {n} sample weights are zero", remedy, 0.0)
    if total > MAX_TOTAL:
        raise _too_large(f"sample weights add up to {total:.4g}", total)
    if total < least:
        what = f"sample weights add up to {total:.4g}, but they are frequencies: a row "
        what += "of weight 3 counts as three rows"
        raise option_error("sample_weight", what, RESCALE, total)
    return weights


@contextmanager
def numbering_all_rows(all_weights: Callable[[], Any]) -> Iterator[None]:
    """Inside, only rows that count are known; errors leave with their numbers among all rows.

    `all_weights()` are the weights of all rows, None where they have none."""
    try:
        yield
    except DataError as error:
        weights = all_weights()
        if weights is not None:
            error.renumber(np.flatnonzero(np.asarray(weights) > 0).tolist())
        raise


def weighted_rows(
    container: Container, sample_weight: Any
) -> tuple[Container, NDArray[np.float64] | None]:
    """An input without its rows of weight 0, and the weights of the others; None: all are 1."""
    if sample_weight is None:
        return container, None
    weights = check_weights(sample_weight, container.shape[0])
    keep = weights > 0
    if not keep.all():
        container, weights = container.take(keep), weights[keep]
    return container, None if (weights == 1).all() else weights
