"""The example of a pass in docs/architecture.md runs as it stands there."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from latenttree.data import as_table
from latenttree.data.storage import Storage

DOCUMENT = Path(__file__).parents[2] / "docs" / "architecture.md"


@pytest.mark.parametrize("family", ["gaussian", "categorical"])
def test_the_pass_counts_known_values(family: str) -> None:
    match = re.search(r"```python\n(@dataclass.*?)```", DOCUMENT.read_text("utf-8"), re.DOTALL)
    assert match is not None
    X = np.random.default_rng(0).normal(size=(500, 4)).round()
    X[X > 1] = np.nan
    names = {
        "dataclass": dataclass,
        "np": np,
        "Storage": Storage,
        "table": as_table(X, family=family),
        "__name__": __name__,
    }
    exec(match[1].replace("table.run(", "total = table.run("), names)
    np.testing.assert_array_equal(names["total"], (~np.isnan(X)).sum(axis=0))
