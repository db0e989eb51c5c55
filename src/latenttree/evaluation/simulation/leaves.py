"""Leaves that are not categorical: emissions whose edge has a given information length.

The length is the one that the structure sees: `-sum log s_i` over the k - 1 canonical correlations
of the hidden state with the functions of the value that the structure uses: quantile bins of
numbers and of the coordinates of small vectors, else the coordinates themselves. With means between
states `A = (E[f | h] - E[f]) sqrt(P(h))` and the mean covariance within states `W`, the covariance
of the functions is `W + A A'`, so `s_i^2 = g_i / (1 + g_i)` with `g` the eigenvalues of
`A' W^-1 A`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, pdtr

from latenttree.engine.arrays import Floats
from latenttree.evaluation.simulation.channels import columns
from latenttree.model.emissions import (
    Emission,
    FullGaussian,
    Gaussian,
    MultiHot,
    Multinomial,
    Poisson,
)

Maker = Callable[[float], Emission]

N_BINS = 16
WIDEST_BINNED = 16
"""Vectors with more coordinates are used as they are."""

WIDEST_DENSE = 1000
"""Blocks of counts with more coordinates are sparse."""

FARTHEST = 30.0
"""Largest gap between states, in standard deviations of the noise."""

SCALARS = ("gaussian", "poisson")
"""Families that are single numbers unless a dimension is asked for."""


def make_emission(
    family: str,
    prior: Floats,
    length: float,
    dim: int | None,
    bag_size: int,
    rng: np.random.Generator,
) -> Emission:
    """A member of the family in general position, its states as far apart as `length` says (or as
    far as the family can)."""
    k = len(prior)
    if dim is None:
        maker = _numbers(k, rng) if family == "gaussian" else _scalar_counts(k, rng)
    elif family == "multinomial":
        maker = _bags(k, dim, bag_size, rng)
    elif family == "multihot":
        maker = _codes(k, dim, rng)
    elif family == "poisson":
        maker = _counts(k, dim, rng)
    else:
        maker = _vectors(family, k, dim, rng)
    return _stretched(maker, prior, length)


def _stretched(maker: Maker, prior: Floats, length: float) -> Emission:
    """`maker(t)` with the given length, which falls with t; t = 1 where even that is longer."""

    def excess(t: float) -> float:
        return seen_length(maker(t), prior) - length

    return maker(1.0 if excess(1.0) >= 0 else float(brentq(excess, 1e-6, 1.0, xtol=1e-10)))


# ---- emissions from states that are all equal (t = 0) to states far apart (t = 1) ---------------


def _numbers(k: int, rng: np.random.Generator) -> Maker:
    """Means spread evenly, in a random order of the states."""
    places = rng.permutation(k) + rng.uniform(-0.15, 0.15, k)
    variances, shift = rng.uniform(0.7, 1.3, (1, k)), rng.normal(0.0, 2.0, 1)
    return lambda t: Gaussian(FARTHEST * t * places[None], variances, shift, np.ones(1))


def _scalar_counts(k: int, rng: np.random.Generator) -> Maker:
    """Roots of the rates, whose noise is the same everywhere, spread evenly."""
    places, least = rng.permutation(k) + rng.uniform(0.0, 0.3, k), rng.uniform(0.8, 1.2)
    return lambda t: Poisson((least + FARTHEST * t * places[None]) ** 2)


def _counts(k: int, d: int, rng: np.random.Generator) -> Maker:
    own, least = _owned(k, d, rng), rng.uniform(0.8, 1.2, (d, 1))
    form: Any = "dense" if d <= WIDEST_DENSE else "sparse"
    return lambda t: Poisson((least + FARTHEST * t * own) ** 2, form)


def _vectors(family: str, k: int, d: int, rng: np.random.Generator) -> Maker:
    """Means at the corners of a simplex, turned at random and not quite regular."""
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    corners = axes @ (np.eye(k) + rng.uniform(-0.1, 0.1, (k, k)))
    shift, scale = rng.normal(0.0, 2.0, d), np.ones(d)
    if family in ("gaussian_full", "gaussian_tied"):
        spread = np.stack(
            [_covariance(d, rng) for _ in range(1 if family == "gaussian_tied" else k)]
        )
        return lambda t: FullGaussian(FARTHEST * t * corners, spread, shift, scale, "dense", family)
    width = 1 if family == "gaussian_spherical" else d
    variances = rng.uniform(0.7, 1.3, (width, k))
    return lambda t: Gaussian(FARTHEST * t * corners, variances, shift, scale, "dense", family)


def _covariance(d: int, rng: np.random.Generator) -> Floats:
    """Variances about 1, correlations of moderate size."""
    factor = rng.standard_normal((d, 2 * d)) / np.sqrt(2 * d)
    return np.asarray(0.5 * np.eye(d) + 0.5 * factor @ factor.T)


def _bags(k: int, d: int, size: int, rng: np.random.Generator) -> Maker:
    base = rng.uniform(0.5, 1.5, d)
    table = columns(k, d, base / base.sum(), rng)
    form: Any = "dense" if d <= WIDEST_DENSE else "sparse"

    def maker(t: float) -> Emission:
        positive = np.maximum(table(t), 1e-9)
        return Multinomial(positive / positive.sum(axis=0), size, form)

    return maker


def _codes(k: int, d: int, rng: np.random.Generator) -> Maker:
    """Every state has codes (or their absence) of its own, beside what all of them have."""
    own = _owned(k, d + 1, rng) > 0
    sharp = np.where(own, 0.98, 0.01)
    base = np.concatenate([[0.3], rng.uniform(0.1, 0.4, d)])[:, None]
    blunt = base * rng.uniform(0.9, 1.1, (d + 1, k))

    def maker(t: float) -> Emission:
        mixed = t * sharp + (1 - t) * (t * blunt + (1 - t) * base)
        return MultiHot(mixed[0], mixed[1:])

    return maker


def _owned(k: int, d: int, rng: np.random.Generator) -> Floats:
    """Every coordinate belongs to one state, where it is about 1; elsewhere it is 0."""
    own = np.zeros((d, k))
    own[np.arange(d), rng.permutation(np.arange(d) % k)] = rng.uniform(0.7, 1.3, d)
    return own


# ---- what the structure sees of them -----------------------------------------------------------


def seen_length(emission: Any, prior: Floats) -> float:
    """Information length of the edge between a hidden node and its leaf, as the structure sees it;
    `O(d k^2)`, and `O(d^3)` where coordinates depend on each other within a state."""
    gains = np.linalg.eigvalsh(_gain(emission, prior))[1 - len(prior) :]
    if isinstance(emission, Multinomial):  # noise of a bag is less by what lies between its states
        gains = 1 / np.maximum(1 / np.maximum(gains, 1e-300) - 1 / emission.size, 1e-12)
    gains = np.maximum(gains, 1e-300)
    return float(-0.5 * np.log(gains / (1 + gains)).sum())


def _gain(emission: Any, prior: Floats) -> Floats:
    """`A' W^-1 A`, `(k, k)`."""
    if isinstance(emission, Gaussian) and len(emission.means) <= WIDEST_BINNED:
        variances = np.broadcast_to(emission.variances, emission.means.shape)
        parts = zip(emission.means, variances, strict=True)
        return np.sum([_binned_gain(_normal_bins(m, v, prior), prior) for m, v in parts], axis=0)
    if isinstance(emission, Poisson) and emission.form == "scalar":
        return _binned_gain(_poisson_bins(emission.rates[0], prior), prior)
    if isinstance(emission, Gaussian):
        return _diagonal_gain(emission.means, emission.variances @ prior, prior)
    if isinstance(emission, Poisson):
        return _diagonal_gain(emission.rates, emission.rates @ prior, prior)
    if isinstance(emission, Multinomial):
        return _diagonal_gain(emission.table, emission.table @ prior / emission.size, prior)
    if isinstance(emission, FullGaussian):
        weights = prior if len(emission.covariances) > 1 else np.ones(1)
        return _full_gain(
            emission.means, np.einsum("j,jab->ab", weights, emission.covariances), prior
        )
    return _full_gain(emission.mean(), _codes_within(emission, prior), prior)


def _between(means: Floats, prior: Floats) -> Floats:
    return np.asarray((means - (means @ prior)[:, None]) * np.sqrt(prior))


def _diagonal_gain(means: Floats, within: Floats, prior: Floats) -> Floats:
    a = _between(means, prior)
    return np.asarray(a.T @ (a / within[:, None]))


def _full_gain(means: Floats, within: Floats, prior: Floats) -> Floats:
    a = _between(means, prior)
    ridge = 1e-12 * np.trace(within) / len(within) * np.eye(len(within))
    return np.asarray(a.T @ np.linalg.solve(within + ridge, a))


def _binned_gain(table: Floats, prior: Floats) -> Floats:
    """Of one-hot bins with `P(bin | state)` `(b, k)`; one of them follows from the others."""
    table = table[:-1]
    within = np.diag(table @ prior) - (table * prior) @ table.T
    return _full_gain(table, within, prior)


def _normal_bins(means: Floats, variances: Floats, prior: Floats) -> Floats:
    """`P(bin | state)` for quantile bins of the mixture, `(bins, k)`."""
    deviations = np.sqrt(variances)
    steps = np.linspace(-6.0, 6.0, 120)
    grid = np.sort((means + steps[:, None] * deviations).ravel())
    below = ndtr((grid[:, None] - means) / deviations)
    edges = np.interp(np.arange(1, N_BINS) / N_BINS, below @ prior, grid)
    inner = ndtr((edges[:, None] - means) / deviations)
    return np.diff(inner, axis=0, prepend=0.0, append=1.0)


def _poisson_bins(rates: Floats, prior: Floats) -> Floats:
    """The same for counts; a bin ends with the first count that fills it."""
    top = int(rates.max() + 10 * np.sqrt(rates.max()) + 10)
    below = pdtr(np.arange(top)[:, None], rates)
    last = np.unique(np.searchsorted(below @ prior, np.arange(1, N_BINS) / N_BINS))
    return np.diff(below[last], axis=0, prepend=0.0, append=1.0)


def _codes_within(emission: MultiHot, prior: Floats) -> Floats:
    """Mean covariance within states of (none, codes), `(d + 1, d + 1)`."""
    means = emission.mean()
    within = np.zeros((len(means), len(means)))
    for j, weight in enumerate(prior):
        q = emission.codes[:, j]
        second = np.outer(q, q) * (1 - emission.none[j]) / emission.some[j]
        np.fill_diagonal(second, means[1:, j])
        full = np.zeros_like(within)
        full[0, 0], full[1:, 1:] = emission.none[j], second
        within += weight * (full - np.outer(means[:, j], means[:, j]))
    return within
