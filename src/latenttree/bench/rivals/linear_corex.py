"""Linear CorEx: layers of factors by total correlation."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from latenttree.bench.rivals import Answer, Floats, Rival, Task
from latenttree.bench.rivals.hierarchies import from_layers
from latenttree.bench.rivals.one_hot import columns, strongest


class LinearCorex(Rival):
    """`linearcorex.Corex` on the columns of presence (of all categories where there are more than
    two), then on its own factors, layer by layer.

    A variable belongs to the factor that its columns have most mutual information with.
    """

    name = "linear CorEx"
    needs = ("linearcorex",)
    install = "linearcorex"
    told = "sizes of the layers"

    def suits(self, task: Task) -> bool:
        return bool(task.layers)

    def fit(self, task: Task) -> Answer:
        new = import_module("linearcorex").Corex
        values, owner = columns(task.table)
        X: Floats = np.asarray(values.toarray(), dtype=np.float64)
        layers: list[list[int]] = []
        for size in _inner(task.layers):
            found = new(n_hidden=size, seed=task.seed)
            Y = found.fit_transform(X)
            layers.append(strongest(np.asarray(found.mis), owner))
            X, owner = np.asarray(Y, dtype=np.float64), np.arange(size)
        return Answer(from_layers(task.table.names, layers), tuple(layers[0]))


def _inner(layers: tuple[int, ...] | None) -> list[int]:
    """The first layer, and those above it of more than one: one group of all says nothing."""
    assert layers
    return [size for i, size in enumerate(layers) if i == 0 or size > 1]


RIVALS = (LinearCorex(),)
