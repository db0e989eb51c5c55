"""Bags of words with their counts, which topic models of other kinds use."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.data.corpora import read_documents


class Counts(NamedTuple):
    """How often each word is in each document, `(n, p)`, and the words."""

    matrix: Any
    names: tuple[str, ...]

    def of(self, documents: Any, words: Any) -> Counts:
        """Some documents and words."""
        rows = sparse.csr_array(self.matrix[documents])
        return Counts(rows[:, words], tuple(self.names[v] for v in words))

    @property
    def presence(self) -> Any:
        """0 or 1: whether a word is in a document."""
        ones = sparse.csr_array(self.matrix, dtype=np.float32, copy=True)
        ones.data[:] = 1
        return ones


def read_counts(path: Path) -> Counts:
    """The counts in a file of `CORPORA`; of postings, which have none, presence."""
    if path.suffix == ".npz":
        names = path.with_name("vocab.txt").read_text().split()
        return Counts(sparse.csr_array(sparse.load_npz(path), dtype=np.float32), tuple(names))
    if path.suffix == ".gz":
        return _read_docword(path)
    table = read_documents(path)
    return Counts(sparse.csr_array(table.rows(0, table.n_samples)), table.names)


def _read_docword(path: Path) -> Counts:
    """The UCI format: three lines of sizes, then document, word, count from 1 on."""
    with gzip.open(path, "rt") as file:
        n, p, _ = (int(next(file)) for _ in range(3))
        document, word, count = np.loadtxt(file, dtype=np.int64, ndmin=2).T
    vocabulary = path.with_name(path.name.replace("docword", "vocab").removesuffix(".gz"))
    matrix = sparse.csr_array((count, (document - 1, word - 1)), shape=(n, p), dtype=np.float32)
    return Counts(matrix, tuple(vocabulary.read_text().split()))


def split(
    counts: Counts, n_words: int, seed: int, held_out: float, most: float, documents: int | None
) -> tuple[Counts, Counts]:
    """Documents to learn from, and a share that is held out, both at random, of the `n_words`
    words that are in most documents to learn from; words in more than the share `most` of these are
    left out, and so are those in fewer than two. At most `documents` in all."""
    order = np.random.default_rng(seed).permutation(counts.matrix.shape[0])[:documents]
    n_test = max(1, round(held_out * len(order)))
    test, train = np.sort(order[:n_test]), np.sort(order[n_test:])
    known = sparse.csr_array(counts.matrix[train])
    support = np.bincount(known.indices, minlength=known.shape[1])
    used = np.flatnonzero((support >= 2) & (support <= most * len(train)))
    words = used[np.argsort(-support[used], kind="stable")][:n_words]
    return counts.of(train, words), counts.of(test, words)
