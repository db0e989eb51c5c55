"""Models as pgmpy's Bayesian networks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from latenttree.errors import DataError
from latenttree.model.tree_model import TreeModel

States = Mapping[str, Sequence[Any]]


def to_pgmpy(model: TreeModel, state_names: States | None = None) -> Any:
    """A `pgmpy.models.DiscreteBayesianNetwork` with an arrow from every node to its children.

    Parameters
    ----------
    model : nodes keep their names; hidden ones are the network's `latents`.
    state_names : for names of nodes, the label of each state; 0, 1, ... where not given.

    Cost: one CPT for each node.
    """
    try:  # by name: pgmpy has no types
        new_network = import_module("pgmpy.models").DiscreteBayesianNetwork
        new_table = import_module("pgmpy.factors.discrete").TabularCPD
    except (ImportError, AttributeError) as error:
        raise ImportError(
            'to_pgmpy needs pgmpy 1.0 or newer; run: pip install "latenttree[pgmpy]"'
        ) from error
    names, parents = model.tree.names, model.parents.tolist()
    states = _state_names(model, {} if state_names is None else state_names)
    network = new_network()
    network.add_nodes_from(names)
    network.add_edges_from((names[u], names[v]) for v, u in enumerate(parents) if u >= 0)
    network.latents = set(model.tree.hidden_names)  # must be nodes already
    for v, u in enumerate(parents):
        family = [names[v]] if u < 0 else [names[v], names[u]]
        table = new_table(
            names[v],
            len(model.cpts[v]),
            model.cpts[v],
            evidence=family[1:] or None,
            evidence_card=[model.cpts[v].shape[1]] if u >= 0 else None,
            state_names={name: states[name] for name in family},
        )
        network.add_cpds(table)
    return network


def _state_names(model: TreeModel, given: States) -> dict[str, list[Any]]:
    """Labels of every node's states, as Python's own types, which pgmpy looks up by."""
    for name in given:
        model.tree.index(name)
    names = {}
    for name, d in zip(model.tree.names, model.dims.tolist(), strict=True):
        labels = list(np.asarray(given[name], dtype=object)) if name in given else list(range(d))
        if len(labels) != d or len(set(labels)) != d:
            what = f"state_names[{name!r}] has {len(set(labels))} different labels for {d} states"
            remedy = "give one for each state"
            raise DataError(what, remedy, value=labels, option="state_names", node=name)
        names[name] = [x.item() if isinstance(x, np.generic) else x for x in labels]
    return names
