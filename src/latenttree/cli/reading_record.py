"""How the data of a model were read: a note that the model keeps, and the options that new data are
read with where none are given."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from latenttree.cli.options import (
    LEAST_COUNT,
    EventOptions,
    NewEvents,
    NewTable,
    TableOptions,
    TrainingEvents,
    TrainingTable,
    map_source,
)
from latenttree.errors import DataError

RECORD = "read with "
"""Begins the note."""

SWITCHES = frozenset({"--events", "--binary"})
"""Options without a value."""

NOT_REMEMBERED = frozenset({"--since", "--until", "--binary"})
"""Options that new data need not share: they may well be of another time, and the model knows
whether codes are variables."""

Remembered = Mapping[str, Sequence[str]]
"""Values by flag."""


def record_of(events: TrainingEvents, table: TrainingTable) -> tuple[str, ...]:
    """A note on how data were read, for a model to keep; none where no option says."""
    pairs = option_pairs(events, table, table.weights)
    if table.min_count != LEAST_COUNT:
        pairs.append(("--min-count", str(table.min_count)))
    return (RECORD + _written(pairs),) if pairs else ()


def option_pairs(
    events: EventOptions | None, table: TableOptions, weights: str | None
) -> list[tuple[str, ...]]:
    """Flags with their values."""
    pairs = [] if events is None else list(events.pairs())
    pairs += [] if table.delimiter is None else [("--delimiter", table.delimiter)]
    pairs += [] if weights is None else [("--weights", weights)]
    return pairs + [("--ignore", name) for name in table.ignored]


def _written(pairs: Iterable[Sequence[str]]) -> str:
    return shlex.join(word for pair in pairs for word in pair)


def remembered(messages: Sequence[str]) -> Remembered:
    """The options in the note of a model, empty where there is none.

    >>> remembered(["other", "read with --events --ignore 'the date' --ignore id"])
    {'--events': [], '--ignore': ['the date', 'id']}
    """
    notes = (text.removeprefix(RECORD) for text in messages if text.startswith(RECORD + "--"))
    words = iter(shlex.split(next(notes, "")))
    found: dict[str, list[str]] = {}
    for flag in words:
        values = found.setdefault(flag, [])
        if flag not in SWITCHES:
            values.append(next(words, ""))
    return {flag: values for flag, values in found.items() if flag not in NOT_REMEMBERED}


@dataclass(frozen=True)
class NewOptions:
    """How new samples are read.

    Attributes
    ----------
    table, events : as given, or as in training; `events` is None where a command takes none.
    weights : the column that says how often each row counts, if any.
    counts : whether the command takes weights; otherwise their column is left out.
    """

    table: NewTable
    events: NewEvents | None = None
    weights: str | None = None
    counts: bool = False

    @property
    def are_events(self) -> bool:
        """Whether the file has a row for each event."""
        return self.events is not None and bool(self.events.events)

    def cells_as_in_training(self, known: Remembered, suffix: str) -> NewOptions:
        """With the delimiter of training, for a file whose name does not tell it, and how its
        events were read, where none are given."""
        table, events = self.table, self.events
        marks = known.get("--delimiter", ())
        if table.delimiter is None and marks and suffix in (".csv", ".txt"):
            table = replace(table, delimiter=marks[0])
        if events is not None:
            events = events_as_in_training(events, known)
            events.check()
        return replace(self, table=table, events=events)

    def columns_as_in_training(self, known: Remembered, header: Sequence[str]) -> NewOptions:
        """With the columns that training left out, as far as the file has them, and that of its
        weights."""
        weights, ignored = self.weights, list(self.table.ignored)
        ignored += [n for n in known.get("--ignore", ()) if n in header and n not in ignored]
        learned = [n for n in known.get("--weights", ()) if n in header and n not in ignored]
        if learned and weights is None and self.counts:
            weights = learned[0]
        elif learned and learned[0] != weights:
            ignored += learned
        return replace(self, weights=weights, table=replace(self.table, ignore=ignored))

    def note(self, given: NewOptions) -> tuple[str, ...]:
        """What of this was not `given` but taken from training, if anything."""
        before = option_pairs(given.events, given.table, given.weights)
        after = option_pairs(self.events, self.table, self.weights)
        added = [pair for pair in after if pair not in before]
        return (f"read as in training: {_written(added)}",) if added else ()


def events_as_in_training(events: NewEvents, known: Remembered) -> NewEvents:
    """The options of events, with those of training where none are given."""
    if events.events is None:
        events = replace(events, events="--events" in known)
    if not events.events or "--events" not in known:
        return events
    last = {flag: values[-1] for flag, values in known.items() if values}
    groups = last.get("--groups")
    if groups is not None and not map_file(groups).exists():
        groups = None  # the model has the groups: codes outside of them are merely unknown
    if events.unknown is None and "--min-count" in known:
        events = replace(events, unknown="drop")
    return replace(
        events,
        sample=events.sample or last.get("--sample"),
        code=events.code or last.get("--code"),
        time=events.time or last.get("--time"),
        roll_up=events.roll_up or _roll_up(known),
        groups=events.groups or groups,
    )


def _roll_up(known: Remembered) -> list[str] | None:
    texts = list(known.get("--roll-up", ()))
    for text in texts:
        if not map_file(text).exists():
            what = f"the model was fitted with --roll-up {text}, and no such file is here"
            remedy = "say where it is now: --roll-up FILE[:CODE:PARENT]"
            raise DataError(what, remedy, value=text, option="roll_up")
    return texts or None


def map_file(text: str) -> Path:
    """The file of FILE[:CODE:TARGET]."""
    source = map_source(text)
    return source[0] if isinstance(source, tuple) else source
