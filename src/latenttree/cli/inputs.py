"""What `fit` reads: tables, events and alignments, by the name of the file and the options."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latenttree.data import Table

RECORD = "read with "  # begins the note of a model on how its data were read


@dataclass(frozen=True)
class EventOptions:
    """Options that belong to ``--events``; as they were given, None or empty where left out."""

    sample: str | None = None
    code: str | None = None
    time: str | None = None
    since: str | None = None
    until: str | None = None
    roll_up: Sequence[str] = ()
    groups: str | None = None
    binary: bool = False

    def arguments(self) -> dict[str, Any]:
        """Arguments of `read_events`."""
        return {
            "sample": self.sample,
            "code": self.code,
            "time": self.time,
            "since": self.since,
            "until": self.until,
            "roll_up": [map_source(text) for text in self.roll_up] or None,
            "groups": None if self.groups is None else map_source(self.groups),
        }

    def given(self) -> list[str]:
        """The options that were given, as they are written."""
        names = (f.name for f in fields(self) if getattr(self, f.name))
        return [f"--{name.replace('_', '-')}" for name in names]

    def words(self) -> Iterator[str]:
        """The options as they were written on the command line."""
        for option in self.given():
            value = getattr(self, option[2:].replace("-", "_"))
            if value is True:
                yield option
                continue
            for text in [value] if isinstance(value, str) else value:
                yield from (option, text)


def read_event_table(
    file: Path,
    options: EventOptions,
    min_count: int,
    delimiter: str | None,
    memory_limit: str | None = None,
) -> Table:
    """The table of a file of events: binary codes, or a multi-hot variable for each group."""
    from dataclasses import replace

    from latenttree.data.events.read import read_events

    events = read_events(
        file,
        min_support=min_count,
        delimiter=delimiter,
        memory_limit=memory_limit,
        **options.arguments(),
    )
    return (replace(events, groups=None) if options.binary else events).table()


def event_delimiter(mark: str) -> str | None:
    """None where it is not said, so that the name of the file decides."""
    return None if mark == "," else mark


def map_source(text: str) -> Any:
    """FILE, or FILE:COLUMN:COLUMN where it has more than two columns."""
    file, *columns = text.rsplit(":", 2)
    if len(columns) == 2 and not Path(text).exists():
        return (Path(file), *columns)
    return Path(text)


def read_training(
    file: Path,
    events: EventOptions | None,
    *,
    vocab: Path | None,
    min_count: int,
    drop_constant: bool,
    delimiter: str,
    family: str | dict[str, str],
    weights: str | None,
    scores: bool,
    ignore: Sequence[str] = (),
    memory_limit: str | None = None,
) -> Table:
    """The table to learn from."""
    from latenttree.data import read_table

    if events is None:
        _check_columns(file, ignore, delimiter)
        return read_table(
            file,
            vocab=vocab,
            min_support=min_count,
            drop_constant=drop_constant,
            delimiter=delimiter,
            family=family,
            weights=weights,
            scores=scores,
            ignore=ignore,
            memory_limit=memory_limit,
        )
    given = {"--family": family != "auto", "--weights": weights, "--vocab": vocab}
    given |= {"--hidden gaussian": scores, "--ignore": bool(ignore)}
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise ValueError(f"{wrong} does not go with --events; leave it out")
    return read_event_table(file, events, min_count, event_delimiter(delimiter), memory_limit)


def _check_columns(file: Path, ignore: Sequence[str], delimiter: str) -> None:
    """The columns to leave out are there; the names of a .csv are looked at."""
    from latenttree.cli.aside import check_aside, header_of
    from latenttree.data.files.text import check_file, suffix_of

    check_file(file)
    if suffix_of(file) in (".csv", ".parquet"):
        check_aside(header_of(file, delimiter), ignore, file.name)
    elif ignore:
        raise ValueError(
            f"--ignore names a column of a .csv or .parquet, but the file is {file.name!r}"
        )


def record_of(
    events: EventOptions | None, weights: str | None, ignore: Sequence[str]
) -> tuple[str, ...]:
    """A note on how data were read, for a model to keep; none where nothing was said."""
    words = [] if events is None else ["--events", *events.words()]
    words += [] if weights is None else ["--weights", weights]
    words += [word for name in ignore for word in ("--ignore", name)]
    return (RECORD + shlex.join(words),) if words else ()


def recorded(messages: Sequence[str]) -> str | None:
    """How the data of a model were read, None where it does not say."""
    found = (text.removeprefix(RECORD) for text in messages if text.startswith(RECORD + "--"))
    return next(found, None)


def check_event_options(events: bool, options: EventOptions) -> None:
    given = options.given()
    if given and not events:
        raise ValueError(f"{given[0]} is for tables of events; pass --events too")
    if options.binary and options.groups is None:
        raise ValueError("--binary reads the codes of --groups FILE one by one; pass that too")


def parse_families(texts: Sequence[str]) -> str | dict[str, str]:
    """'auto', one name for all columns, or a name for each of some columns."""
    whole = [text for text in texts if "=" not in text]
    if not texts or (len(texts) == 1 and whole):
        return texts[0] if texts else "auto"
    if whole:
        raise ValueError(
            f"--family {whole[0]} is for all columns, so it stands alone; for some of them write "
            "--family COLUMN=NAME, once for each"
        )
    pairs = [text.rpartition("=") for text in texts]
    repeated = next(
        (c for i, (c, _, _) in enumerate(pairs) if c in [p[0] for p in pairs[:i]]), None
    )
    if repeated is not None:
        raise ValueError(f"--family gives column {repeated!r} more than once; give it one name")
    return {column.strip(): name.strip() for column, _, name in pairs}
