"""Nodes by name or number, and the labels of their states."""

from __future__ import annotations

import operator
from collections.abc import Callable, Hashable, Iterable
from difflib import get_close_matches
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel

Found = TypeVar("Found", bound=Hashable)

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


class Asked(NamedTuple):
    """What a query names: a node, or one code of the group that is node `node`."""

    node: int
    code: int | None = None

    def source(self, model: TreeModel) -> int:
        """The node whose posterior has the answer."""
        in_group = self.code is not None and self.node in model.emissions
        return int(model.parents[self.node]) if in_group else self.node

    def probabilities(self, model: TreeModel, posterior: Floats) -> Floats:
        """The answer `(n, states)` in the posterior `(n, states of source)`; of a code the
        probabilities that it is not there, and that it is."""
        if self.code is None:
            return posterior
        emission = model.emissions.get(self.node)
        if emission is None:
            there = posterior[:, self.code]
        else:
            there = posterior @ emission.mean()[1 + self.code]
        return np.stack([1 - there, there], axis=1)


def asked_of(model: FittedModel, node: Node, schema: Schema) -> Asked:
    """The node, or the code of a group ("group:code", or the code alone), that a name means."""
    place = schema.code_places.get(node) if isinstance(node, str) else None
    if place is not None and isinstance(model, TreeModel) and node not in model.tree.hidden_names:
        return Asked(*place)
    return Asked(node_index(model, node, schema))


def several_asked(model: FittedModel, nodes: Any, role: str, schema: Schema) -> list[Asked]:
    """`asked_of` several names, all different; `role` is what an error calls them."""
    return _each(nodes, role, lambda node: asked_of(model, node, schema))


def node_indices(
    model: FittedModel, nodes: Any, role: str, schema: Schema | None = None
) -> list[int]:
    """The numbers of several nodes, all different; `role` is what an error calls them."""
    return _each(nodes, role, lambda node: node_index(model, node, schema))


def _each(nodes: Any, role: str, find: Callable[[Any], Found]) -> list[Found]:
    """What is found for each of several nodes, all different."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        nodes = [nodes]
    found = [find(node) for node in nodes]
    if len(set(found)) != len(found):
        raise DataError(f"{role} names a node twice: {list(nodes)!r}", "name it once", value=nodes)
    return found


def classes_of(model: TreeModel, schema: Schema, v: int) -> NDArray[Any]:
    """Labels of the states of the node of number `v`, in the order of its probabilities."""
    if v >= schema.n_vars:
        return np.arange(int(model.dims[v]))
    if not schema.coded[v]:
        raise DataError(
            f"{schema.names[v]!r} is of family {schema.families[v]!r} and has no list of values, "
            "so there are no probabilities of them",
            _instead_of_classes(schema, v),
            node=schema.names[v],
        )
    return schema.labels[v]


def _instead_of_classes(schema: Schema, v: int) -> str:
    name = schema.names[v]
    if schema.is_group(v):
        code = next(code for code, (group, _) in schema.code_places.items() if group == v)
        code = code if code.startswith(f"{name}:") else f"{name}:{code}"
        return f"ask for one of its codes, as {code!r}"
    return (
        f"impute({{name: value}}, return_proba=True)[1][{name!r}].mean is its expectation given "
        "what is known, marginal and conditional give expectations too"
    )


def hidden_names_out(model: TreeModel) -> NDArray[Any]:
    """ "h0=0", "h0=1", ...: a name for each state of each hidden node."""
    p = model.tree.n_observed
    names = [
        f"{name}={state}"
        for name, d in zip(model.tree.hidden_names, model.dims[p:].tolist(), strict=True)
        for state in range(d)
    ]
    return np.asarray(names, dtype=object)
