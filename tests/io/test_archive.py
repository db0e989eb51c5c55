"""Models in files: the same bits come back, or an error says what is wrong with the file."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.reference.random_trees import trees

from latenttree.errors import DataError
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io.archive import (
    ARRAYS,
    MODEL,
    Saved,
    check_archive_path,
    jsonable,
    load_archive,
    save_archive,
)
from latenttree.io.npz import MAX_HEADER
from latenttree.io.treefile import MEMBER as TREE
from latenttree.io.treefile import load_tree, save_tree
from latenttree.io.zip_archive import write_zip
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

TABLES, OFFSETS = "tables.npy", "offsets.npy"
SCHEMA = {"names": ["a", "ä\ud800"], "categories": [[1, 2], None], "nested": {"deep": [[[]]]}}
PARAMS = {"n_states": "auto", "epsilon": None, "min_support": 0.1 + 0.2, "sweeps": True}
DIAGNOSTICS = {
    "n_states": 2,
    "standard_errors": [0.5, float("inf"), float("-inf"), 1e-300],
    "log_likelihood": [-3.5, -3.25],
    "conditions": [1.0, float("nan")],
    "stage_seconds": {"distances": 0.25},
    "messages": ["two pairs unmeasurable"],
}


def example() -> Saved:
    #  a       c
    #   \     /
    #    h0-h1--e     categories 3, hidden states 2
    #   /     \
    #  b       d
    tree = Tree.from_newick("((a,b)h0,c,d,e)h1;")
    rng = np.random.default_rng(0)
    model = random_model(tree, 2, 3, rng)
    support = np.full(tree.n_edges, np.nan)
    support[tree.internal_edges()] = 1 / 3
    return Saved(model, SCHEMA, PARAMS, DIAGNOSTICS, support)


def random_model(tree: Tree, k: int, d: int, rng: np.random.Generator) -> TreeModel:
    dims = [d] * tree.n_observed + [k] * tree.n_hidden
    root = int(rng.integers(tree.n_nodes))
    parents = tree.rooted(root).parents.tolist()
    widths = [1 if u < 0 else dims[u] for u in parents]
    tables = [rng.dirichlet(np.ones(n), size=w).T for n, w in zip(dims, widths, strict=True)]
    return TreeModel(tree, root, tuple(tables))


def check_same(found: Saved, saved: Saved) -> None:
    """Equal to the last bit."""
    a, b = found.model, saved.model
    assert a.tree.names == b.tree.names
    assert a.tree.n_observed == b.tree.n_observed
    assert a.root == b.root
    np.testing.assert_array_equal(a.tree.edges, b.tree.edges)
    pairs = [(a.tree.lengths, b.tree.lengths), (found.support, saved.support)]
    for one, other in [*pairs, *zip(a.cpts, b.cpts, strict=True)]:
        assert np.asarray(one).shape == np.asarray(other).shape
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()
    for name in ("schema", "params", "diagnostics"):
        # repr: NaN is not equal to itself.
        assert repr(getattr(found, name)) == repr(getattr(saved, name))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "m.ltree"


def test_everything_comes_back(path: Path) -> None:
    save_archive(path, example())
    found = load_archive(path)
    check_same(found, example())
    assert not found.model.cpts[0].flags.writeable
    assert found.model.cpts[0].base is None  # owns its memory: the file's bytes can go


@settings(max_examples=60, deadline=None)
@given(trees(max_observed=20), st.integers(1, 4), st.integers(1, 5), st.integers(0, 2**32 - 1))
def test_random_models_come_back(
    tmp_path_factory: pytest.TempPathFactory, tree: Tree, k: int, d: int, seed: int
) -> None:
    path = tmp_path_factory.mktemp("models") / "m.ltree"
    saved = Saved(random_model(tree, k, d, np.random.default_rng(seed)))
    save_archive(path, saved)
    check_same(load_archive(path), saved)


def test_a_second_round_changes_nothing(path: Path) -> None:
    save_archive(path, example())
    first = path.read_bytes()
    save_archive(path, load_archive(path))
    assert path.read_bytes() == first


def test_same_model_same_bytes(tmp_path: Path) -> None:
    for name in ("a.ltree", "b.ltree"):
        save_archive(tmp_path / name, example())
    assert (tmp_path / "a.ltree").read_bytes() == (tmp_path / "b.ltree").read_bytes()


def test_it_is_also_a_tree_file(path: Path) -> None:
    save_archive(path, example())
    saved = load_tree(path)
    assert saved.tree == example().model.tree
    np.testing.assert_array_equal(saved.support, example().support)
    assert (saved.n_states, saved.messages) == (2, ("two pairs unmeasurable",))
    assert (saved.hidden_states, saved.support_method) == ((2, 2), "")
    assert saved.stage_seconds == {"distances": 0.25}


def test_arrays_are_an_ordinary_npz(path: Path) -> None:
    save_archive(path, example())
    with np.load(io.BytesIO(members(path)[ARRAYS]), allow_pickle=False) as arrays:
        tables, offsets = arrays["tables"], arrays["offsets"]
    for v, table in enumerate(example().model.cpts):
        np.testing.assert_array_equal(tables[offsets[v] : offsets[v + 1]], table.ravel())


def test_a_large_model_is_small_where_it_can_be(path: Path) -> None:
    data = make_latent_tree(9, 3, 20_000, n_used=200, n_samples=0, random_state=0)
    saved = Saved(data.model)
    save_archive(path, saved)
    assert path.stat().st_size < 9 * 3 * 20_000 * 8 / 50
    check_same(load_archive(path), saved)


def test_a_tree_without_parameters_is_said_to_be_one(path: Path) -> None:
    save_tree(path, example().model.tree)
    with pytest.raises(
        DataError, match=r"m\.ltree .* a tree without parameters; `latenttree show`"
    ):
        load_archive(path)


# ---- what is refused on saving ------------------------------------------------------------


def test_names_and_folders(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"'m\.zip' is no name for a model; end it in \.ltree"):
        save_archive(tmp_path / "m.zip", example())
    with pytest.raises(FileNotFoundError, match="create it first"):
        check_archive_path(tmp_path / "nowhere" / "m.ltree")
    with pytest.raises(FileNotFoundError):
        load_archive(tmp_path / "m.ltree")


def test_what_json_cannot_hold_is_named(path: Path) -> None:
    path.write_bytes(b"old")
    for params, message in (
        ({"groups": {"g": {1, 2}}}, r"model\['params'\]\['groups'\]\['g'\] is set, which JSON"),
        ({"a": [0, object()]}, r"\['a'\]\[1\] is object"),
        ({"a": {3: 4}}, r"\['a'\] has the key 3"),
        ({"a": {"$number": "inf"}}, r"has the key '\$number'"),
    ):
        with pytest.raises(TypeError, match=message):
            save_archive(path, Saved(example().model, params=params))
    assert path.read_bytes() == b"old"
    assert os.listdir(path.parent) == ["m.ltree"]


def test_arrays_and_numpy_numbers_become_plain(path: Path) -> None:
    given = {
        "a": np.arange(3),
        "b": np.array([[1.5, np.nan]]),
        "c": np.float32(0.5),
        "d": (np.bool_(True), np.str_("x")),
    }
    save_archive(path, Saved(example().model, diagnostics=given))
    found = load_archive(path).diagnostics
    expected = {"a": [0, 1, 2], "b": [[1.5, float("nan")]], "c": 0.5, "d": [True, "x"]}
    assert repr(found) == repr(expected)


def test_jsonable_keeps_what_a_file_can_hold() -> None:
    params = {"n_states": np.int64(3), "names": ("a", "b"), "random_state": np.random, "x": None}
    assert jsonable(params) == {"n_states": 3, "names": ["a", "b"], "x": None}


def test_support_of_wrong_length() -> None:
    with pytest.raises(ValueError, match=r"shape \(2,\) for 6 edges"):
        Saved(example().model, support=[1.0, 1.0])


# ---- damage -------------------------------------------------------------------------------


def load_or_refuse(path: Path, content: bytes) -> bool:
    """Whether the bytes load, then as the very same model; anything but DataError escapes."""
    path.write_bytes(content)
    try:
        found = load_archive(path)
    except DataError:
        return False
    check_same(found, example())
    return True


def test_every_byte_flipped(path: Path) -> None:
    save_archive(path, example())
    good = path.read_bytes()
    rng = np.random.default_rng(0)
    loaded = 0
    for at, bits in enumerate(rng.integers(1, 256, size=len(good)).tolist()):
        loaded += load_or_refuse(path, good[:at] + bytes([good[at] ^ bits]) + good[at + 1 :])
    # Dates and versions in the zip's own records may change without harm; contents may not.
    assert loaded < len(good) / 4


def test_every_truncation(path: Path) -> None:
    save_archive(path, example())
    good = path.read_bytes()
    for n in range(len(good)):
        assert not load_or_refuse(path, good[:n])


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_pieces_overwritten_moved_and_repeated(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("damaged") / "m.ltree"
    save_archive(path, example())
    good = path.read_bytes()
    places = st.integers(0, len(good))
    start, stop = sorted([data.draw(places), data.draw(places)])
    filling = data.draw(st.one_of(st.binary(max_size=40), st.just(good[start:stop] * 2)))
    load_or_refuse(path, good[:start] + filling + good[stop:])


def members(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@settings(max_examples=400, deadline=None)
@given(data=st.data())
def test_members_damaged_behind_a_good_checksum(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """A valid model comes back, perhaps another one, or DataError; nothing else escapes."""
    path = tmp_path_factory.mktemp("hostile") / "m.ltree"
    save_archive(path, example())
    parts = members(path)
    with zipfile.ZipFile(io.BytesIO(parts[ARRAYS])) as archive:
        inner = {name: archive.read(name) for name in archive.namelist()}
    name = data.draw(st.sampled_from([TREE, MODEL, ARRAYS, TABLES, OFFSETS]))
    holder = inner if name in inner else parts
    good = holder[name]
    start = data.draw(st.integers(0, min(len(good) - 1, 400)))
    stop = start + data.draw(st.integers(0, 3))
    marks = st.sampled_from(
        [b"[", b"]", b"{", b"}", b",", b"-", b"9", b'"', b"e9", b"null", b"\\u"]
    )
    filling = data.draw(st.one_of(st.binary(max_size=4), marks))
    holder[name] = good[:start] + filling + good[stop:]
    if holder is inner:
        parts[ARRAYS] = write_zip(inner)
    path.write_bytes(write_zip(parts))
    try:
        found = load_archive(path).model
    except DataError:
        return
    for table in found.cpts:
        assert (table >= 0).all()
        np.testing.assert_allclose(table.sum(axis=0), 1, atol=1e-7)  # the constructor's tolerance


def with_json(member: str, **changes: Any) -> Callable[[dict[str, bytes]], None]:
    """Set fields of a JSON member; ... removes one."""

    def apply(parts: dict[str, bytes]) -> None:
        record = json.loads(parts[member]) | changes
        kept = {name: value for name, value in record.items() if value is not ...}
        parts[member] = json.dumps(kept).encode()

    return apply


def with_bytes(member: str, content: bytes) -> Callable[[dict[str, bytes]], None]:
    return lambda parts: parts.update({member: content})


def npy(array: Any, version: tuple[int, int] = (1, 0)) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=version)
    return stream.getvalue()


def header(text: str) -> bytes:
    padded = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(padded).to_bytes(2, "little") + padded


def with_arrays(tables: Any = None, offsets: Any = None) -> Callable[[dict[str, bytes]], None]:
    """Other arrays: bytes as they are, anything else as .npy; functions of the good one."""

    def apply(parts: dict[str, bytes]) -> None:
        with zipfile.ZipFile(io.BytesIO(parts[ARRAYS])) as archive:
            inner = {name: archive.read(name) for name in archive.namelist()}
        for name, given_ in ((TABLES, tables), (OFFSETS, offsets)):
            if callable(given_):
                given_ = given_(np.load(io.BytesIO(inner[name])))
            if given_ is not None:
                inner[name] = given_ if isinstance(given_, bytes) else npy(given_)
        parts[ARRAYS] = write_zip(inner)

    return apply


def put(at: int, value: float) -> Callable[[Any], Any]:
    """The array with one value changed."""
    return lambda values: np.concatenate([values[:at], [value], values[at + 1 :]])


class Bomb:
    """Unpickling this fails the test."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pytest.fail, ("unpickled",)


DEEP = b'{"format":' + b"[" * 200_000 + b"]" * 200_000 + b"}"

DAMAGE = {
    "no model.json": (lambda parts: parts.pop(MODEL), "tree without parameters"),
    "no arrays": (lambda parts: parts.pop(ARRAYS), "no member 'arrays.npz'"),
    "no tree": (lambda parts: parts.pop(TREE), "no member 'tree.json'"),
    "path": (with_bytes("../../evil", b""), r"member '\.\./\.\./evil', a model has only"),
    "other json": (with_bytes(MODEL, b"[]"), "no field 'format'"),
    "not utf-8": (with_bytes(MODEL, b"\xff"), "utf-8"),
    "not json": (with_bytes(MODEL, b"{"), "m.ltree"),
    "nested": (with_bytes(MODEL, DEEP), "nested too deeply"),
    "nested tree": (with_bytes(TREE, DEEP), "nested too deeply"),
    "field twice": (with_bytes(MODEL, b'{"format":1,"format":2}'), "'format' twice"),
    "NaN": (with_bytes(MODEL, b'{"format":NaN}'), "NaN is not a number"),
    "overflow": (with_bytes(MODEL, b'{"format":1e999}'), "1e999 is too large"),
    "digits": (with_bytes(MODEL, b'{"format":' + b"9" * 10_000 + b"}"), "digits"),
    "no number": (with_json(MODEL, params={"a": {"$number": "7"}}), "is no number"),
    "newer": (with_json(MODEL, version=3), "version 3 .* reads version 2; upgrade latenttree"),
    "older": (with_json(MODEL, version=0), "version 0 .* save the model again"),
    "version": (with_json(MODEL, version=True), "'version' is bool, not int"),
    "newer tree": (with_json(TREE, version=2), "version 2"),
    "field": (with_json(MODEL, dims=...), "lacks the field 'dims'"),
    "schema": (with_json(MODEL, schema=[]), "'schema' is list, not dict"),
    "more": (with_json(MODEL, more=1), "unknown field 'more'"),
    "root": (with_json(MODEL, root=7), r"root is node 7; the nodes are 0\.\.6"),
    "root below": (with_json(MODEL, root=-1), "root is node -1"),
    "nodes": (with_json(MODEL, nodes=["a"]), "parts do not belong"),
    "few dims": (with_json(MODEL, dims=[2]), "'dims' has 1 values for 7 nodes"),
    "dim type": (with_json(MODEL, dims=[3.0] + [2] * 6), "'a' has 3.0 states"),
    "dim zero": (with_json(MODEL, dims=[2, 0] + [2] * 5), "'b' has 0 states"),
    "dims": (with_json(MODEL, dims=[4, 3, 3, 3, 3, 2, 2]), r"tables.npy declares shape \(36,\)"),
    "dims alike": (with_json(MODEL, dims=[2, 4, 3, 3, 3, 2, 2]), "offsets.npy does not fit"),
    "huge dims": (with_json(MODEL, dims=[10**9] * 7), r"tables declare [\d,]+ bytes, at most"),
    "vast dims": (with_json(MODEL, dims=[10**4000] * 7), "'a' has 10+ states"),
    "vast root": (with_json(MODEL, root=10**4000), "root is node 10+"),
    "edges": (with_json(TREE, edges=[[0, 10**30]] * 6), "int"),
    "lengths": (with_json(TREE, lengths=[10**400] * 6), "int"),
    "n_observed": (with_json(TREE, n_observed=10**30), "n_observed"),
    "cycle": (with_json(TREE, edges=[[0, 1]] * 6), "cycle"),
    "support": (with_json(TREE, support=[1.0]), "'support' has 1 values"),
    "bad npz": (with_bytes(ARRAYS, b"PK"), "archive is damaged"),
    "npz path": (with_bytes(ARRAYS, write_zip({"/tables.npy": b""})), "arrays.npz holds"),
    "negative": (with_arrays(put(0, -0.25)), "'a' are not distributions: smallest value -0.25"),
    "nan": (with_arrays(put(0, np.nan)), "'a' are not distributions"),
    "infinite": (with_arrays(put(0, np.inf)), "'a' are not distributions"),
    "sums": (with_arrays(lambda t: t * 1.01), "are not distributions: .* to 1.01"),
    "short": (with_arrays(lambda t: t[:-1]), r"shape \(\d+,\) and type float64"),
    "long": (with_arrays(lambda t: np.append(t, 1.0)), r"declares shape"),
    "float32": (with_arrays(lambda t: t.astype("<f4")), "type float32"),
    "big-endian": (with_arrays(lambda t: t.astype(">f8")), "type >f8"),
    "two axes": (with_arrays(lambda t: t[:, None]), "declares shape"),
    "version 2.0": (with_arrays(lambda t: npy(t, (2, 0))), "damaged header"),
    "offsets": (with_arrays(None, lambda o: o + 1), "offsets.npy does not fit"),
    "pickle": (with_arrays(pickle.dumps(Bomb())), "damaged header"),
    "objects": (with_arrays(np.array([Bomb()], dtype=object)), "type object"),
    "no npy": (with_arrays(b""), "damaged header"),
    "huge npy": (
        with_arrays(header("{'descr': '<f8', 'fortran_order': False, 'shape': (10**15,), }")),
        "damaged header",
    ),
    "declared": (
        with_arrays(header("{'descr': '<f8', 'fortran_order': False, 'shape': (999999999999,), }")),
        r"declares shape \(999999999999,\)",
    ),
    "lying npy": (
        with_arrays(lambda t: npy(t)[:-8]),
        r"tables.npy has [\d,]+ bytes for \d+ values",
    ),
    "deep header": (with_arrays(header("(" * 200)), "damaged header"),
    "long header": (with_arrays(header("{" + " " * (MAX_HEADER + 10) + "}")), "damaged header"),
    "large npz": (with_bytes(ARRAYS, bytes(2**20)), "declares 1,048,576 bytes; at most"),
    "large member": (with_arrays(bytes(2**20)), "'tables.npy' declares 1,048,576 bytes"),
}


@pytest.mark.parametrize(("damage", "message"), DAMAGE.values(), ids=list(DAMAGE))
def test_damage_is_named(
    path: Path, damage: Callable[[dict[str, bytes]], None], message: str
) -> None:
    save_archive(path, example())
    parts = members(path)
    damage(parts)
    path.write_bytes(write_zip(parts))
    with pytest.raises(DataError, match=message) as caught:
        load_archive(path)
    assert str(caught.value).startswith("m.ltree")
    assert len(str(caught.value)) < 1000


def test_a_member_that_is_there_twice(path: Path) -> None:
    save_archive(path, example())
    with zipfile.ZipFile(path, "a") as archive, pytest.warns(UserWarning, match="Duplicate"):
        archive.writestr(MODEL, "{}")
    with pytest.raises(DataError, match=r"the member 'model\.json' twice"):
        load_archive(path)


def test_a_name_with_a_zero_byte(path: Path) -> None:
    # zipfile would cut it there, and read one member for another.
    save_archive(path, example())
    content = write_zip(members(path) | {"tree.json?../evil": b""})
    path.write_bytes(content.replace(b"tree.json?", b"tree.json\0"))
    with pytest.raises(DataError, match=r"the member 'tree\.json\\x00\.\./evil'"):
        load_archive(path)


def test_other_packing_and_encryption(path: Path) -> None:
    save_archive(path, example())
    parts = members(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match=r"'tree\.json' is encrypted or packed by method 14"):
        load_archive(path)
    content = bytearray(write_zip(parts))
    content[content.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"'tree\.json' is encrypted"):
        load_archive(path)


def test_a_zip_bomb_is_refused_before_it_is_unpacked(path: Path) -> None:
    save_archive(path, example())
    parts = members(path) | {MODEL: bytes(2**28)}  # 256 MiB of zeros in 256 KiB
    path.write_bytes(write_zip(parts))
    assert path.stat().st_size < 2**20
    with pytest.raises(DataError, match=r"'model\.json' declares 268,435,456 bytes; at most"):
        load_archive(path)


def test_a_declared_size_that_lies(path: Path) -> None:
    save_archive(path, example())
    good = path.read_bytes()
    sizes = [info.file_size for info in zipfile.ZipFile(path).infolist()]
    central = good.index(b"PK\x01\x02")
    for lie in (0, sizes[0] - 1, sizes[0] + 1, 2**26):
        changed = bytearray(good)
        changed[central + 24 : central + 28] = lie.to_bytes(4, "little")
        path.write_bytes(changed)
        with pytest.raises(DataError, match=r"damaged"):
            load_archive(path)


def test_limits_can_be_set(path: Path) -> None:
    save_archive(path, example())
    size = path.stat().st_size
    with pytest.raises(DataError, match=rf"has {size:,} bytes, at most {size - 1:,} are read"):
        load_archive(path, max_bytes=size - 1)
    data = make_latent_tree(3, 2, 20_000, n_used=4, n_samples=0, random_state=0)
    save_archive(path, Saved(data.model))  # about a megabyte of tables
    with pytest.raises(DataError, match="at most 100,000 are read; pass a larger max_bytes"):
        load_archive(path, max_bytes=100_000)


def test_an_interrupted_save_leaves_the_old_file(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_archive(path, example())
    good = path.read_bytes()

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        save_archive(path, Saved(example().model))
    assert path.read_bytes() == good
    assert os.listdir(path.parent) == ["m.ltree"]
