"""Tree + samples -> a refined model: moments, then EM, then states in a canonical order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.data.streaming.scratch import about_to_read
from latenttree.data.subsets import draw_weights, n_draws
from latenttree.data.table import CODED
from latenttree.engine import Progress
from latenttree.errors import DataError
from latenttree.model.emissions import pooled, target_of
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.inference import posteriors
from latenttree.model.inference.sparse_messages import Sender
from latenttree.model.samples import (
    Chunk,
    Samples,
    category_bases,
    is_one_hot,
    marginals,
    model_dims,
)
from latenttree.model.tree_model import TreeModel
from latenttree.moments import full_subspaces, pooled_subspaces
from latenttree.moments.subspace import coordinate_moments, feature_means
from latenttree.parameters.estimate import Parameters, Pooled, estimate_parameters, node_conditions
from latenttree.parameters.views import Looks, VectorLooks, all_leaf_views
from latenttree.refinement.em import Refinement, refine, smoothed, total_log_likelihood
from latenttree.tree import Tree

Floats = NDArray[np.float64]

ROUGH_SAMPLES, ROUGH_STEPS = 1 << 14, 12
"""Samples and steps of a refinement before the search, where there are many samples."""

STEP_VALUES = 1 << 21
"""Posteriors held at once."""

ENOUGH = 1 << 13
"""Samples that say how well the states of hidden nodes are known."""

START_SAMPLES, START_SEEN = 1 << 14, 100
"""Samples whose moments are a start for EM, at least; more where rare categories would not be seen
so often in them."""

START_VALUES = 1 << 33
"""Values of nodes in these samples, at most: what many variables cannot see often enough in so
many, EM sees in all."""

FIRST_SAMPLES = 1 << 12
"""Samples of the rounds that only make features, at least."""


@dataclass(frozen=True)
class Options:
    """How parameters are learned."""

    refine: bool = True
    hidden_features: bool = True
    max_iter: int = 200
    tol: float = 1e-7
    smoothing: float = 1.0
    validation_fraction: float = 0.0


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model and the evidence behind it, hidden nodes in the order of the tree.

    condition: (m,) by how much errors of the moments grew in the decomposition of a hidden node.
    samples: (m,) effective number of samples behind a hidden node, see `effective_samples`.
    trace, held_out: objective of refinement before each step; log-likelihood of held-out samples.
    """

    model: TreeModel | GaussianTreeModel
    condition: Floats
    samples: Floats
    trace: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    converged: bool = True


def fit_model(
    tree: Tree,
    table: Table,
    n_states: int,
    basis: NDArray[Any] | None,
    options: Options,
    seed: int,
    n_jobs: int,
    progress: Progress,
    rough: bool = False,
) -> Fitted:
    """Parameters of a tree by moments, refined by EM unless `options` say otherwise; where `rough`,
    by some of the samples alone, for what is to be refined again."""
    with progress.stage("parameters"):
        start = moments_model(tree, table, n_states, basis, options, seed, n_jobs)
    if not rough:
        return polish(start.model, start.condition, table, options, seed, n_jobs, progress)
    with progress.stage("refinement"):
        found = refine(
            start.model,
            split(table, options, seed)[0].about(ROUGH_SAMPLES),
            max_steps=min(options.max_iter, ROUGH_STEPS),
            tolerance=options.tol,
            smoothing=options.smoothing,
            marginals=marginals(table),
            n_jobs=n_jobs,
        )
    nothing = np.full(tree.n_hidden, np.nan)
    return Fitted(found.model, start.condition, nothing, found.trace)


def moments_model(
    tree: Tree,
    table: Table,
    n_states: int,
    basis: NDArray[Any] | None,
    options: Options,
    seed: int,
    n_jobs: int,
) -> Parameters:
    """Parameters of a tree by moments alone.

    Samples that refinement is stopped by are left out: a start that has seen them looks best.
    With gaps, moments come from different samples, and where variables nearly determine each other
    the differences outweigh what is to be estimated: the likeliest of several is taken."""
    train = split(table, options, seed)[0]

    def judge(model: TreeModel) -> float:
        usable = smoothed(model, train.n_samples, 1.0, marginals(table))
        return total_log_likelihood(usable, train, n_jobs)

    looks: Looks = []
    if tree.n_hidden:
        looks = looks_of(table, view_basis(table, n_states, basis, seed, n_jobs))
    start, first = start_samples(table, tree.n_nodes)
    some = train.about(start) if options.refine else train
    found = estimate_parameters(
        tree,
        looks,
        model_dims(table),
        marginals(table),
        some,
        n_states,
        families=pooled_families(table, n_states),
        hidden_features=options.hidden_features,
        fewer=some.about(first) if options.refine else None,
        judge=judge if table.has_missing else None,
        n_jobs=n_jobs,
    )
    if table.has_missing and tree.n_hidden and (model_dims(table) == n_states).all():
        alike = copying_model(tree, marginals(table))
        if judge(alike) > judge(found.model):
            return Parameters(alike, found.condition)
    return found


def start_samples(table: Table, n_nodes: int) -> tuple[int, int]:
    """Samples whose moments EM may start from, and those of the rounds that only make features.

    The noise in them is less than what the first steps of EM take out, and all but the rarest
    twentieth of the categories are seen `START_SEEN` times (what is present, for features, a tenth
    of that), as far as `START_VALUES` allow."""
    coded = np.array([family in CODED or family == "multihot" for family in table.families])
    mean = coordinate_moments(table)[0]
    present = table.kind == "presence"
    share = mean if present else mean[np.repeat(coded, np.diff(table.offsets))]
    share = np.minimum(share, 1 - share)
    share = share[share > 0]
    if not len(share):
        return START_SAMPLES, FIRST_SAMPLES
    enough, most = int(START_SEEN / np.quantile(share, 0.05)), START_VALUES // n_nodes
    first = max(FIRST_SAMPLES, min(enough // 10, most)) if present else FIRST_SAMPLES
    return max(START_SAMPLES, min(enough, most)), first


def conditions(
    model: TreeModel,
    table: Table,
    n_states: int,
    basis: NDArray[Any] | None,
    options: Options,
    seed: int,
    nodes: NDArray[np.bool_],
    n_jobs: int,
) -> Floats:
    """Conditions of those hidden nodes `(m,)` of a refined model that are marked, from some of the
    samples: what a tree that has changed since its parameters were estimated leaves open."""
    looks = looks_of(table, view_basis(table, n_states, basis, seed, n_jobs))
    some = split(table, options, seed)[0].about(ENOUGH)
    hidden = options.hidden_features
    return node_conditions(model, looks, some, nodes, hidden_features=hidden, n_jobs=n_jobs)


def copying_model(tree: Tree, shares: Sequence[Floats]) -> TreeModel:
    """Every node a noisy copy of its neighbours, as nucleotides are: with probability
    `exp(-length / (k - 1))` the same category, else one at random."""
    common = np.mean(shares, axis=0)
    keep = np.exp(-tree.lengths / max(len(common) - 1, 1))
    joints = [k * np.diag(common) + (1 - k) * np.outer(common, common) for k in keep]
    return TreeModel.from_joints(tree, joints)


def pooled_families(table: Table, n_states: int) -> dict[int, Pooled]:
    """The families of the variables that are not categorical, fitted to all samples alike."""
    if table.values is None:
        return {}
    found = {}
    for v, values in table.values.arrays.items():
        about_to_read(values, getattr(values, "nbytes", 0))
        emission = pooled(table.families[v], values, n_states, table.weights)
        found[v] = Pooled(emission, target_of(emission, values, table.weights))
    return found


def looks_of(table: Table, basis: NDArray[Any]) -> Looks:
    """How every observed variable is looked at: `(1, z)` by category, or linear in its vector."""
    mean = coordinate_moments(table)[0]
    if table.kind == "blocks" and not is_one_hot(table):
        return VectorLooks(
            np.asarray(basis, dtype=np.float32), feature_means(table, basis, mean), table.offsets
        )
    by_variable = category_bases(table, basis)
    if table.kind == "presence":
        shares = [np.array([1 - m, m]) for m in mean]
    else:
        shares = np.split(mean, table.offsets[1:-1])
    return all_leaf_views(by_variable, shares)


def polish(
    model: TreeModel,
    condition: Floats,
    table: Table,
    options: Options,
    seed: int,
    n_jobs: int,
    progress: Progress,
) -> Fitted:
    """A model refined by EM (or smoothed, so that it expects all that was seen), its states in
    canonical order, and the evidence behind it."""
    train, judge = split(table, options, seed)
    if not options.refine:
        usable = smoothed(model, train.n_samples, options.smoothing, marginals(table))
        found = Refinement(usable, converged=True)
    else:
        with progress.stage("refinement"):
            found = refine(
                model,
                train,
                max_steps=options.max_iter,
                tolerance=options.tol,
                smoothing=options.smoothing,
                held_out=judge,
                marginals=marginals(table),
                n_jobs=n_jobs,
            )
    with progress.stage("evidence"):
        ordered = canonical_states(found.model)
        samples = effective_samples(ordered, Samples(table), n_jobs)
    return Fitted(ordered, condition, samples, found.trace, found.held_out, found.converged)


def view_basis(
    table: Table, n_states: int, basis: NDArray[Any] | None, seed: int, n_jobs: int
) -> NDArray[Any]:
    """Directions in which variables are looked at: those of the distances, or found here."""
    if basis is not None:
        return basis
    rank = n_states - 1
    whole = full_subspaces(table, rank)
    return (whole or pooled_subspaces(table, rank, np.random.default_rng(seed), n_jobs)).basis


def split(table: Table, options: Options, seed: int) -> tuple[Samples, Samples | None]:
    """Samples to learn from, and samples to stop refinement by; at least one of each."""
    n, fraction = n_draws(table), options.validation_fraction
    if not fraction or not options.refine:
        return Samples(table), None
    held = draw_weights(table, min(max(round(fraction * n), 1), n - 1), np.random.default_rng(seed))
    if table.weights is None:
        return Samples(table, held == 0), Samples(table, held > 0)
    rest = table.weights - held
    return Samples(table, rest > 0, rest), Samples(table, held > 0, held)


def canonical_states(model: TreeModel) -> TreeModel:
    """States of every hidden node by decreasing probability."""
    hidden = range(model.tree.n_observed, model.tree.n_nodes)
    return model.relabelled({v: np.argsort(-model.marginals[v], kind="stable") for v in hidden})


def effective_samples(model: TreeModel, samples: Samples, n_jobs: int) -> Floats:
    """`N (sum_j E[q_j^2] - sum_j w_j^2) / (1 - sum_j w_j^2)` for every hidden node, `(m,)`.

    With posteriors `q` and marginals `w`: the samples in which the state would have to be seen to
    know as much about it; N where the observed variables determine it, 0 where they are silent.
    A sample of probability zero tells nothing. The mean is over some `ENOUGH` samples: its error
    is then about a hundredth of N."""
    p = model.tree.n_observed
    dims = model.dims[p:]
    if not len(dims):
        return np.zeros(0)
    some = samples.about(ENOUGH)
    square = np.zeros(int(dims.sum()))
    for chunk in some():
        square += _squares(model, chunk, n_jobs)
    starts = np.cumsum(dims) - dims
    weight = np.array([float((w**2).sum()) for w in model.marginals[p:]])
    n = samples.n_samples
    mean = np.add.reduceat(square, starts) / some.n_samples
    gain = n * (mean - weight) / np.maximum(1 - weight, 1e-12)
    return np.clip(gain, 0.0, n)


def _squares(model: TreeModel, chunk: Chunk, n_jobs: int) -> Floats:
    """`sum_n w q^2` of the posteriors of all hidden nodes, side by side."""
    sender = Sender.of(model, chunk.rows)
    p = model.tree.n_observed
    if sender is not None:
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        found = sender.squares(chunk.rows, weights, n_jobs)[sender.place[p:]]
        return np.asarray(found[np.arange(found.shape[1]) < model.dims[p:, None]])
    total = np.zeros(int(model.dims[p:].sum()))
    step = max(1, STEP_VALUES // len(total))
    for start in range(0, len(chunk), step):
        part = chunk.take(slice(start, start + step))
        q = np.nan_to_num(posteriors(model, part.evidence(model, n_jobs), n_jobs=n_jobs).hidden)
        weighted = q if part.weights is None else q * part.weights[:, None]
        total += np.einsum("nv,nv->v", weighted, q)
    return total


def check_refinement(max_iter: Any, tol: Any, smoothing: Any, validation_fraction: Any) -> None:
    """Options of refinement, before any work."""
    if not isinstance(max_iter, Integral) or int(max_iter) < 1:
        raise DataError(f"max_iter={max_iter!r}: give a number of steps, 1 or more")
    for name, value in (("tol", tol), ("smoothing", smoothing)):
        if not isinstance(value, Real) or not 0 <= float(value) < np.inf:
            raise DataError(f"{name}={value!r}: give a number, 0 or more")
    if not isinstance(validation_fraction, Real) or not 0 <= float(validation_fraction) < 1:
        raise DataError(
            f"validation_fraction={validation_fraction!r}: give a share from 0 to less than 1"
        )
