"""A tree in a file, with the evidence for its edges.

``.json`` and ``.ltree`` keep everything; ``.nwk`` keeps names and lengths for other programs.
Files from before trees had signs are read as trees without.
An ``.ltree`` file is a zip archive that holds the JSON as ``tree.json``; where it also holds
parameters (see `latenttree.io.archive`) they are left alone here. Nothing is ever unpickled.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from latenttree.data.files.boundary import reading
from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError
from latenttree.io.atomic import check_target, replacing
from latenttree.io.json_text import field_of, from_json
from latenttree.io.messages import parts_of, with_parts
from latenttree.io.zip_archive import ZipReader, write_zip
from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.report import Diagnostics

FORMAT = "latenttree tree"
VERSION = 1
NEWICK_SUFFIXES = (".nwk", ".newick")
SUFFIXES = (".json", ".ltree", *NEWICK_SUFFIXES)
MEMBER = "tree.json"
MAX_JSON_BYTES = 2**27
"""A larger JSON is refused: no tree of a million nodes comes near."""


@dataclass(frozen=True)
class SavedTree:
    """A tree from a file. ``support`` is ``(E,)``, NaN where an edge has none; the other fields are
    those of `report.Diagnostics`, empty where a file has none."""

    tree: Tree
    support: Floats
    stage_seconds: dict[str, float] = field(default_factory=dict)
    n_states: int | None = None
    messages: tuple[str, ...] = ()
    hidden_states: tuple[int, ...] = ()
    support_method: str = ""
    n_resamples: int = 0


def check_tree_path(path: str | os.PathLike[str]) -> Path:
    """``path``, or an error if no tree can be written there; call it before long work."""
    remedy = f"end it in {', '.join(SUFFIXES[:-2])} or {SUFFIXES[-2]}"
    return check_target(path, SUFFIXES, "the name {} does not tell how to write a tree", remedy)


def save_tree(
    path: str | os.PathLike[str], tree: Tree, report: Diagnostics | SavedTree | None = None
) -> None:
    """Write ``tree`` as the suffix of ``path`` says; the file appears whole or not at all.

    Of ``report`` it keeps what `SavedTree` has."""
    target = check_tree_path(path)
    suffix = target.suffix.lower()
    if suffix in NEWICK_SUFFIXES:
        content = (tree.to_newick() + "\n").encode()
    else:
        content = tree_json(tree, report)
    if suffix == ".ltree":
        content = write_zip({MEMBER: content})
    with replacing(target) as partial:
        partial.write_bytes(content)


def load_tree(path: str | os.PathLike[str]) -> SavedTree:
    """Read what :func:`save_tree` wrote, or any Newick file; a damaged file raises DataError."""
    source = Path(path)
    suffix = source.suffix.lower()
    if suffix not in SUFFIXES:
        what = f"{source.name} is no tree file"
        raise DataError(what, f"its name must end in one of {SUFFIXES}", path=str(path))
    with reading(source, "tree"):
        content = source.read_bytes()
        if suffix in NEWICK_SUFFIXES:
            tree = Tree.from_newick(content.decode())
            return SavedTree(tree, np.full(tree.n_edges, np.nan))
        if suffix == ".ltree":
            content = ZipReader(content).read(MEMBER, MAX_JSON_BYTES)
        return parse_tree(content)


def tree_json(tree: Tree, report: Diagnostics | SavedTree | None = None) -> bytes:
    """The JSON of a tree, with what `save_tree` keeps of a report."""
    return json.dumps(_to_record(tree, report), allow_nan=False).encode()


def parse_tree(content: bytes) -> SavedTree:
    """The tree of :func:`tree_json`; raises ValueError for anything else."""
    try:
        return _from_record(from_json(content))
    except (TypeError, OverflowError) as error:  # whole numbers beyond int64 or float64
        raise ValueError(str(error)) from error


# ---- the record -----------------------------------------------------------------------


def _to_record(tree: Tree, report: Diagnostics | SavedTree | None) -> dict[str, Any]:
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "names": list(tree.names),
        "n_observed": tree.n_observed,
        "edges": tree.edges.tolist(),
        "lengths": tree.lengths.tolist(),
        **({"signs": tree.signs.tolist()} if tree.signs.any() else {}),
    }
    if report is None:
        own = tree.support
        return record if own is None else record | {"support": _without_nan(own)}
    parts = parts_of(report.messages)
    return record | {
        "support": _without_nan(check_support(report.support, tree.n_edges)),
        "stage_seconds": {k: float(v) for k, v in report.stage_seconds.items()},
        "n_states": report.n_states and int(report.n_states),
        "hidden_states": [int(k) for k in report.hidden_states],
        "support_method": str(report.support_method),
        "n_resamples": int(report.n_resamples),
        "messages": list(report.messages),
        **({"message_parts": parts} if parts else {}),
    }


def _without_nan(support: Floats) -> list[float | None]:
    """None in place of NaN, which JSON has not."""
    return [None if math.isnan(value) else value for value in support.tolist()]


def check_support(support: ArrayLike, n_edges: int) -> Floats:
    """The support as an ``(E,)`` array."""
    array = np.array(support, dtype=np.float64)
    if array.shape != (n_edges,):
        what = f"support has shape {array.shape} for {n_edges} edges"
        raise DataError(what, "pass one for each edge", value=array.shape, option="support")
    return array


def _from_record(record: Any) -> SavedTree:
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        raise ValueError(f"the JSON has no field 'format' that says {FORMAT!r}")
    version = field_of(record, "version", int)
    if version != VERSION:
        raise ValueError(
            f"it has version {version} of the format, this program reads version {VERSION}; "
            "use a latenttree that fits the file"
        )
    edges = _edges(record)
    support = _support(record, len(edges))
    tree = Tree(
        tuple(_list(record, "names", str)),
        field_of(record, "n_observed", int),
        edges,
        np.array(_list(record, "lengths", float, int), dtype=float),
        _signs(record, len(edges)),
        None if np.isnan(support).all() else support,
    )
    return SavedTree(
        tree,
        support,
        _seconds(record),
        field_of(record, "n_states", int) if record.get("n_states") is not None else None,
        _messages(record),
        tuple(_list({"hidden_states": []} | record, "hidden_states", int)),
        field_of({"support_method": ""} | record, "support_method", str),
        field_of({"n_resamples": 0} | record, "n_resamples", int),
    )


def _edges(record: dict[str, Any]) -> Ints:
    pairs = _list(record, "edges", list)
    if any(len(pair) != 2 or any(type(end) is not int for end in pair) for pair in pairs):
        raise ValueError("the field 'edges' is not a list of pairs of integers")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def _signs(record: dict[str, Any], n_edges: int) -> NDArray[np.int8]:
    """Signs of the edges; all 0 in a file that has none, as older ones."""
    values = _list({"signs": [0] * n_edges} | record, "signs", int)
    if len(values) != n_edges or any(value not in (-1, 0, 1) for value in values):
        raise ValueError(f"the field 'signs' is not one of -1, 0 and 1 for each of {n_edges} edges")
    return np.array(values, dtype=np.int8)


def _support(record: dict[str, Any], n_edges: int) -> Floats:
    if "support" not in record:
        return np.full(n_edges, np.nan)
    values = _list(record, "support", float, int, type(None))
    if len(values) != n_edges:
        raise ValueError(f"the field 'support' has {len(values)} values for {n_edges} edges")
    return np.array([math.nan if value is None else value for value in values], dtype=float)


def _messages(record: dict[str, Any]) -> tuple[str, ...]:
    messages = _list({"messages": []} | record, "messages", str)
    return tuple(with_parts(messages, record.get("message_parts")))


def _seconds(record: dict[str, Any]) -> dict[str, float]:
    seconds = field_of({"stage_seconds": {}} | record, "stage_seconds", dict)
    if any(type(value) not in (int, float) for value in seconds.values()):
        raise ValueError("the field 'stage_seconds' holds something that is not a number")
    return {str(stage): float(value) for stage, value in seconds.items()}


def _list(record: dict[str, Any], name: str, *types: type) -> list[Any]:
    values: list[Any] = field_of(record, name, list)
    wrong = next((value for value in values if type(value) not in types), None)
    if wrong is not None or (None in values and type(None) not in types):
        raise ValueError(f"the field {name!r} holds {wrong!r}, not {types[0].__name__}")
    return values
