"""Topics: hidden nodes to read a whole model by, at levels of detail that nest.

The hidden nodes of a level are a greedy cover of the variables (`covering.py`): each next one adds
most to what the best of them tells about every variable. Those of a coarse level are thus the
first of every finer one. A variable belongs to the hidden node of the finest level that tells most
about it, a topic to the one of the level above that tells most about it, and a coarse topic has the
variables of all the topics in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

import numpy as np

from latenttree.data import Schema
from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import check_option, is_count
from latenttree.interpretation.channels import STATES, Channels
from latenttree.interpretation.covering import greedy_cover
from latenttree.interpretation.information import LEAST_BITS, Informative, most_informative
from latenttree.interpretation.labels import item_name, marked
from latenttree.phrases import counted
from latenttree.tree import Tree
from latenttree.tree.frames import table_of

LEVELS = (10, 50, 200)
"""Default numbers of topics, as far as there are `ITEMS_PER_TOPIC` variables for each."""

ITEMS_PER_TOPIC, ITEMS_PER_SCALE = 12, 5
"""Variables for each topic at least; for each scale of a small table, where no level of `LEVELS`
suits."""

CONSIDERED = 64
"""Variables of a hidden node that count when topics are chosen: those it tells most about."""

ENTROPY_POWER = 0.75
"""What is told about a variable counts by its entropy to the power of minus this. With 0 the topics
are those of frequent words, since these have most entropy; with 1 rare words count as much as
frequent ones, and names of publishers become topics as soon as what the documents are about."""

LISTED = 0.25
"""A variable is listed for a topic to which it tells at least this share of what it tells about
another topic of the same level."""

LINES = 80
"""Lines of the text of topics; finer levels that do not fit are left out, and it says so."""


@dataclass(frozen=True)
class Topic:
    """A hidden node and the variables by which to read it.

    Attributes
    ----------
    name : of the hidden node.
    parent : name of the topic of the level above that it lies in; None at the coarsest level.
    words : variables (or coordinates "group[code]" of vectors) that tell most about it, best first.
    bits : their mutual information with it.
    directions : +1 where a higher state has more of the variable, -1 less, 0 without order.
    share : of samples in its highest state, NaN in a Gaussian tree.
    n_variables : variables that belong to the topic.
    """

    name: str
    parent: str | None
    words: tuple[str, ...]
    bits: tuple[float, ...]
    directions: tuple[int, ...]
    share: float
    n_variables: int

    def __str__(self) -> str:
        """ "word, other (-), ...  [h12, 31 variables, 12% of samples]"."""
        known = [self.name, counted(self.n_variables, "variable")]
        known += [] if np.isnan(self.share) else [f"{self.share:.0%} of samples"]
        return f"{', '.join(self.marked_words)}  [{', '.join(known)}]"

    @property
    def marked_words(self) -> list[str]:
        """The words, "(-)" behind those that a higher state has less of."""
        return [marked(*each) for each in zip(self.words, self.directions, strict=True)]


@dataclass(frozen=True, repr=False)
class Topics(Sequence[Topic]):
    """Topics at one or more levels; a sequence of those of the finest one.

    Attributes
    ----------
    levels : the topics of each level, coarsest first, in order of the number of variables.
    library : of `table` and `words`, "pandas" or "polars".
    """

    levels: tuple[tuple[Topic, ...], ...]
    library: str = "pandas"

    def __len__(self) -> int:
        return len(self.levels[-1]) if self.levels else 0

    def __getitem__(self, index: Any) -> Any:
        return self.levels[-1][index]

    @cached_property
    def table(self) -> Any:
        """A DataFrame with a row for each topic: level (1 is the coarsest), topic, parent, words
        (joined by commas), share, n_variables."""
        rows = [(i, topic) for i, level in enumerate(self.levels, 1) for topic in level]
        columns = {
            "level": [i for i, _ in rows],
            "topic": [topic.name for _, topic in rows],
            "parent": [topic.parent for _, topic in rows],
            "words": [", ".join(topic.marked_words) for _, topic in rows],
            "share": [topic.share for _, topic in rows],
            "n_variables": [topic.n_variables for _, topic in rows],
        }
        return table_of(columns, self.library)

    @cached_property
    def words(self) -> Any:
        """A DataFrame with a row for each word of each topic: level, topic, rank (from 1), word,
        bits, direction."""
        rows = [
            (i, topic.name, rank, *each)
            for i, level in enumerate(self.levels, 1)
            for topic in level
            for rank, each in enumerate(
                zip(topic.words, topic.bits, topic.directions, strict=True), 1
            )
        ]
        names = ("level", "topic", "rank", "word", "bits", "direction")
        columns = zip(*rows, strict=True) if rows else [()] * len(names)
        return table_of({n: list(c) for n, c in zip(names, columns, strict=True)}, self.library)

    def inside(self, topic: Topic, level: int) -> list[Topic]:
        """The topics of a level (from 0) that lie in a topic of the level above; one of them
        is of the same hidden node, and texts do not repeat it."""
        return [other for other in self.levels[level] if other.parent == topic.name]

    def __str__(self) -> str:
        return self.text("topics(level={}), or .table")

    def text(self, finer: str) -> str:
        """The topics, nested, a line each; `finer` says how to ask for a level that does not fit,
        with its number for the braces."""
        n_shown = 1
        while sum(map(len, self.levels[: n_shown + 1])) <= LINES and n_shown < len(self.levels):
            n_shown += 1
        coarsest = self.levels[0] if self.levels else ()
        lines = [line for topic in coarsest for line in self._lines(topic, 0, n_shown)]
        for level in self.levels[n_shown:]:
            lines.append(f"({len(level)} in more detail: {finer.format(len(level))})")
        return "\n".join(lines) or "no topics: the tree has no hidden nodes"

    def _lines(self, topic: Topic, level: int, n_shown: int) -> list[str]:
        found = ["    " * level + str(topic)]
        while level + 1 < n_shown:
            level += 1
            for other in self.inside(topic, level):
                found += [] if other.name == topic.name else self._lines(other, level, n_shown)
        return found

    def __repr__(self) -> str:
        sizes = ", ".join(str(len(level)) for level in self.levels)
        return f"Topics({sizes})\n{self}"

    def _repr_html_(self) -> str:
        """Nested lists that open by a click."""
        coarsest = (self.levels or [()])[0]
        return "".join(self._html(topic, 0) for topic in coarsest) or escape(str(self))

    def _html(self, topic: Topic, level: int) -> str:
        words = ", ".join(map(escape, topic.marked_words))
        known = escape(str(topic).rsplit("  [", 1)[-1].removesuffix("]"))
        line = f"{words} <small style='opacity:.6'>{known}</small>"
        inner = "".join(
            self._html(other, finer)
            for finer in range(level + 1, len(self.levels))
            for other in self.inside(topic, finer)
            if other.name != topic.name
        )
        if not inner:
            return f"<div style='margin-left:1.2em'>{line}</div>"
        return f"<details style='margin-left:1.2em'><summary>{line}</summary>{inner}</details>"


# ---- how they are found ---------------------------------------------------------------


def topics_of(
    tree: Tree,
    channels: Channels,
    schema: Schema,
    n_words: int,
    level: int | Sequence[int] | None = None,
    *,
    library: str = "pandas",
    n_jobs: int = 1,
) -> Topics:
    """The topics of a model; `level` is a number of topics, several, or None for `default_levels`.

    A best-first search for each hidden node, then walks over the whole tree from those of the
    finest level: `O((n_hidden + n_topics n_nodes) k^3)` at most."""
    sizes = checked_levels(level, tree)
    check_option("n_words", n_words, is_count(n_words), "pass a whole number from 1 on")
    chosen = choose_nodes(tree, channels, max(sizes, default=0), n_jobs)
    if not chosen:
        return Topics((), library)
    sizes = tuple(sorted({min(size, len(chosen)) for size in sizes}))
    told = _told(channels, chosen, n_jobs)
    parents = [_parents(tree, channels, chosen, size, n_jobs) for size in sizes[:-1]]
    own = _owners(told)
    levels: list[tuple[Topic, ...]] = []
    for i in reversed(range(len(sizes))):
        if i + 1 < len(sizes):
            own = np.where(own >= 0, parents[i][own], -1)
        above = parents[i - 1][: sizes[i]] if i else None
        most = _most(told, sizes[i])
        found = _Level(tree, channels, schema, chosen[: sizes[i]], told, own, most, above)
        levels.append(found.topics(n_words))
    return Topics(tuple(reversed(levels)), library)


def default_levels(n_items: int) -> tuple[int, ...]:
    """Numbers of topics for so many variables.

    >>> default_levels(3000), default_levels(700), default_levels(25), default_levels(9)
    ((10, 50, 200), (10, 50), (5,), (2,))
    """
    found = tuple(size for size in LEVELS if size * ITEMS_PER_TOPIC <= n_items)
    return found or (min(max(round(n_items / ITEMS_PER_SCALE), 1), LEVELS[0]),)


def checked_levels(level: Any, tree: Tree) -> tuple[int, ...]:
    """The numbers of topics asked for, ascending; raises `DataError` where they make no sense."""
    if level is None:
        return default_levels(tree.n_observed)
    given = [level] if isinstance(level, int | np.integer) else level
    fine = isinstance(given, Sequence | np.ndarray) and len(given) > 0
    fine = fine and not isinstance(given, str) and all(map(is_count, given))
    remedy = "pass a number of topics, for example 10, or several, for example (10, 50)"
    check_option("level", level, bool(fine), remedy)
    return tuple(sorted({int(size) for size in given}))


def choose_nodes(tree: Tree, channels: Channels, n_topics: int, n_jobs: int = 1) -> list[int]:
    """Hidden nodes in the order in which a greedy cover takes them."""
    hidden = np.arange(tree.n_observed, tree.n_nodes)
    near = most_informative(channels, hidden, CONSIDERED, n_jobs=n_jobs)
    gains = near.bits / entropies(channels)[near.nodes] ** ENTROPY_POWER
    rows = greedy_cover(near.nodes, gains, len(channels.kinds), n_topics)
    return [int(hidden[row]) for row in rows]


def entropies(channels: Channels) -> Floats:
    """(nodes of the channels,) bits of each node with states; 1 for a number, which has no bound
    (a hidden node that explains three quarters of its variance tells one bit)."""
    found = np.ones(len(channels.kinds))
    for v in np.flatnonzero(channels.is_item & (channels.kinds == STATES)).tolist():
        own = channels.of_own(v)
        found[v] = max(-float(own @ np.log2(np.maximum(own, 1e-300))), LEAST_BITS)
    return found


def _told(channels: Channels, chosen: Sequence[int], n_jobs: int) -> Informative:
    """All variables by what they tell about each chosen node."""
    return most_informative(channels, chosen, len(channels.kinds), n_jobs=n_jobs)


def _owners(told: Informative) -> Ints:
    """(nodes of the channels,) place of the chosen node that each tells most about, -1 for none."""
    rows, columns = np.nonzero(told.nodes >= 0)
    nodes, bits = told.nodes[rows, columns], told.bits[rows, columns]
    order = np.lexsort((-rows, bits))  # the largest comes last, and of equal ones the first row
    own = np.full(int(nodes.max(initial=-1)) + 1, -1, dtype=np.int64)
    own[nodes[order]] = rows[order]
    return own


def _most(told: Informative, n_coarse: int) -> Floats:
    """(nodes of the channels,) the most that each tells about one of the first chosen nodes."""
    nodes = told.nodes[:n_coarse]
    found = np.zeros(int(told.nodes.max(initial=-1)) + 1)
    np.maximum.at(found, nodes[nodes >= 0], told.bits[:n_coarse][nodes >= 0])
    return found


def _parents(
    tree: Tree, channels: Channels, chosen: Sequence[int], n_coarse: int, n_jobs: int
) -> Ints:
    """(chosen,) for each the place of the coarse topic, one of the first `n_coarse`, that tells
    most about it; of the nearest one in the tree where none tells anything."""
    wanted = np.zeros(len(channels.kinds), dtype=bool)
    wanted[list(chosen[:n_coarse])] = True
    place = {v: i for i, v in enumerate(chosen)}
    best = most_informative(channels, chosen, 1, wanted, n_jobs).nodes[:, 0].tolist()
    near = _nearest(tree, chosen[:n_coarse]) if -1 in best[n_coarse:] else []
    parents = [
        i if i < n_coarse else place[best[i] if best[i] >= 0 else near[v]]
        for i, v in enumerate(chosen)
    ]
    return np.array(parents, dtype=np.int64)


def _nearest(tree: Tree, marked_nodes: Sequence[int]) -> list[int]:
    """For every node the marked node that is fewest edges away."""
    nearest = [-1] * tree.n_nodes
    todo = list(marked_nodes)
    for v in todo:
        nearest[v] = v
    for v in todo:
        for u in tree.neighbors(v).tolist():
            if nearest[u] < 0:
                nearest[u] = nearest[v]
                todo.append(u)
    return nearest


@dataclass(frozen=True)
class _Level:
    """The topics of a level in the making: chosen nodes, what all variables tell about them, the
    topic that every variable belongs to, and the most that it tells about one of the level."""

    tree: Tree
    channels: Channels
    schema: Schema
    chosen: Sequence[int]
    told: Informative
    own: Ints
    most: Floats
    above: Ints | None

    def topics(self, n_words: int) -> tuple[Topic, ...]:
        """All of them, those of most variables first."""
        found = [self._topic(i, n_words) for i in range(len(self.chosen))]
        return tuple(sorted(found, key=lambda topic: -topic.n_variables))

    def _topic(self, i: int, n_words: int) -> Topic:
        nodes, bits = self.told.nodes[i], self.told.bits[i]
        at = np.flatnonzero((nodes >= 0) & (bits >= LISTED * self.most[nodes]))[:n_words]
        members = np.flatnonzero(self.own == i)
        return Topic(
            self.tree.names[self.chosen[i]],
            None if self.above is None else self.tree.names[self.chosen[self.above[i]]],
            tuple(item_name(self.schema, self.channels, v) for v in nodes[at].tolist()),
            tuple(bits[at].tolist()),
            tuple(self.told.directions[i, at].tolist()),
            highest_share(self.channels, self.chosen[i]),
            len(np.unique(self.channels.variables[members])),
        )


def highest_share(channels: Channels, node: int) -> float:
    """Share of samples in the highest state of a node; NaN where it has no states."""
    if channels.kinds[node] != STATES:
        return float("nan")
    return float(channels.own[channels.own_starts[node] + channels.dims[node] - 1])
