"""Small pictures of trees for notebooks."""

from __future__ import annotations

from xml.etree import ElementTree

from tests.plots.trees import ALL, random_tree

from latenttree.tree import Tree

SVG = "{http://www.w3.org/2000/svg}"


def test_every_node_has_a_dot_and_every_name_is_there() -> None:
    for tree in ALL:
        root = ElementTree.fromstring(tree._repr_svg_() or "")
        assert len(root.findall(f"{SVG}circle")) == tree.n_nodes
        assert [text.text for text in root.findall(f"{SVG}text")] == list(tree.observed_names)
        curves = "".join(path.get("d", "") for path in root.findall(f"{SVG}path"))
        assert curves.count("M") == tree.n_edges


def test_names_are_no_markup() -> None:
    tree = Tree.build(["<a>", "b&c", '"'], [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    root = ElementTree.fromstring(tree._repr_svg_() or "")
    assert [text.text for text in root.findall(f"{SVG}text")] == ["<a>", "b&c", '"']
    assert tree._repr_html_().startswith("<div>Tree: 3 observed nodes, 1 hidden</div><svg")


def test_large_trees_have_no_small_picture() -> None:
    tree = random_tree(2000, 0)
    assert tree._repr_svg_() is None
    assert "2,000 observed nodes" in tree._repr_html_()
    assert len(random_tree(1000, 0)._repr_svg_() or "") < 400_000
