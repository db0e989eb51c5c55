"""How far an estimated tree, or its parameters, are from the true ones.

All comparisons match observed nodes by name and do not depend on the names of hidden nodes. A tree
is a `Tree`, anything that has one (a fitted `LatentTree`, a model, what `make_latent_tree`
returns), or Newick text that ends in ';'.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.engine.arrays import Floats, Ints
from latenttree.evaluation.groupings import as_grouping, matched_labels
from latenttree.evaluation.simulation import LatentTreeData
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree
from latenttree.tree.matching import as_tree, is_newick
from latenttree.tree.split_keys import split_keys

AnyTree = Any
"""A `Tree`, an object that has one, or Newick text."""


class SplitErrors(NamedTuple):
    """Splits of the true tree that the estimate lacks, and splits that only it has."""

    missing: int
    false: int


def robinson_foulds(a: AnyTree, b: AnyTree, normalized: bool = False) -> float:
    """Number of splits that one of the two trees has and the other has not.

    The split of an edge is the bipartition of all observed nodes, internal ones too, that
    its removal leaves. Pendant splits ``{i} | rest`` are compared as well: all trees in
    which ``i`` is a leaf have it, so between trees whose observed nodes are all leaves this
    is the ordinary Robinson-Foulds distance; where ``i`` is internal it is absent, and that
    counts. The distance is 0 exactly when the topologies are the same.

    With ``normalized``, divided by the number of splits that could differ: those with at
    least two observed nodes on both sides in either tree, and the pendant ones that do
    differ; 0 when there are none. ``O(n log n)``.
    """
    a, b = _as_trees(a, b)
    shared, pendant_shared = _compare(a, b)
    distance = a.n_edges + b.n_edges - 2 * shared
    if not normalized:
        return distance
    largest = a.n_edges + b.n_edges - 2 * pendant_shared
    return distance / largest if largest else 0.0


def split_errors(truth: AnyTree, estimate: AnyTree) -> SplitErrors:
    """Counts of missing and of false splits; they sum to the Robinson-Foulds distance."""
    truth, estimate = _as_trees(truth, estimate)
    shared = _compare(truth, estimate).shared
    return SplitErrors(truth.n_edges - shared, estimate.n_edges - shared)


def structure_error(truth: AnyTree, estimate: AnyTree) -> float:
    """The paper's structure recovery error, in [0, 1].

    ``mean_i min_j |Ghat_i \\ G_j| / |Ghat_i|`` over the groups ``Ghat`` of the estimate and
    ``G`` of the truth, where a group is the set of observed neighbours of one hidden node.
    It does not see a true group that was cut in pieces, nor anything deeper in the tree: for
    that use `robinson_foulds`. Without groups in the estimate it is 0 if the truth has none
    either, else 1.
    """
    truth, estimate = _as_trees(truth, estimate)
    _check_names(truth, estimate)
    groups, true_groups = _groups(estimate), _groups(truth)
    if not groups or not true_groups:
        return float(bool(groups) != bool(true_groups))
    member_of: dict[str, list[int]] = {name: [] for name in truth.observed_names}
    for j, group in enumerate(true_groups):
        for name in group:
            member_of[name].append(j)
    overlaps = [Counter(j for name in group for j in member_of[name]) for group in groups]
    errors = [
        1 - max(overlap.values(), default=0) / len(group)
        for group, overlap in zip(groups, overlaps, strict=True)
    ]
    return float(np.mean(errors))


def group_rand_index(a: AnyTree, b: AnyTree) -> float:
    """Adjusted Rand index of the groups of observed nodes around hidden nodes; 1 is best.

    An observed node belongs to its hidden neighbour; if it has several, to the first in
    canonical order with the names sorted; if it has none, to a group of its own.
    """
    from sklearn.metrics import adjusted_rand_score

    a, b = _as_trees(a, b)
    _check_names(a, b)
    names = sorted(a.observed_names)
    labels = [_group_labels(tree.reorder(names)) for tree in (a, b)]
    return float(adjusted_rand_score(*labels))


def group_agreement(a: Any, b: Any) -> float:
    """Adjusted Rand index of two groupings of the same variables (Hubert and Arabie 1985): 1 where
    they are the same, about 0 where they agree no more than by chance.

    Each is a Series or a dict from variables to labels, an array or list of labels, or a tree (see
    above), which is cut into as many groups as the other grouping has. What has names is matched by
    them; two arrays, or an array and a tree, by position. Variables without a label (None, NaN)
    are groups of their own.

    >>> group_agreement({"a": 0, "b": 0, "c": 1}, {"c": "x", "a": "y", "b": "y"})
    1.0
    """
    from sklearn.metrics import adjusted_rand_score

    first, second = as_grouping(a), as_grouping(b)
    first, second = first.cut_like(second), second.cut_like(first)
    return float(adjusted_rand_score(*matched_labels(first, second)))


# ---- parameters -------------------------------------------------------------------------


@overload
def parameter_error(
    model: Any,
    truth: Any,
    *,
    per_leaf: Literal[False] = ...,
    states: Mapping[str, ArrayLike] | None = ...,
) -> float: ...
@overload
def parameter_error(
    model: Any, truth: Any, *, per_leaf: Literal[True], states: Mapping[str, ArrayLike] | None = ...
) -> Floats: ...
def parameter_error(
    model: Any, truth: Any, *, per_leaf: bool = False, states: Mapping[str, ArrayLike] | None = None
) -> float | Floats:
    """The paper's parameter error `||A - A_hat Pi||_F`, mean over the leaves.

    `A = P(x | u)`, `(d, k)`, belongs to a leaf `x` of the true tree and its hidden neighbour
    `u`; `A_hat = P(x | w)` to its hidden neighbour `w` in the estimate. Of a variable that is not
    categorical `A = E[x | u]`, in its own units (of a bag the shares; of a multi-hot group none
    and each code). The labels of hidden states are arbitrary, but one hidden node has one
    labelling: `Pi` is the permutation that is best for all the leaves that `u` and `w` share,
    together, `argmin_Pi sum_x ||A_x - A_hat_x Pi||_F^2`, by linear assignment, and not a best one
    for each leaf. Where the trees have one topology, `w` is the node that corresponds to `u`.

    Where the models are of different shape:

    - *other number of hidden states*: a column without a partner counts with its whole norm;
    - *`x` is internal in the estimate*: of its hidden neighbours the one that shares most observed
      neighbours with `u` is taken, the first of several;
    - *`u` is observed*: columns are compared as they are if `x` and `u` are neighbours in the
      estimate;
    - *the tree is a single node*: its marginals are compared;
    - *otherwise* (`x` hangs from a hidden node in one tree and from an observed one in the other)
      the estimate says nothing about `P(x | u)`, and its marginal stands in every column:
      `||A - P_hat(x) 1^T||_F`.

    Parameters
    ----------
    model, truth : a `TreeModel`, a fitted estimator (its `model_`), or the `LatentTreeData` of
        `make_latent_tree`. Observed nodes are matched by name.
    per_leaf : return `(n_observed,)` errors in the order of the truth's nodes instead of their
        mean; NaN for nodes that are internal in the truth.
    states : for names of observed nodes, the true state (a number) that each state of the
        estimate is. Needed where the estimate knows only the categories that occurred, and taken
        from a fitted estimator's `schema_` if it has one; states that the estimate does not have
        get probability zero.

    Cost `O(sum_x d_x k^2)`.
    """
    found, true = _as_model(model), _as_model(truth)
    _check_names(found.tree, true.tree)
    known = _known_states(model, truth) if states is None else dict(states)
    views = _leaf_views(found, true, known)
    errors = np.full(true.tree.n_observed, np.nan)
    for (u, w), group in views.items():
        is_labelled = u >= true.tree.n_observed and w >= 0
        order = _best_order(group) if is_labelled else slice(None)
        for view in group:
            errors[view.leaf] = np.linalg.norm(view.true - view.found[:, order])
    return errors if per_leaf else float(np.nanmean(errors))


def _as_model(value: Any) -> TreeModel:
    found = value.model if isinstance(value, LatentTreeData) else getattr(value, "model_", value)
    if not isinstance(found, TreeModel):
        raise TypeError(
            f"got {type(value).__name__}, which has no parameters; pass a TreeModel, a fitted "
            "estimator with parameters, or what make_latent_tree returns"
        )
    return found


class _View(NamedTuple):
    """The conditional of one leaf in the truth and in the estimate, of one shape `(d, k)`."""

    leaf: int
    true: Floats
    found: Floats


def _leaf_views(
    found: TreeModel, true: TreeModel, states: dict[str, ArrayLike]
) -> dict[tuple[int, int], list[_View]]:
    """Leaves by their neighbour in the truth and in the estimate (-1: none to compare with)."""
    if true.tree.n_nodes == 1:
        (name,) = true.tree.names
        marginal = _spread(found.marginals[0], name, int(true.dims[0]), states)
        return {(-1, -1): [_View(0, true.marginals[0][:, None], marginal[:, None])]}
    views: dict[tuple[int, int], list[_View]] = {}
    for x in np.flatnonzero(true.tree.degree()[: true.tree.n_observed] == 1).tolist():
        u = int(true.tree.neighbors(x)[0])
        w = _counterpart(true.tree, found.tree, x, u)
        A = true.conditional(x, u)
        A_hat = _estimate(found, true, x, u, w, states, len(A))
        views.setdefault((u, w), []).append(_View(x, *_same_width(A, A_hat)))
    return views


def _counterpart(true: Tree, found: Tree, x: int, u: int) -> int:
    """The neighbour of leaf `x` in the estimate that answers to its neighbour `u`, or -1."""
    near = found.neighbors(true.names[x]).tolist()
    if u < true.n_observed:
        same = found.index(true.names[u])
        return same if same in near else -1
    hidden = [w for w in near if w >= found.n_observed]
    if len(hidden) < 2:
        return hidden[0] if hidden else -1
    group = set(_observed_around(true, u))
    return max(hidden, key=lambda w: len(group.intersection(_observed_around(found, w))))


def _estimate(
    found: TreeModel, true: TreeModel, x: int, u: int, w: int, states: dict[str, ArrayLike], d: int
) -> Floats:
    """`P_hat(x | w)` over the truth's `d` states of `x` (and those of `w` where it is observed);
    `E_hat[x | w]` of a variable that is not categorical."""
    name = true.tree.names[x]
    marginal = _spread(found.marginal(name), name, d, states)
    if w < 0:
        return np.repeat(marginal[:, None], true.dims[u], axis=1)
    table = _spread(found.conditional(name, w), name, d, states)
    if w >= found.tree.n_observed:
        return table
    name = found.tree.names[w]
    # A state of `w` that the estimate has never seen tells it nothing about `x`.
    excess = _spread((table - marginal[:, None]).T, name, int(true.dims[u]), states).T
    return np.asarray(excess + marginal[:, None])


def _spread(values: Floats, name: str, d: int, states: dict[str, ArrayLike]) -> Floats:
    """`values` of an estimate's states (first axis) at the truth's `d` states, zero elsewhere."""
    if name not in states:
        if len(values) != d:
            raise ValueError(
                f"{name!r} has {len(values)} states in the estimate and {d} in the truth; pass "
                f"states={{{name!r}: [the true state of each of the estimate's]}}"
            )
        return values
    at = np.asarray(states[name])
    if at.shape != (len(values),) or at.dtype.kind not in "iu" or len(np.unique(at)) != len(at):
        raise ValueError(
            f"states[{name!r}] is {states[name]!r}; give {len(values)} different whole numbers, "
            "one for each state of the estimate"
        )
    if at.size and not 0 <= at.min() <= at.max() < d:
        raise ValueError(
            f"states[{name!r}] has values from {at.min()} to {at.max()}; the truth has states "
            f"0..{d - 1} (-1: a label that it does not have)"
        )
    full = np.zeros((d, *values.shape[1:]))
    full[at] = values
    return full


def _same_width(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Both with as many columns as the wider one; the new ones are zero."""
    k = max(a.shape[1], b.shape[1])
    padded = (np.pad(m, ((0, 0), (0, k - m.shape[1]))) if m.shape[1] < k else m for m in (a, b))
    first, second = padded
    return first, second


def _best_order(group: list[_View]) -> Ints:
    """Columns of the estimate in the order that fits the truth best over the whole group.

    Minimises `sum_x ||a_i - b_j||^2 = sum_x |a_i|^2 + |b_j|^2 - 2 a_i b_j` over assignments; the
    squares are the same in every assignment. `O(sum d k^2 + k^3)`.
    """
    from scipy.optimize import linear_sum_assignment

    gain = np.sum([view.true.T @ view.found for view in group], axis=0)
    return np.asarray(linear_sum_assignment(gain, maximize=True)[1])


def _known_states(model: Any, truth: Any) -> dict[str, ArrayLike]:
    """The true states of a fitted estimator's categories.

    By label where the truth has labels too; else labels that are numbers are the states."""
    own, theirs = _labels(model), _labels(truth)
    states: dict[str, ArrayLike] = {}
    for name, labels in own.items():
        if name in theirs:
            place = {label: i for i, label in enumerate(theirs[name].tolist())}
            states[name] = np.array([place.get(label, -1) for label in labels.tolist()])
        elif labels.dtype.kind in "iuf" and (labels == np.rint(labels)).all():
            states[name] = labels.astype(np.int64)
    return states


def _labels(model: Any) -> dict[str, NDArray[Any]]:
    """Names to labels of states, for estimators whose `schema_` has them."""
    schema = getattr(model, "schema_", None)
    names, labels = getattr(schema, "names", ()), getattr(schema, "categories", ())
    pairs = zip(names, labels, strict=False)
    return {name: np.asarray(values) for name, values in pairs if values is not None}


# ---- splits and groups --------------------------------------------------------------------


class _Comparison(NamedTuple):
    shared: int  # splits in both trees
    pendant_shared: int  # of these, with one observed node on a side


def _compare(a: Tree, b: Tree) -> _Comparison:
    """Count shared splits by their 64-bit keys, see `split_keys`."""
    _check_names(a, b)
    b = b.reorder(a.observed_names)
    is_shared = np.isin(split_keys(b), split_keys(a))
    is_pendant = np.isin(b.split_sizes(), (1, b.n_observed - 1))
    return _Comparison(int(is_shared.sum()), int((is_shared & is_pendant).sum()))


def _groups(tree: Tree) -> list[list[str]]:
    """Observed neighbours of each hidden node that has any."""
    groups = (_observed_around(tree, h) for h in range(tree.n_observed, tree.n_nodes))
    return [group for group in groups if group]


def _observed_around(tree: Tree, node: int) -> list[str]:
    return [tree.names[v] for v in tree.neighbors(node).tolist() if v < tree.n_observed]


def _group_labels(tree: Tree) -> Ints:
    """The first hidden neighbour of each observed node, or the node itself."""
    p = tree.n_observed
    near = (tree.neighbors(v) for v in range(p))
    return np.array([next((u for u in us.tolist() if u >= p), v) for v, us in enumerate(near)])


def _as_trees(a: AnyTree, b: AnyTree) -> tuple[Tree, Tree]:
    """Both trees. Newick text does not say which labelled inner nodes are observed; the other tree
    does."""
    if is_newick(a) and not is_newick(b):
        second, first = _as_trees(b, a)
        return first, second
    first = as_tree(a)
    return first, as_tree(b, first.observed_names)


def _check_names(a: Tree, b: Tree) -> None:
    only_a = sorted(set(a.observed_names) - set(b.observed_names))
    only_b = sorted(set(b.observed_names) - set(a.observed_names))
    if only_a or only_b:
        raise ValueError(
            f"the trees have different observed nodes: only the first has {only_a[:5]} "
            f"({len(only_a)}), only the second has {only_b[:5]} ({len(only_b)}); "
            "compare trees over the same names"
        )
