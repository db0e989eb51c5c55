"""Variables that are one number: their moments under the model, and their values in samples.

Ordered and binary variables count as the numbers of their levels (`levels_of`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from latenttree.data import Schema
from latenttree.data.schema.new_data import Rows
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.pair_moments import Model, implied_covariance
from latenttree.tables.conditionals import transition
from latenttree.tables.labels import levels_of


def is_number(model: Model, schema: Schema, v: int) -> bool:
    """Whether an observed variable is one number, or has ordered categories."""
    if isinstance(model, GaussianTreeModel):
        return int(model.dims[v]) == 1
    if schema.coded[v]:
        return levels_of(schema, v) is not None
    return schema.form_of(v) == "vector"


def check_numbers(model: Model, schema: Schema, variables: list[int]) -> None:
    """Raise where a variable is no number."""
    for v in variables:
        if not is_number(model, schema, v):
            name = schema.names[v]
            raise DataError(
                f"{name!r} is of family {schema.families[v]!r} and no single number",
                "leave it out; conditional_table(node, given) shows its distribution",
                column=name,
            )


def levels_given(model: Model, schema: Schema, v: int) -> tuple[int, Floats, float]:
    """The node to which a number is attached, `E[x - mean | state]` of that node `(1, k)` (slopes
    in a Gaussian tree), and the variance of x."""
    if isinstance(model, GaussianTreeModel):
        return v, np.ones((1, 1)), float(model.variances(v)[0])
    if v in model.emissions:
        u = int(model.parents[v])
        mean, variance = model.emissions[v].value_moments()
        weight = model.marginals[u]
        off = mean - mean @ weight
        return u, off, float((variance[0] + off[0] ** 2) @ weight)
    levels = levels_of(schema, v)
    assert levels is not None
    off = levels - levels @ model.marginals[v]
    return v, off[None], float(off**2 @ model.marginals[v])


def covariance_of(model: Model, schema: Schema, variables: list[int]) -> Floats:
    """(m, m) the covariance that the model implies of some numbers."""
    parts = {v: levels_given(model, schema, v) for v in variables}
    found = implied_covariance(model, {v: part[:2] for v, part in parts.items()})
    np.fill_diagonal(found, [part[2] for part in parts.values()])
    return found


def standard_effects(model: Model, schema: Schema, variables: list[int], h: int) -> Floats:
    """(m, k) `E[z | state] sqrt(P(state))` of standardised numbers z in each state of a hidden
    node; in a Gaussian tree their correlations with its uncorrelated directions."""
    rows = [_effect(model, schema, v, h) for v in variables]
    return np.concatenate(rows) if rows else np.empty((0, 0))


def _effect(model: Model, schema: Schema, v: int, h: int) -> Floats:
    node, off, variance = levels_given(model, schema, v)
    unit = np.sqrt(variance) if variance > 0 else np.inf
    if isinstance(model, GaussianTreeModel):
        factor = np.linalg.cholesky(model.marginal_covariance(h))
        shared = model.cross_covariance(v, h)
        return np.asarray(solve_triangular(factor, shared.T, lower=True).T / unit)
    return np.asarray(off @ transition(model, node, h) * np.sqrt(model.marginals[h]) / unit)


def values_of(schema: Schema, rows: Rows, variables: list[int]) -> Floats:
    """(n, m) values of some numbers in samples, NaN where they are missing."""
    codes = rows.take(0, rows.n_samples) if schema.coded[variables].any() else None
    columns = [_values(schema, codes, rows, v) for v in variables]
    return np.column_stack(columns)


def _values(schema: Schema, codes: Any, rows: Rows, v: int) -> Floats:
    levels = levels_of(schema, v)
    if levels is None:
        return np.asarray(rows.arrays[v], dtype=np.float64).reshape(-1)
    code = codes[:, v]
    return np.where(code >= 0, levels[np.maximum(code, 0)], np.nan)
