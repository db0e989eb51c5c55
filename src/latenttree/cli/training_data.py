"""What `fit` reads: tables, events and alignments, by the name of the file and the options."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from latenttree.cli.options import TrainingEvents, TrainingTable
from latenttree.data import Table, read_table
from latenttree.data.checks import listing
from latenttree.data.files.formats import COLUMN_FILES, cell_delimiter, known_format
from latenttree.data.files.standard_input import stored
from latenttree.data.files.text import check_file
from latenttree.errors import DataError


def read_training(
    file: Path,
    table: TrainingTable,
    events: TrainingEvents,
    gaussian: bool = False,
    memory_limit: str | None = None,
) -> Table:
    """The table to learn from; `gaussian` reads every variable as a number."""
    events.check()
    file = stored(file)
    family, delimiter = parse_families(table.family or ()), table.separator
    if events.events:
        _check_event_table(table, gaussian)
        return _read_events(file, events, table.min_count, delimiter, memory_limit)
    _check_columns(file, table.ignored, delimiter)
    return read_table(
        file,
        vocab=table.vocab,
        min_count=table.min_count,
        drop_constant=table.drop_constant,
        delimiter=delimiter,
        family=family,
        weights=table.weights,
        scores=gaussian,
        ignore=table.ignored,
        memory_limit=memory_limit,
    )


def _read_events(
    file: Path,
    events: TrainingEvents,
    min_count: int,
    delimiter: str | None,
    memory_limit: str | None,
) -> Table:
    """The table of a file of events: binary codes, or a multi-hot variable for each group."""
    from latenttree.data.events.read import read_events  # loads much

    counted = read_events(
        file,
        min_count=min_count,
        delimiter=delimiter,
        memory_limit=memory_limit,
        **events.arguments(),
    )
    return (replace(counted, groups=None) if events.binary else counted).table()


def _check_event_table(table: TrainingTable, gaussian: bool) -> None:
    """Options of tables with a row for each sample are not given with ``--events``."""
    given = {
        "--family": table.family,
        "--weights": table.weights,
        "--vocab": table.vocab,
        "--hidden gaussian": gaussian,
        "--ignore": table.ignore,
    }
    wrong = next((flag for flag, value in given.items() if value), None)
    if wrong is not None:
        raise DataError(f"{wrong} does not go with --events", "leave it out")


def _check_columns(file: Path, ignore: Sequence[str], delimiter: str | None) -> None:
    """The columns to leave out are in the file, which must have names of columns."""
    check_file(file)
    header = known_format(file).header
    if header is not None:
        check_excluded(header(file, cell_delimiter(file, delimiter)), ignore, file.name)
    elif ignore:
        what = f"--ignore names a column of a {COLUMN_FILES}, but the file is {file.name!r}"
        raise DataError(what, "leave it out", option="ignore", path=file.name)


def check_excluded(
    header: Sequence[str], ignore: Collection[str], file: str, known: Collection[str] = ()
) -> None:
    """The ignored columns exist, and a first column without a name is one of them or `known`."""
    absent = [name for name in ignore if name not in header]
    if absent:
        what = f"--ignore {shlex.quote(absent[0])}: {file} has no such column"
        remedy = f"the columns are {listing(header)}"
        raise DataError(what, remedy, value=absent[0], path=file, option="ignore")
    if len(header) > 1 and not header[0].strip() and header[0] not in {*ignore, *known}:
        raise DataError(
            f"{file}: the first column has no name and numbers the rows",
            f"write the table with index=False, or pass --ignore {shlex.quote(header[0])} (if it "
            "is a variable, name it)",
            column=header[0],
            path=file,
        )


def parse_families(texts: Sequence[str]) -> str | dict[str, str]:
    """'auto', one family for all columns, or a family for each of some columns."""
    whole = [text for text in texts if "=" not in text]
    if not texts or (len(texts) == 1 and whole):
        return texts[0] if texts else "auto"
    if whole:
        what = f"--family {whole[0]} is for all columns, so it stands alone"
        remedy = "for some of them write --family COLUMN=NAME, once for each"
        raise DataError(what, remedy, value=whole[0], option="family")
    families: dict[str, str] = {}
    for text in texts:
        column, _, family = (part.strip() for part in text.rpartition("="))
        if column in families:
            what = f"--family gives column {column!r} more than once"
            raise DataError(what, "give it one name", column=column, option="family")
        families[column] = family
    return families
