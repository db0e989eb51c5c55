"""The columns of each table, from a model and its schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from latenttree.data import Schema
from latenttree.data.schema.new_data import Rows
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError, check_option, described
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.pair_moments import Model
from latenttree.model.tree_model import TreeModel
from latenttree.tables.conditionals import moments_given, regression, transition
from latenttree.tables.items import (
    best_node,
    correlation_of,
    cronbach_alpha,
    loadings,
    mcdonald_omega,
    scale_of,
)
from latenttree.tables.labels import coordinates_of, dimensions_of, states_of
from latenttree.tables.numbers import check_numbers, covariance_of, is_number, values_of
from latenttree.tables.risks import WITH_CODES, in_other_states, risks_of

Columns = dict[Any, Any]

FEWEST_ITEMS = 2
"""Items of a scale, at least."""


class Labelled(NamedTuple):
    """Columns, and the labels of their rows with the names of both, as `table_of` takes them."""

    columns: Columns
    names: dict[str, Any]


# ---- conditional distributions ------------------------------------------------------------


def conditional(model: Model, schema: Schema, v: int, u: int) -> Labelled:
    """The columns of `TableMixin.conditional_table`."""
    node, given = model.tree.names[v], model.tree.names[u]
    if isinstance(model, GaussianTreeModel):
        found = regression(model, v, u)
        slopes = dict(zip(dimensions_of(model, schema, u), found.slope.T, strict=True))
        columns = {"intercept": found.intercept, **slopes, "sd": found.deviation}
        rows = dimensions_of(model, schema, v)
        return Labelled(columns, {"labels": rows, "labels_name": node})
    rows, values = _rows_given(model, schema, v, u)
    columns = dict(zip(states_of(model, schema, u), values.T, strict=True))
    return Labelled(columns, {"labels": rows, "labels_name": node, "columns_name": given})


def _rows_given(model: TreeModel, schema: Schema, v: int, u: int) -> tuple[list[Any], Floats]:
    """Labels, and what is known of node v in each state of u, `(rows, k)`."""
    if v not in model.emissions:
        return states_of(model, schema, v), transition(model, v, u)
    labels, values = _expected(model, schema, v, u)
    if schema.families[v] in WITH_CODES:
        return labels, values
    deviations = np.sqrt(moments_given(model, v, u).variance)
    if len(labels) == 1:
        return ["mean", "sd"], np.concatenate([values, deviations])
    both = [name for label in labels for name in (label, f"{label} (sd)")]
    return both, np.stack([values, deviations], axis=1).reshape(-1, values.shape[1])


def _expected(model: TreeModel, schema: Schema, v: int, u: int) -> tuple[list[Any], Floats]:
    """Labels and expectations of the coordinates of a variable with an emission; of a bag its
    shares."""
    found = moments_given(model, v, u).mean
    if schema.families[v] == "multinomial":
        found = found / found.sum(axis=0)
    codes = schema.families[v] in WITH_CODES
    return schema.coordinate_names(v) if codes else coordinates_of(schema, v), found


def quantity(model: Model, schema: Schema, v: int, u: int) -> Floats:
    """(rows, columns) the numbers of a conditional table that have intervals."""
    if isinstance(model, GaussianTreeModel):
        return regression(model, v, u).slope
    if v in model.emissions:
        return _expected(model, schema, v, u)[1]
    return transition(model, v, u)


def intervals(model: Model, schema: Schema, v: int, u: int, ends: tuple[Floats, Floats]) -> Columns:
    """The columns of `TableMixin.intervals`, from the lower and upper ends."""
    coded = isinstance(model, TreeModel) and v not in model.emissions
    if isinstance(model, GaussianTreeModel):
        rows, columns = dimensions_of(model, schema, v), dimensions_of(model, schema, u)
    else:
        columns = states_of(model, schema, u)
        rows = states_of(model, schema, v) if coded else _expected(model, schema, v, u)[0]
    estimate, (lower, upper) = quantity(model, schema, v, u), ends
    if isinstance(model, TreeModel) and (coded or schema.families[v] in WITH_CODES):
        lower, upper = (np.clip(x, 0, 1) for x in ends)
    node, given = model.tree.names[v], model.tree.names[u]
    row, column = np.indices(estimate.shape)
    return {
        node: np.array(rows, dtype=object)[row.ravel()],
        given: np.array(columns, dtype=object)[column.ravel()],
        "estimate": estimate.ravel(),
        "lower": lower.ravel(),
        "upper": upper.ravel(),
    }


# ---- risks --------------------------------------------------------------------------------


def risks(model: TreeModel, schema: Schema, u: int, state: Any, most: int | None) -> Columns:
    """The columns of `TableMixin.relative_risks`."""
    states = states_of(model, schema, u)
    name = model.tree.names[u]
    known = state is None or state in states
    check_option("state", state, known, f"{name!r} has the states {states}")
    at = len(states) - 1 if state is None else states.index(state)
    found, weight = risks_of(model, schema, u), model.marginals[u]
    order = sorted(found, key=lambda v: -found[v].information)[:most]
    parts = [found[v] for v in order]
    sizes = [len(part.labels) for part in parts]
    here = np.concatenate([part.given[:, at] for part in parts])
    other = np.concatenate([in_other_states(part.given, weight, at) for part in parts])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = here / other
    return {
        "variable": np.repeat(np.array(schema.names, dtype=object)[order], sizes),
        "category": np.array([x for part in parts for x in part.labels], dtype=object),
        "probability": here,
        "probability_in_others": other,
        "relative_risk": ratio,
        "information": np.repeat([part.information for part in parts], sizes),
    }


# ---- scales -------------------------------------------------------------------------------


def items_around(model: Model, schema: Schema, h: int) -> list[int]:
    """The variables around a node that can be items."""
    near = model.tree.neighbors(h).tolist()
    return [v for v in near if v < schema.n_vars and is_number(model, schema, v)]


def checked_scale(
    model: Model, schema: Schema, variables: list[int], h: int
) -> tuple[list[int], int]:
    """The items and their hidden node, the best one for h = -1; raises where there are none."""
    observed = [v for v in variables if v < schema.n_vars]
    if len(observed) < max(FEWEST_ITEMS, len(variables)):
        what = f"{len(observed)} items are no scale: they must be variables, two or more"
        remedy = "name a hidden node with two variables around it, or a list of variables"
        raise DataError(what, remedy, value=len(observed), option="items")
    check_numbers(model, schema, observed)
    h = best_node(model, schema, observed) if h < 0 else h
    if h < schema.n_vars:
        name = model.tree.names[h]
        raise DataError(f"{name!r} is not hidden", "name a hidden node", node=name)
    return observed, h


def scales(
    model: Model, schema: Schema, groups: dict[Any, list[int]]
) -> dict[Any, tuple[list[int], int]]:
    """The items of every group of which two or more can be items, and their hidden node."""
    found = {}
    for label, members in groups.items():
        usable = [v for v in members if is_number(model, schema, v)]
        if len(usable) >= FEWEST_ITEMS:
            named = label in model.tree.hidden_names
            h = model.tree.index(label) if named else best_node(model, schema, usable)
            found[label] = usable, h
    return found


def items(model: Model, schema: Schema, variables: list[int], h: int, rows: Rows) -> Columns:
    """The columns of `TableMixin.item_table`."""
    values = values_of(schema, rows, variables)
    found = scale_of(values, loadings(model, schema, variables, h))
    return {
        "reversed": found.turned,
        "loading": found.loading,
        "item_rest": found.item_rest,
        "alpha_without": found.alpha_without,
        "mean": found.mean,
        "sd": found.deviation,
        "missing": found.missing,
    }


def reliabilities(
    model: Model, schema: Schema, scales: list[tuple[list[int], int]], rows: Rows
) -> Columns:
    """The columns of `TableMixin.reliability`."""
    lines = [_reliability(model, schema, variables, h, rows) for variables, h in scales]
    names = ("node", "items", "reversed", "alpha", "standardized_alpha", "omega", "item_rest")
    return {name: np.array([line[i] for line in lines]) for i, name in enumerate(names)}


def _reliability(
    model: Model, schema: Schema, variables: list[int], h: int, rows: Rows
) -> tuple[Any, ...]:
    values = values_of(schema, rows, variables)
    found = scale_of(values, loadings(model, schema, variables, h))
    return (
        model.tree.names[h],
        len(variables),
        int(found.turned.sum()),
        cronbach_alpha(found.covariance),
        cronbach_alpha(correlation_of(found.covariance)),
        mcdonald_omega(found.loading),
        float(found.item_rest.mean()),
    )


def members_by_label(groups: Any) -> dict[Any, list[str]]:
    """The variables of each label of what `TableMixin.variable_groups` returns."""
    if hasattr(groups, "columns") and len(groups.columns) == 2:  # of polars
        names, labels = (groups[c].to_list() for c in groups.columns)
        pairs: Iterable[tuple[Any, Any]] = zip(names, labels, strict=True)
    elif hasattr(groups, "items"):
        pairs = groups.items()
    else:
        what = f"groups is {described(groups)}"
        remedy = "pass what variable_groups(k) returns, or a dict from labels to lists of variables"
        raise DataError(what, remedy, value=groups, option="groups")
    found: dict[Any, list[str]] = {}
    for name, label in pairs:
        found.setdefault(label, []).append(name)
    return found


# ---- covariances --------------------------------------------------------------------------


def covariances(model: Model, schema: Schema, correlations: bool) -> tuple[list[str], Floats]:
    """Names of the coordinates, and their covariance or correlations."""
    variables = list(range(schema.n_vars))
    if isinstance(model, GaussianTreeModel):
        names = [name for v in variables for name in coordinates_of(schema, v)]
        found = model.covariance(variables)
    else:
        check_numbers(model, schema, variables)
        names, found = list(schema.names), covariance_of(model, schema, variables)
    return names, correlation_of(found) if correlations else found
