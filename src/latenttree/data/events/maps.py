"""Maps between codes: code to parents, or code to group, from mappings, tables and files."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from latenttree.data.checks import listing, option_error
from latenttree.data.containers import as_frame
from latenttree.data.events.columns import MISSING_VALUE_TEXTS, read_blocks, text_of
from latenttree.errors import DataError, Option, Phrase, Text


def read_map(source: Any, what: str) -> dict[str, list[str]]:
    """Code to what it belongs to, each once, in the order of the map.

    `source` is a mapping from a code to one text or to several, or a table of two columns: a
    DataFrame, a path, or a tuple (DataFrame or path, column of codes, column of targets).
    """
    pairs = _pairs_of_mapping(source) if isinstance(source, Mapping) else _pairs(source, what)
    targets_of: dict[str, list[str]] = {}
    for code, target in pairs:
        targets = targets_of.setdefault(code, [])
        if target not in targets:
            targets.append(target)
    if not targets_of:
        raise option_error(what, " is a map without any code", "pass code and target of each")
    return targets_of


def _pairs_of_mapping(source: Mapping[Any, Any]) -> Iterable[tuple[str, str]]:
    for code, targets in source.items():
        if isinstance(targets, set | frozenset):
            targets = sorted(targets, key=str)
        several = isinstance(targets, list | tuple | np.ndarray)
        for target in targets if several else [targets]:
            text = text_of(target)
            if text not in MISSING_VALUE_TEXTS:
                yield text_of(code), text


def _pairs(source: Any, what: str) -> Iterator[tuple[str, str]]:
    table, wanted = source, None
    if isinstance(source, tuple):
        if len(source) != 3:
            raise _no_map(what, f"a tuple of {len(source)}", len(source))
        table, wanted = source[0], [str(name) for name in source[1:]]
    if not isinstance(table, str | os.PathLike | Mapping) and as_frame(table) is None:
        raise _no_map(what, f"of type {type(table).__name__}", type(table).__name__)
    try:
        blocks = list(read_blocks(table, lambda names: _map_columns(names, wanted, what)))
    except DataError as error:
        error.within("", option=what)
        raise
    for columns in blocks:
        codes, targets = ([*column.texts(), ""] for column in columns)
        rows = zip(*(column.index.tolist() for column in columns), strict=True)
        yield from ((codes[i], targets[j]) for i, j in rows if codes[i] and targets[j])


def _no_map(what: str, received: str, value: Any) -> DataError:
    """The error of an option that is no map."""
    remedy = (
        "pass a mapping, a table of two columns, or (table, column of codes, column of targets)"
    )
    return option_error(what, f" is {received}", remedy, value)


def _map_columns(names: Sequence[str], wanted: Sequence[str] | None, what: str) -> list[int]:
    if wanted is None:
        if len(names) != 2:
            raise DataError(
                Text(
                    "the map ",
                    Option(what),
                    f" has {len(names)} columns ({listing(names)}), not two",
                ),
                Text(
                    "name them: ",
                    Option(what),
                    Phrase("map columns", "=(table, column of codes, column of targets)"),
                ),
                value=tuple(names),
                option=what,
            )
        return [0, 1]
    absent = [name for name in wanted if name not in names]
    if absent:
        raise DataError(
            Text(f"no column {listing(absent)} in the map ", Option(what)),
            f"the columns are {listing(names)}",
            column=absent[0],
            value=absent[0],
            option=what,
        )
    return [list(names).index(name) for name in wanted]
