"""Items of a scale: how each goes with the hidden node and with the others, and how reliable their
sum is."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Bools, Floats
from latenttree.model.pair_moments import Model
from latenttree.tables.numbers import standard_effects


class Scale(NamedTuple):
    """What is known of the items of a scale, `(m,)` each, turned round where `turned`, and their
    covariance `(m, m)`."""

    turned: Bools
    covariance: Floats
    loading: Floats
    item_rest: Floats
    alpha_without: Floats
    mean: Floats
    deviation: Floats
    missing: Floats


def loadings(model: Model, schema: Schema, items: list[int], h: int) -> Floats:
    """(m,) correlations of the items with a hidden node, as the model implies them.

    The states of the node are scored so that the squared correlations have the largest sum: with
    `M[i, j] = E[z_i | j] sqrt(P(j))` of standardised items z, the scores are `v_j / sqrt(P(j))` for
    the first right singular vector v of M, and the correlations are `M v`. Two states have one
    scoring; a hidden number is its own. The sum of the correlations is positive."""
    effects = standard_effects(model, schema, items, h)
    found = effects @ np.linalg.svd(effects, full_matrices=False)[2][0]
    return np.asarray(-found if found.sum() < 0 else found)


def best_node(model: Model, schema: Schema, items: list[int]) -> int:
    """The hidden node between the items with which they correlate most: the largest sum of squared
    loadings, the first of several."""
    paths = (model.tree.path(items[0], v) for v in items[1:])
    between = sorted({h for path in paths for h in path if h >= model.tree.n_observed})
    return max(between, key=lambda h: float((loadings(model, schema, items, h) ** 2).sum()))


def scale_of(values: Floats, loading: Floats) -> Scale:
    """The scale of some items with `values` `(n, m)`, NaN where missing, and their loadings.
    Moments of a pair are taken over the samples that have both; items are turned round by
    `against_the_others`.

    The item-rest correlation is that with the sum of the other items,

        r_i = sum_{j != i} C_ij / sqrt(C_ii sum_{j, k != i} C_jk),    C their covariance."""
    C = pair_covariance(values)
    turned = against_the_others(C, loading)
    sign = np.where(turned, -1.0, 1.0)
    C = C * np.outer(sign, sign)
    own = np.diag(C)
    rest = C.sum(axis=1) - own
    others = np.maximum(C.sum() - 2 * rest - own, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        item_rest = rest / np.sqrt(own * others)
    m = len(own)
    keep = [np.delete(np.arange(m), i) for i in range(m)]
    without = np.array([cronbach_alpha(C[np.ix_(k, k)]) for k in keep])
    known = ~np.isnan(values)
    return Scale(
        turned,
        C,
        loading * sign,
        item_rest,
        without,
        np.nanmean(values, axis=0),
        np.sqrt(own),
        1 - known.mean(axis=0),
    )


def against_the_others(C: Floats, loading: Floats) -> Bools:
    """(m,) which items to turn round: those of negative weight in the first principal component of
    the observed correlations, whose direction is that of the loadings. Where the tree has an item
    at a wrong place, its loading may have another sign than its correlations."""
    weight = np.linalg.eigh(np.nan_to_num(correlation_of(C)))[1][:, -1]
    return np.asarray(weight * np.sign(weight @ loading) < 0)


def pair_covariance(values: Floats) -> Floats:
    """(m, m) covariance of columns with gaps: each over the rows that have both, divided by their
    number less one; NaN where there are fewer than two."""
    known = (~np.isnan(values)).astype(np.float64)
    centred = np.where(known > 0, values - np.nanmean(values, axis=0), 0.0)
    n = known.T @ known
    sums = centred.T @ known  # of a column, over the rows that have another one too
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (centred.T @ centred - sums * sums.T / n) / (n - 1)
    return np.where(n > 1, found, np.nan)


def cronbach_alpha(C: Floats) -> float:
    """Cronbach's alpha of the sum of m items with covariance C (Cronbach 1951),

        alpha = m / (m - 1) (1 - trace C / sum C);

    of their correlations it is the standardised alpha. NaN of a single item."""
    m, total = len(C), float(C.sum())
    return m / (m - 1) * (1 - float(np.trace(C)) / total) if m > 1 and total > 0 else np.nan


def mcdonald_omega(loading: Floats) -> float:
    """McDonald's omega of the sum of standardised items (McDonald 1999), the share of its variance
    that comes from the hidden node,

        omega = (sum l)^2 / ((sum l)^2 + sum (1 - l^2)),

    if the items depend on each other through this node alone."""
    common = float(loading.sum()) ** 2
    return common / (common + float((1 - loading**2).sum()))


def correlation_of(C: Floats) -> Floats:
    """Correlations of a covariance; 0 with what does not vary."""
    unit = np.sqrt(np.diag(C))
    unit = np.where(unit > 0, unit, np.inf)
    found = C / np.outer(unit, unit)
    np.fill_diagonal(found, 1.0)
    return found
