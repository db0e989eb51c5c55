"""Mutual information by the definition, one pair and one pair of categories at a time."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray


def mutual_information(codes: NDArray[np.int64]) -> NDArray[np.float64]:
    """(p, p) nats between the columns; the diagonal is the entropy."""
    n, p = codes.shape
    found = np.zeros((p, p))
    for a in range(p):
        for b in range(p):
            for x in set(codes[:, a].tolist()):
                for y in set(codes[:, b].tolist()):
                    one, other = codes[:, a] == x, codes[:, b] == y
                    both = float((one & other).sum()) / n
                    if both > 0:
                        found[a, b] += both * math.log(both / (one.mean() * other.mean()))
    return found
