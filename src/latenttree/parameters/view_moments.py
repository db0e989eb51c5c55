"""Moments of three views of hidden variables, and the parameters fitted to them, as arrays.

There are m hidden variables, of `k` states each; their three views have `q` coordinates each. In
the formulas below `k` is the number of states, as in the paper.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints

PAIRS = ((0, 1), (0, 2), (1, 2))


class ViewMoments(NamedTuple):
    """Moments of m triplets of views."""

    third: Floats  # (m, q, q, q)
    first: Floats  # (3, m, q)
    second: Floats  # (3, m, q, q), of the views of `PAIRS`

    def take(self, rows: Ints | Bools) -> ViewMoments:
        """The moments of some triplets."""
        return ViewMoments(self.third[rows], self.first[:, rows], self.second[:, rows])

    def without_constant(self) -> ViewMoments:
        """The same without the first coordinate of every view."""
        first, second = self.first[:, :, 1:], self.second[:, :, 1:, 1:]
        return ViewMoments(self.third[:, 1:, 1:, 1:], first, second)

    def pair(self, a: int, b: int) -> Floats:
        """`E[y_a y_b^T]`, (m, q, q)."""
        return oriented_pair(self.second, a, b)

    def size(self) -> Floats:
        """Sum of squares of all moments, (m,)."""
        return np.add.reduce([squares(x) for x in (*self.first, *self.second, self.third)])


class ViewParameters(NamedTuple):
    """What is fitted to the moments of m triplets of views."""

    weights: Floats  # (m, k)
    factors: Floats  # (3, m, q, k), column j of view b = E[y_b | h = j]

    def take(self, rows: Ints | Bools) -> ViewParameters:
        """The parameters of some triplets, copied."""
        return ViewParameters(self.weights[rows], self.factors[:, rows])

    def replace(self, rows: Ints | Bools, new: ViewParameters) -> None:
        """Write `new` over the given rows, in place."""
        self.weights[rows] = new.weights
        self.factors[:, rows] = new.factors


def oriented_pair(second: Floats, a: int, b: int) -> Floats:
    """The array of views a and b among those of `PAIRS`, transposed where `a > b`."""
    return second[PAIRS.index((a, b))] if a < b else transposed(second[PAIRS.index((b, a))])


def transposed(x: Floats) -> Floats:
    """Matrices on the last two axes, transposed."""
    return x.swapaxes(-1, -2)


def squares(x: Floats) -> Floats:
    """Sums of squares over all axes but the first, (m,)."""
    return (x**2).sum(axis=tuple(range(1, x.ndim)))


def on_simplex(weights: Floats, floor: float) -> Floats:
    """Rows >= 0 scaled to sum 1, raised to the floor, and scaled to sum 1 again."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    shares = np.maximum(np.divide(weights, total, out=even, where=total > 0), floor)
    return shares / shares.sum(axis=1, keepdims=True)
