"""`Inference`: exact answers of one model, by the backend that costs least.

The dense backend visits all nodes, for many samples side by side; the sparse backend visits the
nodes above the ones of each sample. Which one is cheaper depends on the model alone: its number of
states, and how many of its nodes a sample drawn from it touches.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError
from latenttree.model.inference.dense import DenseBackend
from latenttree.model.inference.dense_lanes import WIDE
from latenttree.model.inference.distribution import Distribution, inner_nodes
from latenttree.model.inference.evidence import Evidence, Ones, is_ones
from latenttree.model.inference.sparse import SparseBackend

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Posteriors:
    """Posterior distributions of nodes, sample by sample.

    Attributes
    ----------
    nodes : (m,) the nodes.
    values : for each node `(n, dims[v])`; views of `array`. NaN where the evidence of a sample has
        probability zero.
    array : (n, sum of dims) all of them side by side.
    log_likelihood : (n,) of the evidence; -inf where it has probability zero.
    """

    nodes: Ints
    values: tuple[Floats, ...]
    array: Floats
    log_likelihood: Floats
    n_observed: int

    @classmethod
    def of(cls, model: Distribution, nodes: Ints, array: Floats, logs: Floats) -> Posteriors:
        """From all of them side by side."""
        ends = np.cumsum(model.dims[nodes])
        starts = zip(ends - model.dims[nodes], ends, strict=True)
        values = tuple(array[:, a:b] for a, b in starts)
        return cls(nodes, values, array, logs, model.tree.n_observed)

    @cached_property
    def hidden(self) -> Floats:
        """(n, ...) the columns of the hidden nodes among `nodes`."""
        if (self.nodes >= self.n_observed).all():
            return self.array
        picked = [x for v, x in zip(self.nodes, self.values, strict=True) if v >= self.n_observed]
        return np.concatenate([self.array[:, :0], *picked], axis=1)


class Inference:
    """Queries to one model. Evidence on `n` samples is answered on `n_jobs` threads, with the same
    answers for any number of them. Where the evidence of a sample is impossible, its log-likelihood
    is -inf and its posteriors are NaN."""

    def __init__(self, model: Distribution) -> None:
        self.model = model
        self.dense = DenseBackend(model)

    @cached_property
    def sparse(self) -> SparseBackend | None:
        """For rows of ones; None where the dense backend costs less, or zeros prevent ratios."""
        layouts = self.model.layouts
        if "is_sparse" not in layouts:  # once for all models of a tree
            layouts["is_sparse"] = self.sparse_cost() <= self.dense_cost()
        return SparseBackend.of(self.model) if layouts["is_sparse"] else None

    # ---- costs ------------------------------------------------------------------------

    def dense_cost(self) -> float:
        """Nanoseconds that expected counts of a sample of ones take in the dense backend, measured
        with 2 to 64 states on one core: all nodes with children, and the ones."""
        inner = inner_nodes(self.model)
        k = float(self.model.dims[inner].max())
        a_node = 5.0 * k if k < WIDE else 60.0 + 0.3 * k**2
        return float(inner.sum()) * a_node + 20.0 * float((1 - self._zeros()).sum())

    def sparse_cost(self) -> float:
        """The same in the sparse backend: touched nodes `u`, those with a one below them, number
        `sum_u 1 - prod_(leaves x below u) P(x = 0)`, as if ones were independent."""
        model, p = self.model, self.model.tree.n_observed
        inner, parents = inner_nodes(model), model.parents.tolist()
        k, zeros = float(model.dims[inner].max()), self._zeros()
        none = np.append(np.log(np.maximum(zeros, 1e-300)), np.zeros(len(inner) - p)).tolist()
        for v in model.order[:0:-1].tolist():
            none[parents[v]] += none[v]
        touched = float((1 - np.exp(np.array(none)[inner])).sum())
        a_node = 24.0 if k == 2 else 40.0 + 5.0 * k + 0.95 * k**2
        return touched * a_node + 7.0 * float((1 - zeros).sum())

    def _zeros(self) -> Floats:
        """`P(x = 0)` of every variable."""
        return np.array([m[0] for m in self.model.marginals[: self.model.tree.n_observed]])

    # ---- queries ----------------------------------------------------------------------

    def backend(self, evidence: Evidence) -> tuple[SparseBackend | None, bool]:
        """The sparse backend where it is to be used, else whether the dense one reads ones."""
        if not is_ones(self.model, evidence):
            return None, False
        if self.sparse is not None:
            return self.sparse, False
        return None, self.dense.reads_ones()

    def log_likelihood(self, evidence: Evidence, n_jobs: int = 1) -> Floats:
        """`log P(evidence)` of every sample, `(n,)`."""
        sparse, ones = self.backend(evidence)
        if sparse is not None:
            return sparse.log_likelihood(Ones.of(evidence.codes), n_jobs)
        return self.dense.log_likelihood(evidence, n_jobs, ones)

    def posteriors(
        self, evidence: Evidence, nodes: Sequence[int] | None = None, n_jobs: int = 1
    ) -> Posteriors:
        """`P(v | evidence)` of the given nodes, all hidden ones by default.

        An observed node whose value is unknown has its predictive distribution, a known one has all
        its weight on the value. O(sum over edges of dims[v] dims[parent]) a sample."""
        model, (p, n_nodes) = self.model, (self.model.tree.n_observed, self.model.tree.n_nodes)
        asked = np.arange(p, n_nodes) if nodes is None else np.array(nodes, dtype=np.int64)
        for v in asked[(asked < 0) | (asked >= n_nodes)].tolist():
            raise DataError(
                f"posterior of node {v}; nodes are 0..{n_nodes - 1}", value=v, node=str(v)
            )
        sparse, ones = self.backend(evidence)
        inside = bool(inner_nodes(model)[asked].all())
        if sparse is not None and inside:
            found = sparse.posteriors(Ones.of(evidence.codes), asked, n_jobs)
        else:
            found = self.dense.posteriors(evidence, asked, n_jobs, ones and inside)
        return Posteriors.of(model, asked, *found)

    def pairwise(
        self, evidence: Evidence, edges: Sequence[int], n_jobs: int = 1
    ) -> tuple[Floats, ...]:
        """`P(a, b | evidence)` of the two ends of edges, indices into `tree.edges`,
        `(n, dims[a], dims[b])` each."""
        return self.dense.pairwise(evidence, edges, n_jobs)

    def most_probable(
        self, evidence: Evidence, n_jobs: int = 1
    ) -> tuple[NDArray[np.int32], Floats]:
        """The most probable states of all nodes, `(n, n_nodes)`, and `log P(states, evidence)`.

        Ties go to the lowest state, from the root down; states are -1 where the evidence is
        impossible."""
        return self.dense.most_probable(evidence, n_jobs)

    def sample(
        self, n: int, rng: np.random.Generator, evidence: Evidence | None = None
    ) -> NDArray[np.int32]:
        """Exact draws of all nodes, `(n, n_nodes)`, given the evidence where there is some.

        With evidence on one sample all `n` draws are for it, else there is one draw for each of the
        `n` samples. Impossible evidence gives -1."""
        return self.dense.sample(n, rng, evidence)

    def expected_counts(
        self, evidence: Evidence, n_jobs: int = 1, weights: ArrayLike | None = None
    ) -> tuple[Floats, float]:
        """`E[# (v = i, parent = j) | evidence]` of every CPT, one after another, row by row, and
        the log-likelihood, summed.

        `weights` multiply the samples, in both sums. Impossible samples count nothing and make the
        log-likelihood -inf."""
        n = len(evidence)
        w = np.ones(n) if weights is None else np.array(weights, dtype=np.float64)
        if w.shape != (n,):
            raise DataError(
                f"weights have shape {w.shape} for {n} samples", "give one each", value=w.shape
            )
        sparse, ones = self.backend(evidence)
        if sparse is not None:
            pairs, leaves, logs = sparse.sums(Ones.of(evidence.codes), w, n_jobs)
            return sparse.layout.counts(sparse.loaded, pairs, leaves), weighted_total(w, logs)
        nothing = np.empty(0, dtype=np.int64)
        counts, _, logs = self.dense.counts(evidence, w, nothing, n_jobs, ones)
        return counts, weighted_total(w, logs)

    def squares(self, evidence: Evidence, weights: Floats, n_jobs: int = 1) -> Floats:
        """`sum_n w q^2` over the posteriors of all hidden nodes, side by side; a sample of
        probability zero adds nothing."""
        sparse, ones = self.backend(evidence)
        if sparse is None:
            return self.dense.squares(evidence, weights, n_jobs, ones)
        hidden = np.arange(self.model.tree.n_observed, self.model.tree.n_nodes)
        return sparse.squares(Ones.of(evidence.codes), weights, hidden, n_jobs)

    def messages(
        self, evidence: Evidence, edges: ArrayLike, n_jobs: int = 1
    ) -> NDArray[np.float32]:
        """Messages of belief propagation out of hidden nodes, `(n, m, k)`.

        `edges` is `(m, 2)`: from a hidden node `u` to its neighbour `w`. The answer is the
        likelihood, over the states of `u`, of the evidence on the side of `u` when the edge is cut,
        scaled to a largest entry of 1 (all zero where that evidence is impossible). `k` is the
        largest number of states of these `u`; the entries beyond a node's own are zero."""
        pairs = self._checked(edges)
        k = int(self.model.dims[pairs[:, 0]].max(initial=1))
        out = np.zeros((len(pairs), k, len(evidence)), dtype=np.float32)
        self._write(evidence, pairs, out, np.arange(len(pairs)), None, n_jobs)
        return out.transpose(2, 0, 1)

    def write_posteriors(
        self,
        evidence: Evidence,
        edges: Ints,
        out: NDArray[np.float32],
        place: Ints,
        marginals: Sequence[Floats],
        n_jobs: int = 1,
    ) -> None:
        """Write posteriors of the sources of messages given what is on their side of the edge:
        message times marginal, scaled to a sum of 1, without the first state, to `out[place[i]]`
        `(states - 1, n)`."""
        self._write(evidence, self._checked(edges), out, place, marginals, n_jobs)

    def _write(
        self,
        evidence: Evidence,
        edges: Ints,
        out: NDArray[np.float32],
        place: Ints,
        marginals: Sequence[Floats] | None,
        n_jobs: int,
    ) -> None:
        """Write messages. Samples are read as codes where an edge leads to a leaf, or where they
        have probability zero: one side of an edge may be possible."""
        sparse, ones = self.backend(evidence)
        if not inner_nodes(self.model)[edges].all():
            sparse, ones = None, False
        if sparse is not None:
            samples = Ones.of(evidence.codes)
            logs = sparse.messages(self.model, samples, edges, out, place, marginals, n_jobs)
        else:
            logs = self.dense.messages(evidence, edges, out, place, marginals, n_jobs, ones)
            if not ones:
                return
        rest = np.flatnonzero(logs == -np.inf)
        if len(rest):
            part = np.zeros((len(place), out.shape[1], len(rest)), dtype=np.float32)
            each = np.arange(len(place))
            some = Evidence(evidence.codes[rest])
            self.dense.messages(some, edges, part, each, marginals, n_jobs)
            out[place[:, None], :, rest] = part.transpose(0, 2, 1)

    def _checked(self, edges: ArrayLike) -> Ints:
        pairs, parents = np.asarray(edges, dtype=np.int64).reshape(-1, 2), self.model.parents
        start, end = pairs.T
        fine = (parents[start] == end) | (parents[end] == start)
        for u, w in pairs[~fine | (start < self.model.tree.n_observed)].tolist():
            raise DataError(f"({u}, {w}) is no edge that leaves a hidden node", value=(u, w))
        return pairs


def weighted_total(weights: Floats, logs: Floats) -> float:
    """`sum w log`; samples of weight zero may be impossible."""
    used = weights != 0
    return float(weights[used] @ logs[used])
