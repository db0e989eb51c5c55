"""How well the data support an edge: the posterior probability that it is real.

How long true edges are varies from tree to tree and is learned from the tree itself (empirical
Bayes): estimated lengths are a mixture of what noise makes of length zero and of a log-normal
distribution of true lengths blurred by the errors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

from latenttree.structure.edge_evidence import Edge, EdgeTest

GRID = np.linspace(np.log(1e-3), np.log(10.0), 120)
"""Logarithms of true lengths over which their distribution is summed."""

MAX_EDGES = 1000
"""A mixture is fitted to at most this many edges, evenly spread over the z-scores."""

NULL_MODES = {1: 0.0, 2: 0.8767}
"""Where the density of the largest of one or two half-normal variables is highest."""


class Mixture(NamedTuple):
    """Share of real edges, centre and width of the logarithms of their true lengths.

    `choices`: a length of zero shows as the largest of so many half-normal z-scores, because
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

    The centre stays above twice the median error, so that it cannot settle on the null where no
    edge is real. `prior` holds the pseudo-counts (real, zero) of the share.
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


class Judge(NamedTuple):
    """What a tree's own edges teach about its edges.

    Internal and pendant edges are two populations: a length of zero is common among the first
    (polytomies), rare among the second (observed nodes inside the tree). A pendant edge counts as
    zero only if it is shown to be shorter than `short`; "not shown to be long" is not enough.
    Sides of an edge that correlate less than the best noise between them show no dependence."""

    n_observed: int
    internal: Mixture
    pendant: Mixture
    short: float

    def supports(self, tests: dict[Edge, EdgeTest]) -> dict[Edge, float]:
        """Support of every tested edge; exactly zero where the edge joins independent parts."""
        support: dict[Edge, float] = {}
        for pendant, mixture in ((False, self.internal), (True, self.pendant)):
            edges = [e for e in tests if (e[0] < self.n_observed) == pendant]
            if edges:
                length, error = _arrays(tests[e] for e in edges)
                real = mixture.posterior(length, error)
                if pendant:
                    unsure = length + 2 * error > self.short
                    real = np.where(unsure, np.maximum(real, 0.5), real)
                support |= dict(zip(edges, real.tolist(), strict=True))
        return support | {e: 0.0 for e, test in tests.items() if test.link < 1.0}


def _arrays(tests: Iterable[EdgeTest]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    pairs = np.array([(test.length, test.error) for test in tests]).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def fit_judge(tests: dict[Edge, EdgeTest], n_observed: int) -> Judge:
    """Learn from the tests of a binary tree's edges."""
    internal = _arrays(test for e, test in tests.items() if e[0] >= n_observed)
    pendant = _arrays(test for e, test in tests.items() if e[0] < n_observed)
    default = Mixture(0.5, 0.0, 1.0, 2)
    return Judge(
        n_observed,
        fit_mixture(*internal, 2, (1.0, 1.0)) if len(internal[0]) else default,
        fit_mixture(*pendant, 1, (4.0, 0.2)) if len(pendant[0]) else default,
        0.5 * float(np.median(pendant[0])) if len(pendant[0]) else 0.0,
    )
