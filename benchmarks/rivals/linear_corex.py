"""Linear CorEx: layers of factors by total correlation."""

from __future__ import annotations

from importlib import import_module

import numpy as np

from benchmarks.rivals import Answer, Floats, Rival, Task
from benchmarks.rivals.binary import is_binary, ones
from benchmarks.rivals.hierarchies import from_layers


class LinearCorex(Rival):
    """`linearcorex.Corex` on binary variables as numbers, then on its own factors, layer by layer.

    A variable belongs to the factor that it has most mutual information with. More than two
    categories are no numbers, and as columns of ones they show it each variable as a factor.
    """

    name = "linear CorEx"
    needs = ("linearcorex",)
    install = "linearcorex"
    given = "sizes of the layers"

    def suits(self, task: Task) -> bool:
        """Binary variables, sizes of the layers known."""
        return bool(task.layers) and is_binary(task.table)

    def fit(self, task: Task) -> Answer:
        """Factors layer by layer."""
        new = import_module("linearcorex").Corex
        X: Floats = np.asarray(ones(task.table).toarray(), dtype=np.float64)
        layers: list[list[int]] = []
        for size in _inner(task.layers):
            found = new(n_hidden=size, seed=task.seed)
            Y = found.fit_transform(X)
            layers.append(np.asarray(found.mis).argmax(axis=0).tolist())
            X = np.asarray(Y, dtype=np.float64)
        return Answer(from_layers(task.table.names, layers), tuple(layers[0]))


def _inner(layers: tuple[int, ...] | None) -> list[int]:
    """The first layer, and those above it of more than one: one group of all says nothing."""
    assert layers
    return [size for i, size in enumerate(layers) if i == 0 or size > 1]


RIVALS = (LinearCorex(),)
