"""Trees as Newick and NEXUS text."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from typing import Literal

from latenttree.errors import DataError
from latenttree.tree.newick import is_number
from latenttree.tree.rooting import children_of
from latenttree.tree.text_root import TextRoot

SupportStyle = Literal["label", "comment"]

_PLAIN = re.compile(r"[^\s()\[\]{}'\",:;=_/\\]+")


def write_newick(
    names: Sequence[str],
    n_observed: int,
    root: TextRoot,
    signs: Sequence[int] | None,
    support: Sequence[float] | None,
    style: SupportStyle | None,
) -> str:
    """The text of `Tree.to_newick`; `signs` and `support` are those of the edges."""
    labels = [quoted(name) for name in names]
    labels += [""] * (len(root.lengths) - len(names))  # a root inside an edge
    for v in root.rooted.order.tolist():
        e, notes = int(root.rooted.edges[v]), []
        known = "" if support is None or e < 0 or math.isnan(support[e]) else f"{support[e]:.6g}"
        if style == "label" and v >= n_observed:
            labels[v] = known
        if signs is not None and e >= 0 and signs[e]:
            notes.append(f"sign={1 if v == root.second else signs[e]}")
        if style == "comment" and known:
            notes.append(f"support={known}")
        labels[v] += f"[&{','.join(notes)}]" if notes else ""
        labels[v] += f":{root.lengths[v]!r}" if e >= 0 else ""
    start = int(root.rooted.order[0])
    return "".join(_pieces(start, children_of(root.rooted), labels)) + ";"


def write_nexus(newick: str, observed: Sequence[str], rooted: bool) -> str:
    """NEXUS text of one tree: a block of the taxa, a block with the tree.

    NEXUS does not tell capitals from small letters in names."""
    seen: dict[str, str] = {}
    for name in observed:
        other = seen.setdefault(name.lower(), name)
        if other != name:
            what = f"the names {other!r} and {name!r} differ in capitals alone, which NEXUS does "
            remedy = "rename one, or write Newick"
            raise DataError(what + "not tell apart", remedy, value=name, node=name)
    taxa = " ".join(map(quoted, observed))
    return (
        "#NEXUS\n\nBEGIN TAXA;\n"
        f"  DIMENSIONS NTAX={len(observed)};\n  TAXLABELS {taxa};\nEND;\n\n"
        f"BEGIN TREES;\n  TREE latenttree = [&{'R' if rooted else 'U'}] {newick}\nEND;\n"
    )


def _pieces(root: int, children: list[list[int]], labels: list[str]) -> Iterator[str]:
    """Text of the nodes in depth-first order; a stack, so that depth costs no recursion."""
    stack: list[tuple[str, int]] = [("open", root)]
    while stack:
        step, v = stack.pop()
        if step == "comma":
            yield ","
        elif step == "close" or not children[v]:
            yield labels[v] if step == "open" else ")" + labels[v]
        else:
            yield "("
            stack.append(("close", v))
            for i, u in enumerate(reversed(children[v])):
                stack.extend([("comma", u)] if i else [])
                stack.append(("open", u))


def quoted(name: str) -> str:
    """A name as Newick and NEXUS write it."""
    if _PLAIN.fullmatch(name) and not is_number(name):
        return name
    return "'" + name.replace("'", "''") + "'"
