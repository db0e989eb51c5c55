"""CorEx topic: layers of topics of words by total correlation."""

from __future__ import annotations

from importlib import import_module

import numpy as np
from scipy import sparse

from latenttree.bench.rivals import Answer, Rival, Task
from latenttree.bench.rivals.hierarchies import from_layers
from latenttree.bench.rivals.one_hot import columns, strongest


class CorexTopic(Rival):
    """`corextopic.Corex` on the columns of presence (of all categories where there are more than
    two), then on the labels it gave, layer by layer.

    A variable belongs to the topic that its columns have most mutual information with.
    """

    name = "CorEx topic"
    needs = ("corextopic", "six")  # which it imports and does not ask for
    install = "corextopic six"
    told = "sizes of the layers"

    def suits(self, task: Task) -> bool:
        return bool(task.layers)

    def fit(self, task: Task) -> Answer:
        new = import_module("corextopic.corextopic").Corex
        assert task.layers
        X, owner = columns(task.table)
        layers: list[list[int]] = []
        for i, size in enumerate(task.layers):
            if i > 0 and size == 1:  # one group of all says nothing
                break
            found = new(n_hidden=size, seed=task.seed).fit(sparse.csr_matrix(X))
            layers.append(strongest(np.asarray(found.mis), owner))
            X, owner = sparse.csr_array(found.labels.astype(np.float64)), np.arange(size)
        return Answer(from_layers(task.table.names, layers), tuple(layers[0]))


RIVALS = (CorexTopic(),)
