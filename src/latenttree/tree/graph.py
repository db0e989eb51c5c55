"""Trees as NetworkX graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.tree.rooting import IntArray
from latenttree.tree.signs import SignArray

if TYPE_CHECKING:
    import networkx


def graph_of(
    names: Sequence[str],
    n_observed: int,
    edges: IntArray,
    lengths: NDArray[np.float64],
    signs: SignArray,
    support: NDArray[np.float64] | None,
) -> networkx.Graph[int]:
    """The graph of `Tree.to_networkx`."""
    known = np.full(len(edges), np.nan) if support is None else support
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs NetworkX; run: pip install networkx") from error
    graph: networkx.Graph[int] = networkx.Graph()
    for v, name in enumerate(names):
        graph.add_node(v, name=name, observed=v < n_observed)
    values = zip(*(a.tolist() for a in (edges, lengths, signs, known)), strict=True)
    for (a, b), length, sign, value in values:
        graph.add_edge(a, b, length=length, **_known(sign, value))
    return graph


def _known(sign: int, support: float) -> dict[str, Any]:
    """What is known of an edge."""
    found: dict[str, Any] = {"sign": sign} if sign else {}
    return found if math.isnan(support) else found | {"support": support}
