"""EM by writing the whole joint distribution down, sample by sample, one plain step at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from tests.reference.enumeration import joint, onto

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def slow_counts(model: TreeModel, evidence: Evidence) -> tuple[list[Floats], float]:
    """`E[# (v = i, parent = j)]` for every table, and the log-likelihood."""
    counts = [np.zeros_like(table) for table in model.cpts]
    value = 0.0
    for s in range(len(evidence)):
        whole = joint(model, evidence, s)
        total = whole.sum()
        value += float(np.log(total))
        for v, u in enumerate(model.parents.tolist()):
            part = onto(whole, v)[:, None] if u < 0 else onto(whole, v, u)
            counts[v] += part / total
    return counts, value


def slow_objective(
    model: TreeModel, evidence: Evidence, smoothing: float, target: Sequence[Floats]
) -> float:
    """Log-likelihood plus `smoothing * sum t log P` over the columns of all tables."""
    value = slow_counts(model, evidence)[1]
    for table, t in zip(model.cpts, target, strict=True):
        for column in table.T:
            for x, weight in zip(column, t, strict=True):
                value += smoothing * weight * float(np.log(x)) if weight else 0.0
    return value


def slow_em(
    model: TreeModel,
    evidence: Evidence,
    smoothing: float,
    target: Sequence[Floats],
    n_steps: int,
) -> TreeModel:
    """`n_steps` plain steps of EM with `smoothing` pseudo-samples for every column."""
    for _ in range(n_steps):
        counts, _ = slow_counts(model, evidence)
        tables = []
        for count, t in zip(counts, target, strict=True):
            columns = count + smoothing * t[:, None]
            tables.append(columns / columns.sum(axis=0))
        model = TreeModel(model.tree, model.root, tuple(tables))
    return model


def even_targets(model: TreeModel, observed: Sequence[Floats]) -> list[Floats]:
    """Where pseudo-samples go: as the given marginals, evenly for hidden nodes."""
    hidden = model.dims[model.tree.n_observed :].tolist()
    return [*observed, *(np.full(d, 1 / d) for d in hidden)]
