"""`Exported`: what files of other programs hold of a fitted model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


@dataclass(frozen=True)
class Exported:
    """A tree, perhaps with its distributions.

    Attributes
    ----------
    tree : with signs and support.
    support : (E,) support of the edges, NaN where unknown; None without.
    model : the distributions, None where a tree has none.
    labels : by number of an observed node, the labels of its states or the names of its
        coordinates; 0, 1, ... of others.
    """

    tree: Tree
    support: Floats | None = None
    model: TreeModel | GaussianTreeModel | None = None
    labels: Mapping[int, Sequence[Any]] = field(default_factory=dict)

    def categorical(self, file_format: str) -> TreeModel:
        """The model, where every node has states; raises where the format cannot hold it."""
        if self.model is None:
            what = f"this tree has no probabilities, and {file_format} files hold nothing else"
            raise DataError(what, "fit with refine='em'")
        if isinstance(self.model, TreeModel) and not self.model.emissions:
            return self.model
        numbers = range(self.tree.n_observed)
        if isinstance(self.model, TreeModel):
            numbers = sorted(self.model.emissions)  # type: ignore[assignment]
        name = self.tree.names[numbers[0]]
        raise DataError(
            f"{file_format} files hold categories alone, but {name!r} is a number or a vector"
            + (f", and so are {len(numbers) - 1} more" if len(numbers) > 1 else ""),
            "write .json or .parquet, which hold every model",
            node=name,
        )

    def labels_of(self, v: int, n: int) -> list[Any]:
        """The labels of `n` states, or coordinates, of a node."""
        found = self.labels.get(v)
        return list(range(n)) if found is None else np.asarray(found, dtype=object).tolist()


def distributions(exported: Exported) -> Iterator[dict[str, Any]]:
    """A record for every node of a model, root first: its name, that of its parent, and what is
    known of it given its parent.

    Categorical: `probabilities` (states, states of the parent). Other families: `mean` and
    `variance` (coordinates, states of the parent). Gaussian trees: `mean` (d,), `loading`
    (d, d of the parent) and `noise`, a covariance or its diagonal."""
    model, names = exported.model, exported.tree.names
    if model is None:
        return
    for v in model.order.tolist():
        u = int(model.parents[v])
        record = {"node": names[v], "parent": names[u] if u >= 0 else None}
        if isinstance(model, GaussianTreeModel):
            values = {"mean": model.means[v], "loading": model.loadings[v], "noise": model.noise[v]}
            n = len(model.means[v])
        elif v in model.emissions:
            mean, variance = model.emissions[v].value_moments()
            record["family"] = model.emissions[v].family
            values, n = {"mean": mean, "variance": variance}, len(mean)
        else:
            values, n = {"probabilities": model.cpts[v]}, len(model.cpts[v])
        yield record | {"labels": exported.labels_of(v, n)} | values
