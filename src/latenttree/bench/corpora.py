"""Bags of words on disk, as the data of a row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from latenttree.bench.bounds import Shape
from latenttree.bench.rare_sources import presence_shape
from latenttree.bench.works import Truth
from latenttree.tree import Tree


@dataclass(frozen=True)
class Corpus:
    """Words as presence in documents; those in fewer than two documents are left out.

    top : the most frequent words only; words : whose neighbourhoods are kept, and stay whatever
    their frequency. documents : the first of them only.
    """

    path: Path
    vocabulary: Path | None = None
    top: int | None = None
    words: tuple[str, ...] = ()
    documents: int | None = None

    def draw(self, folder: Path, seed: int) -> None:
        """The file is there."""

    def load(self, folder: Path) -> Any:
        from latenttree.data import read_table

        options: dict[str, Any] = {}
        if self.vocabulary is not None:
            options["vocab"] = self.vocabulary
        table = read_table(self.path, min_support=2, **options)
        if self.documents is not None:
            table = table.subset_rows(slice(0, self.documents))
        if self.top is None or self.top >= table.n_vars:
            return table
        rows: Any = table.rows(0, table.n_samples)
        counts = np.asarray((rows > 0).sum(axis=0)).ravel()
        most = [table.names[i] for i in np.argsort(-counts, kind="stable")[: self.top]]
        return table.select(list(dict.fromkeys([*most, *self._there(table.names)])))

    def _there(self, names: tuple[str, ...]) -> list[str]:
        known = set(names)
        return [word for word in self.words if word in known]

    def truth(self, folder: Path) -> Truth | None:
        return None

    def shape(self, data: Any, n_states: int) -> Shape:
        return presence_shape(sparse.csr_array(data.rows(0, data.n_samples)), n_states)

    def describe(self, model: Any) -> dict[str, Any]:
        """Trees around the chosen words, and the largest families."""
        from latenttree.bench.trees import families, neighbourhood

        tree = model.tree_
        there = self._there(tree.observed_names)
        return {
            "n_words": tree.n_observed,
            "n_hidden": tree.n_hidden,
            "around": {word: _arrays(neighbourhood(tree, word)) for word in there},
            "families": families(tree),
        }


def _arrays(tree: Tree) -> dict[str, Any]:
    return {
        "names": list(tree.observed_names),
        "edges": tree.edges.tolist(),
        "lengths": tree.lengths.tolist(),
    }
