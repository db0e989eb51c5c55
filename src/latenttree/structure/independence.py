"""Which parts of the variables are dependent: links of the spanning tree that stand out of noise.

A link of the spanning tree is the strongest pair between the two sides that it joins, so of all
`p (p - 1) / 2` pairs it was picked as the best. Links are kept by the rule of Benjamini and
Hochberg over all pairs: among independent variables a single link is kept once in `1 / PAIR_LEVEL`
tables; where most links are real, weaker ones are kept too. Parts whose single pairs are all weak
are then compared by features, sums over the variables of a part, whose noise averages out; these
tests are as many as there are pairs of parts.

Where very many pairs are weakly dependent, as words are, no single one may stand out. So the links
that do not are first taken together: if squared correlations between parts are larger on average
than those of independent variables, everything stays joined.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.special import gammaln, log_ndtr
from scipy.stats import chi2

from latenttree.distances.correlations import KURTOSIS_RATIO, values_of_pairs
from latenttree.distances.similarity import Similarity
from latenttree.engine.arrays import Bools, Floats, Ints

PAIR_LEVEL, LEVEL = 0.01, 0.05
"""Share of false links among those kept as single pairs, at most; and the chance that independent
parts are joined by their features."""

NEAREST = 64
"""Variables in the feature of a part, at most: those nearest to the link."""

MAX_ROUNDS, POWER_STEPS = 20, 10

MANY_VARIABLES = 3000
"""Beyond so many variables features of parts are not compared."""

MANY_PAIRS, FEW_ROWS, GENERAL = 20_000, 20, 3.0
"""Pairs that are taken together, at most; variables that these must have; and how many standard
errors their mean square must lie above that of independent variables."""

FEW_LINKS = 20
"""Links between large parts that are tested together, at most."""

LARGE = 3
"""Variables of a part whose feature averages over the noise of single ones."""

GRID_STEP, GRID_LOW, GRID_HIGH = 0.005, -8.0, 3.0
"""Logarithms of chi variables over which the distribution of their product is summed."""


def dependent_links(whole: Similarity) -> Bools:
    """`(p - 1,)` links of the spanning tree that join dependent variables or parts.

    Distances that are exact, or come without their number of samples, join all that is at a finite
    distance."""
    rho = whole.of_pairs(whole.mst)
    linked = rho != 0
    if whole.exact or whole.source.n <= 1 or not len(rho):
        return linked
    n_pairs = whole.n_variables * (whole.n_variables - 1) / 2
    kept = linked & _discoveries(_pair_evidence(whole, rho), n_pairs)
    if kept[linked].all() or _weakly_dependent(whole, kept):
        return linked
    for _ in range(MAX_ROUNDS if whole.n_variables <= MANY_VARIABLES else 0):
        if kept[linked].all():
            break
        more = _links_of_parts(whole, kept, np.flatnonzero(linked & ~kept))
        if not len(more):
            break
        kept[more] = True
    return kept


def n_independent(whole: Similarity) -> int:
    """How many variables no link joins to another."""
    links = whole.mst[dependent_links(whole)]
    return whole.n_variables - len(np.unique(links))


def _weakly_dependent(whole: Similarity, kept: Bools) -> bool:
    """Whether variables that no kept link touches depend on others, most of them a little.

    With independent variables `n rho^2` has the mean `_null_variance`, whatever their
    distributions. Means over the pairs of one such variable with others, no pair twice, are
    uncorrelated from variable to variable, and their standard error is that of their spread."""
    p = whole.n_variables
    alone = np.setdiff1d(np.arange(p), whole.mst[kept])
    if len(alone) < FEW_ROWS:
        return False
    steps = 1 + np.random.default_rng(0).permutation((p - 1) // 2)  # a pair is one step, not two
    steps = steps[: max(MANY_PAIRS // len(alone), 10)]
    rows, others = np.repeat(alone, len(steps)), (alone[:, None] + steps).ravel() % p
    square = whole.source.n * whole.of_pairs(np.column_stack([rows, others])) ** 2
    means = square.reshape(len(alone), -1).mean(axis=1)
    error = means.std(ddof=1) / np.sqrt(len(alone))
    return float(means.mean() - _null_variance(int(whole.source.n_directions))) > GENERAL * error


def _links_of_parts(whole: Similarity, kept: Bools, links: Ints) -> Ints:
    """Those of the open links that join parts whose features are dependent: each against the number
    of pairs of parts; or the strongest, where the parts of `LARGE` variables or more are not all
    independent, by the sum of their squared z-scores."""
    n_parts = len(kept) + 1 - int(kept.sum())
    z, smaller = _feature_z_scores(whole, kept, links)
    evidence = np.log(2) + log_ndtr(-z)
    found = links[evidence <= np.log(LEVEL / (n_parts * (n_parts - 1) / 2))]
    large = np.flatnonzero(smaller >= LARGE)
    if len(found) or not 0 < len(large) <= FEW_LINKS:
        return found
    total = float((z[large] ** 2).sum())
    best = large[int(np.argmax(z[large]))]
    return links[[best]] if chi2.sf(total, len(large)) <= LEVEL else links[:0]


def _discoveries(evidence: Floats, n_pairs: float) -> Bools:
    """Which log p-values are discoveries at `PAIR_LEVEL`, of `n_pairs` that could have been: those
    up to the largest with `p_(i) <= PAIR_LEVEL i / n_pairs`."""
    order = np.argsort(evidence, kind="stable")
    allowed = np.log(PAIR_LEVEL * np.arange(1, len(evidence) + 1) / n_pairs)
    below = np.flatnonzero(evidence[order] <= allowed)
    found = np.zeros(len(evidence), dtype=np.bool_)
    found[order[: below[-1] + 1 if len(below) else 0]] = True
    return found


def _pair_evidence(whole: Similarity, rho: Floats) -> Floats:
    """Log p-values `(m,)` of the links as single pairs, if all variables were independent.

    A correlation that few samples carry, as between rare categories, is no Gaussian: see
    `_skewed`."""
    n, n_directions = whole.source.n, int(whole.source.n_directions)
    ratio = values_of_pairs(whole.source, whole.mst, KURTOSIS_RATIO)
    ratio = 1 / ratio if whole.gaps else _skewed(ratio)
    strength = np.abs(rho) * np.sqrt(n * ratio)
    if n_directions == 1:
        return np.asarray(np.log(2) + log_ndtr(-strength))
    return log_tail_of_product(strength, n_directions)


def _skewed(ratio: Floats) -> Floats:
    """By what a squared z-score is multiplied, where the counts behind it are `ratio` times as many
    as expected: `2 q (log q - 1 + 1 / q) / (q - 1)^2`.

    A count c with Poisson mean c / q has the squared z-score `c (q - 1)^2 / q`, and twice the log
    likelihood ratio `2 c (log q - 1 + 1 / q)`, whose tail is that of a chi-square."""
    q = np.maximum(ratio, 1.0 + 1e-4)
    return np.asarray(2 * q * (np.log(q) - 1 + 1 / q) / (q - 1) ** 2)


def log_tail_of_product(strength: Floats, n_directions: int) -> Floats:
    """Log probability that the geometric mean of chi variables of 1, ..., `n_directions` degrees of
    freedom is `strength` or more.

    `sqrt(n)` times the determinant of cross-correlations of independent variables is distributed as
    the product of these. Densities of logarithms are convolved on a grid."""
    x = np.arange(GRID_LOW, GRID_HIGH, GRID_STEP)
    density = np.ones(1)
    for j in range(1, n_directions + 1):
        log_density = j * x - np.exp(2 * x) / 2 - gammaln(j / 2) - (j / 2 - 1) * np.log(2)
        density = np.convolve(density, np.exp(log_density) * GRID_STEP)
    tail = np.cumsum(density[::-1])[::-1]
    place = np.log(np.maximum(strength, 1e-300)) * n_directions - n_directions * GRID_LOW
    at = np.clip((place / GRID_STEP).astype(np.int64), 0, len(tail) - 1)
    return np.asarray(np.log(np.clip(tail[at], 1e-300, 1.0)))


def _feature_z_scores(whole: Similarity, kept: Bools, links: Ints) -> tuple[Floats, Ints]:
    """z-scores `(m,)` of the correlation between one feature of either part that a link joins, and
    the number of variables of the smaller part, at most `NEAREST`.

    Weights and signs of a feature come from its own part, so that features of independent parts
    have a correlation of mean 0 and variance `1 / n`. Parts of one variable each were compared as a
    pair already."""
    neighbours = _neighbours(whole.mst[kept], whole.n_variables)
    n = whole.source.n / _null_variance(int(whole.source.n_directions))
    z, smaller = np.zeros(len(links)), np.ones(len(links), dtype=np.int64)
    for i, (a, b) in enumerate(whole.mst[links].tolist()):
        one, other = (_around(v, neighbours) for v in (a, b))
        smaller[i] = min(len(one), len(other))
        if len(one) + len(other) > 2:
            z[i] = np.sqrt(n) * abs(_correlation(whole.block(np.array(one + other)), len(one)))
    return z, smaller


def _null_variance(n_directions: int) -> float:
    """Variance of `sqrt(n)` times a similarity between independent variables: the mean square of
    the geometric mean of chi variables of 1, ..., `n_directions` degrees of freedom."""
    j = np.arange(1, n_directions + 1)
    power = 2 / n_directions
    logs = power / 2 * np.log(2) + gammaln((j + power) / 2) - gammaln(j / 2)
    return float(np.exp(logs.sum()))


def _correlation(block: Floats, m: int) -> float:
    """Correlation between the features of the first `m` variables and of the others, each with the
    weights of a single factor: the first eigenvector of its similarities."""
    one, other = (_factor(part) for part in (block[:m, :m], block[m:, m:]))
    within = (one @ block[:m, :m] @ one) * (other @ block[m:, m:] @ other)
    return float(one @ block[:m, m:] @ other / np.sqrt(np.maximum(within, 1e-12)))


def _factor(block: Floats) -> Floats:
    """The first eigenvector `(m,)` of similarities, by power iteration from equal weights."""
    weights = np.ones(len(block))
    for _ in range(POWER_STEPS if len(block) > 2 else 0):
        weights = np.maximum(block @ weights, 0.0)
        weights /= np.sqrt(weights @ weights)
    return weights


def _neighbours(links: Ints, p: int) -> list[list[int]]:
    """The neighbours of every variable by links."""
    found: list[list[int]] = [[] for _ in range(p)]
    for a, b in links.tolist():
        found[a].append(b)
        found[b].append(a)
    return found


def _around(v: int, neighbours: list[list[int]]) -> list[int]:
    """Variables that links connect with v, itself first, nearest first, at most `NEAREST`."""
    found, seen = [v], {v}
    for u in found:
        for w in neighbours[u]:
            if w not in seen and len(found) < NEAREST:
                seen.add(w)
                found.append(w)
        if len(found) >= NEAREST:
            break
    return found


def parts_of(links: Ints, n: int) -> NDArray[np.int64]:
    """`(n,)` the part of every node that links connect, numbered from 0."""
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(n, n))
    return np.asarray(connected_components(graph, directed=False)[1])
