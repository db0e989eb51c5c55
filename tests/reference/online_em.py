"""Online EM by the whole joint distribution, batch by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.reference.refine import slow_counts

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


def slow_online_pass(
    model: TreeModel, opening: Any, batches: Sequence[Any], target: Sequence[Floats], decay: float
) -> TreeModel:
    """A pass over the batches with one pseudo-sample for every column."""
    n = sum(map(len, batches))

    def model_of(mean: list[Floats]) -> TreeModel:
        columns = [n * s + t[:, None] for s, t in zip(mean, target, strict=True)]
        return TreeModel(model.tree, model.root, tuple(c / c.sum(axis=0) for c in columns))

    mean = [c / len(opening) for c in slow_counts(model, Evidence(opening))[0]]
    means = []
    for t, batch in enumerate(batches, start=1):
        found = slow_counts(model_of(mean), Evidence(batch))[0]
        pace = (t + 1) ** -decay
        mean = [s + pace * (f / len(batch) - s) for s, f in zip(mean, found, strict=True)]
        means.append(mean)
    late = means[len(means) // 2 :]
    return model_of([np.mean(parts, axis=0) for parts in zip(*late, strict=True)])
