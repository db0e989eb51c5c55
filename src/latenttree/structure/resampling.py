"""The stage `estimate_support`: the probability that an edge comes back in other samples.

The posterior probability of an edge (`support`) supposes that the data come from a tree. Where they
do not, errors of the model are larger than sampling noise, and only learning again shows what
stays. An estimate from n other samples differs from that of these n by the noise of both,
`Var = 2 sigma^2 / n`. So does one from a random third of these, drawn without replacement,
`sigma^2 (3 / n - 1 / n)`. (One from a bootstrap sample, or from a half, differs by half of that:
it tells how sure this tree is of its samples, not what others would say.) A third also takes less
time, and no sample is there twice, so that cross-fitting keeps its two parts apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.data.subsets import TableSubset, draw_weights, n_draws, reweighted
from latenttree.distances.stage import States, measure
from latenttree.engine import Progress
from latenttree.engine.arrays import Bools, Float32, Floats, Ints
from latenttree.engine.memory import give_back_freed
from latenttree.structure.copies import hidden_chow_liu
from latenttree.structure.independence import parts_of
from latenttree.structure.learn import Structure
from latenttree.structure.residuals import may_be_noise
from latenttree.structure.stage import learn_structure
from latenttree.tree import Tree

RESAMPLES, FEWEST_RESAMPLES, MANY_VARIABLES = 25, 3, 750
"""Trees that are learned by default, at least and beyond how many variables fewer."""

ENOUGH_WITHOUT_DOUBT = 8
"""Trees of thirds after which, by default, no more are learned if all have every inner edge."""

GROUPS = (0.9, 0.99)
"""Edges with posterior probabilities between these are taken as alike."""

FEW_EDGES = 10
"""Edges from which on a distribution of frequencies is learned from them."""

LEAST_TRUST, RAREST = 0.5, 0.002
"""Weight of an edge's own frequency against that of all edges, at least; and the frequencies, of
edges that are nearly never or nearly always found, that others count as."""

LARGEST = 0.98
"""Largest support of an inner edge by trees of thirds. These share what is peculiar to their
samples: of the edges of real tables that all of them have, one in fifty is not in the tree of other
samples (`make bench TABLE=replication`)."""

DOUBT = 0.5
"""Edges of a smaller posterior probability have less support than their frequency: a node that is
unresolved in truth is resolved in the same way by samples that share their noise."""


@dataclass(frozen=True, eq=False)
class Support:
    """`values` `(E,)`: the support of each edge; the method; and how many trees were learned."""

    values: Floats
    method: str
    n_resamples: int = 0


def estimate_support(
    structure: Structure,
    table: Table,
    states: States,
    config: FitConfig,
    basis: Float32 | None = None,
    residual: float = np.nan,
) -> Support:
    """The support of each edge of a learned tree.

    How often its split is among those of trees learned from resamples, in which nothing is
    contracted, smoothed over the edges (`smoothed_frequencies`), for other samples of the same size
    (`replication_probabilities`, not with "bootstrap"), and times twice the posterior probability
    of the edge where that is below a half. Splits are those of the part of the tree in
    which the edge lies: where independent parts are joined tells nothing. An edge that cuts off one
    variable of its part has support 1, an edge that joins independent parts 0. That of the edges of
    a given tree is unknown, NaN.

    With "auto" the posterior probability, where the `residual` of pairs shows that the data may
    come from a tree (`may_be_noise`), since that is what it supposes, and it costs nothing;
    "subsample" where they do not, or `n_resamples` are asked for.

    `basis`: the directions of the variables in all samples, from which those in resamples go on."""
    if structure.shape == "given":
        return Support(np.full(len(structure.support), np.nan), "none")
    fits = may_be_noise(residual, table.n_vars) and structure.shape == "latent tree"
    fits &= not config.n_resamples
    if config.support == "model" or (config.support == "auto" and fits) or table.n_vars < 4:
        method = "none" if config.baseline is not None else "model"
        return Support(structure.support, method)

    def learner(sample: Table) -> Tree:
        if structure.shape == "hidden Chow-Liu":
            return learn_chow_liu(sample, states, config, basis)
        return learn_uncontracted(sample, states, config, basis)

    resampling = "subsample" if config.support == "auto" else config.support
    values = np.where(structure.support > 0, 1.0, 0.0)
    parts = inner_splits(structure)
    inner = np.sort(np.concatenate([part.edges for part in parts], dtype=np.int64))
    n_resamples = config.n_resamples or default_resamples(table.n_vars) if len(inner) else 0
    settles = resampling == "subsample" and not config.n_resamples and len(inner) >= FEW_EDGES
    with config.progress.stage("resampled support"):
        samples = resamples(table, resampling, n_resamples, config.seed)
        found = np.zeros(len(values), dtype=np.int64)
        for done, tree in enumerate(map(learner, samples), start=1):
            found += splits_found(parts, tree, len(values))
            give_back_freed()
            if settles and done == ENOUGH_WITHOUT_DOUBT and (found[inner] == done).all():
                n_resamples = done
                break
    posterior = structure.support[inner]
    frequency = smoothed_frequencies(found[inner], n_resamples, posterior)
    if resampling == "subsample":
        frequency = np.minimum(replication_probabilities(frequency), LARGEST)
    values[inner] = frequency * np.minimum(posterior / DOUBT, 1.0)
    return Support(values, resampling, n_resamples)


def default_resamples(n_vars: int) -> int:
    """Fewer trees of many variables: their edges are many, and learn from each other."""
    return max(FEWEST_RESAMPLES, RESAMPLES * MANY_VARIABLES // max(n_vars, MANY_VARIABLES))


def learn_uncontracted(
    table: Table, states: States, config: FitConfig, basis: Float32 | None = None
) -> Tree:
    """The tree of a table with every edge that can be told, in one part."""
    quiet = replace(config, keep_distances=False, progress=Progress())
    measured = measure(table, states, quiet, check=False, start=basis)
    return learn_structure(measured, table, quiet, resolved=True).tree


def learn_chow_liu(
    table: Table, states: States, config: FitConfig, basis: Float32 | None = None
) -> Tree:
    """The hidden Chow-Liu tree of a table, in one part."""
    quiet = replace(config, keep_distances=False, progress=Progress())
    measured = measure(table, states, quiet, check=False, start=basis)
    assert measured.similarity is not None
    return hidden_chow_liu(measured.similarity, table, config.n_jobs, resolved=True).tree


# ---- samples -------------------------------------------------------------------------------------


def resamples(table: Table, method: str, n_resamples: int, seed: int) -> Iterator[Table]:
    """Tables of resampled rows: a third of the draws without replacement, or (method "bootstrap")
    as many with replacement. A sample of weight w stands for w draws. Nothing is copied."""
    draw = _bootstrap_weights if method == "bootstrap" else _third_weights
    for i in range(n_resamples):
        yield weighted_table(table, draw(table, np.random.default_rng([seed, i])))


def _third_weights(table: Table, rng: np.random.Generator) -> Floats:
    return draw_weights(table, -(-n_draws(table) // 3), rng)


def _bootstrap_weights(table: Table, rng: np.random.Generator) -> Floats:
    """(n,) how often each sample is drawn, in proportion to its weight."""
    n = table.n_samples
    own = np.full(n, 1 / n) if table.weights is None else table.weights / table.weights.sum()
    return rng.multinomial(n_draws(table), own).astype(np.float64)


def weighted_table(table: Table, weights: Floats) -> Table:
    """The samples of a table with other weights. Whole weights of a table without any become rows,
    which are counted faster than weights are added."""
    if table.weights is not None:
        return reweighted(table, weights)
    drawn = np.flatnonzero(weights)
    return TableSubset(table, np.repeat(drawn, weights[drawn].astype(np.int64)))


# ---- splits --------------------------------------------------------------------------------------


class PartSplits(NamedTuple):
    """A part of a tree between whose variables there is dependence: its variables `(p,)`, its inner
    edges, and the keys of their splits, see `part_splits`."""

    members: Bools
    edges: Ints
    keys: NDArray[np.uint64]


def inner_splits(structure: Structure) -> list[PartSplits]:
    """For every part the edges with two or more of its variables on either side; without parts that
    have none."""
    tree, within = structure.tree, structure.support > 0
    part = parts_of(tree.edges[within], tree.n_nodes)
    sizes = np.bincount(part[: tree.n_observed])
    found = []
    for label in np.flatnonzero(sizes > 3).tolist():
        members = part[: tree.n_observed] == label
        keys, n_below = part_splits(tree, members)
        inner = (n_below > 1) & (sizes[label] - n_below > 1)
        edges = np.flatnonzero(within & inner & (part[tree.edges[:, 0]] == label))
        found.append(PartSplits(members, edges, keys[edges]))
    return found or [PartSplits(np.empty(0, bool), np.empty(0, int), np.empty(0, np.uint64))]


def splits_found(parts: list[PartSplits], tree: Tree, n_edges: int) -> Bools:
    """`(n_edges,)` which inner edges have a split that another tree has too, among the variables of
    their part."""
    found = np.zeros(n_edges, dtype=np.bool_)
    for members, edges, keys in parts:
        found[edges] = np.isin(keys, part_splits(tree, members)[0])
    return found


def part_splits(tree: Tree, members: Bools) -> tuple[NDArray[np.uint64], Ints]:
    """For every edge a key of the split that it makes of the observed nodes `members` `(p,)`, equal
    in all trees, and how many of them are on one side, `(E,)` each. O(n).

    The key of a set is the sum of random numbers of its members; of the two sides of a split the
    smaller key counts. Sums of a side are differences of sums along a depth-first order."""
    numbers = np.random.default_rng(0).integers(0, 2**63, tree.n_observed, dtype=np.uint64)
    observed, begin, end = tree.edge_intervals()
    inside = members[observed]
    keys = _sums_of(np.where(inside, numbers[observed], np.uint64(0)), begin, end)
    sizes = _sums_of(inside.astype(np.int64), begin, end)
    total = numbers[members].sum(dtype=np.uint64)
    return np.minimum(keys, total - keys), sizes


def _sums_of(values: NDArray[Any], begin: Ints, end: Ints) -> NDArray[Any]:
    """Sums of the values `begin:end`; those of unsigned integers modulo 2^64."""
    before = np.concatenate([np.zeros(1, values.dtype), np.cumsum(values, dtype=values.dtype)])
    return np.asarray(before[end] - before[begin])


# ---- from counts to probabilities ----------------------------------------------------------------


def smoothed_frequencies(found: Ints, n_resamples: int, posterior: Floats) -> Floats:
    """(m,) the expected share of trees with each edge, given that `found` of `n_resamples` have it.

    Frequencies of edges with like posterior probabilities have a beta distribution, whose mean and
    spread are those of these edges (empirical Bayes): 5 of 5 trees mean more where most edges are
    in all of them. Where there are few such edges the distribution is uniform."""
    out = np.empty(len(found))
    group = np.digitize(posterior, GROUPS)
    for g in np.unique(group).tolist():
        own = group == g
        one, other = _beta_of(found[own], n_resamples)
        out[own] = (found[own] + one) / (n_resamples + one + other)
    return out


def replication_probabilities(frequency: Floats) -> Floats:
    """(m,) the probability that the tree of other samples has each edge, by its frequency in trees
    of thirds.

    With `frequency = Phi(z / sqrt 2)`, z is by how many standard errors the samples prefer the
    edge: what all samples would say, plus noise of variance 1. Over the edges of the tree, which
    are there because these samples prefer them, the first part has mean `m` and variance
    `A = var(z) - 1`; for one edge, given z, it has mean `m + b (z - m)` and variance
    `b = A / (A + 1)` (Efron and Morris 1973). Other samples add noise of variance 1 to it, and so
    have the edge with probability `Phi((m + b (z - m)) / sqrt(1 + b))`. Of few edges b is 1, and
    this is their frequency."""
    if len(frequency) < FEW_EDGES:
        return frequency
    z = np.sqrt(2) * ndtri(np.clip(frequency, RAREST, 1 - RAREST))
    spread = max(float(z.var()) - 1, 0.0)
    trust = max(spread / (spread + 1), LEAST_TRUST)
    return np.asarray(ndtr((z.mean() + trust * (z - z.mean())) / np.sqrt(1 + trust)))


def _beta_of(found: Ints, n: int) -> tuple[float, float]:
    """The two parameters of the beta distribution with the mean and variance of frequencies, less
    the binomial noise of the counts."""
    if len(found) < FEW_EDGES or n < 2:
        return 1.0, 1.0
    share = (found.sum() + 1.0) / (n * len(found) + 2.0)
    binomial = share * (1 - share)
    spread = float(np.mean((found / n - share) ** 2)) / binomial
    correlation = np.clip((n * spread - 1) / (n - 1), 0.02, 0.98)
    size = 1 / correlation - 1
    return float(share * size), float((1 - share) * size)
