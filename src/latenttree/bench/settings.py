"""What the user asked for, and where the data are."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from latenttree.engine import resolve_jobs
from latenttree.errors import DataError

if TYPE_CHECKING:
    from rich.console import Console

VARIABLE = "LATENTTREE_DATA"


@dataclass(frozen=True)
class Settings:
    """Options of one run.

    quick : tiny sizes, to see that everything works.
    seeds : repetitions of a row; None leaves it to the table.
    data : folder of real data; None looks for it (`data_folder`).
    out : folder of the JSON files and figures.
    threads : None for all cores.
    rows : labels (or parts of them) of the rows to run; empty for all.
    limit : seconds that a rival may take; None leaves it to the table.
    """

    quick: bool = False
    seeds: int | None = None
    data: Path | None = None
    out: Path = Path("out/benchmarks")
    threads: int | None = None
    rows: tuple[str, ...] = ()
    check: bool = False
    store: bool = False
    limit: float | None = None
    console: Console | None = field(default=None, compare=False)

    @property
    def n_jobs(self) -> int:
        return resolve_jobs(self.threads)

    def n_seeds(self, default: int) -> int:
        """Repetitions: what was asked for, else the default, one of a quick run."""
        if self.seeds is not None:
            return self.seeds
        return 1 if self.quick else default

    def wants(self, label: str) -> bool:
        return not self.rows or any(part.lower() in label.lower() for part in self.rows)

    def say(self, text: str) -> None:
        if self.console is not None:
            self.console.print(text, style="dim", highlight=False)

    def options(self) -> dict[str, Any]:
        """As JSON knows them."""
        return {
            "quick": self.quick,
            "seeds": self.seeds,
            "threads": self.n_jobs,
            "rows": list(self.rows),
        }


def data_folder(settings: Settings) -> Path | None:
    """The folder of real data: `--data`, `$LATENTTREE_DATA`, or `shared/data` beside the checkout
    (of the working folder, or of the sources); None where there is none."""
    if settings.data is not None:
        if not settings.data.is_dir():
            raise DataError(f"--data {settings.data} is no folder; name the one with nips/, ...")
        return settings.data
    places = [Path.cwd().parent / "shared" / "data"]
    places.append(Path(__file__).resolve().parents[3].parent / "shared" / "data")
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
