"""The class `Tree`.

Nodes are ``0..n_nodes-1``; the first ``n_observed`` are observed, in the order of the
input, and the hidden ones follow. Every hidden node has at least three neighbours, so the
set of splits (one bipartition of the observed nodes for each edge) determines the topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError, check_option
from latenttree.tree.checks import (
    as_edges,
    as_lengths,
    as_signs,
    as_support,
    check_connected,
    check_degrees,
    check_edges,
)
from latenttree.tree.collapsing import checked_support, contractible
from latenttree.tree.cutting import cut_groups, edge_weights
from latenttree.tree.drawing import Style, draw_text
from latenttree.tree.graph import graph_of
from latenttree.tree.names import check_node_names, check_same_names, hidden_names
from latenttree.tree.newick import parse_newick, write_newick
from latenttree.tree.numbering import canonical_numbers, compact_hidden, merged_nodes
from latenttree.tree.path_lengths import branch_intervals, path_lengths
from latenttree.tree.rooting import (
    Adjacency,
    IntArray,
    ParentEdges,
    Rooted,
    adjacency_of,
    breadth_first,
    frozen,
    path_to_root,
)
from latenttree.tree.signs import SignArray, contracted_signs, path_signs, signs_agree

if TYPE_CHECKING:
    import networkx

FloatArray = NDArray[np.float64]

NEGATIVE = " (-)"
"""Mark of a negative edge in a drawing."""


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree whose first ``n_observed`` nodes are observed and whose other nodes are hidden.

    Parameters
    ----------
    names : names of all the nodes, observed first; unique.
    n_observed : number of observed nodes, at least 1.
    edges : ``(n_nodes - 1, 2)`` integers.
    lengths : ``(n_nodes - 1,)`` finite and not negative.
    signs : ``(n_nodes - 1,)`` +1 or -1, the sign of the correlation of the two ends of each edge; 0
        where they have none (one of them has values without an order, or the edge joins parts
        without dependence). The product along a path is the sign of the correlation of its ends.
        All 0 unless given.
    support : ``(n_nodes - 1,)`` support of each edge in [0, 1], NaN where unknown; None, the
        default, for a tree without evidence.

    The constructor checks and keeps the order it is given; ``Tree.build`` also names the
    hidden nodes and sorts the edges, so that equal topologies give equal arrays.
    """

    names: tuple[str, ...]
    n_observed: int
    edges: IntArray
    lengths: FloatArray
    signs: SignArray = None  # type: ignore[assignment]  # zeros, set by __post_init__
    support: FloatArray | None = None

    def __post_init__(self) -> None:
        names = tuple(self.names)
        edges = as_edges(self.edges)
        lengths = as_lengths(self.lengths, len(edges))
        support = as_support(self.support, len(edges))
        check_node_names(names)
        if not 1 <= self.n_observed <= len(names):
            what = f"n_observed is {self.n_observed} for {len(names)} names"
            remedy = f"pass a number from 1 to {len(names)}"
            raise DataError(what, remedy, value=self.n_observed, option="n_observed")
        check_edges(edges, len(names))
        for name, value in (
            ("names", names),
            ("n_observed", int(self.n_observed)),
            ("edges", frozen(edges)),
            ("lengths", frozen(lengths)),
            ("signs", frozen(as_signs(self.signs, len(edges)))),
            ("support", None if support is None else frozen(support)),
        ):
            object.__setattr__(self, name, value)
        check_connected(len(self._root0.order), names)
        check_degrees(self.degree(), names, self.n_observed)

    @classmethod
    def build(
        cls,
        observed_names: Iterable[str],
        edges: ArrayLike,
        lengths: ArrayLike,
        signs: ArrayLike | None = None,
        support: ArrayLike | None = None,
    ) -> Tree:
        """The canonical tree: hidden nodes in canonical order, edges sorted.

        Edges may number the hidden nodes by any integers from ``len(observed_names)`` on.
        Hidden nodes are renumbered and named ``h0, h1, ...`` as met breadth first from
        observed node 0, neighbours in order of the smallest observed index in their branch;
        edges are stored as (lower, higher), sorted. Cost ``O(n log n)``.
        """
        observed = tuple(observed_names)
        check_node_names(observed)
        compact = compact_hidden(as_edges(edges), len(observed))
        n_hidden = int(compact.max(initial=len(observed) - 1)) + 1 - len(observed)
        names = observed + hidden_names(observed, n_hidden)
        given = cls(names, len(observed), compact, np.asarray(lengths, float), signs, support)  # type: ignore[arg-type]
        return given.canonical()

    def canonical(self, keep_names: bool = False) -> Tree:
        """The same tree with hidden nodes and edges in the order of ``Tree.build``."""
        return self.reorder(self.observed_names, keep_names)

    def reorder(self, observed_names: Sequence[str], keep_names: bool = False) -> Tree:
        """The canonical tree with the observed nodes in another order.

        Hidden nodes are named anew, unless ``keep_names``.
        """
        observed = tuple(observed_names)
        check_same_names(self.observed_names, observed)
        place = {name: i for i, name in enumerate(observed)}
        new_observed = np.array([place[name] for name in self.observed_names], dtype=np.int64)
        numbers = self._canonical_numbers(new_observed)
        edges = np.sort(numbers[self.edges], axis=1)
        source = np.lexsort((edges[:, 1], edges[:, 0]))
        hidden = hidden_names(observed, self.n_hidden)
        if keep_names:
            hidden = tuple(self.names[v] for v in np.argsort(numbers)[self.n_observed :])
        return Tree(observed + hidden, self.n_observed, edges[source], *self._of_edges(source))

    def _of_edges(self, edges: Any) -> tuple[FloatArray, SignArray, FloatArray | None]:
        """Lengths, signs and support of some edges."""
        support = None if self.support is None else self.support[edges]
        return self.lengths[edges], self.signs[edges], support

    def renumbered(self) -> tuple[Tree, IntArray]:
        """The canonical tree, and the number in it of every node of this one."""
        return self.canonical(), self._canonical_numbers(np.arange(self.n_observed))

    def _canonical_numbers(self, new_observed: IntArray) -> IntArray:
        """New numbers of all nodes, when observed node ``v`` is to be ``new_observed[v]``."""
        root = int(np.flatnonzero(new_observed == 0)[0])
        return canonical_numbers(self.rooted(root), new_observed)

    # ---- size and names -------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return len(self.names)

    @property
    def n_hidden(self) -> int:
        """Number of hidden nodes."""
        return self.n_nodes - self.n_observed

    @property
    def n_edges(self) -> int:
        """Number of edges, ``n_nodes - 1``."""
        return len(self.edges)

    @property
    def observed_names(self) -> tuple[str, ...]:
        """Names of the observed nodes, ``(n_observed,)``."""
        return self.names[: self.n_observed]

    @property
    def hidden_names(self) -> tuple[str, ...]:
        """Names of the hidden nodes, ``(n_hidden,)``."""
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
        return adjacency_of(self.edges, self.n_nodes)

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
        return Rooted(*self._rooted(root)[:2])

    def parent_edges(self, root: str | int = 0) -> IntArray:
        """The edge from each node to its parent in ``rooted(root)``; -1 at the root."""
        return self._rooted(root).edges

    def _rooted(self, root: str | int) -> ParentEdges:
        start = self.index(root)
        return self._root0 if start == 0 else breadth_first(self._adjacency, start)

    @cached_property
    def _root0(self) -> ParentEdges:
        return breadth_first(self._adjacency, 0)

    def path(self, a: str | int, b: str | int) -> list[int]:
        """The nodes from ``a`` to ``b``, both included."""
        parents = self._root0.parents
        up_a = path_to_root(parents, self.index(a))
        up_b = path_to_root(parents, self.index(b))
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
        return path_lengths(self._root0, self.lengths, self.n_observed)

    def path_signs(self) -> SignArray:
        """Sign of the path between all pairs of observed nodes, ``(p, p)``: the product of the
        signs of its edges, 0 where one of them has none. ``O(p^2)``."""
        return path_signs(self._root0, self.signs, self.n_observed)

    def splits(self) -> NDArray[np.uint8]:
        """One packed bitset for each edge: the observed nodes cut off from node 0.

        Shape ``(E, ceil(p / 8))``; bits as ``np.packbits`` writes them, so
        ``np.unpackbits(splits, axis=1, count=p)`` gives 0/1 columns, column 0 all zero.
        ``O(n p / 8)`` bytes and time.
        """
        p = self.n_observed
        n_bytes = (p + 7) // 8
        parents, order, parent_edges = (a.tolist() for a in self._root0)
        # Whole-number bitsets: one machine call for each node, whatever p.
        below = [1 << (8 * n_bytes - 1 - v) if v < p else 0 for v in range(self.n_nodes)]
        rows = [b""] * self.n_edges
        for v in reversed(order[1:]):
            below[parents[v]] |= below[v]
            rows[parent_edges[v]] = below[v].to_bytes(n_bytes, "big")
            below[v] = 0
        packed = np.frombuffer(b"".join(rows), dtype=np.uint8)
        return packed.reshape(self.n_edges, n_bytes)

    def split_sizes(self) -> IntArray:
        """Number of observed nodes that each edge cuts off from node 0, ``(E,)``. ``O(n)``."""
        _, begin, end = branch_intervals(self._root0, self.n_observed)
        size = np.array(end, dtype=np.int64) - np.array(begin, dtype=np.int64)
        sizes = np.zeros(self.n_edges, dtype=np.int64)
        below_root = self._root0.order[1:]
        sizes[self._root0.edges[below_root]] = size[below_root]
        return sizes

    def internal_edges(self) -> IntArray:
        """Edges with at least two observed nodes on both sides."""
        sizes = self.split_sizes()
        return np.flatnonzero((sizes >= 2) & (self.n_observed - sizes >= 2))

    def cut(self, n_groups: int, *, signed: bool = True) -> IntArray:
        """``(p,)`` labels 0, 1, ... of ``n_groups`` groups of the observed nodes.

        Groups are chosen for a large mean similarity within them, where two nodes are as similar as
        `exp(-d / 2)` with `d` the length of the path between them less the edges of leaves, so that
        a variable that is hardly measured (a rare one) is grouped by where it hangs. With
        ``signed`` the similarity has the sign of the path: variables that exclude each other go to
        different groups, also where they hang from one hidden node. Without, a variable and its
        opposite are alike. Greedy, from one group on; see `latenttree.tree.cutting`.
        ``O(n n_groups)`` at most, no matrix of pairs.

        >>> edges = [(0, 4), (1, 4), (2, 4), (3, 4)]
        >>> tree = Tree.build("abcd", edges, [1, 1, 1, 1], [1, -1, 1, -1])
        >>> tree.cut(2).tolist(), tree.cut(2, signed=False).tolist()
        ([0, 1, 0, 1], [0, 1, 1, 1])
        """
        whole = isinstance(n_groups, int | np.integer) and not isinstance(n_groups, bool)
        possible = whole and 1 <= n_groups <= self.n_observed
        remedy = f"give a whole number from 1 to the {self.n_observed} observed nodes"
        check_option("n_groups", n_groups, possible, remedy)
        signs = self.signs if signed else np.ones_like(self.signs)
        leaf = (self.degree() == 1)[self.edges].any(axis=1)
        weights = edge_weights(self._root0, self.lengths, signs, leaf)
        return cut_groups(weights, self._root0.order, self.n_observed, int(n_groups))

    # ---- changed copies -------------------------------------------------------------

    def with_lengths(self, lengths: ArrayLike) -> Tree:
        """The same tree with other lengths, ``(E,)``."""
        return replace(self, lengths=np.asarray(lengths, float))

    def rename(self, mapping: Mapping[str | int, str]) -> Tree:
        """The same tree with other names, by the name or number of nodes; all stay unique.

        >>> Tree.build("abc", [(0, 3), (1, 3), (2, 3)], [1, 1, 1]).rename({"h0": "size"}).names
        ('a', 'b', 'c', 'size')
        """
        names = list(self.names)
        for node, name in mapping.items():
            names[self.index(node)] = name
        return replace(self, names=tuple(names))

    def with_evidence(
        self, *, signs: ArrayLike | None = None, support: ArrayLike | None = None
    ) -> Tree:
        """The same tree with other signs ``(E,)`` and support ``(E,)``; None leaves them."""
        return Tree(
            self.names,
            self.n_observed,
            self.edges,
            self.lengths,
            self.signs if signs is None else as_signs(signs, self.n_edges),
            self.support if support is None else as_support(support, self.n_edges),
        )

    def contract(self, edge_ids: ArrayLike) -> Tree:
        """Merge the two ends of each given edge; the result is canonical.

        Hidden nodes keep their names; of those that merge, the first one's stays. A hidden node
        merges into an observed one. Two observed nodes cannot merge. The signs of
        paths stay: a node that merges over a negative edge is turned round first.
        """
        drop = np.zeros(self.n_edges, dtype=bool)
        drop[np.asarray(edge_ids, dtype=np.int64).ravel()] = True

        def refuse(i: int, low: int, high: int) -> None:
            raise DataError(
                f"contracting edge {np.flatnonzero(drop)[i]} would merge the observed nodes "
                f"{self.names[low]!r} and {self.names[high]!r}",
                "leave out one of the edges between them",
                value=int(np.flatnonzero(drop)[i]),
                node=self.names[high],
            )

        merged = merged_nodes(self.n_nodes, self.n_observed, self.edges[drop], refuse)
        lengths, _, support = self._of_edges(~drop)
        signs = contracted_signs(self._root0, self.edges, self.signs, merged)[~drop]
        kept, places = np.unique(merged, return_inverse=True)
        names = tuple(self.names[v] for v in kept)
        edges = places[self.edges[~drop]]
        contracted = Tree(names, self.n_observed, edges, lengths, signs, support)
        return contracted.canonical(keep_names=True)

    def collapse(self, min_support: float, support: ArrayLike | None = None) -> Tree:
        """The tree without the inner edges whose support is below ``min_support``.

        An inner edge has at least two observed nodes on both sides; contracting it removes its
        split and leaves all others. Edges of leaves stay, and so do edges of unknown support (NaN)
        and edges between two observed nodes, which cannot merge: where contracting all edges of a
        path would merge its two observed ends, the one of most support stays. Signs of paths and
        names of hidden nodes stay as they are, see `contract`.

        Parameters
        ----------
        min_support : a number in [0, 1].
        support : ``(E,)``, by default the tree's own, which `LatentTree` gives ``tree_``.
        """
        own = self.support if support is None else as_support(support, self.n_edges)
        known, inner = checked_support(min_support, own), self.internal_edges()
        weak = inner[known[inner] < min_support]
        chosen = contractible(self.edges[weak], known[weak], self.n_nodes, self.n_observed)
        return self.contract(weak[chosen])

    # ---- comparison -----------------------------------------------------------------

    def same_topology(self, other: Tree) -> bool:
        """Equal up to the numbering of hidden nodes; observed nodes match by name.

        Both trees are put in one canonical numbering and compared. ``O(n log n)``.
        """
        return self._matched(other) is not None

    def _matched(self, other: Tree) -> tuple[Tree, Tree] | None:
        """Both trees with the same numbers of nodes and edges, or None where the topologies
        differ."""
        if self.n_nodes != other.n_nodes or set(self.observed_names) != set(other.observed_names):
            return None
        first, second = self.canonical(), other.reorder(self.observed_names)
        if not np.array_equal(first.edges, second.edges):
            return None
        return first, second

    def __eq__(self, other: object) -> bool:
        """The same topology, lengths up to rounding, and no path between observed nodes that is
        positive in one tree and negative in the other. Support plays no part."""
        if not isinstance(other, Tree):
            return NotImplemented
        pair = self._matched(other)
        if pair is None or not np.allclose(pair[0].lengths, pair[1].lengths):
            return False
        return signs_agree(pair[0]._root0, self.n_observed, pair[0].signs, pair[1].signs)

    # Equality is up to rounding, which no hash can respect.
    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        fields = (self.names, self.n_observed, self.edges, self.lengths, self.signs, self.support)
        return Tree, fields

    # ---- text and export ------------------------------------------------------------

    def __repr__(self) -> str:
        shown = ", ".join(self.observed_names[:3]) + (", ..." if self.n_observed > 3 else "")
        return f"Tree({self.n_observed} observed ({shown}), {self.n_hidden} hidden)"

    def draw(
        self,
        lengths: bool = False,
        root: str | int | None = None,
        *,
        style: Style = "unicode",
        max_lines: int | None = 1000,
        max_depth: int | None = 100,
        notes: Mapping[int, str] | None = None,
    ) -> str:
        """A text drawing, hung from ``root`` (the first hidden node unless given). Behind a name,
        ``(-)`` marks a negative edge above it.

        Parameters
        ----------
        lengths : write the length of the edge above behind every node.
        style : ``"unicode"`` draws with box characters, ``"ascii"`` with ``|--``.
        max_lines, max_depth : most lines, and most steps below the root; None for all. Nodes near
            the root are drawn first, and a line says how many are left out below which.
        notes : texts behind the names of nodes, by the number of the node.

        >>> print(Tree.build(["a", "b", "c"], [(0, 3), (1, 3), (2, 3)], [1, 2, 3]).draw())
        h0
        ├── a
        ├── b
        └── c
        """
        rooted = self._rooted(self._text_root() if root is None else root)
        labels = list(self.names)
        for v in rooted.order[1:].tolist():
            labels[v] += NEGATIVE if self.signs[rooted.edges[v]] < 0 else ""
        for v, note in (notes or {}).items():
            labels[v] += f" {note}"
        if lengths:
            for v in rooted.order[1:].tolist():
                labels[v] += f" {self.lengths[rooted.edges[v]]:.4g}"
        return draw_text(
            rooted, self.names, labels, style=style, max_lines=max_lines, max_depth=max_depth
        )

    def to_newick(self, *, signs: bool = False) -> str:
        """Newick text, hung from the first hidden node; `from_newick` reads the same tree.

        With ``signs``, the sign of the edge above a node stands behind its name as the comment
        ``[&sign=-1]``, where it has one; other readers skip it.

        Lengths are written in full, so reading them gives the same floats. A name is quoted
        when it is a number (else readers may take an internal label for a support value) or
        holds a character with a meaning in Newick, an underscore included.
        """
        rooted = self._rooted(self._text_root())
        lengths = self.lengths[rooted.edges].tolist() if self.n_edges else []
        above = self.signs[rooted.edges].tolist() if signs and self.n_edges else []
        return write_newick(rooted, self.names, lengths, above)

    @classmethod
    def from_newick(cls, text: str, observed: Sequence[str] | None = None) -> Tree:
        """The tree in Newick text.

        Parameters
        ----------
        text : one tree, ended by a semicolon. Comments in square brackets are skipped, but for
            the signs of ``to_newick(signs=True)``;
            underscores stay underscores, and an internal label that is an unquoted number
            is taken for a support value and dropped, unless ``observed`` names it.
        observed : names of the observed nodes, in the order wanted. Default: all leaves and
            all labelled internal nodes but those named ``h0``, ``hidden0``, ..., in order of
            appearance.

        An unlabelled root with two children is suppressed. Lengths are 1 where the text has
        none at all. Labels of hidden nodes are kept as their names.
        """
        return cls(*parse_newick(text, observed)).canonical(keep_names=True)

    def to_networkx(self, support: ArrayLike | None = None) -> networkx.Graph[int]:
        """An undirected NetworkX graph on the node numbers.

        Nodes carry ``name`` and ``observed``. Edges carry ``length``; ``sign`` (+1 or -1) where
        they have one; and ``support``, as given ``(E,)`` or the tree's own, where it is not NaN.
        """
        known = as_support(self.support if support is None else support, self.n_edges)
        return graph_of(self.names, self.n_observed, self.edges, self.lengths, self.signs, known)

    def _text_root(self) -> int:
        """The node that texts hang the tree from: the first hidden one, if there is one."""
        return min(self.n_observed, self.n_nodes - 1)
