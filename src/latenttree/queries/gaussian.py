"""Answers of a Gaussian tree, whose hidden nodes are numbers.

Every variable is a number or a vector of numbers; side by side they are the columns of one matrix,
NaN where a value is missing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Schema
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.gaussian.observing import observing
from latenttree.queries.evidence import SampleEvidence, no_overflow_warnings, sample_ranges
from latenttree.queries.filling import Filled, MissingCells, cells_of_numbers


class GaussianAnswers:
    """Hidden nodes with posterior means; the methods of `queries.answers.TreeAnswers`."""

    def __init__(self, model: GaussianTreeModel, schema: Schema) -> None:
        self.model, self.schema = model, schema

    def names_out(self) -> NDArray[Any]:
        """ "h0", "h1", ...; with several dimensions "h0[0]", "h0[1]", ..."""
        tree = self.model.tree
        names = []
        for name, k in zip(tree.hidden_names, self.model.dims[tree.n_observed :], strict=True):
            names += [name] if k == 1 else [f"{name}[{i}]" for i in range(k)]
        return np.asarray(names, dtype=object)

    def hidden(self, evidence: SampleEvidence, n_jobs: int = 1) -> Floats:
        """Posterior means of all hidden nodes side by side; values that are given stay."""
        model, given = self._observing(evidence), tuple(evidence.hidden)
        p, at = self.model.tree.n_observed, self.model.hidden_offsets
        others = [v for v in range(p, self.model.tree.n_nodes) if v not in evidence.hidden]
        place = [int(c) for v in (*given, *others) for c in range(at[v - p], at[v - p + 1])]

        def means(X: Floats, n_jobs: int) -> Floats:
            found = np.empty((len(X), len(place)))
            known = model.impute(X, n_jobs=n_jobs)[:, int(self.model.offsets[-1]) :]
            found[:, place] = np.hstack([known, model.posterior_means(X, n_jobs=n_jobs)])
            return found

        answer = means if given else model.posterior_means
        return self._over(evidence, answer, (int(at[-1]),), n_jobs)

    def states(self, evidence: SampleEvidence, joint: bool, n_jobs: int = 1) -> Floats:
        """The means: the most probable values, of each node by itself and of all together."""
        return self.hidden(evidence, n_jobs)

    def probabilities(
        self, evidence: SampleEvidence, nodes: Sequence[int], n_jobs: int = 1
    ) -> list[Floats]:
        """Raises: a Gaussian tree has no states."""
        return [self.classes(v) for v in nodes]

    def classes(self, v: int) -> NDArray[Any]:
        """Raises: a Gaussian tree has no states."""
        raise DataError(
            f"{self.model.tree.names[v]!r} is a node of a Gaussian tree, which has no states and "
            "so no probabilities of them",
            "transform gives means of hidden nodes, impute those of observed ones",
            node=self.model.tree.names[v],
        )

    def log_likelihoods(self, evidence: SampleEvidence, n_jobs: int = 1) -> Floats:
        """(n,) log-density of each sample; -inf where it underflows."""
        logs = self._over(evidence, self._observing(evidence).log_likelihood, (), n_jobs)
        logs[np.isnan(logs)] = -np.inf  # a difference of squares that both overflow
        return logs

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Filled, Floats]:
        """n draws: values of the observed variables, and of the hidden nodes side by side."""
        drawn, hidden = self.model.sample(n, rng)
        return self._filled(drawn), hidden

    def filled(
        self, evidence: SampleEvidence, rng: np.random.Generator | None, n_jobs: int = 1
    ) -> Filled:
        """Expectations in the gaps, or draws.

        A draw is `E[x | known] + z - E[z | known of z]`, with `z` drawn from the model and missing
        where `x` is: the difference is independent of all that is known, and has the covariance of
        `x` given what is known.
        """
        X, model = self.matrix(evidence, 0, len(evidence)), self._observing(evidence)
        result = model.impute(X, n_jobs=n_jobs)
        if rng is not None:
            gaps = np.isnan(X)
            drawn, _ = model.sample(len(X), rng)
            expected = model.impute(np.where(gaps, np.nan, drawn), n_jobs=n_jobs)
            result = np.where(gaps, result + drawn - expected, X)
        return self._filled(result)

    def distributions(
        self, evidence: SampleEvidence, n_jobs: int = 1
    ) -> tuple[Filled, dict[int, MissingCells]]:
        """Samples without gaps, and by variable the distributions of its gaps."""
        X, model = self.matrix(evidence, 0, len(evidence)), self._observing(evidence)
        mean = model.impute(X, n_jobs=n_jobs)
        std = np.sqrt(np.maximum(model.imputed_variances(X, n_jobs=n_jobs), 0.0))
        cells = {}
        for v in range(self.schema.n_vars):
            columns = self._columns(v)
            at = np.flatnonzero(np.isnan(X[:, columns]).any(axis=1))
            if len(at):
                shape = (len(at), *self.schema.shape_of(v))
                known = X[at, columns].reshape(shape)
                cells[v] = cells_of_numbers(at, known, mean[at, columns], std[at, columns])
        return self._filled(mean), cells

    def conditional(self, v: int, u: int) -> Floats:
        """`L` of `E[v | u] = mean + L (u - its mean)` for the two ends of an edge."""
        return self.model.conditional(v, u)

    # --- matrices ----------------------------------------------------------------------

    def matrix(self, evidence: SampleEvidence, start: int, stop: int) -> Floats:
        """(stop - start, D) values of all variables, NaN where they are missing or not used; behind
        them those of the hidden nodes that are given."""
        X = np.full((stop - start, int(self.model.offsets[-1])), np.nan)
        for v, values in evidence.rows.arrays_at(start, stop).items():
            block = values.toarray() if sparse.issparse(values) else values
            X[:, self._columns(v)] = block.reshape(len(X), -1)
        return np.hstack([X, *(values[start:stop] for values in evidence.hidden.values())])

    def _observing(self, evidence: SampleEvidence) -> GaussianTreeModel:
        """The model with the hidden nodes that are given as observed ones."""
        return observing(self.model, tuple(evidence.hidden)) if evidence.hidden else self.model

    def _columns(self, v: int) -> slice:
        return slice(int(self.model.offsets[v]), int(self.model.offsets[v + 1]))

    def _filled(self, X: Floats) -> Filled:
        """Columns as values of the variables; none has codes."""
        arrays = {}
        for v in range(self.schema.n_vars):
            vector = self.schema.form_of(v) == "vector"
            arrays[v] = X[:, self._columns(v).start] if vector else X[:, self._columns(v)]
        return Filled(np.full((len(X), self.schema.n_vars), -1, dtype=np.int8), arrays)

    def _over(
        self,
        evidence: SampleEvidence,
        answer: Callable[..., Floats],
        shape: tuple[int, ...],
        n_jobs: int,
    ) -> Floats:
        """`answer(X)` for ranges of samples, `(n, *shape)`."""
        values = np.empty((len(evidence), *shape))
        for start, stop in sample_ranges(len(evidence), int(self.model.offsets[-1])):
            X = self.matrix(evidence, start, stop)
            with no_overflow_warnings():
                values[start:stop] = answer(X, n_jobs=n_jobs)
        return values
