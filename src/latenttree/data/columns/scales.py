"""Scales: few evenly spaced whole numbers from 0 on, such as answers from 1 to 5.

- A scale has 3 to 11 levels, of which at most one in five does not occur. Two levels are no scale:
  they have no order that matters.
- Up to 5% of the known values (by their weights) may be fractions, as imputation leaves them, no
  further than one step outside the levels. They are rounded to the nearest level that occurs, and
  two levels are enough then.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.columns.vectors import Vector

Floats = NDArray[np.float64]

MIN_LEVELS = 3
MAX_LEVELS = 11
"""Levels of a scale: 0 to 10 is a common one."""

LEAST_PRESENT = 0.8
"""Share of the levels that occur, at least: small samples lack some."""

MAX_FRACTIONS = 0.05
"""Share of the known values that may be fractions."""

MAX_MIXED = 0.5
"""Up to this share of fractions among the levels of a scale, reading all as numbers is noted."""

_PREVIEW = 1000  # values that are looked at first: columns with many values show them soon
_MAX_LEVEL = 2**31  # larger whole numbers are no levels


def is_scale(known: NDArray[Any]) -> bool:
    """Whether whole numbers, of any type, are a scale."""
    levels = _levels(known)
    return levels is not None and len(levels) >= MIN_LEVELS


def without_fractions(vector: Vector, mass: Floats | None) -> tuple[Vector, float]:
    """The vector, and the share of fractions among the levels of a scale, 0 where it has none.

    Where they are few, they are rounded, and the vector has whole numbers that may be a scale.
    `mass` `(m,)` are the weights of the known values."""
    known = vector.known
    if known.dtype.kind != "f":
        return vector, 0.0
    fractions = known != np.floor(known)
    if not fractions.any():
        return vector, 0.0
    share = float(fractions.mean() if mass is None else mass[fractions].sum() / mass.sum())
    levels = None if share > MAX_MIXED else _levels(known[~fractions])
    if levels is None or not _near(known[fractions], levels):
        return vector, 0.0
    if share > MAX_FRACTIONS:
        return vector, share
    return replace(vector, known=nearest_level(known, levels), scales=True), share


def nearest_level(values: NDArray[Any], levels: NDArray[Any]) -> NDArray[Any]:
    """(n,) the level, of some in increasing order, that each value is nearest to; halves go to the
    lower one."""
    middle = (levels[1:] + levels[:-1]) / 2
    return levels[np.searchsorted(middle, values)]


def on_levels(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any] | None:
    """Numbers with their fractions rounded to whole-numbered labels, in increasing order, as
    training rounds them; None where there is none to round."""
    if values.dtype.kind != "f" or labels.dtype.kind not in "iu" or len(labels) < 2:
        return None
    levels = labels.astype(np.int64)
    step = np.diff(levels).min()
    near = (values >= levels[0] - step) & (values <= levels[-1] + step)
    near &= values != np.floor(values)
    return np.where(near, nearest_level(values, levels), values) if near.any() else None


def _near(values: NDArray[Any], levels: NDArray[np.int64]) -> bool:
    """Whether values are at most a step outside the levels."""
    step = np.diff(levels).min()
    return bool(levels[0] - step <= values.min() and values.max() <= levels[-1] + step)


def _levels(known: NDArray[Any]) -> NDArray[np.int64] | None:
    """(2 to 11,) the different values, where they are evenly spaced whole numbers; else None."""
    if not len(known) or known.min() < 0 or known.max() > _MAX_LEVEL:
        return None
    for some in (known[:_PREVIEW], known):
        values = np.unique(some)
        if len(values) > MAX_LEVELS:
            return None
    levels = values.astype(np.int64)
    if len(levels) < 2 or not np.array_equal(levels, values):
        return None
    steps = np.diff(levels)
    n_levels = (levels[-1] - levels[0]) / steps.min() + 1
    even = not (steps % steps.min()).any() and n_levels <= MAX_LEVELS
    return levels if even and len(levels) >= LEAST_PRESENT * n_levels else None
