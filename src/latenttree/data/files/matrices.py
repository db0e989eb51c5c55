"""Matrices with names beside or inside them: Matrix Market (.mtx) and AnnData (.h5ad)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from latenttree.data.files.boundary import reading
from latenttree.data.files.text import open_text

GENES = ("features.tsv.gz", "features.tsv", "genes.tsv.gz", "genes.tsv")
"""Names of the rows of a matrix of single cells, as 10x Genomics writes them beside it."""


class NamedMatrix(NamedTuple):
    """A sparse matrix or an array, samples in rows, and the names of its columns where they are
    known."""

    matrix: Any
    names: Sequence[str] | None


def market_matrix(path: Path) -> NamedMatrix:
    """The matrix of a .mtx. Names of its columns are in `NAME.columns.txt` beside it, one a line;
    or those of its rows in the file of features of 10x Genomics, where cells are columns: then it
    is turned round."""
    from scipy.io import mmread

    with reading(path):
        matrix = mmread(path)
    matrix = sparse.csr_array(matrix) if sparse.issparse(matrix) else np.asarray(matrix)
    name = path.name.removesuffix(".gz").removesuffix(".mtx")
    beside = path.with_name(f"{name}.columns.txt")
    if beside.is_file():
        return NamedMatrix(matrix, _lines(beside))
    genes = next((path.with_name(n) for n in GENES if path.with_name(n).is_file()), None)
    names = None if genes is None else _gene_names(genes)
    if names is None or len(names) != matrix.shape[0]:
        return NamedMatrix(matrix, None)
    turned = matrix.T
    return NamedMatrix(sparse.csr_array(turned) if sparse.issparse(turned) else turned, names)


def annotated_matrix(path: Path) -> NamedMatrix:
    """The matrix `X` of a .h5ad and the names of its variables."""
    try:
        import anndata
    except ImportError as error:
        remedy = 'run: pip install "latenttree[anndata]"'
        raise ImportError(f".h5ad needs anndata; {remedy}") from error
    with reading(path):
        found = anndata.read_h5ad(path)
        matrix = sparse.csr_array(found.X) if sparse.issparse(found.X) else np.asarray(found.X)
        return NamedMatrix(matrix, [str(name) for name in found.var_names])


def _lines(path: Path) -> list[str]:
    with open_text(path) as file:
        return [line.strip() for line in file if line.strip()]


def _gene_names(path: Path) -> list[str]:
    """The names of genes, their second column; the first where names repeat."""
    cells = [line.split("\t") for line in _lines(path)]
    names = [row[min(1, len(row) - 1)] for row in cells]
    return names if len(set(names)) == len(names) else [row[0] for row in cells]
