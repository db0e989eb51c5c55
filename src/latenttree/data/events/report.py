"""What was left out of an event table, in numbers and in sentences."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from latenttree.data.checks import N_SHOWN, listing
from latenttree.errors import DataError, Option, Phrase, Text


class NothingLeft(DataError):
    """No code is left; `report`, as that of `Events`, tells where they went."""

    def __init__(self, report: Mapping[str, Any]) -> None:
        left_out_of = [part for sentence in sentences(report) for part in (" ", sentence)]
        remedy = Text("check the columns, the maps and the bounds.", *left_out_of)
        super().__init__("no code is left", remedy)
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
    pairs = ((code, numbers.get(value)) for code in counts if (value := _number(code)) is not None)
    return {code: other for code, other in pairs if other is not None}


def _number(text: str) -> float | None:
    """Digits, with a point or without, as a number."""
    return float(text) if text.replace(".", "", 1).isdecimal() and text.isascii() else None


def sentences(report: Mapping[str, Any]) -> Iterator[str]:
    """The report in sentences, each with its options and phrases; counts of zero are omitted."""
    sample, code = report["columns"][:2]
    yield f"{report['events']:,} events: samples from column {sample!r}, codes from {code!r}."
    if report["decimal_codes"]:
        yield (
            f"The codes in {code!r} are decimal numbers, which have no zeros at their ends: read "
            "them as text where '250.10' and '250.1' differ."
        )
    for name, words in _EVENTS.items():
        if report.get(name):
            yield Text(f"{_many(report[name], 'event')} ", words, ".")
    for name, words in (_CODES | _rare(report)).items():
        if report.get(name) and report[name]["codes"]:
            yield from _codes_left_out(report[name], words)
    if report.get("empty_groups"):
        groups = report["empty_groups"]
        yield f"{_many(len(groups), 'group')} without a code that is left: {listing(groups)}."
    if report.get("samples_without"):
        samples = _many(report["samples_without"], "sample")
        keep = Phrase("keep all samples", "; pass all_samples to keep them")
        yield Text(f"{samples} without an event that counts left out", keep, ".")


_EVENTS: dict[str, str] = {
    "incomplete": "without a sample or a code left out",
    "outside_time": "outside the time span left out",
    "outside_samples": Text(
        Phrase("other samples", "of samples that are not in all_samples"), " left out"
    ),
    "duplicates": "repeated (a code counts once in a sample)",
}
_CODES: dict[str, str] = {
    "outside_roll_up": Text("outside the map ", Option("roll_up")),
    "outside_groups": Text("outside the map ", Option("groups")),
    "outside_codes": Text(Phrase("outside codes", "outside codes=")),
}


def _rare(report: Mapping[str, Any]) -> dict[str, str]:
    return {
        "rare": f"in fewer than {report.get('min_count')} samples",
        "everywhere": "in all samples",
    }


def _codes_left_out(counts: Mapping[str, Any], why: str) -> Iterator[str]:
    examples = [f"{code!r} ({n:,})" for code, n in counts["examples"].items()]
    n_more = counts["codes"] - len(examples)
    more = f" and {n_more:,} more" if n_more else ""
    occurrences = _many(counts["pairs"], "occurrence")
    shown = f"{', '.join(examples)}{more}"
    yield Text(
        f"{_many(counts['codes'], 'code')} ", why, f" left out, {occurrences} in samples: {shown}."
    )
    if counts["alike"]:
        code, other = next(iter(counts["alike"].items()))
        yield (
            f"{len(counts['alike']):,} of them differ from a known code in zeros alone, like "
            f"{code!r} from {other!r}: write the codes alike."
        )


def _many(n: int, what: str, plural: str = "s") -> str:
    return f"{n:,} {what}{plural if n != 1 else ''}"
