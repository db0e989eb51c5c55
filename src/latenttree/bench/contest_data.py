"""Data of a contest: samples to learn from, samples to be judged by, the truth where it is known.

`draw` runs in a process of its own and leaves files; `load` reads what everyone gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from latenttree.bench.works import Source
from latenttree.data import Table, as_table, read_table
from latenttree.data.table import presence_table
from latenttree.model.tree_model import TreeModel
from latenttree.tree import Tree

NAMES, TRAIN, TEST = "names.txt", "train.npz", "test.npz"


class Known(NamedTuple):
    """The truth."""

    tree: Tree
    model: TreeModel


class Halves(Protocol):
    """Data of a contest."""

    def draw(self, folder: Path, seed: int) -> None: ...

    def load(self, folder: Path) -> tuple[Table, Table]:
        """Samples to learn from, and samples to be judged by, of the same variables."""
        ...

    def truth(self, folder: Path) -> Known | None: ...


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
        self.source.draw(folder, seed)

    def load(self, folder: Path) -> tuple[Table, Table]:
        data: Any = self.source.load(folder)
        table = data if isinstance(data, Table) else as_table(data)
        n = table.n_samples - self.n_test
        return table.subset_rows(slice(0, n)), table.subset_rows(slice(n, table.n_samples))

    def truth(self, folder: Path) -> Known | None:
        truth = self.source.truth(folder)
        return None if truth is None else Known(truth.known.tree, truth.known.model)


@dataclass(frozen=True)
class Documents:
    """Presence of words in documents of a file; a share of the documents, at random, is held out.

    top : the most frequent words, counted in the documents to learn from, as everything is; those
        in fewer than two, or in all but fewer than two, are left out.
    documents : so many at random only.
    """

    path: Path
    vocabulary: Path | None = None
    top: int | None = None
    documents: int | None = None
    held_out: float = 0.1

    def draw(self, folder: Path, seed: int) -> None:
        table = read_documents(self.path, self.vocabulary)
        matrix = sparse.csr_array(table.rows(0, table.n_samples))
        order = np.random.default_rng(seed).permutation(matrix.shape[0])[: self.documents]
        n_test = max(1, round(self.held_out * len(order)))
        test, train = matrix[np.sort(order[:n_test])], matrix[np.sort(order[n_test:])]
        support = np.asarray((train > 0).sum(axis=0)).ravel()
        most = np.argsort(-support, kind="stable")
        kept = most[(support[most] >= 2) & (support[most] <= train.shape[0] - 2)][: self.top]
        for name, part in ((TRAIN, train), (TEST, test)):
            sparse.save_npz(folder / name, sparse.csr_array(part[:, kept]), compressed=False)
        (folder / NAMES).write_text("\n".join(table.names[v] for v in kept))

    def load(self, folder: Path) -> tuple[Table, Table]:
        names = (folder / NAMES).read_text().split("\n")
        train, test = (presence(sparse.load_npz(folder / name), names) for name in (TRAIN, TEST))
        return train, test

    def truth(self, folder: Path) -> Known | None:
        return None


def presence(matrix: Any, names: Sequence[str]) -> Table:
    """A table of words, also where a word is in no document of it."""
    found = sparse.csr_array(matrix, dtype=np.float32)
    found.sum_duplicates()
    found.eliminate_zeros()
    found.data[:] = 1
    return presence_table(names, found)


def read_documents(path: Path, vocabulary: Path | None) -> Table:
    """Bags of words as `read_table` knows them, or the postings of `20news_w100.mat`."""
    if path.suffix == ".mat":
        return _read_postings(path)
    return read_table(path) if vocabulary is None else read_table(path, vocab=vocabulary)


def _read_postings(path: Path) -> Table:
    """Postings x 100 words, 0 or 1."""
    from scipy.io import loadmat

    content = loadmat(path)
    found = sparse.csr_array(content["documents"])
    names = [str(np.asarray(word).item()) for word in content["wordlist"].ravel()]
    words = found.T if found.shape[0] == len(names) else found
    return presence(words, names)
