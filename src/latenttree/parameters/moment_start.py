"""Tree + table -> the model that refinement starts from, by moments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.config import FitConfig
from latenttree.data import Table
from latenttree.data.storage import BinaryStorage
from latenttree.data.streaming.scratch import about_to_read
from latenttree.data.values import CODED
from latenttree.engine.arrays import Bools, Floats
from latenttree.model.emissions import pooled, target_of
from latenttree.model.held_out import split_samples
from latenttree.model.likelihood import smoothed, total_log_likelihood
from latenttree.model.samples import marginals, model_dims
from latenttree.model.tree_model import TreeModel
from latenttree.moments import full_subspaces, pooled_subspaces
from latenttree.moments.subspace import coordinate_moments, feature_means
from latenttree.parameters.estimate import estimate_by_moments, node_condition_numbers
from latenttree.parameters.features import Projections, VectorProjections, all_leaf_projections
from latenttree.parameters.solving import Parameters, Pooled
from latenttree.tree import Tree

CONDITION_SAMPLES = 1 << 13
"""Number of samples from which conditions are computed."""

START_SAMPLES, START_COUNT = 1 << 14, 100
"""Lower bound of the number of samples whose moments start EM; more are used where rare categories
would occur less than `START_COUNT` times."""

START_VALUES = 1 << 33
"""Upper bound of samples times nodes for the start. With more nodes, rare categories are left to
EM, which uses all samples."""

FIRST_SAMPLES = 1 << 12
"""Lower bound of the number of samples of the rounds that only provide features."""


def moment_start(
    tree: Tree, table: Table, n_states: int, basis: NDArray[Any] | None, config: FitConfig
) -> Parameters:
    """Parameters of a tree by moments alone.

    Held-out samples are not used: a start estimated from them would seem the best. With missing
    values, moments come from different samples, and where variables nearly determine each other
    the differences exceed the quantities to be estimated: the likeliest of several starts is
    taken."""
    train = split_samples(table, config)[0]

    def score(model: TreeModel) -> float:
        usable = smoothed(model, train.n_samples, 1.0, marginals(table))
        return total_log_likelihood(usable, train, config.n_jobs)

    projections: Projections = []
    if tree.n_hidden:
        projections = projections_of(table, view_basis(table, n_states, basis, config))
    start, first = start_samples(table, tree.n_nodes)
    some = train.subsample(start) if config.refine else train
    found = estimate_by_moments(
        tree,
        projections,
        model_dims(table),
        marginals(table),
        some,
        n_states,
        families=pooled_families(table, n_states),
        hidden_features=config.hidden_features,
        subsample=some.subsample(first) if config.refine else None,
        score=score if table.has_missing else None,
        n_jobs=config.n_jobs,
    )
    if table.has_missing and tree.n_hidden and (model_dims(table) == n_states).all():
        alike = copying_model(tree, marginals(table))
        if score(alike) > score(found.model):
            return Parameters(alike, found.condition)
    return found


def start_samples(table: Table, n_nodes: int) -> tuple[int, int]:
    """Samples whose moments EM may start from, and those of the rounds that only make features.

    Their noise is less than the first EM steps remove, and all but the rarest twentieth of the
    categories occur `START_COUNT` times (in sparse binary tables, for features, a tenth of that),
    as far as `START_VALUES` allows."""
    coded = np.array([family in CODED or family == "multihot" for family in table.families])
    mean = coordinate_moments(table)[0]
    is_sparse = isinstance(table.storage, BinaryStorage)
    share = mean[np.repeat(coded, np.diff(table.offsets))]
    share = np.minimum(share, 1 - share)
    share = share[share > 0]
    if not len(share):
        return START_SAMPLES, FIRST_SAMPLES
    enough, most = int(START_COUNT / np.quantile(share, 0.05)), START_VALUES // n_nodes
    first = max(FIRST_SAMPLES, min(enough // 10, most)) if is_sparse else FIRST_SAMPLES
    return max(START_SAMPLES, min(enough, most)), first


def condition_numbers(
    model: TreeModel,
    table: Table,
    n_states: int,
    basis: NDArray[Any] | None,
    nodes: Bools,
    config: FitConfig,
) -> Floats:
    """Condition numbers of the marked hidden nodes `(m,)` of a refined model, from some of the
    samples; for nodes that are newer than the parameters by moments."""
    projections = projections_of(table, view_basis(table, n_states, basis, config))
    some = split_samples(table, config)[0].subsample(CONDITION_SAMPLES)
    hidden = config.hidden_features
    return node_condition_numbers(
        model, projections, some, nodes, hidden_features=hidden, n_jobs=config.n_jobs
    )


def copying_model(tree: Tree, shares: Sequence[Floats]) -> TreeModel:
    """The model in which every node is a noisy copy of its neighbours, as for nucleotides: with
    probability `exp(-length / n_directions)` the same category, else one at random."""
    common = np.mean(shares, axis=0)
    keep = np.exp(-tree.lengths / max(len(common) - 1, 1))
    joints = [q * np.diag(common) + (1 - q) * np.outer(common, common) for q in keep]
    return TreeModel.from_joints(tree, joints)


def pooled_families(table: Table, n_states: int) -> dict[int, Pooled]:
    """The families of the variables that are not categorical, fitted to all samples alike."""
    if table.values is None:
        return {}
    found = {}
    for v in table.values.arrays:
        values = table.numbers(v)
        about_to_read(values, getattr(values, "nbytes", 0))
        emission = pooled(table.families[v], values, n_states, table.weights)
        found[v] = Pooled(emission, target_of(emission, values, table.weights))
    return found


def projections_of(table: Table, basis: NDArray[Any]) -> Projections:
    """The projection of every observed variable: `(1, z)` by category, or linear in its vector."""
    mean, storage = coordinate_moments(table)[0], table.storage
    if table.has_vectors:
        return VectorProjections(
            np.asarray(basis, dtype=np.float32), feature_means(table, basis, mean), table.offsets
        )
    bases = storage.by_category(np.asarray(basis, dtype=np.float64), "nothing")
    return all_leaf_projections(bases, storage.by_category(mean, "rest"))


def view_basis(
    table: Table, n_states: int, basis: NDArray[Any] | None, config: FitConfig
) -> NDArray[Any]:
    """Directions of the projections: those of the distances, or computed here."""
    if basis is not None:
        return basis
    n_directions, rng = n_states - 1, np.random.default_rng(config.seed)
    whole = full_subspaces(table, n_directions)
    return (whole or pooled_subspaces(table, n_directions, rng, config.n_jobs)).basis
