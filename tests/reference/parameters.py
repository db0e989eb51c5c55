"""Moments of views, exact from a known model or sample by sample; models in matching labels."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.simulation import make_tree
from latenttree.model.tree_model import TreeModel
from latenttree.moments.triples import TripleLayout, TripleMoments
from latenttree.parameters.decomposition import decompose
from latenttree.parameters.features import leaf_projections
from latenttree.parameters.regressions import balanced, project_simplex
from latenttree.parameters.solving import (
    LEAST_TRUST,
    LEAST_WEIGHT,
    Parameters,
    layout_of,
    solve_moments,
    whitening,
)
from latenttree.parameters.views import Views, choose_views
from latenttree.tree import Tree

WRONG = 1e3
"""Stands where a moment must not be read."""


def along_path(model: TreeModel, a: int, b: int) -> Any:
    """`P(a | b)`, `(d_a, d_b)`, as the product of the conditionals on the path."""
    path = model.tree.path(b, a)
    result = np.eye(int(model.dims[b]))
    for previous, following in itertools.pairwise(path):
        result = model.conditional(following, previous) @ result
    return result


def exact_moments(
    model: TreeModel, views: Views, layout: TripleLayout, tables: Any
) -> TripleMoments:
    """What `triple_moments` tends to as samples grow; `tables[a]` `(d_a, k)` are the views."""
    p = model.tree.n_observed
    nodes = views.source[:, 0]
    own = [(tables[a] * model.marginals[a][:, None]).T @ tables[a] for a in nodes]

    def mean_given(view: int, node: int) -> Any:
        """`E[y | node]`, `(k, d_node)`."""
        return tables[nodes[view]].T @ along_path(model, int(nodes[view]), node)

    third, cross, emitted, counted = [], [], [], []
    node = p + views.owner
    for i, row in enumerate(views.view):
        a, b, c = (mean_given(v, node[i]) for v in row)
        third.append(np.einsum("ih,jh,lh,h->ijl", a, b, c, model.marginals[node[i]]))
    for i, j in layout.hidden:
        same = node[i] == node[j]  # two triplets of one hidden node
        joint = np.diag(model.marginals[node[i]]) if same else model.joint(node[i], node[j])
        one = np.concatenate([mean_given(v, node[i]) for v in views.view[i]])
        other = np.concatenate([mean_given(v, node[j]) for v in views.view[j]])
        # views beyond the other end of the edge must not be read
        exact = (one @ joint @ other.T).reshape(3, -1, 3, len(tables[0][0]))
        for s in range(3):
            if views.branch[i, s] == node[j]:
                exact[s] = WRONG
            if views.branch[j, s] == node[i]:
                exact[:, :, s] = WRONG
        cross.append(exact)
    for i, a in layout.emitted:
        joint = model.joint(a, node[i])
        stacked = np.stack([joint @ mean_given(v, node[i]).T for v in views.view[i]], axis=1)
        for s in range(3):
            if views.branch[i, s] == a:
                stacked[:, s] = WRONG
        emitted.append(stacked)
    for a, b in layout.counted:
        counted.append(model.joint(a, b))
    k = tables[0].shape[1]
    return TripleMoments(
        np.array(own).reshape(-1, k, k),
        np.array(third).reshape(-1, k, k, k),
        np.array(cross).reshape(-1, 3, k, 3, k),
        tuple(emitted),
        tuple(counted),
    )


def slow_moments(
    codes: NDArray[Any],
    y: NDArray[Any],
    layout: TripleLayout,
    k: int,
    weights: NDArray[Any] | None = None,
    statistics: Mapping[int, NDArray[Any]] | None = None,
) -> dict[str, list[NDArray[np.float64]]]:
    """The same moments from samples, one at a time, each over the samples that have all of it.

    `y` `(n, n_views, k)` are the views, zero where missing; codes of -1 are missing;
    `statistics[a]` `(n, T)` of a variable of another family, zero where it is missing."""
    w = np.ones(len(codes)) if weights is None else weights
    y, d, statistics = y.astype(np.float64), layout.dims, statistics or {}
    seen = y[:, :, 0] > 0

    def mean(terms: Iterable[Any], used: Any) -> NDArray[np.float64]:
        total = sum(w[i] * term for i, (term, u) in enumerate(zip(terms, used, strict=True)) if u)
        return np.asarray(total / (w @ used))

    def emitted_moment(i: int, a: int) -> NDArray[np.float64]:
        """By view: samples that have the variable and the view."""
        t = statistics[a] if a in statistics else np.eye(d[a] + 1)[codes[:, a], :-1]
        has = t.any(axis=1)
        parts = [
            mean((np.outer(x, z) for x, z in zip(t, y[:, v], strict=True)), has & seen[:, v])
            for v in layout.view[i]
        ]
        return np.stack(parts, axis=1)

    third = [
        mean(
            (np.einsum("i,j,l->ijl", *z) for z in y[:, row]),
            seen[:, row].all(axis=1),
        )
        for row in layout.view
    ]
    cross = []
    for i, j in layout.hidden:
        block = np.zeros((3, k, 3, k))
        for s, u in enumerate(layout.view[i]):
            for t, v in enumerate(layout.view[j]):
                terms = (np.outer(*z) for z in y[:, [u, v]])
                block[s, :, t] = mean(terms, seen[:, u] & seen[:, v])
        cross.append(block)
    return {
        "own": [mean((np.outer(z, z) for z in y[:, v]), seen[:, v]) for v in range(layout.n_views)],
        "third": third,
        "cross": cross,
        "emitted": [emitted_moment(i, a) for i, a in layout.emitted],
        "counted": [
            mean(
                (np.outer(np.eye(d[a])[x[a]], np.eye(d[b])[x[b]]) for x in codes),
                (codes[:, [a, b]] >= 0).all(axis=1),
            )
            for a, b in layout.counted
        ],
    }


def exact_tables(model: TreeModel, k: int) -> list[NDArray[np.float64]]:
    """Views of the observed nodes in directions that tell their neighbour's states."""
    found = []
    for a in range(model.tree.n_observed):
        other = int(model.tree.neighbors(a)[0])
        found.append(
            leaf_projections(model.conditional(other, a).T[:, : k - 1], model.marginals[a])
        )
    return found


def solve_exactly(model: TreeModel, k: int) -> Parameters:
    """What `solve_moments` makes of the exact moments of a model."""
    views = choose_views(model.tree, k - 1, hidden=False)
    layout = layout_of(model.tree, views, model.dims[: model.tree.n_observed])
    return solve_moments(
        model.tree, views, layout, exact_moments(model, views, layout, exact_tables(model, k))
    )


def slow_solve(
    tree: Tree, views: Views, layout: TripleLayout, moments: TripleMoments, worst_gain: float
) -> TreeModel:
    """What `solve_moments` does for categories, edge by edge, with one predictor at a time."""
    p, m = tree.n_observed, tree.n_hidden
    roots = whitening(moments.own)[views.view]
    third = [
        np.einsum("ia,jb,lc,abc->ijl", *r, x) for r, x in zip(roots, moments.third, strict=True)
    ]
    parts = [decompose(*_lower(x[None])) for x in third]
    w = [
        np.maximum(d.weights[0], LEAST_WEIGHT) / np.maximum(d.weights[0], LEAST_WEIGHT).sum()
        for d in parts
    ]
    factors = [np.stack([f[0] for f in d.factors]) for d in parts]
    trust = [1 / min(d.condition[0], LEAST_TRUST) ** 2 for d in parts]

    def reading(r: int, without: int) -> NDArray[np.float64]:
        """`G^-1 L R`: from moments with the views as they are to those with the states."""
        kept = [s for s in range(3) if views.branch[r, s] != without]
        k = len(w[r])
        b = np.concatenate([np.ones((1, k)), *(factors[r][s][1:] for s in kept)])
        second = (b * w[r]) @ b.T
        for i in range(len(kept)):
            block = slice(1 + i * (k - 1), 1 + (i + 1) * (k - 1))
            second[block, block] = np.eye(k - 1)
        linear = (b * w[r]).T @ np.linalg.inv(second)
        found = np.linalg.pinv(linear @ b, rcond=1 / worst_gain) @ linear
        wide = np.zeros((k, 3, k))
        wide[:, kept[0], 0] = found[:, 0]
        for i, s in enumerate(kept):
            wide[:, s, 1:] = found[:, 1 + i * (k - 1) : 1 + (i + 1) * (k - 1)]
        return np.einsum("jsi,sia->jsa", wide, roots[r]).reshape(k, -1)

    def states(i: int, j: int, moment: Any, apart: bool) -> Any:
        one, other = (
            (reading(i, p + j), reading(j, p + i)) if apart else (reading(i, -1), reading(j, -1))
        )
        return one @ moment.reshape(one.shape[1], -1) @ other.T

    for (i, r), moment in zip(layout.hidden.tolist(), moments.cross, strict=True):
        if r >= m:
            order = linear_sum_assignment(-states(i, r, moment, apart=False))[1]
            w[r], factors[r] = w[r][order], factors[r][:, :, order]
    estimates: dict[tuple[int, int], list[Any]] = {}
    for (r, a), moment in zip(layout.emitted.tolist(), moments.emitted, strict=True):
        table = moment.reshape(len(moment), -1) @ reading(r, a).T / w[r]
        own = estimates.setdefault((a, int(views.owner[r])), [])
        own.append((trust[r], project_simplex(table)))
    joints = {
        (a, p + h): sum(t * x for t, x in tables) / sum(t for t, _ in tables) * w[h]
        for (a, h), tables in estimates.items()
    }
    for (i, j), moment in zip(layout.hidden.tolist(), moments.cross, strict=True):
        if j < m:
            joints[p + i, p + j] = balanced(states(i, j, moment, apart=True), w[i], w[j])
    joints |= {tuple(e): x for e, x in zip(layout.counted.tolist(), moments.counted, strict=True)}
    return TreeModel.from_joints(
        tree, [joints[a, b] if a < b else joints[b, a].T for a, b in tree.edges.tolist()]
    )


def _lower(third: Any) -> tuple[Any, Any, Any]:
    """A third moment of views that begin with 1, and the moments of lower order in it."""
    first = third[:, :, 0, 0], third[:, 0, :, 0], third[:, 0, 0, :]
    return third, first, (third[:, :, :, 0], third[:, :, 0, :], third[:, 0, :, :])


def matched(found: TreeModel, true: TreeModel) -> TreeModel:
    """`found` with the states of its hidden nodes in the order of the truth's, node by node, by
    the distributions of observed nodes in three branches given them."""
    p = true.tree.n_observed
    views = choose_views(true.tree, 1, hidden=False)
    orders = {}
    for v, row in enumerate(views.view[: true.tree.n_hidden], start=p):
        near = views.source[row, 0].tolist()
        a, b = (np.concatenate([along_path(m, x, v) for x in near]) for m in (true, found))
        cost = ((a[:, :, None] - b[:, None, :]) ** 2).sum(axis=0)
        orders[v] = linear_sum_assignment(cost)[1]
    return found.relabelled(orders)


def largest_error(found: TreeModel, true: TreeModel) -> float:
    """Largest error of any conditional, in either direction, or marginal, labels matched."""
    found = matched(found, true)
    errors = [np.abs(x - y).max() for x, y in zip(found.marginals, true.marginals, strict=True)]
    for a, b in true.tree.edges.tolist():
        for v, u in ((a, b), (b, a)):
            errors.append(np.abs(found.conditional(v, u) - true.conditional(v, u)).max())
    return float(max(errors))


SHAPES = ("balanced", "random", "caterpillar", "star")


def random_truth(seed: int) -> tuple[str, int, TreeModel]:
    """A kind, a number of states from 2 to 8, and a model with 3 to 20 leaves.

    "even": edges of a given length, all directions alike, the easy case; "drawn": every column
    drawn from the uniform distribution over the simplex, some directions weak; "sharp": from a
    Dirichlet distribution with weight 0.3, some states rare. Categories from k to 50; in every
    fifth tree observed nodes are internal, with k categories."""
    rng = np.random.default_rng(seed)
    kind, shape = ("even", "drawn", "sharp")[seed % 3], SHAPES[seed // 3 % 4]
    k, p, inside = int(rng.integers(2, 9)), int(rng.integers(3, 21)), seed % 5 == 4
    d = k if inside else int(rng.integers(k, 51))
    share = 0.3 if inside and shape != "star" else 0.0
    lengths = (0.05 * (k - 1), 1.5 * (k - 1))
    if kind == "even":
        data = make_latent_tree(
            p,
            k,
            d,
            shape=shape,  # type: ignore[arg-type]
            edge_length=lengths,
            internal_observed=share,
            n_samples=0,
            random_state=rng,
        )
        return kind, k, data.model
    tree = make_tree(p, shape, 3, lengths, lengths, share, rng)  # type: ignore[arg-type]
    root = tree.n_observed
    parents = tree.rooted(root).parents.tolist()
    dims = [d if v < tree.n_observed else k for v in range(tree.n_nodes)]
    alpha = 1.0 if kind == "drawn" else 0.3
    columns = [1 if u < 0 else dims[u] for u in parents]
    draws = (rng.dirichlet(np.full(dims[v], alpha), size=columns[v]).T for v in range(tree.n_nodes))
    return kind, k, TreeModel(tree, root, tuple(draws))


def rarest_state(model: TreeModel) -> float:
    """Smallest probability of a hidden state."""
    hidden = model.marginals[model.tree.n_observed :]
    return float(min(w.min() for w in hidden))
