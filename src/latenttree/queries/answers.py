"""Answers to queries: `TreeAnswers` of models with states, by belief propagation; those of Gaussian
trees, with the same methods, are in `queries.gaussian`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.queries.evidence import SampleEvidence, check_possible
from latenttree.queries.filling import (
    Filled,
    MissingCells,
    fill_by_draws,
    fill_by_modes,
    fill_with_distributions,
)
from latenttree.queries.gaussian import GaussianAnswers
from latenttree.queries.nodes import classes_of, hidden_names_out


class TreeAnswers:
    """Hidden nodes with states.

    Examples
    --------
    Two of three votes of a hidden opinion, each right in nine of ten cases.

    >>> import numpy as np
    >>> from latenttree import Tree
    >>> from latenttree.data import Schema, as_table
    >>> from latenttree.queries import read_samples
    >>> X = np.array([["no", "no", "no"], ["yes", "yes", "yes"]])
    >>> schema = Schema.of(X, as_table(X))
    >>> vote = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> tree = Tree.build(["x0", "x1", "x2"], [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    >>> model = TreeModel(tree, 3, (vote, vote, vote, np.array([[0.5], [0.5]])))
    >>> evidence = read_samples(model, schema, {"x0": "yes", "x1": "yes"})
    >>> TreeAnswers(model, schema).hidden(evidence).round(3)
    array([[0.012, 0.988]])
    """

    def __init__(self, model: TreeModel, schema: Schema) -> None:
        self.model, self.schema = model, schema
        if len(model.emissions) != schema.n_vars - schema.n_coded:  # numbers would be ignored
            raise DataError(
                f"the data have {schema.n_vars - schema.n_coded} variables that are not "
                f"categorical, the model has distributions of {len(model.emissions)}",
                "fit or save it again",
            )

    def names_out(self) -> NDArray[Any]:
        """Names `h0=0`, `h0=1`, ... of the columns of `hidden`."""
        return hidden_names_out(self.model)

    def hidden(self, evidence: SampleEvidence, n_jobs: int = 1) -> Floats:
        """Posteriors of all hidden nodes side by side."""
        return self._posteriors(evidence, range(self.model.tree.n_observed, self._n_nodes), n_jobs)

    def probabilities(
        self, evidence: SampleEvidence, nodes: Sequence[int], n_jobs: int = 1
    ) -> list[Floats]:
        """`P(v | sample)` of each of the nodes, `(n, dims[v])`."""
        for v in nodes:
            self.classes(v)  # raises for nodes without states
        array = self._posteriors(evidence, nodes, n_jobs)
        return np.split(array, np.cumsum(self.model.dims[list(nodes)])[:-1], axis=1)

    def classes(self, v: int) -> NDArray[Any]:
        """Labels of the states of a node; raises for a node without states."""
        return classes_of(self.model, self.schema, v)

    @property
    def _n_nodes(self) -> int:
        return self.model.tree.n_nodes

    def _posteriors(self, evidence: SampleEvidence, nodes: Sequence[int], n_jobs: int) -> Floats:
        model, nodes = self.model, list(nodes)
        array = np.empty((len(evidence), int(model.dims[nodes].sum())))
        width = array.shape[1] + model.tree.n_observed // 8
        for start, stop, part in evidence.ranges(model, width):
            posteriors = model.posteriors(part, nodes, n_jobs)
            check_possible(posteriors.log_likelihood, np.arange(start, stop))
            array[start:stop] = posteriors.array
        return array

    def states(self, evidence: SampleEvidence, joint: bool, n_jobs: int = 1) -> NDArray[np.int32]:
        """(n, n_hidden) most probable states, of each node by itself or, if `joint`, together."""
        p, n_hidden = self.model.tree.n_observed, self.model.tree.n_hidden
        states = np.empty((len(evidence), n_hidden), dtype=np.int32)
        width = self._n_nodes if joint else int(self.model.dims[p:].sum()) + p // 8
        for start, stop, part in evidence.ranges(self.model, width):
            best = self._jointly_best if joint else self._best
            states[start:stop], logs = best(part, n_jobs)
            check_possible(logs, np.arange(start, stop))
        return states

    def _jointly_best(self, evidence: Evidence, n_jobs: int) -> tuple[NDArray[np.int32], Floats]:
        best, logs = self.model.most_probable(evidence, n_jobs)
        return best[:, self.model.tree.n_observed :], logs

    def _best(self, evidence: Evidence, n_jobs: int) -> tuple[NDArray[np.int32], Floats]:
        posteriors = self.model.posteriors(evidence, None, n_jobs)
        states = np.empty((len(evidence), len(posteriors.values)), dtype=np.int32)
        for i, values in enumerate(posteriors.values):
            states[:, i] = values.argmax(axis=1)
        return states, posteriors.log_likelihood

    def log_likelihoods(self, evidence: SampleEvidence, n_jobs: int = 1) -> Floats:
        """(n,) `log P(sample)`; -inf where a sample is impossible."""
        logs = [
            self.model.log_likelihood(part, n_jobs)
            for _, _, part in evidence.ranges(self.model, self.model.tree.n_observed)
        ]
        return np.concatenate(logs)

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Filled, NDArray[np.int32]]:
        """n draws: codes and values of the observed variables, and `(n, n_hidden)` states."""
        model, p = self.model, self.model.tree.n_observed
        states = model.sample(n, rng)
        arrays: Mapping[int, Any] = {
            v: emission.sample(states[:, model.parents[v]], rng)
            for v, emission in sorted(model.emissions.items())
        }
        return Filled(states[:, :p], arrays), states[:, p:]

    def filled(
        self, evidence: SampleEvidence, rng: np.random.Generator | None, n_jobs: int = 1
    ) -> Filled:
        """Samples without gaps: modes (medians of ordinal variables), or with `rng` draws."""
        if rng is None:
            return fill_by_modes(self.model, evidence, n_jobs, self._ordinal)
        return fill_by_draws(self.model, evidence, rng, n_jobs)

    def distributions(
        self, evidence: SampleEvidence, n_jobs: int = 1
    ) -> tuple[Filled, dict[int, MissingCells]]:
        """Samples without gaps, as `filled` without `rng` gives them, and by variable the
        distributions of its gaps."""
        filled, cells = fill_with_distributions(self.model, evidence, n_jobs, self._ordinal)
        for v in np.flatnonzero(self.schema.coded).tolist():
            if v in cells:
                cells[v] = replace(cells[v], classes=self.classes(v))
        return filled, cells

    @property
    def _ordinal(self) -> set[int]:
        return {v for v, family in enumerate(self.schema.families) if family == "ordinal"}

    def conditional(self, v: int, u: int) -> Floats:
        """`P(v | u)` or `E[v | u]` of the two ends of an edge, `(dims[v], dims[u])`."""
        if u in self.model.emissions:
            name, given = self.model.tree.names[v], self.model.tree.names[u]
            raise DataError(
                f"{given!r} is of family {self.schema.families[u]!r} and has no states to "
                "condition on",
                f"ask predict_proba({{{given!r}: value}}, query={name!r})",
                node=given,
            )
        return self.model.conditional(v, u)


Answers = TreeAnswers | GaussianAnswers
"""The two have the same methods."""


def answers_of(model: TreeModel | GaussianTreeModel, schema: Schema) -> Answers:
    """The answers of a model of any kind."""
    if isinstance(model, TreeModel):
        return TreeAnswers(model, schema)
    return GaussianAnswers(model, schema)
