"""`TreeModel`: a tree with every conditional distribution, as a directed model from a root.

A tree model has one joint distribution whatever its root; the arrays are kept as
`P(root) prod_v P(v | parent(v))`, so both directions of an edge come from one table and agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.tree import Tree

Floats = NDArray[np.float64]
Node = str | int | np.integer[Any]

SIMPLEX_TOLERANCE = 1e-8
"""Columns may miss a sum of one by this much; they are then normalised."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel:
    """A tree with `P(root)` and `P(v | parent)` for every other node.

    Attributes
    ----------
    tree : observed nodes first.
    root : where the arrows start; a hidden node wherever there is one.
    tables : for every node `v` its `P(v | parent)`, `(dims[v], dims[parent])`, columns on the
        simplex; for the root `P(root)` as a single column.
    """

    tree: Tree
    root: int
    tables: tuple[Floats, ...]

    def __post_init__(self) -> None:
        tables = tuple(np.array(t, dtype=np.float64, order="C") for t in self.tables)
        if len(tables) != self.tree.n_nodes:
            raise ValueError(f"{len(tables)} tables for {self.tree.n_nodes} nodes; give one each")
        for v, table in enumerate(tables):
            u = int(self.parents[v])
            width = 1 if u < 0 else tables[u].shape[0]
            if table.ndim != 2 or table.shape[1] != width or not table.shape[0]:
                raise ValueError(
                    f"the table of node {self.tree.names[v]!r} has shape {table.shape}; its parent "
                    f"needs {width} columns"
                )
            sums = table.sum(axis=0)
            if not (table >= 0).all() or (np.abs(sums - 1) > SIMPLEX_TOLERANCE).any():
                raise ValueError(
                    f"columns of the table of node {self.tree.names[v]!r} are not distributions: "
                    f"smallest value {table.min():g}, sums from {sums.min():g} to {sums.max():g}"
                )
            table /= sums
            table.flags.writeable = False
        object.__setattr__(self, "tables", tables)

    @classmethod
    def from_joints(
        cls, tree: Tree, joints: Sequence[ArrayLike], prior: ArrayLike = ()
    ) -> TreeModel:
        """The model whose edge `e = (a, b)` has joint `joints[e]`, `(dims[a], dims[b])`.

        Rooted at `default_root(tree)`; `P(root)` is the mean of its edges' marginals, or `prior`
        where there is no edge."""
        root = default_root(tree)
        parents = tree.rooted(root).parents
        tables: list[Any] = [None] * tree.n_nodes
        priors = []
        for (a, b), joint in zip(tree.edges.tolist(), joints, strict=True):
            j = np.asarray(joint, dtype=np.float64)
            parent, child = (a, b) if parents[b] == a else (b, a)
            j = j.T if parent == a else j  # (child, parent)
            tables[child] = normalised(j)
            if parent == root:
                priors.append(j.sum(axis=0) / j.sum())
        tables[root] = normalised(np.asarray(np.mean(priors, axis=0) if priors else prior)[:, None])
        return cls(tree, root, tuple(tables))

    @cached_property
    def parents(self) -> NDArray[np.int64]:
        """(n_nodes,) parent of each node, -1 at the root."""
        return self.tree.rooted(self.root).parents

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """(n_nodes,) all nodes, parents before children."""
        return self.tree.rooted(self.root).order

    @cached_property
    def dims(self) -> NDArray[np.int64]:
        """(n_nodes,) states of each node."""
        return np.array([len(table) for table in self.tables], dtype=np.int64)

    @cached_property
    def marginals(self) -> tuple[Floats, ...]:
        """`P(v)` of every node."""
        found: list[Any] = [None] * self.tree.n_nodes
        for v in self.order.tolist():
            u = self.parents[v]
            found[v] = self.tables[v][:, 0] if u < 0 else self.tables[v] @ found[u]
        return tuple(found)

    @property
    def n_parameters(self) -> int:
        """Free parameters: one less than the states for every column of every table."""
        return int(sum((len(t) - 1) * t.shape[1] for t in self.tables))

    def marginal(self, node: Node) -> Floats:
        """`P(node)`."""
        return self.marginals[self.tree.index(node)]

    def joint(self, a: Node, b: Node) -> Floats:
        """`P(a, b)` of the two ends of an edge, `(dims[a], dims[b])`."""
        i, j = self.tree.index(a), self.tree.index(b)
        if self.parents[i] == j:
            return np.asarray(self.tables[i] * self.marginals[j])
        if self.parents[j] == i:
            return np.asarray((self.tables[j] * self.marginals[i]).T)
        raise ValueError(
            f"{self.tree.names[i]!r} and {self.tree.names[j]!r} are not the ends of an edge"
        )

    def conditional(self, node: Node, given: Node) -> Floats:
        """`P(node | given)` of the two ends of an edge, `(dims[node], dims[given])`."""
        i, j = self.tree.index(node), self.tree.index(given)
        if self.parents[i] == j:
            return self.tables[i]
        return normalised(self.joint(i, j), self.marginals[i])

    def rerooted(self, root: Node) -> TreeModel:
        """The same distribution with the arrows from another root."""
        target = self.tree.index(root)
        parents = self.tree.rooted(target).parents
        tables = [
            self.marginals[v][:, None] if u < 0 else self.conditional(v, u)
            for v, u in enumerate(parents.tolist())
        ]
        return TreeModel(self.tree, target, tuple(tables))

    def relabelled(self, orders: Mapping[int, ArrayLike]) -> TreeModel:
        """States of the given nodes in another order: new state `i` is old state `orders[v][i]`."""
        tables = []
        for v, table in enumerate(self.tables):
            rows = np.asarray(orders.get(v, np.arange(len(table))))
            u = int(self.parents[v])
            columns = np.asarray(orders.get(u, np.arange(table.shape[1])) if u >= 0 else [0])
            tables.append(table[np.ix_(rows, columns)])
        return TreeModel(self.tree, self.root, tuple(tables))

    def with_tables(self, tables: Iterable[Floats]) -> TreeModel:
        """Other tables on the same tree, taken as they are: for a caller that has normalised them
        and will not write to them."""
        new = object.__new__(TreeModel)
        known = {name: getattr(self, name) for name in ("tree", "root", "parents", "order", "dims")}
        vars(new).update(known, tables=tuple(tables))
        return new

    def canonical(self) -> TreeModel:
        """The same model on the canonical tree, whose hidden nodes are named h0, h1, ... anew."""
        tree, number = self.tree.renumbered()
        root = default_root(tree)
        turned = self.rerooted(int(np.flatnonzero(number == root)[0]))
        tables: list[Any] = [None] * tree.n_nodes
        for v, table in enumerate(turned.tables):
            tables[number[v]] = table
        return TreeModel(tree, root, tuple(tables))

    def __repr__(self) -> str:
        return f"TreeModel({self.tree!r}, {self.n_parameters:,} parameters)"


def default_root(tree: Tree) -> int:
    """The first hidden node, or the first node of a tree without hidden nodes."""
    return tree.n_observed if tree.n_hidden else 0


def normalised(table: Floats, fallback: Floats | None = None) -> Floats:
    """Columns divided by their sums; an empty column becomes `fallback` (default: uniform)."""
    table = np.maximum(np.asarray(table, dtype=np.float64), 0.0)
    sums = table.sum(axis=0)
    base = np.ones(len(table)) if fallback is None else fallback
    table = np.where(sums > 0, table, base[:, None])
    return np.asarray(table / table.sum(axis=0))
