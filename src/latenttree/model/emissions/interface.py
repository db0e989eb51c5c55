"""`Emission`: the interface of all families, and their likelihoods as soft evidence.

Families are exponential families: `log P(x | state) = t(x) . natural(state) + base(x)` with
statistics `t(x)` of a fixed number, whose sums over samples decide a fit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel, single_threaded_blas
from latenttree.engine.arrays import Floats
from latenttree.model.emissions.common import FORMS, Link, largest


class Emission(Protocol):
    """The distribution of an observed variable given each of the k states of its neighbour: a
    member of an exponential family for each state. Families are dataclasses of arrays, of which the
    first has the states as its last axis, and perhaps a `size` and a `form`; then their `family`.

    Values are what `Table.values` holds of a variable: `(n,)` numbers with NaN where missing, an
    `(n, d)` block with NaN, or a CSR block. The statistics `t(x)`, `(T,)`, are those
    whose sums over samples decide a fit."""

    links: ClassVar[Mapping[str, Link]]
    """The arrays that are parameters, by name, each with the states as its last axis."""

    @classmethod
    def pooled(cls, family: str, values: Any, n_states: int, weights: Floats | None) -> Self:
        """The fit to the whole sample in every state, where learning starts; `weights` `(n,)`.
        What the family keeps of the sample for good (units, dimension, dense or sparse) is taken
        here. `family` is the name, where a class serves several."""

    def fitted_to(self, values: Any, weights: Floats | None) -> Self:
        """Every state fitted to the whole sample."""
        ones = np.ones(values.shape[0]) if weights is None else weights
        target = self.sums(values, ones[:, None])[:, 0]
        return self.from_sums(np.repeat(target[:, None], self.n_states, axis=1), 0.0, target)

    @property
    def family(self) -> str:
        """Name of the family."""

    @property
    def n_states(self) -> int:
        """Number k of states of the neighbour."""
        return int(getattr(self, next(iter(self.links))).shape[-1])

    @property
    def n_parameters(self) -> int:
        """Free parameters, for BIC."""
        return sum(int(getattr(self, name).size) for name in self.links)

    def log_likelihood(self, values: Any) -> Floats:
        """`log P(value | state)`, `(n, k)`; a missing value is certain in every state: zeros."""

    def mean(self) -> Floats:
        """`E[x | state]` of the variable as a vector, `(d, k)`."""

    def sums(self, values: Any, weights: Floats) -> Floats:
        """`sum_i t(x_i) weights[i]`, `(T, m)`, for any real weights `(n, m)`: posteriors, or
        functions of other variables. Sums of parts of the samples add; missing values add nothing.
        The first rows count."""

    def from_sums(self, sums: Floats, smoothing: float, target: Floats) -> Self:
        """The family's member of largest likelihood of `sums + smoothing * target`, `(T, k)`.

        `target` `(T,)` are the mean statistics of the whole sample. Sums that no samples have (a
        negative variance or rate, from noisy moments) give a possible member near the pooled."""

    def log_prior(self, target: Floats) -> float:
        """Log-likelihood of a pseudo-sample with statistics `target` in each state, summed: EM with
        smoothing never decreases log-likelihood + smoothing * log_prior."""
        natural = self.natural()
        used = target != 0  # a statistic that never occurs costs nothing, whatever its coefficient
        return float(target[used] @ natural[used].sum(axis=1))

    def expected_sums(self) -> Floats:
        """`E[t(x) | state]`, `(T, k)`; `from_sums` of it is the emission itself."""

    def natural(self) -> Floats:
        """`(T, k)` with `log P(x | state) = t(x) . natural + base(x)`; so the expected complete
        log-likelihood of sums is `(sums * natural).sum()`, up to what no parameter changes."""

    def vector(self) -> Floats:
        """All parameters as free real numbers (means, log-variances, logits), for extrapolation."""
        free = [link.free(getattr(self, name)) for name, link in self.links.items()]
        return np.concatenate([x.ravel() for x in free])

    def with_vector(self, vector: Floats) -> Self:
        """The member with these parameters; values out of range are clipped."""
        arrays = [getattr(self, name) for name in self.links]
        parts = np.split(vector, np.cumsum([x.size for x in arrays[:-1]]))
        found = {
            name: link.back(part.reshape(x.shape))
            for (name, link), part, x in zip(self.links.items(), parts, arrays, strict=True)
        }
        return replace(self, **found)  # type: ignore[type-var]

    def relabelled(self, order: Sequence[int] | NDArray[np.integer[Any]]) -> Self:
        """States in another order: new state `i` is old state `order[i]`."""
        at = np.asarray(order)
        found = {name: getattr(self, name)[..., at] for name in self.links}
        return replace(self, **found)  # type: ignore[type-var]

    def mixed(self, matrix: Floats) -> Self:
        """States that are mixtures of the old, `matrix` `(k, k_new)` with columns on the simplex:
        the member with `E[t | new] = E[t | old] matrix`."""
        expected = self.expected_sums()
        return self.from_sums(expected @ np.asarray(matrix), 0.0, expected.mean(axis=1))

    def sample(self, states: NDArray[np.integer[Any]], rng: np.random.Generator) -> Any:
        """A value for each state, in the form of the values."""

    def value_moments(self) -> tuple[Floats, Floats]:
        """Mean and variance of every coordinate of a value in each state, each `(d, k)`."""

    def moments(self, posterior: Floats) -> tuple[Floats, Floats]:
        """Mean and standard deviation of every coordinate, each `(n, d)`, of a value whose state
        has the probabilities `posterior` `(n, k)`."""
        mean, variance = self.value_moments()
        middle = mean.mean(axis=1, keepdims=True)
        off = mean - middle  # smaller than the means, so that less cancels
        shift = posterior @ off.T
        total = posterior @ (variance + off**2).T - shift**2
        return middle[:, 0] + shift, np.sqrt(np.maximum(total, 0.0))

    def impute(self, posterior: Floats) -> Any:
        """A value for each row of `posterior` `(n, k)`: the mean of numbers, the codes that
        are probable, the rounded mean of counts."""

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the family as arrays, for `from_arrays`."""
        known = {name: getattr(self, name) for name in array_names(type(self))}
        return known | {
            name: np.array(FORMS.index(x) if name == "form" else x)
            for name, x in known.items()
            if name in ("form", "size")
        }

    @classmethod
    def from_arrays(cls, family: str, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The member that `to_arrays` took apart."""
        known: dict[str, Any] = {name: arrays[name] for name in array_names(cls)}
        for name, array in known.items():
            if name == "form":
                known[name] = FORMS[int(array)]
            else:
                known[name] = int(array) if name == "size" else np.asarray(array, dtype=np.float64)
        return cls(**known, family=family)  # type: ignore[call-arg]


def array_names(family: Any) -> tuple[str, ...]:
    """Names of the arrays of a class of emissions, in the order of its fields."""
    return tuple(field.name for field in fields(family) if field.name != "family")


def target_of(emission: Emission, values: Any, weights: Floats | None = None) -> Floats:
    """Mean statistics of a sample, `(T,)`: the `target` of `from_sums`. `weights` `(n,)`."""
    weights = np.ones(values.shape[0]) if weights is None else weights
    return np.asarray(emission.sums(values, weights[:, None])[:, 0] / weights.sum())


def soft_evidence(
    emissions: Mapping[int, Emission],
    parents: Mapping[int, int] | Sequence[int],
    values: Mapping[int, Any],
    n_jobs: int = 1,
) -> tuple[dict[int, Floats], Floats]:
    """Likelihoods of the values of some variables as soft evidence on their hidden neighbours.

    `emissions` and `values` by variable, `parents[v]` the neighbour of `v`. Returns weights
    `(n, k)` by neighbour, each row scaled to a largest weight of 1, and `(n,)` the logarithm of
    the scales, to be added to the log-likelihood."""
    parts = _each(emissions, lambda v: emissions[v].log_likelihood(values[v]), n_jobs)
    total: dict[int, Floats] = {}
    for v, part in parts.items():
        known = total.get(parents[v])
        total[parents[v]] = part if known is None else known + part
    n = next(iter(values.values())).shape[0] if values else 0
    scale = np.zeros(n)
    for u, log_weights in total.items():
        top = largest(log_weights)
        top = np.where(np.isfinite(top), top, 0.0)
        scale += top
        total[u] = np.exp(log_weights - top[:, None])
    return total, scale


def sums_of(
    emissions: Mapping[int, Emission],
    values: Mapping[int, Any],
    weights: Mapping[int, Floats],
    n_jobs: int = 1,
) -> dict[int, Floats]:
    """The sums of every emission, `weights[v]` `(n, m)` those of variable `v`."""
    return _each(emissions, lambda v: emissions[v].sums(values[v], weights[v]), n_jobs)


def _each(
    emissions: Mapping[int, Emission], work: Callable[[int], Floats], n_jobs: int
) -> dict[int, Floats]:
    """`work(v)` for every variable, on several threads. Products of tall matrices gain nothing
    from more threads of their own, and with one their sums keep their order."""
    nodes = list(emissions)
    if not nodes:
        return {}
    with single_threaded_blas():
        found = parallel(lambda a, b: [work(v) for v in nodes[a:b]], len(nodes), n_jobs)
    return dict(zip(nodes, (part for some in found for part in some), strict=True))
