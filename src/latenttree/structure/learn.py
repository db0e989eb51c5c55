"""Similarities -> tree: MST groups, merging, sweeps, support, one stage after the other."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.distances.similarity import Similarity, component
from latenttree.engine import Progress
from latenttree.structure.builder import TreeBuilder
from latenttree.structure.consensus import best_tree
from latenttree.structure.contraction import contract_unsupported
from latenttree.structure.edge_evidence import edge_tests
from latenttree.structure.grouping import group_all
from latenttree.structure.independence import dependent_links, parts_of
from latenttree.structure.merging import ZERO_LENGTH, contract_zero, merge
from latenttree.structure.support import fit_support
from latenttree.tree import Tree

FARTHEST = 700.0
"""Length of an edge between variables at infinite distance."""

DUPLICATE = 1e-9
"""Variables at a smaller distance are copies of each other."""


@dataclass(frozen=True, eq=False)
class Structure:
    """A learned tree with, for every edge, its support, and what happened on the way.

    `support` is 1 where an edge was never in doubt (exact distances), 0 for an edge that joins
    parts which the data show no dependence between."""

    tree: Tree
    support: NDArray[np.float64]
    standard_errors: NDArray[np.float64]
    group_sizes: NDArray[np.int64]
    sweeps: list[list[int]]
    n_components: int = 1
    n_duplicates: int = 0
    search: list[list[float]] = field(default_factory=list)
    shape: Literal["latent tree", "hidden Chow-Liu", "given"] = "latent tree"
    notes: tuple[str, ...] = ()

    @classmethod
    def of_tree(cls, tree: Tree) -> Structure:
        """A tree without evidence: every edge is taken as it is."""
        n_edges = len(tree.edges)
        none = np.empty(0, dtype=np.int64)
        return cls(tree, np.ones(n_edges), np.zeros(n_edges), none, [])


class Structures(NamedTuple):
    """The tree of the supported edges; and the same with no edge contracted, None where none was
    or where it was not asked for. `residual`: how far pairs are from what the tree says, see
    `residuals.mean_squared_residual`; NaN where that was not computed."""

    supported: Structure
    whole: Structure | None = None
    residual: float = float("nan")


@dataclass
class _Part:
    """A connected part of the variables and its tree; `members` in global numbers."""

    members: NDArray[np.int64]
    similarity: Similarity
    tree: TreeBuilder = field(init=False)
    changes: list[int] = field(default_factory=list)
    agreement: NDArray[np.float64] | None = None


def structure_of_similarities(
    whole: Similarity,
    names: Sequence[str],
    *,
    sweeps: bool = True,
    min_support: float = 0.5,
    epsilon: float | None = None,
    resolved: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Structure:
    """The tree over variables with the given similarities, see `structures_of_similarities`."""
    return structures_of_similarities(
        whole,
        names,
        sweeps=sweeps,
        min_support=min_support,
        epsilon=epsilon,
        resolved=resolved,
        n_jobs=n_jobs,
        progress=progress,
    ).supported


def structures_of_similarities(
    whole: Similarity,
    names: Sequence[str],
    *,
    sweeps: bool = True,
    min_support: float = 0.5,
    epsilon: float | None = None,
    resolved: bool = False,
    with_whole: bool = False,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Structures:
    """The tree over variables with the given similarities; `with_whole`: also with no edge
    contracted, where any was.

    Parts that the data do not show to be dependent (`dependent_links`) get trees of their own,
    joined by edges of support 0 that have no hidden nodes of their own. `resolved`: one tree of
    all variables, in which nothing is contracted and no support computed.

    Exact similarities need no sweeps and no support: grouping and merging alone are exact.
    """
    progress = progress or Progress()
    uncontracted: list[_Part] = []
    kept, copies, mst = _duplicates(whole)
    reduced = component(replace(whole, mst=mst), kept) if len(copies) else whole
    parts, joins = _components(reduced, not resolved)
    with progress.stage("grouping"):
        groups = [group_all(part.similarity, n_jobs, epsilon) for part in parts]
    with progress.stage("merging"):
        for part, own in zip(parts, groups, strict=True):
            part.tree = merge(part.similarity, own)
    if whole.exact or (epsilon is not None and not sweeps):
        zero = ZERO_LENGTH if whole.exact else float(epsilon or 0) / whole.distance_scale
        for part in parts:
            contract_zero(part.tree, zero)
    else:
        large = [part for part in parts if len(part.members) > 2]
        if sweeps:
            _sweep(large, resolved, n_jobs, progress)
        if not resolved:
            uncontracted = [_copied(part) for part in parts] if with_whole else []
            _contract(large, min_support, n_jobs, progress)
    sizes = sorted((len(group.members) for own in groups for group in own), reverse=True)

    def structure(own: list[_Part]) -> Structure:
        builder = _assemble(own, joins, kept, copies, reduced)
        tree, edge = builder.canonical(names, whole.distance_scale)
        support = builder.support[edge]
        return Structure(
            tree,
            support,
            builder.standard_error[edge] * whole.distance_scale,
            np.array(sizes, dtype=int),
            [part.changes for part in own if part.changes],
            _count_parts(tree, support),
            len(copies),
        )

    supported = structure(parts)
    if sum(len(part.tree.ends) for part in uncontracted) <= sum(len(p.tree.ends) for p in parts):
        return Structures(supported)
    _contract([part for part in uncontracted if len(part.members) > 2], 0.0, n_jobs, progress)
    return Structures(supported, structure(uncontracted))


def _copied(part: _Part) -> _Part:
    """A part with a copy of its tree."""
    own = replace(part)
    own.tree, own.changes = deepcopy(part.tree), part.changes
    own.agreement = None if part.agreement is None else part.agreement.copy()
    return own


def _sweep(parts: list[_Part], resolved: bool, n_jobs: int, progress: Progress) -> None:
    """Sweep over the trees of parts, in place; from two starts at most where the tree is to be
    `resolved` only."""
    with progress.stage("sweeps"):
        for part in parts:
            best, part.agreement = best_tree(part.similarity, part.tree, n_jobs, resolved)
            part.tree, part.changes = best.tree, best.changes


def _contract(parts: list[_Part], min_support: float, n_jobs: int, progress: Progress) -> None:
    """Contract the edges that the data do not support, in place. Variables of a part whose number
    of samples is known were shown to be dependent."""
    with progress.stage("support"):
        for part in parts:
            tests = edge_tests(part.tree, part.similarity, n_jobs)
            dependent = part.similarity.source.n > 1
            model = fit_support(tests, part.tree.n_observed)._replace(dependent=dependent)
            contract_unsupported(
                part.tree, part.similarity, tests, model, min_support, part.agreement, n_jobs
            )


def _count_parts(tree: Tree, support: NDArray[np.float64]) -> int:
    """Parts with an observed node that are left when edges without support are taken away."""
    label = parts_of(tree.edges[support > 0], tree.n_nodes)
    return len(np.unique(label[: tree.n_observed]))


def _duplicates(
    whole: Similarity,
) -> tuple[NDArray[np.int64], list[tuple[int, int]], NDArray[np.int64]]:
    """Variables to keep, `(kept, copy)` for each that is at distance zero from a kept one, and the
    spanning tree with kept variables in the places of their copies."""
    rho = np.abs(whole.of_pairs(whole.mst))
    zero = whole.mst[-np.log(np.maximum(rho, 1e-300)) <= DUPLICATE]
    p = whole.n_variables
    label = parts_of(zero, p)
    _, first = np.unique(label, return_index=True)
    kept = np.sort(first)
    copies = [(int(first[label[v]]), v) for v in range(p) if first[label[v]] != v]
    mst = first[label][whole.mst]
    return kept, copies, mst[mst[:, 0] != mst[:, 1]]


def _components(whole: Similarity, separate: bool) -> tuple[list[_Part], NDArray[np.int64]]:
    """Parts connected by similarities other than zero, or with `separate` by dependence, and the
    spanning edges `(m, 2)` between them."""
    linked = dependent_links(whole) if separate else whole.of_pairs(whole.mst) != 0
    empty = ~linked
    links, p = whole.mst[~empty], whole.n_variables
    label = parts_of(links, p)
    n_parts = int(label.max()) + 1
    if n_parts == 1:
        return [_Part(np.arange(p), whole)], whole.mst[empty]
    members = _by_label(np.arange(p), label)
    number = np.empty(p, dtype=np.int64)
    for own in members:
        number[own] = np.arange(len(own))
    spans = _by_label(links, label[links[:, 0]], n_parts)
    copies = _by_label(whole.copies, label[whole.copies[:, 0]], n_parts)
    parts = []
    for own, span, same in zip(members, spans, copies, strict=True):
        source = whole.source._replace(rows=whole.source.rows[own], sign=whole.source.sign[own])
        part = replace(whole, source=source, mst=number[span], copies=number[same])
        parts.append(_Part(own, part))
    return parts, whole.mst[empty]


def _by_label(
    items: NDArray[np.int64], label: NDArray[np.int64], n_labels: int = 0
) -> list[NDArray[np.int64]]:
    """Items of label 0, of label 1, ..., each in their order."""
    ends = np.cumsum(np.bincount(label, minlength=n_labels))[:-1]
    return np.split(items[np.argsort(label, kind="stable")], ends)


def _assemble(
    parts: list[_Part],
    joins: NDArray[np.int64],
    kept: NDArray[np.int64],
    copies: list[tuple[int, int]],
    reduced: Similarity,
) -> TreeBuilder:
    """One tree in global numbers: the parts', edges that join parts, and edges to duplicates.

    Edges that join parts have support 0 and an infinite standard error. They lead to the centre of
    a part, where it has hidden nodes."""
    p = len(kept) + len(copies)
    ends, n_nodes = [], p
    place = np.arange(p)
    for part in parts:
        part.tree.sort()
        hidden = part.tree.hidden()
        number = np.empty(part.tree.n_nodes, dtype=np.int64)
        number[: part.tree.n_observed] = kept[part.members]
        number[hidden] = n_nodes + np.arange(len(hidden))
        n_nodes += len(hidden)
        ends.append(number[part.tree.ends])
        if len(hidden):
            place[kept[part.members]] = number[_centre(part.tree)]
    rho = np.maximum(np.abs(reduced.of_pairs(joins)), 0.1 / np.sqrt(reduced.n_effective))
    between, same = np.ones(len(joins)), np.ones(len(copies))
    trees = [part.tree for part in parts]
    return TreeBuilder(
        p,
        np.concatenate([*ends, place[kept[joins]], np.reshape(copies, (-1, 2)).astype(np.int64)]),
        np.concatenate([*(tree.length for tree in trees), -np.log(rho), 0 * same]),
        np.concatenate([*(tree.standard_error for tree in trees), np.inf * between, 0 * same]),
        np.concatenate([*(tree.support for tree in trees), 0 * between, same]),
    )


def _centre(tree: TreeBuilder) -> int:
    """The hidden node none of whose branches has many more observed nodes than half of all."""
    incidence = tree.incidence()
    most = np.zeros(tree.n_nodes, dtype=np.int64)
    np.maximum.at(most, incidence.tail, incidence.n_behind)
    hidden = tree.hidden()
    return int(hidden[np.argmin(most[hidden])])
