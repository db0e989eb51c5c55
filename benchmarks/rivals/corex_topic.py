"""CorEx topic: layers of topics of words by total correlation."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from scipy import sparse

from benchmarks.rivals import Answer, Rival, Task
from benchmarks.rivals.binary import is_binary, ones
from benchmarks.rivals.hierarchies import from_layers


class CorexTopic(Rival):
    """`corextopic.Corex` on binary variables as words, then on the labels it gave, layer by layer.

    A variable belongs to the topic that it has most mutual information with.
    """

    name = "CorEx topic"
    needs = ("corextopic", "six")  # which it imports and does not ask for
    install = "corextopic six"
    given = "sizes of the layers"

    def suits(self, task: Task) -> bool:
        """Binary variables, sizes of the layers known."""
        return bool(task.layers) and is_binary(task.table)

    def fit(self, task: Task) -> Answer:
        """Topics layer by layer."""
        new = import_module("corextopic.corextopic").Corex
        assert task.layers
        X = ones(task.table)
        layers: list[list[int]] = []
        for i, size in enumerate(task.layers):
            if i > 0 and size == 1:  # one group of all says nothing
                break
            found = new(n_hidden=size, seed=task.seed).fit(sparse.csr_matrix(X))
            layers.append(np.asarray(found.mis).argmax(axis=0).tolist())
            X = sparse.csr_array(found.labels.astype(np.float64))
        return Answer(from_layers(task.table.names, layers), tuple(layers[0]))


RIVALS = (CorexTopic(),)
