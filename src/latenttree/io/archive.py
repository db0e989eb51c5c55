"""A whole model in one file: `.ltree`.

A zip archive of three members:

- ``tree.json``: the tree with the support of its edges, as `latenttree.io.treefile` writes it, so
  that a file with parameters is also a tree file;
- ``model.json``: version, root, nodes, number of states of each, the schema of the data, the
  estimator's parameters and its diagnostics;
- ``arrays.npz``: ``tables``, all the tables `P(v | parent)` one after another, row by row, and
  ``offsets``, where each begins.

Reading executes nothing. Every size is compared with what the members read before imply before
anything is unpacked, and everything is checked before anything is returned.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.errors import DataError
from latenttree.io.atomic import check_folder, replacing
from latenttree.io.jsontext import from_json, plain, to_json
from latenttree.io.treefile import MAX_JSON_BYTES, SavedTree, parse_tree, tree_json
from latenttree.io.treefile import MEMBER as TREE
from latenttree.io.zipped import ZipReader, write_zip
from latenttree.model import TreeModel
from latenttree.tree import Tree

Floats = NDArray[np.float64]

FORMAT = "latenttree model"
VERSION = 1
SUFFIX = ".ltree"
MODEL, ARRAYS = "model.json", "arrays.npz"
MEMBERS = (TREE, MODEL, ARRAYS)
TABLES, OFFSETS = "tables.npy", "offsets.npy"

MAX_BYTES = 2**31
"""Files, and tables, of more bytes are refused unless the caller allows more."""
MAX_HEADER = 256
"""Bytes before the values of a one-dimensional .npy file; NumPy writes 128."""


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds.

    Attributes
    ----------
    model : tree, root and tables.
    schema : how data is encoded; any JSON object.
    params : parameters of the estimator that JSON can hold.
    diagnostics : what the fit said about itself; arrays as lists. ``n_states`` (int),
        ``stage_seconds`` (name to float) and ``messages`` (list of str), where given, are also
        what `latenttree show` prints.
    support : (E,) support of the edges, NaN where unknown; all NaN if not given.
    """

    model: TreeModel
    schema: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    support: ArrayLike | None = None

    def __post_init__(self) -> None:
        n_edges = self.model.tree.n_edges
        given = np.full(n_edges, np.nan) if self.support is None else self.support
        support = np.array(given, dtype=np.float64)
        if support.shape != (n_edges,):
            raise ValueError(
                f"support has shape {support.shape} for {n_edges} edges; give one for each edge"
            )
        object.__setattr__(self, "support", support)


# ---- writing ----------------------------------------------------------------------------


def check_archive_path(path: str | os.PathLike[str]) -> Path:
    """``path``, or an error if no model can be written there; call it before long work."""
    target = Path(path)
    if target.suffix.lower() != SUFFIX:
        raise ValueError(f"{target.name!r} is no name for a model; end it in {SUFFIX}")
    check_folder(target)
    return target


def save_archive(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write ``saved``; the file appears whole or not at all. Equal models give equal bytes."""
    target = check_archive_path(path)
    tree = saved.model.tree
    members = {
        TREE: tree_json(tree, _Summary(saved)),
        MODEL: to_json(_to_record(saved), "model"),
        ARRAYS: _arrays(saved.model),
    }
    content = write_zip(members, stored=[ARRAYS])  # its own members are deflated
    with replacing(target) as partial:
        partial.write_bytes(content)


def jsonable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Those entries of ``params`` that a file can hold, in JSON's types."""
    kept = {}
    for name, value in params.items():
        try:
            kept[name] = plain(value, name)
        except TypeError:
            continue
    return kept


class _Summary:
    """What ``tree.json`` keeps of the diagnostics."""

    def __init__(self, saved: Saved) -> None:
        said = saved.diagnostics
        self.support: ArrayLike = np.asarray(saved.support)
        self.stage_seconds: Mapping[str, float] = said.get("stage_seconds", {})
        self.n_states: int = said.get("n_states", _hidden_states(saved.model))
        self.messages: list[str] = list(said.get("messages", ()))


def _hidden_states(model: TreeModel) -> int:
    return int(model.dims[model.tree.n_observed :].max(initial=0))


def _to_record(saved: Saved) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "root": saved.model.root,
        "nodes": saved.model.tree.names,
        "dims": saved.model.dims,
        "schema": saved.schema,
        "params": saved.params,
        "diagnostics": saved.diagnostics,
    }


def _arrays(model: TreeModel) -> bytes:
    tables = np.concatenate([table.ravel() for table in model.tables])
    offsets = np.concatenate([[0], np.cumsum([table.size for table in model.tables])])
    return write_zip({TABLES: _npy(tables, "<f8"), OFFSETS: _npy(offsets, "<i8")})


def _npy(array: NDArray[Any], dtype: str) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array.astype(dtype), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


# ---- reading ----------------------------------------------------------------------------


def load_archive(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Saved:
    """Read what :func:`save_archive` wrote, to the last bit.

    A file that is damaged, hostile, too large or too new raises DataError, and nothing else does
    but the operating system's own errors (no such file).
    """
    source = Path(path)
    size = source.stat().st_size
    if size > max_bytes:
        raise DataError(
            f"{source.name} has {size:,} bytes, at most {max_bytes:,} are read; pass a larger "
            "max_bytes if you trust it"
        )
    try:
        return _parse(source.read_bytes(), max_bytes)
    except (ValueError, OverflowError) as error:
        reason = str(error)[:500]  # it may quote the file, which may be hostile
        raise DataError(f"{source.name} holds no valid model: {reason}") from error


def _parse(content: bytes, max_bytes: int) -> Saved:
    archive = ZipReader(content)
    _check_members(archive.names)
    limit = min(MAX_JSON_BYTES, max_bytes)
    kept = parse_tree(archive.read(TREE, limit))
    record = _record(from_json(archive.read(MODEL, limit)))
    root, dims = _layout(record, kept.tree)
    sizes = _table_sizes(kept.tree, root, dims, max_bytes)
    packed = archive.read(ARRAYS, _packed_limit(sizes))
    tables = _tables(packed, dims, sizes)
    return Saved(
        _exact_model(kept, root, tables),
        record["schema"],
        record["params"],
        record["diagnostics"],
        kept.support,
    )


def _check_members(names: tuple[str, ...]) -> None:
    if TREE in names and MODEL not in names:
        raise ValueError(
            "it holds a tree without parameters; `latenttree show` and "
            "latenttree.io.treefile.load_tree read it"
        )
    unknown = next((name for name in names if name not in MEMBERS), None)
    if unknown is not None:
        raise ValueError(
            f"the archive has the member {unknown!r}, a model has only {', '.join(MEMBERS)}; get "
            "the file from where it was saved"
        )


_FIELDS = {
    "format": str,
    "version": int,
    "root": int,
    "nodes": list,
    "dims": list,
    "schema": dict,
    "params": dict,
    "diagnostics": dict,
}


def _record(record: Any) -> dict[str, Any]:
    """``model.json`` with all its fields, of their types."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{MODEL} has no field 'format' that says {FORMAT!r}")
    _check_field(record, "version")
    if record["version"] != VERSION:
        newer = record["version"] > VERSION
        raise ValueError(
            f"it has version {record['version']} of the format, this program reads version "
            f"{VERSION}; {'upgrade latenttree' if newer else 'save the model again'}"
        )
    for name in _FIELDS:
        _check_field(record, name)
    unknown = sorted(set(record) - set(_FIELDS))
    if unknown:
        raise ValueError(f"{MODEL} has the unknown field {unknown[0]!r}")
    return record


def _check_field(record: dict[str, Any], name: str) -> None:
    if name not in record:
        raise ValueError(f"{MODEL} lacks the field {name!r}")
    # Exactly the type: JSON's true is an int to Python.
    if type(record[name]) is not _FIELDS[name]:
        found = type(record[name]).__name__
        raise ValueError(f"{MODEL}: the field {name!r} is {found}, not {_FIELDS[name].__name__}")


def _layout(record: dict[str, Any], tree: Tree) -> tuple[int, list[int]]:
    """Root and number of states of each node, checked against the tree."""
    if tuple(record["nodes"]) != tree.names:
        raise ValueError(f"the nodes of {MODEL} are not those of {TREE}; the parts do not belong")
    root, dims = record["root"], record["dims"]
    if not 0 <= root < tree.n_nodes:
        raise ValueError(f"the root is node {root}; the nodes are 0..{tree.n_nodes - 1}")
    if len(dims) != tree.n_nodes:
        raise ValueError(f"the field 'dims' has {len(dims)} values for {tree.n_nodes} nodes")
    wrong = next((v for v, d in enumerate(dims) if type(d) is not int or not 0 < d < 2**40), None)
    if wrong is not None:
        raise ValueError(
            f"node {tree.names[wrong]!r} has {str(dims[wrong])[:40]} states; a node has a whole "
            "number of them, at least 1 and less than 2^40"
        )
    return root, dims


def _table_sizes(tree: Tree, root: int, dims: list[int], max_bytes: int) -> list[int]:
    """Values in the table of each node; Python's integers, which do not overflow."""
    parents = tree.rooted(root).parents.tolist()
    sizes = [d * (1 if u < 0 else dims[u]) for d, u in zip(dims, parents, strict=True)]
    if 8 * sum(sizes) > max_bytes:
        raise ValueError(
            f"its tables declare {8 * sum(sizes):,} bytes, at most {max_bytes:,} are read; pass a "
            "larger max_bytes if you trust it"
        )
    return sizes


def _packed_limit(sizes: list[int]) -> int:
    """Bytes of ``arrays.npz`` if nothing in it could be compressed."""
    values = 8 * (sum(sizes) + len(sizes) + 1)
    return values + values // 1000 + 4096


def _tables(packed: bytes, dims: list[int], sizes: list[int]) -> tuple[Floats, ...]:
    archive = ZipReader(packed)
    if set(archive.names) != {TABLES, OFFSETS}:
        raise ValueError(f"{ARRAYS} holds {archive.names}, not {(TABLES, OFFSETS)}")
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    found = _read_npy(archive, OFFSETS, "<i8", len(offsets))
    if not np.array_equal(found, offsets):
        raise ValueError(f"{OFFSETS} does not fit the numbers of states in {MODEL}")
    values = _read_npy(archive, TABLES, "<f8", int(offsets[-1]))
    parts = np.split(values, offsets[1:-1])
    return tuple(part.reshape(d, -1) for part, d in zip(parts, dims, strict=True))


def _read_npy(archive: ZipReader, name: str, dtype: str, n: int) -> NDArray[Any]:
    """The ``n`` values of a member; its header is compared with that before it is believed."""
    content = archive.read(name, 8 * n + MAX_HEADER)
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"version {version} of the .npy format")
        header = np.lib.format.read_array_header_1_0(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # NumPy parses the header as a Python literal
        raise ValueError(f"{name} has a damaged header ({error})") from error
    shape, _, found = header
    if shape != (n,) or found != np.dtype(dtype):
        raise ValueError(
            f"{name} declares shape {shape} and type {found}; the nodes and their states need "
            f"shape {(n,)} and type {dtype}"
        )
    if len(content) - stream.tell() != 8 * n:
        raise ValueError(f"{name} has {len(content) - stream.tell():,} bytes for {n:,} values")
    return np.frombuffer(content, dtype=dtype, offset=stream.tell())


def _exact_model(kept: SavedTree, root: int, tables: tuple[Floats, ...]) -> TreeModel:
    model = TreeModel(kept.tree, root, tables)
    # The constructor checks the tables and divides columns by sums that are 1 but for rounding;
    # what was saved has been through that, and comes back as it was.
    exact = tuple(np.array(table, dtype=np.float64) for table in tables)
    for table in exact:
        table.flags.writeable = False
    object.__setattr__(model, "tables", exact)
    return model
