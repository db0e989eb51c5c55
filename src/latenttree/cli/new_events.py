"""Tables with a row for each event, in the codes of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenttree.cli.new_samples import NewData
from latenttree.cli.options import NewEvents
from latenttree.data import Schema
from latenttree.data.table import sparse_binary_table
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree

MOST_UNKNOWN = 0.1  # share of the occurrences whose codes a model may not know


class UnknownCodes(DataError):
    """Too many events have codes that the model does not know: a command ends with exit code 1."""

    exit_code = 1


def read_new_events(
    path: Path,
    model: LatentTree,
    options: NewEvents,
    separator: str | None,
    unused: Collection[str],
) -> NewData:
    """Events in the codes of a model; codes that it does not know are counted and left out."""
    from latenttree.data.events.read import read_events  # loads much
    from latenttree.data.events.report import NothingLeft

    schema = model.schema_
    codes, groups = _codes(schema)
    arguments = options.arguments() | {"delimiter": separator}
    try:
        events = read_events(path, codes=codes, **arguments)
    except NothingLeft as error:
        _check_unknown(error.report, model, options)
        raise
    _check_unknown(events.report, model, options)
    if groups is None:
        rows = schema.rows(sparse_binary_table(events.names, events.matrix), unused=unused)
    else:
        blocks = {name: events.matrix[:, columns] for name, columns in groups.items()}
        rows = schema.rows(blocks, unused=unused)
    return NewData(rows, samples=events.samples, notes=events.notes)


def _check_unknown(report: Mapping[str, Any], model: LatentTree, options: NewEvents) -> None:
    """Raise where more than `MOST_UNKNOWN` of the occurrences have codes outside the model."""
    unknown = report["outside_codes"]
    total = unknown["pairs"] + report.get("pairs", 0)
    if options.unknown == "drop" or unknown["pairs"] <= MOST_UNKNOWN * total:
        return
    most = ", ".join(f"{code!r} ({n:,})" for code, n in unknown["examples"].items())
    again = "give --roll-up and --groups with which the codes become those of the model"
    raise UnknownCodes(
        f"{unknown['pairs']:,} of {total:,} occurrences ({unknown['pairs'] / total:.0%}) have "
        f"codes that the model does not know, most often {most}",
        f"{again}, or go on without them by --unknown drop",
        value=next(iter(unknown["examples"]), None),
    )


def _codes(schema: Schema) -> tuple[list[str], dict[str, slice] | None]:
    """The codes that a model knows, and those of each group; None where it has no groups."""
    found = schema.event_codes()
    if found is not None:
        return found
    names = (name for v, name in enumerate(schema.names) if not schema.codes_of(v))
    name = next(names)
    raise DataError(
        "--events is for models that were learned with --events, of codes that are there "
        f"or not; in this one {name!r} is something else",
        "name a file with a row for each sample",
        node=name,
    )
