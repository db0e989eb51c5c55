"""Models as a few fields and flat arrays, and back.

The names and sizes of a file's arrays follow from its fields: they are known and bounded before the
arrays are read.
"""

from __future__ import annotations

from collections.abc import Mapping
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


def array_sizes(
    record: Mapping[str, Any], tree: Tree, max_bytes: int
) -> dict[str, tuple[int, Dtype]]:
    """How many values of which type each array has, by the fields of a file; raises ValueError
    where they contradict the tree or need more than ``max_bytes``."""
    _check_root_and_dims(record, tree)
    if record["hidden"] == "gaussian":
        _check_diagonal(record["diagonal"], tree)
        counts = _gaussian_sizes(record, tree)
    else:
        _check_emissions(record["emissions"], tree)
        counts = _categorical_sizes(record, tree)
    declared = VALUE * sum(counts.values())
    if declared > max_bytes:
        raise ValueError(
            f"its tables declare {declared:,} bytes, at most {max_bytes:,} are read; pass a "
            "larger max_bytes if you trust it"
        )
    return {name: (n, "<i8" if name == "offsets" else "<f8") for name, n in counts.items()}


def model_of(record: Mapping[str, Any], tree: Tree, arrays: Mapping[str, NDArray[Any]]) -> Model:
    """The model of checked fields and their arrays; raises ValueError where they cannot be one."""
    read = _gaussian_model if record["hidden"] == "gaussian" else _categorical_model
    return read(record, tree, arrays)


def _parent_dims(record: Mapping[str, Any], tree: Tree, of_root: int) -> list[int]:
    """States of the parent of each node, `of_root` where it has none; Python's integers, which do
    not overflow."""
    parents = tree.rooted(record["root"]).parents.tolist()
    return [of_root if u < 0 else record["dims"][u] for u in parents]


# ---- categorical hidden nodes -----------------------------------------------------------


def _categorical_sizes(record: Mapping[str, Any], tree: Tree) -> dict[str, int]:
    """``tables``: every CPT `P(v | parent)` row by row, one after another; ``offsets``: where each
    begins; ``emissions``: the numbers of all distributions that are not categorical."""
    sizes = {"tables": sum(_table_sizes(record, tree)), "offsets": tree.n_nodes + 1}
    if record["emissions"]["nodes"]:
        each = zip(record["emissions"]["families"], _emission_sizes(record, tree), strict=True)
        sizes["emissions"] = sum(emission_arrays.n_values(f, d, k) for f, (d, k) in each)
    return sizes


def _table_sizes(record: Mapping[str, Any], tree: Tree) -> list[int]:
    return [d * k for d, k in zip(record["dims"], _parent_dims(record, tree, 1), strict=True)]


def _emission_sizes(record: Mapping[str, Any], tree: Tree) -> list[tuple[int, int]]:
    states, given = _parent_dims(record, tree, 1), record["emissions"]
    return [(d, states[v]) for v, d in zip(given["nodes"], given["widths"], strict=True)]


def _categorical_model(
    record: Mapping[str, Any], tree: Tree, arrays: Mapping[str, NDArray[Any]]
) -> TreeModel:
    offsets = np.concatenate([[0], np.cumsum(_table_sizes(record, tree))])
    if not np.array_equal(arrays["offsets"], offsets):
        raise ValueError("offsets.npy does not fit the numbers of states in model.json")
    parts = np.split(arrays["tables"], offsets[1:-1])
    tables = [part.reshape(d, -1) for part, d in zip(parts, record["dims"], strict=True)]
    given, emissions = record["emissions"], {}
    if given["nodes"]:
        sizes = _emission_sizes(record, tree)
        emissions = emission_arrays.read_emissions(
            given["nodes"], given["families"], sizes, arrays["emissions"], tree.names
        )
    return _exact(TreeModel(tree, record["root"], tuple(tables), emissions), tables)


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


def _check_emissions(record: dict[str, Any], tree: Tree) -> None:
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


# ---- Gaussian trees ---------------------------------------------------------------------


def _gaussian_sizes(record: Mapping[str, Any], tree: Tree) -> dict[str, int]:
    """``means``, ``loadings`` and ``noise`` of every node, row by row, one after another."""
    dims, above = record["dims"], _parent_dims(record, tree, 0)
    noise = [d if flat else d * d for d, flat in zip(dims, record["diagonal"], strict=True)]
    loadings = sum(d * k for d, k in zip(dims, above, strict=True))
    return {"means": sum(dims), "loadings": loadings, "noise": sum(noise)}


def _gaussian_model(
    record: Mapping[str, Any], tree: Tree, arrays: Mapping[str, NDArray[Any]]
) -> GaussianTreeModel:
    known = {name: np.array(record[name]) for name in ("root", "dims", "diagonal")}
    model = GaussianTreeModel.from_arrays(tree, known | dict(arrays))
    with np.errstate(over="ignore", invalid="ignore"):
        for v in range(tree.n_nodes):
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


def _check_diagonal(values: list[Any], tree: Tree) -> None:
    if len(values) != tree.n_nodes or any(type(value) is not bool for value in values):
        raise ValueError(
            f"the field 'diagonal' does not say for {tree.n_nodes} nodes whether their noise is"
        )


# ---- both -------------------------------------------------------------------------------


def _joined(arrays: Any) -> Floats:
    return np.concatenate([np.ravel(a) for a in arrays])


def _check_root_and_dims(record: Mapping[str, Any], tree: Tree) -> None:
    """Nodes, root and number of states of each node belong to the tree."""
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
