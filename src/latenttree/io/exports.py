"""`EXPORTS`: the formats of other programs by suffix, and `write_export`, which writes them.

To add a format: a file beside this one with a function from `Exported` to text, and a line in
`EXPORTS`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from latenttree.io.atomic import check_target, replacing
from latenttree.io.bif import to_bif
from latenttree.io.dot import to_dot
from latenttree.io.exported import Exported
from latenttree.io.gexf import to_gexf
from latenttree.io.graphml import to_graphml
from latenttree.io.model_json import to_model_json
from latenttree.io.tables import (
    conditional_columns,
    edge_columns,
    to_delimited,
    to_parquet,
    to_xlsx,
)
from latenttree.io.uai import to_uai


@dataclass(frozen=True)
class ExportFormat:
    """A format that models are written in.

    Attributes
    ----------
    name : what it is called.
    content : the bytes of the file, and of files beside it by what their names end in instead of
        the suffix.
    """

    name: str
    content: Callable[[Exported], Mapping[str, bytes]]


def _text(name: str, write: Callable[[Exported], str]) -> ExportFormat:
    return ExportFormat(name, lambda exported: {"": write(exported).encode()})


def _tables(name: str, suffix: str, write: Callable[[dict[str, list[Any]]], bytes]) -> ExportFormat:
    """Edges in one file and, where there are any, distributions in another beside it."""

    def content(exported: Exported) -> dict[str, bytes]:
        found = {"": write(edge_columns(exported))}
        if exported.model is not None:
            found[f".conditionals{suffix}"] = write(conditional_columns(exported))
        return found

    return ExportFormat(name, content)


def _workbook(exported: Exported) -> dict[str, bytes]:
    sheets = {"edges": edge_columns(exported)}
    if exported.model is not None:
        sheets["conditionals"] = conditional_columns(exported)
    return {"": to_xlsx(sheets)}


_NEWICK = _text("Newick", lambda x: x.tree.to_newick() + "\n")
_NEXUS = _text("NEXUS", lambda x: x.tree.to_nexus())
_DOT = _text("DOT", lambda x: to_dot(x.tree, x.support))

EXPORTS: Mapping[str, ExportFormat] = MappingProxyType(
    {
        ".nwk": _NEWICK,
        ".newick": _NEWICK,
        ".nex": _NEXUS,
        ".nexus": _NEXUS,
        ".graphml": _text("GraphML", lambda x: to_graphml(x.tree, x.support)),
        ".gexf": _text("GEXF", lambda x: to_gexf(x.tree, x.support)),
        ".dot": _DOT,
        ".gv": _DOT,
        ".bif": _text("BIF", to_bif),
        ".uai": _text("UAI", to_uai),
        ".json": _text("JSON", to_model_json),
        ".parquet": _tables("Parquet", ".parquet", to_parquet),
        ".csv": _tables("comma-separated text", ".csv", lambda x: to_delimited(x, ",")),
        ".tsv": _tables("tab-separated text", ".tsv", lambda x: to_delimited(x, "\t")),
        ".xlsx": ExportFormat("Excel workbook", _workbook),
    }
)
"""Formats by the suffix of a file."""


def check_export(path: str | os.PathLike[str]) -> Path:
    """`path`, or an error where no export can be written there; call it before long work."""
    remedy = f"end it in one of {', '.join(EXPORTS)}"
    problem = "the name {} does not tell in which format to write"
    return check_target(path, tuple(EXPORTS), problem, remedy)


def write_export(path: str | os.PathLike[str], exported: Exported) -> list[Path]:
    """Write in the format that the suffix of `path` tells; the paths of the files, which appear
    whole or not at all. A model that the format cannot hold is an error before anything is."""
    target = check_export(path)
    contents = EXPORTS[target.suffix.lower()].content(exported)
    paths = [target.with_suffix(end) if end else target for end in contents]
    with ExitStack() as stack:
        for place, content in zip(paths, contents.values(), strict=True):
            stack.enter_context(replacing(place)).write_bytes(content)
    return paths
