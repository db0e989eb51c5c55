"""EM in batches that are given, by the whole joint distribution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.reference.refine import slow_counts

from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]
Batches = Sequence[Any]


def slow_batch_passes(
    model: TreeModel,
    passes: Sequence[Batches],
    target: Sequence[Floats],
    smoothing: float,
    decay: float,
    delay: float,
) -> list[TreeModel]:
    """The model after each pass of steps `(t / B + delay)^-decay`, t counted over all passes."""
    mean, found, t = None, [], 0
    for batches in passes:
        for batch in batches:
            t += 1
            step = (t / len(batches) + delay) ** -decay
            mean = moved(mean, sums(model, batch, batches), step)
            model = maximised(model, mean, target, smoothing)
        found.append(model)
    return found


def slow_averaged(
    model: TreeModel,
    passes: Sequence[Batches],
    target: Sequence[Floats],
    smoothing: float,
    unaveraged: float,
) -> TreeModel:
    """The model after steps `1 / t`; it stays as it is in the first `unaveraged` of all batches."""
    mean, t, total = None, 0, sum(map(len, passes))
    for batches in passes:
        for batch in batches:
            t += 1
            mean = moved(mean, sums(model, batch, batches), 1 / t)
            if t >= unaveraged * total:
                model = maximised(model, mean, target, smoothing)
    return model


def sums(model: TreeModel, batch: Any, batches: Batches) -> list[Floats]:
    """Expected counts of all samples, if all were like those of a batch."""
    n = sum(map(len, batches))
    return [c * n / len(batch) for c in slow_counts(model, Evidence(batch))[0]]


def moved(mean: list[Floats] | None, found: list[Floats], step: float) -> list[Floats]:
    if mean is None:
        return found
    return [s + step * (f - s) for s, f in zip(mean, found, strict=True)]


def maximised(
    model: TreeModel, mean: list[Floats], target: Sequence[Floats], smoothing: float
) -> TreeModel:
    columns = [s + smoothing * t[:, None] for s, t in zip(mean, target, strict=True)]
    return TreeModel(model.tree, model.root, tuple(c / c.sum(axis=0) for c in columns))
