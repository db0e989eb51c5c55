"""Trees in files: nothing is lost, damage is named, and no half-written file stays behind."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from latenttree.errors import DataError
from latenttree.io.atomic import replacing
from latenttree.io.treefile import MAX_JSON_BYTES, MEMBER, load_tree, save_tree, tree_json
from latenttree.io.zip_archive import write_zip
from latenttree.tree import Tree

#   a       d
#    \     /
#    h0---h1--e      with f below e, so e is observed inside the tree
#    /     \
#   b       c
TREE = Tree.build(
    ["a", "b", "c", "d", "e", "f"],
    [(0, 6), (1, 6), (6, 7), (2, 7), (3, 7), (4, 7), (4, 5)],
    [0.1, 1 / 3, 2.0, 1e-9, 0.0, 0.7, 12.5],
)
LATENT_ONLY = Tree.build(["x", "y"], [(0, 1)], [0.5])


@dataclass
class Diagnostics:
    support: Any
    stage_seconds: dict[str, float] = field(default_factory=lambda: {"distances": 0.25})
    n_states: int = 3
    messages: list[str] = field(default_factory=lambda: ["two pairs unmeasurable"])
    hidden_states: Any = field(default_factory=lambda: np.array([3, 2]))
    support_method: str = "subsample"
    n_resamples: int = 25


def diagnostics() -> Diagnostics:
    support = np.full(TREE.n_edges, np.nan)
    support[TREE.internal_edges()] = 0.875
    return Diagnostics(support)


@pytest.mark.parametrize("suffix", [".json", ".ltree"])
def test_everything_comes_back(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"tree{suffix}"
    save_tree(path, TREE, diagnostics())
    saved = load_tree(path)
    assert saved.tree.names == TREE.names
    np.testing.assert_array_equal(saved.tree.edges, TREE.edges)
    np.testing.assert_array_equal(saved.tree.lengths, TREE.lengths)  # every bit
    np.testing.assert_array_equal(saved.support, diagnostics().support)
    assert saved.stage_seconds == {"distances": 0.25}
    assert (saved.n_states, saved.messages) == (3, ("two pairs unmeasurable",))
    assert (saved.hidden_states, saved.support_method) == ((3, 2), "subsample")
    assert saved.n_resamples == 25


@pytest.mark.parametrize("suffix", [".json", ".ltree", ".nwk", ".newick", ".NWK"])
@pytest.mark.parametrize("tree", [TREE, LATENT_ONLY, Tree.build(["only"], [], [])])
def test_tree_alone(tmp_path: Path, suffix: str, tree: Tree) -> None:
    path = tmp_path / f"tree{suffix}"
    save_tree(path, tree)
    saved = load_tree(path)
    assert saved.tree == tree
    assert np.all(np.isnan(saved.support))
    assert saved.support.shape == (tree.n_edges,)


@pytest.mark.parametrize("suffix", [".json", ".ltree"])
def test_signs_and_support_come_back(tmp_path: Path, suffix: str) -> None:
    rng = np.random.default_rng(0)
    signs, support = rng.integers(-1, 2, TREE.n_edges), rng.random(TREE.n_edges)
    path = tmp_path / f"tree{suffix}"
    save_tree(path, TREE.with_evidence(signs=signs, support=support))
    saved = load_tree(path)
    np.testing.assert_array_equal(saved.tree.signs, signs)
    np.testing.assert_array_equal(saved.tree.support, support)
    np.testing.assert_array_equal(saved.support, support)


def test_a_file_without_signs_has_none(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    save_tree(path, TREE)
    assert "signs" not in json.loads(path.read_text())
    saved = load_tree(path).tree
    assert not saved.signs.any()
    assert saved.support is None


@pytest.mark.parametrize("signs", [[1], [2] * TREE.n_edges, [1.5] * TREE.n_edges])
def test_damaged_signs_are_named(tmp_path: Path, signs: list[float]) -> None:
    path = tmp_path / "tree.json"
    save_tree(path, TREE)
    path.write_text(json.dumps(json.loads(path.read_text()) | {"signs": signs}))
    with pytest.raises(DataError, match="signs"):
        load_tree(path)


def test_same_tree_same_bytes(tmp_path: Path) -> None:
    for name in ("a.ltree", "b.ltree"):
        save_tree(tmp_path / name, TREE, diagnostics())
    assert (tmp_path / "a.ltree").read_bytes() == (tmp_path / "b.ltree").read_bytes()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "no field 'format'"),
        ({"version": 2}, "version 2 .* reads version 1"),
        ({"names": None}, "'names' is NoneType, not list"),
        ({"names": ["a", 3]}, "'names' holds 3, not str"),
        ({"n_observed": True}, "'n_observed' is bool, not int"),
        ({"n_observed": 99}, "n_observed is 99"),
        ({"edges": [[0, 1, 2]]}, "'edges' is not a list of pairs"),
        ({"edges": [[0.5, 1]]}, "'edges' is not a list of pairs"),
        ({"edges": [[0, 6]] * 7}, "cycle"),
        ({"lengths": ["1"] * 7}, "'lengths' holds '1', not float"),
        ({"lengths": [-1.0] * 7}, "length -1.0"),
        ({"support": [1.0]}, "'support' has 1 values for 7 edges"),
        ({"stage_seconds": {"a": "b"}}, "'stage_seconds'"),
    ],
)
def test_damaged_record_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "tree.json"
    save_tree(path, TREE, diagnostics())
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message) as caught:
        load_tree(path)
    assert "tree.json" in str(caught.value)


def test_missing_field_is_named(tmp_path: Path) -> None:
    path = tmp_path / "tree.json"
    save_tree(path, TREE)
    record = json.loads(path.read_text())
    del record["lengths"]
    path.write_text(json.dumps(record))
    with pytest.raises(DataError, match="'lengths' is missing"):
        load_tree(path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("t.json", b"{", "no valid tree"),
        ("t.json", b"\xff\xfe", "no valid tree"),
        ("t.json", b'{"format": NaN}', "NaN is not a number"),
        ("t.ltree", b"not a zip", "archive is damaged"),
        ("t.nwk", b"((a,b", "t.nwk: Newick text has a missing"),
        ("t.txt", b"", "must end in one of"),
    ],
)
def test_damaged_file_is_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_tree(tmp_path / name)


def test_truncated_archive_is_named(tmp_path: Path) -> None:
    path = tmp_path / "t.ltree"
    save_tree(path, TREE)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(DataError, match="archive is damaged"):
        load_tree(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"edges": [[0, 10**30]] * 7}, "int"),
        ({"lengths": [10**400] * 7}, "int"),
        ({"stage_seconds": {"a": 10**400}}, "int"),
        ({"n_observed": 10**30}, "n_observed is 10+"),
    ],
)
def test_numbers_beyond_all_types(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "tree.json"
    save_tree(path, TREE, diagnostics())
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(DataError, match=message):
        load_tree(path)


def test_hostile_archives(tmp_path: Path) -> None:
    path = tmp_path / "t.ltree"
    for content, message in (
        (b"[" * 100_000, "nested too deeply"),
        (b'{"format": 1e999}', "1e999 is too large"),
        (bytes(MAX_JSON_BYTES + 1), "declares 134,217,729 bytes; at most 134,217,728"),
    ):
        path.write_bytes(write_zip({MEMBER: content}))
        with pytest.raises(DataError, match=message):
            load_tree(path)
    path.write_bytes(write_zip({"other.json": b"{}"}))
    with pytest.raises(DataError, match=r"no member 'tree\.json'"):
        load_tree(path)


def test_members_beside_the_tree_are_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "t.ltree"
    path.write_bytes(write_zip({MEMBER: tree_json(TREE), "model.json": b"\xff"}))
    assert load_tree(path).tree == TREE


def test_every_byte_flipped(tmp_path: Path) -> None:
    """The very same tree, or DataError; nothing else escapes."""
    path = tmp_path / "t.ltree"
    save_tree(path, TREE, diagnostics())
    good = path.read_bytes()
    for at, bits in enumerate(np.random.default_rng(0).integers(1, 256, size=len(good)).tolist()):
        path.write_bytes(good[:at] + bytes([good[at] ^ bits]) + good[at + 1 :])
        try:
            found = load_tree(path)
        except DataError:
            continue
        np.testing.assert_array_equal(found.tree.lengths, TREE.lengths)
        np.testing.assert_array_equal(found.support, diagnostics().support)
        assert found.tree.names == TREE.names


def test_unknown_suffix_and_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'tree\.xml' does not tell how.*\.json"):
        save_tree(tmp_path / "tree.xml", TREE)
    with pytest.raises(FileNotFoundError, match="does not exist; create it first"):
        save_tree(tmp_path / "nowhere" / "tree.json", TREE)


def test_support_of_wrong_length(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\) for 7 edges"):
        save_tree(tmp_path / "tree.json", TREE, Diagnostics([1.0, 1.0]))


def write_half(path: Path, error: type[BaseException]) -> None:
    with replacing(path) as partial:
        partial.write_text("ha")
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_interrupted_write_leaves_the_old_file(tmp_path: Path, error: type[BaseException]) -> None:
    path = tmp_path / "tree.json"
    path.write_text("old")
    with pytest.raises(error):
        write_half(path, error)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["tree.json"]
