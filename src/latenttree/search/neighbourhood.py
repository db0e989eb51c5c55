"""A hidden node and what its branches say about it: fewer states, judged and refitted.

The likelihood of a sample is `sum_s w_s prod_b m_b(s)` over the states `s` of the node, where
`m_b(s) = sum_i P(u_b = i | s) L_b(i)` and `L_b` is what the branch behind the neighbour `u_b` says.
`L_b` does not depend on the node, so its states can be merged, left out and refitted at a cost that
does not depend on the size of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.model.emissions import Emission
from latenttree.model.tree_model import TreeModel, normalised

Floats = NDArray[np.float64]

TINY = 1e-290
"""A sample of less probability tells nothing."""

REFIT_STEPS = 60
ENOUGH = 1.0
"""A refit that has passed its bar ends where a step gains less: the whole tree is refined later."""

TRIAL = 4
"""After so many steps a refit is given up that would not pass its bar with gains like the last in
all steps left."""


class Hub(NamedTuple):
    """`P(node)` and the distributions of its neighbours given the node, by neighbour."""

    node: int
    weights: Floats  # (k,)
    tables: Mapping[int, Floats]  # (d, k), columns on the simplex
    emissions: Mapping[int, Emission]

    @property
    def n_parameters(self) -> int:
        """Free parameters of the hub's edges and its own weights."""
        k = len(self.weights)
        tables = sum((len(t) - 1) * k for t in self.tables.values())
        return k - 1 + tables + sum(e.n_parameters for e in self.emissions.values())


class Heard(NamedTuple):
    """What the branches of a hub say in some samples.

    `said[u]` is `(n,)` codes, -1 where unknown, or `(n, d)` likelihoods over the states of `u`, or
    the values of a neighbour with an emission."""

    said: Mapping[int, Any]
    weights: Floats  # (n,) how often each sample counts


class Targets(NamedTuple):
    """Where pseudo-samples go: a distribution over the states of each neighbour, or the mean
    statistics of its emission."""

    smoothing: float
    spread: Mapping[int, Floats]


class Way(NamedTuple):
    """A way to do with one state less, and how it changes the log-likelihood before any refit."""

    change: float
    matrix: Floats  # (k, k - 1) the new states as mixtures of the old ones
    weights: Floats  # (k - 1,) their probabilities


def hub_of(model: TreeModel, v: int) -> Hub:
    """A hidden node of a model with its neighbours."""
    near = [int(u) for u in model.tree.neighbors(v)]
    tables = {u: model.conditional(u, v) for u in near if u not in model.emissions}
    emissions = {u: model.emissions[u] for u in near if u in model.emissions}
    return Hub(v, np.asarray(model.marginals[v]), tables, emissions)


def mixed(hub: Hub, matrix: Floats, weights: Floats) -> Hub:
    """The hub whose new states are mixtures of the old ones, the columns of `matrix` `(k, new)`."""
    tables = {u: t @ matrix for u, t in hub.tables.items()}
    emissions = {u: e.mixed(matrix) for u, e in hub.emissions.items()}
    return Hub(hub.node, weights, tables, emissions)


def merging(weights: Floats, i: int, j: int) -> tuple[Floats, Floats]:
    """States `i` and `j` as one in the place of the first, mixed by their probabilities: columns of
    mixtures `(k, k - 1)`, and probabilities `(k - 1,)`."""
    i, j = min(i, j), max(i, j)
    both = weights[i] + weights[j]
    matrix = np.eye(len(weights))
    matrix[[i, j], i] = weights[[i, j]] / both if both > 0 else 0.5
    new = weights.copy()
    new[i] = both
    return np.delete(matrix, j, axis=1), np.delete(new, j)


def dropping(weights: Floats, i: int) -> tuple[Floats, Floats]:
    """State `i` left out; the others share its probability."""
    left = np.delete(weights, i)
    return np.delete(np.eye(len(weights)), i, axis=1), normalised(left[:, None])[:, 0]


def with_hubs(model: TreeModel, hubs: Iterable[Hub]) -> TreeModel:
    """The model with some hubs, no two of them neighbours, in the place of its own, one after
    another: each keeps `P(all behind u | u)` of its neighbours `u`."""
    place = {int(v): i for i, v in enumerate(model.order)}
    tables, parents, root = list(model.tables), model.parents.tolist(), model.root
    emissions = dict(model.emissions)
    for hub in sorted(hubs, key=lambda hub: place[hub.node]):
        _move_root(tables, parents, root, hub.node)
        root = hub.node
        tables[root] = hub.weights[:, None]
        for u in map(int, model.tree.neighbors(root)):
            tables[u] = hub.tables.get(u, np.ones((1, len(hub.weights))))
        emissions.update(hub.emissions)
    return TreeModel(model.tree, root, tuple(tables), emissions).rerooted(model.root)


def _move_root(tables: list[Floats], parents: list[int], root: int, target: int) -> None:
    """Turn the arrows between the root and `target` round, in place; O(their distance)."""
    path = [target]
    while path[-1] != root:
        path.append(parents[path[-1]])
    for parent, child in pairwise(path[::-1]):
        prior = tables[parent][:, 0]
        joint = tables[child] * prior  # (child, parent)
        tables[child], tables[parent] = joint.sum(axis=1)[:, None], normalised(joint.T, prior)
        parents[parent], parents[child] = child, -1


# ---- likelihood -----------------------------------------------------------------------


def arrived(hub: Hub, heard: Heard, u: int) -> tuple[Floats, Floats | float]:
    """`m_u`, `(n, k)`: likelihood of a branch over the states of the hub, and the logarithm of what
    was taken out of it."""
    said = heard.said[u]
    if u in hub.emissions:
        log_value = hub.emissions[u].log_likelihood(said)
        top = log_value.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        return np.exp(log_value - top[:, None]), top
    table = hub.tables[u]
    if said.ndim == 2:
        return np.asarray(said @ table), 0.0
    rows = np.concatenate([table, np.ones((1, table.shape[1]))])  # row -1: unknown
    return np.asarray(rows[said]), 0.0


def beliefs(hub: Hub, heard: Heard, matrix: Floats | None = None) -> tuple[Floats, Floats]:
    """`prod_b m_b`, `(n, k)`, each sample scaled to a largest entry of one, and the logarithm of
    the scales; with `matrix`, of the mixtures of states in its columns instead."""
    n = len(heard.weights)
    product = np.ones((n, len(hub.weights) if matrix is None else matrix.shape[1]))
    log_scale = np.zeros(n)
    for u in heard.said:
        part, log_part = arrived(hub, heard, u)
        product *= part if matrix is None else part @ matrix
        top = product.max(axis=1)
        top[top <= TINY] = 1.0
        product /= top[:, None]
        log_scale += np.log(top) + log_part
    return product, log_scale


def _log_totals(total: Floats, log_scale: Floats, weights: Floats) -> Floats:
    """`sum_n weight (log total + scale)` of every column of `total`; samples of no probability are
    left out."""
    possible = total > TINY
    logs = np.where(possible, np.log(np.where(possible, total, 1.0)) + log_scale[:, None], 0.0)
    return np.asarray(weights @ logs)


def log_likelihood(hub: Hub, parts: Iterable[Heard]) -> float:
    """Of all samples, up to a constant that does not depend on the hub."""
    value = 0.0
    for heard in parts:
        product, log_scale = beliefs(hub, heard)
        value += float(_log_totals(product @ hub.weights[:, None], log_scale, heard.weights)[0])
    return value


def fewer_states(hub: Hub, parts: Sequence[Heard]) -> tuple[float, list[Way]]:
    """The log-likelihood, and all ways to do with one state less, best first: two states merged,
    or one left out.

    Exact: a merged state has the mixture of the two in every branch. O(n k^2 branches)."""
    w = hub.weights
    pairs = list(combinations(range(len(w)), 2))
    ways = [merging(w, i, j) for i, j in pairs] + [dropping(w, i) for i in range(len(w))]
    joined = [way[0][:, i] for way, (i, _) in zip(ways, pairs, strict=False)]
    matrix = np.column_stack([np.eye(len(w)), *joined])
    reading = _readings(w, pairs)
    total = np.zeros(reading.shape[1])
    for heard in parts:
        product, log_scale = beliefs(hub, heard, matrix)
        total += _log_totals(product @ reading, log_scale, heard.weights)
    found = [Way(float(t - total[0]), *way) for t, way in zip(total[1:], ways, strict=True)]
    return float(total[0]), sorted(found, key=lambda way: -way.change)


def _readings(weights: Floats, pairs: list[tuple[int, int]]) -> Floats:
    """Columns that take states and merged pairs to likelihoods: as it is, each pair merged, each
    state left out; `(k + pairs, 1 + pairs + k)`."""
    k, q = len(weights), len(pairs)
    found = np.zeros((k + q, 1 + q + k))
    found[:k] = weights[:, None]
    for r, (i, j) in enumerate(pairs):
        found[[i, j], 1 + r] = 0.0
        found[k + r, 1 + r] = weights[i] + weights[j]
    np.fill_diagonal(found[:k, 1 + q :], 0.0)
    found[:k, 1 + q :] = normalised(found[:k, 1 + q :])
    return found


# ---- refit ----------------------------------------------------------------------------


def refit(
    hub: Hub, parts: Sequence[Heard], targets: Targets, bar: float, max_steps: int = REFIT_STEPS
) -> tuple[Hub, float]:
    """EM over the hub alone while it gains, or until it will not reach a log-likelihood of `bar`;
    the hub and its log-likelihood. O(n k branches) a step."""
    new, value = _em_step(hub, parts, targets)
    for step in range(1, max_steps):
        hub, before = new, value
        new, value = _em_step(hub, parts, targets)
        gain = value - before
        hopeless = step >= TRIAL and value + (max_steps - step) * gain < bar
        if hopeless or (value > bar and gain < ENOUGH):
            break
    return hub, value


def _em_step(hub: Hub, parts: Sequence[Heard], targets: Targets) -> tuple[Hub, float]:
    """The hub after one step of EM, and the log-likelihood before it."""
    sums: dict[int, Floats] = {}
    value, prior = 0.0, np.zeros_like(hub.weights)
    for heard in parts:
        product, log_scale = beliefs(hub, heard)
        joint = product * hub.weights
        total = joint.sum(axis=1)
        value += float(_log_totals(total[:, None], log_scale, heard.weights)[0])
        share = np.where(total > TINY, heard.weights / np.maximum(total, TINY), 0.0)
        posterior = joint * share[:, None]
        prior += posterior.sum(axis=0)
        for u in heard.said:
            part = _counts(hub, heard, u, posterior)
            sums[u] = part if u not in sums else sums[u] + part
    return _maximised(hub, prior, sums, targets), value


def _counts(hub: Hub, heard: Heard, u: int, posterior: Floats) -> Floats:
    """Expected counts `(d, k)` of a neighbour's states with the hub's, or sums of its emission."""
    said = heard.said[u]
    if u in hub.emissions:
        return hub.emissions[u].sums(said, posterior)
    table = hub.tables[u]
    if said.ndim == 1:
        rows = [np.bincount(said + 1, column, len(table) + 1)[1:] for column in posterior.T]
        return np.stack(rows, axis=1)
    ratio = posterior / np.maximum(said @ table, TINY)
    return np.asarray(table * (said.T @ ratio))


def _maximised(hub: Hub, prior: Floats, sums: Mapping[int, Floats], targets: Targets) -> Hub:
    """The hub of largest likelihood given the sums, plus pseudo-samples."""
    c, spread = targets
    tables = {u: normalised(sums[u] + c * spread[u][:, None], spread[u]) for u in hub.tables}
    emissions = {u: e.from_sums(sums[u], c, spread[u]) for u, e in hub.emissions.items()}
    weights = normalised((prior + c / len(prior))[:, None])[:, 0]
    return Hub(hub.node, weights, tables, emissions)
