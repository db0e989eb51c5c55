"""A matrix of distances -> a tree: the public function, and the checks of its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.config import check_structure_options
from latenttree.distances.similarity import similarity_from_distances
from latenttree.engine import resolve_jobs
from latenttree.errors import DataError, Option, Text
from latenttree.structure.learn import FARTHEST, structure_of_similarities
from latenttree.tree import Tree


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
    standard_errors : (p, p) array or None. None: the distances are exact, and only edges of
        length zero are contracted. With standard errors, topologies are judged by likelihood and
        edges kept by their support.
    names : names of the p variables; x0, x1, ... by default.
    min_support : edges with less support are contracted.
    sweeps : re-solve regions until the tree is consistent (only with standard errors).
    epsilon : use the paper's fixed threshold in grouping instead of noise-aware neighbour joining.

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
        similarity_from_distances(distances, errors),
        labels,
        sweeps=sweeps,
        min_support=min_support,
        epsilon=epsilon,
        n_jobs=resolve_jobs(n_jobs),
    ).tree


def _check_distances(D: Any) -> NDArray[np.float64]:
    """D as a symmetric matrix of numbers, in a new array."""
    try:
        d = np.array(D)
        d = d.astype(np.float64, casting="same_kind" if d.dtype.kind in "fc" else "unsafe")
    except (TypeError, ValueError) as error:
        raise DataError(
            f"D is not a matrix of real numbers ({error})",
            "give a square matrix of distances",
            option="D",
        ) from None
    if d.ndim != 2 or d.shape[0] != d.shape[1] or not len(d):
        raise DataError(
            f"D has shape {d.shape}", "give a square matrix of distances", value=d.shape, option="D"
        )
    _check_entries(d)
    with np.errstate(invalid="ignore"):
        gap = np.abs(d - d.T)
    if (gap > 1e-8 * (1 + np.where(np.isfinite(d), d, 0))).any():
        i, j = np.unravel_index(int(np.nanargmax(np.nan_to_num(gap))), d.shape)
        raise DataError(
            f"D[{i}, {j}] = {d[i, j]:g} but D[{j}, {i}] = {d[j, i]:g}",
            "make it symmetric, for example (D + D.T) / 2",
            value=(d[i, j], d[j, i]),
            row=int(i),
            option="D",
        )
    return np.ascontiguousarray(np.minimum(d, d.T))


def _check_entries(d: NDArray[np.float64]) -> None:
    """Every entry is a distance, and the diagonal is zero."""
    for wrong, what, remedy in (
        (np.isnan(d), "is NaN", "give infinity for a pair without a distance"),
        (d < 0, "is negative", "distances are zero or more"),
        (np.diag(np.diag(d)) != 0, "is on the diagonal", "the diagonal must be zero"),
    ):
        if wrong.any():
            i, j = np.argwhere(wrong)[0].tolist()
            value = "" if np.isnan(d[i, j]) else f" = {d[i, j]:g}"
            what = f"D[{i}, {j}]{value} {what}"
            raise DataError(what, remedy, value=d[i, j], row=i, option="D")


def _check_errors(standard_errors: Any, p: int) -> NDArray[np.float64]:
    """Standard errors as a matrix `(p, p)` of numbers, zero or more."""
    errors = np.array(standard_errors, dtype=np.float64)
    name = Option("standard_errors")
    if errors.shape != (p, p):
        raise DataError(
            Text(name, f" has shape {errors.shape}, and D has shape {(p, p)}"),
            "give one standard error for each distance",
            value=errors.shape,
            option="standard_errors",
        )
    wrong = np.isnan(errors) | (errors < 0)
    if wrong.any():
        i, j = np.argwhere(wrong)[0].tolist()
        raise DataError(
            Text(name, f"[{i}, {j}] is {errors[i, j]:g}"),
            "give zero or more, and infinity for a pair without a distance",
            value=errors[i, j],
            row=i,
            option="standard_errors",
        )
    return errors


def _check_names(names: Sequence[str] | None, p: int) -> tuple[str, ...]:
    """One name for each variable, x0, x1, ... by default."""
    labels = tuple(f"x{i}" for i in range(p)) if names is None else tuple(str(n) for n in names)
    if len(labels) != p:
        raise DataError(
            f"{len(labels)} names for {p} variables",
            "give one for each row of D",
            value=len(labels),
            option="names",
        )
    return labels
