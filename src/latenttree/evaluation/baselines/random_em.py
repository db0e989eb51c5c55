"""EM from random starts on a given tree: the honest control for parameters from moments.

Plain EM, without extrapolation, every restart until it no longer gains; the best by likelihood
wins. Nothing is held against it: samples that are alike are summed before the first step, so that
a step costs what the different rows cost, and the M-step is that of `refine`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.config import check_refinement_options
from latenttree.data import Table, as_table, check_n_states
from latenttree.errors import DataError
from latenttree.model.inference import Evidence, expected_counts, log_likelihood
from latenttree.model.likelihood import maximise
from latenttree.model.samples import codes_of, is_one_hot, marginals
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.evidence import canonical_states
from latenttree.refinement.tree_em import random_model
from latenttree.tree import Tree

Floats = NDArray[np.float64]


class RandomEM(NamedTuple):
    """The best of all restarts, states in canonical order, and its log-likelihood (all samples)."""

    model: TreeModel
    log_likelihood: float


class _DistinctRows(NamedTuple):
    """Different samples, and how often each occurs."""

    evidence: Evidence
    weights: Floats


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
    max_iter, tol : most steps of a restart, and the relative gain at which it stops.
    smoothing : pseudo-samples for every state of a parent, as in `refine`; 0 for the maximum
        likelihood itself.
    random_state : seeds the starts; the first starts are the same for every `n_restarts`.
    enough : asked after every restart; no other is begun where it says so.

    Cost `O(n_restarts max_iter n_distinct n_edges k^2)` with `n_distinct` different samples.
    """
    _check_restarts(n_restarts)
    check_refinement_options(max_iter, tol, smoothing, 0.0)
    table = _checked_table(tree, X, n_states)
    rng = np.random.default_rng(random_state)
    rows, base = _distinct(table), marginals(table)
    target = [*base, *(np.full(n_states, 1 / n_states) for _ in range(tree.n_hidden))]
    best: RandomEM | None = None
    for _ in range(n_restarts):
        start = random_model(tree, dict(enumerate(base)), n_states, rng)
        found = _climb(start, rows, tuple(target), max_iter, tol, smoothing, n_jobs)
        if best is None or found.log_likelihood > best.log_likelihood:
            best = found
        if enough is not None and enough():
            break
    assert best is not None
    return best._replace(model=canonical_states(best.model))


def _climb(
    model: TreeModel,
    rows: _DistinctRows,
    target: tuple[Floats, ...],
    max_iter: int,
    tol: float,
    smoothing: float,
    n_jobs: int,
) -> RandomEM:
    """EM until a step gains less than `tol` of the log-likelihood."""
    last = -np.inf
    for _ in range(max_iter):
        counts, value = expected_counts(model, rows.evidence, n_jobs, rows.weights)
        model = maximise(model, counts, smoothing, target)
        if value - last <= tol * abs(value):
            break
        last = value
    value = float(rows.weights @ log_likelihood(model, rows.evidence, n_jobs))
    return RandomEM(model, value)


def _distinct(table: Table) -> _DistinctRows:
    rows, counts = np.unique(codes_of(table, 0, table.n_samples), axis=0, return_counts=True)
    return _DistinctRows(Evidence(np.ascontiguousarray(rows)), counts.astype(np.float64))


def _checked_table(tree: Tree, X: Any, n_states: int) -> Table:
    table = X if isinstance(X, Table) else as_table(X)
    check_n_states(table, n_states)
    if tree.observed_names != table.names:
        raise DataError(
            f"the tree is over {_few(tree.observed_names)}, the data over {_few(table.names)}",
            "pass the variables of the tree, in its order",
            value=table.names,
        )
    if not is_one_hot(table):
        raise DataError(
            "EM needs one category for each variable and sample, and some variables are vectors",
            "pass categorical columns",
        )
    return table


def _few(names: tuple[str, ...]) -> str:
    more = ", ..." if len(names) > 5 else ""
    return f"{len(names)} variables ({', '.join(names[:5])}{more})"


def _check_restarts(n_restarts: Any) -> None:
    if not isinstance(n_restarts, Integral) or int(n_restarts) < 1:
        raise DataError(
            f"n_restarts={n_restarts!r}",
            "give a number of starts, 1 or more",
            value=n_restarts,
            option="n_restarts",
        )
