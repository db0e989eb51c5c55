"""The stage: `judge_fit`, from samples and a model to a `TreeFit`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from latenttree.config import FitConfig
from latenttree.data.subsets import TableSubset
from latenttree.data.table import Table
from latenttree.engine.arrays import Floats, Ints
from latenttree.goodness_of_fit.indices import Indices, fit_indices
from latenttree.goodness_of_fit.nodes import n_correlation_parameters, nearest_by_branch
from latenttree.goodness_of_fit.observed import PairCorrelations, n_columns, pair_correlations
from latenttree.goodness_of_fit.scores import Score, Scores, score_of
from latenttree.goodness_of_fit.tree_fit import MisfitPair, TreeFit
from latenttree.model.pair_moments import Model, implied_covariance
from latenttree.model.tree_model import TreeModel
from latenttree.search.stage import Learned

MOST_COLUMNS = 400
"""Columns of scores, at most: of more, those of a random part of the variables."""

MOST_PRODUCTS = 1 << 32
"""Multiply-adds over samples, at most: of more samples a random part."""

N_WORST = 10
"""Pairs that are named."""


@dataclass(frozen=True, eq=False)
class PairFit:
    """Sums over the columns of pairs of variables, `(m, m)` each, 0 on the diagonal.

    Attributes
    ----------
    observed : sum of `r^2`.
    implied : sum of `rho^2`.
    residual : sum of `(r - rho)^2`.
    noise : sum of the sampling variances of r.
    z : residuals in standard errors: of one column `(r - rho) / se`, of several
        `(sum z^2 - c) / sqrt(2 c)` with c their number.
    """

    observed: Floats
    implied: Floats
    residual: Floats
    noise: Floats
    z: Floats


def judge_fit(table: Table, learned: Learned, config: FitConfig) -> TreeFit | None:
    """How well the learned tree describes pairs of variables; None without a model, or with fewer
    than three variables that vary. One pass over at most `MOST_PRODUCTS / columns^2` samples."""
    if learned.fitted is None or table.n_vars < 3:
        return None
    with config.progress.stage("fit indices"):
        return tree_fit(learned.fitted.model, table, config.n_jobs)


def tree_fit(model: Model, table: Table, n_jobs: int = 1) -> TreeFit | None:
    """`judge_fit` of a model."""
    scores = _some_scores(model, table)
    if len(scores.parts) < 3:
        return None
    rows = _some_rows(table, n_columns(table, scores))
    observed = pair_correlations(rows, scores, n_jobs)
    implied = implied_covariance(model, {s.variable: (s.node, s.means) for s in scores.parts})
    unit = np.where(observed.deviation > 0, observed.deviation, np.inf)
    implied /= np.outer(unit, unit)
    pairs = _by_pair(observed, implied, scores.owners)
    df, share = _degrees_of_freedom(model, scores)
    explained, residual, excess = _explained(pairs, share)
    indices = _indices(observed, implied, scores, df)
    near = nearest_by_branch(model.tree, scores.variables)
    nodes = _by_node(pairs, near, scores.variables, share)
    return TreeFit(
        explained,
        *indices,
        degrees_of_freedom=df,
        residual=residual,
        excess=excess,
        worst=_worst(pairs, observed, implied, scores, table.names),
        node_explained=nodes[0],
        node_residual=nodes[1],
        n_samples=rows.n_samples,
        n_used=len(scores.parts),
        n_vars=table.n_vars,
    )


def _some_scores(model: Model, table: Table) -> Scores:
    """The scores of all variables, or of as many, at random, as have `MOST_COLUMNS`."""
    order = np.random.default_rng(0).permutation(table.n_vars)
    parts: list[Score] = []
    width = 0
    for v in order.tolist():
        part = score_of(model, table.families[v], v)
        if part is not None:
            width += part.width
            if width > MOST_COLUMNS and len(parts) > 2:
                break
            parts.append(part)
    return Scores(tuple(sorted(parts, key=lambda part: part.variable)))


def _some_rows(table: Table, width: int) -> Table:
    """All samples, or as many, at random, as `MOST_PRODUCTS` allows."""
    most = 2 * MOST_PRODUCTS // width**2
    if table.n_samples <= most:
        return table
    chosen = np.random.default_rng(0).choice(table.n_samples, most, replace=False)
    chosen.sort()
    return TableSubset(table, chosen, None if table.weights is None else table.weights[chosen])


def _by_pair(observed: PairCorrelations, implied: Floats, owners: Ints) -> PairFit:
    """Sums over the columns of each pair."""
    residual = observed.correlation - implied
    z = residual / np.sqrt(observed.variance + 1e-300)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    count = np.outer(*[np.diff(starts, append=len(owners))] * 2)
    many = (_summed(z**2, starts) - count) / np.sqrt(2 * count)
    z = np.where(count == 1, z[np.ix_(starts, starts)], many)
    values = (observed.correlation**2, implied**2, residual**2, observed.variance)
    parts = [*(_summed(x, starts) for x in values), z]
    for part in parts:
        np.fill_diagonal(part, 0.0)
    return PairFit(*parts)


def _summed(values: Floats, starts: Ints) -> Floats:
    """Sums over blocks of rows and columns."""
    if len(starts) == len(values):
        return values.copy()
    return np.asarray(np.add.reduceat(np.add.reduceat(values, starts, axis=0), starts, axis=1))


def _degrees_of_freedom(model: Model, scores: Scores) -> tuple[int, float]:
    """Correlations less parameters, at least 0, and that as a share of the correlations: residuals
    of a fitted model have so much of the noise."""
    widths = {part.variable: part.width for part in scores.parts}
    directions = model.dims - 1 if isinstance(model, TreeModel) else model.dims
    total = sum(widths.values())
    n = (total**2 - sum(width**2 for width in widths.values())) // 2
    df = max(n - n_correlation_parameters(model.tree, widths, directions), 0)
    return df, df / n


def _explained(pairs: PairFit, share: float) -> tuple[float, float, float]:
    """The explained share of all pairs, the root mean square residual less noise, and by how many
    standard deviations squared residuals exceed noise; NaN, 0 and 0 where dependence does not.

    The share and the residual leave `share` of the noise out, which a fitted model leaves over;
    the excess all of it, since a model of many states takes up less noise than it could."""
    upper = np.triu_indices(len(pairs.noise), 1)
    noise = pairs.noise[upper]
    deviation = np.sqrt(2 * (noise**2).sum()) + 1e-300
    dependence = float((pairs.observed[upper] - noise).sum())
    if dependence <= 4 * deviation:
        return np.nan, 0.0, 0.0
    total = float(pairs.residual[upper].sum())
    left, excess = total - share * noise.sum(), total - noise.sum()
    residual = np.sqrt(max(left, 0.0) / len(noise))
    return float(1 - left / dependence), float(residual), float(excess / deviation)


def _indices(observed: PairCorrelations, implied: Floats, scores: Scores, df: int) -> Indices:
    """The indices, where every variable is one number that varies."""
    varies = bool((observed.deviation > 0).all())
    if not varies or not all(part.scalar for part in scores.parts):
        return Indices(np.nan, np.nan, np.nan)
    r, p = observed.correlation.copy(), len(implied)
    np.fill_diagonal(r, 1.0)
    both = implied + np.eye(p)
    upper = np.triu_indices(p, 1)
    n = observed.n[upper]
    variance = observed.variance[upper] * n
    normal = np.maximum((1 - r[upper] ** 2) ** 2, 1e-3)
    n_parameters = p * (p - 1) // 2 - df
    scales = float(np.median(variance / normal)), float(np.median(variance))
    return fit_indices(r, both, float(1 / np.mean(1 / n)), n_parameters, *scales)


def _worst(
    pairs: PairFit,
    observed: PairCorrelations,
    implied: Floats,
    scores: Scores,
    names: tuple[str, ...],
) -> tuple[MisfitPair, ...]:
    """The pairs of largest squared residual beyond noise."""
    starts = np.flatnonzero(np.diff(scores.owners, prepend=-1))
    rows, columns = np.triu_indices(len(starts), 1)
    beyond = (pairs.residual - pairs.noise)[rows, columns]
    found = []
    for i in np.argsort(-beyond, kind="stable")[:N_WORST].tolist():
        a, b = int(rows[i]), int(columns[i])
        r, rho = float(np.sqrt(pairs.observed[a, b])), float(np.sqrt(pairs.implied[a, b]))
        if scores.parts[a].width == scores.parts[b].width == 1:
            at = starts[a], starts[b]
            r, rho = float(observed.correlation[at]), float(implied[at])
        if beyond[i] > 0:
            one, other = (names[scores.parts[c].variable] for c in (a, b))
            found.append(MisfitPair(one, other, r, rho, float(pairs.z[a, b])))
    return tuple(found)


def _by_node(
    pairs: PairFit, near: list[list[int]], variables: Ints, share: float
) -> tuple[Floats, Floats]:
    """(n_hidden,) explained share and root mean square residual of the pairs around each node."""
    place = {v: i for i, v in enumerate(variables.tolist())}
    explained, residual = np.full((2, len(near)), np.nan)
    for h, some in enumerate(near):
        index = [place[v] for v in some]
        if len(index) < 2:
            continue
        here = np.ix_(index, index)
        part = PairFit(*(getattr(pairs, name)[here] for name in vars(pairs)))
        explained[h], residual[h], _ = _explained(part, share)
    return explained, residual
