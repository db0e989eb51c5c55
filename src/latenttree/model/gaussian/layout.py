"""Order of computation in a Gaussian tree: a core of vectors, and the leaves attached to it.

The core consists of the hidden nodes and the observed nodes with children. Observed leaves come in
two kinds. A coordinate that is independent of all others given the parent (a scalar, or any
coordinate of a leaf with diagonal noise) is one row of a regression on the parent, and all such
rows under one node are handled at once, by matrix products: the *hung* coordinates of the node. A
leaf with full noise is a *block*.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.gaussian.distribution import MAX_FULL, GaussianDistribution
from latenttree.model.tree_model import default_root
from latenttree.tree import Tree


@dataclass(frozen=True, eq=False)
class GaussianLayout:
    """Places of nodes and columns. Core nodes are numbered parents first.

    Attributes
    ----------
    tree, root, dims : of the model.
    diagonal : (n_nodes,) nodes with diagonal noise.
    columns : (D,) columns of the data in the order in which blocks of samples store them, so that
        columns used together are adjacent. "Rows" below are places in this order.
    nodes : (c,) the core nodes.
    parents : (c,) place in the core of each one's parent, -1 at the root.
    own : for each core node its rows; none for hidden nodes.
    leaves : for each core node the leaves whose coordinates are hung on it.
    hung : for each core node the rows of those coordinates.
    blocks, block_parents, block_rows : leaves with full noise, the place in the core of their
        parents, and their rows.
    """

    tree: Tree
    root: int
    dims: Ints
    diagonal: Bools
    columns: Ints
    nodes: tuple[int, ...]
    parents: tuple[int, ...]
    own: tuple[slice, ...]
    leaves: tuple[tuple[int, ...], ...]
    hung: tuple[slice, ...]
    blocks: tuple[int, ...]
    block_parents: tuple[int, ...]
    block_rows: tuple[slice, ...]

    @property
    def n_core(self) -> int:
        """Number of core nodes."""
        return len(self.nodes)

    def dim(self, c: int) -> int:
        """Dimensions of core node c."""
        return int(self.dims[self.nodes[c]])

    def is_hidden(self, c: int) -> bool:
        """Whether core node c is hidden."""
        return self.nodes[c] >= self.tree.n_observed

    @classmethod
    def of(cls, model: GaussianDistribution) -> GaussianLayout:
        """The layout of a model."""
        diagonal = np.array([noise.ndim == 1 for noise in model.noise])
        return cls.build(model.tree, model.root, model.dims, diagonal | (model.dims == 1))

    @classmethod
    def for_tree(cls, tree: Tree, offsets: Ints, n_dims: int) -> GaussianLayout:
        """The layout for fitting: noise is full up to `MAX_FULL` dimensions."""
        dims = np.concatenate([np.diff(offsets), np.full(tree.n_hidden, n_dims)]).astype(np.int64)
        observed = np.arange(tree.n_nodes) < tree.n_observed
        diagonal = (dims == 1) | (observed & (dims > MAX_FULL))
        return cls.build(tree, default_root(tree), dims, diagonal)

    @classmethod
    def build(cls, tree: Tree, root: int, dims: Ints, diagonal: Bools) -> GaussianLayout:
        """The layout of a tree whose nodes have the given dimensions and kinds of noise."""
        above, order = (a.tolist() for a in tree.rooted(root))
        p, inner = tree.n_observed, {root, *above}
        nodes = tuple(v for v in order if v >= p or v in inner)
        place = {v: c for c, v in enumerate(nodes)}
        outer = [v for v in range(p) if v not in place]
        leaves: list[list[int]] = [[] for _ in nodes]
        for v in outer:
            if diagonal[v]:
                leaves[place[above[v]]].append(v)
        blocks = tuple(v for v in outer if not diagonal[v])
        starts = np.concatenate([[0], np.cumsum(dims[:p])]).astype(np.int64)
        columns: list[int] = []
        return cls(
            tree=tree,
            root=root,
            dims=dims,
            diagonal=diagonal,
            nodes=nodes,
            parents=tuple(place.get(above[v], -1) for v in nodes),
            own=tuple(_take(columns, starts, [v] if v < p else []) for v in nodes),
            leaves=tuple(tuple(some) for some in leaves),
            hung=tuple(_take(columns, starts, some) for some in leaves),
            blocks=blocks,
            block_parents=tuple(place[above[v]] for v in blocks),
            block_rows=tuple(_take(columns, starts, [v]) for v in blocks),
            columns=np.array(columns, dtype=np.int64),
        )


def _take(columns: list[int], starts: Ints, variables: Sequence[int]) -> slice:
    """Append the columns of some variables, in place; the slice where they now are."""
    begin = len(columns)
    for v in variables:
        columns.extend(range(int(starts[v]), int(starts[v + 1])))
    return slice(begin, len(columns))


class Regressions(NamedTuple):
    """`x = offset + loading parent + noise`, one or several for each entry."""

    offset: tuple[Floats, ...]
    loading: tuple[Floats, ...]
    noise: tuple[Floats, ...]


class Linear(NamedTuple):
    """Parameters in units in which the data are near mean 0 and variance 1.

    core : for each core node offset (d,), loading (d, d_parent), noise (d, d).
    hung : for each core node those of the coordinates hung on it: (n,), (n, d) and (n,).
    blocks : for each block as for core nodes.
    """

    core: Regressions
    hung: Regressions
    blocks: Regressions


def core_means(linear: Linear, layout: GaussianLayout) -> list[Floats]:
    """`E[v]` of every core node."""
    found: list[Floats] = []
    for offset, loading, u in zip(*linear.core[:2], layout.parents, strict=True):
        found.append(offset if u < 0 else offset + loading @ found[u])
    return found
