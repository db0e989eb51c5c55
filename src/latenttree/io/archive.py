"""A whole model in one file: `.ltree`.

A zip archive of three members:

- ``tree.json``: the tree with the support of its edges, as `latenttree.io.treefile` writes it, so
  that a file with parameters is also a tree file;
- ``model.json``: version, kind of hidden nodes, root, nodes, number of states (or dimensions) of
  each, families of what is not categorical, the schema of the data, the estimator's parameters and
  its diagnostics;
- ``arrays.npz``: all numbers of the model in a few flat arrays, see `latenttree.io.model_arrays`.

Reading executes nothing. Every size is compared with what the members read before imply before
anything is unpacked, and everything is checked before anything is returned.

Version 1 knew categorical variables only; its files are read too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from latenttree.data import Schema
from latenttree.data.files.boundary import reading
from latenttree.errors import DataError
from latenttree.io.atomic import check_target, replacing
from latenttree.io.emission_arrays import width_of
from latenttree.io.json_text import field_of, from_json, plain, to_json
from latenttree.io.messages import parts_of, with_parts
from latenttree.io.model_arrays import Model, array_sizes, arrays_of, fields_of, model_of
from latenttree.io.npz import pack, packed_limit, unpack
from latenttree.io.treefile import MAX_JSON_BYTES, SavedTree, check_support, parse_tree, tree_json
from latenttree.io.treefile import MEMBER as TREE
from latenttree.io.zip_archive import ZipReader, write_zip
from latenttree.model.gaussian import GaussianTreeModel

FORMAT = "latenttree model"
VERSION = 2
SUFFIX = ".ltree"
MODEL, ARRAYS = "model.json", "arrays.npz"
MEMBERS = (TREE, MODEL, ARRAYS)
MESSAGE_PARTS = "message_parts"

MAX_BYTES = 2**31
"""Files, and CPTs, of more bytes are refused unless the caller allows more."""


@dataclass(frozen=True, eq=False)
class Saved:
    """What a file holds.

    Attributes
    ----------
    model : tree, root, CPTs and emissions; or a Gaussian tree.
    schema : how data is encoded; any JSON object.
    params : parameters of the estimator that JSON can hold.
    diagnostics : the report of the fit; arrays as lists. ``n_states`` (int), ``stage_seconds``
        (name to float) and ``messages`` (list of str or `Text`), where given, are also what
        `latenttree show` prints.
    support : (E,) support of the edges, NaN where unknown; all NaN if not given.
    """

    model: Model
    schema: dict[str, Any] = field(default_factory=dict)
    params: dict[str, Any] = field(default_factory=dict)
    diagnostics: dict[str, Any] = field(default_factory=dict)
    support: ArrayLike | None = None

    def __post_init__(self) -> None:
        n_edges = self.model.tree.n_edges
        given = np.full(n_edges, np.nan) if self.support is None else self.support
        object.__setattr__(self, "support", check_support(given, n_edges))


# ---- writing ----------------------------------------------------------------------------


def check_archive_path(path: str | os.PathLike[str]) -> Path:
    """``path``, or an error if no model can be written there."""
    return check_target(path, (SUFFIX,), "{} is no name for a model", f"end it in {SUFFIX}")


def save_archive(path: str | os.PathLike[str], saved: Saved) -> None:
    """Write ``saved``; the file appears whole or not at all. Equal models give equal bytes."""
    target = check_archive_path(path)
    members = {
        TREE: tree_json(saved.model.tree, _saved_tree(saved)),
        MODEL: to_json(_to_record(saved), "model"),
        ARRAYS: pack(arrays_of(saved.model)),
    }
    content = write_zip(members, stored=[ARRAYS])  # its own members are deflated
    with replacing(target) as partial:
        partial.write_bytes(content)


def jsonable(params: Mapping[str, Any]) -> dict[str, Any]:
    """Those entries of ``params`` that a file can hold, in JSON's types."""
    plain_params = {}
    for name, value in params.items():
        try:
            plain_params[name] = plain(value, name)
        except TypeError:
            continue
    return plain_params


def _saved_tree(saved: Saved) -> SavedTree:
    """What ``tree.json`` keeps of a model and its diagnostics."""
    report, tree = saved.diagnostics, saved.model.tree
    hidden_states = saved.model.dims[tree.n_observed :]
    return SavedTree(
        tree,
        np.asarray(saved.support),
        report.get("stage_seconds", {}),
        report.get("n_states", int(hidden_states.max(initial=0))),
        tuple(report.get("messages", ())),
        tuple(hidden_states.tolist()),
        report.get("support_method", ""),
        report.get("n_resamples", 0),
    )


def _to_record(saved: Saved) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        **fields_of(saved.model),
        "schema": saved.schema,
        "params": saved.params,
        "diagnostics": saved.diagnostics | _message_parts(saved.diagnostics),
    }


def _message_parts(diagnostics: Mapping[str, Any]) -> dict[str, Any]:
    parts = parts_of(diagnostics.get("messages", ()))
    return {MESSAGE_PARTS: parts} if parts else {}


def _with_message_parts(diagnostics: dict[str, Any]) -> dict[str, Any]:
    """The diagnostics of a record, with its notes as they were saved."""
    rest = {name: value for name, value in diagnostics.items() if name != MESSAGE_PARTS}
    if isinstance(rest.get("messages"), list):
        rest["messages"] = with_parts(rest["messages"], diagnostics.get(MESSAGE_PARTS))
    return rest


# ---- reading ----------------------------------------------------------------------------


def load_archive(path: str | os.PathLike[str], max_bytes: int = MAX_BYTES) -> Saved:
    """Read what :func:`save_archive` wrote, to the last bit.

    A file that is damaged, hostile, too large or too new raises DataError, and nothing else does
    but the operating system's own errors (no such file).
    """
    source = Path(path)
    size = source.stat().st_size
    if size > max_bytes:
        what = f"{source.name} has {size:,} bytes, at most {max_bytes:,} are read"
        remedy = "pass a larger max_bytes if you trust it"
        raise DataError(what, remedy, value=size, path=str(path), option="max_bytes")
    with reading(source, "model"):
        return _parse(source.read_bytes(), max_bytes)


def _parse(content: bytes, max_bytes: int) -> Saved:
    archive = ZipReader(content)
    _check_members(archive.names)
    limit = min(MAX_JSON_BYTES, max_bytes)
    saved_tree = parse_tree(archive.read(TREE, limit))
    record = _record(from_json(archive.read(MODEL, limit)))
    sizes = array_sizes(record, saved_tree.tree, max_bytes)
    limit = packed_limit({name: n for name, (n, _) in sizes.items()})
    arrays = unpack(archive.read(ARRAYS, limit), sizes, ARRAYS)
    return Saved(
        model_of(record, saved_tree.tree, arrays),
        record["schema"],
        record["params"],
        _with_message_parts(record["diagnostics"]),
        saved_tree.support,
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


_FIELDS: dict[str, type] = {
    "format": str,
    "version": int,
    "hidden": str,
    "root": int,
    "nodes": list,
    "dims": list,
    "schema": dict,
    "params": dict,
    "diagnostics": dict,
}
_OWN_FIELDS: dict[str, dict[str, type]] = {
    "categorical": {"emissions": dict},
    "gaussian": {"diagonal": list},
}
"""What the kinds of hidden nodes have besides."""

_FIRST_VERSION = {"hidden": "categorical", "emissions": {"nodes": [], "families": [], "widths": []}}
"""Fields that files of version 1 lack, with what they mean there."""


def _record(record: Any) -> dict[str, Any]:
    """``model.json`` with all its fields, of their types."""
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"{MODEL} has no field 'format' that says {FORMAT!r}")
    version = field_of(record, "version", int, MODEL)
    if not 1 <= version <= VERSION:
        newer = version > VERSION
        raise ValueError(
            f"it has version {version} of the format, this program reads version "
            f"{VERSION}; {'upgrade latenttree' if newer else 'save the model again'}"
        )
    if version == 1:
        record = _FIRST_VERSION | record
    return _checked(record)


def _checked(record: dict[str, Any]) -> dict[str, Any]:
    for name, type_ in _FIELDS.items():
        field_of(record, name, type_, MODEL)
    own = _OWN_FIELDS.get(record["hidden"])
    if own is None:
        raise ValueError(
            f"its hidden nodes are {record['hidden'][:60]!r}, none of {list(_OWN_FIELDS)}; upgrade "
            "latenttree"
        )
    for name, type_ in own.items():
        field_of(record, name, type_, MODEL)
    unknown = sorted(set(record) - set(_FIELDS) - set(own))
    if unknown:
        raise ValueError(f"{MODEL} has the unknown field {unknown[0]!r}")
    return record


# ---- schema and model -------------------------------------------------------------------


def check_schema(schema: Schema, model: Model, path: str | os.PathLike[str]) -> None:
    """A file's variables are those of its model: names, families, categories and widths."""
    if tuple(schema.names) == model.tree.observed_names:
        wrong = next((v for v in range(schema.n_vars) if not _belongs(schema, model, v)), None)
        if wrong is None:
            return
        name = repr(schema.names[wrong])
    else:
        name = "names"
    what = f"{path}: the variables of the file do not belong to its model ({name})"
    raise DataError(what, "save the model again", path=str(path))


def _belongs(schema: Schema, model: Model, v: int) -> bool:
    family, d = schema.families[v], int(schema.dims[v])
    if isinstance(model, GaussianTreeModel):
        return family == "gaussian" and d == model.dims[v]
    if v in model.emissions:
        emission = model.emissions[v]
        return emission.family == family and width_of(emission) == d
    return bool(schema.coded[v]) and d == model.dims[v]
