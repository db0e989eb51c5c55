"""Models of observed variables alone, by counting: the Chow-Liu tree, and independent variables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals import Answer, Floats, Rival, Task, of_model
from latenttree.data import Table
from latenttree.evaluation.baselines import chow_liu
from latenttree.model.likelihood import maximise
from latenttree.model.samples import marginals
from latenttree.model.tree_model import TreeModel, default_root
from latenttree.tree import Tree

SMOOTHING = 1.0
"""Pseudo-samples for every state of a parent, spread as the child's marginal: as in our EM."""

HALF = 0.5
"""Pseudo-samples of every category of an independent variable (Krichevsky and Trofimov)."""

STRIP = 256


class ChowLiu(Rival):
    """The tree of largest mutual information (Chow and Liu 1968), tables by smoothed counting.

    All pairs are counted by the same routines as ours.
    """

    name = "Chow-Liu"

    def fit(self, task: Task) -> Answer:
        """Count, and keep the logarithms."""
        information = mutual_information(task.table, task.n_jobs)
        np.fill_diagonal(information, 0.0)
        np.maximum(information, 0.0, out=information)
        tree = chow_liu(information.max(initial=0.0) - information, task.table.names)
        return of_model(counted(tree, task.table), n_jobs=task.n_jobs)


class Independent(Rival):
    """Every variable by itself."""

    name = "independent"

    def fit(self, task: Task) -> Answer:
        """Count, and keep the logarithms."""
        n = task.table.n_samples
        logs = [np.log((n * m + HALF) / (n + HALF * len(m))) for m in marginals(task.table)]

        def of(table: Table) -> Floats:
            return independent_likelihoods(table, logs)

        return Answer(log_likelihood=of, n_parameters=int(sum(len(x) - 1 for x in logs)))


def independent_likelihoods(table: Table, logs: list[Floats]) -> Floats:
    """(n,) sums over variables of the logarithms of their categories' probabilities."""
    if table.kind == "sparse_binary":
        absent, present = np.array(logs).T
        found = table.rows(0, table.n_samples) @ (present - absent)
        return np.asarray(found, dtype=np.float64) + absent.sum()
    codes = table.chunk(0, table.n_samples).codes
    total = np.zeros(len(codes))
    for v, log in enumerate(logs):
        total += log[codes[:, v]]
    return total


# ---- pairs ---------------------------------------------------------------------------------------


def mutual_information(table: Table, n_jobs: int = 1) -> Floats:
    """(p, p) nats, from counts of all pairs of categories; the diagonal is the entropy."""
    if table.kind == "sparse_binary":
        return _of_sparse_binary(table, n_jobs)
    from latenttree.moments.contingency import contingency

    counts, starts, n = contingency(table, n_jobs), table.offsets[:-1], table.n_samples
    own = np.diag(counts).astype(np.float64)
    found = np.empty((table.n_vars, table.n_vars))
    for v, (a, b) in enumerate(zip(table.offsets[:-1], table.offsets[1:], strict=True)):
        cells = _information(counts[a:b].astype(np.float64), own[a:b, None], own, n)
        found[v] = np.add.reduceat(cells.sum(axis=0), starts)
    return found


def _of_sparse_binary(table: Table, n_jobs: int) -> Floats:
    """Of 0/1 variables the four cells follow from the count of both."""
    from latenttree.moments.cooccurrence import all_counts
    from latenttree.moments.packing import packed

    together, n = all_counts(packed(table, n_jobs), n_jobs), table.n_samples
    p, own = table.n_vars, np.diag(together).astype(np.float64)
    found = np.empty((p, p))
    for start in range(0, p, STRIP):
        both = together[start : start + STRIP].astype(np.float64)
        a = own[start : start + STRIP, None]
        strip = _information(both, a, own, n)
        strip += _information(a - both, a, n - own, n)
        strip += _information(own - both, n - a, own, n)
        strip += _information(n - a - own + both, n - a, n - own, n)
        found[start : start + STRIP] = strip
    return found


def _information(both: Floats, a: Floats, b: Floats, n: int) -> Floats:
    """`P(a, b) log P(a, b) / (P(a) P(b))` from counts; 0 where nothing was counted."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cells = both / n * np.log(both * n / (a * b))
    return np.asarray(np.where(both > 0, cells, 0.0))


def counted(tree: Tree, table: Table) -> TreeModel:
    """Tables of a tree without hidden nodes by smoothed counting along its edges."""
    root = default_root(tree)
    parents, own = tree.rooted(root).parents.tolist(), marginals(table)
    columns = _Columns(table)
    counts = [
        table.n_samples * own[v][:, None] if u < 0 else columns.pair(v, u)
        for v, u in enumerate(parents)
    ]
    bare = TreeModel(
        tree,
        root,
        tuple(np.tile(own[v][:, None], (1, 1 if u < 0 else len(own[u])))
              for v, u in enumerate(parents)),
    )  # fmt: skip
    return maximise(bare, tuple(counts), SMOOTHING, tuple(own))


class _Columns:
    """Counts of two variables of a table at a time."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.matrix = table.matrix.tocsc() if table.kind == "sparse_binary" else None  # type: ignore[union-attr]

    def pair(self, v: int, u: int) -> Floats:
        """(d_v, d_u) samples with each two categories."""
        n, dims = self.table.n_samples, self.table.dims
        if self.matrix is None:
            codes = self.table.chunk(0, n).codes
            joint = codes[:, v].astype(np.int64) * dims[u] + codes[:, u]
            size = int(dims[v] * dims[u])
            return np.bincount(joint, minlength=size).reshape(dims[v], dims[u]).astype(np.float64)
        a, b = self._samples(v), self._samples(u)
        both = len(np.intersect1d(a, b, assume_unique=True))
        return np.array(
            [[n - len(a) - len(b) + both, len(b) - both], [len(a) - both, both]], dtype=np.float64
        )

    def _samples(self, v: int) -> NDArray[np.int64]:
        matrix = self.matrix
        assert matrix is not None
        return np.asarray(matrix.indices[matrix.indptr[v] : matrix.indptr[v + 1]])


RIVALS = (ChowLiu(), Independent())
