"""Tables of 0/1 variables, and values of their pairs from the samples one by one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table, as_table


def random_words(seed: int, n: int | None = None, p: int | None = None) -> NDArray[np.int8]:
    """0/1 variables of all frequencies that depend on a common one, with copies and constants and,
    since samples are few, many ties."""
    rng = np.random.default_rng(seed)
    n, p = n or int(rng.integers(5, 150)), p or int(rng.integers(3, 50))
    rate = rng.choice([0.02, 0.1, 0.5, 0.9], p)
    topic = rng.random((n, 1)) < 0.5
    X = (rng.random((n, p)) < np.clip(rate * (1 + topic), 0, 1)).astype(np.int8)
    if seed % 3 == 0 and p > 6:
        X[:, 3], X[:, 5] = X[:, 1], X[:, 2]
    if seed % 5 == 0:
        X[:, -1] = 0
    if seed % 7 == 0:
        X[:, 0] = 1
    return X


def sparse_binary(X: NDArray[Any]) -> Table:
    """A sparse binary table without constant columns."""
    return as_table(sparse.csr_array(X.astype(np.float32)), drop_constant=True)


class PairValues(NamedTuple):
    """Correlation, kurtosis ratio and variance inflation."""

    rho: float
    kurtosis: float
    inflation: float


def pair_values(X: NDArray[Any], a: int, b: int) -> PairValues:
    """By definition: z damped by four occurrences, `E[z_a^2 z_b^2] / (1 + 2 rho^2)`, and the
    variance of the influence `z_a z_b / rho - (z_a^2 + z_b^2) / 2` over the Gaussian one."""
    n, mean = len(X), X.mean(axis=0)
    z = (X - mean) / np.sqrt(mean * (1 - mean) + 4 / n)
    za, zb = z[:, a], z[:, b]
    rho = float((za * zb).mean())
    if abs(rho) < 1e-12:
        return PairValues(rho, 1.0, 1.0)
    kurtosis = max(float((za**2 * zb**2).mean()) / (1 + 2 * rho**2), 1.0)
    influence = za * zb / rho - (za**2 + zb**2) / 2
    gaussian = (1 - rho**2) ** 2 / rho**2 * kurtosis
    return PairValues(rho, kurtosis, max(float(influence.var()) / gaussian, 1.0))


def effective_samples(X: NDArray[Any], variables: list[int]) -> float:
    """n over the geometric mean of the kurtosis ratios, and over the mean of the inflations with
    weights `(1 - rho^2)^2 / rho^2`, squared correlations from 0.05 on."""
    pairs = [pair_values(X, a, b) for i, a in enumerate(variables) for b in variables[:i]]
    square = np.array([pair.rho**2 for pair in pairs])
    weight = (1 - square) ** 2 / np.maximum(square, 0.05)
    kurtosis = np.exp(np.mean([np.log(pair.kurtosis) for pair in pairs]))
    inflation = np.average([pair.inflation for pair in pairs], weights=weight)
    return max(len(X) / kurtosis / inflation, 4.0)
