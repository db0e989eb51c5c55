"""tomotopy: hierarchical LDA over words."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from benchmarks.rivals import Answer, Rival, Task
from benchmarks.rivals.hierarchies import from_groups

ITERATIONS = 500


class HierarchicalLda(Rival):
    """`HLDAModel` on documents as lists of the words that are present, once each.

    A word belongs to the topic that most of its occurrences are from; the groups of the tree are
    the words of a topic and of all topics below it. Its likelihood is of running words, not of
    presence, and cannot be compared. Stops after `ITERATIONS`, or when the time is up.
    """

    name = "tomotopy hLDA"
    needs = ("tomotopy",)
    install = "tomotopy"
    given = "depth"

    def suits(self, task: Task) -> bool:
        """Words, depth known."""
        return task.table.kind == "sparse_binary" and bool(task.layers)

    def fit(self, task: Task) -> Answer:
        """The tree of topics, and the topic of each word."""
        task.is_late()  # the clock starts
        assert task.layers
        depth = max(2, len(task.layers))
        model = import_module("tomotopy").HLDAModel(depth=depth, seed=task.seed)
        rows: Any = task.table.rows(0, task.table.n_samples)
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
            if stop > start:
                model.add_doc([str(v) for v in rows.indices[start:stop]])
        done = 0
        while done < ITERATIONS and not task.is_late():
            model.train(1, workers=task.n_jobs)
            done += 1
        topic = _topics(model, task.table.n_vars)
        groups = _below(model, topic, task.table.names)
        more: dict[str, Any] = {"iterations": done, "topics": int(model.live_k)}
        if done < ITERATIONS:
            more["stopped"] = f"{done} of {ITERATIONS} iterations"
        return Answer(from_groups(task.table.names, groups), tuple(topic), more=more)


def _topics(model: Any, p: int) -> list[int]:
    """The topic of each word; words that never occurred are with the root."""
    found = [0] * p
    live = [k for k in range(model.k) if model.is_live_topic(k)]
    sizes = np.asarray(model.get_count_by_topics(), dtype=np.float64)
    weights = np.array([sizes[k] * np.asarray(model.get_topic_word_dist(k)) for k in live])
    for word, best in zip(model.used_vocabs, weights.argmax(axis=0).tolist(), strict=True):
        found[int(word)] = live[best]
    return found


def _below(model: Any, topic: list[int], names: tuple[str, ...]) -> list[list[str]]:
    """The words of each topic and of those below it; the root's are all."""
    groups: dict[int, list[str]] = {}
    for name, k in zip(names, topic, strict=True):
        while model.level(k) > 0:
            groups.setdefault(k, []).append(name)
            k = model.parent_topic(k)
    return list(groups.values())


RIVALS = (HierarchicalLda(),)
