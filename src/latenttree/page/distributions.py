"""What is known of single nodes: kinds, labels, marginals and conditional tables, for the page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Floats, Ints
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

MOST_ROWS, MOST_COLUMNS = 12, 12
"""Of a table; of larger ones the rows that differ most, and the most frequent columns."""

NONE_OF_THEM = "none"
"""The first entry of a group of codes."""

MOST_LABELS = 2_000
"""Labels of a variable that the page names; others have numbers."""


def node_parts(tree: Tree, schema: Schema, model: Any | None, parents: Ints) -> dict[str, Any]:
    """Of every node: kind, family, place in the list of label sets, marginal, and table given its
    parent on the map; without a model the marginals and tables are None."""
    n = tree.n_nodes
    kinds = [kind_of(schema, model, v) for v in range(n)]
    labels = [labels_of(schema, model, v)[:MOST_LABELS] for v in range(n)]
    sets = {each: i for i, each in enumerate(dict.fromkeys(labels))}
    return {
        "kinds": kinds,
        "families": [schema.families[v] for v in range(tree.n_observed)],
        "label_sets": [list(each) for each in sets],
        "label_set": [sets[each] for each in labels],
        "marginals": [None if model is None else _short(model.marginal(v)) for v in range(n)],
        "tables": [
            None if model is None or u < 0 else edge_table(model, kinds, v, u)
            for v, u in enumerate(parents.tolist())
        ],
    }


def kind_of(schema: Schema, model: Any | None, v: int) -> str:
    """ "states", "number", "group" (none of the codes, then each of them) or "vector"."""
    if v >= schema.n_vars:
        return "states" if model is None or isinstance(model, TreeModel) else "vector"
    if model is not None and not isinstance(model, TreeModel):
        return "number" if model.dims[v] == 1 else "vector"
    if schema.coded[v]:
        return "states"
    if schema.form_of(v) == "vector":
        return "number"
    return "group" if schema.families[v] == "multihot" else "vector"


def labels_of(schema: Schema, model: Any | None, v: int) -> tuple[str, ...]:
    """Names of the entries of a marginal, and of the rows of a table."""
    kind = kind_of(schema, model, v)
    if v >= schema.n_vars:
        return () if model is None else tuple(map(str, range(int(model.dims[v]))))
    if kind == "states":
        return tuple(str(label) for label in schema.labels[v].tolist())
    if kind == "number":
        return ("mean",)
    codes = tuple(schema.codes_of(v))
    return (NONE_OF_THEM, *codes) if kind == "group" else codes


def edge_table(model: Any, kinds: Sequence[str], v: int, u: int) -> dict[str, Any] | None:
    """The distribution of node v given u, its parent on the map; of u given v where only v has
    states; None where neither has (of a model with states).

    ``given``: the node that is conditioned on; ``values`` row by row; ``rows`` and ``columns``:
    which are kept, None for all. Of probabilities of all states the first row is left out
    (``completed``), since columns sum to one: of two states the one that is there."""
    if isinstance(model, TreeModel) and kinds[u] != "states":
        if kinds[v] != "states":
            return None
        v, u = u, v
    table = np.asarray(model.conditional(v, u), dtype=float)
    columns = _chosen(np.asarray(model.marginal(u)), MOST_COLUMNS)
    table = table if columns is None else table[:, columns]
    rows = _chosen(np.ptp(table, axis=1) + 1e-6 * table.max(axis=1), MOST_ROWS)
    completed = rows is None and kinds[v] == "states"
    kept = table[1:] if completed else table if rows is None else table[rows]
    found: dict[str, Any] = {"given": u, "values": _short(kept.ravel())}
    found |= {"completed": True} if completed else {}
    found |= {} if rows is None else {"rows": rows.tolist()}
    return found | ({} if columns is None else {"columns": columns.tolist()})


def _chosen(weights: Floats, most: int) -> Ints | None:
    """Places of the largest weights, in order; None where all are kept."""
    if len(weights) <= most:
        return None
    return np.sort(np.argsort(-weights, kind="stable")[:most])


def _short(values: Floats) -> list[float]:
    """Numbers with three digits."""
    return [float(f"{x:.3g}") if np.isfinite(x) else 0.0 for x in np.ravel(values).tolist()]
