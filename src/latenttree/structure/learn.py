"""Distances -> tree: groups, merge, sweeps, support, one stage after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from latenttree.config import check_structure_options
from latenttree.distances.similarity import Affinity, affinity, component
from latenttree.engine import Progress, resolve_jobs
from latenttree.errors import DataError
from latenttree.structure.builder import Wiring
from latenttree.structure.consensus import best_tree
from latenttree.structure.contraction import contract_unsupported
from latenttree.structure.edge_evidence import Edge, EdgeTest, edge_tests
from latenttree.structure.grouping import group_all
from latenttree.structure.merging import contract_zero, merge
from latenttree.structure.support import fit_judge
from latenttree.tree import Tree

FARTHEST = 700.0
"""Length of an edge between variables at infinite distance."""

DUPLICATE = 1e-9
"""Variables nearer than this are one variable seen twice."""


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

    @classmethod
    def of_tree(cls, tree: Tree) -> Structure:
        """A tree without evidence: every edge is taken as it is."""
        n_edges = len(tree.edges)
        none = np.empty(0, dtype=np.int64)
        return cls(tree, np.ones(n_edges), np.zeros(n_edges), none, [])


@dataclass
class _Part:
    """A connected part of the variables on its way to a tree; `members` in global numbers."""

    members: NDArray[np.int64]
    affinity: Affinity
    wiring: Wiring
    changes: list[int] = field(default_factory=list)
    tests: dict[Edge, EdgeTest] = field(default_factory=dict)
    support: dict[Edge, float] = field(default_factory=dict)
    agreement: dict[Edge, float] = field(default_factory=dict)


def structure_of_similarities(
    whole: Affinity,
    names: Sequence[str],
    *,
    sweeps: bool = True,
    min_support: float = 0.5,
    epsilon: float | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> Structure:
    """The tree over variables with the given affinities.

    Exact affinities need no sweeps and no support: grouping and merging alone are exact.
    """
    progress = progress or Progress()
    kept, copies, mst = _duplicates(whole)
    reduced = component(replace(whole, mst=mst), kept) if len(copies) else whole
    parts, joins = _components(reduced)
    with progress.stage("grouping"):
        groups = [group_all(part.affinity, n_jobs, epsilon) for part in parts]
    with progress.stage("merging"):
        for part, own in zip(parts, groups, strict=True):
            part.wiring = merge(part.affinity, own)
    if whole.exact or (epsilon is not None and not sweeps):
        for part in parts:
            contract_zero(part.wiring, 1e-9 if whole.exact else float(epsilon or 0) / whole.scale)
    else:
        in_doubt = [part for part in parts if len(part.members) > 2]
        if sweeps:
            with progress.stage("sweeps"):
                for part in in_doubt:
                    best, part.agreement = best_tree(part.affinity, part.wiring, n_jobs)
                    part.wiring, part.changes = best.wiring, best.changes
        with progress.stage("support"):
            for part in in_doubt:
                _contract(part, min_support, n_jobs)
    rows = _assemble(parts, joins, kept, copies, reduced)
    tree, support, errors = canonical_rows(rows, names, whole.scale)
    return Structure(
        tree,
        support,
        errors,
        np.array(sorted((len(g.members) for own in groups for g in own), reverse=True), dtype=int),
        [part.changes for part in parts if part.changes],
        _count_parts(tree, support),
        len(copies),
    )


def _count_parts(tree: Tree, support: NDArray[np.float64]) -> int:
    """Parts with an observed node that are left when edges without support are taken away."""
    a, b = tree.edges[support > 0].T
    graph = coo_array((np.ones(len(a)), (a, b)), shape=(tree.n_nodes,) * 2)
    _, label = connected_components(graph, directed=False)
    return len(np.unique(label[: tree.n_observed]))


def _contract(part: _Part, min_support: float, n_jobs: int) -> None:
    """Test the edges of a part, and contract what the data do not support."""
    tests = edge_tests(part.wiring, part.affinity, n_jobs)
    judge = fit_judge(tests, part.wiring.n_observed)
    part.tests, part.support = contract_unsupported(
        part.wiring, part.affinity, tests, judge, min_support, part.agreement, n_jobs
    )


def _duplicates(
    whole: Affinity,
) -> tuple[NDArray[np.int64], list[tuple[int, int]], NDArray[np.int64]]:
    """Variables to keep, `(kept, copy)` for each that is at distance zero from a kept one, and the
    spanning tree with kept variables in the places of their copies."""
    strength = np.abs(whole.links(whole.mst))
    zero = whole.mst[-np.log(np.maximum(strength, 1e-300)) <= DUPLICATE]
    p = whole.n_variables
    graph = coo_array((np.ones(len(zero)), (zero[:, 0], zero[:, 1])), shape=(p, p))
    _, label = connected_components(graph, directed=False)
    _, first = np.unique(label, return_index=True)
    kept = np.sort(first)
    copies = [(int(first[label[v]]), v) for v in range(p) if first[label[v]] != v]
    mst = first[label][whole.mst]
    return kept, copies, mst[mst[:, 0] != mst[:, 1]]


def _components(whole: Affinity) -> tuple[list[_Part], NDArray[np.int64]]:
    """Parts connected by any affinity at all, and the spanning edges between them."""
    empty = whole.links(whole.mst) == 0
    links, p = whole.mst[~empty], whole.n_variables
    graph = coo_array((np.ones(len(links)), (links[:, 0], links[:, 1])), shape=(p, p))
    n_parts, label = connected_components(graph, directed=False)
    if n_parts == 1:
        return [_Part(np.arange(p), whole, Wiring(p))], whole.mst[empty]
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
        parts.append(_Part(own, part, Wiring(len(own))))
    return parts, whole.mst[empty]


def _by_label(
    items: NDArray[np.int64], label: NDArray[np.int64], n_labels: int = 0
) -> list[NDArray[np.int64]]:
    """Items of label 0, of label 1, ..., each in their order."""
    ends = np.cumsum(np.bincount(label, minlength=n_labels))[:-1]
    return np.split(items[np.argsort(label, kind="stable")], ends)


Row = tuple[int, int, float, float, float]  # ends, length, support, standard error


def _assemble(
    parts: list[_Part],
    joins: NDArray[np.int64],
    kept: NDArray[np.int64],
    copies: list[tuple[int, int]],
    reduced: Affinity,
) -> list[Row]:
    """All edges in global numbers: the parts', those that join parts, and those to duplicates."""
    edges: list[Row] = []
    fresh = len(kept) + len(copies)
    for part in parts:
        number = dict(enumerate(kept[part.members].tolist()))
        number |= {v: fresh + i for i, v in enumerate(part.wiring.hidden())}
        fresh += len(number)
        for a, b in part.wiring.edges():
            test = part.tests.get((a, b))
            support, error = part.support.get((a, b), 1.0), test.error if test else 0.0
            edges.append((number[a], number[b], part.wiring.links[a][b], support, error))
    strength = np.maximum(np.abs(reduced.links(joins)), 0.1 / np.sqrt(reduced.n))
    for (a, b), distance in zip(kept[joins].tolist(), (-np.log(strength)).tolist(), strict=True):
        edges.append((a, b, distance, 0.0, np.inf))
    return edges + [(a, b, 0.0, 1.0, 0.0) for a, b in copies]


def canonical_rows(
    edges: list[Row], names: Sequence[str], scale: float
) -> tuple[Tree, NDArray[np.float64], NDArray[np.float64]]:
    """The canonical tree with supports and standard errors in the order of its edges.

    `Tree.build` renumbers hidden nodes, so values travel through the builder as lengths."""
    pairs = np.array([e[:2] for e in edges], dtype=np.int64).reshape(-1, 2)
    observed = tuple(names)
    tree = Tree.build(observed, pairs, np.array([e[2] for e in edges]) * scale)
    support = Tree.build(observed, pairs, np.array([e[3] for e in edges])).lengths
    finite = np.array([min(e[4], 1e300) for e in edges])
    errors = Tree.build(observed, pairs, finite).lengths * scale
    return tree, support, np.where(errors >= 1e300, np.inf, errors)


def tree_from_distances(
    D: Any,
    standard_errors: Any = None,
    names: Sequence[str] | None = None,
    *,
    min_support: float = 0.5,
    sweeps: bool = True,
    epsilon: float | None = None,
    n_jobs: int | None = None,
) -> Tree:
    """The tree behind a matrix of distances; exact when the distances are additive on a tree.

    Parameters
    ----------
    D : (p, p) symmetric array of distances, zero on the diagonal; infinity for pairs without any.
    standard_errors : (p, p) array or None. None says that the distances are exact: then edges of
        length zero are contracted and nothing else. With standard errors, topologies are judged by
        likelihood and edges kept by their support.
    names : names of the p variables; x0, x1, ... by default.
    min_support : edges with less support are contracted.
    sweeps : re-solve regions until the tree is consistent (only with standard errors).
    epsilon : use the paper's fixed threshold in grouping instead of noise-aware joining.

    Examples
    --------
    >>> import latenttree as lt
    >>> D = [[0, 2, 3, 3], [2, 0, 3, 3], [3, 3, 0, 2], [3, 3, 2, 0]]
    >>> print(lt.tree_from_distances(D, names=["a", "b", "c", "d"]).to_newick())
    (a:1.0,b:1.0,(c:1.0,d:1.0)h1:1.0)h0;
    """
    distances = _check_distances(D)
    check_structure_options(min_support, epsilon)
    p = len(distances)
    labels = _check_names(names, p)
    errors = None if standard_errors is None else _check_errors(standard_errors, p)
    if p < 3:
        edges = np.array([[0, 1]] if p == 2 else np.empty((0, 2)), dtype=np.int64)
        return Tree.build(labels, edges, np.minimum(distances[0, 1:2], FARTHEST))
    return structure_of_similarities(
        affinity(distances, errors),
        labels,
        sweeps=sweeps,
        min_support=min_support,
        epsilon=epsilon,
        n_jobs=resolve_jobs(n_jobs),
    ).tree


def _check_distances(D: Any) -> NDArray[np.float64]:
    try:
        d = np.array(D)
        d = d.astype(np.float64, casting="same_kind" if d.dtype.kind in "fc" else "unsafe")
    except (TypeError, ValueError) as error:
        raise DataError(f"D is not a matrix of real numbers ({error})") from None
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not len(d):
        raise DataError(f"D has shape {d.shape}; give a square matrix of distances")
    if np.isnan(d).any():
        i, j = np.argwhere(np.isnan(d))[0]
        raise DataError(f"D[{i}, {j}] is NaN; give infinity for a pair without a distance")
    if (d < 0).any():
        i, j = np.argwhere(d < 0)[0]
        raise DataError(f"D[{i}, {j}] = {d[i, j]:g} is negative; distances are zero or more")
    if np.diag(d).any():
        i = int(np.flatnonzero(np.diag(d))[0])
        raise DataError(f"D[{i}, {i}] = {d[i, i]:g}; the diagonal must be zero")
    with np.errstate(invalid="ignore"):
        gap = np.abs(d - d.T)
    if (gap > 1e-8 * (1 + np.where(np.isfinite(d), d, 0))).any():
        i, j = np.unravel_index(int(np.nanargmax(np.nan_to_num(gap))), d.shape)
        raise DataError(
            f"D[{i}, {j}] = {d[i, j]:g} but D[{j}, {i}] = {d[j, i]:g}; "
            "make it symmetric, for example (D + D.T) / 2"
        )
    return np.ascontiguousarray(np.minimum(d, d.T))


def _check_errors(standard_errors: Any, p: int) -> NDArray[np.float64]:
    e = np.array(standard_errors, dtype=np.float64)
    if e.shape != (p, p):
        raise DataError(f"standard_errors has shape {e.shape}; D has shape {(p, p)}")
    if np.isnan(e).any() or (e < 0).any():
        raise DataError("standard_errors must be zero or more, infinity where nothing is known")
    return e


def _check_names(names: Sequence[str] | None, p: int) -> tuple[str, ...]:
    labels = tuple(f"x{i}" for i in range(p)) if names is None else tuple(str(n) for n in names)
    if len(labels) != p:
        raise DataError(f"{len(labels)} names for {p} variables; give one for each row of D")
    return labels
