"""Answers to 25 items, and the five factors that the items are meant to measure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FILES = ("bfi25/bfi.csv.gz", "bfi25/bfi_keys.json")


def read_questionnaire(answers: Path, keys: Path) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    """The items `(2800, 25)` and the items of each factor, without the signs of their keys."""
    import pandas as pd

    factors = {
        factor: [item.lstrip("-") for item in items]
        for factor, items in json.loads(keys.read_text()).items()
    }
    items = [item for members in factors.values() for item in members]
    return pd.read_csv(answers)[items], factors
