"""Families value by value: likelihoods from scipy.stats or the definition, statistics in loops."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats

from latenttree.model.emissions import FullGaussian, Gaussian

Floats = NDArray[np.float64]


def rows_of(values: Any) -> Floats:
    """Scalars, blocks and CSR as a dense block."""
    x = values.toarray() if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
    return x[:, None] if x.ndim == 1 else x


def log_likelihood(emission: Any, values: Any) -> Floats:
    """`(n, k)`, one value and one state at a time; gaps as the interface says."""
    x, k = rows_of(values), emission.n_states
    found = np.zeros((len(x), k))
    for i, j in product(range(len(x)), range(k)):
        found[i, j] = _one(emission, x[i], j)
    return found


def _one(e: Any, x: Floats, j: int) -> float:
    known = ~np.isnan(x)
    if e.family.startswith("gaussian") and isinstance(e, Gaussian):
        sd = np.sqrt(e.variance()[:, j])
        return float(stats.norm.logpdf(x[known], e.mean()[known, j], sd[known]).sum())
    if e.family == "poisson":
        return float(stats.poisson.logpmf(x[known], e.rates[known, j]).sum())
    if not known.all():
        return 0.0
    if isinstance(e, FullGaussian):
        covariance = e.covariance()[j % len(e.covariance())]
        return float(stats.multivariate_normal.logpdf(x, e.mean()[:, j], covariance))
    if e.family == "multinomial":
        return float(stats.multinomial.logpmf(x, x.sum(), e.table[:, j])) if x.sum() else 0.0
    if e.family == "multihot":
        return _hurdle(e.none[j], e.codes[:, j], x)
    code = int(x[0])
    return float(np.log(e.mean()[code, j])) if code >= 0 else 0.0


def _hurdle(none: float, q: Floats, x: Floats) -> float:
    """By enumeration of all patterns of codes for the normaliser."""
    if not x.any():
        return float(np.log(none))
    patterns = np.array(list(product([0, 1], repeat=len(q))))
    chances = np.prod(np.where(patterns == 1, q, 1 - q), axis=1)
    own = np.prod(np.where(x == 1, q, 1 - q))
    return float(np.log((1 - none) * own / chances[patterns.any(axis=1)].sum()))


def statistics(emission: Any, x: Floats) -> Floats:
    """`t(x)` of one row, `(T,)`, written out."""
    known = ~np.isnan(x)
    e, zeros = emission, np.zeros(len(x))
    if isinstance(e, Gaussian):
        z = np.where(known, (x - e.shift) / e.scale, 0.0)
        return np.concatenate([known, z, z**2])
    if e.family == "poisson":
        return np.concatenate([known, np.where(known, x, 0.0)])
    if isinstance(e, FullGaussian):
        d = len(x)
        if not known.all():
            return np.zeros(1 + d + d * (d + 1) // 2)
        z = (x - e.shift) / e.scale
        products = [z[a] * z[b] for a in range(d) for b in range(a, d)]
        return np.concatenate([[1.0], z, products])
    if e.family == "multinomial":
        return x if known.all() else zeros
    if e.family == "multihot":
        return np.concatenate([[1.0, not x.any()], x]) if known.all() else np.zeros(len(x) + 2)
    code = int(x[0]) if known.all() else -1
    one_hot = np.zeros(len(e.mean()))
    one_hot[code] = float(code >= 0)
    return one_hot


def sums(emission: Any, values: Any, weights: Floats) -> Floats:
    """`sum_i t(x_i) weights[i]`, one sample at a time."""
    return sum(  # type: ignore[return-value]
        np.outer(statistics(emission, x), w) for x, w in zip(rows_of(values), weights, strict=True)
    )
