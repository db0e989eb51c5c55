"""Models as a few fields and flat arrays, and back.

A layout gives the names and sizes of a file's arrays, from its fields: known and bounded before the
arrays are read. `CategoricalArrayLayout` is that of models with categorical hidden nodes,
`GaussianArrayLayout` that of Gaussian trees.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Floats
from latenttree.io import emission_arrays
from latenttree.io.npz import VALUE, Dtype
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

Model = TreeModel | GaussianTreeModel
Arrays = Mapping[str, tuple[NDArray[Any], Dtype]]

MAX_DIM = 2**40

LARGEST = 1e240
"""Largest mean or variance of a Gaussian tree, and inverse of the least variance."""

LEAST_SHARE = 1e-12
"""Least share of the noise in a variance."""


def fields_of(model: Model) -> dict[str, Any]:
    """The fields of a model in a file, besides its tree and its arrays."""
    common = {"root": model.root, "nodes": model.tree.names, "dims": model.dims}
    if isinstance(model, GaussianTreeModel):
        diagonal = [bool(noise.ndim == 1) for noise in model.noise]
        return {"hidden": "gaussian", **common, "diagonal": diagonal}
    return {"hidden": "categorical", **common, "emissions": _emission_fields(model)}


def arrays_of(model: Model) -> Arrays:
    """All numbers of a model as flat arrays."""
    if isinstance(model, GaussianTreeModel):
        parts = {name: getattr(model, name) for name in ("means", "loadings", "noise")}
        return {name: (_joined(given), "<f8") for name, given in parts.items()}
    offsets = np.concatenate([[0], np.cumsum([table.size for table in model.cpts])])
    arrays: dict[str, tuple[NDArray[Any], Dtype]] = {
        "tables": (_joined(model.cpts), "<f8"),
        "offsets": (offsets, "<i8"),
    }
    if model.emissions:
        flat = [
            emission_arrays.emission_values(emission)
            for _, emission in sorted(model.emissions.items())
        ]
        arrays["emissions"] = (np.concatenate(flat), "<f8")
    return arrays


def array_layout(
    record: Mapping[str, Any], tree: Tree, max_bytes: int
) -> CategoricalArrayLayout | GaussianArrayLayout:
    """The layout that the fields of a file give; raises ValueError where they contradict the tree
    or need more than ``max_bytes``."""
    root, dims = _root_and_dims(record, tree)
    layout: CategoricalArrayLayout | GaussianArrayLayout
    if record["hidden"] == "gaussian":
        layout = GaussianArrayLayout(tree, root, dims, _diagonal(record["diagonal"], tree))
    else:
        layout = CategoricalArrayLayout(
            tree, root, dims, *_checked_emissions(record["emissions"], tree)
        )
    declared = VALUE * sum(n for n, _ in layout.sizes().values())
    if declared > max_bytes:
        raise ValueError(
            f"its tables declare {declared:,} bytes, at most {max_bytes:,} are read; pass a "
            "larger max_bytes if you trust it"
        )
    return layout


# ---- categorical hidden nodes -----------------------------------------------------------


@dataclass(frozen=True, eq=False)
class CategoricalArrayLayout:
    """``tables``: every CPT `P(v | parent)` row by row, one after another; ``offsets``: where each
    begins; ``emissions``: the numbers of all distributions that are not categorical."""

    tree: Tree
    root: int
    dims: list[int]
    nodes: list[int]
    families: list[str]
    widths: list[int]

    def sizes(self) -> dict[str, tuple[int, Dtype]]:
        """How many values of which type each array has."""
        sizes: dict[str, tuple[int, Dtype]] = {
            "tables": (sum(self._table_sizes()), "<f8"),
            "offsets": (len(self.dims) + 1, "<i8"),
        }
        if self.nodes:
            each = zip(self.families, self._emission_sizes(), strict=True)
            sizes["emissions"] = (
                sum(emission_arrays.n_values(f, d, k) for f, (d, k) in each),
                "<f8",
            )
        return sizes

    def model(self, arrays: Mapping[str, NDArray[Any]]) -> TreeModel:
        """The model of the arrays; raises ValueError where they cannot be one."""
        sizes = self._table_sizes()
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        if not np.array_equal(arrays["offsets"], offsets):
            raise ValueError("offsets.npy does not fit the numbers of states in model.json")
        parts = np.split(arrays["tables"], offsets[1:-1])
        tables = [part.reshape(d, -1) for part, d in zip(parts, self.dims, strict=True)]
        emissions = {}
        if self.nodes:
            emissions = emission_arrays.read_emissions(
                self.nodes,
                self.families,
                self._emission_sizes(),
                arrays["emissions"],
                self.tree.names,
            )
        return _exact(TreeModel(self.tree, self.root, tuple(tables), emissions), tables)

    def _table_sizes(self) -> list[int]:
        """Values in the table of each node; Python's integers, which do not overflow."""
        return [d * k for d, k in zip(self.dims, self._parent_dims(), strict=True)]

    def _emission_sizes(self) -> list[tuple[int, int]]:
        states = self._parent_dims()
        return [(d, states[v]) for v, d in zip(self.nodes, self.widths, strict=True)]

    def _parent_dims(self) -> list[int]:
        parents = self.tree.rooted(self.root).parents.tolist()
        return [1 if u < 0 else self.dims[u] for u in parents]


def _exact(model: TreeModel, tables: list[Floats]) -> TreeModel:
    """The model with its CPTs as they were saved, to the last bit: the constructor divides columns
    by their sums, which are 1 but for rounding."""
    exact = tuple(np.array(table, dtype=np.float64) for table in tables)
    for table in exact:
        table.flags.writeable = False
    object.__setattr__(model, "cpts", exact)
    return model


def _emission_fields(model: TreeModel) -> dict[str, list[Any]]:
    ordered = sorted(model.emissions.items())
    return {
        "nodes": [v for v, _ in ordered],
        "families": [emission.family for _, emission in ordered],
        "widths": [emission_arrays.width_of(emission) for _, emission in ordered],
    }


def _checked_emissions(
    record: dict[str, Any], tree: Tree
) -> tuple[list[int], list[str], list[int]]:
    names = {"nodes": int, "families": str, "widths": int}
    for name, type_ in names.items():
        values = record.get(name)
        if type(values) is not list or any(type(value) is not type_ for value in values):
            raise ValueError(f"model.json: 'emissions' has no list {name!r} of {type_.__name__}")
    if set(record) != set(names) or len({len(values) for values in record.values()}) != 1:
        raise ValueError("model.json: 'emissions' does not have nodes, families and widths alike")
    nodes, families, widths = (record[name] for name in names)
    inside = all(0 <= v < tree.n_observed for v in nodes)
    if not inside or any(a >= b for a, b in pairwise(nodes)):
        raise ValueError("the nodes of 'emissions' are not observed nodes in their order")
    unknown = next((family for family in families if family not in emission_arrays.ARRAYS), None)
    if unknown is not None:
        raise ValueError(f"the family {unknown[:60]!r} is unknown; upgrade latenttree")
    if any(not 0 < d < MAX_DIM for d in widths):
        raise ValueError("the widths of 'emissions' are not numbers from 1 to less than 2^40")
    return nodes, families, widths


# ---- Gaussian trees ---------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class GaussianArrayLayout:
    """``means``, ``loadings`` and ``noise`` of every node, row by row, one after another."""

    tree: Tree
    root: int
    dims: list[int]
    diagonal: list[bool]

    def sizes(self) -> dict[str, tuple[int, Dtype]]:
        """How many values of which type each array has."""
        parents = self.tree.rooted(self.root).parents.tolist()
        above = [0 if u < 0 else self.dims[u] for u in parents]
        noise = [d if flat else d * d for d, flat in zip(self.dims, self.diagonal, strict=True)]
        return {
            "means": (sum(self.dims), "<f8"),
            "loadings": (sum(d * k for d, k in zip(self.dims, above, strict=True)), "<f8"),
            "noise": (sum(noise), "<f8"),
        }

    def model(self, arrays: Mapping[str, NDArray[Any]]) -> GaussianTreeModel:
        """The model of the arrays; raises ValueError where they cannot be one."""
        known = {
            "root": np.array(self.root),
            "dims": np.array(self.dims, dtype=np.int64),
            "diagonal": np.array(self.diagonal, dtype=np.bool_),
        }
        model = GaussianTreeModel.from_arrays(self.tree, known | dict(arrays))
        with np.errstate(over="ignore", invalid="ignore"):
            for v in range(self.tree.n_nodes):
                _check_gaussian(model, v)
        return model


def _check_gaussian(model: GaussianTreeModel, v: int) -> None:
    """Raise where products of means and variances could overflow, or where the noise is a smaller
    share of the variance than rounding leaves."""
    name, noise, variances = model.tree.names[v], model.noise[v], model.variances(v)
    size = max(np.abs(model.means[v]).max(), variances.max())
    if not (size <= LARGEST and variances.min() >= 1 / LARGEST):
        raise ValueError(
            f"node {name!r} has means or variances beyond {LARGEST:g}, or below {1 / LARGEST:g}"
        )
    deviations = np.sqrt(variances)
    shares = noise / variances
    if noise.ndim == 2:
        shares = np.linalg.eigvalsh(noise / np.outer(deviations, deviations))
    if not shares.min() >= LEAST_SHARE:
        raise ValueError(
            f"noise of {name!r} is not a covariance: it has negative variance, or none (share "
            f"{shares.min():g})"
        )


def _diagonal(values: list[Any], tree: Tree) -> list[bool]:
    if len(values) != tree.n_nodes or any(type(value) is not bool for value in values):
        raise ValueError(
            f"the field 'diagonal' does not say for {tree.n_nodes} nodes whether their noise is"
        )
    return values


# ---- both -------------------------------------------------------------------------------


def _joined(arrays: Any) -> Floats:
    return np.concatenate([np.ravel(a) for a in arrays])


def _root_and_dims(record: Mapping[str, Any], tree: Tree) -> tuple[int, list[int]]:
    """Root and number of states of each node, checked against the tree."""
    if tuple(record["nodes"]) != tree.names:
        raise ValueError(
            "the nodes of model.json are not those of tree.json; the parts do not belong"
        )
    root, dims = record["root"], record["dims"]
    if not 0 <= root < tree.n_nodes:
        raise ValueError(f"the root is node {root}; the nodes are 0..{tree.n_nodes - 1}")
    if len(dims) != tree.n_nodes:
        raise ValueError(f"the field 'dims' has {len(dims)} values for {tree.n_nodes} nodes")
    wrong = next((v for v, d in enumerate(dims) if type(d) is not int or not 0 < d < MAX_DIM), None)
    if wrong is not None:
        raise ValueError(
            f"node {tree.names[wrong]!r} has {str(dims[wrong])[:40]} states; a node has a whole "
            "number of them, at least 1 and less than 2^40"
        )
    return root, dims
