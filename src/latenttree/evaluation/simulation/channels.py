"""Categorical channels of given information length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.search.edge_lengths import information_lengths

Marginal = Literal["uniform", "random", "zipf"]


def information_length(joint: Floats, rank: int) -> float:
    """`-sum log s_i` over the leading `rank` canonical correlations of a joint distribution."""
    return float(information_lengths(joint[None], rank)[0])


def transition(
    parent: Floats, n_rows: int, length: float, base: Floats, rng: np.random.Generator
) -> Floats:
    """`P(child | parent)`, shape `(n_rows, k)`, with the given information length.

    A mixture `t * sharp + (1 - t) * base`: at t = 1 the columns live on disjoint categories
    (length 0), at t = 0 they are equal (length infinite); `t` by bisection.
    """
    k = len(parent)
    mixed = columns(k, n_rows, base, rng)
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        if information_length(mixed(middle) * parent, k) > length:
            low = middle
        else:
            high = middle
    return mixed(high)


def columns(
    k: int, n_rows: int, base: Floats, rng: np.random.Generator
) -> Callable[[float], Floats]:
    """`k` distributions over `n_rows` categories about `base`, from all equal (t = 0) to living on
    disjoint categories (t = 1)."""
    used = np.flatnonzero(base)
    owner = np.empty(len(used), dtype=np.int64)
    if n_rows == k:
        owner[:] = np.arange(k)
    else:
        owner = rng.permutation(np.arange(len(used)) % k)
    sharp = np.zeros((n_rows, k))
    sharp[used, owner] = base[used] * rng.uniform(0.5, 1.5, len(used))
    sharp /= sharp.sum(0)
    noise = base[:, None] * rng.uniform(0.7, 1.3, (n_rows, k))
    noise /= noise.sum(0)

    def mixed(t: float) -> Floats:
        # the noise columns differ a little, so that no edge is a symmetric channel
        blunt = t * noise + (1 - t) * base[:, None]
        return np.asarray(t * sharp + (1 - t) * blunt)

    return mixed


def base_marginal(
    n_categories: int, n_used: int, kind: Marginal, rng: np.random.Generator
) -> Floats:
    """(n_categories,) probabilities: `n_used` positive ones of the given kind, in random places."""
    weights = {
        "uniform": np.ones(n_used),
        "random": rng.uniform(0.5, 1.5, n_used),
        "zipf": 1.0 / np.arange(1, n_used + 1),
    }[kind]
    base = np.zeros(n_categories)
    base[rng.permutation(n_categories)[:n_used]] = rng.permutation(weights) / weights.sum()
    return base
