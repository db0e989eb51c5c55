"""Event tables, such as health records, to sparse binary variables: a row for each (sample, code).

`read_events` takes the table as it is. Codes may be rolled up to their parents, and collected in
groups, each of which is then one multi-hot variable. Everything that is left out is counted.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import listing, option_error
from latenttree.data.events.columns import (
    BLOCK_BYTES,
    CodedColumn,
    IntArray,
    choose_columns,
    read_blocks,
    text_of,
)
from latenttree.data.events.maps import read_map
from latenttree.data.events.numbering import OUTSIDE, Numbering
from latenttree.data.events.report import NothingLeft, left_out, sentences
from latenttree.data.events.times import within
from latenttree.data.files.boundary import reading
from latenttree.data.files.formats import memory_needed
from latenttree.data.files.text import check_file
from latenttree.data.found_events import Events
from latenttree.data.streaming.assemble import ReadPlan, ending
from latenttree.data.streaming.pairs import PairCollector, Pairs
from latenttree.data.streaming.scratch import Arrays, ScratchFolder
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError, Option, Text


def read_events(
    events: Any,
    *,
    sample: str | None = None,
    code: str | None = None,
    time: str | None = None,
    since: Any = None,
    until: Any = None,
    roll_up: Any = None,
    groups: Any = None,
    codes: Any = None,
    min_count: int = 2,
    all_samples: Sequence[Any] | NDArray[Any] | None = None,
    delimiter: str | None = None,
    memory_limit: Any = None,
    scratch: str | Path | None = None,
) -> Events:
    """Sparse binary variables from a table with a row for each event.

    Parameters
    ----------
    events : a DataFrame, a dict of columns, a tuple ``(samples, codes)`` or ``(samples, codes,
        times)`` of arrays, or the path of a .csv (also .gz, .xz) or .parquet file. Codes of a
        file stay as they are written.
    sample, code, time : names of the columns. Guessed from usual names (patient_id, id, ...;
        code, icd9, ...; time, date, ...), else the first two columns.
    since, until : count events of this time span only, both ends included: numbers or dates, as
        the column of times has them. A date counts whole: ``until="2020"`` ends with the year.
    roll_up : replace each code by its parent, or by all its parents: a mapping from code to one
        parent or a list of them, or a table of two columns (DataFrame, path, or ``(table, column
        of codes, column of parents)``). A list of such maps is applied one after the other.
        Codes outside the map are dropped, and counted.
    groups : the group of each code, in the same forms; a code that occurs has one group. Codes
        outside the map are dropped, and counted; so are groups without members.
    codes : the columns, in this order; for new events the model that they are for, or the `names`
        of the events that it was learned from. Other codes are dropped, and counted; `min_count`
        then does not apply.
    min_count : leave out codes that fewer samples have, and codes that all samples have.
    all_samples : identifiers of all samples, a row for each in this order, also for those without
        events; events of others are dropped, and counted. Left out: the samples that have an
        event that counts, in order of appearance.
    delimiter : between the cells of a .csv; a comma, or a tab for .tsv, if left out.
    memory_limit, scratch : as in `read_table`: a file that is too large is read part by part, in
        any order of its rows; the names of the samples stay in memory.

    Raises
    ------
    DataError : columns, times or maps that cannot be used; no event left.

    Examples
    --------
    >>> from latenttree.data import read_events
    >>> patients, codes = [7, 7, 7, 9, 9, 4], ["flu", "cough", "flu", "cough", "rash", "rash"]
    >>> found = read_events((patients, codes), min_count=1)
    >>> found
    Events(3 samples x 3 codes)
    >>> found.names, found.report["duplicates"]
    (('cough', 'flu', 'rash'), 1)
    >>> found.matrix.toarray().astype(int).tolist()
    [[1, 1, 0], [1, 0, 1], [0, 0, 1]]
    """
    _check_min_count(min_count)
    codes = _codes_of_model(codes)
    path = isinstance(events, str | os.PathLike)
    with reading(events) if path else nullcontext():
        report: dict[str, Any] = {}
        window = _Window((sample, code, time), since, until)
        arrays, collector, blocks = _reading(events, window, delimiter, memory_limit, scratch)
        with ending(blocks):
            pairs, samples = _read(blocks, window, all_samples, collector, report)
        for step in _steps(roll_up):
            pairs = _rolled_up(pairs, read_map(step, "roll_up"), report)
        group_of = None if groups is None else _group_of(read_map(groups, "groups"), pairs, codes)
        if group_of is not None:
            pairs = _within(pairs, group_of, "outside_groups", report)
        pairs = _chosen_codes(pairs, codes, group_of, min_count, report)
        if all_samples is None:
            pairs, samples = _nonempty_samples(pairs, samples, report)
        if codes is None:
            n = len(samples)  # a code that all samples have is uninformative
            pairs = _without(pairs, lambda _, count: count == n, "everywhere", report)
            if not pairs.texts:
                raise NothingLeft(report)
        members = None if group_of is None else _members(pairs.texts, group_of, report)
        report |= {"samples": len(samples), "codes": len(pairs.texts), "pairs": len(pairs)}
        matrix = pairs.matrix(arrays)
        return Events(matrix, samples, pairs.texts, members, report, tuple(sentences(report)))


# ---- pairs of sample and code ---------------------------------------------------------


def _reading(
    events: Any,
    window: _Window,
    delimiter: str | None,
    memory_limit: Any,
    scratch: str | Path | None,
) -> tuple[Arrays, PairCollector, Iterable[list[CodedColumn]]]:
    """Storage for the matrix, a collector for the pairs, and the blocks of events that they come
    from."""
    held, size, plan = True, BLOCK_BYTES, ReadPlan(memory_bytes(memory_limit), scratch=scratch)
    if isinstance(events, str | os.PathLike):
        check_file(Path(events))
        held = memory_needed(Path(events)) <= room_for_reading(plan.limit)
        size = BLOCK_BYTES if held else plan.chunk_bytes
    blocks = read_blocks(events, window.choose, delimiter, size)
    arrays = plan._replace(held=held).arrays()
    return arrays, PairCollector(ScratchFolder(scratch, held)), blocks


def _codes_of_model(codes: Any) -> Sequence[Any] | None:
    """The codes of a fitted model; others as they are."""
    schema = getattr(codes, "schema_", None)
    if schema is None:
        return codes
    found = schema.event_codes()
    if found is None:
        what = "the model was not learned from events, of codes that are there or not"
        raise DataError(what, "pass codes=names", option="codes")
    return found[0]


class _Window(NamedTuple):
    """The columns of the events, and the time span that is read."""

    columns: tuple[str | None, ...]
    since: Any
    until: Any

    @property
    def bounded(self) -> bool:
        return self.since is not None or self.until is not None

    def choose(self, names: Sequence[str]) -> list[int]:
        sample, code, time = self.columns
        if self.bounded and time is None:
            time = ""  # to be guessed
        return choose_columns(names, sample, code, time)


def _read(
    blocks: Iterable[list[CodedColumn]],
    window: _Window,
    all_samples: Any,
    pairs: PairCollector,
    report: dict[str, Any],
) -> tuple[Pairs, NDArray[Any]]:
    """The distinct pairs of the complete events in the time span, and the samples."""
    samples, codes = _cohort(all_samples), Numbering()
    tally: Counter[str] = Counter()
    names: tuple[str, ...] = ()
    for columns in blocks:
        rows, numbers = samples.add(columns[0]), codes.add(columns[1])
        keep = (rows != -1) & (numbers >= 0)
        tally.update(events=len(keep), incomplete=int((~keep).sum()))
        if window.bounded:
            inside = within(columns[2], window.since, window.until)
            tally.update(outside_time=int((keep & ~inside).sum()))
            keep &= inside
        tally.update(outside_samples=int((keep & (rows == OUTSIDE)).sum()))
        keep &= rows >= 0
        tally.update(used=int(keep.sum()))
        pairs.add(rows[keep], numbers[keep])
        names = tuple(column.name for column in columns)
    report |= {"columns": names, "events": tally["events"], "incomplete": tally["incomplete"]}
    report["decimal_codes"] = codes.floats
    if window.bounded:
        report["outside_time"] = tally["outside_time"]
    if all_samples is not None:
        report["outside_samples"] = tally["outside_samples"]
    distinct = pairs.sorted(len(samples.values), codes.texts)
    report["duplicates"] = tally["used"] - len(distinct)
    return distinct, samples.values


def _cohort(all_samples: Any) -> Numbering:
    """The row of each sample: in order of appearance, or as given."""
    if all_samples is None:
        return Numbering()
    labels = np.asarray(all_samples)
    if labels.ndim != 1 or not len(labels):
        what = f" must be a list of identifiers, got shape {labels.shape}"
        raise option_error("all_samples", what, "pass one for each sample", labels.shape)
    position: dict[str, int] = {}
    for row, label in enumerate(labels.tolist()):
        if position.setdefault(text_of(label), row) != row:
            what = f" has {label!r} more than once"
            raise option_error("all_samples", what, "list each sample once", label)
    return Numbering(labels, position)


# ---- maps and limits ------------------------------------------------------------------


def _steps(roll_up: Any) -> list[Any]:
    if roll_up is None:
        return []
    return roll_up if isinstance(roll_up, list) else [roll_up]


def _rolled_up(pairs: Pairs, parents: Mapping[str, Sequence[str]], report: dict[str, Any]) -> Pairs:
    """Each code replaced by its parents; codes without any are counted and left out."""
    pairs = _within(pairs, parents, "outside_roll_up", report)
    used = dict.fromkeys(parent for text in pairs.texts for parent in parents[text])
    return pairs.changed(parents, tuple(used))


def _within(pairs: Pairs, allowed: Mapping[str, Any], why: str, report: dict[str, Any]) -> Pairs:
    """The codes that occur and are allowed; the others are counted under `why`."""
    return _without(pairs, lambda text, _: text not in allowed, why, report, allowed)


def _without(
    pairs: Pairs,
    is_out: Callable[[str, int], bool],
    why: str,
    report: dict[str, Any],
    known: Collection[str] = (),
) -> Pairs:
    """The codes that occur but for some, given them and how many samples have them; those are
    counted under `why`, see `left_out`."""
    counts = pairs.counts()
    out = {text: n for text, n in counts.items() if is_out(text, n)}
    report[why] = left_out(out, known, report.get(why))
    return pairs.limited([text for text in counts if text not in out])


def _group_of(
    groups: Mapping[str, Sequence[str]], pairs: Pairs, codes: Sequence[Any] | None
) -> dict[str, str]:
    """The one group of each code; the first for codes that neither occur nor are requested."""
    used = {*pairs.counts(), *map(text_of, () if codes is None else codes)}
    for code, own_groups in groups.items():
        if len(own_groups) > 1 and code in used:
            what = f" has code {code!r} in {len(own_groups)} groups ({listing(own_groups)})"
            keep = "a code has one group: keep one of them, or use "
            remedy = Text(keep, Option("roll_up"), " for several parents")
            raise option_error("groups", what, remedy, code)
    return {code: own_groups[0] for code, own_groups in groups.items()}


def _chosen_codes(
    pairs: Pairs,
    codes: Sequence[Any] | None,
    group_of: Mapping[str, str] | None,
    min_count: int,
    report: dict[str, Any],
) -> Pairs:
    """The requested codes in their order, else those with enough samples."""
    if codes is None:
        report["min_count"] = min_count
        return _without(pairs, lambda _, n: n < min_count, "rare", report)
    given = _given_codes(codes, group_of)
    return _within(pairs, given, "outside_codes", report).limited(tuple(given))


def _check_min_count(min_count: Any) -> None:
    if isinstance(min_count, bool) or not isinstance(min_count, int) or min_count < 1:
        what = f" must be a whole number >= 1, got {min_count!r}"
        raise option_error("min_count", what, value=min_count)


def _given_codes(codes: Sequence[Any], group_of: Mapping[str, str] | None) -> dict[str, int]:
    """The requested columns."""
    given = [text_of(code) for code in ([] if isinstance(codes, str) else codes)]
    if not given or len(set(given)) < len(given):
        what = f" must be a list of different codes, got {codes!r:.200}"
        raise option_error("codes", what, value=codes)
    outside = [code for code in given if group_of is not None and code not in group_of]
    if outside:
        raise DataError(
            Text(
                Option("codes"), f" has {listing(outside)}, which ", Option("groups"), " does not"
            ),
            "add a group",
            value=outside[0],
            option="codes",
        )
    return {code: i for i, code in enumerate(given)}


def _nonempty_samples(
    pairs: Pairs, samples: NDArray[Any], report: dict[str, Any]
) -> tuple[Pairs, NDArray[Any]]:
    """The samples that have a code, in order of appearance."""
    nonempty, rows = pairs.nonempty()
    report["samples_without"] = len(samples) - len(rows)
    if not len(rows):
        raise NothingLeft(report)
    return nonempty, samples[rows]


def _members(
    texts: Sequence[str], group_of: Mapping[str, str], report: dict[str, Any]
) -> dict[str, IntArray]:
    """The columns of each group that has any, in the order of the map."""
    members: dict[str, list[int]] = {group: [] for group in group_of.values()}
    for column, text in enumerate(texts):
        members[group_of[text]].append(column)
    report["empty_groups"] = tuple(group for group, columns in members.items() if not columns)
    return {g: np.asarray(columns) for g, columns in members.items() if columns}
