"""`container_of`: the container of any input, and a `Table` as one."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from scipy import sparse

from latenttree.data.checks import option_error
from latenttree.data.columns.groups import Groups
from latenttree.data.columns.vectors import Column
from latenttree.data.containers.arrays import blocks_of, matrix_of
from latenttree.data.containers.frames import Frame, as_frame
from latenttree.data.containers.interface import Container
from latenttree.data.sparse_checks import check_sparse
from latenttree.data.table import Table
from latenttree.engine import THREADS
from latenttree.errors import DataError, Option, Text


def container_of(X: Any, groups: Groups | None = None) -> Container:
    """The container of an input, with its columns in groups where these are given."""
    _reject_unreadable(X)
    if isinstance(X, Table):
        return TableInput(X)
    X = _sparse_of_frame(X)
    if sparse.issparse(X):
        return matrix_of(X).grouped(groups)
    frame = as_frame(X)
    container = blocks_of(X) if frame is None else Frame(frame)
    if container is None:
        return matrix_of(X).grouped(groups)
    if groups is not None:
        what = f" is for a sparse or numeric matrix, got {type(X).__name__}"
        example = "{name: X[columns].to_numpy() for name, columns in groups.items()}"
        blocks = f" a dict with a block for each group, for example {example}"
        remedy = Text("pass a matrix, or without ", Option("groups"), blocks)
        raise option_error("groups", what, remedy, type(X).__name__)
    return container


def _sparse_of_frame(X: Any) -> Any:
    """The CSR of a pandas DataFrame whose columns are all sparse, with the names of its columns;
    any other input as it is."""
    if not hasattr(X, "iloc") or not hasattr(X, "columns") or not len(X.columns):
        return X
    if not all(hasattr(dtype, "fill_value") and dtype.fill_value == 0 for dtype in X.dtypes):
        return X
    names = as_frame(X[:0])  # raises where names are not usable
    assert names is not None
    matrix = sparse.csr_array(X.sparse.to_coo())
    matrix.feature_names = list(X.columns)
    return matrix


def _reject_unreadable(X: Any) -> None:
    """Raise for what is no table (None, paths, Dask) and for damaged sparse matrices."""
    if isinstance(X, str | bytes | os.PathLike):
        remedy = "pass a table, not a path (latenttree.data.read_table reads files)"
        raise DataError(f"X is {X!r}", remedy, value=X)
    if X is None:
        raise DataError("X is None", "pass a table: a DataFrame, an array or a sparse matrix")
    if type(X).__module__.split(".")[0] == "dask":
        what = f"Dask collections are not supported yet, got {type(X).__name__}"
        raise DataError(what, "call .compute() first", value=type(X).__name__)
    parts = X if isinstance(X, list | tuple) else [X]
    if isinstance(X, Mapping) and not sparse.issparse(X):  # SciPy's "dok" are dicts
        parts = list(X.values())
    for part in parts:
        if sparse.issparse(part):
            check_sparse(part)


class TableInput(Container):
    """A `Table` that is passed again; columns are labels, numbers or blocks."""

    def __init__(self, table: Table) -> None:
        super().__init__("table", "Table", (table.n_samples, table.n_vars), table.names)
        self.table = table
        here = table.engine is THREADS
        self.ones = table.matrix if here and table.kind == "sparse_binary" else None

    def column(self, j: int) -> Column:
        """Labels of a categorical variable, the numbers of another."""
        table, labels = self.table, self.table.categories[j]
        if table.values is not None and j in table.values.arrays:
            return Column(table.values.arrays[j])
        stored = table.codes if table.values is None else table.values.codes
        block: Any = None
        if table.matrix is not None:
            block = table.matrix[:, table.offsets[j] : table.offsets[j + 1]]
        if self.ones is not None:
            return Column(block.toarray().ravel())
        if block is not None and labels is None:
            return Column(block)
        if stored is not None:
            codes = stored[:, j]
        else:
            codes = np.full(table.n_samples, -1)  # labels of a block: it is one-hot
            codes[np.diff(block.indptr) > 0] = block.indices
        if labels is None:
            return Column(codes, codes < 0)
        levels = tuple(labels.tolist()) if table.families[j] == "ordinal" else None
        return Column(labels[codes], codes < 0, levels)

    def constant(self, j: int) -> None:
        """None: a table does not have the values of variables that were left out."""
