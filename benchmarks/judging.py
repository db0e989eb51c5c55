"""How a tree, or groups, of a rival compare with the truth."""

from __future__ import annotations

from typing import Any

from benchmarks.data.halves import Known
from benchmarks.rivals import Answer
from latenttree.evaluation.baselines import best_contraction
from latenttree.evaluation.metrics import group_rand_index, robinson_foulds
from latenttree.tree import Tree

SCORES = ("rf", "rf_best", "found", "rand")


def judged(answer: Answer, known: Known | None) -> dict[str, Any]:
    """Against the true tree; None where a rival, or nobody, has what is asked.

    rf : normalised Robinson-Foulds distance.
    rf_best : the same with edges shorter than a threshold contracted, the best one knowing the
        truth: for those who never leave a node with more than three neighbours.
    found : share of the true splits between hidden nodes that are found.
    rand : adjusted Rand index of families, the variables around one hidden node. Of clusterers
        their groups, of others the families of the tree at the best threshold; None of a tree
        without hidden nodes.
    """
    if known is None:
        return dict.fromkeys(SCORES)
    tree, true = answer.tree, known.tree
    scores: dict[str, Any] = dict.fromkeys(SCORES)
    if tree is not None:
        best, _, least = best_contraction(tree, true)
        scores["rf"] = robinson_foulds(true, tree, normalized=True)
        scores["rf_best"] = least
        scores["found"] = found_share(true, tree)
        scores["rand"] = group_rand_index(true, best) if tree.n_hidden else None
    if answer.groups is not None:
        scores["rand"] = rand_index(true, answer.groups)
    return scores


def found_share(true: Tree, found: Tree) -> float | None:
    """Of the splits with two observed nodes on both sides at least."""
    inner = {true.splits()[edge].tobytes() for edge in true.internal_edges().tolist()}
    there = {row.tobytes() for row in found.reorder(true.observed_names).splits()}
    return len(inner & there) / len(inner) if inner else None


def rand_index(true: Tree, groups: tuple[int, ...]) -> float:
    """Of groups of the observed nodes, in their order, with the families of the truth."""
    from sklearn.metrics import adjusted_rand_score

    p = true.n_observed
    family = [next((u for u in true.neighbors(v).tolist() if u >= p), v) for v in range(p)]
    return float(adjusted_rand_score(family, groups))
