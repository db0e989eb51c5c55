"""Nodes by name or number, and the labels of their states."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.errors import DataError
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Node = str | int


class Model(Protocol):
    """What every kind of fitted model has."""

    @property
    def tree(self) -> Tree:
        """Its tree, observed nodes first."""

    @property
    def n_parameters(self) -> int:
        """Free parameters."""


def node_index(model: Model, node: Node, schema: Schema | None = None) -> int:
    """The number of a node given by name or number.

    Where the columns of the `schema` have integers as names, an integer that is one of them is
    that name; any other is the number of a node.
    """
    column = None if schema is None else schema.column_of(node)
    if schema is not None and column is not None:
        found = schema.variable_of(column)
        if found is None:
            raise DataError(
                f"column {node!r} had a single value in training and is not in the model; leave "
                "it out"
            )
        return found
    try:
        return model.tree.index(operator.index(node) if not isinstance(node, str) else node)
    except (KeyError, IndexError, TypeError):
        close = get_close_matches(str(node), model.tree.names, 1)
        guess = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(
            f"the model has no node {node!r}{guess}; it has the variables "
            f"{listing(model.tree.observed_names)} and the hidden nodes "
            f"{listing(model.tree.hidden_names) or 'none'}"
        ) from None


def node_indices(model: Model, nodes: Any, what: str, schema: Schema | None = None) -> list[int]:
    """The numbers of several nodes, all different."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        nodes = [nodes]
    found = [node_index(model, node, schema) for node in nodes]
    if len(set(found)) != len(found):
        raise DataError(f"{what} names a node twice: {list(nodes)!r}; name it once")
    return found


def classes_of(model: TreeModel, schema: Schema, v: int) -> NDArray[Any]:
    """Labels of the states of the node of number `v`, in the order of its probabilities."""
    if v >= schema.n_vars:
        return np.arange(int(model.dims[v]))
    if not schema.coded[v]:
        raise DataError(
            f"{schema.names[v]!r} is of family {schema.families[v]!r} and has no list of values, "
            f"so there are no probabilities of them; impute({{name: value}})[{schema.names[v]!r}] "
            "gives its expectation given what is known (impute(X) for a table), marginal and "
            "conditional give expectations"
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
