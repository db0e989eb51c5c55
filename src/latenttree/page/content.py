"""What the page shows, as one dictionary of plain values, which `assets/data.js` reads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Floats, Ints
from latenttree.goodness_of_fit import TreeFit
from latenttree.interpretation import Channels, most_informative
from latenttree.interpretation.labels import item_name
from latenttree.page.columns import MapColumn, map_column
from latenttree.page.distributions import node_parts
from latenttree.page.layout import Tour, depth_first_tour, formal_edges
from latenttree.tree import Tree

N_TELLING = 10
"""Variables that are listed for a hidden node."""

N_RELATED = 6
"""And for an observed one."""


def tree_parts(tree: Tree, places: Floats, parents: Ints) -> dict[str, Any]:
    """The tree by nodes: what is known of an edge stands at its lower end."""
    above = tree.parent_edges(int(np.flatnonzero(parents < 0)[0]))
    support = np.full(tree.n_edges, np.nan) if tree.support is None else tree.support
    return {
        "names": list(tree.names),
        "n_observed": tree.n_observed,
        "root": int(np.flatnonzero(parents < 0)[0]),
        "parents": parents.tolist(),
        "x": np.round(places[:, 0], 2).tolist(),
        "y": np.round(places[:, 1], 2).tolist(),
        "signs": _of_edges(above, tree.signs, 0),
        "lengths": [round(x, 4) for x in _of_edges(above, tree.lengths, 0.0)],
        "support": _shares(_of_edges(above, support, np.nan)),
        "apart": np.flatnonzero(np.append(formal_edges(tree), False)[above]).tolist(),
        "importance": importance(tree, depth_first_tour(tree)),
    }


def known_parts(
    tree: Tree, schema: Schema, model: Any | None, parents: Ints, fit: TreeFit | None
) -> dict[str, Any]:
    """Distributions of all nodes, and how well the tree explains what is around hidden ones."""
    explained = np.full(tree.n_hidden, np.nan)
    if fit is not None and len(fit.node_explained) == tree.n_hidden:
        explained = np.clip(fit.node_explained, 0, 1)
    return node_parts(tree, schema, model, parents) | {"explained": _shares(explained.tolist())}


def telling(tree: Tree, schema: Schema, channels: Channels, n_jobs: int = 1) -> list[list[Any]]:
    """For each node the variables that tell most about it: (number, bits, direction), and the name
    where it is a code of a group. None for variables that are vectors."""
    hidden = np.arange(tree.n_observed, tree.n_nodes)
    observed = np.flatnonzero(channels.is_item[: tree.n_observed])
    lists: list[list[Any]] = [[] for _ in range(tree.n_nodes)]
    for about, n in ((hidden, N_TELLING), (observed, N_RELATED)):
        found = most_informative(channels, about, n, n_jobs=n_jobs)
        rows = zip(about, found.nodes, found.bits, found.directions, strict=True)
        for v, *told in rows:
            known = [each for each in zip(*told, strict=True) if each[0] >= 0 and each[0] != v]
            lists[v] = [_told(schema, channels, *each) for each in known[:n]]
    return lists


def _told(schema: Schema, channels: Channels, node: int, bits: float, direction: int) -> list[Any]:
    told = [int(channels.variables[node]), float(f"{bits:.3g}"), int(direction)]
    return told if channels.coordinates[node] < 0 else [*told, item_name(schema, channels, node)]


def own_columns(tree: Tree, schema: Schema, model: Any | None) -> list[MapColumn]:
    """Columns that every model has: the families, where there are several; the share of samples
    with the second value, where all variables have two."""
    p, found = tree.n_observed, []
    if len(set(schema.families)) > 1:
        found.append(map_column("family", list(schema.families)))
    if model is not None and all(schema.coded[v] and schema.dims[v] == 2 for v in range(p)):
        shares = [float(f"{model.marginal(v)[1]:.3g}") for v in range(p)]
        if len(set(shares)) > 1:
            found.append(map_column("share of samples", shares))
    return found


def importance(tree: Tree, tour: Tour) -> list[int]:
    """Observed nodes in the order in which the map names them.

    Where branches meet, the variable of the shortest own edge goes on; a variable is as important
    as the largest branch that it stands for."""
    p = tree.n_observed
    own = np.full(tree.n_nodes, np.inf)
    np.minimum.at(own, tree.edges.ravel(), np.repeat(tree.lengths, 2))
    size = tour.branch_sums((tour.order < p).astype(float))
    best = np.where(tour.order < p, tour.order, -1)
    stands_for = np.ones(p)
    for i in range(len(best) - 1, 0, -1):
        mine, u = best[i], tour.above[i]
        if mine < 0:
            continue
        stands_for[mine] = max(stands_for[mine], size[i])
        if best[u] < 0 or own[mine] < own[best[u]]:
            best[u] = mine
    return np.lexsort((own[:p], -stands_for)).tolist()


def _of_edges(above: Ints, values: Any, otherwise: Any) -> list[Any]:
    """Values (E,) of the edge above each node; `otherwise` at the root."""
    listed = [*np.asarray(values).tolist(), otherwise]
    return [listed[e] for e in above.tolist()]


def _shares(values: Sequence[float]) -> list[float | None]:
    return [None if np.isnan(x) else round(x, 3) for x in values]
