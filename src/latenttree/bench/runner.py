"""Run tables by name: measure, print, write the JSON file and the figure."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from latenttree.bench import TABLES
from latenttree.bench.record import file_of, write
from latenttree.bench.settings import Settings
from latenttree.bench.show import show_rows
from latenttree.errors import DataError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def run_table(name: str, settings: Settings) -> dict[str, Any]:
    """One table; its files are in `settings.out` afterwards, if it has a row."""
    module = table(name)
    record: dict[str, Any] = module.run(settings)
    if not record["rows"]:
        return record
    if settings.console is not None:
        getattr(module, "show", show_rows)(record, settings.console)
    settings.say(f"results: {write(record, settings.out)}")
    picture = file_of(name, settings.out, settings.quick, ".png")
    if save_figure(record, picture):
        settings.say(f"figure: {picture}")
    return record


def table(name: str) -> ModuleType:
    if name not in TABLES:
        raise DataError(f"no table is called {name!r}; choose of {', '.join(TABLES)}")
    return import_module(TABLES[name])


def draw(record: Mapping[str, Any]) -> Figure:
    """The figure of a record."""
    from latenttree.bench.figures import times_figure

    figure: Figure = getattr(table(record["benchmark"]), "draw", times_figure)(record)
    return figure


def save_figure(record: Mapping[str, Any], path: Path) -> bool:
    """Write the figure; False where Matplotlib is not installed."""
    from latenttree.io.atomic import replacing

    try:
        figure = draw(record)
    except ImportError:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        figure.savefig(partial, dpi=160, facecolor="white", format=path.suffix[1:])
    return True
