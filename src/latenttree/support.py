"""How well the data support every edge, and the tree that keeps what is more likely true than not.

For every edge its length is estimated with a standard error, from the branches around it. How
long true edges are varies from tree to tree and is learned from the tree itself (empirical
Bayes): estimated lengths are a mixture of what noise makes of length zero and of a log-normal
distribution of true lengths blurred by the errors. The posterior probability that an edge is real
is its support.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.special import erf

from latenttree.affinity import Affinity
from latenttree.features import Features, branch_features, star_correlations
from latenttree.lengths import fit_likelihood, fit_star, invert, path_matrix
from latenttree.wiring import Wiring

Edge = tuple[int, int]


class EdgeTest(NamedTuple):
    """Length of an edge, its standard error, the log-likelihood by which its topology beats the
    best other way of joining the four branches around it (infinite for a pendant edge), and the
    correlation between its two sides in standard errors."""

    length: float
    error: float
    gap: float
    link: float = np.inf

    @property
    def z(self) -> float:
        return self.length / self.error


QUARTETS = tuple(
    np.array([[0, 4], [a, 4], [b, 5], [c, 5], [4, 5]])
    for a, b, c in ((1, 2, 3), (2, 1, 3), (3, 1, 2))
)
"""The three trees over four branches; the first joins 0 with 1."""

TRIPLET = np.array([[0, 3], [1, 3], [2, 3]])
N_STEPS = 20


def quartet_test(r: NDArray[np.float64], n: float) -> EdgeTest:
    """The middle edge of four branches (0, 1 | 2, 3) against the two other ways to join them."""
    fits = [fit_likelihood(r, n, path_matrix(4, q), np.full(5, 0.3), N_STEPS) for q in QUARTETS]
    lengths, value, info = fits[0]
    gap = value - max(fits[1][1], fits[2][1])
    return EdgeTest(float(lengths[4]), float(_standard_error(info, 4)), float(gap))


def pendant_test(r: NDArray[np.float64], n: float) -> EdgeTest:
    """The edge to branch 0 of three."""
    lengths, _, info = fit_likelihood(r, n, path_matrix(3, TRIPLET), np.full(3, 0.5), N_STEPS)
    return EdgeTest(float(lengths[0]), float(_standard_error(info, 0)), np.inf)


@njit(cache=True, nogil=True)
def _standard_error(info, e):  # type: ignore[no-untyped-def]
    """Root of the e-th diagonal entry of the inverse information, ridged where it is singular."""
    k = len(info)
    ridged, covariance = info.copy(), np.empty((k, k))
    for a in range(k):
        ridged[a, a] += 1e-9 * (info[a, a] + 1)
    if np.isnan(invert(ridged, covariance)):
        return np.inf
    return np.sqrt(max(covariance[e, e], 1e-300))


def edge_tests(wiring: Wiring, affinity: Affinity) -> dict[Edge, EdgeTest]:
    """A test for every edge `(a, b)`, a < b, between nodes of three branches or to a leaf."""
    features = branch_features(wiring, affinity.rho)
    index, links = features.slots.number, wiring.links

    def star(*slots: int) -> tuple[NDArray[np.float64], float]:
        f, rows = features, np.array(slots)
        r = star_correlations(rows, f.leaf, f.weight, f.size, affinity.rho)
        return r, affinity.samples(f.leading(rows))

    def link(a: int, b: int) -> float:
        # between independent sides tails are not heavy: all samples count
        return float(star(index[a][b], index[b][a])[0][0, 1] * np.sqrt(affinity.n))

    tests = {}
    for a, b in wiring.edges():
        far = [index[b][u] for u in links[b] if u != a]
        near = [index[a][u] for u in links[a] if u != b]
        if len(far) != 2 or len(near) not in (0, 2):
            continue
        if wiring.is_hidden(a):
            tests[(a, b)] = quartet_test(*star(*near, *far))._replace(link=link(a, b))
        elif wiring.is_hidden(b):
            test = pendant_test(*star(index[b][a], *far))
            tests[(a, b)] = test._replace(link=link(a, b))
    return tests


def posterior_real(
    length: NDArray[np.float64],
    error: NDArray[np.float64],
    choices: int,
    prior: tuple[float, float],
) -> NDArray[np.float64]:
    """Posterior probability that edges of estimated `length` +- `error` are longer than zero.

    Null: the largest of `choices` half-normal z-scores, because joining picks the best-looking
    way to resolve a polytomy. Alternative: a true length, log-normal over the edges of this tree,
    plus normal error. Weight, centre and width are fitted by EM over a grid of true lengths; the
    centre stays above twice the median error, so that it cannot settle on the null where no edge
    of this kind is real. `prior` holds the pseudo-counts (real, zero) of the weight.
    """
    error = np.maximum(error, 1e-9)
    if len(length) > MAX_EDGES:
        # the mixture is fitted to a part of very many edges, evenly spread over the z-scores
        part = np.argsort(length / error)[:: -(-len(length) // MAX_EDGES)]
        fitted = _fit_mixture(length[part], error[part], choices, prior)
    else:
        fitted = _fit_mixture(length, error, choices, prior)
    return _posterior(length, error, choices, *fitted)[0]


GRID = np.linspace(np.log(1e-3), np.log(10.0), 120)
"""Logarithms of true lengths over which their distribution is summed."""

MAX_EDGES = 1000
NULL_MODES = {1: 0.0, 2: 0.8767}
"""Where the density of the largest of one or two half-normal variables is highest."""


def _posterior(
    length: NDArray[np.float64],
    error: NDArray[np.float64],
    choices: int,
    share: float,
    centre: float,
    width: float,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Probability that each edge is real, and for each the weights of the true lengths in GRID."""
    null = _log_null(np.maximum(length / error, 0.02), choices) - np.log(error)
    fit = -0.5 * ((length[:, None] - np.exp(GRID)) / error[:, None]) ** 2
    fit -= np.log(error)[:, None] + 0.5 * np.log(2 * np.pi)
    density = -0.5 * ((GRID - centre) / width) ** 2
    joint = fit + density - np.logaddexp.reduce(density)
    top = joint.max(axis=1)
    weights = np.exp(joint - top[:, None])
    total = weights.sum(axis=1)
    odds = np.log(total) + top - null + np.log(share / (1 - share))
    real = 1 / (1 + np.exp(-np.clip(odds, -700, 700)))
    return real, weights / total[:, None]


def _fit_mixture(
    length: NDArray[np.float64],
    error: NDArray[np.float64],
    choices: int,
    prior: tuple[float, float],
) -> tuple[float, float, float]:
    """Share of real edges, centre and width of their log lengths, by EM."""
    least = float(np.log(2 * np.median(error)))
    share = prior[0] / sum(prior)
    centre, width = max(float(np.log(np.median(length) + np.median(error))), least), 0.7
    before = np.zeros(len(length))
    for _ in range(200):
        real, weights = _posterior(length, error, choices, share, centre, width)
        weights *= real[:, None]
        total = float(real.sum())
        share = (total + prior[0]) / (len(length) + sum(prior))
        # two pseudo-edges at the present centre keep the fit of a few edges in place
        centre = max((float((weights @ GRID).sum()) + 2 * centre) / (total + 2), least)
        spread = float((weights @ (GRID - centre) ** 2).sum()) + 2 * 0.5**2
        width = float(np.clip(np.sqrt(spread / (total + 2)), 0.15, 1.5))
        if np.abs(real - before).max(initial=0.0) < 1e-5:
            break
        before = real
    return share, centre, width


def _log_null(z: NDArray[np.float64], choices: int) -> NDArray[np.float64]:
    """Log density of the largest of `choices` half-normal variables.

    Flat below its mode: an estimate at the boundary is no evidence for an edge."""
    z = np.maximum(z, NULL_MODES[choices])
    density = np.log(choices) + 0.5 * np.log(2 / np.pi) - 0.5 * z**2
    return (
        np.asarray(density + (choices - 1) * np.log(erf(z / np.sqrt(2))))
        if choices > 1
        else density
    )


def supports(tests: dict[Edge, EdgeTest], n_observed: int) -> dict[Edge, float]:
    """Support of every tested edge: the posterior probability that it is real.

    Exactly zero marks an edge whose two sides show no dependence: it stays, to join them.
    Internal and pendant edges are two populations: a length of zero is common among the first
    (polytomies), rare among the second (observed nodes inside the tree)."""
    support: dict[Edge, float] = {}
    internal = [e for e in tests if e[0] >= n_observed]
    pendant = [e for e in tests if e[0] < n_observed]
    for edges, choices, prior in ((internal, 2, (1.0, 1.0)), (pendant, 1, (4.0, 0.2))):
        if edges:
            length = np.array([tests[e].length for e in edges])
            error = np.array([tests[e].error for e in edges])
            real = posterior_real(length, error, choices, prior)
            support |= dict(zip(edges, real.tolist(), strict=True))
    if pendant:
        # "not shown to be long" is not "shown to be short": without the second it stays
        short = 0.5 * float(np.median([tests[e].length for e in pendant]))
        unsure = [e for e in pendant if tests[e].length + 2 * tests[e].error > short]
        support |= {e: max(support[e], 0.5) for e in unsure}
    # the best of p noise correlations is about this strong: such an edge joins independent parts
    noise = np.sqrt(2 * np.log(max(len(pendant), 2)))
    return support | {e: 0.0 for e, test in tests.items() if test.link < noise}


def contract_unsupported(
    wiring: Wiring, support: dict[Edge, float], min_support: float
) -> dict[Edge, Edge]:
    """Contract, in place, edges with support below `min_support` (but not zero), weakest first.

    A pendant edge is contracted into its observed end, which becomes an internal node; a hidden
    node is given to one observed node at most. Returns, for every edge that is left, what
    it was before."""
    names: dict[int, int] = {}

    def current(v: int) -> int:
        while v in names:
            v = names[v]
        return v

    kept: dict[Edge, Edge] = {}
    for edge, value in sorted(support.items(), key=lambda item: (item[1], item[0])):
        keep, drop = sorted(current(v) for v in edge)
        if 0.0 < value < min_support and wiring.is_hidden(drop):
            wiring.contract(keep, drop)
            names[drop] = keep
        else:
            kept[edge] = edge
    return {_ordered(current(a), current(b)): (a, b) for a, b in kept}


def _ordered(a: int, b: int) -> Edge:
    return (a, b) if a < b else (b, a)


def refit_lengths(wiring: Wiring, affinity: Affinity) -> None:
    """Fit, in place, the lengths around hidden nodes that contraction has made wider than three.

    What a contracted edge measured is spread over the branches that now meet. Around an observed
    node inside the tree every branch is measured from that node itself. An edge with both ends
    refitted gets the mean of the two."""
    features = branch_features(wiring, affinity.rho)
    number = features.slots.number
    found: dict[Edge, list[float]] = {}
    for v in wiring.links:
        slots = np.array(list(number[v].values()))
        if len(slots) < (4 if wiring.is_hidden(v) else 2):
            continue
        x = _star_lengths(v, slots, features, affinity) + np.log(features.load[slots])
        for u, length in zip(number[v], x, strict=True):
            found.setdefault(_ordered(u, v), []).append(max(float(length), 0.0))
    for (a, b), lengths in found.items():
        wiring.connect(a, b, float(np.mean(lengths)))


def _star_lengths(
    v: int, slots: NDArray[np.int64], f: Features, affinity: Affinity
) -> NDArray[np.float64]:
    """Distances from node v to the features of the branches around it."""
    if v < len(affinity.rho):
        rows = affinity.rho[v][f.leaf[slots]] * f.weight[slots]
        r = rows.sum(axis=1, where=np.arange(f.leaf.shape[1]) < f.size[slots, None])
        return np.asarray(-np.log(np.clip(r, 0.5 / np.sqrt(affinity.n), 1.0)))
    r = star_correlations(slots, f.leaf, f.weight, f.size, affinity.rho)
    return np.asarray(fit_star(r, affinity.samples(f.leading(slots))))
