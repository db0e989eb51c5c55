"""The neighbourhood of a hidden node: fewer states of the node, compared and refitted.

The likelihood of a sample is `sum_s w_s prod_b m_b(s)` over the states `s` of the node, where
`m_b(s) = sum_i P(u_b = i | s) L_b(i)` and `L_b` is the message out of the branch that begins with
the neighbour `u_b`. `L_b` does not depend on the node, so its states can be merged, left out and
refitted at a cost that does not depend on the size of the tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.passes import add_totals
from latenttree.model.emissions import Emission
from latenttree.model.tree_model import TreeModel, normalised
from latenttree.refinement.em import Limits, em_loop, visit

Floats = NDArray[np.float64]

TINY = 1e-290
"""Samples of smaller probability are ignored."""

REFIT_STEPS = 60
ENOUGH = 1.0
"""A refit that has passed its threshold ends at the first step that gains less: the whole tree is
refined later."""

TRIAL = 4
"""Steps after which a refit may be stopped as hopeless."""


class Neighbourhood(NamedTuple):
    """A hidden node: `P(node)` and `P(neighbour | node)` of every neighbour.

    weights : (n_states,) `P(node)`.
    cpts : for each neighbour without an emission its CPT `(d, n_states)`.
    emissions : by neighbour.
    """

    node: int
    weights: Floats
    cpts: Mapping[int, Floats]
    emissions: Mapping[int, Emission]

    @property
    def n_parameters(self) -> int:
        """Free parameters of `P(node)` and of its edges."""
        n_states = len(self.weights)
        cpts = sum((len(t) - 1) * n_states for t in self.cpts.values())
        return n_states - 1 + cpts + sum(e.n_parameters for e in self.emissions.values())


class BranchEvidence(NamedTuple):
    """The evidence of some samples on the neighbours of a node.

    by_branch : for each neighbour u `(n,)` codes, -1 where unknown; or `(n, d)` likelihoods over
        its states; or the values of a neighbour with an emission.
    weights : (n,) sample weights.
    """

    by_branch: Mapping[int, Any]
    weights: Floats


class Targets(NamedTuple):
    """Pseudo-samples: their number, and for each neighbour their distribution over its states, or
    the mean statistics of its emission."""

    smoothing: float
    spread: Mapping[int, Floats]


class Candidate(NamedTuple):
    """A node with one state less, and the change of log-likelihood before any refit."""

    change: float
    matrix: Floats  # (n_states, n_states - 1) the new states as mixtures of the old ones
    weights: Floats  # (n_states - 1,) their probabilities


def neighbourhood_of(model: TreeModel, v: int) -> Neighbourhood:
    """A hidden node of a model with its neighbours."""
    near = [int(u) for u in model.tree.neighbors(v)]
    cpts = {u: model.conditional(u, v) for u in near if u not in model.emissions}
    emissions = {u: model.emissions[u] for u in near if u in model.emissions}
    return Neighbourhood(v, np.asarray(model.marginals[v]), cpts, emissions)


def mixed(neighbourhood: Neighbourhood, matrix: Floats, weights: Floats) -> Neighbourhood:
    """The neighbourhood after a change of states: column j of `matrix` `(n_states, new)` writes new
    state j as a mixture of the old ones, `weights` `(new,)` are the new probabilities."""
    cpts = {u: t @ matrix for u, t in neighbourhood.cpts.items()}
    emissions = {u: e.mixed(matrix) for u, e in neighbourhood.emissions.items()}
    return Neighbourhood(neighbourhood.node, weights, cpts, emissions)


def merge_states(weights: Floats, i: int, j: int) -> tuple[Floats, Floats]:
    """States `i` and `j` merged in the place of the first, mixed by their probabilities: the matrix
    `(n_states, n_states - 1)` and the probabilities `(n_states - 1,)` for `mixed`."""
    i, j = min(i, j), max(i, j)
    both = weights[i] + weights[j]
    matrix = np.eye(len(weights))
    matrix[[i, j], i] = weights[[i, j]] / both if both > 0 else 0.5
    new = weights.copy()
    new[i] = both
    return np.delete(matrix, j, axis=1), np.delete(new, j)


def drop_state(weights: Floats, i: int) -> tuple[Floats, Floats]:
    """State `i` left out, its probability shared by the others in proportion; as `merge_states`."""
    left = np.delete(weights, i)
    return np.delete(np.eye(len(weights)), i, axis=1), normalised(left[:, None])[:, 0]


def with_neighbourhoods(model: TreeModel, neighbourhoods: Iterable[Neighbourhood]) -> TreeModel:
    """The model with some neighbourhoods replaced, of nodes no two of which are neighbours.

    Each keeps `P(everything beyond u | u)` of its neighbours `u`."""
    place = {int(v): i for i, v in enumerate(model.order)}
    cpts, parents, root = list(model.cpts), model.parents.tolist(), model.root
    emissions = dict(model.emissions)
    for new in sorted(neighbourhoods, key=lambda each: place[each.node]):
        _move_root(cpts, parents, root, new.node)
        root = new.node
        cpts[root] = new.weights[:, None]
        for u in map(int, model.tree.neighbors(root)):
            cpts[u] = new.cpts.get(u, np.ones((1, len(new.weights))))
        emissions.update(new.emissions)
    return TreeModel(model.tree, root, tuple(cpts), emissions).rerooted(model.root)


def _move_root(cpts: list[Floats], parents: list[int], root: int, target: int) -> None:
    """Reverse the edges between the root and `target`, in place; O(their distance)."""
    path = [target]
    while path[-1] != root:
        path.append(parents[path[-1]])
    for parent, child in pairwise(path[::-1]):
        prior = cpts[parent][:, 0]
        joint = cpts[child] * prior  # (child, parent)
        cpts[child], cpts[parent] = joint.sum(axis=1)[:, None], normalised(joint.T, prior)
        parents[parent], parents[child] = child, -1


# ---- likelihood -----------------------------------------------------------------------


def branch_likelihood(
    neighbourhood: Neighbourhood, evidence: BranchEvidence, u: int
) -> tuple[Floats, Floats | float]:
    """`m_u`, `(n, n_states)`: likelihood of a branch over the states of the node, scaled, and the
    logarithm of the scale."""
    known = evidence.by_branch[u]
    if u in neighbourhood.emissions:
        log_value = neighbourhood.emissions[u].log_likelihood(known)
        top = log_value.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        return np.exp(log_value - top[:, None]), top
    cpt = neighbourhood.cpts[u]
    if known.ndim == 2:
        return np.asarray(known @ cpt), 0.0
    rows = np.concatenate([cpt, np.ones((1, cpt.shape[1]))])  # row -1: unknown
    return np.asarray(rows[known]), 0.0


def beliefs(
    neighbourhood: Neighbourhood, evidence: BranchEvidence, matrix: Floats | None = None
) -> tuple[Floats, Floats]:
    """`prod_b m_b`, `(n, n_states)`, each sample scaled to a largest entry of one, and the
    logarithm of the scales; with `matrix`, for the mixtures of states in its columns instead."""
    n = len(evidence.weights)
    product = np.ones((n, len(neighbourhood.weights) if matrix is None else matrix.shape[1]))
    log_scale = np.zeros(n)
    for u in evidence.by_branch:
        part, log_part = branch_likelihood(neighbourhood, evidence, u)
        product *= part if matrix is None else part @ matrix
        top = product.max(axis=1)
        top[top <= TINY] = 1.0
        product /= top[:, None]
        log_scale += np.log(top) + log_part
    return product, log_scale


def _log_totals(total: Floats, log_scale: Floats, weights: Floats) -> Floats:
    """`sum_n weight (log total + log_scale)` of every column of `total`; samples of probability
    zero are left out."""
    possible = total > TINY
    logs = np.where(possible, np.log(np.where(possible, total, 1.0)) + log_scale[:, None], 0.0)
    return np.asarray(weights @ logs)


def log_likelihood_at(neighbourhood: Neighbourhood, parts: Iterable[BranchEvidence]) -> float:
    """Log-likelihood of all samples, up to a constant that does not depend on the node."""
    value, w = 0.0, neighbourhood.weights[:, None]
    for evidence in parts:
        product, log_scale = beliefs(neighbourhood, evidence)
        value += float(_log_totals(product @ w, log_scale, evidence.weights)[0])
    return value


def fewer_states(
    neighbourhood: Neighbourhood, parts: Sequence[BranchEvidence]
) -> tuple[float, list[Candidate]]:
    """The log-likelihood, and all candidates with one state less, best first: two states merged, or
    one left out.

    Exact: a merged state has the mixture of the two in every branch. O(n n_states^2 branches)."""
    w = neighbourhood.weights
    pairs = list(combinations(range(len(w)), 2))
    changes = [merge_states(w, i, j) for i, j in pairs] + [drop_state(w, i) for i in range(len(w))]
    merged = [change[0][:, i] for change, (i, _) in zip(changes, pairs, strict=False)]
    matrix = np.column_stack([np.eye(len(w)), *merged])
    columns = _candidate_weights(w, pairs)
    total = np.zeros(columns.shape[1])
    for evidence in parts:
        product, log_scale = beliefs(neighbourhood, evidence, matrix)
        total += _log_totals(product @ columns, log_scale, evidence.weights)
    candidates = [
        Candidate(float(t - total[0]), *change)
        for t, change in zip(total[1:], changes, strict=True)
    ]
    return float(total[0]), sorted(candidates, key=lambda candidate: -candidate.change)


def _candidate_weights(weights: Floats, pairs: list[tuple[int, int]]) -> Floats:
    """Probabilities of states and merged pairs `(n_states + pairs, 1 + pairs + n_states)`, a column
    for the node as it is, one for each merged pair, and one for each state left out."""
    n_states, q = len(weights), len(pairs)
    found = np.zeros((n_states + q, 1 + q + n_states))
    found[:n_states] = weights[:, None]
    for r, (i, j) in enumerate(pairs):
        found[[i, j], 1 + r] = 0.0
        found[n_states + r, 1 + r] = weights[i] + weights[j]
    np.fill_diagonal(found[:n_states, 1 + q :], 0.0)
    found[:n_states, 1 + q :] = normalised(found[:n_states, 1 + q :])
    return found


# ---- refit ----------------------------------------------------------------------------


def refit(
    start: Neighbourhood,
    parts: Sequence[BranchEvidence],
    targets: Targets,
    bar: float,
    max_steps: int = REFIT_STEPS,
) -> tuple[Neighbourhood, float]:
    """EM over the neighbourhood alone, and the log-likelihood reached.

    It ends when a step gains little, or when the log-likelihood `bar` is out of reach.
    O(n n_states branches) a step."""
    problem = _Refit(start, parts, targets)
    limits = Limits(max_steps - 1, ENOUGH, ratio=0.5, bar=bar, trial=TRIAL, ahead=None)
    end = em_loop(problem, visit(problem, start), limits, accelerate=False).state
    return end.theta, end.value


class _Sums(NamedTuple):
    """Expected counts of the states of the node, and counts or sums of each branch."""

    node: Floats
    branches: dict[int, Floats]


class _Refit(NamedTuple):
    """The `Problem` of EM over a neighbourhood."""

    start: Neighbourhood
    parts: Sequence[BranchEvidence]
    targets: Targets

    def expect(self, now: Neighbourhood, /) -> tuple[float, _Sums]:
        """The log-likelihood, and expected statistics."""
        value, sums = 0.0, _Sums(np.zeros_like(now.weights), {})
        for evidence in self.parts:
            product, log_scale = beliefs(now, evidence)
            joint = product * now.weights
            total = joint.sum(axis=1)
            value += float(_log_totals(total[:, None], log_scale, evidence.weights)[0])
            share = np.where(total > TINY, evidence.weights / np.maximum(total, TINY), 0.0)
            posterior = joint * share[:, None]
            part = {u: _counts(now, evidence, u, posterior) for u in evidence.by_branch}
            add_totals(sums, _Sums(posterior.sum(axis=0), part))
        return value, sums

    def maximise(self, sums: _Sums, /) -> Neighbourhood:
        """The neighbourhood of largest likelihood given the sums plus pseudo-samples."""
        (c, spread), (node, found) = self.targets, sums
        cpts = {
            u: normalised(found[u] + c * spread[u][:, None], spread[u]) for u in self.start.cpts
        }
        emissions = {
            u: e.from_sums(found[u], c, spread[u]) for u, e in self.start.emissions.items()
        }
        weights = normalised((node + c / len(node))[:, None])[:, 0]
        return Neighbourhood(self.start.node, weights, cpts, emissions)

    def vector(self, now: Neighbourhood, /) -> Floats:
        """Nothing: a refit of few steps is not extrapolated."""
        return np.empty(0)

    def within(self, far: Floats, now: Neighbourhood, /) -> None:
        """None."""


def _counts(
    neighbourhood: Neighbourhood, evidence: BranchEvidence, u: int, posterior: Floats
) -> Floats:
    """Expected counts `(d, n_states)` of the states of a neighbour and the node, or the sums of the
    neighbour's emission."""
    known = evidence.by_branch[u]
    if u in neighbourhood.emissions:
        return neighbourhood.emissions[u].sums(known, posterior)
    cpt = neighbourhood.cpts[u]
    if known.ndim == 1:
        rows = [np.bincount(known + 1, column, len(cpt) + 1)[1:] for column in posterior.T]
        return np.stack(rows, axis=1)
    ratio = posterior / np.maximum(known @ cpt, TINY)
    return np.asarray(cpt * (known.T @ ratio))
