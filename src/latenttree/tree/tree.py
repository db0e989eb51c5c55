"""The class `Tree`.

Nodes are ``0..n_nodes-1``; the first ``n_observed`` are observed, in the order of the
input, and the hidden ones follow. Every hidden node has at least three neighbours, so the
set of splits (one bipartition of the observed nodes for each edge) determines the topology.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError, check_option
from latenttree.phrases import counted
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
from latenttree.tree.frames import table_of
from latenttree.tree.graph import graph_of
from latenttree.tree.layout import centre_of, layout_of
from latenttree.tree.linkage import linkage_of
from latenttree.tree.names import check_node_names, check_same_names, hidden_names
from latenttree.tree.newick import parse_newick
from latenttree.tree.newick_writing import SupportStyle, write_newick, write_nexus
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
from latenttree.tree.svg import MOST_NODES, tree_svg
from latenttree.tree.text_root import MIDPOINT, TextRoot, at_node, in_edge, midpoint, outgroup_edge

if TYPE_CHECKING:
    import networkx

FloatArray = NDArray[np.float64]

SUPPORT_REMEDY = "choose 'label', 'comment' or None"

NEGATIVE = " (-)"
"""Mark of a negative edge in a drawing."""

INDEPENDENT = " (independent)"
"""Mark of an edge that joins parts without dependence."""


@dataclass(frozen=True, eq=False, repr=False)
class Tree:
    """A tree whose first ``n_observed`` nodes are observed and whose other nodes are hidden.

    Parameters
    ----------
    names : names of all the nodes, observed first; unique.
    n_observed : number of observed nodes, at least 1.
    edges : ``(n_nodes - 1, 2)`` integers.
    lengths : ``(n_nodes - 1,)`` finite and not negative. Of a learned tree they are information
        distances, ``-log |correlation|`` of the two ends of an edge where both have two states:
        0 where one end determines the other, large where it says little, and correlations multiply
        along paths while lengths add up. With more states it is ``-log |det C|``, the sum of
        ``-log`` of all canonical correlations of the two ends; for DNA under the model of Jukes and
        Cantor that is four times the expected number of substitutions for each site.
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

    def centre(self) -> int:
        """The middle node of a longest path, counted in edges: where drawings hang the tree from.
        ``O(n)``."""
        return centre_of(self._adjacency)

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
        _, begin, end = self._edge_intervals
        return end - begin

    def edge_intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        """The observed nodes in a depth-first order ``(p,)``, and for each edge the interval
        ``begin:end`` of that order, ``(E,)`` each, that it cuts off from node 0. ``O(n)``, once."""
        return self._edge_intervals

    @cached_property
    def _edge_intervals(self) -> tuple[IntArray, IntArray, IntArray]:
        place, begin, end = branch_intervals(self._root0, self.n_observed)
        child = self._root0.order[1:]
        edge = np.argsort(self._root0.edges[child])
        first, last = (np.array(a, dtype=np.int64)[child][edge] for a in (begin, end))
        return np.argsort(place), first, last

    def internal_edges(self) -> IntArray:
        """Edges with at least two observed nodes on both sides."""
        sizes = self.split_sizes()
        return np.flatnonzero((sizes >= 2) & (self.n_observed - sizes >= 2))

    def cut(self, k: int, *, min_size: int = 1, signed: bool = True) -> IntArray:
        """``(p,)`` labels 0, 1, ... of ``k`` groups of the observed nodes; of fewer where there are
        no more of at least ``min_size`` members.

        Groups are chosen for a large mean similarity within them, where two nodes are as similar as
        `exp(-d / 2)` with `d` the length of the path between them less the edges of leaves, so that
        a variable that is hardly measured (a rare one) is grouped by where it hangs. With
        ``signed`` the similarity has the sign of the path: variables that exclude each other go to
        different groups, also where they hang from one hidden node. Without, a variable and its
        opposite are alike. Greedy, from one group on; see `latenttree.tree.cutting`.
        ``O(n k)`` at most, no matrix of pairs.

        >>> edges = [(0, 4), (1, 4), (2, 4), (3, 4)]
        >>> tree = Tree.build("abcd", edges, [1, 1, 1, 1], [1, -1, 1, -1])
        >>> tree.cut(2).tolist(), tree.cut(2, signed=False).tolist()
        ([0, 1, 0, 1], [0, 1, 1, 1])
        """
        remedy = f"give a whole number from 1 to the {self.n_observed} observed nodes"
        for name, value in (("k", k), ("min_size", min_size)):
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            check_option(name, value, whole and 1 <= value <= self.n_observed, remedy)
        signs = self.signs if signed else np.ones_like(self.signs)
        leaf = (self.degree() == 1)[self.edges].any(axis=1)
        weights = edge_weights(self._root0, self.lengths, signs, leaf)
        return cut_groups(weights, self._root0.order, self.n_observed, int(k), int(min_size))

    def to_linkage(self, scale: Literal["length", "correlation"] = "length") -> FloatArray:
        """``(p - 1, 4)`` the tree as a linkage of SciPy, for its dendrograms and for heat maps of
        other libraries; leaf ``i`` is observed node ``i``.

        The tree is hung from the middle of the longest path between observed nodes; an observed
        inner node is a leaf at its place. Branches that meet at a node merge at twice the distance
        from it to the farthest observed node below; three or more branches at the same height. So
        every clade is higher than those in it by twice the length of an edge or more, and if all
        observed nodes are as far from the root (an ultrametric tree), heights are the lengths of
        the paths.

        Parameters
        ----------
        scale : "length"; or "correlation": heights are ``1 - exp(-height)``, from 0 to 1. Where
            lengths are ``-log |correlation|``, as of binary and real variables, this is
            ``1 - |correlation|``.

        ``O(n log n)``.

        >>> edges = [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)]
        >>> Tree.build("abcd", edges, [1, 1, 2, 2, 2]).to_linkage().tolist()
        [[0.0, 1.0, 2.0, 2.0], [2.0, 3.0, 4.0, 2.0], [4.0, 5.0, 5.0, 4.0]]
        """
        possible = isinstance(scale, str) and scale in ("length", "correlation")
        check_option("scale", scale, possible, "choose 'length' or 'correlation'")
        linkage = linkage_of(self._adjacency, self.lengths, self.n_observed)
        if scale == "correlation":
            linkage[:, 2] = -np.expm1(-linkage[:, 2])
        return linkage

    def _mark(self, edge: int) -> str:
        """What a drawing says of an edge."""
        if self.signs[edge] < 0:
            return NEGATIVE
        joins = self.support is not None and self.support[edge] == 0 and self.signs[edge] == 0
        return INDEPENDENT if joins else ""

    def to_frame(self, library: Literal["pandas", "polars"] = "pandas") -> Any:
        """The edges as a DataFrame of pandas or polars, one row each in the order of `edges`:
        names of the two ends, length, sign (0 where it has none), support (NaN where unknown), and
        whether it is an inner edge, with two or more observed nodes on both sides."""
        return table_of(self.edge_columns(), library)

    def edge_columns(self) -> dict[Any, Any]:
        """The columns of `to_frame`, by name."""
        inner = np.zeros(self.n_edges, dtype=np.bool_)
        inner[self.internal_edges()] = True
        support = np.full(self.n_edges, np.nan) if self.support is None else self.support
        names = np.array(self.names, dtype=object)
        return {
            "node_a": names[self.edges[:, 0]],
            "node_b": names[self.edges[:, 1]],
            "length": self.lengths,
            "sign": self.signs.astype(np.int64),
            "support": support,
            "inner": inner,
        }

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
        path would merge its two observed ends, the one of most support stays. In a tree with signs
        the edges of support 0 without one, which join parts without dependence, stay too: merged
        hidden nodes would look like one. Signs of paths and names of hidden nodes stay as they are,
        see `contract`.

        Parameters
        ----------
        min_support : a number in [0, 1].
        support : ``(E,)``, by default the tree's own, which `LatentTree` gives ``tree_``.
        """
        own = self.support if support is None else as_support(support, self.n_edges)
        known, inner = checked_support(min_support, own), self.internal_edges()
        joins = (known == 0) & (self.signs == 0) & self.signs.any()
        weak = inner[(known[inner] < min_support) & ~joins[inner]]
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

    def _repr_svg_(self) -> str | None:
        """A small picture for notebooks; None where the tree is too large for one."""
        if self.n_nodes > MOST_NODES:
            return None
        layout = layout_of(self._rooted(self.centre()), self.n_observed)
        return tree_svg(layout, self.names, self.n_observed, self.edges, self.signs)

    def _repr_html_(self) -> str:
        """What notebooks show: the sizes of the tree, and its small picture."""
        sizes = f"{counted(self.n_observed, 'observed node')}, {self.n_hidden:,} hidden"
        return f"<div>Tree: {sizes}</div>{self._repr_svg_() or ''}"

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
        """A text drawing, hung from ``root`` (the `centre` of the tree unless given). Behind a
        name, ``(-)`` marks a negative edge above it, ``(independent)`` one that joins parts without
        dependence.

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
        rooted = self._rooted(self.centre() if root is None else root)
        labels = list(self.names)
        for v in rooted.order[1:].tolist():
            labels[v] += self._mark(int(rooted.edges[v]))
        for v, note in (notes or {}).items():
            labels[v] += f" {note}"
        if lengths:
            for v in rooted.order[1:].tolist():
                labels[v] += f" {self.lengths[rooted.edges[v]]:.4g}"
        return draw_text(
            rooted, self.names, labels, style=style, max_lines=max_lines, max_depth=max_depth
        )

    def to_newick(
        self,
        *,
        signs: bool = False,
        support: SupportStyle | None = None,
        root: str | int | Sequence[str] | None = None,
    ) -> str:
        """Newick text; `from_newick` reads the same tree.

        Lengths are information distances, see the class, written in full, so reading them gives the
        same floats. A name is quoted when it is a number (else readers may take an internal label
        for a support value) or holds a character with a meaning in Newick, an underscore included.

        Parameters
        ----------
        signs : write the sign of the edge above a node, where it has one, behind its name as the
            comment ``[&sign=-1]``; other readers skip it.
        support : "comment" writes the support of that edge as ``[&support=0.97]``, which FigTree
            shows and `from_newick` reads; "label" in place of the names of hidden nodes, where
            most programs look for it. None leaves it out.
        root : the node to hang the tree from, the first hidden one if left out; "midpoint" for the
            middle of the longest path; or a list of observed names, the outgroup, for the middle of
            the edge that separates them from all others.

        >>> tree = Tree.build("abcd", [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)], [1, 1, 1, 1, 2])
        >>> tree.to_newick(root=["c", "d"])
        '((a:1.0,b:1.0)h0:1.0,(c:1.0,d:1.0)h1:1.0);'
        """
        check_option("support", support, support in (None, "label", "comment"), SUPPORT_REMEDY)
        if support is not None and self.support is None:
            what = "the tree has no support to write"
            raise DataError(what, "leave out support=", value=support, option="support")
        known = None if self.support is None else self.support.tolist()
        edge_signs = self.signs.tolist() if signs else None
        place = self._place_of_root(root)
        return write_newick(self.names, self.n_observed, place, edge_signs, known, support)

    def to_nexus(
        self,
        *,
        signs: bool = False,
        support: SupportStyle | None = None,
        root: str | int | Sequence[str] | None = None,
    ) -> str:
        """NEXUS text with the observed nodes as taxa; options as in `to_newick`."""
        newick = self.to_newick(signs=signs, support=support, root=root)
        rooted = root is not None and not isinstance(root, int)
        return write_nexus(newick, self.observed_names, rooted)

    def _place_of_root(self, root: str | int | Sequence[str] | None) -> TextRoot:
        """Where a text hangs the tree from, see `to_newick`."""
        adjacency, lengths = self._adjacency, self.lengths
        if self.n_nodes < 2 or root is None:
            return at_node(adjacency, lengths, self._text_root())
        if isinstance(root, int | np.integer) or (isinstance(root, str) and root != MIDPOINT):
            return at_node(adjacency, lengths, self.index(root))
        if isinstance(root, str):
            above, below, share = midpoint(adjacency, lengths)
            edge = next(int(e) for e, u in self._edges_of(above) if u == below)
            return in_edge(adjacency, lengths, np.array([above, below]), edge, share)
        edge = outgroup_edge(adjacency, self.names, self.n_observed, root)
        return in_edge(adjacency, lengths, self.edges[edge], edge, 0.5)

    def _edges_of(self, v: int) -> Iterable[tuple[int, int]]:
        """The edges at a node, and the nodes that they lead to."""
        indptr, indices, edge_ids = self._adjacency
        at = slice(int(indptr[v]), int(indptr[v + 1]))
        return zip(edge_ids[at].tolist(), indices[at].tolist(), strict=True)

    @classmethod
    def from_newick(cls, text: str, observed: Sequence[str] | None = None) -> Tree:
        """The tree in Newick text.

        Parameters
        ----------
        text : one tree, ended by a semicolon. Comments in square brackets are skipped, but for
            the signs and the support of ``to_newick(signs=True, support="comment")``;
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
        """The node that Newick text hangs the tree from: the first hidden one, if there is one."""
        return min(self.n_observed, self.n_nodes - 1)
