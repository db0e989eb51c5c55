"""The stages `count_states` and `measure`: table -> number of states; similarities of all pairs
with their spanning tree."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from latenttree.config import FitConfig
from latenttree.data import Table, check_n_states, free_dimensions
from latenttree.distances.counted_similarity import counted_similarity, stored_similarity
from latenttree.distances.detection import TooManyStatesError, check_detection
from latenttree.distances.estimate import Distances, estimate_distances, pairwise_distances
from latenttree.distances.memory_plan import MemoryPlan, limit_too_small, plan_memory
from latenttree.distances.number_of_states import choose_states
from latenttree.distances.similarity import (
    Similarity,
    estimated_similarity,
    mark_copies,
    rarely_known,
)
from latenttree.engine.arrays import Float32, Floats
from latenttree.engine.memory import enough, shown
from latenttree.errors import DataError, Option, Text
from latenttree.moments import full_subspaces


@dataclass(frozen=True, eq=False)
class States:
    """How many states, or dimensions, hidden variables have.

    Attributes
    ----------
    n_states : states of a hidden variable; dimensions where hidden variables are Gaussian.
    n_directions : dimensions of the determinants that distances are made of: `n_states - 1`, or
        the dimensions of a Gaussian.
    most_states : the most states that a hidden variable may get by BIC; None where all get
        `n_states`.
    evidence : (directions, 2) where pairs were asked, see `StatesEvidence`; else None.
    goal : states that hidden variables are to have in the end, where these are more than moments
        determine; "auto": as many as held-out samples support; None: `n_states`.
    """

    n_states: int
    n_directions: int
    most_states: int | None = None
    evidence: Floats | None = None
    goal: int | Literal["auto"] | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """What the structure is learned from.

    Attributes
    ----------
    similarity : similarities of all pairs with their spanning tree; None for a baseline, which
        takes `distances`, and for one or two variables.
    distances : matrices of all pairs; None where none were made.
    basis : (coordinates, n_directions) directions in which each variable was measured.
    plan : how memory was planned; None where it was not.
    n_unmeasurable : pairs whose distance does not stand out of its noise, where counted.
    n_rounds : power rounds that the subspaces took.
    """

    similarity: Similarity | None = None
    distances: Distances | None = None
    basis: Float32 | None = None
    plan: MemoryPlan | None = None
    n_unmeasurable: int = 0
    n_rounds: int = 0

    def without_pairs(self, keep_distances: bool) -> Measured:
        """The same without anything quadratic in the number of variables, except `distances`
        where they are to be kept."""
        if self.distances is None:
            return replace(self, similarity=None)
        p = len(self.distances.values)
        return replace(
            self,
            similarity=None,
            distances=self.distances if keep_distances else None,
            n_unmeasurable=(p * p - int(self.distances.measurable.sum())) // 2,
            n_rounds=self.distances.n_rounds,
        )


def count_states(table: Table, config: FitConfig) -> States:
    """The number of states asked for, checked, or with "auto" or "bic" the number that pairs show.

    The structure and the first model take no more states than the variables distinguish. A column
    of a sparse matrix says that a word or a code is there, and hidden variables of such columns
    get two states unless more are asked for: a topic that is there or not. With "auto" those of an
    alignment of nucleotides have as many as there are nucleotides."""
    letters = nucleotides(table)
    if letters and config.n_states == "auto" and not config.gaussian:
        config = replace(config, n_states=letters)
    asked = check_n_states(table, config.n_states, config.gaussian, bounded=config.gaussian)
    fewest = int(free_dimensions(table).min())
    if isinstance(asked, str):
        states = _counted_states(table, fewest, config)
        return replace(states, goal=None) if asked == "bic" else states
    if config.gaussian:
        return States(asked, asked)
    n_states = min(asked, fewest + 1)
    given = config.given is not None and config.refine is not None  # no distances will show it
    if n_states > 2 and (table.has_values or given):
        evidence = choose_states(table, config.seed, config.n_jobs)
        n_states = min(n_states, evidence.most_states)
    return States(n_states, n_states - 1, goal=asked if asked > n_states else None)


def nucleotides(table: Table) -> int | None:
    """How many nucleotides an alignment has, at least 2; None where variables are something else.

    Hidden nodes of such a tree are ancestors. With more states they would tell fast sites from slow
    ones as well, and the tree would be less accurate."""
    labels = table.categories[0]
    if labels is None or not 3 <= len(labels) <= 4 or not set(labels.tolist()) <= set("ACGT"):
        return None
    alike = (x is not None and np.array_equal(x, labels) for x in table.categories)
    return len(labels) if table.values is None and all(alike) else None


def _counted_states(table: Table, fewest: int, config: FitConfig) -> States:
    """With "auto", where the narrowest variable has `fewest` free dimensions."""
    if config.gaussian and fewest == 1:
        return States(1, 1)
    if not config.gaussian and table.has_sparse_columns:
        return States(2, 1)
    with config.progress.stage("states"):
        evidence = choose_states(table, config.seed, config.n_jobs)
    if config.gaussian:
        n_dimensions = evidence.n_states - 1
        return States(n_dimensions, n_dimensions, None, evidence.directions)
    most = evidence.most_states
    if evidence.n_states <= fewest:
        most = max(most, evidence.n_states + 1)  # one more, for BIC to decide
    return States(evidence.n_states, evidence.n_states - 1, most, evidence.directions, "auto")


def measure_shown(table: Table, states: States, config: FitConfig) -> tuple[States, Measured]:
    """As `measure`, with as many states as pairs show where these are fewer than asked for; the
    stage `grow` then reaches the number that was asked for. Without it, the error of `measure`."""
    try:
        return states, measure(table, states, config)
    except TooManyStatesError as error:
        if config.gaussian or config.refine is None:
            raise
        goal = states.n_states if states.goal is None else states.goal
        shown = States(error.enough, error.enough - 1, goal=goal)
    return shown, measure(table, shown, config)


def measure(
    table: Table,
    states: States,
    config: FitConfig,
    *,
    check: bool = True,
    start: Float32 | None = None,
) -> Measured:
    """Similarities of all pairs of variables, with their minimum spanning tree; with `check`,
    `DataError` where the data cannot show a tree or memory is too small.

    Matrices of all pairs where they fit in `memory_limit`, else what the structure needs of them.
    `start`: directions of a larger sample that this one is part of, see `estimate_distances`. One
    or two variables have no spanning tree, only the distance between them. Of a given tree nothing
    is measured, unless distances are to be kept."""
    if table.n_vars < 3:
        return Measured(distances=_all_pairs(table, states, config) if table.n_vars == 2 else None)
    if config.given is not None:
        return Measured(
            distances=_all_pairs(table, states, config) if config.keep_distances else None
        )
    plan = None
    with config.progress.stage("distances"):
        if config.distances == "pooled":
            plan = _plan(table, states, config, check)
            if plan.mode != "matrices":
                return measure_counts(table, plan, config.n_jobs)
        distances = _all_pairs(table, states, config, start)
    if check:
        check_detection(distances, table, config.gaussian, config.seed, config.n_jobs)
    if config.baseline is not None:
        return Measured(None, distances, distances.basis, plan)
    with config.progress.stage("spanning tree"):
        similarity = similarity_of(distances, table)
    return Measured(similarity, distances, distances.basis, plan)


def similarity_of(distances: Distances, table: Table) -> Similarity:
    """Similarities of estimated distances, without variables that are rarely known; exact copies
    are marked."""
    return mark_copies(estimated_similarity(distances, rarely_known(table)), table)


def _all_pairs(
    table: Table, states: States, config: FitConfig, start: Float32 | None = None
) -> Distances:
    if config.distances == "pairwise" and table.n_vars > 2:
        return pairwise_distances(table, states.n_directions + 1)
    n_states, n_jobs = states.n_directions + 1, config.n_jobs
    return estimate_distances(table, n_states, random_state=config.seed, n_jobs=n_jobs, start=start)


def measure_counts(table: Table, plan: MemoryPlan, n_jobs: int) -> Measured:
    """Similarities of 0/1 variables from counts: all at once, or when they are asked for."""
    if plan.mode == "on demand":
        similarity, n_unmeasurable = counted_similarity(table, n_jobs, plan.kept), 0
    else:
        similarity, n_unmeasurable = stored_similarity(table, n_jobs)
    subspaces = full_subspaces(table, 1)
    basis = None if subspaces is None else subspaces.basis
    return Measured(mark_copies(similarity, table), None, basis, plan, n_unmeasurable)


def _plan(table: Table, states: States, config: FitConfig, check: bool) -> MemoryPlan:
    """How distances fit in memory; with `check`, `DataError` where they do not, before any work."""
    matrices = bool(_matrices_asked(config))
    plan = plan_memory(table, states.n_directions + 1, config.memory_limit, config.n_jobs, matrices)
    if check and plan.mode == "on demand":
        _check_on_demand(plan, table, config)
    return plan


def _check_on_demand(plan: MemoryPlan, table: Table, config: FitConfig) -> None:
    """Raise where counting on demand does not fit either, or where matrices are asked for."""
    if config.memory_limit is not None and plan.estimated_peak > plan.limit:
        problem = (
            f"{table.n_vars:,} variables in {len(table):,} samples need "
            f"{shown(plan.on_demand + plan.beside)} at least beside the "
            f"{shown(plan.held)} held already, and "
        )
        least = enough(plan.limit, plan.estimated_peak)
        raise limit_too_small(problem, plan.limit, least, config.memory_limit)
    for asked in _matrices_asked(config):
        raise DataError(
            Text(
                asked,
                f" needs the matrices of all pairs, {shown(plan.matrices)} beside the "
                f"{shown(plan.held)} held already, and ",
                Option("memory_limit"),
                f" is {shown(plan.limit)}",
            ),
            Text("raise it, or leave out ", Option(asked.name)),
            value=asked.value,
            option=asked.name,
        )


def _matrices_asked(config: FitConfig) -> list[Option]:
    """Options that need the matrices of all pairs."""
    asked = [Option("structure", config.structure)] if config.baseline else []
    return asked + ([Option("keep_distances", True)] if config.keep_distances else [])
