"""Newick and NEXUS texts with support, midpoints and outgroups, as dendropy reads them."""

from __future__ import annotations

import dendropy
import numpy as np
import pytest
from tests.reference.random_trees import random_tree

from latenttree.errors import DataError
from latenttree.tree import Tree


def tree_of(seed: int) -> Tree:
    """A random tree with signs and support, some observed nodes inside."""
    rng = np.random.default_rng(seed)
    tree = random_tree(rng, 12, max_degree=4, internal_observed_fraction=0.2)
    return tree.with_evidence(
        signs=rng.choice([-1, 1], tree.n_edges), support=rng.random(tree.n_edges).round(3)
    )


def depths(tree: dendropy.Tree) -> dict[str, float]:
    """Distance from the root to every labelled node."""
    found = {}
    for node in tree.preorder_node_iter():
        label = node.taxon.label if node.taxon else node.label
        if label is not None:
            found[label] = node.distance_from_root()
    return found


def read(text: str, schema: str = "newick") -> dendropy.Tree:
    return dendropy.Tree.get(data=text, schema=schema, suppress_internal_node_taxa=True)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("root", [None, "midpoint", "outgroup"])
def test_the_same_tree_comes_back(seed: int, root: str | None) -> None:
    tree = tree_of(seed)
    place = [tree.names[int(np.flatnonzero(tree.degree() == 1)[0])]] if root == "outgroup" else root
    text = tree.to_newick(signs=True, support="comment", root=place)
    found = Tree.from_newick(text, observed=tree.observed_names)
    assert found == tree
    np.testing.assert_allclose(found.support, tree.canonical().support, rtol=1e-6)
    assert found.names == tree.canonical(keep_names=True).names


@pytest.mark.parametrize("seed", range(20))
def test_the_midpoint_is_as_far_from_both_ends_of_the_longest_path(seed: int) -> None:
    tree = tree_of(seed)
    found = depths(read(tree.to_newick(root="midpoint")))
    longest = tree.path_lengths().max()
    assert max(found.values()) == pytest.approx(longest / 2)


@pytest.mark.parametrize("seed", range(20))
def test_an_outgroup_is_a_child_of_the_root(seed: int) -> None:
    tree = tree_of(seed)
    inner = tree.internal_edges()
    for bits in np.unpackbits(tree.splits(), axis=1, count=tree.n_observed)[inner]:
        outgroup = [tree.names[v] for v in np.flatnonzero(bits)]
        children = read(tree.to_newick(root=outgroup)).seed_node.child_nodes()
        assert len(children) == 2
        sides = []
        for child in children:
            labels = {n.taxon.label if n.taxon else n.label for n in child.preorder_iter()}
            sides.append(labels & set(tree.observed_names))
        assert set(outgroup) in sides


def test_support_as_labels_of_hidden_nodes() -> None:
    tree = Tree.build("abcd", [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)], [1] * 5, None, [0.9] * 5)
    found = read(tree.to_newick(support="label", root="midpoint"))
    assert [n.label for n in found.preorder_internal_node_iter()] == [None, "0.9", "0.9"]


def test_nexus_names_the_taxa() -> None:
    names = ["a b", "it's", 'say "x"', "ü_1", "5"]
    tree = Tree.build(names, [(v, 5) for v in range(5)], [1.0] * 5)
    found = read(tree.to_nexus(), "nexus")
    assert [taxon.label for taxon in found.taxon_namespace] == names
    assert depths(found) == dict.fromkeys(names, 1.0) | {"h0": 0.0}


def test_what_cannot_be_written() -> None:
    tree = Tree.build(["a", "b", "A"], [(v, 3) for v in range(3)], [1.0] * 3)
    with pytest.raises(DataError, match="differ in capitals alone"):
        tree.to_nexus()
    with pytest.raises(DataError, match="no support to write"):
        tree.to_newick(support="label")
    with pytest.raises(DataError, match="support='x'"):
        tree.to_newick(support="x")
    with pytest.raises(DataError, match="names 'z', which is no observed node"):
        tree.to_newick(root=["z"])
    with pytest.raises(DataError, match="has 3 of 3 observed nodes"):
        tree.to_newick(root=["a", "b", "A"])
    pairs = Tree.build("abcd", [(0, 4), (1, 4), (2, 5), (3, 5), (4, 5)], [1] * 5)
    with pytest.raises(DataError, match=r"no edge separates the outgroup \['a', 'c'\]"):
        pairs.to_newick(root=["a", "c"])
