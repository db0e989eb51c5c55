"""Tree: a tree over observed and hidden nodes, as integer arrays.

Nodes are ``0..n_nodes-1``; the first ``n_observed`` are observed, in the order of the
input, and the hidden ones follow. Every hidden node has at least three neighbours, so the
set of splits (one bipartition of the observed nodes for each edge) determines the topology.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    import networkx

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_HIDDEN_PREFIXES = ("h", "hidden", "_hidden")


class Adjacency(NamedTuple):
    """Neighbours of node ``v``: ``indices[indptr[v]:indptr[v + 1]]``, in increasing order."""

    indptr: IntArray  # (n_nodes + 1,)
    indices: IntArray  # (2E,)
    edge_ids: IntArray  # (2E,): the edge that leads to indices[i]


class Rooted(NamedTuple):
    """A rooting: ``parents[root] == -1``; ``order`` is breadth first, so parents come first."""

    parents: IntArray  # (n_nodes,)
    order: IntArray  # (n_nodes,)


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree whose first ``n_observed`` nodes are observed and whose other nodes are hidden.

    Parameters
    ----------
    names : names of all the nodes, observed first; unique.
    n_observed : number of observed nodes, at least 1.
    edges : ``(n_nodes - 1, 2)`` integers.
    lengths : ``(n_nodes - 1,)`` finite and not negative.

    The constructor checks and keeps the order it is given; ``Tree.build`` also names the
    hidden nodes and sorts the edges, so that equal topologies give equal arrays.
    """

    names: tuple[str, ...]
    n_observed: int
    edges: IntArray
    lengths: FloatArray

    def __post_init__(self) -> None:
        names = tuple(self.names)
        edges = _as_edges(self.edges)
        lengths = _as_lengths(self.lengths, len(edges))
        _check_names(names)
        if not 1 <= self.n_observed <= len(names):
            raise ValueError(
                f"n_observed is {self.n_observed} for {len(names)} names; "
                f"pass a number from 1 to {len(names)}"
            )
        for name, value in (
            ("names", names),
            ("n_observed", int(self.n_observed)),
            ("edges", _frozen(edges)),
            ("lengths", _frozen(lengths)),
        ):
            object.__setattr__(self, name, value)
        self._check_shape()

    @classmethod
    def build(cls, observed_names: Iterable[str], edges: ArrayLike, lengths: ArrayLike) -> Tree:
        """The canonical tree: hidden nodes in canonical order, edges sorted.

        Edges may number the hidden nodes by any integers from ``len(observed_names)`` on.
        Hidden nodes are renumbered and named ``h0, h1, ...`` as met breadth first from
        observed node 0, neighbours in order of the smallest observed index in their branch;
        edges are stored as (lower, higher), sorted. Cost ``O(n log n)``.
        """
        observed = tuple(observed_names)
        _check_names(observed)
        compact = _compact_hidden(_as_edges(edges), len(observed))
        n_hidden = int(compact.max(initial=len(observed) - 1)) + 1 - len(observed)
        names = observed + hidden_names(observed, n_hidden)
        return cls(names, len(observed), compact, np.asarray(lengths, float)).canonical()

    def canonical(self, keep_names: bool = False) -> Tree:
        """The same tree with hidden nodes and edges in the order of ``Tree.build``."""
        return self.reorder(self.observed_names, keep_names)

    def reorder(self, observed_names: Sequence[str], keep_names: bool = False) -> Tree:
        """The canonical tree with the observed nodes in another order.

        Hidden nodes are named anew, unless ``keep_names``.
        """
        observed = tuple(observed_names)
        _check_same_names(self.observed_names, observed)
        place = {name: i for i, name in enumerate(observed)}
        rank = np.array([place[name] for name in self.observed_names], dtype=np.int64)
        edges, source, new_id = _canonical_numbering(self, rank)
        hidden = hidden_names(observed, self.n_hidden)
        if keep_names:
            hidden = tuple(self.names[v] for v in np.argsort(new_id)[self.n_observed :])
        return Tree(observed + hidden, self.n_observed, edges, self.lengths[source])

    def renumbered(self) -> tuple[Tree, IntArray]:
        """The canonical tree, and the number in it of every node of this one."""
        rank = np.arange(self.n_observed)
        return self.canonical(), _canonical_numbering(self, rank)[2]

    # ---- size and names -------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.names)

    @property
    def n_hidden(self) -> int:
        return self.n_nodes - self.n_observed

    @property
    def n_edges(self) -> int:
        return len(self.edges)

    @property
    def observed_names(self) -> tuple[str, ...]:
        return self.names[: self.n_observed]

    @property
    def hidden_names(self) -> tuple[str, ...]:
        return self.names[self.n_observed :]

    def index(self, node: str | int | np.integer[Any]) -> int:
        """The number of a node given by its name or its number."""
        if isinstance(node, str):
            if node not in self._index_of_name:
                raise KeyError(
                    f"no node is named {node!r}; the names begin with {list(self.names[:5])}"
                )
            return self._index_of_name[node]
        if not 0 <= node < self.n_nodes:
            raise IndexError(f"node {node} is outside 0..{self.n_nodes - 1}")
        return int(node)

    @cached_property
    def _index_of_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    # ---- neighbours and rootings ----------------------------------------------------

    def adjacency(self) -> Adjacency:
        """Neighbour lists of all nodes in one CSR triple (computed once)."""
        return self._adjacency

    @cached_property
    def _adjacency(self) -> Adjacency:
        tails = np.concatenate([self.edges[:, 0], self.edges[:, 1]])
        heads = np.concatenate([self.edges[:, 1], self.edges[:, 0]])
        order = np.lexsort((heads, tails))
        indptr = np.zeros(self.n_nodes + 1, dtype=np.int64)
        np.cumsum(np.bincount(tails, minlength=self.n_nodes), out=indptr[1:])
        edge_ids = order % max(self.n_edges, 1)
        return Adjacency(_frozen(indptr), _frozen(heads[order]), _frozen(edge_ids))

    def neighbors(self, node: str | int) -> IntArray:
        """Neighbours of a node, in increasing order."""
        v = self.index(node)
        indptr, indices, _ = self._adjacency
        return indices[indptr[v] : indptr[v + 1]]

    def degree(self) -> IntArray:
        """Number of neighbours of each node, ``(n_nodes,)``."""
        return np.diff(self._adjacency.indptr)

    def rooted(self, root: str | int = 0) -> Rooted:
        """Parents, and a breadth-first order, of the tree hung from ``root``. ``O(n)``."""
        start = self.index(root)
        parents, order, _ = self._root0 if start == 0 else self._breadth_first(start)
        return Rooted(parents, order)

    def parent_edges(self, root: str | int = 0) -> IntArray:
        """The edge from each node to its parent in ``rooted(root)``; -1 at the root."""
        start = self.index(root)
        return (self._root0 if start == 0 else self._breadth_first(start))[2]

    @cached_property
    def _root0(self) -> tuple[IntArray, IntArray, IntArray]:
        return self._breadth_first(0)

    def _breadth_first(self, root: int) -> tuple[IntArray, IntArray, IntArray]:
        # Python lists: one array call for each of up to n levels would cost more.
        indptr, indices, edge_ids = (a.tolist() for a in self._adjacency)
        parents, via = [-1] * self.n_nodes, [-1] * self.n_nodes
        order, seen = [root], bytearray(self.n_nodes)
        seen[root] = 1
        for v in order:
            for i in range(indptr[v], indptr[v + 1]):
                u = indices[i]
                if not seen[u]:
                    seen[u] = 1
                    parents[u], via[u] = v, edge_ids[i]
                    order.append(u)
        as_array = (np.array(a, dtype=np.int64) for a in (parents, order, via))
        return tuple(_frozen(a) for a in as_array)

    def path(self, a: str | int, b: str | int) -> list[int]:
        """The nodes from ``a`` to ``b``, both included."""
        parents = self._root0[0]
        up_a = _climb(parents, self.index(a))
        up_b = _climb(parents, self.index(b))
        while len(up_a) > 1 and len(up_b) > 1 and up_a[-2] == up_b[-2]:
            up_a.pop()
            up_b.pop()
        return up_a + up_b[-2::-1]

    # ---- distances and splits -------------------------------------------------------

    def path_lengths(self) -> FloatArray:
        """Sum of the lengths between all pairs of observed nodes, ``(p, p)``.

        Bottom-up: with ``height[x]`` the distance from an observed ``x`` up to the node
        in hand, a node that joins branches ``A`` and ``B`` fills the block ``A x B`` with
        ``height[A] + height[B]``. Only sums of lengths, so no cancellation, and exactly
        symmetric. ``O(p^2)``.
        """
        p = self.n_observed
        place, begin, end = self._intervals()
        parents, order, via = (a.tolist() for a in self._root0)
        height, half = np.zeros(p), np.zeros((p, p))
        for v in _children_in_turn(parents, order):
            u, b, e = parents[v], begin[v], end[v]
            height[b:e] += self.lengths[via[v]]
            start = begin[u]
            # Either triangle will do, so write along the longer side.
            if e - b <= b - start:
                np.add(height[b:e, None], height[None, start:b], out=half[b:e, start:b])
            else:
                np.add(height[start:b, None], height[None, b:e], out=half[start:b, b:e])
        _mirror(half)
        lengths = np.empty((p, p))
        for i, row in enumerate(place.tolist()):
            np.take(half[row], place, out=lengths[i], mode="clip")  # clip: writes unbuffered
        return lengths

    def _intervals(self) -> tuple[IntArray, list[int], list[int]]:
        """A depth-first order in which the observed nodes below ``v`` are ``begin[v]:end[v]``.

        Returns ``place`` (position of each observed node), ``begin`` and ``end`` for the
        tree hung from node 0.
        """
        p = self.n_observed
        parents, order = (a.tolist() for a in self._root0[:2])
        size = [int(v < p) for v in range(self.n_nodes)]
        for v in reversed(order[1:]):
            size[parents[v]] += size[v]
        begin, cursor = [0] * self.n_nodes, [0] * self.n_nodes
        for v in order:
            if v != 0:
                begin[v] = cursor[parents[v]]
                cursor[parents[v]] += size[v]
            cursor[v] = begin[v] + (v < p)
        end = [b + s for b, s in zip(begin, size, strict=True)]
        return np.array(begin[:p], dtype=np.int64), begin, end

    def splits(self) -> NDArray[np.uint8]:
        """One packed bitset for each edge: the observed nodes cut off from node 0.

        Shape ``(E, ceil(p / 8))``; bits as ``np.packbits`` writes them, so
        ``np.unpackbits(splits, axis=1, count=p)`` gives 0/1 columns, column 0 all zero.
        ``O(n p / 8)`` bytes and time.
        """
        p = self.n_observed
        n_bytes = (p + 7) // 8
        parents, order, via = (a.tolist() for a in self._root0)
        # Whole-number bitsets: one machine call for each node, whatever p.
        below = [1 << (8 * n_bytes - 1 - v) if v < p else 0 for v in range(self.n_nodes)]
        rows = [b""] * self.n_edges
        for v in reversed(order[1:]):
            below[parents[v]] |= below[v]
            rows[via[v]] = below[v].to_bytes(n_bytes, "big")
            below[v] = 0
        packed = np.frombuffer(b"".join(rows), dtype=np.uint8)
        return packed.reshape(self.n_edges, n_bytes)

    def split_sizes(self) -> IntArray:
        """Number of observed nodes that each edge cuts off from node 0, ``(E,)``. ``O(n)``."""
        _, begin, end = self._intervals()
        size = np.array(end, dtype=np.int64) - np.array(begin, dtype=np.int64)
        sizes = np.zeros(self.n_edges, dtype=np.int64)
        order, via = self._root0[1][1:], self._root0[2]
        sizes[via[order]] = size[order]
        return sizes

    def internal_edges(self) -> IntArray:
        """Edges with at least two observed nodes on both sides."""
        sizes = self.split_sizes()
        return np.flatnonzero((sizes >= 2) & (self.n_observed - sizes >= 2))

    # ---- changed copies -------------------------------------------------------------

    def with_lengths(self, lengths: ArrayLike) -> Tree:
        """The same tree with other lengths, ``(E,)``."""
        return Tree(self.names, self.n_observed, self.edges, np.asarray(lengths, float))

    def contract(self, edge_ids: ArrayLike) -> Tree:
        """Merge the two ends of each given edge; the result is canonical.

        A hidden node merges into an observed one. Two observed nodes cannot merge.
        """
        drop = np.zeros(self.n_edges, dtype=bool)
        drop[np.asarray(edge_ids, dtype=np.int64).ravel()] = True
        merged = _merge_ends(self, np.flatnonzero(drop))
        edges = merged[self.edges[~drop]]
        return Tree.build(self.observed_names, edges, self.lengths[~drop])

    # ---- comparison -----------------------------------------------------------------

    def same_topology(self, other: Tree) -> bool:
        """Equal up to the numbering of hidden nodes; observed nodes match by name.

        Both trees are put in one canonical numbering and compared. ``O(n log n)``.
        """
        return _matched_lengths(self, other) is not None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tree):
            return NotImplemented
        pair = _matched_lengths(self, other)
        return pair is not None and bool(np.allclose(*pair))

    # Equality is up to rounding, which no hash can respect.
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return Tree, (self.names, self.n_observed, self.edges, self.lengths)

    # ---- text and export ------------------------------------------------------------

    def __repr__(self) -> str:
        shown = ", ".join(self.observed_names[:3]) + (", ..." if self.n_observed > 3 else "")
        return f"Tree({self.n_observed} observed ({shown}), {self.n_hidden} hidden)"

    def draw(
        self,
        lengths: bool = False,
        root: str | int | None = None,
        *,
        style: Literal["unicode", "ascii"] = "unicode",
        max_lines: int | None = 1000,
        max_depth: int | None = 100,
    ) -> str:
        """A text drawing, hung from ``root`` (the first hidden node unless given).

        Parameters
        ----------
        lengths : write the length of the edge above behind every node.
        style : ``"unicode"`` draws with box characters, ``"ascii"`` with ``|--``.
        max_lines, max_depth : most lines, and most steps below the root; None for all. Nodes near
            the root are drawn first, and a line says how many are left out below which.

        >>> print(Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1, 2, 3]).draw())
        h0
        ├── a
        ├── b
        └── c
        """
        from latenttree.io.drawing import draw

        return draw(self, lengths, root, style=style, max_lines=max_lines, max_depth=max_depth)

    def to_newick(self) -> str:
        """Newick text; see :func:`latenttree.io.newick.to_newick`."""
        from latenttree.io.newick import to_newick

        return to_newick(self)

    @classmethod
    def from_newick(cls, text: str, observed: Sequence[str] | None = None) -> Tree:
        """Read Newick text; see :func:`latenttree.io.newick.from_newick`."""
        from latenttree.io.newick import from_newick

        return from_newick(text, observed)

    def to_networkx(self) -> networkx.Graph[int]:
        """A NetworkX graph; see :func:`latenttree.io.networkx.to_networkx`."""
        from latenttree.io.networkx import to_networkx

        return to_networkx(self)

    # ---- checks ---------------------------------------------------------------------

    def _check_shape(self) -> None:
        if self.n_edges != self.n_nodes - 1:
            raise ValueError(
                f"a tree of {self.n_nodes} nodes has {self.n_nodes - 1} edges, "
                f"got {self.n_edges}; check that edges join every node exactly once"
            )
        if self.edges.size and not 0 <= self.edges.min() <= self.edges.max() < self.n_nodes:
            raise ValueError(
                f"edges name nodes {self.edges.min()}..{self.edges.max()}; "
                f"there are names for 0..{self.n_nodes - 1}"
            )
        reached = len(self._root0[1])
        if reached != self.n_nodes:
            raise ValueError(
                f"edges hold a cycle: only {reached} of {self.n_nodes} nodes are connected "
                f"to {self.names[0]!r}; remove the edge that closes the cycle"
            )
        degree = self.degree()
        weak = self.n_observed + np.flatnonzero(degree[self.n_observed :] < 3)
        if weak.size:
            raise ValueError(
                f"hidden node {self.names[weak[0]]!r} has {degree[weak[0]]} neighbours, "
                f"a hidden node needs at least 3 ({weak.size} such nodes); "
                "contract one of its edges"
            )


def hidden_names(observed: Sequence[str], n_hidden: int) -> tuple[str, ...]:
    """``h0, h1, ...``, with another prefix where an observed name is ``h`` and a number."""
    taken = [name for name in observed if name[-1:].isdigit()]
    prefix = next(
        (c for c in _HIDDEN_PREFIXES if not any(re.fullmatch(rf"{c}\d+", n) for n in taken)),
        "_" * (1 + max((len(name) for name in taken), default=0)),
    )
    return tuple(f"{prefix}{i}" for i in range(n_hidden))


def _frozen(array: NDArray[Any]) -> Any:
    array.flags.writeable = False
    return array


def _as_edges(edges: ArrayLike) -> IntArray:
    array = np.asarray(edges)
    if array.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2 or array.dtype.kind not in "iu":
        raise ValueError(
            f"edges have shape {array.shape} and type {array.dtype}; "
            "pass an (E, 2) array of integers"
        )
    return np.array(array, dtype=np.int64)


def _as_lengths(lengths: ArrayLike, n_edges: int) -> FloatArray:
    array = np.array(lengths, dtype=np.float64)
    if array.shape != (n_edges,):
        raise ValueError(
            f"lengths have shape {array.shape} for {n_edges} edges; pass one length for each edge"
        )
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if bad.size:
        raise ValueError(
            f"length {array[bad[0]]} of edge {bad[0]} is not a finite number >= 0 "
            f"({bad.size} such lengths); clip or drop them first"
        )
    return array


def _check_names(names: tuple[str, ...]) -> None:
    wrong = [name for name in names if not isinstance(name, str)]
    if wrong:
        raise TypeError(f"node name {wrong[0]!r} is {type(wrong[0]).__name__}; names are strings")
    if len(set(names)) == len(names):
        return
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"the name {name!r} is used more than once; make names unique")
        seen.add(name)


def _check_same_names(have: tuple[str, ...], given: tuple[str, ...]) -> None:
    if len(have) == len(given) and set(have) == set(given):
        return
    asked, there = set(given), set(have)
    missing = [name for name in have if name not in asked]
    unknown = [name for name in given if name not in there]
    raise ValueError(
        f"the tree has {len(have)} observed nodes, {len(given)} names were given: "
        f"missing {missing[:5]}, unknown {unknown[:5]}; pass each observed name once"
    )


def _compact_hidden(edges: IntArray, n_observed: int) -> IntArray:
    """Renumber hidden nodes ``n_observed, n_observed + 1, ...`` keeping their order."""
    ids = np.unique(edges)
    ids = ids[ids >= n_observed]
    compact = edges.copy()
    is_hidden = edges >= n_observed
    compact[is_hidden] = n_observed + np.searchsorted(ids, edges[is_hidden])
    return compact


def _canonical_numbering(tree: Tree, rank: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Canonical numbering of the nodes when observed node ``v`` is to be ``rank[v]``.

    Returns the sorted ``(E, 2)`` edges, the index of each in ``tree.edges``, and the new
    number of every node.
    """
    p = tree.n_observed
    root = int(np.flatnonzero(rank == 0)[0])
    parents, order, _ = (
        a.tolist() for a in (tree._root0 if root == 0 else tree._breadth_first(root))
    )
    smallest = rank.tolist() + [p] * tree.n_hidden
    for v in reversed(order[1:]):
        if smallest[v] < smallest[parents[v]]:
            smallest[parents[v]] = smallest[v]
    # A branch is known by the smallest observed node in it: handing the nodes out in that
    # order leaves every list of children sorted.
    children: list[list[int]] = [[] for _ in range(tree.n_nodes)]
    for v in sorted(order[1:], key=smallest.__getitem__):
        children[parents[v]].append(v)
    new_id = rank.tolist() + [0] * tree.n_hidden
    queue, n_named = [root], p
    for v in queue:
        if v >= p:
            new_id[v] = n_named
            n_named += 1
        queue.extend(children[v])
    renumbered = np.array(new_id, dtype=np.int64)
    edges = np.sort(renumbered[tree.edges], axis=1)
    source = np.lexsort((edges[:, 1], edges[:, 0]))
    return edges[source], source, renumbered


def _matched_lengths(a: Tree, b: Tree) -> tuple[FloatArray, FloatArray] | None:
    """Lengths of both trees edge by edge, or None when the topologies differ."""
    if a.n_nodes != b.n_nodes or set(a.observed_names) != set(b.observed_names):
        return None
    first, second = a.canonical(), b.reorder(a.observed_names)
    if not np.array_equal(first.edges, second.edges):
        return None
    return first.lengths, second.lengths


def _climb(parents: IntArray, node: int) -> list[int]:
    """The nodes from ``node`` up to the root."""
    up = [node]
    while parents[up[-1]] >= 0:
        up.append(int(parents[up[-1]]))
    return up


def _children_in_turn(parents: list[int], order: list[int]) -> list[int]:
    """Nodes but the root, deepest first, and brothers in order of their intervals.

    Breadth-first order keeps brothers together, in order of ``begin``; so turn the
    order around by families.
    """
    families: list[list[int]] = []
    for v in order[1:]:
        if families and parents[families[-1][-1]] == parents[v]:
            families[-1].append(v)
        else:
            families.append([v])
    return [v for family in reversed(families) for v in family]


def _mirror(half: FloatArray, tile: int = 256) -> None:
    """Add the transpose in place, by tiles that stay in cache. For each pair one side is 0."""
    p = len(half)
    for i in range(0, p, tile):
        for j in range(i, p, tile):
            both = half[i : i + tile, j : j + tile] + half[j : j + tile, i : i + tile].T
            half[i : i + tile, j : j + tile] = both
            half[j : j + tile, i : i + tile] = both.T


def _merge_ends(tree: Tree, edge_ids: IntArray) -> IntArray:
    """For each node, the node it becomes when the given edges are contracted."""
    target = list(range(tree.n_nodes))

    def find(v: int) -> int:
        while target[v] != v:
            target[v] = target[target[v]]
            v = target[v]
        return v

    for e in edge_ids.tolist():
        low, high = sorted(find(v) for v in tree.edges[e].tolist())
        if high < tree.n_observed:
            raise ValueError(
                f"contracting edge {e} would merge the observed nodes {tree.names[low]!r} and "
                f"{tree.names[high]!r}; leave out one of the edges between them"
            )
        target[high] = low
    return np.array([find(v) for v in range(tree.n_nodes)], dtype=np.int64)
