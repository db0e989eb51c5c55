"""Latent tree graphical models: the hidden variables of a table, and the tree that joins them.

>>> import latenttree as lt
>>> lt.Tree.__name__
'Tree'

Names are loaded on first use (PEP 562), so that ``import latenttree`` costs milliseconds
and a script that only draws a saved tree never loads Numba.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latenttree import data, errors, text
    from latenttree.distances.estimate import information_distances
    from latenttree.estimator import LatentTree, load
    from latenttree.evaluation import baselines, datasets, metrics
    from latenttree.structure.from_distances import tree_from_distances
    from latenttree.tree import Tree

__version__ = "0.1.0"

__all__ = [
    "LatentTree",
    "Tree",
    "__version__",
    "baselines",
    "data",
    "datasets",
    "errors",
    "information_distances",
    "load",
    "metrics",
    "text",
    "tree_from_distances",
]

_HOME = {
    "LatentTree": "latenttree.estimator",
    "Tree": "latenttree.tree",
    "information_distances": "latenttree.distances.estimate",
    "load": "latenttree.estimator",
    "tree_from_distances": "latenttree.structure.from_distances",
}
_MODULES = {
    **{name: f"latenttree.evaluation.{name}" for name in ("baselines", "datasets", "metrics")},
    **{name: f"latenttree.{name}" for name in ("data", "errors", "text")},
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(_MODULES[name])
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value  # the next access does not come here
        return value
    raise AttributeError(f"module 'latenttree' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
