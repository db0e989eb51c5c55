"""`Tree.collapse` where parts are independent."""

from __future__ import annotations

import numpy as np

from latenttree.tree import Tree


def test_independent_parts_stay_apart() -> None:
    """Two stars joined by an edge of support 0 without a sign; without signs it is contracted."""
    edges = [(0, 6), (1, 6), (2, 6), (3, 7), (4, 7), (5, 7), (6, 7)]
    support = [1, 1, 1, 1, 1, 1, 0]
    plain = Tree.build("abcdef", edges, np.ones(7), support=support)
    signed = Tree.build("abcdef", edges, np.ones(7), [1, 1, 1, -1, 1, 1, 0], support)
    assert plain.collapse(0.5).n_hidden == 1
    assert signed.collapse(0.5).n_hidden == 2
