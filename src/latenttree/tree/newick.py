"""Trees from Newick text; `newick_writing` writes it.

Every node is labelled there, hidden ones too, so nothing is lost between writing and reading.
Observed nodes that are not leaves are labelled internal nodes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError
from latenttree.tree.names import HIDDEN_PREFIXES, hidden_names

_HIDDEN = re.compile(rf"({'|'.join(HIDDEN_PREFIXES)})\d+")
_TOKEN = re.compile(
    r"(?P<blank>\s+|\[(?!&)[^\]]*\])"
    r"|\[&(?P<note>[^\]]*)\]"
    r"|(?P<mark>[(),:;])"
    r"|'(?P<quoted>(?:[^']|'')*)'"
    r"|(?P<word>[^\s()\[\]',:;]+)"
)


_ROOT, _REMOVED = -1, -2  # in place of a parent


def is_number(text: str) -> bool:
    """Whether a label reads as a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


class _Token(NamedTuple):
    kind: str  # "mark", "quoted", "word" or "note"
    text: str
    at: int


@dataclass
class _Nodes:
    """Nodes in order of appearance; node 0 is the root, and parents come before children."""

    parent: list[int] = field(default_factory=list)
    label: list[str | None] = field(default_factory=list)
    length: list[float | None] = field(default_factory=list)
    at: list[int] = field(default_factory=list)
    sign: list[int] = field(default_factory=list)
    support: list[float] = field(default_factory=list)  # NaN where unknown
    numbered: set[int] = field(default_factory=set)  # nodes whose label may be a support value

    def add(self, parent: int, at: int) -> int:
        self.parent.append(parent)
        self.label.append(None)
        self.length.append(None)
        self.at.append(at)
        self.sign.append(0)
        self.support.append(np.nan)
        return len(self.parent) - 1

    def note(self, v: int, text: str) -> None:
        """Keep the sign and the support that a comment ``[&sign=-1,support=0.9]`` gives the edge
        above node ``v``; other programs write other things there."""
        known = dict(part.split("=", 1) for part in text.split(",") if "=" in part)
        if known.get("sign") in ("1", "+1", "-1"):
            self.sign[v] = int(known["sign"])
        support = known.get("support", "")
        if is_number(support) and 0 <= float(support) <= 1:
            self.support[v] = float(support)


class ParsedTree(NamedTuple):
    """Arguments of `Tree`."""

    names: tuple[str, ...]
    n_observed: int
    edges: NDArray[np.int64]
    lengths: NDArray[np.float64]
    signs: NDArray[np.int8]
    support: NDArray[np.float64] | None


def parse_newick(text: str, observed: Sequence[str] | None = None) -> ParsedTree:
    """Names, edges, lengths, signs and support of a tree in Newick text; see `Tree.from_newick`."""
    nodes = _parse(text)
    wanted = set(() if observed is None else observed)
    for v in nodes.numbered:
        if nodes.label[v] not in wanted:
            nodes.label[v] = None
    _check_labels(nodes)
    _suppress_root(nodes)
    present = [v for v in range(len(nodes.parent)) if nodes.parent[v] != _REMOVED]
    chosen = _observed_nodes(nodes, present, observed)
    is_chosen = set(chosen)
    hidden = [v for v in present if v not in is_chosen]
    number = {v: i for i, v in enumerate(chosen + hidden)}
    joined = [v for v in present if nodes.parent[v] != _ROOT]
    edges = [(number[nodes.parent[v]], number[v]) for v in joined]
    support = np.array([nodes.support[v] for v in joined])
    return ParsedTree(
        _all_names(nodes, chosen, hidden),
        len(chosen),
        np.array(edges, dtype=np.int64).reshape(-1, 2),
        np.array(_lengths(nodes, joined)),
        np.array([nodes.sign[v] for v in joined], dtype=np.int8),
        None if np.isnan(support).all() else support,
    )


def _tokens(text: str) -> Iterator[_Token]:
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            what = {"'": "a quote that is not closed", "[": "a comment that is not closed"}
            _fail(text, at, what.get(text[at], f"an unexpected {text[at]!r}"))
        kind = str(match.lastgroup)
        if kind != "blank":
            yield _Token(kind, match.group(kind), at)
        at = match.end()


def _fail(text: str, at: int, what: str) -> NoReturn:
    around = text[max(0, at - 10) : at + 10]
    raise DataError(
        f"Newick text has {what} at position {at}, near {around!r}",
        "correct the text",
        value=around,
    )


def _parse(text: str) -> _Nodes:
    """Parse in one pass with a current node; depth is bounded by memory alone."""
    nodes = _Nodes()
    current = nodes.add(_ROOT, 0)
    # What may still come for the current node: children, a label, a length.
    stage = "children"
    tokens = _tokens(text)
    for token in tokens:
        if token.kind == "note":
            nodes.note(current, token.text)
        elif token.kind != "mark":
            if stage not in ("children", "label"):
                _fail(text, token.at, f"an unexpected {token.text!r}")
            is_quoted = token.kind == "quoted"
            nodes.label[current] = token.text.replace("''", "'") if is_quoted else token.text
            if stage == "label" and not is_quoted and is_number(token.text):
                nodes.numbered.add(current)
            stage = "length"
        elif token.text == "(" and stage == "children":
            current = nodes.add(current, token.at + 1)
        elif token.text == "," and current != 0:
            current = nodes.add(nodes.parent[current], token.at + 1)
            stage = "children"
        elif token.text == ")" and current != 0:
            current = nodes.parent[current]
            stage = "label"
        elif token.text == ":" and stage != "done":
            after_colon = (t for t in tokens if t.kind != "note")
            nodes.length[current] = _length(text, next(after_colon, None))
            stage = "done"
        elif token.text == ";" and current == 0:
            if (after := next(tokens, None)) is not None:
                _fail(text, after.at, "more text after the tree's ';'")
            return nodes
        else:
            _fail(text, token.at, f"an unexpected {token.text!r}")
    _fail(text, len(text), "a missing ')'" if current else "a missing ';'")


def _length(text: str, token: _Token | None) -> float:
    if token is None:
        _fail(text, len(text), "no length after ':'")
    if token.kind != "word" or not is_number(token.text):
        _fail(text, token.at, f"{token.text!r} in place of a length")
    return float(token.text)


def _check_labels(nodes: _Nodes) -> None:
    inner = set(nodes.parent)
    seen: dict[str, int] = {}
    for v, label in enumerate(nodes.label):
        if label is None and v not in inner:
            raise DataError(
                f"Newick text has a leaf without a name at position {nodes.at[v]}", "name it"
            )
        if label is not None and seen.setdefault(label, v) != v:
            raise DataError(
                f"Newick text has the name {label!r} twice, in the nodes that begin at positions "
                f"{nodes.at[seen[label]]} and {nodes.at[v]}",
                "make names unique",
                node=label,
            )


def _suppress_root(nodes: _Nodes) -> None:
    """Join the two children of an unlabelled root by one edge."""
    children = [v for v, u in enumerate(nodes.parent) if u == 0]
    if nodes.label[0] is not None or len(children) != 2:
        return
    first, second = children
    one, other = nodes.length[first], nodes.length[second]
    if (one is None) != (other is None):
        _fail_length(nodes, first if one is None else second)
    nodes.length[second] = None if one is None or other is None else one + other
    nodes.sign[second] *= nodes.sign[first]
    if np.isnan(nodes.support[second]):
        nodes.support[second] = nodes.support[first]
    nodes.parent[second], nodes.parent[first], nodes.parent[0] = first, _ROOT, _REMOVED


def _observed_nodes(nodes: _Nodes, present: list[int], observed: Sequence[str] | None) -> list[int]:
    if observed is None:
        return _likely_observed(nodes, present)
    node_of = {nodes.label[v]: v for v in present}
    missing = [name for name in observed if name not in node_of]
    if missing:
        what = (
            f"observed holds {missing[0]!r}, which is not in the Newick text ({len(missing)} such "
            "names)"
        )
        raise DataError(what, "take them out of observed", value=missing[0], option="observed")
    return [node_of[name] for name in observed]


def _likely_observed(nodes: _Nodes, present: list[int]) -> list[int]:
    """Labelled nodes that cannot be hidden (under three neighbours) or are not named so."""
    degree = Counter(nodes.parent[v] for v in present)
    for v in present:
        degree[v] += nodes.parent[v] != _ROOT

    def is_observed(v: int) -> bool:
        label = nodes.label[v]
        return label is not None and (degree[v] < 3 or not _HIDDEN.fullmatch(label))

    return [v for v in present if is_observed(v)]


def _all_names(nodes: _Nodes, chosen: list[int], hidden: list[int]) -> tuple[str, ...]:
    """Labels of the observed and hidden nodes; hidden nodes without one are given a name."""
    observed = [str(nodes.label[v]) for v in chosen]
    labels = [nodes.label[v] for v in hidden]
    taken = {label for label in labels if label is not None}
    free = (n for n in hidden_names(observed, len(hidden) + len(taken)) if n not in taken)
    return tuple(observed + [next(free) if label is None else label for label in labels])


def _lengths(nodes: _Nodes, joined: list[int]) -> list[float]:
    lengths = [nodes.length[v] for v in joined]
    if all(length is None for length in lengths):
        return [1.0] * len(lengths)
    for v, length in zip(joined, lengths, strict=True):
        if length is None:
            _fail_length(nodes, v)
    return [float(length) for length in lengths if length is not None]


def _fail_length(nodes: _Nodes, v: int) -> NoReturn:
    name = nodes.label[v]
    raise DataError(
        f"Newick text gives lengths, but none for the node {'' if name is None else repr(name)} "
        f"that begins at position {nodes.at[v]}",
        "give every edge a length, or none",
        node=name,
    )
