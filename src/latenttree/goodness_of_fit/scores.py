"""`Scores`: every variable as one or a few numbers, in samples and in the model alike.

Ordered and binary variables are scored by their codes, numbers by their values: one column each.
An unordered variable of d categories has d - 1 columns, the indicators of its categories turned so
that they are uncorrelated: the sum of squared correlations of two such variables is the `phi^2` of
their contingency table. A vector has the few directions in which its means differ most between the
states (or along the dimensions) of its neighbour. Columns have mean 0 and about variance 1 in the
model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.chunk import Chunk
from latenttree.engine.arrays import Bools, Float32, Floats, Ints
from latenttree.model.emissions import Emission
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.pair_moments import Model
from latenttree.model.tree_model import TreeModel

MOST_CATEGORIES = 16
"""Categories of an unordered variable that are told apart; the rarer ones are one category."""

VECTOR_DIRECTIONS = 4
"""Directions of a vector, at most."""

SMALLEST = 1e-12
"""Smaller eigenvalues of a covariance belong to directions without variance."""


@dataclass(frozen=True, eq=False)
class Score:
    """The columns of a variable.

    Attributes
    ----------
    variable : its number.
    weights : of codes the columns of each category `(d, r)`; of numbers and vectors the directions
        `(d, r)` of `x - centre`.
    centre : (d,) None for codes.
    node, means : where the columns are attached to the tree, see `implied_covariance`.
    scalar : whether this is one number of an ordered, binary or real variable.
    shares : whether values are bags of counts, of which the shares are scored.
    """

    variable: int
    weights: Floats
    centre: Floats | None
    node: int
    means: Floats
    scalar: bool
    shares: bool = False

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.weights.shape[1])


@dataclass(frozen=True, eq=False)
class Scores:
    """The columns of some variables, side by side; picklable."""

    parts: tuple[Score, ...]

    @property
    def variables(self) -> Ints:
        """Numbers of the variables."""
        return np.array([part.variable for part in self.parts], dtype=np.int64)

    @property
    def owners(self) -> Ints:
        """(w,) the place in `parts` of the variable of each column."""
        return np.repeat(np.arange(len(self.parts)), [part.width for part in self.parts])

    @cached_property
    def two_valued(self) -> bool:
        """Whether all columns are those of binary variables."""
        return all(part.centre is None and part.weights.shape == (2, 1) for part in self.parts)

    @cached_property
    def skewness(self) -> Floats:
        """(w,) of two-valued columns: `z^2 = 1 + skewness z`, since their values multiply to -1."""
        return np.array([part.weights.sum() for part in self.parts])

    def of(self, chunk: Chunk) -> tuple[Float32, Bools]:
        """Columns `(n, w)` of some samples, 0 where missing, and `(n, w)` whether they are
        known."""
        coded = [part for part in self.parts if part.centre is None]
        codes = _codes(chunk.rows, [part.variable for part in coded]) if coded else None
        columns, known, at = [], [], 0
        for part in self.parts:
            if part.centre is None:
                assert codes is not None
                z, here = _of_codes(codes[:, at], part)
                at += 1
            else:
                z, here = _of_numbers(chunk.arrays[part.variable], part)
            columns.append(z)
            known.append(np.broadcast_to(here[:, None], z.shape))
        return np.concatenate(columns, axis=1), np.concatenate(known, axis=1)


def _codes(rows: Any, variables: Sequence[int]) -> NDArray[Any]:
    """(n, m) codes of some variables."""
    if sparse.issparse(rows):
        return np.asarray(rows[:, variables].toarray() != 0).astype(np.int8)
    return np.asarray(rows)[:, variables]


def _of_codes(codes: NDArray[Any], part: Score) -> tuple[Float32, Bools]:
    known = np.asarray(codes >= 0)
    z = part.weights.astype(np.float32)[np.where(known, codes, 0)]
    return (z if known.all() else z * known[:, None]), known


def _of_numbers(values: Any, part: Score) -> tuple[Float32, Bools]:
    assert part.centre is not None
    if part.shares:
        return _of_bags(values, part)
    if sparse.issparse(values):
        z = values @ part.weights - part.centre @ part.weights
        return np.asarray(z, dtype=np.float32), np.ones(len(z), dtype=np.bool_)
    x = np.asarray(values, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    known = np.asarray(~np.isnan(x).any(axis=1))
    z = np.where(known[:, None], x - part.centre, 0.0) @ part.weights
    return z.astype(np.float32), known


def _of_bags(values: Any, part: Score) -> tuple[Float32, Bools]:
    """Columns of the shares of counts; an empty bag has none."""
    assert part.centre is not None
    x = values if sparse.issparse(values) else np.asarray(values, dtype=np.float64)
    total = np.asarray(x.sum(axis=1), dtype=np.float64).ravel()
    known = np.asarray(total > 0)  # False for NaN too
    filled = x if sparse.issparse(x) else np.where(known[:, None], x, 0.0)
    z = (filled @ part.weights) / np.where(known, total, 1.0)[:, None]
    z = np.where(known[:, None], z - part.centre @ part.weights, 0.0)
    return z.astype(np.float32), known


# ---- columns from a model -----------------------------------------------------------------


def score_of(model: Model, family: str, v: int) -> Score | None:
    """The columns of observed variable v; None where it does not vary."""
    if isinstance(model, GaussianTreeModel):
        return _gaussian_score(model, v)
    if v in model.emissions:
        return _emission_score(model, v)
    return _coded_score(model, v, family == "ordinal")


def _coded_score(model: TreeModel, v: int, ordered: bool) -> Score | None:
    share = np.asarray(model.marginals[v])
    if len(share) > 2 and not ordered:
        weights = whitened_indicators(share)
        scalar = False
    else:
        z = np.arange(len(share)) - share @ np.arange(len(share))
        variance = float(share @ z**2)
        weights = (z / np.sqrt(variance))[:, None] if variance > SMALLEST else np.empty((0, 0))
        scalar = True
    if not weights.size:
        return None
    return Score(v, weights, None, v, np.ascontiguousarray(weights.T), scalar)


def whitened_indicators(share: Floats) -> Floats:
    """Uncorrelated columns `(d, r)`, of mean 0 and variance 1, of categories with probabilities
    `share`; the rarest together are one category where there are more than `MOST_CATEGORIES`."""
    label = np.argsort(np.argsort(-share, kind="stable"), kind="stable")
    label = np.minimum(label, MOST_CATEGORIES - 1)
    pooled = np.bincount(label, share)
    spread = np.diag(pooled) - np.outer(pooled, pooled)
    values, vectors = np.linalg.eigh(spread)
    kept = values > SMALLEST
    turn = vectors[:, kept] / np.sqrt(values[kept])
    return np.asarray((turn - pooled @ turn)[label])


def _emission_score(model: TreeModel, v: int) -> Score | None:
    emission, u = model.emissions[v], int(model.parents[v])
    share, mean = model.marginals[u], emission.mean()
    mean = mean[1:] if emission.family == "multihot" else mean  # the first is "no code"
    centre = mean @ share
    between = mean - centre[:, None]
    variance = _variance(emission, mean) @ share + between**2 @ share
    found = _linear_score(v, u, centre, variance, between, np.sqrt(share))
    return found and replace(found, shares=emission.family == "multinomial")


def _gaussian_score(model: GaussianTreeModel, v: int) -> Score | None:
    u = int(model.parents[v])
    if u < 0:  # an observed root: its own coordinates
        between, node, root = np.eye(int(model.dims[v])), v, np.ones(int(model.dims[v]))
    else:
        between, node = model.loadings[v], u
        root = np.sqrt(np.diag(model.marginal_covariance(u)))
    found = _linear_score(v, node, model.means[v], model.variances(v), between, root)
    inner = u >= 0 and bool((model.parents == v).any())
    if found is None or not inner:
        return found
    return replace(found, node=v, means=found.weights.T.copy())


def _linear_score(
    v: int, node: int, centre: Floats, variance: Floats, between: Floats, root: Floats
) -> Score | None:
    """Columns of numbers `x` with `E[x | node] - centre = between`: the only one of a scalar, the
    directions of a vector in which `between` is largest, in units of the deviations; one of them
    where the vector is independent of all others."""
    if not (variance > 0).any():
        return None
    unit = 1 / np.sqrt(np.where(variance > 0, variance, np.inf))
    if len(unit) == 1:
        weights = unit[:, None]
    else:
        left, size, _ = np.linalg.svd(between * unit[:, None] * root, full_matrices=False)
        kept = size[:VECTOR_DIRECTIONS] > 1e-9 * max(float(size[0]), SMALLEST)
        kept[0] = True
        weights = unit[:, None] * left[:, : len(kept)][:, kept]
    return Score(v, weights, centre, node, weights.T @ between, len(unit) == 1)


def _variance(emission: Emission, mean: Floats) -> Floats:
    """`Var[x | state]`, `(d, k)`; of counts that of Poisson counts, which sets the unit only."""
    if hasattr(emission, "variance"):
        return np.asarray(np.broadcast_to(emission.variance(), mean.shape))
    if hasattr(emission, "covariance"):
        spread = np.einsum("jaa->aj", emission.covariance())
        return np.asarray(np.broadcast_to(spread, mean.shape))
    return np.maximum(mean, 0.0)
