"""Latent tree models with known truth: tree, parameters, samples and hidden states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.values import CODED
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.evaluation.simulation.channels import Marginal, base_marginal, transition
from latenttree.evaluation.simulation.leaves import make_emission
from latenttree.evaluation.simulation.options import (
    SimulationOptions,
    check_families,
    check_options,
    check_tree,
)
from latenttree.evaluation.simulation.shapes import Shape, make_tree
from latenttree.model.emissions import Emission
from latenttree.model.emissions.common import draw_columns
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

MIXED = ("categorical", "gaussian", "poisson", "multinomial", "multihot", "gaussian_diagonal")
"""What `family="mixed"` stands for, over and over."""


@dataclass(frozen=True)
class LatentTreeData:
    """What `make_latent_tree` returns: the truth and a sample from it.

    Attributes
    ----------
    tree, root : the true tree, and the node from which parameters are directed.
    marginals, conditionals : `marginals[v]` is the distribution of node `v`; `conditionals[e]`
        belongs to edge `e` of `tree` and has shape `(d_child, d_parent)`, columns on the simplex,
        where `child` is the end of the edge that is farther from `root`. A leaf of another family
        has a single state here, and its distribution in `emissions`. Empty for Gaussian trees.
    X : the samples. `(n, p)` integers where all variables are categorical and none is missing;
        `(n, p)` floats, NaN where missing, where all are single values of one family; otherwise a
        dict from names to `(n,)` or `(n, d)` arrays or CSR matrices.
    hidden : (n, n_hidden) true states of the hidden nodes; (n, n_hidden, k) for Gaussian trees.
    families : (p,) the family of each variable.
    emissions : distributions of the leaves that are not categorical, by node.
    model : the true model: a `TreeModel`, or a `GaussianTreeModel`.
    """

    tree: Tree
    root: int
    marginals: tuple[Floats, ...]
    conditionals: tuple[Floats, ...]
    X: Any
    hidden: NDArray[Any]
    families: tuple[str, ...] = ()
    emissions: Mapping[int, Emission] = field(default_factory=dict)
    model: Any = None

    @property
    def family(self) -> dict[str, str]:
        """Families by name, as `LatentTree(family=...)` takes them."""
        return dict(zip(self.tree.observed_names, self.families, strict=True))

    def values(self, v: int) -> Any:
        """The samples of one variable."""
        return self.X[self.tree.names[v]] if isinstance(self.X, dict) else self.X[:, v]


def make_latent_tree(
    n_observed: int = 9,
    n_states: int = 2,
    n_categories: int | None = None,
    *,
    shape: Shape = "balanced",
    arity: int = 3,
    tree: Tree | None = None,
    edge_length: float | tuple[float, float] = 0.5,
    leaf_length: float | tuple[float, float] | None = None,
    marginal: Marginal = "random",
    n_used: int | None = None,
    internal_observed: float = 0.0,
    family: str | Sequence[str] = "categorical",
    dim: int | None = None,
    bag_size: int = 20,
    hidden: Literal["categorical", "gaussian"] = "categorical",
    missing: float = 0.0,
    n_samples: int = 10_000,
    random_state: int | np.random.Generator | None = None,
) -> LatentTreeData:
    """Draw a latent tree model and a sample from it.

    Parameters
    ----------
    n_observed, n_states, n_categories
        Observed variables; states of a hidden node; categories of an observed one
        (default: `n_states`).
    shape, arity, tree
        Shape of the tree, children of a hidden node where the shape is balanced (random: degrees
        from 3 to `arity + 1`), or a given `Tree` whose own lengths are then used.
    edge_length, leaf_length
        Information length `-log prod_i s_i` of a hidden edge, a number or a range from which
        lengths are drawn log-uniformly; `leaf_length` (default: the same) for the edges to
        observed nodes. `s_i` are the canonical correlations of the two ends; for a leaf that is
        not categorical those with the functions of its value that the structure uses.
    marginal, n_used
        Distribution of the observed categories; categories with positive probability
        (the others never occur).
    internal_observed
        Share of the hidden nodes that are replaced by observed internal nodes
        (needs `n_categories == n_states`, and all variables categorical); `n_observed` grows
        accordingly.
    family, dim, bag_size
        The family of the observed variables, or several that take turns; "mixed": one of each kind
        in turn. Dimension of vectors and blocks (default: `n_categories`; "gaussian" and "poisson"
        are single numbers unless `dim` is given); items in a bag of family "multinomial".
    hidden
        "gaussian": hidden nodes are vectors of `n_states` numbers, and all is jointly Gaussian.
    missing
        Share of the values that are missing, each by itself.
    """
    rng = np.random.default_rng(random_state)
    n_categories = n_states if n_categories is None else n_categories
    used = n_categories if n_used is None else n_used
    options = SimulationOptions(n_states, n_categories, used, marginal, dim, bag_size, n_samples)
    cycle = _cycle(family, hidden)
    check_options(options, arity, internal_observed, missing, hidden)
    check_families(cycle, options, hidden, internal_observed)
    if tree is None:
        leaf_length = edge_length if leaf_length is None else leaf_length
        tree = make_tree(n_observed, shape, arity, edge_length, leaf_length, internal_observed, rng)
    families = tuple(cycle[v % len(cycle)] for v in range(tree.n_observed))
    check_tree(tree, families)
    data = (
        _simulate_gaussian(tree, options, rng)
        if hidden == "gaussian"
        else _simulate(tree, options, families, rng)
    )
    return _with_gaps(data, missing, rng) if missing else data


def _cycle(family: str | Sequence[str], hidden: str) -> tuple[str, ...]:
    """The families that take turns."""
    if hidden == "gaussian" and family == "categorical":
        return ("gaussian",)
    if isinstance(family, str):
        return MIXED if family == "mixed" else (family,)
    return tuple(family)


# ---- samples -----------------------------------------------------------------------------------


def _simulate(
    tree: Tree, options: SimulationOptions, families: tuple[str, ...], rng: np.random.Generator
) -> LatentTreeData:
    """From the root down: parameters of each node, then its samples given its parent's."""
    root = tree.n_observed if tree.n_hidden else 0
    parents, order = tree.rooted(root)
    via = tree.parent_edges(root).tolist()
    marginals: list[Floats] = [np.ones(1)] * tree.n_nodes
    conditionals: list[Floats] = [np.empty(0)] * len(tree.edges)
    emissions: dict[int, Emission] = {}
    drawn: list[Any] = [None] * tree.n_nodes
    for v in order.tolist():
        u, e = int(parents[v]), via[v]
        if v < tree.n_observed and families[v] not in CODED:
            prior, length, width = marginals[u], float(tree.lengths[e]), options.width(families[v])
            emissions[v] = make_emission(families[v], prior, length, width, options.bag_size, rng)
            conditionals[e] = np.ones((1, len(prior)))
            drawn[v] = emissions[v].sample(drawn[u], rng)
            continue
        base = _base(v, tree, options, families, rng)
        if u < 0:
            marginals[v] = base
            drawn[v] = rng.choice(len(base), size=options.n_samples, p=base).astype(np.int32)
            continue
        conditionals[e] = transition(marginals[u], len(base), float(tree.lengths[e]), base, rng)
        marginals[v] = conditionals[e] @ marginals[u]
        drawn[v] = draw_columns(conditionals[e], drawn[u], rng).astype(np.int32)
    p = tree.n_observed
    tables = tuple(marginals[v][:, None] if e < 0 else conditionals[e] for v, e in enumerate(via))
    return LatentTreeData(
        tree,
        root,
        tuple(marginals),
        tuple(conditionals),
        _container(drawn[:p], tree.observed_names, families),
        _stacked(drawn[p:], options.n_samples),
        families,
        emissions,
        TreeModel(tree, root, tables, emissions),
    )


def _base(
    v: int,
    tree: Tree,
    options: SimulationOptions,
    families: tuple[str, ...],
    rng: np.random.Generator,
) -> Floats:
    """The distribution about which that of a categorical node is made."""
    k = options.n_states
    if v >= tree.n_observed:
        return base_marginal(k, k, "random", rng)
    if families[v] == "binary":
        return base_marginal(2, 2, options.marginal, rng)
    return base_marginal(options.n_categories, options.n_used, options.marginal, rng)


def _stacked(columns: list[Any], n: int) -> NDArray[Any]:
    return np.stack(columns, axis=1) if columns else np.empty((n, 0), dtype=np.int32)


def _container(values: list[Any], names: tuple[str, ...], families: tuple[str, ...]) -> Any:
    """One array where all values are single and of one kind, else a dict of arrays."""
    single = all(x.ndim == 1 for x in values)
    if single and (set(families) <= set(CODED) or len(set(families)) == 1):
        return _stacked(values, 0)
    return dict(zip(names, values, strict=True))


def _simulate_gaussian(
    tree: Tree, options: SimulationOptions, rng: np.random.Generator
) -> LatentTreeData:
    from latenttree.evaluation.simulation import gaussian  # loads much that other trees do not need

    width = options.dim or (1 if options.n_states == 1 else options.n_categories)
    model = gaussian.make_model(tree, options.n_states, width, rng)
    drawn = gaussian.draw(model, options.n_samples, rng)
    p, families = tree.n_observed, ("gaussian",) * tree.n_observed
    observed = [x[:, 0] if options.dim is None and x.shape[1] == 1 else x for x in drawn[:p]]
    return LatentTreeData(
        tree,
        model.root,
        (),
        (),
        _container(observed, tree.observed_names, families),
        np.stack(drawn[p:], axis=1),
        families,
        {},
        model,
    )


def _with_gaps(data: LatentTreeData, share: float, rng: np.random.Generator) -> LatentTreeData:
    """A share of the values made NaN, whole vectors at a time; codes become floats."""
    if not isinstance(data.X, dict):
        gaps = rng.random(data.X.shape) < share
        return replace(data, X=np.where(gaps, np.nan, data.X))
    X = {}
    for name, x in data.X.items():
        if sparse.issparse(x):
            what = f"missing={share} with the sparse block {name!r}, which cannot have gaps"
            remedy = "give missing=0, or fewer coordinates"
            raise DataError(what, remedy, value=share, option="missing", column=name)
        gaps = rng.random(len(x)) < share
        X[name] = np.where(gaps if x.ndim == 1 else gaps[:, None], np.nan, x)
    return replace(data, X=X)
