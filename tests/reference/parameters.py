"""Exact moments of views, node by node and edge by edge, from a known model."""

from __future__ import annotations

from typing import Any

import numpy as np

from latenttree.model import TreeModel
from latenttree.moments.triples import Layout, TripleMoments
from latenttree.views import Views


WRONG = 1e3


def along_path(model: TreeModel, a: int, b: int) -> Any:
    """`P(a | b)`, `(d_a, d_b)`, as the product of the conditionals on the path."""
    path = model.tree.path(b, a)
    result = np.eye(int(model.dims[b]))
    for previous, following in zip(path[:-1], path[1:], strict=True):
        result = model.conditional(following, previous) @ result
    return result


def exact_moments(model: TreeModel, views: Views, layout: Layout, tables: Any) -> TripleMoments:
    """What `triple_moments` tends to as samples grow; `tables[a]` `(d_a, k)` are the views."""
    p = model.tree.n_observed
    nodes = views.source[:, 0]
    own = [(tables[a] * model.marginals[a][:, None]).T @ tables[a] for a in nodes]

    def mean_given(view: int, node: int) -> Any:
        """`E[y | node]`, `(k, d_node)`."""
        return tables[nodes[view]].T @ along_path(model, int(nodes[view]), node)

    third, cross, emitted, counted = [], [], [], []
    for i, row in enumerate(views.view):
        a, b, c = (mean_given(v, p + i) for v in row)
        third.append(np.einsum("ih,jh,lh,h->ijl", a, b, c, model.marginals[p + i]))
    for i, j in layout.hidden:
        joint = model.joint(p + i, p + j)
        one = np.concatenate([mean_given(v, p + i) for v in views.view[i]])
        other = np.concatenate([mean_given(v, p + j) for v in views.view[j]])
        # views on the same side of the edge as the other's end never matter; fill them with nonsense
        exact = (one @ joint @ other.T).reshape(3, -1, 3, len(tables[0][0]))
        for s in range(3):
            if views.branch[i, s] == p + j:
                exact[s] = WRONG
            if views.branch[j, s] == p + i:
                exact[:, :, s] = WRONG
        cross.append(exact)
    for i, a in layout.emitted:
        joint = model.joint(a, p + i)
        stacked = np.stack([joint @ mean_given(v, p + i).T for v in views.view[i]], axis=1)
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
