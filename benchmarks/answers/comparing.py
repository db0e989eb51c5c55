"""What differs between two records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.answers.tasks import WIDTH, Arrays, chosen

SOURCE = "source"
"""Under this name a record says what was recorded."""

TOLERANCE = 1e-10
"""Largest difference that is none: of parameters, supports and lengths absolute, of other answers
relative to their size where that is above 1."""


class Compared(NamedTuple):
    """What differs between two records of a data set: largest differences, names of facts."""

    tree: str
    parameters: float
    support: float
    lengths: float
    answers: float
    facts: list[str]
    seconds: tuple[float, float]

    @property
    def same(self) -> bool:
        """Whether nothing differs beyond the tolerance."""
        numbers = (self.parameters, self.support, self.lengths, self.answers)
        return self.tree == "same" and not self.facts and max(numbers) <= TOLERANCE


def compared(before: Arrays, after: Arrays, ignored: Sequence[str]) -> Compared:
    """Two records of a data set."""
    numbers = {
        part: max(_differences(before, after, part, ignored).values(), default=0.0)
        for part in ("parameters", "support", "lengths")
    }
    answers = _differences(before, after, "answers", ignored, relative=True)
    facts = [key for key, size in _differences(before, after, "facts", ignored).items() if size]
    facts += [key for key, size in answers.items() if size > TOLERANCE]
    seconds = float(before["seconds"]), float(after["seconds"])
    largest = max(answers.values(), default=0.0)
    return Compared(_tree(before, after), **numbers, answers=largest, facts=facts, seconds=seconds)


def _tree(before: Arrays, after: Arrays) -> str:
    """Whether two trees are the same; else by how many splits they differ."""
    if "tree/names" not in before or "tree/names" not in after:
        return "failed"
    if not max(_differences(before, after, "tree", ()).values()):
        return "same"
    one, other = (
        lt.Tree(
            tuple(found["tree/names"].tolist()),
            int(found["tree/n_observed"]),
            found["tree/edges"],
            found["lengths/lengths"],
        )
        for found in (before, after)
    )
    if one.observed_names != other.observed_names:
        return "columns"
    return f"{lt.metrics.robinson_foulds(one, other):g} splits"


def _differences(
    before: Arrays, after: Arrays, part: str, ignored: Sequence[str], relative: bool = False
) -> dict[str, float]:
    """The largest difference of each array of a part; infinite where one cannot be taken."""
    keys = [key for key in dict.fromkeys([*before, *after]) if key.startswith(part + "/")]
    found = {}
    for key in keys:
        name = key.removeprefix(part + "/")
        if name not in ignored:
            found[name] = difference(before.get(key), after.get(key), relative)
    return found


def difference(a: NDArray[Any] | None, b: NDArray[Any] | None, relative: bool = False) -> float:
    """Largest difference of two arrays, 0 where both have the same infinity or no number."""
    if a is None or b is None or a.shape != b.shape:
        return np.inf
    if a.dtype.kind not in "biuf" or b.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(a, b) else np.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    apart = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    x, y = x[apart], y[apart]
    if not (np.isfinite(x) & np.isfinite(y)).all():
        return np.inf
    size = np.maximum(1.0, np.abs(x)) if relative else 1.0
    return float((np.abs(x - y) / size).max(initial=0.0))


def loaded(path: Path) -> dict[str, Arrays]:
    """What a file has recorded, by data set; prints whose answers they are."""
    found: dict[str, Arrays] = {}
    with np.load(path, allow_pickle=False) as file:
        print(f"{path}: {file[SOURCE]}")
        for key in file.files:
            if key == SOURCE:
                continue
            name, rest = key.split("/", 1)
            found.setdefault(name, {})[rest] = file[key]
    return found


HEADER = (
    f"{'data set':{WIDTH}} {'tree':>10} {'parameters':>10} {'supports':>9} {'lengths':>9} "
    f"{'answers':>9} {'before s':>9} {'after s':>9}  other"
)


def line(name: str, found: Compared) -> str:
    """A data set for people."""
    numbers = (found.parameters, found.support, found.lengths, found.answers)
    shown = ["0" if x == 0 else f"{x:.1e}" for x in numbers]
    return (
        f"{name:{WIDTH}} {found.tree:>10} {shown[0]:>10} {shown[1]:>9} {shown[2]:>9} {shown[3]:>9} "
        f"{found.seconds[0]:9.2f} {found.seconds[1]:9.2f}  {', '.join(found.facts)}"
    )


def compare(
    before: dict[str, Arrays], after: dict[str, Arrays], asked: Sequence[str], ignored: list[str]
) -> int:
    """Print what differs; the number of data sets that do."""
    names = list(chosen(dict.fromkeys([*before, *after]), asked))
    if not names:
        print("there is nothing to compare")
        return 1
    both = [name for name in names if name in before and name in after]
    print(HEADER)
    found = {name: compared(before[name], after[name], ignored) for name in both}
    for name in names:
        if name in found:
            print(line(name, found[name]))
        else:
            print(f"{name:{WIDTH}} {'absent':>10}  in {'after' if name in before else 'before'}")
    return _summary(found, len(names) - len(both))


def _summary(found: Mapping[str, Compared], n_absent: int) -> int:
    differing = [name for name, result in found.items() if not result.same]
    trees = sum(result.tree != "same" for result in found.values())
    largest = {
        part: max((getattr(result, part) for result in found.values()), default=0.0)
        for part in ("parameters", "support", "lengths", "answers")
    }
    old, new = (
        np.nansum([result.seconds[i] for result in found.values()], dtype=float) for i in (0, 1)
    )
    print(
        f"\n{len(found)} data sets: {trees} trees differ; largest differences "
        + ", ".join(f"{part} {size:.1e}" for part, size in largest.items())
        + f"; fits {old:.1f} s before, {new:.1f} s after"
    )
    if n_absent:
        print(f"{n_absent} data sets are in one of the files only")
    print(f"DIFFERENT: {', '.join(differing)}" if differing else "the same answers everywhere")
    return len(differing) + n_absent
