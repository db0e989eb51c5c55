"""A row of a table of whole fits: its data, what the paper reports, what is to be reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from benchmarks.bounds import Shape


class Paper(NamedTuple):
    """What the paper reports, on 64 cores."""

    seconds: float | None = None
    structure_error: float | None = None
    parameter_error: float | None = None


class Target(NamedTuple):
    """What is to be reached on 2 cores: seconds, Robinson-Foulds, parameter error / oracle's,
    bytes of memory."""

    seconds: float | None = None
    rf: float | None = None
    ratio: float | None = None
    memory: float | None = None


NOTHING_REPORTED, NOTHING_ASKED = Paper(), Target()


class Source(Protocol):
    """Data of a row. `draw` runs in a process of its own and leaves files; `load` reads them."""

    def draw(self, folder: Path, seed: int) -> None:
        """Write the files."""
        ...

    def load(self, folder: Path) -> Any:
        """What `LatentTree.fit` takes."""
        ...

    def truth(self, folder: Path) -> Truth | None:
        """What is known about the data."""
        ...

    def shape(self, data: Any, n_states: int) -> Shape:
        """What the lower bound depends on."""
        ...


@dataclass(frozen=True)
class Truth:
    """What is known about simulated data.

    known : the `LatentTreeData` without its samples, which errors are measured against.
    oracle_error : parameter error of the estimate by counting with the hidden states known.
    frequent : names of the variables that are common enough for their tree to be judged; all
        of them where empty.
    """

    known: Any
    oracle_error: float | None = None
    frequent: tuple[str, ...] = ()


@dataclass(frozen=True)
class Work:
    """A row: what is fitted, the paper's numbers, ours to reach.

    x : where the row stands in a figure over sizes. is_refused : below the detection limit.
    options : of `LatentTree`, beside `n_states`, `random_state` and `n_jobs`.
    """

    label: str
    source: Source
    n_states: int
    paper: Paper = NOTHING_REPORTED
    target: Target = NOTHING_ASKED
    x: float | None = None
    part: str = ""
    is_refused: bool = False
    options: Mapping[str, Any] = field(default_factory=dict)
