"""Data of a contest: samples to learn from, samples to be judged by, the truth where it is known.

`draw` runs in a process of its own and leaves files; `load` reads what everyone gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from benchmarks.sources import Source
from latenttree.data import Table, as_table
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree


class Known(NamedTuple):
    """The truth."""

    tree: Tree
    model: TreeModel


class Halves(Protocol):
    """Data of a contest."""

    def draw(self, folder: Path, seed: int) -> None:
        """Write the files."""
        ...

    def load(self, folder: Path) -> tuple[Table, Table]:
        """Samples to learn from, and samples to be judged by, of the same variables."""
        ...

    def truth(self, folder: Path) -> Known | None:
        """None where nobody knows it."""
        ...


def layers_of(tree: Tree) -> tuple[int, ...]:
    """Hidden nodes level by level: first those that are next to leaves only but for one neighbour,
    then those that are so when these are taken away, and so on; the centre is the last.

        leaves  l l l   l l l   l l l
                 \\|/     \\|/     \\|/
        layer 1   a       b       c           3
                    \\     |     /
        layer 2           h                   1
    """
    degree = np.array([len(tree.neighbors(v)) for v in range(tree.n_nodes)])
    left = np.ones(tree.n_nodes, dtype=bool)
    sizes: list[int] = []
    while left.any():
        outer = np.flatnonzero(left & (degree <= 1))
        left[outer] = False
        for v in outer.tolist():
            degree[tree.neighbors(v)] -= 1
        sizes.append(int((outer >= tree.n_observed).sum()))
    return tuple(size for size in sizes if size)


@dataclass(frozen=True)
class Simulated:
    """A source of simulated data; its last `n_test` samples are held out."""

    source: Source
    n_test: int

    def draw(self, folder: Path, seed: int) -> None:
        """Write the files of the source."""
        self.source.draw(folder, seed)

    def load(self, folder: Path) -> tuple[Table, Table]:
        """The samples, cut in two."""
        data: Any = self.source.load(folder)
        table = data if isinstance(data, Table) else as_table(data)
        n = table.n_samples - self.n_test
        return table.subset_rows(slice(0, n)), table.subset_rows(slice(n, table.n_samples))

    def truth(self, folder: Path) -> Known | None:
        """The true tree and model."""
        truth = self.source.truth(folder)
        return None if truth is None else Known(truth.known.tree, truth.known.model)
