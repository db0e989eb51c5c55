"""What ``--json`` prints: one JSON object on stdout and nothing else.

`commands.JSON_KEYS` lists the keys of each command. Numbers that are not finite are null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.cli.wording import in_words

if TYPE_CHECKING:
    from latenttree.goodness_of_fit import TreeFit
    from latenttree.io.treefile import SavedTree
    from latenttree.report import Diagnostics
    from latenttree.tree import Tree

FIGURES = ("explained", "srmr", "cfi", "rmsea", "residual", "n_samples", "n_used", "n_vars")
"""Fields of `TreeFit` that are printed."""


def print_json(record: Mapping[str, Any]) -> None:
    """Print a record; characters beyond ASCII as escapes, so that any terminal can hold them."""
    print(json.dumps(plain(record), allow_nan=False))


def plain(value: Any) -> Any:
    """A value in JSON's own types; keys as text.

    >>> plain({"x": np.array([1.0, np.nan]), 2: ("a", np.int64(3))})
    {'x': [1.0, None], '2': ['a', 3]}
    """
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int) else str(value)


def tree_record(
    tree: Tree,
    report: Diagnostics | SavedTree,
    n_parameters: int | None = None,
    fit: TreeFit | None = None,
) -> dict[str, Any]:
    """What `fit` and `show` print of a tree; a record for every edge."""
    columns = tree.edge_columns() | {"support": report.support}
    rows = zip(*(plain(column) for column in columns.values()), strict=True)
    states: list[int] = [int(k) for k in report.hidden_states] or [
        report.n_states or 0
    ] * tree.n_hidden
    return {
        "n_observed": tree.n_observed,
        "n_hidden": tree.n_hidden,
        "hidden_states": dict(zip(tree.hidden_names, states, strict=False)),
        "edges": [dict(zip(columns, row, strict=True)) for row in rows],
        "support_method": report.support_method or None,
        "n_resamples": report.n_resamples,
        "n_parameters": n_parameters,
        "fit": None if fit is None else {name: getattr(fit, name) for name in FIGURES},
        "messages": [in_words(text) for text in report.messages],
        "stage_seconds": report.stage_seconds,
    }
