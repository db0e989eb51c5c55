"""Large files in every format that is read, written block by block from a known tree or topics."""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.evaluation.datasets import LatentTreeData, make_latent_tree

BLOCK = 100_000
"""Rows drawn at once."""

Pairs = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class TreeRows:
    """`n` rows of `p` variables of a known balanced tree."""

    n: int
    p: int
    n_categories: int = 2

    def truth(self) -> LatentTreeData:
        """The tree and one block of its samples."""
        return make_latent_tree(
            self.p, 2, self.n_categories, edge_length=0.3, n_samples=min(self.n, BLOCK),
            random_state=0,
        )  # fmt: skip

    def blocks(self) -> Iterator[NDArray[np.int64]]:
        """Rows of one large sample again and again, a few of their values exchanged between rows,
        so that rows differ and the tree stays the same."""
        base = np.asarray(self.truth().X, dtype=np.int64)
        rng = np.random.default_rng(0)
        for start in range(0, self.n, BLOCK):
            size = min(BLOCK, self.n - start)
            rows, others = (base[rng.integers(0, len(base), size)] for _ in range(2))
            yield np.where(rng.random(rows.shape) < 0.02, others, rows)

    def pairs(self) -> Iterator[Pairs]:
        """Rows and columns of the ones, block by block."""
        for start, block in zip(range(0, self.n, BLOCK), self.blocks(), strict=True):
            rows, columns = np.nonzero(block)
            yield rows + start, columns


@dataclass(frozen=True)
class TopicWords:
    """`n` documents of 60 of `p` words, two fifths of which are of one of fifty topics."""

    n: int
    p: int
    length: int = 60

    def pairs(self) -> Iterator[Pairs]:
        """Documents and words, block by block, each pair once."""
        rng = np.random.default_rng(0)
        for start in range(0, self.n, BLOCK):
            shape = (min(BLOCK, self.n - start), self.length)
            topic = rng.integers(0, 50, shape[0])[:, None]
            own = rng.integers(0, self.p // 50, shape) * 50 + topic
            words = np.where(rng.random(shape) < 0.4, own, rng.integers(0, self.p, shape))
            documents = np.arange(start, start + shape[0])[:, None]
            yield np.divmod(np.unique(documents * self.p + words), self.p)


def write_npy(path: Path, rows: TreeRows, dtype: Any = np.uint8) -> None:
    """Categories as integers."""
    array = np.lib.format.open_memmap(path, "w+", dtype, (rows.n, rows.p))
    for start, block in zip(range(0, rows.n, BLOCK), rows.blocks(), strict=True):
        array[start : start + len(block)] = block


def write_floats(path: Path, rows: TreeRows) -> None:
    """Numbers around their category."""
    array = np.lib.format.open_memmap(path, "w+", np.float64, (rows.n, rows.p))
    rng = np.random.default_rng(1)
    for start, block in zip(range(0, rows.n, BLOCK), rows.blocks(), strict=True):
        array[start : start + len(block)] = 2.5 * block + rng.normal(size=block.shape)


def write_parquet(path: Path, rows: TreeRows) -> None:
    """A column of 64-bit integers a variable, as they are."""
    import pyarrow as pa
    from pyarrow import parquet

    names = [f"x{j}" for j in range(rows.p)]
    schema = pa.schema([(name, pa.int64()) for name in names])
    with parquet.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        for block in rows.blocks():
            writer.write_table(pa.table(dict(zip(names, block.T, strict=True)), schema=schema))


def write_csv(path: Path, rows: TreeRows) -> None:
    """With a line of names."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([f"x{j}" for j in range(rows.p)])
        for block in rows.blocks():
            writer.writerows(block.tolist())


def write_npz(path: Path, rows: TreeRows | TopicWords) -> None:
    """A sparse binary matrix."""
    parts = [np.concatenate(part) for part in zip(*rows.pairs(), strict=True)]
    ones = np.ones(len(parts[0]), np.float32)
    X = sparse.csr_array((ones, tuple(parts)), shape=(rows.n, rows.p))
    sparse.save_npz(path, X, compressed=False)


def write_docword(path: Path, rows: TreeRows | TopicWords) -> None:
    """Bags of words, compressed if the name says so; the vocabulary beside it."""
    entries = sum(len(words) for _, words in rows.pairs())
    opened = partial(gzip.open, compresslevel=1) if path.suffix == ".gz" else open
    with opened(path, "wb") as file:
        file.write(f"{rows.n}\n{rows.p}\n{entries}\n".encode())
        for documents, words in rows.pairs():
            np.savetxt(file, np.column_stack([documents + 1, words + 1, words * 0 + 1]), "%d")
    path.with_name("vocab.words.txt").write_text("\n".join(f"x{j}" for j in range(rows.p)))


def write_events(path: Path, rows: TreeRows | TopicWords) -> None:
    """Patient and code, in no order."""
    rng = np.random.default_rng(2)
    with path.open("w") as file:
        file.write("patient,code\n")
        for patients, codes in rows.pairs():
            far = patients * 7919 % rows.n  # neighbours are far apart
            pairs = np.column_stack([far, codes])
            np.savetxt(file, pairs[rng.permutation(len(pairs))], "%d,x%d")
