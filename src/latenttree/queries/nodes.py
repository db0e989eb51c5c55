"""Nodes by name or number, and the labels of their states."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel

Node = str | int
FittedModel = TreeModel | GaussianTreeModel


def node_index(model: FittedModel, node: Node, schema: Schema | None = None) -> int:
    """The number of a node given by name or number.

    Where the columns of the `schema` have integers as names, an integer that is one of them is
    that name; any other is the number of a node.
    """
    column = None if schema is None else schema.column_of(node)
    if schema is not None and column is not None:
        variable = schema.variable_of(column)
        if variable is None:
            what = f"column {node!r} had a single value in training and is not in the model"
            raise DataError(what, "leave it out", column=str(node))
        return variable
    try:
        return model.tree.index(operator.index(node) if not isinstance(node, str) else node)
    except (KeyError, IndexError, TypeError):
        close = get_close_matches(str(node), model.tree.names, 1)
        guess = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(
            f"the model has no node {node!r}{guess}",
            f"it has the variables {listing(model.tree.observed_names)} and the hidden nodes "
            f"{listing(model.tree.hidden_names) or 'none'}",
            value=node,
        ) from None


def node_indices(
    model: FittedModel, nodes: Any, role: str, schema: Schema | None = None
) -> list[int]:
    """The numbers of several nodes, all different; `role` is what an error calls them."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        nodes = [nodes]
    indices = [node_index(model, node, schema) for node in nodes]
    if len(set(indices)) != len(indices):
        raise DataError(f"{role} names a node twice: {list(nodes)!r}", "name it once", value=nodes)
    return indices


def classes_of(model: TreeModel, schema: Schema, v: int) -> NDArray[Any]:
    """Labels of the states of the node of number `v`, in the order of its probabilities."""
    if v >= schema.n_vars:
        return np.arange(int(model.dims[v]))
    if not schema.coded[v]:
        raise DataError(
            f"{schema.names[v]!r} is of family {schema.families[v]!r} and has no list of values, "
            "so there are no probabilities of them",
            f"impute({{name: value}})[{schema.names[v]!r}] gives its expectation given what is "
            "known (impute(X) for a table), marginal and conditional give expectations",
            node=schema.names[v],
        )
    return schema.labels[v]


def hidden_names_out(model: TreeModel) -> NDArray[Any]:
    """ "h0=0", "h0=1", ...: a name for each state of each hidden node."""
    p = model.tree.n_observed
    names = [
        f"{name}={state}"
        for name, d in zip(model.tree.hidden_names, model.dims[p:].tolist(), strict=True)
        for state in range(d)
    ]
    return np.asarray(names, dtype=object)
