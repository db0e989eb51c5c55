"""Coherence of topics: normalised pointwise mutual information of their words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def npmi(documents: Any, topics: Sequence[Sequence[int]]) -> NDArray[np.float64]:
    """(topics,) mean over the pairs of words of each topic of

        log( P(a, b) / (P(a) P(b)) ) / -log P(a, b)

    with the shares of `documents` `(n, p)`, 0 or 1, that have them: -1 for words that are never
    together, 0 for independent ones, 1 for words that are always together (Bouma 2009). Topics of
    a single word have no pairs, and NaN."""
    used = np.unique(np.concatenate([np.asarray(t, dtype=np.int64) for t in topics]))
    ones = sparse.csc_array(documents, dtype=np.float64)[:, used]
    n = ones.shape[0]
    both = np.asarray((ones.T @ ones).todense()) / n
    single = np.maximum(np.diag(both), 0.5 / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.log(both / np.outer(single, single)) / -np.log(both)
    found = np.where(both > 0, found, -1.0)
    found = np.where(both < 1, found, 1.0)
    scores = []
    for topic in topics:
        at = np.searchsorted(used, np.asarray(topic, dtype=np.int64))
        rows, columns = np.triu_indices(len(at), 1)
        scores.append(found[at[rows], at[columns]].mean() if len(rows) else np.nan)
    return np.array(scores)
