"""Trees that the tests of layouts and pictures share."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from latenttree.tree import Tree

ONE = Tree.build(["only"], [], [])
TWO = Tree.build(["x", "y"], [(0, 1)], [0.5])
STAR = Tree.build(list("abcde"), [(i, 5) for i in range(5)], [1, 2, 3, 4, 5])
#   a   d     e and g are observed inside the tree
#    \ /
#    h0---e---h1---g---h
#    /        /\
#   b        c  f
INNER = Tree.build(
    ["a", "b", "c", "d", "e", "f", "g", "h"],
    [(0, 8), (1, 8), (3, 8), (8, 4), (4, 9), (2, 9), (5, 9), (9, 6), (6, 7)],
    [1, 1, 2, 0.5, 0.5, 1, 1, 0.3, 0.2],
)


def random_tree(n_observed: int, seed: int, max_children: int = 4) -> Tree:
    """Random groups are joined under a new hidden node until one is left."""
    rng = np.random.default_rng(seed)
    free, edges, new = list(range(n_observed)), [], n_observed
    while len(free) > max_children + 1:
        chosen = set(rng.choice(len(free), rng.integers(2, max_children + 1), replace=False))
        edges += [(free[i], new) for i in chosen]
        free = [node for i, node in enumerate(free) if i not in chosen] + [new]
        new += 1
    edges += [(node, new) for node in free]
    names = [f"variable {i}" for i in range(n_observed)]
    return Tree.build(names, edges, rng.gamma(2, 0.3, len(edges)))


trees = st.builds(random_tree, st.integers(6, 60), st.integers(0, 10**6), st.integers(2, 6))
ALL = [ONE, TWO, STAR, INNER, random_tree(40, 0)]
