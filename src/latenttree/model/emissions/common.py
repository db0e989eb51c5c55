"""What families share: values of every form, and repair of impossible estimates."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import gammaln

from latenttree.engine.arrays import Bools, Floats, Ints

Form = Literal["scalar", "dense", "sparse"]
FORMS: tuple[Form, ...] = ("scalar", "dense", "sparse")

FLOOR = 1e-6
"""No state has a variance, rate or probability below this share of the pooled one."""

TINY = 1e-12
"""Nor below this, where the pooled one is zero."""

GENTLE = 0.1
"""An impossible (negative) estimate says "small", not "never": it becomes this share of the pooled
one, so that EM can start from it."""

CHUNK = 1 << 22
"""Numbers that a sampler holds at once."""


def form_of(values: Any) -> Form:
    """How the values of a variable are stored."""
    if sparse.issparse(values):
        return "sparse"
    return "scalar" if np.ndim(values) == 1 else "dense"


def split(values: Any) -> tuple[Any, Bools | None]:
    """`(n, d)` numbers, zero where missing, and where they are known (None: everywhere).

    CSR stays as it is; scalars become one column."""
    if sparse.issparse(values):
        return values, None
    x = np.asarray(values, dtype=np.float64)
    x = x[:, None] if x.ndim == 1 else x
    gaps = np.isnan(x)
    if not gaps.any():
        return x, None
    return np.where(gaps, 0.0, x), ~gaps


def split_rows(values: Any) -> tuple[Any, Bools | None]:
    """As `split`, but a row with any gap is missing as a whole: zeros, and a mask `(n,)`."""
    x, known = split(values)
    if known is None:
        return x, None
    whole = np.asarray(known.all(axis=1))
    return np.where(whole[:, None], x, 0.0), whole


def counted(known: Bools | None, weights: Floats, d: int) -> Floats:
    """Total weight of the known values of each coordinate, `(d, m)`."""
    if known is None:
        return np.repeat(weights.sum(axis=0)[None], d, axis=0)
    return np.asarray(known.T @ weights)


def known_total(known: Bools | None, parts: Floats, n: int) -> Floats:
    """`sum_c parts[c, s]` over the known coordinates of every row, `(n, k)`."""
    if known is None:
        return np.repeat(parts.sum(axis=0)[None], n, axis=0)
    return np.asarray(known @ parts)


def squared(x: Any) -> Any:
    """Squares in double precision; CSR stays CSR."""
    if not sparse.issparse(x):
        return x * x
    data = x.data.astype(np.float64)
    return sparse.csr_array((data * data, x.indices, x.indptr), shape=x.shape)


def row_totals(x: Any) -> Floats:
    """(n,) sums of the rows of a dense or sparse block."""
    return np.asarray(x.sum(axis=1), dtype=np.float64).ravel()


def log_factorials(x: Any) -> Floats:
    """`sum_c log x_c!` of every row, `(n,)`: by table up to a million."""
    data = x.data if sparse.issparse(x) else x
    top = float(data.max(initial=0.0))
    if top < 2:
        return np.zeros(x.shape[0])
    whole = np.floor(data)
    if top < 1 << 20 and (whole == data).all() and data.min(initial=0.0) >= 0:
        found = _table(int(top).bit_length())[data.astype(np.int64)]
    else:
        found = gammaln(data + 1.0)
    if not sparse.issparse(x):
        return np.asarray(found.sum(axis=1))
    rows = np.repeat(np.arange(x.shape[0]), np.diff(x.indptr))
    return np.asarray(np.bincount(rows, found, minlength=x.shape[0]), dtype=np.float64)


@cache
def _table(bits: int) -> Floats:
    return np.asarray(gammaln(np.arange(1 << bits) + 1.0))


def ratio(part: Floats, whole: Floats, fallback: Floats | float) -> Floats:
    """`part / whole`, or `fallback` where nothing was counted."""
    some = whole > 0
    return np.where(some, part / np.where(some, whole, 1.0), fallback)


def positive(estimate: Floats, pooled: Floats) -> Floats:
    """Estimates of something that is not negative, at least `FLOOR` of the pooled one.

    A clearly negative one, which only noisy moments give, becomes `GENTLE` times the pooled one."""
    pooled = np.maximum(pooled, TINY)
    impossible = estimate < -1e-9 * pooled
    return np.where(impossible, GENTLE * pooled, np.maximum(estimate, FLOOR * pooled))


def probability(estimate: Floats, pooled: Floats) -> Floats:
    """Estimates of probabilities as `positive` ones whose complements are positive too."""
    low, high = positive(estimate, pooled), 1 - positive(1 - estimate, 1 - pooled)
    return np.minimum(np.where(estimate > 0.5, high, low), 1 - TINY)


def draw_columns(
    table: Floats, columns: NDArray[np.integer[Any]], rng: np.random.Generator
) -> Ints:
    """A row number for each entry of `columns`, drawn from that column of `table`."""
    draws = rng.random(len(columns))
    found = np.empty(len(columns), dtype=np.int64)
    for s in range(table.shape[1]):
        at = np.flatnonzero(columns == s)
        cumulative = np.cumsum(table[:, s])
        place = np.searchsorted(cumulative, draws[at] * cumulative[-1], side="right")
        found[at] = np.minimum(place, len(cumulative) - 1)
    return found


def draw_bags(
    table: Floats,
    states: NDArray[np.integer[Any]],
    totals: NDArray[np.integer[Any]],
    form: Form,
    rng: np.random.Generator,
) -> Any:
    """Bags of `totals[i]` items from column `states[i]` of `table`, in the given form.

    `O(items log d)`, nothing dense unless the form is."""
    rows = np.repeat(np.arange(len(states)), totals)
    items = draw_columns(table, np.repeat(np.asarray(states), totals), rng)
    shape = (len(states), len(table))
    bags = sparse.csr_array((np.ones(len(rows)), (rows, items)), shape=shape)
    return shaped(bags, form)


def shaped(x: Any, form: Form) -> Any:
    """An `(n, d)` matrix as values of the form."""
    if form == "sparse":
        return sparse.csr_array(x)
    dense = x.toarray() if sparse.issparse(x) else np.asarray(x)
    return dense[:, 0] if form == "scalar" else dense


def logit(p: Floats) -> Floats:
    """`log(p / (1 - p))`."""
    return np.asarray(np.log(p) - np.log1p(-p))


def expit(x: Floats) -> Floats:
    """Inverse of `logit`, kept off 0 and 1."""
    return np.clip(1 / (1 + np.exp(-np.clip(x, -700, 700))), TINY, 1 - TINY)


class Link(NamedTuple):
    """Parameters as free real numbers, and back, in arrays of the same shape; numbers out of range
    are clipped."""

    free: Callable[[Floats], Floats]
    back: Callable[[Floats], Floats]


def log_link(least: float) -> Link:
    """Logarithms of numbers of at least `least`."""
    return Link(np.log, lambda x: np.exp(np.clip(x, np.log(least), 100.0)))


REAL = Link(np.asarray, np.asarray)
LOGIT = Link(logit, expit)


def largest(rows: Floats) -> Floats:
    """Largest entry of every row `(n, k)`: column by column, several times faster for small k."""
    top = rows[:, 0].copy()
    for j in range(1, rows.shape[1]):
        np.maximum(top, rows[:, j], out=top)
    return top
