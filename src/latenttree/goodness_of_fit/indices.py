"""SRMR, CFI and RMSEA of a correlation structure, as textbooks define them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Floats

DOUBTED = 4.0
"""A discrepancy so many standard deviations below its expectation says that the noise of these data
is not as supposed."""


class Indices(NamedTuple):
    """Fit indices; NaN where they do not exist."""

    srmr: float
    cfi: float
    rmsea: float


def srmr(observed: Floats, implied: Floats) -> float:
    """Standardised root mean square residual: `sqrt(mean (r - rho)^2)` over the pairs (Bentler
    1995; over correlations, without the diagonal, as variances are free)."""
    upper = np.triu_indices(len(observed), 1)
    return float(np.sqrt(np.mean((observed - implied)[upper] ** 2))) if len(upper[0]) else np.nan


def discrepancy(observed: Floats, implied: Floats) -> float:
    """Maximum-likelihood discrepancy `F = log det P - log det R + tr(R P^-1) - p` of an implied
    correlation matrix P and an observed one R (Joreskog 1969); NaN unless both are positive
    definite."""
    try:
        one, other = np.linalg.cholesky(observed), np.linalg.cholesky(implied)
    except np.linalg.LinAlgError:
        return float("nan")
    logs = 2 * float(np.log(np.diag(other)).sum() - np.log(np.diag(one)).sum())
    ratio = np.linalg.solve(other, one)
    return max(logs + float((ratio**2).sum()) - len(observed), 0.0)


def fit_indices(
    observed: Floats,
    implied: Floats,
    n: float,
    n_parameters: int,
    scale: float = 1.0,
    base_scale: float = 1.0,
) -> Indices:
    """The indices of correlation matrices `(p, p)` from n samples.

    `df = p (p - 1) / 2 - n_parameters`, `df_0 = p (p - 1) / 2`, noncentrality
    `delta = n F - scale df`, and `delta_0` alike for independence:

    - RMSEA `= sqrt(max(delta, 0) / (n df))` (Steiger and Lind 1980; Browne and Cudeck 1993),
    - CFI `= 1 - max(delta, 0) / max(delta, delta_0, 0)` (Bentler 1990).

    `scale` is 1 for normal data; otherwise the median ratio of the variances of correlations to
    those of normal data, which stands for the scaling of Satorra and Bentler (1994) in the robust
    forms of the indices (Brosseau-Liard, Savalei and Li 2012; Brosseau-Liard and Savalei 2014).

    Both are NaN without degrees of freedom, with fewer samples than variables, and where the
    discrepancy is far smaller than noise makes it, `n F < scale (df - 4 sqrt(2 df))`: noise then
    is not what `scale` says, and a perfect fit would be the work of that error."""
    p = len(observed)
    base_df = p * (p - 1) // 2
    df = base_df - n_parameters
    residual = srmr(observed, implied)
    if df <= 0 or n <= p:
        return Indices(residual, np.nan, np.nan)
    misfit = discrepancy(observed, implied)
    if not n * misfit >= scale * (df - DOUBTED * np.sqrt(2 * df)):  # or NaN
        return Indices(residual, np.nan, np.nan)
    delta = max(n * misfit - scale * df, 0.0)
    base = n * discrepancy(observed, np.eye(p)) - base_scale * base_df
    cfi = 1.0 if delta == 0 else 1 - delta / max(delta, base)
    return Indices(residual, float(cfi), float(np.sqrt(delta / (n * df))))
