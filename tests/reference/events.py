"""The samples of each code of events, with sets and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def samples_by_code(
    pairs: Sequence[tuple[str, str]],
    roll_up: Mapping[str, Sequence[str]] | None,
    allowed: set[str] | None,
    min_count: int,
) -> dict[str, set[str]]:
    """The samples of every code that is kept; a code that all samples have is not."""
    samples: dict[str, set[str]] = {}
    for sample, code in pairs:
        for parent in [code] if roll_up is None else roll_up.get(code, []):
            if allowed is None or parent in allowed:
                samples.setdefault(parent, set()).add(sample)
    kept = {code: have for code, have in samples.items() if len(have) >= min_count}
    everyone = set().union(*kept.values())
    return {code: have for code, have in kept.items() if have != everyone}
