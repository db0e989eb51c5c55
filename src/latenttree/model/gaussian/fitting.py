"""Tree + samples -> a Gaussian tree: moments in closed form, then EM, then the canonical gauge."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine import Progress
from latenttree.errors import DataError
from latenttree.model.gaussian.closed_form import ClosedForm, closed_form
from latenttree.model.gaussian.em import maximise_likelihood
from latenttree.model.gaussian.gauge import fixed
from latenttree.model.gaussian.inference import effective_samples
from latenttree.model.gaussian.layout import Layout
from latenttree.model.gaussian.model import GaussianTreeModel
from latenttree.model.gaussian.moments import standardisation
from latenttree.model.gaussian.reduction import reduced_moments
from latenttree.model.gaussian.rows import training_blocks
from latenttree.model.gaussian.units import linear_of, model_of
from latenttree.tree import Tree

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FittedGaussian:
    """A model and the evidence behind it, hidden nodes in the order of the tree.

    condition: (m,) by how much errors of the moments grew at a hidden node.
    samples: (m,) `N (1 - mean posterior variance)`: samples in which the hidden node would have to
        be seen to know as much of it.
    trace: log-likelihood of the training samples before each step of EM (with smoothing, plus that
        of the pseudo-samples); never decreasing.
    """

    model: GaussianTreeModel
    condition: Floats
    samples: Floats
    trace: list[float] = field(default_factory=list)
    converged: bool = True


def fit_gaussian(
    tree: Tree,
    X: ArrayLike,
    offsets: ArrayLike,
    k: int,
    weights: ArrayLike | None = None,
    *,
    max_iter: int = 200,
    tol: float = 1e-7,
    smoothing: float = 1.0,
    refine: bool = True,
    accelerate: bool = True,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> FittedGaussian:
    """Parameters of a tree by moments, refined by EM unless `refine` is False.

    Parameters
    ----------
    X : (n, D) observed variables side by side, NaN where a value is missing.
    offsets : (p + 1,) variable v is columns offsets[v]:offsets[v + 1].
    k : dimensions of each hidden node.
    weights : (n,) how often each sample counts; once by default.
    smoothing : pseudo-samples in which all coordinates are independent.
    """
    if k < 1:
        raise DataError(f"k={k!r}: give a number of dimensions, 1 or more")
    data, at = _checked(tree, X, offsets)
    w = None if weights is None else _checked_weights(weights, len(data))
    progress = progress or Progress()
    units = standardisation(data, w)
    with progress.stage("parameters"):
        moments, seen, wide = reduced_moments(tree, data, at, k, w, units, n_jobs)
        start = closed_form(tree, moments, seen, k, wide)
    if not refine:
        return _finished(start.model, start, data, w, [], True, n_jobs)
    with progress.stage("refinement"):
        layout = Layout.for_tree(tree, at, k)
        blocks = training_blocks(data, layout, *units, w, smoothing, n_jobs)
        found = maximise_likelihood(
            linear_of(start.model, layout, *units),
            layout,
            blocks,
            max_steps=max_iter,
            tolerance=tol,
            accelerate=accelerate,
            n_parameters=start.model.n_parameters,
            n_jobs=n_jobs,
        )
        # from standardised values to the data's own
        per_column = (~np.isnan(data)).T @ (np.ones(len(data)) if w is None else w)
        shift = float(per_column @ np.log(units[1]))
        trace = [value - shift for value in found.trace]
        model = model_of(found.linear, layout, *units)
        return _finished(model, start, data, w, trace, found.converged, n_jobs)


def _finished(
    model: GaussianTreeModel,
    start: ClosedForm,
    data: Floats,
    weights: Floats | None,
    trace: list[float],
    converged: bool,
    n_jobs: int,
) -> FittedGaussian:
    """In the canonical gauge, but on the tree as given."""
    model = fixed(model)
    samples = effective_samples(model, data, weights, n_jobs=n_jobs)
    return FittedGaussian(model, start.condition, samples, trace, converged)


def _checked(tree: Tree, X: ArrayLike, offsets: ArrayLike) -> tuple[Floats, Ints]:
    data, at = np.asarray(X, dtype=np.float64), np.asarray(offsets, dtype=np.int64)
    if data.ndim != 2 or len(at) != tree.n_observed + 1 or data.shape[1] != at[-1]:
        raise DataError(
            f"the samples have shape {data.shape}; for {tree.n_observed} variables give "
            f"{tree.n_observed + 1} offsets and as many columns as the last of them, got "
            f"{len(at)} offsets up to {at[-1] if len(at) else None}"
        )
    if len(data) < 2:
        raise DataError(f"{len(data)} samples; give two or more")
    if np.isinf(data).any():
        row, column = np.argwhere(np.isinf(data))[0]
        raise DataError(
            f"row {row}, column {column} is {data[row, column]}; use NaN for missing values"
        )
    return data, at


def _checked_weights(weights: ArrayLike, n: int) -> Floats:
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w < 0).any() or not w.any():
        raise DataError(
            f"weights have shape {w.shape} and range from {w.min(initial=0)} to "
            f"{w.max(initial=0)}; give {n} finite numbers >= 0, not all zero"
        )
    return w
