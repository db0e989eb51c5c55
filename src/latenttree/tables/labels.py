"""Labels of rows and columns: states of nodes, coordinates of vectors, levels as numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Floats
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.queries.nodes import classes_of


def states_of(model: TreeModel, schema: Schema, v: int) -> list[Any]:
    """Labels of the states of a node, in their order."""
    return list(classes_of(model, schema, v).tolist())


def coordinates_of(schema: Schema, v: int) -> list[str]:
    """Names of the numbers that a variable is: its own, or "group[code]"."""
    name = schema.names[v]
    if schema.form_of(v) == "vector":
        return [name]
    return [f"{name}[{code}]" for code in schema.coordinate_names(v)]


def dimensions_of(model: GaussianTreeModel, schema: Schema, v: int) -> list[str]:
    """Names of the numbers of any node of a Gaussian tree."""
    if v < schema.n_vars:
        return coordinates_of(schema, v)
    name, k = model.tree.names[v], int(model.dims[v])
    return [name] if k == 1 else [f"{name}[{i}]" for i in range(k)]


def levels_of(schema: Schema, v: int) -> Floats | None:
    """(d,) the categories of an ordered or binary variable as numbers: its labels where these are
    numbers, else 0, 1, ...; None of other variables."""
    labels = schema.labels[v]
    if not schema.coded[v] or (schema.families[v] != "ordinal" and len(labels) > 2):
        return None
    if labels.dtype.kind in "biuf":
        return labels.astype(np.float64)
    return np.arange(len(labels), dtype=np.float64)
