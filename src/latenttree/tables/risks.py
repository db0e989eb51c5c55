"""Probabilities of categories in one state of a node and in its other states."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Floats
from latenttree.model.tree_model import TreeModel
from latenttree.tables.conditionals import transitions_from
from latenttree.tables.labels import states_of

WITH_CODES = ("multihot", "multinomial")
"""Families whose coordinates have probabilities: of a code, or the share of an item."""


class Risks(NamedTuple):
    """The categories of a variable: their labels, and `P(category | state)`, `(d, k)`; what the
    variable tells about the node, in nats."""

    labels: list[Any]
    given: Floats
    information: float


def risks_of(model: TreeModel, schema: Schema, u: int) -> dict[int, Risks]:
    """Every observed variable that has categories or codes, given the states of node u. Of a binary
    variable the second category stands for both. O(n_nodes k^3)."""
    known = transitions_from(model, u)
    weight, found = model.marginals[u], {}
    for v in range(schema.n_vars):
        if v == u:
            continue
        if schema.coded[v]:
            labels, given = states_of(model, schema, v), known[v]
            told = information(given, weight)
            shown = slice(1, None) if len(labels) == 2 else slice(None)
            found[v] = Risks(labels[shown], given[shown], told)
        elif schema.families[v] in WITH_CODES:
            labels, given = (
                schema.coordinate_names(v),
                _code_shares(model, v) @ known[int(model.parents[v])],
            )
            bits = (np.stack([1 - p, p]) for p in given)
            found[v] = Risks(labels, given, max(information(bit, weight) for bit in bits))
    return found


def _code_shares(model: TreeModel, v: int) -> Floats:
    """(d, k) probabilities of the codes of a group, or shares of the items of a bag."""
    emission = model.emissions[v]
    return emission.mean()[1:] if emission.family == "multihot" else emission.mean()


def information(given: Floats, weight: Floats) -> float:
    """Mutual information in nats of a variable with `P(category | state)` and a node with
    `P(state)`: `sum_ij P(i, j) log(P(i | j) / P(i))`."""
    share = given @ weight
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(given > 0, given * np.log(given / share[:, None]), 0.0)
    return float(max((terms @ weight).sum(), 0.0))


def in_other_states(given: Floats, weight: Floats, state: int) -> Floats:
    """(d,) `P(category | another state than this)`."""
    others = np.delete(np.arange(len(weight)), state)
    return np.asarray(given[:, others] @ weight[others] / weight[others].sum())
