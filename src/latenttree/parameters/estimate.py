"""Parameters of a tree from moments of views, in rounds: better features in each.

The views of the first round are observed variables. Those of later rounds are messages of the model
of the round before, which depend on all leaves of a branch. Each round is one pass over the samples
(`moments.triples`), one decomposition for each hidden node, and regressions (`solving`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.samples import InMemory, Samples
from latenttree.model.tree_model import TreeModel
from latenttree.moments.sparse_triples import sparse_triple_moments
from latenttree.moments.triples import TripleLayout, TripleMoments, triple_moments
from latenttree.parameters.features import Projections, ViewValues
from latenttree.parameters.solving import (
    Parameters,
    Pooled,
    counted_model,
    decomposed,
    layout_of,
    solve_moments,
    whitening,
)
from latenttree.parameters.views import Views, choose_views, only_of
from latenttree.tree import Tree

Rows = Samples | InMemory

MAX_ROUNDS = 2
"""Upper bound of the number of rounds with messages as views."""


def estimate_by_moments(
    tree: Tree,
    projections: Projections,
    dims: Ints,
    marginals: Sequence[Floats],
    samples: Rows,
    n_states: int,
    *,
    families: Mapping[int, Pooled] | None = None,
    hidden_features: bool = True,
    subsample: Rows | None = None,
    score: Callable[[TreeModel], float] | None = None,
    n_jobs: int = 1,
) -> Parameters:
    """All conditional distributions of a tree from moments of its views.

    The first round has observed variables as views; with `hidden_features`, further rounds have
    messages out of the branches, one for every level of hidden nodes, at most `MAX_ROUNDS`. The
    result is that of the last round, or of the round whose model has the largest `score`.

    `subsample` is for a start of EM, which needs less precision: there is a single round of
    messages, and all rounds before the last, which only provide features, use these samples instead
    of `samples`."""
    if not tree.n_hidden:
        no_views = choose_views(tree, 1, hidden=False)
        layout = layout_of(tree, no_views, dims)
        moments = triple_moments(samples, ViewValues(no_views, []), layout, 1, n_jobs)
        return Parameters(counted_model(tree, layout, moments, marginals), np.empty(0))
    views = choose_views(tree, n_states - 1, hidden=False)
    most = MAX_ROUNDS if subsample is None else 1
    rounds = min(most, _depth(tree) - 1) if hidden_features else 0
    work = _Work(tree, dims, projections, n_states, families or {}, n_jobs)
    some = samples if subsample is None else subsample
    results = [work.round(views, None, some if rounds else samples)]
    if rounds:
        views = choose_views(tree, n_states - 1, hidden=True)
        for left in range(rounds, 0, -1):
            results.append(work.round(views, results[-1].model, some if left > 1 else samples))
    return results[-1] if score is None else max(results, key=lambda result: score(result.model))


def node_condition_numbers(
    model: TreeModel,
    projections: Projections,
    samples: Rows,
    nodes: Bools,
    *,
    hidden_features: bool = True,
    n_jobs: int = 1,
) -> Floats:
    """`Parameters.condition` of the hidden nodes marked by `nodes` `(m,)`, with messages of a given
    model as views."""
    tree, n_states = model.tree, int(model.dims[-1])
    views = only_of(choose_views(tree, n_states - 1, hidden=hidden_features), nodes)
    nothing = np.empty((0, 2), dtype=np.int64)
    dims = model.dims[: tree.n_observed]
    layout = TripleLayout(views.view, len(views.source), nothing, nothing, nothing, dims)
    work = _Work(tree, dims, projections, n_states, {}, n_jobs)
    moments = work.moments(views, layout, model, samples)
    return decomposed(moments, whitening(moments.own)[views.view]).condition


class _Work(NamedTuple):
    """The arguments that all rounds share."""

    tree: Tree
    dims: Ints
    projections: Projections
    n_states: int
    families: Mapping[int, Pooled]
    n_jobs: int

    def round(self, views: Views, model: TreeModel | None, samples: Rows) -> Parameters:
        """Parameters with observed nodes as views, or with messages of a model."""
        layout = layout_of(self.tree, views, self.dims)
        moments = self.moments(views, layout, model, samples)
        return solve_moments(self.tree, views, layout, moments, self.families)

    def moments(
        self, views: Views, layout: TripleLayout, model: TreeModel | None, samples: Rows
    ) -> TripleMoments:
        """The moments of a layout, in one pass over the samples."""
        sparse = samples.is_sparse and not self.families
        values = ViewValues(views, self.projections, model, sparse)
        if sparse:
            return sparse_triple_moments(samples, values, layout, self.n_states, self.n_jobs)
        statistics = {a: family.emission for a, family in self.families.items()}
        return triple_moments(samples, values, layout, self.n_states, self.n_jobs, statistics)


def _depth(tree: Tree) -> int:
    """Largest distance, in edges, of a hidden node to its nearest observed node."""
    one, other = np.concatenate([tree.edges, tree.edges[:, ::-1]]).T
    reached = np.arange(tree.n_nodes) < tree.n_observed
    depth = 0
    while not reached.all():
        reached[other[reached[one]]] = True
        depth += 1
    return depth
