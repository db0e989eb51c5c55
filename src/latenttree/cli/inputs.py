"""What `fit` reads: tables, events and alignments, by the name of the file and the options."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from latenttree.data import Table


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


def read_event_table(
    file: Path, options: EventOptions, min_count: int, delimiter: str | None
) -> Table:
    """The table of a file of events: binary codes, or a multi-hot variable for each group."""
    from dataclasses import replace

    from latenttree.data.events import read_events

    events = read_events(file, min_support=min_count, delimiter=delimiter, **options.arguments())
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
) -> Table:
    """The table to learn from."""
    from latenttree.data import read_table

    if events is None:
        return read_table(
            file,
            vocab=vocab,
            min_support=min_count,
            drop_constant=drop_constant,
            delimiter=delimiter,
            family=family,
            weights=weights,
            scores=scores,
        )
    given = {"--family": family != "auto", "--weights": weights, "--vocab": vocab}
    given["--hidden gaussian"] = scores
    wrong = next((name for name, value in given.items() if value), None)
    if wrong is not None:
        raise ValueError(f"{wrong} does not go with --events; leave it out")
    return read_event_table(file, events, min_count, event_delimiter(delimiter))


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
