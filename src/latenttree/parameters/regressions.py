"""Linear regressions of many edges at once, from the decompositions of hidden nodes.

With `q = L y` the best linear predictor of the states of a hidden node `h` from its views and
`E[q | h] = G` known, any variable `x` on another side of `h` has `E[x q^T] = E[x | h] diag(w) G^T`.
`L` and `G` depend on which of the three views may be used, not on `x`: there are four of each for a
triplet of views, and the rest are products of small matrices, stacked. `k` is the number of states.
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.parameters.view_moments import transposed

LEAST_EIGENVALUE = 1e-6
"""Lower bound of the eigenvalues of the second moments of whitened views."""

N_SCALINGS = 30
"""Sinkhorn iterations."""

LEAST_JOINT = 1e-9
"""Entries of a joint are at least this share of the product of its marginals."""

MOST_LISTED = 4
"""Up to this number of states all permutations are compared."""


class TripletFactors(NamedTuple):
    """Decompositions of all triplets of views, whitened.

    Directions of a predictor whose noise would be amplified more than `worst_gain` are left out."""

    weights: Floats  # (rows, k)
    factors: Floats  # (rows, 3, k, k) E[(1, z) | h]
    worst_gain: float

    def reordered(self, rows: Ints, orders: Ints) -> TripletFactors:
        """The states of some triplets in other orders, `(len(rows), k)`."""
        weights, factors = self.weights.copy(), self.factors.copy()
        weights[rows] = np.take_along_axis(weights[rows], orders, axis=1)
        factors[rows] = np.take_along_axis(factors[rows], orders[:, None, None, :], axis=3)
        return TripletFactors(weights, factors, self.worst_gain)


def state_predictors(triplets: TripletFactors, branch: Ints, rows: Ints, without: Ints) -> Floats:
    """`G^-1 L`, `(len(rows), k, 3, k)`, of triplets of views, each without the view in the branch
    of the neighbour `without`: maps moments with the views to moments with the state indicators.

    `branch` `(triplets, 3)` are the neighbours whose branches the views represent."""
    left_out = branch[rows] == without[:, None]
    slot = np.where(left_out.any(axis=1), left_out.argmax(axis=1), 3)
    keys, which = np.unique(4 * rows + slot, return_inverse=True)
    used = np.arange(3) != (keys % 4)[:, None]
    return _state_predictors(triplets, keys // 4, used)[which]


def _state_predictors(triplets: TripletFactors, rows: Ints, used: Bools) -> Floats:
    """The same with the views that are `used`, `(len(rows), 3)`.

    `L = diag(w) B^T S^-1` with `B = E[y | h]` and the implied `S = E[y y^T]`: views are whitened,
    and independent given h. Rows of a view that is not used are zero."""
    w, k = triplets.weights[rows], triplets.weights.shape[1]
    inner = triplets.factors[rows][:, :, 1:] * used[:, :, None, None]
    b = np.concatenate([np.ones((len(w), 1, k)), inner.reshape(len(w), 3 * (k - 1), k)], axis=1)
    weighted = b * w[:, None, :]
    second = weighted @ transposed(b)
    for s in range(3):
        block = slice(1 + s * (k - 1), 1 + (s + 1) * (k - 1))
        second[:, block, block] = np.eye(k - 1)
    values, vectors = np.linalg.eigh(second)
    values = np.maximum(values, LEAST_EIGENVALUE)
    linear = transposed(weighted) @ (vectors / values[:, None, :]) @ transposed(vectors)
    reading = np.linalg.pinv(linear @ b, rcond=1 / triplets.worst_gain) @ linear
    spread = np.zeros((len(w), k, 3, k))
    spread[..., 1:] = reading[:, :, 1:].reshape(len(w), k, 3, k - 1) * used[:, None, :, None]
    spread[np.arange(len(w)), :, used.argmax(axis=1), 0] = reading[:, :, 0]
    return spread


def joint_states(one: Floats, other: Floats, cross: Floats) -> Floats:
    """Joint moments of the states of two triplets, `(e, k, k)`, from their predictors and the
    moments `cross` `(e, 3, k, 3, k)` of their views."""
    e, k = one.shape[:2]
    flat = cross.reshape(e, 3 * k, 3 * k)
    return one.reshape(e, k, 3 * k) @ flat @ transposed(other.reshape(e, k, 3 * k))


def balanced(joint: Floats, rows: Floats, columns: Floats) -> Floats:
    """Joints `(..., k, k)` with positive entries and the given marginals: clipped, then scaled by
    rows and columns in turn (Sinkhorn)."""
    rows, columns = rows[..., :, None], columns[..., None, :]
    joint = np.maximum(joint, LEAST_JOINT * rows * columns)  # no row is empty
    for _ in range(N_SCALINGS):
        joint = joint * (rows / joint.sum(axis=-1, keepdims=True))
        joint = joint * (columns / joint.sum(axis=-2, keepdims=True))
    return np.asarray(joint / joint.sum(axis=(-1, -2), keepdims=True))


def project_simplex(columns: Floats) -> Floats:
    """Euclidean projection of every column of `(..., d, k)` onto the simplex (sort, threshold)."""
    d = columns.shape[-2]
    ordered = -np.sort(-columns, axis=-2)
    excess = (np.cumsum(ordered, axis=-2) - 1) / np.arange(1, d + 1)[:, None]
    last = (ordered > excess).sum(axis=-2, keepdims=True) - 1
    return np.maximum(columns - np.take_along_axis(excess, last, axis=-2), 0.0)


def align(joints: Floats) -> Ints:
    """Orders `(n, k)` of the states of one decomposition of each hidden node that match another's.

    `joints[i, a, b]` estimates the probability of state a in the first order and b in the second
    (the reference-group relation of the paper, from views of different branches): a permuted
    diagonal. `order[i, a] = b` by linear assignment."""
    k = joints.shape[1]
    if k > MOST_LISTED:
        found = [linear_sum_assignment(-joint)[1] for joint in joints]
        return np.array(found, dtype=np.int64).reshape(-1, k)
    orders = np.array(list(permutations(range(k))))
    total = joints[:, np.arange(k), orders].sum(axis=2)
    return np.asarray(orders[total.argmax(axis=1)])
