"""The record of a table: what its JSON file holds.

`{"schema", "benchmark", "title", "about", "environment", "options", "rows", ...}`; tables may add
keys of their own. A row has at least `ROW_KEYS`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from latenttree.bench.machine import environment
from latenttree.bench.settings import Settings
from latenttree.errors import DataError

SCHEMA = 1
KEYS = ("schema", "benchmark", "title", "about", "environment", "options", "rows")
ROW_KEYS = ("label", "seconds")


def make_record(
    name: str,
    title: str,
    about: str,
    settings: Settings,
    rows: Sequence[Mapping[str, Any]],
    **more: Any,
) -> dict[str, Any]:
    """The record of a finished table; the environment holds the load of the machine at its end."""
    return {
        "schema": SCHEMA,
        "benchmark": name,
        "title": title,
        "about": " ".join(about.split()),
        "environment": environment(),
        "options": settings.options(),
        "rows": [dict(row) for row in rows],
        **more,
    }


def file_of(name: str, folder: Path, quick: bool, suffix: str = ".json") -> Path:
    return folder / f"{name.replace('-', '_')}_table{'_quick' if quick else ''}{suffix}"


def write(record: Mapping[str, Any], folder: Path) -> Path:
    """As `NAME_table.json`, or `NAME_table_quick.json`, in the folder; whole or not at all."""
    from latenttree.io.atomic import replacing

    check(record)
    folder.mkdir(parents=True, exist_ok=True)
    path = file_of(record["benchmark"], folder, record["options"]["quick"])
    text = json.dumps(record, indent=1, default=_plain, allow_nan=False) + "\n"
    with replacing(path) as partial:
        Path(partial).write_text(text)
    return path


def read(path: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(path.read_text())
    check(record, str(path))
    return record


def check(record: Mapping[str, Any], where: str = "the record") -> None:
    """Refuse what a table or the page could not be made of."""
    missing = [key for key in KEYS if key not in record]
    if missing:
        raise DataError(f"{where} has no {missing}; write it again with `latenttree bench`")
    if record["schema"] != SCHEMA:
        raise DataError(
            f"{where} has schema {record['schema']}, this version reads {SCHEMA}; run the table "
            "again"
        )
    for row in record["rows"]:
        lacking = [key for key in ROW_KEYS if key not in row]
        if lacking:
            raise DataError(f"a row of {where} has no {lacking}: {sorted(row)}")


def _plain(value: Any) -> Any:
    """NumPy values as JSON knows them."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"cannot write {type(value).__name__} as JSON")
