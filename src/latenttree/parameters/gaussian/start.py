"""Tree + samples -> the Gaussian model that the moments imply."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError, Option, Text
from latenttree.model.gaussian.model import GaussianTreeModel, check_samples
from latenttree.parameters.gaussian.closed_form import closed_form
from latenttree.parameters.gaussian.moments import standardisation
from latenttree.parameters.gaussian.reduction import reduced_moments
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class GaussianStart:
    """A model by moments, and the samples it was estimated from.

    Attributes
    ----------
    model : the model that the second moments imply.
    condition : (m,) for every hidden node the factor by which errors of the moments are amplified.
    X : (n, D) samples, NaN where a value is missing.
    weights : (n,) sample weights; None: all one.
    units : mean and standard deviation of each column, `(D,)` each.
    """

    model: GaussianTreeModel
    condition: Floats
    X: Floats
    weights: Floats | None
    units: tuple[Floats, Floats]


def gaussian_start(
    tree: Tree,
    X: ArrayLike,
    offsets: ArrayLike,
    n_dims: int,
    weights: ArrayLike | None = None,
    *,
    n_jobs: int = 1,
) -> GaussianStart:
    """Parameters of a Gaussian tree in closed form, see `closed_form`.

    Parameters
    ----------
    X : (n, D) observed variables side by side, NaN where a value is missing.
    offsets : (p + 1,) variable v is columns offsets[v]:offsets[v + 1].
    n_dims : dimensions of each hidden node.
    weights : (n,) sample weights; all one by default.
    """
    if n_dims < 1:
        raise DataError(
            f"hidden vectors of {n_dims!r} dimensions",
            Text("give ", Option("n_dims"), ", 1 or more"),
            value=n_dims,
            option="n_dims",
        )
    data, at = _checked(tree, X, offsets)
    w = None if weights is None else _checked_weights(weights, len(data))
    units = standardisation(data, w)
    moments, reduced_offsets, wide = reduced_moments(tree, data, at, n_dims, w, units, n_jobs)
    implied = closed_form(tree, moments, reduced_offsets, n_dims, wide)
    return GaussianStart(implied.model, implied.condition, data, w, units)


def _checked(tree: Tree, X: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Ints]:
    """The samples as floats and the offsets as integers, of matching shapes."""
    data, at = np.asarray(X, dtype=np.float64), np.asarray(offsets, dtype=np.int64)
    if data.ndim != 2 or len(at) != tree.n_observed + 1 or data.shape[1] != at[-1]:
        raise DataError(
            f"the samples have shape {data.shape}, with {len(at)} offsets up to "
            f"{at[-1] if len(at) else None}",
            f"for {tree.n_observed} variables give {tree.n_observed + 1} offsets and as many "
            "columns as the last of them",
            value=data.shape,
        )
    if len(data) < 2:
        raise DataError(f"{len(data)} samples", "give two or more", value=len(data))
    check_samples(data)
    return data, at


def _checked_weights(weights: ArrayLike, n: int) -> Floats:
    """Sample weights as floats: `n`, finite, not negative, not all zero."""
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise DataError(
            f"weights have shape {w.shape} and range from {w.min(initial=0)} to {w.max(initial=0)}",
            f"give {n} finite numbers >= 0, not all zero",
            value=(w.min(initial=0), w.max(initial=0)),
            option="sample_weight",
        )
    return w
