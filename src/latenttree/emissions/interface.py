"""What every family provides, and how its likelihoods become evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Self = TypeVar("Self", bound="Emission")


class Emission(Protocol):
    """The distribution of an observed variable given each of the k states of its neighbour."""

    @property
    def n_states(self) -> int:
        """k."""

    @property
    def n_parameters(self) -> int:
        """Free parameters, for BIC."""

    def log_likelihood(self, values: NDArray[Any]) -> Floats:
        """`log P(value | state)`, `(n, k)`; a missing value is certain in every state: zeros."""

    def mean(self) -> Floats:
        """`E[x | state]` of the variable as a vector, `(d, k)`."""

    def sums(self, values: NDArray[Any], posterior: Floats) -> Floats:
        """Sums over samples that `from_sums` needs, weighted by posteriors `(n, k)`; sums of parts
        of the samples add."""

    def from_sums(self: Self, sums: Floats, smoothing: float, target: Floats) -> Self:
        """The family's member of largest likelihood, `smoothing` pseudo-samples a state spread as
        `target` is."""

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> NDArray[Any]:
        """A value for each state, `(n,)` or `(n, d)`."""


def soft_evidence(
    emissions: Mapping[int, Emission],
    parents: Mapping[int, int] | Sequence[int],
    values: Mapping[int, NDArray[Any]],
) -> tuple[dict[int, Floats], Floats]:
    """Likelihoods of the values of some variables as soft evidence on their hidden neighbours.

    `emissions` and `values` by variable, `parents[v]` the neighbour of `v`. Returns weights
    `(n, k)` by neighbour, each row scaled to a largest weight of 1, and `(n,)` the logarithm of
    what the scaling took out, to be added to the log-likelihood."""
    total: dict[int, Floats] = {}
    for v, emission in emissions.items():
        part = emission.log_likelihood(values[v])
        known = total.get(parents[v])
        total[parents[v]] = part if known is None else known + part
    n = len(next(iter(values.values()))) if values else 0
    scale = np.zeros(n)
    for u, log_weights in total.items():
        top = log_weights.max(axis=1)
        top = np.where(np.isfinite(top), top, 0.0)
        scale += top
        total[u] = np.exp(log_weights - top[:, None])
    return total, scale
