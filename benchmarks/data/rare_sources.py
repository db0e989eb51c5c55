"""Rare binary variables, and rare groups of codes, as the data of a row."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.bounds import Shape
from benchmarks.data.rare import RareTree, draw, make_rare_tree, zipf_frequencies
from benchmarks.data.simulated import keep_truth, kept_truth
from benchmarks.sources import Truth
from latenttree.evaluation.simulation import LatentTreeData
from latenttree.model.emissions import Emission, MultiHot
from latenttree.model.tree_model import TreeModel


@dataclass(frozen=True)
class RareCodes:
    """`p` binary variables by Zipf's law over a known tree, as a sparse binary CSR matrix.

    per_sample : ones of a sample, on average; shift : see `zipf_frequencies`.
    frequent : variables in at least this share of the samples are judged by themselves too.
    """

    p: int
    n_samples: int
    per_sample: float
    shift: float = 10.0
    frequent: float = 0.01
    with_oracle: bool = True
    prefix: ClassVar[str] = "code"

    def draw(self, folder: Path, seed: int) -> None:
        """Write samples and the truth."""
        rng = np.random.default_rng(seed)
        names = [f"{self.prefix}{i}" for i in range(self.p)]
        frequency = zipf_frequencies(self.p, self.per_sample, self.shift)
        model = make_rare_tree(frequency, names, rng)
        X, hidden = _sparse_binary(model, self.n_samples, rng, self.with_oracle)
        sparse.save_npz(folder / "X.npz", X, compressed=False)
        common = tuple(np.array(names)[frequency >= self.frequent].tolist())
        dense = X.toarray() if self.with_oracle else None
        keep_truth(folder, _known(model, dense, hidden, {}), common, self.with_oracle)

    def load(self, folder: Path) -> Any:
        """The table of the samples."""
        from latenttree.data import as_table

        names = [f"{self.prefix}{i}" for i in range(self.p)]
        return as_table(sparse.load_npz(folder / "X.npz"), names=names)

    def truth(self, folder: Path) -> Truth:
        """What is known about the data."""
        return kept_truth(folder)

    def shape(self, data: Any, n_states: int) -> Shape:
        """What the lower bound depends on."""
        X = data.rows(0, data.n_samples)
        return sparse_binary_shape(sparse.csr_array(X), n_states)


def sparse_binary_shape(X: Any, n_states: int) -> Shape:
    """Of a sparse binary CSR matrix."""
    present = np.diff(X.indptr).astype(np.float64)
    pairs = float((present * (present - 1) / 2).sum())
    n, p = X.shape
    return Shape(n, p, n_states - 1, 4.0 * X.nnz + 4.0 * p, pairs, is_binary=True)


def _sparse_binary(
    model: RareTree, n_samples: int, rng: np.random.Generator, with_hidden: bool
) -> tuple[Any, NDArray[np.uint8] | None]:
    """CSR (n, p) of ones, and the states of the hidden nodes where they are wanted."""
    p = model.tree.n_observed
    columns: list[Any] = [None] * p
    hidden = np.zeros((n_samples, model.tree.n_hidden), np.uint8) if with_hidden else None
    for node, present in draw(model, n_samples, rng):
        if node < p:
            columns[node] = present.astype(np.int32)
        elif hidden is not None:
            hidden[present, node - p] = 1
    starts = np.concatenate([[0], np.cumsum([len(column) for column in columns])])
    indices = np.concatenate(columns)
    del columns
    ones = np.ones(len(indices), dtype=np.uint8)
    shape = (n_samples, p)
    return sparse.csc_array((ones, indices, starts), shape=shape).tocsr(), hidden


def _known(model: RareTree, X: Any, hidden: Any, emissions: dict[int, Emission]) -> LatentTreeData:
    """The truth in the form that errors and the oracle take."""
    n_nodes, p = model.tree.n_nodes, model.tree.n_observed
    tables = []
    for v in range(n_nodes):
        f = float(model.frequency[v])
        whole = np.array([[1 - f], [f]]) if v == model.root else model.conditional(v)
        tables.append(np.ones((1, 2)) if v in emissions else whole)
    single = [
        np.ones(1) if v in emissions else np.array([1 - f, f])
        for v, f in enumerate(model.frequency.tolist())
    ]
    via = model.tree.parent_edges(model.root).tolist()
    conditionals: list[Any] = [None] * model.tree.n_edges
    for v, e in enumerate(via):
        if e >= 0:
            conditionals[e] = tables[v]
    families = tuple("multihot" if v in emissions else "categorical" for v in range(p))
    return LatentTreeData(
        model.tree,
        model.root,
        tuple(single),
        tuple(conditionals),
        X,
        np.empty((0, 0)) if hidden is None else hidden,
        families,
        emissions,
        TreeModel(model.tree, model.root, tuple(tables), emissions),
    )


# ---- groups --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class RareGroups:
    """`p` groups of 2 to `widest` codes over a known tree, as a CSR matrix with `groups`.

    A group is present or not, by Zipf's law; the codes within one too. What is present depends on
    the hidden neighbour, and so does which of the codes.
    """

    p: int
    n_samples: int
    per_sample: float
    widest: int = 31
    shift: float = 10.0
    codes_of_group: float = 0.7

    def draw(self, folder: Path, seed: int) -> None:
        """Write samples and the truth."""
        rng = np.random.default_rng(seed)
        names = [f"group{i}" for i in range(self.p)]
        frequency = zipf_frequencies(self.p, self.per_sample, self.shift)
        model = make_rare_tree(frequency, names, rng)
        widths = np.concatenate([[self.widest], rng.integers(2, self.widest + 1, self.p - 1)])
        emissions = {v: self._emission(model, v, int(widths[v]), rng) for v in range(self.p)}
        X, hidden = _grouped(model, emissions, self.n_samples, rng)
        sparse.save_npz(folder / "X.npz", X, compressed=False)
        np.save(folder / "widths.npy", widths)
        starts = np.concatenate([[0], np.cumsum(widths)])
        by_column = X.tocsc()
        blocks = {
            name: by_column[:, starts[v] : starts[v + 1]].tocsr() for v, name in enumerate(names)
        }
        keep_truth(folder, _known(model, blocks, hidden, dict(emissions)))

    def _emission(self, model: RareTree, v: int, width: int, rng: np.random.Generator) -> MultiHot:
        base = rng.permutation(1.0 / np.arange(1, width + 1))
        chances = self.codes_of_group * base[:, None] * rng.uniform(0.3, 1.7, (width, 2))
        chances *= self.codes_of_group / chances.sum(axis=0)
        none = 1 - np.array([model.low[v], model.high[v]])
        return MultiHot(none, np.minimum(chances, 0.9), "sparse")

    def load(self, folder: Path) -> Any:
        """The table of the samples."""
        from latenttree.data import as_table

        widths = np.load(folder / "widths.npy")
        groups = np.repeat([f"group{i}" for i in range(self.p)], widths)
        return as_table(sparse.load_npz(folder / "X.npz"), groups=groups)

    def truth(self, folder: Path) -> Truth:
        """What is known about the data."""
        return kept_truth(folder)

    def shape(self, data: Any, n_states: int) -> Shape:
        """A sample has to be counted for the pairs of groups that it has codes of."""
        n, pairs, n_bytes = data.n_samples, 0.0, 0.0
        step = 2**17
        for start in range(0, n, step):
            X = sparse.csr_array(data.rows(start, min(start + step, n)))
            is_code = ~np.isin(X.indices, data.offsets[:-1])  # the first says "none of them"
            group = np.searchsorted(data.offsets, X.indices[is_code], side="right") - 1
            rows = np.repeat(np.arange(X.shape[0]), np.diff(X.indptr))[is_code]
            held = np.bincount(np.unique(rows * self.p + group) // self.p).astype(np.float64)
            pairs += float((held * (held - 1) / 2).sum())
            n_bytes += 4.0 * len(group)
        written = 4.0 * float(data.offsets[-1]) * (n_states - 1)
        return Shape(n, self.p, n_states - 1, n_bytes + written, pairs)


def _grouped(
    model: RareTree, emissions: dict[int, MultiHot], n_samples: int, rng: np.random.Generator
) -> tuple[Any, NDArray[np.uint8]]:
    """CSR (n, sum of widths) of codes, and the states of the hidden nodes."""
    p = model.tree.n_observed
    starts = np.concatenate([[0], np.cumsum([len(emissions[v].codes) for v in range(p)])])
    hidden = np.zeros((n_samples, model.tree.n_hidden), np.uint8)
    rows, columns = [], []
    for node, present in draw(model, n_samples, rng):
        if node >= p:
            hidden[present, node - p] = 1
            continue
        states = hidden[present, int(model.parents[node]) - p]
        some = MultiHot(np.full(2, 1e-300), emissions[node].codes, "sparse")
        drawn = some.sample(states, rng).tocoo()
        rows.append(present[drawn.row].astype(np.int32))
        columns.append((drawn.col + starts[node]).astype(np.int32))
    at = (np.concatenate(rows), np.concatenate(columns))
    ones = np.ones(len(at[0]), dtype=np.uint8)
    return sparse.coo_array((ones, at), shape=(n_samples, int(starts[-1]))).tocsr(), hidden
