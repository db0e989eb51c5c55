"""Trees as DOT, which Graphviz draws."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from latenttree.errors import DataError
from latenttree.tree import Tree
from latenttree.tree.checks import as_support


def to_dot(tree: Tree, support: ArrayLike | None = None) -> str:
    """DOT text: observed nodes as boxes, hidden ones as ellipses; `len` and `weight` of an edge,
    its support as a label, negative edges dashed.

    Draw it with `neato -Tsvg tree.dot` or `sfdp`."""
    known = as_support(tree.support if support is None else support, tree.n_edges)
    lines = ["graph latenttree {", "  overlap=false;"]
    for v, name in enumerate(tree.names):
        shape = "box" if v < tree.n_observed else "ellipse"
        lines.append(f"  {v} [label={_quoted(name)}, shape={shape}];")
    for e, (a, b) in enumerate(tree.edges.tolist()):
        length = float(tree.lengths[e])
        options = {"len": f"{length:.6g}", "weight": f"{np.exp(-length):.6g}"}
        if known is not None and not np.isnan(known[e]):
            options["label"] = f'"{known[e]:.2g}"'
        if tree.signs[e] < 0:
            options["style"] = "dashed"
        lines.append(f"  {a} -- {b} [{', '.join(f'{k}={x}' for k, x in options.items())}];")
    return "\n".join([*lines, "}"]) + "\n"


def _quoted(name: str) -> str:
    """A name as a string of DOT, whose only escape is that of quotes; in labels a backslash counts
    too."""
    if "\0" in name:
        what = f"the name {name!r} has the character '\\x00', which DOT cannot hold"
        raise DataError(what, "rename the variable", node=name)
    text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{text}"'
