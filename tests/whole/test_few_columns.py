"""Tables of hardly any columns or rows, each as the first fit of a process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import latenttree as lt
from latenttree.engine import pools
from latenttree.errors import DataError

RNG = np.random.default_rng(0)
COIN = RNG.integers(0, 2, (100, 1))
BITS = RNG.integers(0, 2, (100, 6))


@pytest.fixture(autouse=True)
def _no_threads_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_shared", pools._Shared())


TABLES = {
    "one column": (COIN, {}),
    "two columns": (BITS[:, :2], {}),
    "two equal columns": (np.hstack([COIN, COIN]), {}),
    "five equal columns": (np.hstack([COIN] * 5), {}),
    "no hidden node": (BITS, {"structure": "chow_liu"}),
    "one column that varies": (np.hstack([COIN, 0 * BITS]), {"drop_constant": True}),
    "a column that is missing": (
        np.hstack([BITS[:, :2], np.full((100, 1), np.nan)]),
        {"drop_constant": True},
    ),
    "two rows": (np.array([[0, 1, 0], [1, 0, 1]]), {}),
    "two rows of one column": (np.array([[0], [1]]), {}),
    "one Gaussian": (RNG.standard_normal((100, 1)), {"hidden": "gaussian"}),
    "two Gaussians": (RNG.standard_normal((100, 2)), {"hidden": "gaussian"}),
}


@pytest.mark.parametrize("which", TABLES)
def test_small_tables_are_fitted_and_used(which: str) -> None:
    table, options = TABLES[which]
    model = lt.LatentTree(n_jobs=2, **options).fit(table)
    pools._shared = pools._Shared()
    assert np.isfinite(model.score(table))
    pools._shared = pools._Shared()
    assert len(model.transform(table)) == len(table)


@pytest.mark.parametrize("p", [1, 2])
def test_quantities_without_a_hidden_variable_have_a_tree_alone(p: int) -> None:
    rng = np.random.default_rng(0)
    model = lt.LatentTree(n_jobs=2).fit(rng.standard_normal((100, p)))
    assert model.tree_.n_nodes == p
    assert any("no model" in note for note in model.diagnostics_.messages)


def test_rows_of_weight_zero_do_not_count() -> None:
    weights = np.concatenate([np.zeros(50), np.ones(50)])
    model = lt.LatentTree(n_jobs=2).fit(BITS[:, :2], sample_weight=weights)
    alone = lt.LatentTree(n_jobs=2).fit(BITS[50:, :2])
    assert model.score(BITS[50:, :2]) == pytest.approx(alone.score(BITS[50:, :2]), rel=1e-6)


@pytest.mark.parametrize(
    ("table", "weights", "message"),
    [
        (BITS[:1], None, "1 sample"),
        (BITS[:0], None, "0 sample"),
        (np.zeros((50, 3), dtype=int), None, "constant"),
        (np.full((50, 3), np.nan), None, "missing"),
        (BITS, np.zeros(100), "zero"),
    ],
)
def test_tables_of_nothing_are_refused(
    table: np.ndarray, weights: np.ndarray | None, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        lt.LatentTree(n_jobs=2).fit(table, sample_weight=weights)


@pytest.mark.slow
def test_a_table_of_two_columns_on_the_command_line(tmp_path: Path) -> None:
    rows = "\n".join(f"{a},{b}" for a, b in BITS[:, :2].tolist())
    (tmp_path / "two.csv").write_text(f"a,b\n{rows}\n")
    command = [sys.executable, "-m", "latenttree.cli", "fit", "two.csv", "-o", "two.ltree"]
    environment = os.environ | {"PYTHONPATH": str(Path(lt.__file__).parents[1])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    assert "2 observed variables" in done.stdout
