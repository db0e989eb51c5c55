"""Groups of 0/1 codes as one variable, where "none of them" is a value of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import expit

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.emissions.common import (
    CHUNK,
    LOGIT,
    Form,
    Link,
    draw_columns,
    form_of,
    logit,
    probability,
    ratio,
    row_totals,
    shaped,
    split_rows,
)
from latenttree.model.emissions.interface import Emission

LEAST_SOME = 1e-9
"""Smallest `Z`; there the group is a categorical variable to nine digits."""

NEWTON_STEPS = 80
"""Upper bound of the number of steps to `Z`."""


@dataclass(frozen=True, eq=False)
class MultiHot(Emission):
    """`none[j] = P(no code | state j)`; else codes with independent chances `codes[c, j]`, given
    that they are not all absent:

    `log P(x | j) = log(1 - none_j) + sum_c x_c log q_cj + (1 - x_c) log(1 - q_cj) - log Z_j`,
    `Z_j = 1 - prod_c (1 - q_cj)`.

    As `Z -> 0` exactly one code occurs: a categorical variable. A row with a gap is missing as a
    whole. Statistics: (row, none, x), `T = d + 2`."""

    links: ClassVar = {
        "none": LOGIT,
        "codes": Link(logit, lambda x: expit(np.clip(x, -45.0, 30.0))),
    }

    none: Floats
    codes: Floats
    form: Form = "dense"
    family: str = "multihot"

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """All states with the frequencies of the codes, and of rows without any."""
        half = np.full((values.shape[1] + 1, n_states), 0.5)
        return cls(half[0], half[1:], form_of(values), family).fitted_to(values, weights)

    @cached_property
    def log_absent(self) -> Floats:
        """`sum_c log(1 - q_c)`, `(k,)`."""
        return np.asarray(np.log1p(-self.codes).sum(axis=0))

    @cached_property
    def some(self) -> Floats:
        """`Z`, `(k,)`."""
        return -np.expm1(self.log_absent)

    def natural(self) -> Floats:
        """Natural parameters `(T, k)`, see `Emission.natural`."""
        row = np.log1p(-self.none) + self.log_absent - np.log(self.some)
        return np.concatenate([row[None], (np.log(self.none) - row)[None], logit(self.codes)])

    def expected_sums(self) -> Floats:
        """`E[t | state]`, `(T, k)`."""
        return np.concatenate([np.ones((1, self.n_states)), self.mean()])

    def log_likelihood(self, values: Any) -> Floats:
        """Log-probabilities of the rows of codes, `(n, k)`."""
        x, whole, none = _rows(values)
        row, empty, codes = np.split(self.natural(), [1, 2])
        return np.asarray(x @ codes + whole[:, None] * row + none[:, None] * empty)

    def chance_of(self, places: Ints, present: Floats) -> Floats:
        """`P(x_c for c in places | state)`, `(k,)`, of some codes, whatever the others are;
        `present` (m,) is 0 or 1."""
        known = np.where(present[:, None] > 0, self.codes[places], 1 - self.codes[places])
        some = known.prod(axis=0)
        if present.any():
            return np.asarray((1 - self.none) / self.some * some)
        return np.asarray(self.none + (1 - self.none) / self.some * (some - 1 + self.some))

    def mean(self) -> Floats:
        """Of the vector (none, codes), `(d + 1, k)`."""
        given_some = self.codes * ((1 - self.none) / self.some)
        return np.concatenate([self.none[None], given_some])

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, see `Emission.sums`."""
        x, whole, none = _rows(values)
        return np.concatenate(
            [(whole @ weights)[None], (none @ weights)[None], np.asarray(x.T @ weights)]
        )

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> MultiHot:
        """The M-step: the member of largest likelihood of `sums + smoothing * target`."""
        return from_many_sums({0: self}, {0: sums}, smoothing, {0: target})[0]

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """The first code that occurs, then those after it, which are free."""
        states = np.asarray(states)
        before = np.cumsum(np.log1p(-self.codes), axis=0) - np.log1p(-self.codes)
        first = draw_columns(self.codes * np.exp(before), states, rng)
        first[rng.random(len(states)) < self.none[states]] = len(self.codes)  # past them all
        step = max(1, CHUNK // len(self.codes))
        parts = []
        for start in range(0, len(states), step):
            at = slice(start, start + step)
            drawn = rng.random((len(states[at]), len(self.codes))) < self.codes.T[states[at]]
            place = np.arange(len(self.codes)) - first[at, None]
            part = ((place == 0) | (drawn & (place > 0))).astype(np.float64)
            parts.append(shaped(part, self.form))
        if not parts:
            return shaped(np.zeros((0, len(self.codes))), self.form)
        return sparse.vstack(parts, format="csr") if self.form == "sparse" else np.vstack(parts)

    def value_moments(self) -> tuple[Floats, Floats]:
        """See `Emission.value_moments`."""
        present = self.mean()[1:]
        return present, present * (1 - present)

    def impute(self, posterior: Floats) -> Any:
        """Codes that are present more likely than not."""
        return shaped((posterior @ self.mean()[1:].T > 0.5).astype(np.float64), self.form)


def from_many_sums(
    groups: Mapping[int, MultiHot],
    sums: Mapping[int, Floats],
    smoothing: float,
    targets: Mapping[int, Floats],
) -> dict[int, MultiHot]:
    """`from_sums` of many groups of as many states at once, in arrays over all their codes."""
    widths = np.array([len(group.codes) for group in groups.values()])
    first = np.cumsum(widths) - widths
    owner = np.repeat(np.arange(len(widths)), widths)
    target = np.array([targets[v][:2] for v in groups]).T[:, :, None]
    total = np.stack([sums[v][:2] for v in groups], axis=1) + smoothing * target
    target_codes = np.concatenate([targets[v][2:] for v in groups])[:, None]
    counted = np.concatenate([sums[v][2:] for v in groups]) + smoothing * target_codes

    def shares(total: Floats, counted: Floats, none: Any, given: Any) -> tuple[Floats, Floats]:
        some = total[0] - total[1]
        return ratio(total[1], total[0], none), ratio(counted, some[owner], given)

    pooled = shares(target, target_codes, 0.5, 1 / widths[owner][:, None])
    none, given = shares(total, counted, *pooled)
    none, given = probability(none, pooled[0]), probability(given, pooled[1])
    codes = given * chances_of_some(given, first, owner)[owner]
    parts = np.split(codes, first[1:])
    return {
        v: replace(group, none=none[i], codes=parts[i])
        for i, (v, group) in enumerate(groups.items())
    }


def chances_of_some(means: Floats, first: Ints, owner: Ints) -> Floats:
    """`Z` `(groups, k)` of the best fit to `means[c] = E[x_c | some]`, `(d, k)`, of groups whose
    codes begin at `first`; code `c` is of group `owner[c]`.

    With `q_c = Z m_c` it solves `g(Z) = 1 - prod_c (1 - Z m_c) - Z = 0`. `g` is concave,
    `g(0) = 0` and `g(1) <= 0`, so Newton's steps from 1 fall to the positive root, or to zero
    (here `LEAST_SOME`) where `sum m_c <= 1`. `O(d k)` a step, few unless the root is near zero."""
    z = np.ones((len(first), means.shape[1]))
    for _ in range(NEWTON_STEPS):
        part = z[owner] * means
        absent = np.add.reduceat(np.log1p(-part), first)
        slope = np.exp(absent) * np.add.reduceat(means / (1 - part), first) - 1
        step = (-np.expm1(absent) - z) / np.where(slope < 0, slope, -1.0)
        new = np.where(slope < 0, np.clip(z - step, LEAST_SOME, z), LEAST_SOME)
        if (z - new <= 1e-14 * z).all():
            return new
        z = new
    return z


def _rows(values: Any) -> tuple[Any, Floats, Floats]:
    """The codes, and as 0 or 1 whether a row is there and whether it has none of them."""
    x, whole = split_rows(values)
    there = np.ones(x.shape[0]) if whole is None else whole.astype(np.float64)
    return x, there, there * (row_totals(x) == 0)
