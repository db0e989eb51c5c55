"""What the user asked for, and where the data are."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from latenttree.engine import resolve_jobs
from latenttree.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

ROOT = Path(__file__).resolve().parents[1]
VARIABLE = "LATENTTREE_DATA"
YES, NO = ("yes", "true", "1"), ("no", "false", "0")


class Choice(NamedTuple):
    """An option of one table: its value at full and at quick size (None for the same), and what
    it is. Values given as text are read as the type of `default`; tuples are cut at commas."""

    default: Any
    help: str
    quick: Any = None

    def read(self, text: str) -> Any:
        """The value that a text stands for."""
        if isinstance(self.default, tuple):
            return tuple(_as_type(part, type(self.default[0])) for part in text.split(","))
        return _as_type(text, type(self.default))


def _as_type(text: str, kind: type) -> Any:
    if kind is not bool:
        return kind(text)
    if text.lower() not in YES + NO:
        raise ValueError(f"{text!r} is neither yes nor no")
    return text.lower() in YES


@dataclass(frozen=True)
class Settings:
    """Options of one run.

    table : the name of the table that runs.
    quick : tiny sizes, to see that everything works.
    seeds, first_seed : repetitions of a row, and the first of them; None leaves it to the table.
    rows : labels (or parts of them) of the rows to run; empty for all.
    threads : of a fit; None for all cores. jobs : processes, of tables that are not about time.
    resume : go on with the runs that an interrupted call of the same source has left.
    data : folder of real data; None looks for it (`data_folder`). out : folder of results.
    choices : options of the table by name, see `Choice`.
    """

    table: str = ""
    quick: bool = False
    seeds: int | None = None
    first_seed: int = 0
    rows: tuple[str, ...] = ()
    threads: int | None = None
    jobs: int = 2
    resume: bool = False
    data: Path | None = None
    out: Path = ROOT / "out" / "benchmarks"
    choices: Mapping[str, Any] = field(default_factory=dict)
    console: Console | None = field(default=None, compare=False)

    @property
    def n_jobs(self) -> int:
        """Threads of a fit."""
        return resolve_jobs(self.threads)

    def n_seeds(self, default: int, quick: int = 1) -> int:
        """Repetitions: what was asked for, else the default of the full or the quick run."""
        if self.seeds is not None:
            return self.seeds
        return quick if self.quick else default

    def seed_range(self, default: int, quick: int = 1) -> range:
        """The seeds to run."""
        return range(self.first_seed, self.first_seed + self.n_seeds(default, quick))

    def wants(self, label: str) -> bool:
        """Whether a row with this label is to run."""
        return not self.rows or any(part.lower() in label.lower() for part in self.rows)

    def say(self, text: str) -> None:
        """Print progress, where there is a console."""
        if self.console is not None:
            self.console.print(text, style="dim", highlight=False, markup=False)

    def options(self) -> dict[str, Any]:
        """As JSON knows them."""
        return {
            "quick": self.quick,
            "seeds": self.seeds,
            "first_seed": self.first_seed,
            "threads": self.n_jobs,
            "rows": list(self.rows),
            "choices": dict(self.choices),
        }


def with_choices(
    settings: Settings, table: str, known: Mapping[str, Choice], given: Mapping[str, str]
) -> Settings:
    """Settings of one table: its choices as given, the others at their defaults."""
    values: dict[str, Any] = {}
    for name, choice in known.items():
        small = settings.quick and choice.quick is not None
        values[name] = choice.quick if small else choice.default
        if name in given:
            try:
                values[name] = choice.read(given[name])
            except ValueError as error:
                raise DataError(
                    f"--set {name}={given[name]} cannot be used: {error}",
                    f"give a value like {choice.default}",
                    value=given[name],
                    option=name,
                ) from None
    return replace(settings, table=table, choices=values)


def data_folder(settings: Settings) -> Path | None:
    """The folder of real data: `--data`, `$LATENTTREE_DATA`, or `shared/data` beside the checkout
    or its parent; None where there is none."""
    if settings.data is not None:
        if not settings.data.is_dir():
            raise DataError(
                f"--data {settings.data} is no folder",
                "name the one with nips/, ...",
                path=str(settings.data),
            )
        return settings.data
    places = [folder / "shared" / "data" for folder in (ROOT.parent, ROOT.parent.parent)]
    if os.environ.get(VARIABLE):
        places.insert(0, Path(os.environ[VARIABLE]))
    return next((place for place in places if place.is_dir()), None)


def data_file(settings: Settings, relative: str) -> Path | None:
    """A file of the real data, or None after saying what is missing and how to give it."""
    folder = data_folder(settings)
    if folder is not None and (folder / relative).is_file():
        return folder / relative
    settings.say(
        f"skipped: no {relative} in {folder or 'a data folder'}; pass the folder that has it as "
        f"--data DIR or ${VARIABLE}"
    )
    return None


def data_files(settings: Settings, *relative: str) -> list[Path]:
    """Files of the real data that belong together; none of them where one is missing."""
    found = [data_file(settings, name) for name in relative]
    return [path for path in found if path is not None] if None not in found else []
