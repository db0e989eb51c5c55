"""Trees without the variables that depend on no other."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plots.trees import STAR, random_tree

from latenttree.plots.parts import parts_of, without_small_parts


@given(st.integers(0, 10**6), st.floats(0, 0.4))
@settings(max_examples=60, deadline=None)
def test_what_is_left_and_how_it_is_joined(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    tree = random_tree(40, seed)
    support = np.where(rng.random(tree.n_edges) < share, 0.0, 0.8)
    signs = np.where(support == 0, 0, rng.choice([-1, 1], tree.n_edges))
    tree = tree.with_evidence(support=support, signs=signs)
    found, part = without_small_parts(tree, 0), parts_of(tree)
    sizes = np.bincount(part[:40], minlength=part.max() + 1)
    left = [tree.names[v] for v in range(40) if sizes[part[v]] >= 3]
    if not left:
        assert found is tree
        return
    assert list(found.observed_names) == left
    lengths, along = tree.path_lengths(), tree.path_signs()
    index = [tree.index(name) for name in left]
    same = part[index][:, None] == part[index]
    again = parts_of(found)[: len(left)]
    assert ((again[:, None] == again) == same).all()
    inside = np.ix_(index, index)
    np.testing.assert_allclose(found.path_lengths()[same], lengths[inside][same])
    assert (found.path_signs()[same] == along[inside][same]).all()


def test_small_trees_and_trees_of_unknown_support_stay() -> None:
    assert without_small_parts(STAR) is STAR
    assert without_small_parts(STAR, 0) is STAR
    apart = STAR.with_evidence(support=np.zeros(5))
    assert without_small_parts(apart, 0) is apart
