"""Models and trees for other libraries: what comes out says the same."""

from __future__ import annotations

import json
import re
import sys
from importlib.util import find_spec
from io import BytesIO
from itertools import product
from pathlib import Path

import networkx
import numpy as np
import pytest

from latenttree.data.files.parquet import parquet_frame
from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io.dot import to_dot
from latenttree.io.exported import Exported
from latenttree.io.exports import EXPORTS, write_export
from latenttree.io.gexf import to_gexf
from latenttree.io.graphml import to_graphml
from latenttree.io.model_json import to_model_json
from latenttree.io.pgmpy import to_pgmpy
from latenttree.io.treefile import load_tree, parse_tree
from latenttree.model.emissions.poisson import Poisson
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


# ---- formats of other programs ----------------------------------------------------------

ODD = ("a b", 'say "x"', "it's", "ü/ß", "table", "variable;")


def odd_tree() -> Tree:
    """Names with blanks, quotes and letters of other languages; one observed node inside."""
    edges = [(0, 6), (1, 6), (2, 7), (4, 7), (6, 7), (4, 3), (4, 5)]
    support = [np.nan, np.nan, 0.25, 1, 0.5, np.nan, np.nan]
    return Tree.build(ODD, edges, [1, 2, 0.5, 0.25, 3, 1, 0.1], [1, -1, 0, 1, -1, 1, 1], support)


def odd_export() -> Exported:
    model = make_latent_tree(tree=odd_tree(), n_states=3, n_samples=0, random_state=0).model
    labels = {0: ["low", "a b", "=;"], 1: [-1, 0, 1], 2: ["x", "X", ""], 4: [True, False, None]}
    return Exported(model.tree, None, model, labels)


def same_distribution(network, model: TreeModel, names: list[str]) -> None:
    """All conditional distributions of a network of pgmpy, states by place."""
    for v, u in enumerate(model.parents.tolist()):
        table = network.get_cpds(names[v])
        assert table.variables[1:] == ([] if u < 0 else [names[u]])
        np.testing.assert_array_equal(table.values.reshape(model.cpts[v].shape), model.cpts[v])


@needs_pgmpy
def test_bif_is_read_by_pgmpy(tmp_path: Path) -> None:
    from pgmpy.readwrite import BIFReader

    exported = odd_export()
    write_export(tmp_path / "x.bif", exported)
    reader = BIFReader(tmp_path / "x.bif", include_properties=True)
    network = reader.get_model()
    assert network.check_model()
    names = reader.variable_names
    same_distribution(network, exported.model, names)
    assert names[:3] == ["a_b", "say__x_", "it_s"]
    kept = {v: reader.variable_properties[name] for v, name in enumerate(names)}
    assert kept[6] == []
    for v, name in enumerate(ODD):
        found = [x.split("=", 1)[1].strip() for x in kept[v] if x.startswith("name")]
        # pgmpy takes the quotes away
        assert [json.loads(f'"{x}"') for x in found] == ([name] if names[v] != name else [])
    assert reader.variable_states["a_b"] == ["low", "a_b", "__"]
    assert reader.variable_states[names[1]] == ["-1", "0", "1"]
    assert reader.variable_states[names[2]] == ["x", "X_2", "_"]


@needs_pgmpy
def test_uai_is_read_by_pgmpy(tmp_path: Path) -> None:
    from pgmpy.readwrite import UAIReader

    exported = odd_export()
    write_export(tmp_path / "x.uai", exported)
    reader = UAIReader(tmp_path / "x.uai")
    model = exported.model
    assert [int(n) for n in reader.get_domain().values()] == model.dims.tolist()
    for v, factor in enumerate(reader.get_model().get_factors()):
        u = int(model.parents[v])
        assert factor.variables == [f"var_{w}" for w in ([v] if u < 0 else [u, v])]
        expected = model.cpts[v].T[0] if u < 0 else model.cpts[v].T
        np.testing.assert_array_equal(factor.values, expected)


def test_numbers_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    model = small_model()
    cpts = tuple(np.ones((1, 2)) if v == 0 else cpt for v, cpt in enumerate(model.cpts))
    numeric = TreeModel(TREE, model.root, cpts, {0: Poisson(np.array([[1.0, 3.0]]))})
    for suffix in (".bif", ".uai"):
        with pytest.raises(DataError, match=r"categories alone, but 'a' is a number.*\.json"):
            write_export(tmp_path / f"x{suffix}", Exported(TREE, None, numeric))
        with pytest.raises(DataError, match="has no probabilities"):
            write_export(tmp_path / f"x{suffix}", Exported(TREE))
    assert not list(tmp_path.iterdir())
    record = json.loads(to_model_json(Exported(TREE, None, numeric)))["distributions"]
    a = next(x for x in record if x["node"] == "a")
    assert (a["mean"], a["variance"], a["family"]) == ([[1, 3]], [[1, 3]], "poisson")


def test_gexf_comes_back() -> None:
    tree = odd_tree()
    found = networkx.read_gexf(BytesIO(to_gexf(tree).encode()), node_type=int)
    expected = tree.to_networkx()
    for v, kept in expected.nodes(data=True):
        assert found.nodes[v]["label"] == kept["name"]
        assert found.nodes[v]["observed"] == kept["observed"]
    for a, b, kept in expected.edges(data=True):
        assert kept.items() <= found.edges[a, b].items()
        assert found.edges[a, b]["weight"] == pytest.approx(np.exp(-kept["length"]))


def test_dot_has_every_node_and_edge() -> None:
    text = to_dot(odd_tree())
    lines = [line.strip() for line in text.splitlines()]
    nodes = [
        m for line in lines if (m := re.fullmatch(r'(\d+) \[label="(.*)", shape=(\w+)\];', line))
    ]
    names = [m[2].replace('\\"', '"').replace("\\\\", "\\") for m in nodes]
    assert tuple(names) == odd_tree().names
    assert [m[3] for m in nodes] == ["box"] * 6 + ["ellipse"] * 2
    edges = [m for line in lines if (m := re.match(r"(\d+) -- (\d+) \[len=([\d.]+)", line))]
    assert [(int(m[1]), int(m[2])) for m in edges] == [tuple(e) for e in odd_tree().edges.tolist()]
    assert text.count("dashed") == 2


def test_json_holds_the_tree_and_every_distribution() -> None:
    exported = odd_export()
    text = to_model_json(exported)
    assert parse_tree(text.encode()).tree == exported.tree
    for record in json.loads(text)["distributions"]:
        v = exported.tree.index(record["node"])
        np.testing.assert_array_equal(record["probabilities"], exported.model.cpts[v])
        u = int(exported.model.parents[v])
        assert record["parent"] == (None if u < 0 else exported.tree.names[u])
        assert record["labels"] == exported.labels_of(v, 3)


def test_parquet_holds_edges_and_conditionals(tmp_path: Path) -> None:
    exported = odd_export()
    paths = write_export(tmp_path / "x.parquet", exported)
    assert [path.name for path in paths] == ["x.parquet", "x.conditionals.parquet"]
    edges = parquet_frame(paths[0]).to_pylist()
    model, names = exported.model, exported.tree.names
    above = {names[v]: names[u] for v, u in enumerate(model.parents.tolist()) if u >= 0}
    assert {row["node_b"]: row["node_a"] for row in edges} == above
    entries = parquet_frame(paths[1]).to_pylist()
    assert len(entries) == sum(cpt.size for cpt in model.cpts)
    for row in entries:
        v = exported.tree.index(row["node"])
        i = [str(x) for x in exported.labels_of(v, 3)].index(row["label"])
        j = 0 if row["parent_state"] is None else int(row["parent_state"])
        assert row["value"] == model.cpts[v][i, j]


@pytest.mark.parametrize("suffix", EXPORTS)
def test_every_export_is_written(tmp_path: Path, suffix: str) -> None:
    for path in write_export(tmp_path / f"x{suffix}", odd_export()):
        assert path.stat().st_size > 0
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]
    if suffix in (".nwk", ".newick", ".json"):
        assert load_tree(tmp_path / f"x{suffix}").tree.same_topology(odd_tree())


def test_an_unknown_suffix(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'x\.foo' does not tell in which format to write; end it"):
        write_export(tmp_path / "x.foo", odd_export())
