"""New samples in files whose columns are not named in a first line, for `Schema.rows`.

A function for each format, which `formats.FORMATS` lists: ``(path, names) -> samples``. They may be
fewer, and vary less, than those that a model is learned from.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.files import docword
from latenttree.data.files.fasta import read_fasta
from latenttree.data.files.sparse_npz import load_arrays
from latenttree.data.table import Table, sparse_binary_table


def samples_of_arrays(path: Path, names: list[str] | None) -> Table | dict[str, Any]:
    """The matrix of a .npy or .npz by the names of its columns."""
    content = load_arrays(path)
    check_shape(content.shape, 1)
    columns = resolve_names(names, content.shape[1])
    if sparse.issparse(content):
        return sparse_binary_table(columns, sparse.csr_array(content))
    return {name: content[:, j] for j, name in enumerate(columns)}


def samples_of_docword(path: Path, names: list[str] | None) -> Table:
    """The documents of a docword file."""
    lines = docword.Lines(path)
    n_docs, n_words, n_entries = lines.sizes(1)
    words = docword.word_names(path, names, n_words)
    docs, entries = docword.entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs, entries)), shape=(n_docs, n_words))
    return sparse_binary_table(words, matrix)


def samples_of_alignment(path: Path, names: list[str] | None) -> Table:
    """The sites of a FASTA file, which names its taxa itself."""
    return read_fasta(path, learning=False)
