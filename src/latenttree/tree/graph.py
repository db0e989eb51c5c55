"""Trees as NetworkX graphs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError
from latenttree.tree.rooting import IntArray

if TYPE_CHECKING:
    import networkx


def graph_of(
    names: Sequence[str],
    n_observed: int,
    edges: IntArray,
    lengths: NDArray[np.float64],
    support: ArrayLike | None = None,
) -> networkx.Graph[int]:
    """The graph of `Tree.to_networkx`."""
    known = np.full(len(edges), np.nan) if support is None else np.asarray(support, dtype=float)
    if known.shape != (len(edges),):
        what = f"support has shape {known.shape} for {len(edges)} edges"
        raise DataError(what, "give one for each edge", value=known.shape, option="support")
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs NetworkX; run: pip install networkx") from error
    graph: networkx.Graph[int] = networkx.Graph()
    for v, name in enumerate(names):
        graph.add_node(v, name=name, observed=v < n_observed)
    values = zip(edges.tolist(), lengths.tolist(), known.tolist(), strict=True)
    for (a, b), length, value in values:
        graph.add_edge(a, b, length=length, **({} if math.isnan(value) else {"support": value}))
    return graph
