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
from latenttree.data.schema.new_data import Rows
from latenttree.errors import DataError
from latenttree.model import gaussian
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.queries.evidence import Asked, far_values, spans
from latenttree.queries.filling import Filled

Floats = NDArray[np.float64]


class GaussianAnswers:
    """Hidden nodes with posterior means; see `Answers`."""

    def __init__(self, model: GaussianTreeModel, schema: Schema) -> None:
        self.model, self.schema = model, schema

    def names_out(self) -> NDArray[Any]:
        """ "h0", "h1", ...; with several dimensions "h0[0]", "h0[1]", ..."""
        tree = self.model.tree
        names = []
        for name, k in zip(tree.hidden_names, self.model.dims[tree.n_observed :], strict=True):
            names += [name] if k == 1 else [f"{name}[{i}]" for i in range(k)]
        return np.asarray(names, dtype=object)

    def hidden(self, asked: Asked, n_jobs: int = 1) -> Floats:
        """Posterior means of all hidden nodes side by side."""
        width = int(self.model.hidden_offsets[-1])
        return self._over(asked.rows, gaussian.posterior_means, (width,), n_jobs)

    def states(self, asked: Asked, joint: bool, n_jobs: int = 1) -> Floats:
        """The means: the most probable values, of each node by itself and of all together."""
        return self.hidden(asked, n_jobs)

    def probabilities(self, asked: Asked, nodes: Sequence[int], n_jobs: int = 1) -> list[Floats]:
        return [self.classes(v) for v in nodes]

    def classes(self, v: int) -> NDArray[Any]:
        raise DataError(
            f"{self.model.tree.names[v]!r} is a node of a Gaussian tree, which has no states and "
            "so no probabilities of them; transform gives means of hidden nodes, impute those of "
            "observed ones"
        )

    def log_likelihoods(self, asked: Asked, n_jobs: int = 1) -> Floats:
        found = self._over(asked.rows, gaussian.log_likelihood, (), n_jobs)
        found[np.isnan(found)] = -np.inf  # a difference of squares that both overflow
        return found

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Filled, Floats]:
        drawn, hidden = gaussian.sample(self.model, n, rng)
        return self._filled(drawn), hidden

    def filled(self, rows: Rows, rng: np.random.Generator | None, n_jobs: int = 1) -> Filled:
        """Expectations in the gaps, or draws.

        For draws, `z` is drawn from the model and lacks what `x` lacks: then `z - E[z | its known]`
        is independent of all that is known and has the spread that `x` has around `E[x | known]`.
        """
        X = self.matrix(rows, 0, rows.n_samples)
        result = gaussian.impute(self.model, X, n_jobs=n_jobs)
        if rng is not None:
            gaps = np.isnan(X)
            drawn, _ = gaussian.sample(self.model, len(X), rng)
            expected = gaussian.impute(self.model, np.where(gaps, np.nan, drawn), n_jobs=n_jobs)
            result = np.where(gaps, result + drawn - expected, X)
        return self._filled(result)

    def marginal(self, v: int) -> Floats:
        return self.model.marginal(v)

    def conditional(self, v: int, u: int) -> Floats:
        return self.model.conditional(v, u)

    # --- matrices ----------------------------------------------------------------------

    def matrix(self, rows: Rows, start: int, stop: int) -> Floats:
        """(stop - start, D) values of all variables, NaN where they are missing or not used."""
        X = np.full((stop - start, int(self.model.offsets[-1])), np.nan)
        for v, values in rows.arrays_at(start, stop).items():
            block = values.toarray() if sparse.issparse(values) else values
            X[:, self._columns(v)] = block.reshape(len(X), -1)
        return X

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
        self, rows: Rows, answer: Callable[..., Floats], shape: tuple[int, ...], n_jobs: int
    ) -> Floats:
        """`answer(model, X)` for ranges of samples, `(n, *shape)`."""
        found = np.empty((rows.n_samples, *shape))
        for start, stop in spans(rows.n_samples, int(self.model.offsets[-1])):
            X = self.matrix(rows, start, stop)
            with far_values():
                found[start:stop] = answer(self.model, X, n_jobs=n_jobs)
        return found
