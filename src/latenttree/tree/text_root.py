"""Where texts hang a tree from: a node, the midpoint of the longest path, or an outgroup."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError
from latenttree.tree.rooting import Adjacency, IntArray, ParentEdges, breadth_first

MIDPOINT = "midpoint"


class TextRoot(NamedTuple):
    """A rooting, perhaps at a new node behind all others, inside an edge.

    lengths : of the edge above each node, 0 at the root.
    second : with a root inside an edge, the second of the two nodes below it, else -1: together
        they have the sign of the edge.
    """

    rooted: ParentEdges
    lengths: list[float]
    second: int = -1


def at_node(adjacency: Adjacency, lengths: NDArray[np.float64], node: int) -> TextRoot:
    """The tree hung from a node. O(n)."""
    rooted = breadth_first(adjacency, node)
    above = np.append(lengths, 0.0)[rooted.edges]  # -1 at the root
    return TextRoot(rooted, above.tolist())


def in_edge(
    adjacency: Adjacency, lengths: NDArray[np.float64], ends: IntArray, edge: int, share: float
) -> TextRoot:
    """The tree hung from a new node inside an edge, `share` of its length from `ends[0]`. O(n)."""
    first, second = ends.tolist()
    rooted, above, _ = at_node(adjacency, lengths, first)
    n = len(rooted.parents)
    parents, edges = np.append(rooted.parents, -1), np.append(rooted.edges, -1)
    parents[[first, second]] = n
    edges[[first, second]] = edge
    above.append(0.0)
    length = float(lengths[edge])
    above[first], above[second] = share * length, (1 - share) * length
    return TextRoot(ParentEdges(parents, np.append(n, rooted.order), edges), above, second)


def midpoint(adjacency: Adjacency, lengths: NDArray[np.float64]) -> tuple[int, int, float]:
    """The two ends of the edge in whose inside the longest path has its middle, the nearer half
    first, and how far from the first end as a share of its length. O(n)."""
    start, _ = _farthest(adjacency, lengths, 0)
    end, (rooted, depth) = _farthest(adjacency, lengths, start)
    half, below = depth[end] / 2, end
    while depth[rooted.parents[below]] > half:
        below = int(rooted.parents[below])
    above = int(rooted.parents[below])
    length = depth[below] - depth[above]
    return above, below, float((half - depth[above]) / length) if length > 0 else 0.5


def _farthest(
    adjacency: Adjacency, lengths: NDArray[np.float64], start: int
) -> tuple[int, tuple[ParentEdges, NDArray[np.float64]]]:
    """The node that is farthest from `start`, and how deep all nodes are below it."""
    rooted = breadth_first(adjacency, start)
    depth = np.zeros(len(rooted.parents))
    for v in rooted.order[1:].tolist():
        depth[v] = depth[rooted.parents[v]] + lengths[rooted.edges[v]]
    others = rooted.order[1:]
    return int(others[depth[others].argmax()]), (rooted, depth)


def outgroup_edge(
    adjacency: Adjacency, names: Sequence[str], n_observed: int, outgroup: Sequence[str]
) -> int:
    """The edge that separates the observed nodes of the outgroup from all others. O(n)."""
    place = {name: v for v, name in enumerate(names[:n_observed])}
    wrong = next((name for name in outgroup if name not in place), None)
    if wrong is not None:
        what = f"the outgroup names {wrong!r}, which is no observed node"
        raise DataError(what, "name observed nodes", value=wrong, option="root")
    inside = {place[name] for name in outgroup}
    if not 0 < len(inside) < n_observed:
        what = f"the outgroup has {len(inside)} of {n_observed} observed nodes"
        raise DataError(what, "name some, not all", value=list(outgroup), option="root")
    rooted = breadth_first(adjacency, next(v for v in range(n_observed) if v not in inside))
    counts = np.zeros((len(names), 2), dtype=np.int64)  # of the outgroup, of all
    counts[:n_observed, 1] = 1
    counts[list(inside), 0] = 1
    for v in rooted.order[:0:-1].tolist():
        counts[rooted.parents[v]] += counts[v]
        if counts[v, 0] == len(inside):
            if counts[v, 1] == len(inside):
                return int(rooted.edges[v])
            break
    what = f"no edge separates the outgroup {list(inside_names(names, inside))} from the others"
    remedy = "name one observed node, or all of a branch of the tree"
    raise DataError(what, remedy, value=list(outgroup), option="root")


def inside_names(names: Sequence[str], inside: set[int]) -> list[str]:
    """The first few names of the outgroup, for an error."""
    shown = [names[v] for v in sorted(inside)[:5]]
    return [*shown, "..."] if len(inside) > 5 else shown
