"""Models as BIF, the interchange format of Bayesian networks (GeNIe, bnlearn, pgmpy)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator

import numpy as np

from latenttree.engine.arrays import Floats
from latenttree.io.exported import Exported

TAB = "\t"


def to_bif(exported: Exported) -> str:
    """BIF text of a model whose variables are all categorical, an arrow from every node to its
    children.

    Names and labels become words of letters, digits and underscores, all different; those that
    change are kept as JSON strings in the properties `name` and `labels` (with tabs between them)
    of the variable. Probabilities are written in full."""
    model, tree = exported.categorical("BIF"), exported.tree
    words = _words(tree.names)
    states = [exported.labels_of(v, len(cpt)) for v, cpt in enumerate(model.cpts)]
    labels = [_words(map(str, own), numbers=True) for own in states]
    lines = ["network latenttree {", "}"]
    for v, name in enumerate(tree.names):
        lines += [f"variable {words[v]} {{"]
        lines += [f"  type discrete [ {len(labels[v])} ] {{ {', '.join(labels[v])} }};"]
        if words[v] != name:
            lines += [f"  property name = {_escaped(name)} ;"]
        if labels[v] != list(map(str, states[v])):
            lines += [f"  property labels = {_escaped(TAB.join(map(str, states[v])))} ;"]
        lines += ["}"]
    for v in model.order.tolist():
        u = int(model.parents[v])
        own = None if u < 0 else labels[u]
        parent = "" if u < 0 else f" | {words[u]}"
        lines += [f"probability ( {words[v]}{parent} ) {{", *_rows(model.cpts[v], own), "}"]
    return "\n".join(lines) + "\n"


def _rows(cpt: Floats, given: list[str] | None) -> Iterator[str]:
    """The probabilities of the states, for each state of the parent."""
    heads = ["table"] if given is None else [f"({label})" for label in given]
    for head, column in zip(heads, cpt.T, strict=True):
        yield f"  {head} {', '.join(map(plain_number, column.tolist()))};"


def plain_number(value: float) -> str:
    """A number in full, without an exponent, which some readers do not know."""
    return np.format_float_positional(value, trim="0")


def _words(texts: Iterable[str], numbers: bool = False) -> list[str]:
    """A word for each text, all different whatever their capitals; `numbers` may begin words."""
    taken: set[str] = set()
    found = []
    for text in texts:
        word = re.sub(r"\W", "_", text, flags=re.ASCII) or "_"
        if numbers and re.fullmatch(r"-?\d+(\.\d+)?", text):
            word = text
        elif not numbers and not word[0].isalpha():
            word = f"v{word}"
        unique, i = word, 2
        while unique.lower() in taken:
            unique, i = f"{word}_{i}", i + 1
        taken.add(unique.lower())
        found.append(unique)
    return found


def _escaped(text: str) -> str:
    """A JSON string without the characters that readers of properties stumble over."""
    inner = json.dumps(text)[1:-1].replace('\\"', "\\u0022")
    found = re.sub(r"[;={}/]", lambda match: f"\\u{ord(match.group()):04x}", inner)
    return f'"{found}"'
