"""Models and trees for other libraries: what comes out says the same."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from io import BytesIO
from itertools import product

import networkx
import numpy as np
import pytest

from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io.graphml import to_graphml
from latenttree.io.pgmpy import to_pgmpy
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

#  a       c
#   \     /
#    h0-h1       e is observed inside the tree
#   /     \
#  b       e--d
TREE = Tree.from_newick("((a:1,b:2)h0:0.1,c:0.5,(d:1)e:2)h1;").reorder("abcde")

needs_pgmpy = pytest.mark.skipif(find_spec("pgmpy") is None, reason="pgmpy is not installed")


def small_model() -> TreeModel:
    return make_latent_tree(tree=TREE, n_states=2, n_samples=0, random_state=0).model


def joint(model: TreeModel) -> np.ndarray:
    """The whole distribution, one axis for each node."""
    table = np.ones(model.dims)
    for states in product(*map(range, model.dims.tolist())):
        for v, u in enumerate(model.parents.tolist()):
            table[states] *= model.cpts[v][states[v], states[u] if u >= 0 else 0]
    return table


@needs_pgmpy
@pytest.mark.parametrize("root", ["h0", "h1", "a", "e"])
def test_pgmpy_has_the_same_distribution(root: str) -> None:
    model = small_model().rerooted(root)
    network = to_pgmpy(model)
    assert network.check_model()
    assert set(network.latents) == {"h0", "h1"}
    assert set(network.nodes) == set(TREE.names)
    expected = joint(model)
    # Products of the same seven numbers.
    for states in product(*map(range, model.dims.tolist())):
        found = network.get_state_probability(dict(zip(TREE.names, states, strict=True)))
        assert found == pytest.approx(expected[states], abs=1e-9)  # pgmpy rounds


@needs_pgmpy
def test_pgmpy_answers_a_query() -> None:
    from pgmpy.inference import VariableElimination

    model = small_model()
    labels = {"a": np.array(["no", "yes"]), "d": [10, 20]}
    network = to_pgmpy(model, state_names=labels)
    found = VariableElimination(network).query(["h0"], evidence={"a": "yes", "d": 10})
    table = joint(model)  # axes a b c d e h0 h1
    expected = table[1, :, :, 0].sum(axis=(0, 1, 2, 4))
    np.testing.assert_allclose(found.values, expected / expected.sum(), atol=1e-10)


@needs_pgmpy
def test_pgmpy_of_the_smallest_trees() -> None:
    one = TreeModel(Tree.build(["a"], [], []), 0, (np.array([[0.25], [0.75]]),))
    network = to_pgmpy(one)
    assert network.check_model()
    np.testing.assert_array_equal(network.get_cpds("a").values, [0.25, 0.75])


@needs_pgmpy
def test_wrong_state_names_are_named() -> None:
    with pytest.raises(ValueError, match=r"state_names\['a'\] has 1 different labels for 2 states"):
        to_pgmpy(small_model(), state_names={"a": ["x", "x"]})
    with pytest.raises(KeyError, match="no node is named 'z'"):
        to_pgmpy(small_model(), state_names={"z": [0, 1]})


def test_without_pgmpy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("pgmpy", "pgmpy.models", "pgmpy.factors.discrete"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=r'pip install "latenttree\[pgmpy\]"'):
        to_pgmpy(small_model())


def support() -> np.ndarray:
    values = np.full(TREE.n_edges, np.nan)
    values[TREE.internal_edges()] = [1 / 3] * len(TREE.internal_edges())
    return values


def test_networkx_carries_support_where_it_is_known() -> None:
    graph = TREE.to_networkx(support())
    for (a, b), length, value in zip(TREE.edges, TREE.lengths, support(), strict=True):
        expected = {"length": length} | ({} if np.isnan(value) else {"support": value})
        assert graph.edges[a, b] == expected
    with pytest.raises(ValueError, match=r"shape \(2,\) for 6 edges"):
        TREE.to_networkx([1, 1])


def test_graphml_comes_back() -> None:
    tree = Tree(("<a>", 'b&"', "ü\n", "", "d"), 4, TREE_STAR.edges, TREE_STAR.lengths)
    for given, values in ((TREE, support()), (TREE, None), (tree, None)):
        text = to_graphml(given, values)
        assert text.endswith("</graphml>\n")
        found = networkx.read_graphml(BytesIO(text.encode()), node_type=int)
        expected = given.to_networkx(values)
        # read_graphml drops what is empty.
        for v, kept in expected.nodes(data=True):
            assert found.nodes[v].get("name", "") == kept["name"]
            assert found.nodes[v]["observed"] == kept["observed"]
        assert {frozenset(e) for e in found.edges} == {frozenset(e) for e in expected.edges}
        for a, b, kept in expected.edges(data=True):
            assert {k: x for k, x in found.edges[a, b].items() if k != "id"} == kept


TREE_STAR = Tree.from_newick("(a,b,c,d)h0;")


@pytest.mark.parametrize("name", ["a\0", "a\x1b", "\ud800", "a\r"])
def test_names_that_xml_cannot_hold(name: str) -> None:
    with pytest.raises(ValueError, match="which XML cannot hold; rename the variable"):
        to_graphml(Tree.build([name, "b"], [(0, 1)], [1.0]))
