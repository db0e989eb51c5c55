"""EM from random starts on a given tree: the honest control for parameters from moments.

Plain EM, without extrapolation, every restart until it no longer gains; the best by likelihood
wins. Nothing is held against it: samples that are alike are summed before the first step, so that
a step costs what the different rows cost, and the M-step is that of `refine`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from latenttree.config import check_refinement_options
from latenttree.data import Table, as_table, check_n_states
from latenttree.data.content_order import in_content_order
from latenttree.data.distinct_rows import distinct_rows
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError, check_option
from latenttree.model.likelihood import total_log_likelihood
from latenttree.model.samples import Samples, marginals
from latenttree.model.tree_model import TreeModel, default_root, normalised
from latenttree.refinement.em import Limits, em_loop, visit
from latenttree.refinement.evidence import canonical_states
from latenttree.refinement.tree_problem import TreeProblem
from latenttree.tree import Tree


class RandomEM(NamedTuple):
    """The best of all restarts, states in canonical order, and its log-likelihood (all samples)."""

    model: TreeModel
    log_likelihood: float


def random_em(
    tree: Tree,
    X: Any,
    n_states: int,
    *,
    n_restarts: int = 20,
    max_iter: int = 1000,
    tol: float = 1e-8,
    smoothing: float = 1.0,
    random_state: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    enough: Callable[[], bool] | None = None,
) -> RandomEM:
    """Parameters of `tree` by EM from `n_restarts` random starts; the best by likelihood.

    Parameters
    ----------
    tree : observed nodes are the variables of `X`, in their order.
    X : categorical data as `LatentTree.fit` takes them, or a `Table`.
    n_states : states of every hidden node.
    max_iter, tol : most steps of a restart, and the gain, relative to the log-likelihood of the
        start, at which it stops.
    smoothing : pseudo-samples for every state of a parent, as in `refine`; 0 for the maximum
        likelihood itself.
    random_state : seeds the starts; the first starts are the same for every `n_restarts`.
    enough : asked after every restart; no other is begun where it says so.

    Cost `O(n_restarts max_iter n_distinct n_edges k^2)` with `n_distinct` different samples.
    """
    possible = isinstance(n_restarts, int | np.integer) and n_restarts >= 1
    check_option("n_restarts", n_restarts, possible, "give a number of starts, 1 or more")
    check_refinement_options(max_iter, tol, smoothing, 0.0)
    table = _checked_table(tree, X, n_states)
    rng = np.random.default_rng(random_state)
    samples, base = Samples(distinct_rows(in_content_order(table))), marginals(table)
    best: RandomEM | None = None
    for _ in range(n_restarts):
        start = random_model(tree, dict(enumerate(base)), n_states, rng)
        problem = TreeProblem(start, samples, smoothing, base, n_jobs)
        state = visit(problem, problem.of_model(start))
        limits = Limits(int(max_iter) - 1, tol * abs(state.value), ratio=0.5)
        model = problem.as_model(em_loop(problem, state, limits, accelerate=False).theta)
        value = total_log_likelihood(model, samples, n_jobs)
        if best is None or value > best.log_likelihood:
            best = RandomEM(model, value)
        if enough is not None and enough():
            break
    assert best is not None
    return best._replace(model=canonical_states(best.model))


def random_model(
    tree: Tree, marginals: dict[int, Floats], n_states: int, rng: np.random.Generator
) -> TreeModel:
    """A random start for EM: random CPTs around the marginals of observed nodes."""
    root = default_root(tree)
    parents = tree.rooted(root).parents
    dims = [len(marginals[v]) if v < tree.n_observed else n_states for v in range(tree.n_nodes)]
    cpts = []
    for v in range(tree.n_nodes):
        u = int(parents[v])
        base = marginals[v] if v < tree.n_observed else np.full(n_states, 1 / n_states)
        noise = rng.gamma(1.0, size=(dims[v], 1 if u < 0 else dims[u]))
        cpts.append(normalised(base[:, None] * noise, base))
    return TreeModel(tree, root, tuple(cpts))


def _checked_table(tree: Tree, X: Any, n_states: int) -> Table:
    table = X if isinstance(X, Table) else as_table(X)
    check_n_states(table, n_states)
    if tree.observed_names != table.names:
        what = f"the tree is over {_few(tree.observed_names)}, the data over {_few(table.names)}"
        raise DataError(what, "pass the variables of the tree, in its order", value=table.names)
    if table.has_values:
        raise DataError(
            "EM needs one category for each variable and sample, and some variables are vectors",
            "pass categorical columns",
        )
    return table


def _few(names: tuple[str, ...]) -> str:
    more = ", ..." if len(names) > 5 else ""
    return f"{len(names)} variables ({', '.join(names[:5])}{more})"
