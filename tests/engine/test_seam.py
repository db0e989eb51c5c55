"""Passes: totals merge, parts of a table are read by the same pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.reference.engines import Elsewhere

from latenttree.data import as_table
from latenttree.data.chunk import Chunk
from latenttree.data.subsets import halves
from latenttree.data.table import Table
from latenttree.engine import merged
from latenttree.model.samples import Samples


class Sums(NamedTuple):
    """Sums of codes, and the positions and codes of the samples."""

    first: NDArray[np.float64]
    rows: list[tuple[int, NDArray[Any]]]


@dataclass(frozen=True)
class CodeSums:
    """Sums of codes times weights times `factor`."""

    factor: float
    p: int

    def start(self) -> Sums:
        """Nothing."""
        return Sums(np.zeros(self.p), [])

    def add(self, total: Sums, chunk: Chunk, n_jobs: int) -> None:
        """Add a chunk."""
        weights = np.ones(len(chunk)) if chunk.weights is None else chunk.weights
        total.first[:] += self.factor * weights @ chunk.codes
        total.rows.append((chunk.start, chunk.codes))


def table_of(weighted: bool, engine: Any = None) -> Table:
    rng = np.random.default_rng(0)
    table = as_table(rng.integers(0, 3, (10_000, 4)))
    changes: dict[str, Any] = {} if engine is None else {"engine": engine}
    if weighted:
        changes["weights"] = np.floor(rng.uniform(1, 4, 10_000))
    return table.replace(**changes)


@pytest.mark.parametrize("weighted", [False, True])
def test_another_engine_gives_the_same_sums_of_every_part(weighted: bool) -> None:
    pass_, keep = CodeSums(2.0, 4), np.arange(10_000) % 3 > 0
    new = np.arange(10_000.0) if weighted else None
    found = []
    for engine in (None, Elsewhere()):
        table = table_of(weighted, engine)
        parts = [table, *halves(table), Samples(table), Samples(table, keep, new)]
        parts.append(Samples(halves(table)[0], np.arange(halves(table)[0].n_samples) % 2 > 0))
        found.append([part.run(pass_) for part in parts])
    for here, there in zip(*found, strict=True):
        np.testing.assert_array_equal(here.first, there.first)
        for sums in (here, there):
            ends = np.cumsum([0] + [len(rows) for _, rows in sums.rows])
            assert [start for start, _ in sums.rows] == ends[:-1].tolist()
        one, two = (np.concatenate([rows for _, rows in sums.rows]) for sums in (here, there))
        np.testing.assert_array_equal(one, two)


def test_totals_of_nested_arrays_add() -> None:
    def nested() -> Any:
        return {"a": (np.ones(2), [1]), "b": None}

    total, other = nested(), {**nested(), "c": np.ones(1)}
    merged(CodeSums(1.0, 1), total, other)
    np.testing.assert_array_equal(total["a"][0], [2, 2])
    assert total["a"][1] == [1, 1]
    assert total["c"] == [1]
    with pytest.raises(TypeError, match="float do not add"):
        merged(CodeSums(1.0, 1), 1.0, 2.0)  # type: ignore[arg-type]
