"""Tables and models that the tests of the commands share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.cli.commands import NAMES, bits, fit_file, words, write_csv


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "table.csv", NAMES, bits().tolist())


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that `fit` wrote, of the bits in words."""
    folder = tmp_path_factory.mktemp("model")
    return fit_file(write_csv(folder / "table.csv", NAMES, words(bits())))


@pytest.fixture
def gaps(tmp_path: Path) -> Path:
    """Forty samples with three cells in ten empty, the columns turned round."""
    rows = np.asarray(words(bits(40)), dtype=object)
    rows[np.random.default_rng(1).random(rows.shape) < 0.3] = ""
    return write_csv(tmp_path / "gaps.csv", NAMES[::-1], rows[:, ::-1].tolist())
