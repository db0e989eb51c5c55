"""`GaussianDistribution`: a tree whose nodes are jointly Gaussian, directed from a root.

    v = mean_v + L_v (parent - mean_parent) + noise_v,    noise_v ~ N(0, Psi_v)

Hidden nodes are vectors of `k` numbers, observed nodes vectors of `d_v`. Observations do not
determine how a hidden node is shifted, scaled or rotated, so fitted models have hidden nodes of
mean zero and covariance I, rotated as `gauge` defines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine.arrays import Floats, Ints
from latenttree.model.gaussian.algebra import solve
from latenttree.model.tree_model import cut, default_root
from latenttree.tree import Tree

Node = str | int | np.integer[Any]

MAX_FULL = 16
"""Wider observed variables have independent coordinates given their parent."""

NOISE_FLOOR = 1e-6
"""Fitted noise is at least this share of a variable's variance: where a hidden node would equal an
observed variable (a Heywood case), the likelihood has no maximum inside the parameter space."""

ASYMMETRY = 1e-8
"""Covariances may be asymmetric by this share of their largest entry."""


@dataclass(frozen=True, eq=False, repr=False)
class GaussianDistribution:
    """A linear Gaussian model on a tree.

    Attributes
    ----------
    tree : observed nodes first.
    root : the node without parent; a hidden node wherever there is one.
    means : `(d_v,)` for every node; zero for hidden ones.
    loadings : `(d_v, d_parent)` for every node; `(d_root, 0)` for the root.
    noise : covariance of every node given its parent, `(d_v, d_v)`, or its diagonal `(d_v,)`; for
        the root its covariance.
    """

    tree: Tree
    root: int
    means: tuple[Floats, ...]
    loadings: tuple[Floats, ...]
    noise: tuple[Floats, ...]

    def __post_init__(self) -> None:
        n = self.tree.n_nodes
        for name in ("means", "loadings", "noise"):
            arrays = tuple(np.array(a, dtype=np.float64, order="C") for a in getattr(self, name))
            if len(arrays) != n:
                raise ValueError(f"{len(arrays)} {name} for {n} nodes; give one for each")
            for array in arrays:
                array.flags.writeable = False
            object.__setattr__(self, name, arrays)
        for v in range(n):
            self._check_node(v)

    def _check_node(self, v: int) -> None:
        name, u = self.tree.names[v], int(self.parents[v])
        mean, loading, noise = self.means[v], self.loadings[v], self.noise[v]
        d, width = mean.size, 0 if u < 0 else self.means[u].size
        if mean.shape != (d,) or not d or loading.shape != (d, width):
            raise ValueError(
                f"node {name!r} has a mean of shape {mean.shape} and loadings of shape "
                f"{loading.shape}; for a parent of {width} dimensions give (d,) and (d, {width})"
            )
        shapes = [(d, d)] if v >= self.tree.n_observed else [(d, d), (d,)]
        if noise.shape not in shapes:
            allowed = " or ".join(map(str, shapes))
            raise ValueError(f"noise of {name!r} has shape {noise.shape}; give {allowed}")
        if not all(np.isfinite(a).all() for a in (mean, loading, noise)):
            raise ValueError(f"node {name!r} has parameters that are not finite numbers")
        variance = noise if noise.ndim == 1 else np.diag(noise)
        skew = 0.0 if noise.ndim == 1 else float(np.abs(noise - noise.T).max())
        if not (variance > 0).all() or skew > ASYMMETRY * float(variance.max()):
            raise ValueError(
                f"noise of {name!r} is not a covariance: smallest variance {variance.min():g}, "
                f"largest difference to its transpose {skew:g}"
            )

    # ---- shape ----------------------------------------------------------------------

    @cached_property
    def parents(self) -> Ints:
        """(n_nodes,) parent of each node, -1 at the root."""
        return self.tree.rooted(self.root).parents

    @cached_property
    def order(self) -> Ints:
        """(n_nodes,) all nodes, parents before children."""
        return self.tree.rooted(self.root).order

    @cached_property
    def dims(self) -> Ints:
        """(n_nodes,) dimensions of each node."""
        return np.array([mean.size for mean in self.means], dtype=np.int64)

    @cached_property
    def offsets(self) -> Ints:
        """(p + 1,) columns of observed node v are offsets[v]:offsets[v + 1]."""
        return np.concatenate([[0], np.cumsum(self.dims[: self.tree.n_observed])]).astype(np.int64)

    @cached_property
    def hidden_offsets(self) -> Ints:
        """(m + 1,) dimensions of hidden node i are hidden_offsets[i]:hidden_offsets[i + 1]."""
        return np.concatenate([[0], np.cumsum(self.dims[self.tree.n_observed :])]).astype(np.int64)

    @property
    def n_parameters(self) -> int:
        """Free parameters: the entries of the arrays, less the `k^2` degrees of freedom of the
        gauge of each hidden node (k its dimension); at most the number of means and covariances.

        For `k = 1` and scalars: a mean and a variance of each variable, a correlation of each edge.
        Where some branch of a hidden node has fewer than k coordinates this is an upper bound.
        """
        p = self.tree.n_observed
        noise = sum(
            a.size if a.ndim == 1 else a.shape[0] * (a.shape[0] + 1) // 2 for a in self.noise
        )
        gauge = int((self.dims[p:] ** 2).sum())
        width = int(self.dims[:p].sum())
        second = noise + sum(a.size for a in self.loadings) - gauge
        return int(width + min(second, width * (width + 1) // 2))

    # ---- moments --------------------------------------------------------------------

    @cached_property
    def _inner(self) -> Mapping[int, Floats]:
        """Covariance of the root and of all nodes with children."""
        found: dict[int, Floats] = {}
        inner = {self.root, *self.parents.tolist()}
        for v in self.order.tolist():
            if v in inner:
                found[v] = self._spread(v, found)
        return found

    def _spread(self, v: int, known: Mapping[int, Floats]) -> Floats:
        noise = self.noise[v] if self.noise[v].ndim == 2 else np.diag(self.noise[v])
        u = int(self.parents[v])
        if u < 0:
            return noise
        spread = self.loadings[v] @ known[u] @ self.loadings[v].T + noise
        return np.asarray((spread + spread.T) / 2)

    def marginal(self, node: Node) -> Floats:
        """`E[node]`, `(d,)`."""
        return self.means[self.tree.index(node)]

    def marginal_covariance(self, node: Node) -> Floats:
        """`Cov[node]`, `(d, d)`."""
        v = self.tree.index(node)
        return self._inner[v] if v in self._inner else self._spread(v, self._inner)

    def variances(self, node: Node) -> Floats:
        """The diagonal of `Cov[node]`, `(d,)`, without the rest of it."""
        v = self.tree.index(node)
        if v in self._inner:
            return np.diag(self._inner[v]).copy()
        loading, noise = self.loadings[v], self.noise[v]
        explained = ((loading @ self._inner[int(self.parents[v])]) * loading).sum(axis=1)
        return np.asarray(explained + (noise if noise.ndim == 1 else np.diag(noise)))

    def cross_covariance(self, a: Node, b: Node) -> Floats:
        """`Cov[a, b]`, `(d_a, d_b)`, of any two nodes: loadings along the path between them."""
        i, j = self.tree.index(a), self.tree.index(b)
        above = set(self._path_to_root(i))
        top = next(v for v in self._path_to_root(j) if v in above)
        from_top = self.marginal_covariance(top) @ self._loading_from(j, top).T
        return np.asarray(self._loading_from(i, top) @ from_top)

    def _path_to_root(self, v: int) -> list[int]:
        """A node and all its ancestors, the root last."""
        path = [v]
        while self.parents[path[-1]] >= 0:
            path.append(int(self.parents[path[-1]]))
        return path

    def _loading_from(self, v: int, top: int) -> Floats:
        """`L` of `E[v | top] = L top`, for a node below `top`."""
        product = np.eye(int(self.dims[v]))
        while v != top:
            product = product @ self.loadings[v]
            v = int(self.parents[v])
        return product

    def covariance(self, nodes: Sequence[Node] | None = None) -> Floats:
        """Joint covariance of the given nodes (all of them by default), one after another.

        Node by node from the root: `Cov[v, x] = L_v Cov[parent, x]` for all `x` before it."""
        asked = range(self.tree.n_nodes) if nodes is None else [self.tree.index(v) for v in nodes]
        needed = {u for v in asked for u in self._path_to_root(v)}
        order = [v for v in self.order.tolist() if v in needed]
        starts = np.concatenate([[0], np.cumsum(self.dims[order])]).tolist()
        place = {v: slice(starts[i], starts[i + 1]) for i, v in enumerate(order)}
        joint = np.zeros((starts[-1], starts[-1]))
        for v in order:
            here, u = place[v], int(self.parents[v])
            if u >= 0:
                joint[here, : here.start] = self.loadings[v] @ joint[place[u], : here.start]
                joint[: here.start, here] = joint[here, : here.start].T
            joint[here, here] = self.marginal_covariance(v)
        index = [i for v in asked for i in range(place[v].start, place[v].stop)]
        return joint[np.ix_(index, index)]

    def conditional(self, node: Node, given: Node) -> Floats:
        """The matrix `L` of `E[node | given] = mean + L (given - mean_given)`, `(d_node, d_given)`,
        in the units of the data; any two nodes."""
        i, j = self.tree.index(node), self.tree.index(given)
        if self.parents[i] == j:
            return self.loadings[i]
        return solve(self.marginal_covariance(j), self.cross_covariance(j, i)).T

    # ---- the same distribution, written otherwise -----------------------------------

    @classmethod
    def from_covariances(
        cls,
        tree: Tree,
        means: Sequence[ArrayLike],
        own: Sequence[Floats],
        cross: Sequence[Floats],
    ) -> Self:
        """The model with covariances `own[v]` of the nodes (`(d, d)`; for a leaf also the diagonal,
        then its noise is diagonal) and `cross[e]` `(d_a, d_b)` of the edges `(a, b)`.

        They must be consistent, which is not checked."""
        root = default_root(tree)
        parents = tree.rooted(root).parents
        loadings: list[Any] = [np.empty((len(own[root]), 0))] * tree.n_nodes
        noise: list[Any] = [own[root]] * tree.n_nodes
        for (a, b), both in zip(tree.edges.tolist(), cross, strict=True):
            parent, child = (a, b) if parents[b] == a else (b, a)
            shared = both.T if parent == a else both  # (child, parent)
            loading = solve(own[parent], shared.T).T
            loadings[child], noise[child] = loading, _residual(own[child], loading, shared)
        return cls(tree, root, tuple(np.asarray(m) for m in means), tuple(loadings), tuple(noise))

    def renamed(self, tree: Tree) -> Self:
        """The same model on the same tree with other names of nodes."""
        return replace(self, tree=tree)

    def rerooted(self, root: Node) -> Self:
        """The same distribution with edges directed from another root.

        An edge that is reversed gives its lower end full noise: independence of coordinates given
        one neighbour is not independence given another."""
        target = self.tree.index(root)
        parents = self.tree.rooted(target).parents
        loadings, noise = list(self.loadings), list(self.noise)
        for v, u in enumerate(parents.tolist()):
            if u == self.parents[v]:
                continue
            own = self.marginal_covariance(v)
            loadings[v] = np.empty((len(own), 0)) if u < 0 else self.conditional(v, u)
            noise[v] = own if u < 0 else _residual(own, loadings[v], self.cross_covariance(v, u))
        return replace(self, root=target, loadings=tuple(loadings), noise=tuple(noise))

    # ---- storage --------------------------------------------------------------------

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """All but the tree as named arrays; `from_arrays` reads them."""
        return {
            "root": np.array(self.root),
            "dims": self.dims,
            "diagonal": np.array([a.ndim == 1 for a in self.noise]),
            "means": np.concatenate(self.means),
            "loadings": np.concatenate([a.ravel() for a in self.loadings]),
            "noise": np.concatenate([a.ravel() for a in self.noise]),
        }

    @classmethod
    def from_arrays(cls, tree: Tree, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The model that `to_arrays` wrote, on its tree."""
        root, dims = int(arrays["root"]), arrays["dims"].astype(np.int64).tolist()
        parents = tree.rooted(root).parents.tolist()
        shapes: dict[str, Sequence[tuple[int, ...]]] = {
            "means": [(d,) for d in dims],
            "loadings": [(d, dims[u] if u >= 0 else 0) for d, u in zip(dims, parents, strict=True)],
            "noise": [
                (d,) if flat else (d, d)
                for d, flat in zip(dims, arrays["diagonal"].tolist(), strict=True)
            ],
        }
        parts = (
            cut(np.asarray(arrays[name], dtype=np.float64), shapes[name])
            for name in ("means", "loadings", "noise")
        )
        return cls(tree, root, *parts)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.tree!r}, {self.n_parameters:,} parameters)"


def _residual(own: Floats, loading: Floats, shared: Floats) -> Floats:
    """`own - L shared^T`, as a diagonal where `own` is one."""
    if own.ndim == 1:
        return np.asarray(own - (loading * shared).sum(axis=1))
    left = own - loading @ shared.T
    return np.asarray((left + left.T) / 2)
