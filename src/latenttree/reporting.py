"""Sentences and errors about a fit: what was dropped, joined, doubtful or impossible."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from latenttree.data import Table
from latenttree.data.checks import free_dimensions
from latenttree.data.limits import Sizes
from latenttree.distances.estimate import Distances, estimate_distances
from latenttree.distances.measure import Estimate, Plan
from latenttree.distances.number_of_states import choose_states
from latenttree.engine.memory import peak_memory
from latenttree.errors import DataError
from latenttree.model.tree_model import TreeModel
from latenttree.refinement.fitting import Fitted
from latenttree.report import Diagnostics
from latenttree.search.node_states import states_summary
from latenttree.structure.learn import Structure
from latenttree.tree import Tree

MANY_VARIABLES = 1000
"""Variables from which on there must be enough samples to tell them apart."""

WORST_CONDITION = 1e4
"""Decompositions that amplify errors more than this say little."""


class DetectionLimitError(DataError):
    """The dependence between the variables is too weak for this many samples."""


def check_enough(sizes: Sizes | None) -> None:
    """Raise where there are so few samples that even 0/1 variables could not all differ, before a
    table with many columns is read."""
    if sizes is None or sizes.n_vars < MANY_VARIABLES:
        return
    n, least = sizes.n_samples, int(np.ceil(np.log2(sizes.n_vars)))
    if 2 <= n < least:
        raise DetectionLimitError(
            f"{n} samples cannot tell {sizes.n_vars:,} variables apart: 0/1 variables have only "
            f"2^{n} = {2**n:,} ways to differ in them; give {least} samples or more, or exchange "
            "rows and columns if the variables are the rows"
        )


def describe(table: Table) -> list[str]:
    """What happened to the data before learning, in sentences."""
    messages = list(table.notes)
    if table.dropped and not any("kept" in message for message in messages):
        shown = ", ".join(table.dropped[:5]) + (", ..." if len(table.dropped) > 5 else "")
        some = (
            "1 variable was" if len(table.dropped) == 1 else f"{len(table.dropped)} variables were"
        )
        messages.append(f"{some} left out: {shown}")
    return messages


def states_report(table: Table, states: int) -> list[str]:
    """Why no more states were chosen, where the narrowest variable is the reason."""
    free = free_dimensions(table)
    if states <= int(free.min()) or int(free.min()) == int(free.max()):
        return []
    name = table.names[int(free.argmin())]
    return [
        f"the structure was found with {states} states, the most that variable {name!r} can tell "
        "apart; leave out such variables to look for more"
    ]


def single_states(table: Table, states: int, seed: int, n_jobs: int | None) -> Structure:
    """The tree over one or two variables, which has no hidden node."""
    if table.n_vars == 1:
        return Structure.of_tree(Tree.build(table.names, np.empty((0, 2), int), np.empty(0)))
    found = estimate_distances(table, states, random_state=seed, n_jobs=n_jobs)
    length = found.values[0, 1:2].astype(np.float64)
    result = Structure.of_tree(Tree.build(table.names, np.array([[0, 1]]), length))
    measured = bool(found.measurable[0, 1])
    return replace(
        result,
        support=np.array([1.0 if measured else 0.0]),
        standard_errors=found.standard_errors[0, 1:2].astype(np.float64),
        n_components=1 if measured else 2,
    )


def check_detection(
    found: Distances, table: Table, gaussian: bool, seed: int, n_jobs: int | None
) -> None:
    """Raise where no tree should be returned: too many states, or too little signal.

    Two states and variables that are used whole cannot fail so: independent variables are then
    simply joined without support."""
    alone = _alone(found)
    if alone.mean() <= 0.5:
        return
    rank, n = found.n_directions, table.total_weight
    lost = f"{int(alone.sum())} of {table.n_vars} variables"
    shown = choose_states(table, seed, n_jobs).n_states - 1 if rank > 1 else rank
    if shown < rank:
        fewer = estimate_distances(table, shown + 1, random_state=seed, n_jobs=n_jobs)
        if _alone(fewer).mean() <= 0.5:
            given, seen = (rank, shown) if gaussian else (rank + 1, shown + 1)
            raise DetectionLimitError(
                f"n_states={given}, but the data show {seen}: with {given} {lost} have no "
                f"measurable distance to any other; use n_states={seen} or n_states='auto'"
            )
    if (free_dimensions(table) > rank).any():
        d = int(free_dimensions(table).max())
        remedy = "give more samples" if table.values else "merge rare categories or give more"
        raise DetectionLimitError(
            f"below the detection limit: {lost} show no measurable dependence with up to {d:,} "
            f"dimensions in {n:,.0f} samples (a canonical correlation must exceed about "
            f"sqrt(dimensions / samples) = {np.sqrt(d / n):.2f}); {remedy}"
        )


def _alone(found: Distances) -> NDArray[np.bool_]:
    """Variables without a measurable distance to any other."""
    others = found.measurable
    np.fill_diagonal(others, False)
    return np.logical_not(others.any(axis=1))


def tree_report(
    report: Diagnostics, result: Structure, measured: Estimate, n_samples: float
) -> None:
    """Fill the report from the learned structure."""
    tree = result.tree
    report.support, report.standard_errors = result.support, result.standard_errors
    report.group_sizes, report.sweeps = result.group_sizes, result.sweeps
    report.n_components, report.n_duplicates = result.n_components, result.n_duplicates
    report.effective_depth = _effective_depth(tree)
    p = tree.n_observed
    report.n_pairs = p * (p - 1) // 2 if p > 2 else 0
    if p > 2:
        report.samples_needed = _samples_needed(result, n_samples)
    report.n_unmeasurable, report.n_rounds = measured.n_unmeasurable, measured.n_rounds
    if result.n_components > 1:
        report.messages.append(
            f"the data show {result.n_components} parts without dependence between them; the edges "
            "that join them have support 0"
        )
    if result.n_duplicates:
        report.messages.append(
            "1 variable copies another one and hangs from it at distance 0"
            if result.n_duplicates == 1
            else f"{result.n_duplicates} variables copy another one and hang from it at distance 0"
        )


def memory_report(report: Diagnostics, plan: Plan | None) -> None:
    """Fill the report with what memory was planned and taken."""
    report.peak_memory = peak_memory() or 0
    if plan is not None and plan.mode == "on demand":
        report.messages.append(plan.sentence())


def parameter_report(report: Diagnostics, fitted: Fitted | None) -> None:
    """Fill the report from the learned parameters."""
    if fitted is None:
        report.messages.append(
            "one or two variables that are not categorical have no hidden variable and no model: "
            "questions about probabilities are refused"
        )
        return
    report.condition, report.effective_samples = fitted.condition, fitted.samples
    report.hidden_states = np.asarray(fitted.model.dims[fitted.model.tree.n_observed :])
    report.n_states = int(report.hidden_states.max(initial=report.n_states))
    if isinstance(fitted.model, TreeModel):
        report.messages += states_summary(fitted.model)
    report.log_likelihood_trace, report.held_out_trace = fitted.trace, fitted.held_out
    report.converged = fitted.converged
    if not fitted.converged:
        report.messages.append(
            f"refinement was still gaining after {len(fitted.trace) - 1} steps; raise max_iter"
        )
        warnings.warn(report.messages[-1], ConvergenceWarning, stacklevel=3)
    doubtful = int((fitted.condition > WORST_CONDITION).sum())
    if doubtful:
        report.messages.append(
            f"the moments of {doubtful} of {len(fitted.condition)} hidden nodes are "
            "ill-conditioned (diagnostics_.condition); their parameters rest on refinement"
        )


def _effective_depth(tree: Tree) -> float:
    """Largest distance from a hidden node to its nearest observed node (multi-source Dijkstra)."""
    if not tree.n_hidden:
        return 0.0
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import dijkstra

    a, b = tree.edges.T.astype(np.int32)  # dijkstra takes no wider indices before SciPy 1.15
    # a tiny extra length keeps edges of length zero in the graph
    graph = coo_array((tree.lengths + 1e-12, (a, b)), shape=(tree.n_nodes,) * 2)
    reach = dijkstra(graph, directed=False, indices=np.arange(tree.n_observed), min_only=True)
    return float(reach[tree.n_observed :].max())


def _samples_needed(result: Structure, n_samples: float) -> int:
    """Samples at which the weakest internal edge would be four standard errors long."""
    inside = result.tree.internal_edges()
    error = result.standard_errors[inside]
    known = (error > 0) & np.isfinite(error)
    if not known.any():
        return 0
    z = result.tree.lengths[inside][known] / error[known]
    return int(np.ceil(n_samples * (4.0 / max(float(z.min()), 1e-3)) ** 2))
