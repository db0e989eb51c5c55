"""The table in a file of each format, which is read part by part unless it may be held in memory.

Functions that `formats.FORMATS` lists: ``(path, options) -> Table``, and for new samples
``(path, names) -> samples``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.blocks import canonical_csr, counts_note
from latenttree.data.columns.builder import table_in_memory, table_of_scores
from latenttree.data.columns.families import AUTO, Family, requested_families
from latenttree.data.columns.groups import Groups
from latenttree.data.files.csv_cells import Roles
from latenttree.data.files.docword import Lines, entries, entry_blocks, word_names
from latenttree.data.files.fasta import read_fasta
from latenttree.data.files.matrices import NamedMatrix
from latenttree.data.files.npy import Npz, is_sparse
from latenttree.data.files.parquet import parquet_frame
from latenttree.data.files.sparse_npz import SparseFile, load_arrays, load_sparse
from latenttree.data.streaming.assemble import ReadPlan, streamed_table
from latenttree.data.streaming.pairs import PairCollector
from latenttree.data.streaming.scratch import ScratchFolder
from latenttree.data.streaming.sources import (
    RowSource,
    csv_source,
    npy_source,
    npz_source,
    parquet_source,
)
from latenttree.data.streaming.text_columns import LateText
from latenttree.data.table import Table, sparse_binary_table
from latenttree.errors import DataError, Option, Text


class ReadOptions(NamedTuple):
    """How `read_table` was asked to read a file; its own arguments, `plan` holds the others."""

    plan: ReadPlan
    groups: Groups | None = None
    min_count: int = 2
    delimiter: str = ","
    roles: Roles = Roles()


# ---- tables of named columns -------------------------------------------------------------


def read_csv(path: Path, options: ReadOptions) -> Table:
    """The table of a .csv."""
    plan = options.plan
    source = csv_source(path, options.delimiter, options.roles, plan.held)
    try:
        return table_of_source(source, plan)
    except LateText:
        if not plan.held:
            raise
        return table_of_source(source, plan._replace(max_distinct=sys.maxsize))


def read_parquet(path: Path, options: ReadOptions) -> Table:
    """The table of a .parquet."""
    if not options.plan.held:
        return table_of_source(parquet_source(path, options.roles), options.plan)
    return _of_frame(parquet_frame(path), options)


def frame_reader(frame: Callable[[Path], Any]) -> Callable[[Path, ReadOptions], Table]:
    """What reads the table of a file that is one pyarrow table in memory."""

    def read(path: Path, options: ReadOptions) -> Table:
        return _of_frame(frame(path), options)

    return read


def _of_frame(frame: Any, options: ReadOptions) -> Table:
    roles = options.roles
    others = roles.variables(frame.column_names)
    counts = None if roles.weights is None else frame.column(roles.weights).to_numpy()
    return _in_memory(frame.select(others), None, counts, options)


def _in_memory(X: Any, groups: Groups | None, weights: Any, options: ReadOptions) -> Table:
    """The table of what a file holds."""
    plan = options.plan
    arguments = {"names": plan.names, "drop_constant": plan.drop_constant, "family": plan.family}
    return table_in_memory(X, groups, weights, plan.scores, arguments)


def table_of_source(source: RowSource, plan: ReadPlan) -> Table:
    """The table of rows that come in parts."""
    return streamed_table(source.header, source.chunks(plan.chunk_bytes), plan, source.texts)


# ---- alignments --------------------------------------------------------------------------


def read_alignment(path: Path, options: ReadOptions) -> Table:
    """The table of a FASTA file, whose letters are categories."""
    family, scores = options.plan.family, options.plan.scores
    if family != AUTO or scores:
        requested = Option("scores", True) if scores else Option("family", family)
        raise DataError(
            f"the letters of {path.name} are categories",
            Text("leave out ", requested),
            value=requested.value,
            option=requested.name,
        )
    return read_fasta(path)


# ---- bags of words -----------------------------------------------------------------------


def read_docword(path: Path, options: ReadOptions) -> Table:
    """The table of a docword file."""
    lines, plan = Lines(path), options.plan
    sizes = n_docs, n_words, _ = lines.sizes()
    labels = word_names(path, plan.names, n_words)
    blocks = entry_blocks(lines, *sizes)
    table = _binary_table(blocks, n_docs, labels, options.min_count, plan)
    return table_of_scores(table) if plan.scores else table


# ---- NumPy and SciPy archives ------------------------------------------------------------


def read_npy(path: Path, options: ReadOptions) -> Table:
    """The table of a .npy."""
    if options.plan.held:
        return _in_memory(load_arrays(path), options.groups, None, options)
    return table_of_source(npy_source(path), options.plan)


def read_npz(path: Path, options: ReadOptions) -> Table:
    """The table of the only array, or the sparse matrix, of an .npz."""
    plan, archive = options.plan, Npz(path)
    binary = is_sparse(archive.names) and options.groups is None and not plan.scores
    if plan.held and not binary:
        return _in_memory(load_arrays(path), options.groups, None, options)
    if not binary:
        return table_of_source(npz_source(path, archive.only()), plan)
    file = SparseFile(path)
    check_shape(file.shape)
    names = resolve_names(plan.names, file.shape[1])
    blocks = file.positive_entries(names)
    if not file.streams:  # in memory, whose entries are pairs in order already
        matrix, plan = canonical_csr(load_sparse(archive), names), plan._replace(held=True)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        blocks = iter([(rows, matrix.indices)])
    return _binary_table(blocks, file.shape[0], names, options.min_count, plan)


# ---- matrices with names -----------------------------------------------------------------


def matrix_reader(load: Callable[[Path], NamedMatrix]) -> Callable[[Path, ReadOptions], Table]:
    """What reads the table of a file with a matrix: binary variables where it is sparse."""

    def read(path: Path, options: ReadOptions) -> Table:
        (matrix, own), plan = load(path), options.plan
        plan = plan._replace(names=own if plan.names is None else plan.names)
        if not sparse.issparse(matrix) or options.groups is not None or plan.scores:
            return _in_memory(matrix, options.groups, None, options._replace(plan=plan))
        check_shape(matrix.shape)
        names = resolve_names(plan.names, matrix.shape[1])
        ones = canonical_csr(matrix, names)
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(ones.indptr))
        pairs = iter([(rows, ones.indices)])
        table = _binary_table(pairs, matrix.shape[0], names, options.min_count, plan)
        notes = counts_note(ones) if plan.family == AUTO else ()
        return table.replace(notes=(*table.notes, *notes))

    return read


def matrix_samples(load: Callable[[Path], NamedMatrix]) -> Callable[[Path, list[str] | None], Any]:
    """What reads new samples from such a file."""

    def read(path: Path, names: list[str] | None) -> Any:
        matrix, own = load(path)
        return _named_samples(matrix, names if own is None else own)

    return read


# ---- sparse binary tables --------------------------------------------------------------


def _supported(support: NDArray[np.int64], n: int, min_count: int) -> tuple[NDArray[np.bool_], str]:
    """Which variables are in at least `min_count` samples but not in all; and a note about the
    others."""
    rare, everywhere = support < min_count, support == n
    keep = ~(rare | everywhere)
    if not keep.any():
        raise DataError(
            f"none of {len(keep)} variables is 1 in at least {min_count} of {n} samples "
            f"and 0 in one (the most frequent is in {support.max()})",
            Text("lower ", Option("min_count")),
            value=min_count,
            option="min_count",
        )
    return keep, (
        f"kept {keep.sum():,} of {len(keep):,} variables: {rare.sum():,} are 1 in fewer than "
        f"{min_count} samples, {(everywhere & ~rare).sum():,} in all"
    )


def _chosen(names: Sequence[str], keep: NDArray[np.bool_]) -> list[str]:
    return [name for name, kept in zip(names, keep, strict=True) if kept]


def _binary_table(
    blocks: Iterable[tuple[NDArray[Any], NDArray[Any]]],
    n: int,
    names: list[str],
    min_count: int,
    plan: ReadPlan,
) -> Table:
    """Sparse binary table of the columns with enough ones that are not one everywhere, from rows
    and columns of ones, which come in parts, in any order."""
    collector = PairCollector(ScratchFolder(plan.scratch, plan.held))
    for rows, columns in blocks:
        collector.add(rows, columns)
    pairs = collector.sorted(n, names)
    keep, note = _supported(pairs.support(), n, min_count)
    kept = _chosen(names, keep)
    _check_binary(plan.family, kept)
    if keep.all():
        return sparse_binary_table(names, pairs.matrix(plan.arrays()))
    matrix = pairs.limited(kept).matrix(plan.arrays())
    return sparse_binary_table(kept, matrix, dropped=tuple(_chosen(names, ~keep)), notes=(note,))


def _check_binary(family: Family, names: Sequence[str]) -> None:
    """Raise if another family is requested."""
    requested = requested_families(family, names)
    other = next((name for name in requested if name not in (AUTO, "binary", "categorical")), None)
    if other is not None:
        raise DataError(
            f"family {other!r}: this file is read as binary variables",
            "load the numbers with another library and pass them as a dense array",
            value=other,
            option="family",
        )


# ---- new samples -------------------------------------------------------------------------

# Of files whose columns are not named in a first line, for `Schema.rows`; they may be fewer, and
# vary less, than those that a model is learned from.


def samples_of_arrays(path: Path, names: list[str] | None) -> Table | dict[str, Any]:
    """The matrix of a .npy or .npz by the names of its columns."""
    return _named_samples(load_arrays(path), names)


def _named_samples(content: Any, names: Sequence[str] | None) -> Table | dict[str, Any]:
    """Samples of a matrix by the names of its columns."""
    check_shape(content.shape, 1)
    columns = resolve_names(names, content.shape[1])
    if sparse.issparse(content):
        return sparse_binary_table(columns, sparse.csr_array(content))
    return {name: content[:, j] for j, name in enumerate(columns)}


def samples_of_docword(path: Path, names: list[str] | None) -> Table:
    """The documents of a docword file."""
    lines = Lines(path)
    n_docs, n_words, n_entries = lines.sizes(1)
    words = word_names(path, names, n_words)
    docs, numbers = entries(lines, n_docs, n_words, n_entries)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs, numbers)), shape=(n_docs, n_words))
    return sparse_binary_table(words, matrix)


def samples_of_alignment(path: Path, names: list[str] | None) -> Table:
    """The sites of a FASTA file, which names its taxa itself."""
    return read_fasta(path, learning=False)
