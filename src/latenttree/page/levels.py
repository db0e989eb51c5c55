"""The topics of a model as regions of the map, at levels that nest."""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from latenttree.engine.arrays import Floats, Ints
from latenttree.interpretation.topics import Topic, Topics
from latenttree.page.layout import formal_edges
from latenttree.tree import Tree

LONGEST = 3.0
"""Lengths of inner edges count up to here: longer ones are hardly measured."""


def map_levels(tree: Tree, topics: Topics, places: Floats) -> list[dict[str, Any]]:
    """The levels, coarsest first: of each its topics, and of every node the place of its topic in
    them, -1 for none.

    A node belongs to the topic of the finest level whose hidden node is nearest in the tree, and to
    the topics above that one. Parts without dependence, which formal edges join, share no topic."""
    if not topics.levels:
        return []
    finest = topics.levels[-1]
    member = nearest_source(tree, [tree.index(topic.name) for topic in finest])
    found = [map_level(tree, finest, member, places)]
    for below, level in zip(topics.levels[:0:-1], topics.levels[-2::-1], strict=True):
        place = {topic.name: i for i, topic in enumerate(level)}
        above = np.array([*(place[str(topic.parent)] for topic in below), -1])
        member = above[member]
        found.append(map_level(tree, level, member, places))
    return found[::-1]


def map_level(tree: Tree, level: Sequence[Topic], member: Ints, places: Floats) -> dict[str, Any]:
    """Topics of a level with the middle and the reach of their regions."""
    own = member[: tree.n_observed]
    topics = []
    for i, topic in enumerate(level):
        node = tree.index(topic.name)
        region = _region(places[: tree.n_observed][own == i], places[node])
        words = {"words": topic.words[:6], "label": _label(topic)}
        topics.append({"node": node} | words | region)
    return {"member": member.tolist(), "topics": topics}


def _label(topic: Topic) -> str:
    return ", ".join(topic.marked_words[:3]) or topic.name


def _region(places: Floats, own: Floats) -> dict[str, Any]:
    """Number of variables, middle, and about the width of a region; the topic's own place where it
    has no variables."""
    if not len(places):
        return {"size": 0, "x": round(float(own[0]), 2), "y": round(float(own[1]), 2), "reach": 1.0}
    # medians: some variables of a topic may lie in another part of the tree
    x, y = np.median(places, axis=0).tolist()
    reach = 2 * float(np.median(np.hypot(*(places - [x, y]).T))) + 1.0
    return {"size": len(places), "x": round(x, 2), "y": round(y, 2), "reach": round(reach, 2)}


def nearest_source(tree: Tree, sources: Sequence[int]) -> Ints:
    """Of every node the place in ``sources`` of the one at the shortest path, -1 where none is
    reached without a formal edge. ``O(n log n)``."""
    lengths = np.minimum(tree.lengths, LONGEST)
    around: list[list[tuple[int, float]]] = [[] for _ in range(tree.n_nodes)]
    kept = ~formal_edges(tree)
    for (a, b), length in zip(tree.edges[kept].tolist(), lengths[kept].tolist(), strict=True):
        around[a].append((b, length))
        around[b].append((a, length))
    nearest = np.full(tree.n_nodes, -1)
    heap = [(0.0, i, v) for i, v in enumerate(sources)]
    while heap:
        far, i, v = heappop(heap)
        if nearest[v] >= 0:
            continue
        nearest[v] = i
        for u, length in around[v]:
            if nearest[u] < 0:
                heappush(heap, (far + length, i, u))
    return nearest
