"""How time grows: slopes on log-log axes, with errors, and whether one got worse."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

CONFIDENCE = 2.0
"""Standard errors of a difference that are still noise."""

LEAST_ERROR = 0.03
"""No exponent is taken for better known than this: sizes are few, and machines differ."""


class Exponent(NamedTuple):
    """`time ~ size^slope`, the standard error of the slope, and the factor before it."""

    slope: float
    error: float
    factor: float


def fit_exponent(sizes: Sequence[float], seconds: Sequence[float]) -> Exponent:
    """Least squares of `log seconds` on `log size`.

    `slope = S_xy / S_xx`, `error^2 = (residual sum of squares / (m - 2)) / S_xx` over `m` points;
    infinite with two points, which no line misses.
    """
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(seconds, float))
    if len(x) < 2 or np.ptp(x) == 0:
        raise ValueError(f"{len(x)} sizes, {len(set(sizes))} different; an exponent needs two")
    mean_x, mean_y = x.mean(), y.mean()
    s_xx = float(((x - mean_x) ** 2).sum())
    slope = float(((x - mean_x) * (y - mean_y)).sum()) / s_xx
    rest = y - mean_y - slope * (x - mean_x)
    error = math.sqrt(float((rest**2).sum()) / (len(x) - 2) / s_xx) if len(x) > 2 else math.inf
    return Exponent(slope, error, float(np.exp(mean_y - slope * mean_x)))


def is_worse(new: Exponent, stored: Exponent) -> bool:
    """Whether time grows faster than it did, by more than the errors of both.

    `new - stored > 2 sqrt(max(e_new, 0.03)^2 + max(e_stored, 0.03)^2)`: with normal errors once in
    44 comparisons by chance. Slower by a constant factor is not worse; growing faster is.
    """
    noise = math.hypot(max(new.error, LEAST_ERROR), max(stored.error, LEAST_ERROR))
    return new.slope - stored.slope > CONFIDENCE * noise


def worse_than_stored(
    found: Mapping[str, Mapping[str, Any]], stored: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """One sentence for every exponent that got worse; names that only one of both has are passed
    over."""
    sentences = []
    for name in found.keys() & stored.keys():
        new, old = (Exponent(d["slope"], d["error"], 1.0) for d in (found[name], stored[name]))
        if is_worse(new, old):
            sentences.append(
                f"{name}: time grows with exponent {new.slope:.2f} ± {new.error:.2f}, it was "
                f"{old.slope:.2f} ± {old.error:.2f}"
            )
    return sorted(sentences)
