"""How well the data support an edge: the posterior probability that it is real.

The distribution of true lengths varies from tree to tree and is learned from the tree itself
(empirical Bayes): estimated lengths are a mixture of a null distribution, that of estimates of
length zero, and of a log-normal distribution of true lengths with the standard errors added.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from latenttree.structure.edge_evidence import EdgeTests

GRID = np.linspace(np.log(1e-3), np.log(10.0), 120)
"""Logarithms of true lengths over which their distribution is summed."""

MAX_EDGES = 1000
"""A mixture is fitted to at most this many edges, evenly spread over the z-scores."""

NULL_MODES = {1: 0.0, 2: 0.8767}
"""Where the density of the largest of one or two half-normal variables is highest."""


class Mixture(NamedTuple):
    """Share of real edges, centre and width of the logarithms of their true lengths.

    `choices`: an edge of length zero has the largest of so many half-normal z-scores, because
    joining picks the best-looking way to resolve a polytomy."""

    share: float
    centre: float
    width: float
    choices: int

    def posterior(
        self, length: NDArray[np.float64], error: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Probability that each edge of estimated `length` +- `error` is longer than zero."""
        return _posterior(length, error, self)[0]


def fit_mixture(
    length: NDArray[np.float64],
    error: NDArray[np.float64],
    choices: int,
    prior: tuple[float, float],
) -> Mixture:
    """Fit by EM over a grid of true lengths.

    The centre stays above twice the median error, so that it cannot settle on the null
    distribution where no edge is real. `prior` holds the pseudo-counts (real, zero) of the share.
    """
    if len(length) > MAX_EDGES:
        part = np.argsort(length / np.maximum(error, 1e-9))[:: -(-len(length) // MAX_EDGES)]
        length, error = length[part], error[part]
    least = float(np.log(2 * np.median(np.maximum(error, 1e-9))))
    start = float(np.log(np.median(length) + np.median(error)))
    mixture = Mixture(prior[0] / sum(prior), max(start, least), 0.7, choices)
    before = np.zeros(len(length))
    for _ in range(200):
        real, weights = _posterior(length, error, mixture)
        weights *= real[:, None]
        total = float(real.sum())
        share = (total + prior[0]) / (len(length) + sum(prior))
        # two pseudo-edges at the present centre keep the fit of a few edges in place
        centre = (float((weights @ GRID).sum()) + 2 * mixture.centre) / (total + 2)
        centre = max(centre, least)
        spread = float((weights @ (GRID - centre) ** 2).sum()) + 2 * 0.5**2
        width = float(np.clip(np.sqrt(spread / (total + 2)), 0.15, 1.5))
        mixture = Mixture(share, centre, width, choices)
        if np.abs(real - before).max(initial=0.0) < 1e-5:
            break
        before = real
    return mixture


def _posterior(
    length: NDArray[np.float64], error: NDArray[np.float64], mixture: Mixture
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability that each edge is real, and for each the weights of the true lengths in GRID."""
    error = np.maximum(error, 1e-9)
    null = _log_null(length / error, mixture.choices) - np.log(error)
    fit = -0.5 * ((length[:, None] - np.exp(GRID)) / error[:, None]) ** 2
    fit -= np.log(error)[:, None] + 0.5 * np.log(2 * np.pi)
    density = -0.5 * ((GRID - mixture.centre) / mixture.width) ** 2
    joint = fit + density - np.logaddexp.reduce(density)
    top = joint.max(axis=1)
    weights = np.exp(joint - top[:, None])
    total = weights.sum(axis=1)
    odds = np.log(total) + top - null + np.log(mixture.share / (1 - mixture.share))
    real = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    return real, weights / total[:, None]


def _log_null(z: NDArray[np.float64], choices: int) -> NDArray[np.float64]:
    """Log density of the largest of `choices` half-normal variables.

    Flat below its mode: an estimate at the boundary is no evidence for an edge."""
    z = np.maximum(z, NULL_MODES[choices])
    density = np.log(choices) + 0.5 * np.log(2 / np.pi) - 0.5 * z**2
    if choices > 1:
        density += (choices - 1) * np.log(erf(z / np.sqrt(2)))
    return np.asarray(density)


class SupportModel(NamedTuple):
    """The distribution of lengths of a tree's own edges, fitted by `fit_support`.

    Internal and pendant edges are two populations: a length of zero is common among the first
    (polytomies), rare among the second (observed nodes inside the tree). A pendant edge counts as
    zero only if it is shown to be shorter than `short`; "not shown to be long" is not enough.
    Sides of an edge that correlate less than the best noise between them show no dependence, unless
    all are known to be `dependent`."""

    n_observed: int
    internal: Mixture
    pendant: Mixture
    short: float
    dependent: bool = False

    def supports(self, tests: EdgeTests) -> NDArray[np.float64]:
        """Support of every tested edge, `(m,)`; exactly zero where the edge joins independent
        parts."""
        support = np.empty(len(tests.edge))
        is_pendant = tests.ends[:, 0] < self.n_observed
        for pendant, mixture in ((False, self.internal), (True, self.pendant)):
            rows = np.flatnonzero(is_pendant == pendant)
            if len(rows):
                length, error = tests.length[rows], tests.standard_error[rows]
                real = mixture.posterior(length, error)
                if pendant:
                    unsure = length + 2 * error > self.short
                    real = np.where(unsure, np.maximum(real, 0.5), real)
                support[rows] = real
        if not self.dependent:
            support[tests.dependence < 1.0] = 0.0
        return support


def fit_support(tests: EdgeTests, n_observed: int) -> SupportModel:
    """Learn from the tests of a binary tree's edges."""
    pendant = tests.ends[:, 0] < n_observed
    inside, outside = tests.take(~pendant), tests.take(pendant)
    default = Mixture(0.5, 0.0, 1.0, 2)
    return SupportModel(
        n_observed,
        _fit(inside, 2, (1.0, 1.0)) if len(inside.edge) else default,
        _fit(outside, 1, (4.0, 0.2)) if len(outside.edge) else default,
        0.5 * float(np.median(outside.length)) if len(outside.edge) else 0.0,
    )


def _fit(tests: EdgeTests, choices: int, prior: tuple[float, float]) -> Mixture:
    return fit_mixture(tests.length, tests.standard_error, choices, prior)
