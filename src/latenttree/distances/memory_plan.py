"""Which form of the distances fits in memory: matrices of all pairs, or pairs counted on demand.

Matrices of p variables take some `12 p^2` bytes; for 0/1 variables correlations are enough, `4
p^2`, since standard errors follow from them. Beyond the limit, pairs are counted from packed
samples when they are needed: the same numbers, O(p) memory beside the samples, more time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from latenttree.data import Table
from latenttree.data.files.sizes import COLUMN_BYTES, Sizes, sizes_of_table
from latenttree.distances.streaming_spanning_tree import STRIP
from latenttree.engine.memory import (
    available_memory,
    current_memory,
    enough,
    give_back_freed,
    memory_bytes,
    shown,
    still_to_load,
)
from latenttree.errors import DataError, Option, Text
from latenttree.moments import full_subspaces

Mode = Literal["matrices", "correlations", "on demand"]

STRUCTURE_BYTES, MODEL_BYTES, THREAD_BYTES = 12_000, 3_000, 2_000
"""Bytes for each variable: of features and regions while the structure is learned; of tables and
sums while parameters are, for each state, in all and for each thread."""

KEY_BYTES, CHUNK_BYTES = 3 * 2**23, 2**25
"""Bytes in which rows are compared; bytes of a chunk of samples with what is made of it."""

KEPT_SHARE = 0.25
MOST_KEPT = 2**27
"""Share of the memory left, and the most counts of 8 bytes, that are kept once asked for."""


@dataclass(frozen=True)
class MemoryPlan:
    """How much memory the distances of a table may take, and the form of the distances.

    Attributes
    ----------
    mode : the form of the distances.
    limit : bytes that the whole process may hold.
    held : bytes that it held before.
    matrices, on_demand : further bytes that either form needs, 0 for one that is not possible.
    kept : counts that are cached on demand.
    beside : further bytes of the stage that needs most.
    """

    mode: Mode
    limit: int
    held: int
    matrices: int
    on_demand: int
    kept: int = 0
    beside: int = 0

    @property
    def estimated_peak(self) -> int:
        """Bytes that the process is expected to hold at most."""
        pairs = self.on_demand if self.mode == "on demand" else self.matrices
        return self.held + self.beside + pairs

    def sentence(self) -> str:
        """The plan in one sentence, for reports."""
        ways = {
            "matrices": "the matrices of all pairs",
            "correlations": "the correlations of all pairs",
            "on demand": "packed samples, pairs counted when they are needed",
        }
        return (
            f"distances from {ways[self.mode]}: about {shown(self.estimated_peak)} in all, "
            f"of {shown(self.limit)}"
        )


def plan_memory(
    table: Table,
    n_states: int,
    memory_limit: Any = None,
    n_jobs: int = 1,
    with_errors: bool = False,
) -> MemoryPlan:
    """The form of the distances: matrices if they fit; `with_errors` asks for those of all pairs.

    Raises `DataError` where they do not and there is no other way."""
    limit, held = memory_bytes(memory_limit), current_memory() or 0
    alone = can_count(table) and not with_errors
    matrices = 4 * table.n_vars**2 if alone else matrix_bytes(table, n_states - 1)
    sizes = sizes_of_table(table)
    beside = beside_bytes(sizes, n_states, n_jobs, matrices, can_count(table))
    beside = max(beside, still_to_load() + _values_bytes(table, matrices))
    if held + beside + matrices <= limit:
        mode: Mode = "correlations" if alone else "matrices"
        return MemoryPlan(mode, limit, held, matrices, 0, beside=beside)
    if not can_count(table):
        room = available_memory() if memory_limit is None else None
        if room is not None and beside + matrices <= room:
            return MemoryPlan("matrices", limit, held, matrices, 0, beside=beside)
        raise _refusal(table, held, beside + matrices, limit)
    needed = on_demand_bytes(sizes, n_jobs)
    beside = beside_bytes(sizes, n_states, n_jobs, needed)
    kept = int(np.clip(KEPT_SHARE * (limit - held - beside - needed) / 8, 0, MOST_KEPT))
    return MemoryPlan("on demand", limit, held, matrices, needed + 8 * kept, kept, beside)


def check_least(sizes: Sizes | None, n_states: int, memory_limit: Any, n_jobs: int) -> int:
    """Bytes that any fit of an input of these sizes takes beside its table; `DataError` where a
    limit is less than that."""
    if memory_limit is None:
        return 0
    give_back_freed()
    limit, held = memory_bytes(memory_limit), current_memory() or 0
    sizes = sizes or Sizes(0, 0)
    pairs, counted = 4 * sizes.n_vars**2, on_demand_bytes(sizes, n_jobs)
    needed = sizes.n_copied + min(
        pairs + beside_bytes(sizes, n_states, n_jobs, pairs, packing=True),
        counted + beside_bytes(sizes, n_states, n_jobs, counted),
    )
    if sizes.n_copied:
        column = COLUMN_BYTES * sizes.n_samples if sizes.n_stored is None else sizes.n_copied // 2
        needed = max(needed, still_to_load() + sizes.n_copied + column)
    if held + needed > limit:
        problem = (
            f"{sizes.n_vars:,} variables in {sizes.n_samples:,} samples need {shown(needed)} "
            f"at least beside the {shown(held)} held already, and "
        )
        raise limit_too_small(problem, limit, held + needed, memory_limit)
    return needed - still_to_load()


def beside_bytes(
    sizes: Sizes, n_states: int, n_jobs: int, pairs: int, packing: bool = False
) -> int:
    """Bytes that a fit takes beside what it holds of pairs, and beside the table.

    The most that one of the stages takes (measured, and rather more than less): packing, where the
    packed samples are not what is held of pairs; the structure; the model, for which the pairs are
    gone."""
    stages = [STRUCTURE_BYTES * sizes.n_vars, model_bytes(sizes, n_states, n_jobs) - pairs]
    if packing:
        stages.append(on_demand_bytes(sizes, n_jobs))
    return still_to_load() + max(stages)


def _values_bytes(table: Table, pairs: int) -> int:
    """The same where variables are not all 0/1: samples in two halves with features of a chunk;
    for the model all numbers of a variable at once, then likelihoods of a chunk."""
    n = table.n_samples
    if can_count(table):
        return 0
    halves = 16 * n + min(16 * n * table.n_vars, CHUNK_BYTES)
    numbers = 40 * n + min(100 * n * table.n_vars, 2 * CHUNK_BYTES) if table.has_values else 0
    return max(halves, numbers - pairs)


def on_demand_bytes(sizes: Sizes, n_jobs: int) -> int:
    """Bytes of packed samples, and of the strips of pairs that are counted from them: lists of the
    samples of each variable and of the variables of each sample, and at most as much again in
    bits; or bits alone."""
    stored = sizes.n_stored
    store = sizes.n_samples * sizes.n_vars // 8 if stored is None else 12 * stored
    return store + n_jobs * STRIP * 4 * sizes.n_vars + 200 * sizes.n_vars


def model_bytes(sizes: Sizes, n_states: int, n_jobs: int) -> int:
    """Bytes that the parameters take: equal rows are found by keys, passes hold chunks of
    samples, threads have a row of numbers for every state of their samples."""
    n, p, stored = sizes.n_samples, sizes.n_vars, sizes.n_stored
    keys = 12 * n + min(100 * n, KEY_BYTES)
    passes = 8 * n + min(8 * (n * p if stored is None else stored), CHUNK_BYTES)
    return max(keys, passes) + (MODEL_BYTES + n_jobs * THREAD_BYTES) * n_states * p


def can_count(table: Table) -> bool:
    """Whether pairs can be counted when they are asked for: 0/1 variables, none missing."""
    return table.storage.is_binary and not table.has_missing and table.weights is None


def matrix_bytes(table: Table, n_directions: int) -> int:
    """Bytes of all matrices `(p, p)` that are held at once: determinants, errors and kurtosis
    ratios; with several directions also covariances of features, and both halves of a cross-fit;
    with missing values also means and covariances over the samples of each pair."""
    p = table.n_vars
    if can_count(table):
        return 12 * p * p
    each = 4 * n_directions**2 + 16
    if table.has_missing:
        each += 4 * (1 + n_directions + n_directions * (n_directions + 1) // 2)
    if n_directions > 1:
        each += 4
    if full_subspaces(table, n_directions) is None:
        each += 24
    return each * p * p


def _refusal(table: Table, held: int, needed: int, limit: int) -> DataError:
    """The error of a table whose distances need more than the limit in every form."""
    why = "weighted samples" if table.storage.is_binary else table.storage.wide
    if table.has_missing:
        why = "missing values"
    problem = (
        f"distances and model of {table.n_vars:,} variables need {shown(needed)} beside the "
        f"{shown(held)} held already, "
    )
    rest = f", and with {why} there is no form that takes less"
    return limit_too_small(problem, limit, enough(limit, held + needed), limit, rest)


def limit_too_small(problem: str, limit: int, least: int, value: Any, rest: str = "") -> DataError:
    """The error of a limit of memory: what needs more, `rest` after the limit, and what would be
    enough; `value` as it was given."""
    return DataError(
        Text(problem, Option("memory_limit"), f" is {shown(limit)}{rest}"),
        Text("raise ", Option("memory_limit"), f" to {shown(least)} or more"),
        value=value,
        option="memory_limit",
    )
