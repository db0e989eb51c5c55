"""Bags of words on disk: as the data of a row, and cut into documents to learn from and to judge
by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.bounds import Shape
from benchmarks.data.halves import Known
from benchmarks.data.rare_sources import sparse_binary_shape
from benchmarks.sources import Truth
from benchmarks.trees import arrays_of, families, nearest, neighbourhood
from latenttree.data import Table, read_table
from latenttree.data.table import sparse_binary_table

NAMES, TRAIN, TEST = "names.txt", "train.npz", "test.npz"


class CorpusFile(NamedTuple):
    """What a corpus is called, and its file in the folder of real data."""

    title: str
    file: str


CORPORA = {
    "news20": CorpusFile("20 Newsgroups", "news20/20news_w100.mat"),
    "nips": CorpusFile("NIPS", "nips/docword.nips.txt.gz"),
    "nytimes": CorpusFile("NY Times", "nytimes/counts.npz"),
}


def read_documents(path: Path, **options: Any) -> Table:
    """Bags of words as `read_table` knows them (of an .npz file with vocab.txt beside it), or the
    postings of `20news_w100.mat`."""
    if path.suffix == ".mat":
        return _read_postings(path)
    if path.suffix == ".npz":
        options["vocab"] = path.with_name("vocab.txt")
    return read_table(path, **options)


def _read_postings(path: Path) -> Table:
    """Postings x 100 words, 0 or 1."""
    from scipy.io import loadmat

    content = loadmat(path)
    documents = sparse.csr_array(content["documents"])
    names = [str(np.asarray(word).item()) for word in content["wordlist"].ravel()]
    return as_sparse_binary(documents.T if documents.shape[0] == len(names) else documents, names)


def as_sparse_binary(matrix: Any, names: Sequence[str]) -> Table:
    """A table of words, also where a word is in no document of it."""
    ones = sparse.csr_array(matrix, dtype=np.float32)
    ones.sum_duplicates()
    ones.eliminate_zeros()
    ones.data[:] = 1
    return sparse_binary_table(names, ones)


def by_support(matrix: Any) -> tuple[Any, Any]:
    """Columns from the most to the least frequent, and the samples that each is in."""
    support = np.asarray((matrix > 0).sum(axis=0)).ravel()
    return np.argsort(-support, kind="stable"), support


@dataclass(frozen=True)
class Corpus:
    """Words as presence in documents; those in fewer than two documents are left out.

    top : the most frequent words only; words : whose neighbourhoods are kept, and stay whatever
    their frequency. documents : the first of them only.
    """

    name: str
    path: Path
    top: int | None = None
    words: tuple[str, ...] = ()
    documents: int | None = None

    def draw(self, folder: Path, seed: int) -> None:
        """The file is there."""

    def load(self, folder: Path) -> Table:
        """The table of the chosen words and documents."""
        table = read_documents(self.path, min_count=2)
        if self.documents is not None:
            table = table.subset_rows(slice(0, self.documents))
        if self.top is None or self.top >= table.n_vars:
            return table
        order, _ = by_support(table.rows(0, table.n_samples))
        most = [table.names[i] for i in order[: self.top]]
        return table.select(list(dict.fromkeys([*most, *self._known(table.names)])))

    def _known(self, names: tuple[str, ...]) -> list[str]:
        known = set(names)
        return [word for word in self.words if word in known]

    def truth(self, folder: Path) -> Truth | None:
        """Nobody knows it."""
        return None

    def shape(self, data: Table, n_states: int) -> Shape:
        """What the lower bound depends on."""
        return sparse_binary_shape(sparse.csr_array(data.rows(0, data.n_samples)), n_states)

    def describe(self, model: Any) -> dict[str, Any]:
        """Trees around the chosen words, the words nearest to them, and the largest families."""
        tree, support = model.tree_, model.diagnostics_.support
        known = self._known(tree.observed_names)
        return {
            "n_words": tree.n_observed,
            "n_hidden": tree.n_hidden,
            "around": {word: arrays_of(neighbourhood(tree, word)) for word in known},
            "nearest": {word: nearest(tree, support, word) for word in known},
            "families": families(tree),
        }


@dataclass(frozen=True)
class Documents:
    """Presence of words in documents of a file; a share of the documents, at random, is held out.

    top : the most frequent words, counted in the documents to learn from, as everything is; those
        in fewer than two, or in all but fewer than two, are left out.
    documents : so many at random only.
    """

    path: Path
    top: int | None = None
    documents: int | None = None
    held_out: float = 0.1

    def draw(self, folder: Path, seed: int) -> None:
        """Write both halves."""
        table = read_documents(self.path)
        matrix = sparse.csr_array(table.rows(0, table.n_samples))
        order = np.random.default_rng(seed).permutation(matrix.shape[0])[: self.documents]
        n_test = max(1, round(self.held_out * len(order)))
        test, train = matrix[np.sort(order[:n_test])], matrix[np.sort(order[n_test:])]
        most, support = by_support(train)
        kept = most[(support[most] >= 2) & (support[most] <= train.shape[0] - 2)][: self.top]
        for name, part in ((TRAIN, train), (TEST, test)):
            sparse.save_npz(folder / name, sparse.csr_array(part[:, kept]), compressed=False)
        (folder / NAMES).write_text("\n".join(table.names[v] for v in kept))

    def load(self, folder: Path) -> tuple[Table, Table]:
        """Documents to learn from, and documents that were held out."""
        names = (folder / NAMES).read_text().split("\n")
        train, test = (
            as_sparse_binary(sparse.load_npz(folder / name), names) for name in (TRAIN, TEST)
        )
        return train, test

    def truth(self, folder: Path) -> Known | None:
        """Nobody knows it."""
        return None
