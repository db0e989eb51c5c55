"""`TreeModel`: a tree with every conditional distribution, as a directed model from a root.

Categorical nodes have CPTs. An observed node of another family has an emission: the distribution
of its values in each state of its neighbour. To the tree such a node is a leaf with a single state;
what its value says comes in as evidence on the neighbour.

A tree model has one joint distribution whatever its root; the arrays are kept as
`P(root) prod_v P(v | parent(v))`, so both directions of an edge come from one CPT and agree.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine.arrays import Float32, Floats, Ints
from latenttree.model.emissions import Emission
from latenttree.model.inference import Evidence, Inference, Posteriors
from latenttree.tree import Tree

Node = str | int | np.integer[Any]

SIMPLEX_TOLERANCE = 1e-8
"""Columns may miss a sum of one by this much; they are then normalised."""


@dataclass(frozen=True, eq=False, repr=False)
class TreeModel:
    """A tree with `P(root)` and `P(v | parent)` for every other node.

    Attributes
    ----------
    tree : observed nodes first.
    root : the node without parent; a hidden node wherever there is one.
    cpts : for every node `v` its `P(v | parent)`, `(dims[v], dims[parent])`, columns on the
        simplex; for the root `P(root)` as a single column. Ones for nodes with an emission.
    emissions : the distributions of observed leaves that are not categorical, by node.
    """

    tree: Tree
    root: int
    cpts: tuple[Floats, ...]
    emissions: Mapping[int, Emission] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if len(self.cpts) != self.tree.n_nodes:
            raise ValueError(
                f"{len(self.cpts)} CPTs for {self.tree.n_nodes} nodes; give one for each node"
            )
        shapes = [np.shape(cpt) for cpt in self.cpts]
        for v, (shape, u) in enumerate(zip(shapes, self.parents.tolist(), strict=True)):
            width = 1 if u < 0 else (*shapes[u], 0)[0]
            if len(shape) != 2 or shape[1] != width or not shape[0]:
                raise ValueError(
                    f"the CPT of node {self.tree.names[v]!r} has shape {shape}; its parent "
                    f"needs {width} columns"
                )
        object.__setattr__(self, "cpts", self._distributions(shapes))
        self._check_emissions()

    def _distributions(self, shapes: list[tuple[int, ...]]) -> tuple[Floats, ...]:
        """The CPTs, normalised to rounding and read-only; those of one shape in one array."""
        found: list[Any] = [None] * len(shapes)
        for nodes in alike(shapes):
            stack = np.array([self.cpts[v] for v in nodes], dtype=np.float64)
            sums = stack.sum(axis=1)
            fine = (stack >= 0).all(axis=(1, 2)) & (np.abs(sums - 1) <= SIMPLEX_TOLERANCE).all(1)
            if not fine.all():
                at = int(np.argmin(fine))
                raise ValueError(
                    f"columns of the CPT of node {self.tree.names[nodes[at]]!r} are not "
                    f"distributions: smallest value {stack[at].min():g}, sums from "
                    f"{sums[at].min():g} to {sums[at].max():g}"
                )
            stack /= sums[:, None, :]
            stack.flags.writeable = False
            for v, cpt in zip(nodes, stack, strict=True):
                found[v] = cpt
        return tuple(found)

    def _check_emissions(self) -> None:
        for v, emission in self.emissions.items():
            u = int(self.parents[v])
            if not 0 <= v < self.tree.n_observed or u < 0 or len(self.tree.neighbors(v)) != 1:
                raise ValueError(f"node {self.tree.names[v]!r} has an emission but is no leaf")
            expected = (1, emission.n_states)
            if self.cpts[v].shape != expected:
                raise ValueError(
                    f"the emission of {self.tree.names[v]!r} has {emission.n_states} states, its "
                    f"CPT shape {self.cpts[v].shape}; the CPT is ones of shape {expected}"
                )

    @classmethod
    def from_joints(
        cls,
        tree: Tree,
        joints: Sequence[ArrayLike],
        prior: ArrayLike = (),
        emissions: Mapping[int, Emission] | None = None,
    ) -> TreeModel:
        """The model whose edge `e = (a, b)` has joint `joints[e]`, `(dims[a], dims[b])`.

        Rooted at `default_root(tree)`; `P(root)` is the mean of its edges' marginals, or `prior`
        where there is no edge. Columns without weight become uniform."""
        root = default_root(tree)
        parents, (a, b) = tree.rooted(root).parents, tree.edges.T
        down = parents[b] == a
        child = np.where(down, b, a)
        arrays = (np.asarray(joint, dtype=np.float64) for joint in joints)
        turned = [j.T if d else j for j, d in zip(arrays, down.tolist(), strict=True)]
        cpts: list[Any] = [None] * tree.n_nodes
        for edges in alike([j.shape for j in turned]):
            stack = normalised(np.stack([turned[e] for e in edges], axis=1))
            stack = np.ascontiguousarray(stack.swapaxes(0, 1))
            stack.flags.writeable = False
            for v, cpt in zip(child[edges].tolist(), stack, strict=True):
                cpts[v] = cpt
        near = [turned[e] for e in np.flatnonzero(parents[child] == root)]
        priors = [np.asarray(prior)] if not near else [j.sum(axis=0) / j.sum() for j in near]
        cpts[root] = normalised(np.mean(priors, axis=0)[:, None])
        return cls.trusted(tree, root, cpts, emissions)

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
        """(n_nodes,) states of each node."""
        return np.array([len(cpt) for cpt in self.cpts], dtype=np.int64)

    @cached_property
    def flat(self) -> Floats:
        """All CPTs one after another, each row by row."""
        return np.concatenate([cpt.ravel() for cpt in self.cpts])

    @cached_property
    def layouts(self) -> dict[str, Any]:
        """What inference lays out for the tree, whatever the parameters: shared with all models
        made by `with_flat`."""
        return {}

    @cached_property
    def marginals(self) -> tuple[Floats, ...]:
        """`P(v)` of every node."""
        found: list[Any] = [None] * self.tree.n_nodes
        for v in self.order.tolist():
            u = self.parents[v]
            found[v] = self.cpts[v][:, 0] if u < 0 else self.cpts[v] @ found[u]
        return tuple(found)

    @property
    def n_parameters(self) -> int:
        """Free parameters: one less than the states for every column of every CPT, and those of the
        emissions."""
        emitted = sum(emission.n_parameters for emission in self.emissions.values())
        return int(sum((len(t) - 1) * t.shape[1] for t in self.cpts)) + emitted

    def marginal(self, node: Node) -> Floats:
        """`P(node)`, or the expectation of a node that is not categorical."""
        v = self.tree.index(node)
        if v in self.emissions:
            return np.asarray(self.emissions[v].mean() @ self.marginals[self.parents[v]])
        return self.marginals[v]

    def joint(self, a: Node, b: Node) -> Floats:
        """`P(a, b)` of the two ends of an edge, `(dims[a], dims[b])`."""
        i, j = self.tree.index(a), self.tree.index(b)
        if self.parents[i] == j:
            return np.asarray(self.cpts[i] * self.marginals[j])
        if self.parents[j] == i:
            return np.asarray((self.cpts[j] * self.marginals[i]).T)
        raise ValueError(
            f"{self.tree.names[i]!r} and {self.tree.names[j]!r} are not the ends of an edge"
        )

    def conditional(self, node: Node, given: Node) -> Floats:
        """`P(node | given)` of the two ends of an edge, `(dims[node], dims[given])`; `E[node |
        given]` of a node that is not categorical."""
        i, j = self.tree.index(node), self.tree.index(given)
        if i in self.emissions and self.parents[i] == j:
            return self.emissions[i].mean()
        if j in self.emissions:
            raise ValueError(
                f"{self.tree.names[j]!r} has no states to condition on; ask for the "
                "conditional in the other direction"
            )
        return self._conditional(i, j)

    def _conditional(self, i: int, j: int) -> Floats:
        """`P(i | j)` of the two ends of an edge."""
        if self.parents[i] == j:
            return self.cpts[i]
        return normalised(self.joint(i, j), self.marginals[i])

    def rerooted(self, root: Node) -> TreeModel:
        """The same distribution with edges directed from another root."""
        target = self.tree.index(root)
        parents = self.tree.rooted(target).parents
        cpts = [
            self.marginals[v][:, None] if u < 0 else self._conditional(v, u)
            for v, u in enumerate(parents.tolist())
        ]
        return TreeModel(self.tree, target, tuple(cpts), self.emissions)

    def relabelled(self, orders: Mapping[int, ArrayLike]) -> TreeModel:
        """States of the given nodes in another order: new state `i` is old state `orders[v][i]`."""
        cpts = []
        for v, (cpt, u) in enumerate(zip(self.cpts, self.parents.tolist(), strict=True)):
            if v not in orders and u not in orders:
                cpts.append(cpt)
                continue
            rows = np.asarray(orders.get(v, np.arange(len(cpt))))
            columns = np.asarray(orders.get(u, np.arange(cpt.shape[1])) if u >= 0 else [0])
            cpts.append(cpt[np.ix_(rows, columns)])
        emissions = {
            v: emission.relabelled(np.asarray(orders[u])) if u in orders else emission
            for v, emission in self.emissions.items()
            for u in (int(self.parents[v]),)
        }
        return TreeModel(self.tree, self.root, tuple(cpts), emissions)

    def with_flat(self, flat: Floats, emissions: Mapping[int, Emission] | None = None) -> TreeModel:
        """Other CPTs, laid out as `flat`, and emissions on the same tree, not checked: for a caller
        that has normalised them and will not write to them. The CPTs are cut when first used, since
        thousands of them take longer than some samples."""
        new = object.__new__(TreeModel)
        names = ("tree", "root", "parents", "order", "dims", "layouts", "_shapes")
        known = {name: getattr(self, name) for name in names}
        used = self.emissions if emissions is None else emissions
        vars(new).update(known, flat=flat, emissions=used)
        return new

    @cached_property
    def _shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the CPTs."""
        dims = self.dims.tolist()
        above = (1 if u < 0 else dims[u] for u in self.parents.tolist())
        return tuple(zip(dims, above, strict=True))

    def __getattr__(self, name: str) -> Any:
        if name != "cpts" or "flat" not in vars(self):
            raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")
        vars(self)["cpts"] = cut(vars(self)["flat"], self._shapes)
        return vars(self)["cpts"]

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what was computed from them is computed again."""
        return {name: getattr(self, name) for name in ("tree", "root", "cpts", "emissions")}

    @classmethod
    def trusted(
        cls,
        tree: Tree,
        root: int,
        cpts: Sequence[Floats],
        emissions: Mapping[int, Emission] | None = None,
    ) -> TreeModel:
        """A model whose CPTs are known to be distributions: they are not checked."""
        new = object.__new__(cls)
        parents, order = tree.rooted(root)
        dims = np.array([len(cpt) for cpt in cpts], dtype=np.int64)
        known = {"tree": tree, "root": root, "parents": parents, "order": order, "dims": dims}
        vars(new).update(known, cpts=tuple(cpts), emissions=emissions or {})
        return new

    def renamed(self, tree: Tree) -> TreeModel:
        """The same model on the same tree with other names of nodes."""
        return TreeModel.trusted(tree, self.root, self.cpts, self.emissions)

    def canonical(self) -> TreeModel:
        """The same model on the canonical tree, whose hidden nodes are named h0, h1, ... anew."""
        tree, number = self.tree.renumbered()
        root = default_root(tree)
        turned = self.rerooted(int(np.flatnonzero(number == root)[0]))
        cpts: list[Any] = [None] * tree.n_nodes
        for v, cpt in enumerate(turned.cpts):
            cpts[number[v]] = cpt
        emissions = {int(number[v]): emission for v, emission in self.emissions.items()}
        return TreeModel(tree, root, tuple(cpts), emissions)

    # ---- inference, see `Inference` ---------------------------------------------------

    @cached_property
    def inference(self) -> Inference:
        """The propagation of this model."""
        return Inference(self)

    def log_likelihood(self, evidence: Evidence, n_jobs: int = 1) -> Floats:
        """`log P(evidence)` of every sample, `(n,)`; -inf where it is impossible."""
        return self.inference.log_likelihood(evidence, n_jobs)

    def posteriors(
        self, evidence: Evidence, nodes: Sequence[int] | None = None, n_jobs: int = 1
    ) -> Posteriors:
        """`P(v | evidence)` of the given nodes, all hidden ones by default."""
        return self.inference.posteriors(evidence, nodes, n_jobs)

    def most_probable(
        self, evidence: Evidence, n_jobs: int = 1
    ) -> tuple[NDArray[np.int32], Floats]:
        """The most probable states of all nodes together, `(n, n_nodes)`, -1 where the evidence is
        impossible, and `log P(states, evidence)`."""
        return self.inference.most_probable(evidence, n_jobs)

    def sample(
        self, n: int, rng: np.random.Generator, evidence: Evidence | None = None
    ) -> NDArray[np.int32]:
        """Exact draws of all nodes, `(n, n_nodes)`, given the evidence where there is some."""
        return self.inference.sample(n, rng, evidence)

    def messages(self, evidence: Evidence, edges: ArrayLike, n_jobs: int = 1) -> Float32:
        """Messages along edges `(m, 2)` out of hidden nodes, `(n, m, k)`, largest entry 1."""
        return self.inference.messages(evidence, edges, n_jobs)

    def expected_counts(
        self, evidence: Evidence, n_jobs: int = 1, weights: ArrayLike | None = None
    ) -> tuple[tuple[Floats, ...], float]:
        """`E[# (v = i, parent = j) | evidence]` of every CPT, and the log-likelihood, summed."""
        counts, value = self.inference.expected_counts(evidence, n_jobs, weights)
        return cut(counts, self._shapes), value

    def __repr__(self) -> str:
        return f"TreeModel({self.tree!r}, {self.n_parameters:,} parameters)"


def default_root(tree: Tree) -> int:
    """The first hidden node, or the first node of a tree without hidden nodes."""
    return tree.n_observed if tree.n_hidden else 0


def cut(flat: NDArray[Any], shapes: Iterable[tuple[int, ...]]) -> tuple[NDArray[Any], ...]:
    """Arrays of the given shapes that lie one after another in `flat`; views."""
    found, at = [], 0
    for shape in shapes:
        size = prod(shape)
        found.append(flat[at : at + size].reshape(shape))
        at += size
    return tuple(found)


def alike(shapes: Iterable[tuple[int, ...]]) -> Iterable[list[int]]:
    """The places of each shape."""
    places: dict[tuple[int, ...], list[int]] = {}
    for i, shape in enumerate(shapes):
        places.setdefault(shape, []).append(i)
    return places.values()


def normalised(cpt: Floats, fallback: Floats | None = None) -> Floats:
    """Columns `cpt[:, ...]` divided by their sums; an empty column becomes `fallback` (default:
    uniform)."""
    cpt = np.maximum(np.asarray(cpt, dtype=np.float64), 0.0)
    cpt = np.where(cpt.sum(axis=0) > 0, cpt, 1.0 if fallback is None else fallback[:, None])
    return np.asarray(cpt / cpt.sum(axis=0))
