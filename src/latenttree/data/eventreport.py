"""What was left out of a table of events, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from latenttree.data.checks import N_SHOWN, listing
from latenttree.errors import DataError


class NothingLeft(DataError):
    """No code is left; `report` says, as that of `Events`, where they went."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        told = " ".join(sentences(report))
        super().__init__(f"no code is left. {told} Check the columns, the maps and the bounds")
        self.report = dict(report)


def left_out(
    counts: Mapping[str, int],
    known: Collection[str] = (),
    earlier: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Numbers and examples of codes that were left out.

    Parameters
    ----------
    counts : how many samples have each of these codes.
    known : the codes that would have been kept, to find those that differ in zeros alone.
    earlier : what was left out before for the same reason; it is added.

    Returns
    -------
    dict of `codes` (how many), `pairs` (of sample and code), `examples` (the most frequent codes
    with their counts) and `alike` (codes that are a known one as numbers: "8" and "008").
    """
    before: Mapping[str, Any] = earlier or {"codes": 0, "pairs": 0, "examples": {}, "alike": {}}
    all_counts = [*before["examples"].items(), *counts.items()]
    most = sorted(all_counts, key=lambda item: (-item[1], item[0]))[:N_SHOWN]
    return {
        "codes": before["codes"] + len(counts),
        "pairs": before["pairs"] + sum(counts.values()),
        "examples": dict(most),
        "alike": before["alike"] | _alike(counts, known),
    }


def _alike(counts: Mapping[str, int], known: Collection[str]) -> dict[str, str]:
    """Codes that equal a known one as numbers, with that one."""
    longest_first = sorted(known, key=len, reverse=True)  # so that the shortest remains
    numbers = {value: code for code in longest_first if (value := _number(code)) is not None}
    found = ((code, numbers.get(value)) for code in counts if (value := _number(code)) is not None)
    return {code: other for code, other in found if other is not None}


def _number(text: str) -> float | None:
    """Digits, with a point or without, as a number."""
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else None


def sentences(report: Mapping[str, Any]) -> Iterator[str]:
    """The report for people; what is zero is left out."""
    sample, code = report["columns"][:2]
    yield f"{report['events']:,} events: samples from column {sample!r}, codes from {code!r}."
    if report["decimal_codes"]:
        yield (
            f"The codes in {code!r} are decimal numbers, which have no zeros at their ends: read "
            "them as text where '250.10' and '250.1' differ."
        )
    for name, words in _EVENTS.items():
        if report.get(name):
            yield f"{_many(report[name], 'event')} {words}."
    for name, words in _CODES.items():
        if report.get(name) and report[name]["codes"]:
            yield from _codes_left_out(report[name], words.format(**report))
    if report.get("empty_groups"):
        groups = report["empty_groups"]
        yield f"{_many(len(groups), 'group')} without a code that is left: {listing(groups)}."
    if report.get("samples_without"):
        yield (
            f"{_many(report['samples_without'], 'sample')} without an event that counts left out; "
            "pass all_samples= to keep them."
        )


_EVENTS = {
    "incomplete": "without a sample or a code left out",
    "outside_time": "outside the time span left out",
    "outside_samples": "of samples that are not in all_samples left out",
    "duplicates": "repeated (a code counts once in a sample)",
}
_CODES = {
    "outside_roll_up": "outside the map roll_up=",
    "outside_groups": "outside the map groups=",
    "outside_codes": "outside codes=",
    "rare": "in fewer than min_support={min_support} samples",
    "everywhere": "in all samples",
}


def _codes_left_out(found: Mapping[str, Any], why: str) -> Iterator[str]:
    examples = [f"{code!r} ({n:,})" for code, n in found["examples"].items()]
    n_more = found["codes"] - len(examples)
    more = f" and {n_more:,} more" if n_more else ""
    yield (
        f"{_many(found['codes'], 'code')} {why} left out, {_many(found['pairs'], 'occurrence')} "
        f"in samples: {', '.join(examples)}{more}."
    )
    if found["alike"]:
        code, other = next(iter(found["alike"].items()))
        yield (
            f"{len(found['alike']):,} of them differ from a known code in zeros alone, like "
            f"{code!r} from {other!r}: write the codes alike."
        )


def _many(n: int, what: str, plural: str = "s") -> str:
    return f"{n:,} {what}{plural if n != 1 else ''}"
