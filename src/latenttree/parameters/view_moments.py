"""Moments of three views of hidden variables, and the parameters fitted to them, as arrays.

The first axis of every array counts the hidden variables (m). A view has `q` coordinates, a hidden
variable `k` states. In the formulas below `k` is the number of states, as in the paper.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Bools, Floats

Array: TypeAlias = Floats
Three: TypeAlias = tuple[Array, Array, Array]
Rows: TypeAlias = NDArray[np.intp] | Bools

PAIRS = ((0, 1), (0, 2), (1, 2))


@dataclass(frozen=True)
class ViewMoments:
    """Of m triplets: third (m, q, q, q); first, three (m, q); second, (1,2), (1,3), (2,3)."""

    third: Array
    first: Three
    second: Three

    def take(self, rows: Rows) -> ViewMoments:
        """The moments of some triplets."""
        return ViewMoments(self.third[rows], *(each(x, rows) for x in (self.first, self.second)))

    def without_constant(self) -> ViewMoments:
        """The same without the first coordinate of every view."""
        first, second = (each(self.first, np.s_[:, 1:]), each(self.second, np.s_[:, 1:, 1:]))
        return ViewMoments(self.third[:, 1:, 1:, 1:], first, second)

    def pair(self, a: int, b: int) -> Array:
        """`E[y_a y_b^T]`, (m, q, q)."""
        return oriented_pair(self.second, a, b)

    def size(self) -> Array:
        """Sum of squares of all moments, (m,)."""
        parts = (*self.first, *self.second, self.third)
        return np.add.reduce([squares(x) for x in parts])


@dataclass(frozen=True)
class ViewParameters:
    """Weights (m, k) and factors, three (m, q, k), column j = E[y_b | h = j]."""

    weights: Array
    factors: Three

    def take(self, rows: Rows) -> ViewParameters:
        """The parameters of some triplets, copied."""
        return ViewParameters(self.weights[rows], each(self.factors, rows))

    def replace(self, rows: Rows, new: ViewParameters) -> None:
        """Write `new` over the given rows, in place."""
        self.weights[rows] = new.weights
        for old, factor in zip(self.factors, new.factors, strict=True):
            old[rows] = factor


def three(arrays: Iterable[Array]) -> Three:
    """Three arrays as a tuple."""
    a, b, c = arrays
    return a, b, c


def each(arrays: Three, part: Any) -> Three:
    """The same part of three arrays."""
    return three(x[part] for x in arrays)


def oriented_pair(second: Three, a: int, b: int) -> Array:
    """The array of views a and b among those of `PAIRS`, transposed where `a > b`."""
    return second[PAIRS.index((a, b))] if a < b else transposed(second[PAIRS.index((b, a))])


def transposed(x: Array) -> Array:
    """Matrices on the last two axes, transposed."""
    return x.swapaxes(-1, -2)


def squares(x: Array) -> Array:
    """Sums of squares over all axes but the first, (m,)."""
    return (x**2).sum(axis=tuple(range(1, x.ndim)))


def on_simplex(weights: Array, floor: float) -> Array:
    """Rows >= 0 scaled to sum 1, raised to the floor, and scaled to sum 1 again."""
    total = weights.sum(axis=1, keepdims=True)
    even = np.full_like(weights, 1 / weights.shape[1])
    shares = np.maximum(np.divide(weights, total, out=even, where=total > 0), floor)
    return shares / shares.sum(axis=1, keepdims=True)
