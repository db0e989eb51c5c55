"""Names of hidden nodes: given by hand, or made of the variables that tell most about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from latenttree.data import Schema
from latenttree.errors import DataError
from latenttree.interpretation.channels import Channels
from latenttree.interpretation.information import most_informative
from latenttree.interpretation.labels import item_name
from latenttree.interpretation.topics import LEVELS, choose_nodes
from latenttree.tree import Tree

SEPARATOR = "/"
"""Between the words of a name."""

MORE_WORDS = 3
"""Words that a name may have beyond those asked for, to differ from others."""

REVERSE = "less "
"""In front of a word that a higher state has less of, where it has more of none."""


def checked_names(tree: Tree, names: Mapping[int, Any]) -> Tree:
    """The tree with other names of hidden nodes; raises `DataError` where these are no names, or
    not unique."""
    for v, name in names.items():
        if not isinstance(name, str) or not name.strip():
            what = f"{name!r} is no name for the hidden node {tree.names[v]!r}"
            raise DataError(what, "pass a text", value=name, option="name")
        if v < tree.n_observed:
            what = f"{tree.names[v]!r} is an observed variable, whose name comes with the data"
            raise DataError(what, "rename the column and fit again", value=name)
    kept = {name: u for u, name in enumerate(tree.names) if u not in names}
    seen: dict[str, int] = {}
    for v, name in names.items():
        taken = kept.get(name, seen.setdefault(name, v))
        if taken != v:
            what = f"the name {name!r} belongs to another node"
            raise DataError(what, "choose a name that no node has", value=name, option="name")
    return tree.rename({v: str(name) for v, name in names.items()})


def names_by_words(
    tree: Tree, channels: Channels, schema: Schema, n_words: int, n_jobs: int = 1
) -> dict[int, str]:
    """A name for every hidden node: the `n_words` variables that tell most about it and that its
    higher states have more of, as "network/neural".

    Topics have the first choice, in the order in which they are chosen, then the nodes that their
    words tell most about; others that have the same words take up to `MORE_WORDS` more, then a
    number."""
    hidden = range(tree.n_observed, tree.n_nodes)
    best = most_informative(channels, hidden, 2 * (n_words + MORE_WORDS), n_jobs=n_jobs)
    told = best.bits[:, :n_words].sum(axis=1)
    topics = choose_nodes(tree, channels, max(LEVELS), n_jobs)
    rank = {v: i for i, v in enumerate(topics)}
    taken, found = set(tree.observed_names), {}
    order = sorted(hidden, key=lambda v: (rank.get(v, len(rank)), -told[v - hidden[0]], v))
    for row in (v - hidden[0] for v in order):
        known = [
            (item_name(schema, channels, v), d)
            for v, d in zip(best.nodes[row].tolist(), best.directions[row].tolist(), strict=True)
            if v >= 0
        ]
        name = _unique(_words(known), n_words, taken, tree.names[hidden[row]])
        taken.add(name)
        found[hidden[row]] = name
    return found


def _words(known: Sequence[tuple[str, int]]) -> list[str]:
    """The words that a higher state has more of; where there are none, "less" of the others."""
    more = [name for name, direction in known if direction >= 0]
    return more or [REVERSE + name for name, _ in known]


def _unique(words: Sequence[str], n_words: int, taken: set[str], otherwise: str) -> str:
    """A name that is not taken; `otherwise` where no word tells about the node."""
    for n in range(n_words, min(n_words + MORE_WORDS, len(words)) + 1):
        name = SEPARATOR.join(words[:n])
        if name not in taken:
            return name
    base = SEPARATOR.join(words[:n_words]) or otherwise
    number = 2
    while f"{base} {number}" in taken:
        number += 1
    return base if base not in taken else f"{base} {number}"
