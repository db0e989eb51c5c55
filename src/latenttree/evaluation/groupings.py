"""Groupings of variables from what people have: labels by name or by position, or a tree."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from latenttree.engine.arrays import Ints
from latenttree.errors import DataError, described
from latenttree.phrases import listed
from latenttree.tree import Tree
from latenttree.tree.matching import as_tree, is_newick

SHOWN = 5
"""Variables that an error names."""


@dataclass(frozen=True, eq=False)
class Grouping:
    """Labels of variables; their `names`, where they are known; the `tree` that is still to be
    cut into groups."""

    labels: tuple[Any, ...] = ()
    names: tuple[str, ...] | None = None
    tree: Tree | None = None

    def cut_like(self, other: Grouping) -> Grouping:
        """The grouping of a tree cut into as many groups as the other one has."""
        if self.tree is None:
            return self
        if other.tree is not None:
            what = "both groupings are trees"
            remedy = "cut one of them: pass variable_groups(k) of the model, or tree.cut(k)"
            raise DataError(what, remedy, value=self.tree)
        k = min(len(set(_codes(other.labels).tolist())), self.tree.n_observed)
        return replace(self, labels=tuple(self.tree.cut(k).tolist()), tree=None)


def as_grouping(value: Any) -> Grouping:
    """The grouping in a Series, a dict, a DataFrame of two columns (variable, label), a sequence of
    labels, or a tree."""
    if isinstance(value, Mapping):
        return Grouping(tuple(value.values()), tuple(map(str, value)))
    if hasattr(value, "columns") and hasattr(value, "to_dict") and len(value.columns) == 2:
        names, labels = (list(value[column]) for column in value.columns)
        return Grouping(tuple(labels), tuple(map(str, names)))
    if hasattr(value, "index") and hasattr(value, "to_dict"):
        numbered = list(value.index) == list(range(len(value)))
        return Grouping(tuple(value), None if numbered else tuple(map(str, value.index)))
    if isinstance(value, Tree) or is_newick(value) or hasattr(value, "tree_"):
        tree = as_tree(value)
        return Grouping(names=tree.observed_names, tree=tree)
    if isinstance(value, str) or np.ndim(value) != 1:
        what = f"got {described(value)} in place of groups of variables"
        remedy = "pass labels as a Series, a dict or a list, or a tree"
        raise DataError(what, remedy, value=value)
    return Grouping(tuple(np.asarray(value, dtype=object)))


def matched_labels(a: Grouping, b: Grouping) -> tuple[Ints, Ints]:
    """The labels of both as numbers, of the same variables in the same order."""
    if a.names is not None and b.names is not None:
        only_a, only_b = set(a.names) - set(b.names), set(b.names) - set(a.names)
        if only_a or only_b:
            shown = listed(sorted(only_a or only_b), SHOWN)
            what = f"only the {'first' if only_a else 'second'} grouping has {shown}"
            raise DataError(what, "group the same variables", value=sorted(only_a or only_b))
        by_name = dict(zip(b.names, b.labels, strict=True))
        return _codes(a.labels), _codes(tuple(by_name[name] for name in a.names))
    if len(a.labels) != len(b.labels):
        what = f"the groupings have {len(a.labels)} and {len(b.labels)} labels"
        raise DataError(what, "give one label for each variable", value=len(b.labels))
    return _codes(a.labels), _codes(b.labels)


def _codes(labels: Sequence[Any]) -> Ints:
    """Labels as numbers; None and NaN are all different."""
    number: dict[Any, int] = {}
    missing = (x is None or x != x for x in labels)
    keys = [(i,) if gone else x for i, (x, gone) in enumerate(zip(labels, missing, strict=True))]
    return np.array([number.setdefault(key, len(number)) for key in keys], dtype=np.int64)
