"""Files to a `Table`: .csv, .parquet, .npy, .npz, .fasta, and the UCI docword.NAME.txt[.gz].

A file that fits in memory is read at once. A larger one is read part by part, to the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_shape, resolve_names
from latenttree.data.columns.blocks import Groups, canonical_csr
from latenttree.data.columns.builder import table_in_memory, table_of_scores
from latenttree.data.columns.families import AUTO, Family, requested_families
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_cells import Roles
from latenttree.data.files.csv_table import read_csv
from latenttree.data.files.docword import (
    DOCWORD,
    Lines,
    entries,
    entry_blocks,
    read_vocabulary,
    word_names,
)
from latenttree.data.files.fasta import is_fasta, read_fasta
from latenttree.data.files.npy import Npz, is_sparse
from latenttree.data.files.parquet import parquet_frame
from latenttree.data.files.sizes import memory_needed
from latenttree.data.files.sparse_npz import SparseFile, load_arrays, load_sparse
from latenttree.data.files.text import check_file, suffix_of
from latenttree.data.streaming.assemble import ReadPlan, streamed_table
from latenttree.data.streaming.pairs import DiskPairCollector
from latenttree.data.streaming.scratch import ScratchFolder
from latenttree.data.streaming.sources import (
    Source,
    array_source,
    csv_source,
    npy_source,
    npz_source,
    parquet_source,
    with_weights,
)
from latenttree.data.table import Table, sparse_binary_table
from latenttree.data.weights import checked_numbers
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError, Option, Text

KNOWN = (
    ".csv, .parquet, .npy, .npz, docword.NAME.txt, .fasta (also .csv.gz, docword.NAME.txt.gz, ...)"
)


def read_table(
    path: str | Path,
    *,
    vocab: str | Path | None = None,
    min_count: int = 2,
    groups: Groups | None = None,
    names: Sequence[Any] | None = None,
    drop_constant: bool = False,
    delimiter: str = ",",
    family: Family = AUTO,
    scores: bool = False,
    weights: str | None = None,
    ignore: Sequence[str] = (),
    memory_limit: Any = None,
    scratch: str | Path | None = None,
) -> Table:
    """The table in a file; its name says what it is.

    - ``.csv``, also ``.csv.gz`` and ``.csv.xz``: a line of names, then a line for each sample.
      Columns of integers and of text are categorical, columns with decimals real; integers that
      differ in leading zeros alone ("01" and "1") are text, and two labels. Empty cells, NA, N/A,
      NaN, null, None and ? are missing values.
    - ``.parquet``: columns as those of a DataFrame.
    - ``.npz``: a SciPy sparse matrix (`scipy.sparse.save_npz`) or a single 2-D array;
      ``.npy``: a 2-D array.
    - ``docword.NAME.txt[.gz]``: lines D, W, NNZ, then "document word count", numbered from
      1; a word is 1 where its count is positive. Names come from ``vocab.NAME.txt`` beside it.
    - ``.fasta``, ``.fa``, ``.fas``: an alignment, see `read_fasta`.

    Parameters
    ----------
    vocab : file with a name on each line, for docword, .npy and .npz.
    min_count : of a sparse binary table keep the variables that are 1 in at least this many
        samples, and 0 in at least one; `Table.dropped` has the names of the others and
        `Table.notes` says how many.
    groups, names, drop_constant, family, scores : as in `as_table`. A docword file, and a sparse
        matrix without groups, are binary whatever their counts.
    delimiter : between the cells of a .csv.
    weights : name of the column of a .csv or .parquet that says how often each row counts.
    ignore : columns of a .csv or .parquet that are no variables: identifiers, dates.
    memory_limit : bytes that the process may hold, or text like "500MB" or "8GiB"; most of the
        memory that is free if None. A file that would take more is read part by part: what is known
        of it first is its different values, then it is coded. Where the coded table takes more than
        a quarter of what is left, it lies in a scratch file that is mapped, and goes when the table
        does. The table is
        the same, to the last bit (with weights: if they are whole numbers). The different values
        of columns that are no decimal numbers are held in memory, and alignments, `groups` and
        `scores` are read at once whatever the limit.
    scratch : folder of scratch files; that of the system for temporary files if None.

    Raises
    ------
    DataError : whatever is wrong with the file, with its name. What a file declares about its size
        is compared with what it holds before anything is allocated.
    """
    path = Path(path)
    check_file(path)
    if min_count < 1:
        raise DataError(
            Text(Option("min_count"), f" must be >= 1, got {min_count}"),
            value=min_count,
            option="min_count",
        )
    if vocab is not None:
        if names is not None:
            raise DataError(
                Text(Option("vocab"), " and ", Option("names"), " both give names"),
                "pass one of them",
                option="names",
            )
        names = read_vocabulary(Path(vocab))
    plan = ReadPlan(memory_bytes(memory_limit), names, family, drop_constant, scratch)
    roles = Roles(weights, ignore)
    with reading(path), roles.naming_weights():
        return _read_file(path, plan, groups, min_count, delimiter, scores, roles)


def _read_file(
    path: Path,
    plan: ReadPlan,
    groups: Groups | None,
    min_count: int,
    delimiter: str,
    scores: bool,
    roles: Roles,
) -> Table:
    suffix, names, family = suffix_of(path), plan.names, plan.family
    large = memory_needed(path) > room_for_reading(plan.limit) and groups is None and not scores
    options = {"drop_constant": plan.drop_constant, "family": family, "scores": scores}
    if DOCWORD.search(path.name):
        table = _read_docword(path, names, min_count, plan if large else None)
        return _binary_table(table, family, scores)
    for option, given in roles._asdict().items():
        if given and suffix not in (".csv", ".parquet"):
            raise DataError(
                Text(
                    Option(option),
                    f" names a column of a .csv or .parquet, but the file is {path.name!r}",
                ),
                "leave it out",
                value=given,
                path=str(path),
                option=option,
            )
    if is_fasta(path):
        return _alignment(path, family, scores)
    if large and suffix in (".csv", ".parquet", ".npy", ".npz"):
        return _read_parts(path, plan, min_count, delimiter, roles)
    if suffix == ".csv":
        return read_csv(path, names, delimiter, options, roles)
    if suffix == ".parquet":
        return _read_parquet(path, names, options, roles)
    if suffix in (".npy", ".npz"):
        return _read_arrays(path, groups, names, min_count, options)
    raise DataError(f"do not know how to read {path.name!r}", f"known are {KNOWN}", path=str(path))


# --- sparse binary tables -----------------------------------------------------------------


def supported_binary_table(matrix: sparse.csr_array, names: list[str], min_count: int) -> Table:
    """Sparse binary table of the columns with enough ones that are not one everywhere."""
    n, p = matrix.shape
    keep, note = _supported(np.bincount(matrix.indices, minlength=p), n, min_count)
    if keep.all():
        return sparse_binary_table(names, matrix)
    kept = sparse.csr_array(matrix[:, np.flatnonzero(keep)])
    kept.sort_indices()
    return sparse_binary_table(
        _chosen(names, keep), kept, dropped=tuple(_chosen(names, ~keep)), notes=(note,)
    )


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


def _streamed_binary_table(
    blocks: Iterable[tuple[NDArray[Any], NDArray[Any]]],
    n: int,
    names: list[str],
    min_count: int,
    plan: ReadPlan,
) -> Table:
    """The same from rows and columns that come in parts, in any order."""
    collector = DiskPairCollector(ScratchFolder(plan.scratch))
    for rows, columns in blocks:
        collector.add(rows, columns)
    pairs = collector.sorted(n, names)
    keep, note = _supported(pairs.support(), n, min_count)
    if keep.all():
        return sparse_binary_table(names, pairs.matrix(plan.arrays()))
    kept = _chosen(names, keep)
    matrix = pairs.limited(kept).matrix(plan.arrays())
    return sparse_binary_table(kept, matrix, dropped=tuple(_chosen(names, ~keep)), notes=(note,))


def _binary_table(table: Table, family: Family, scores: bool) -> Table:
    """A sparse binary table, or its scores; raises if another family is requested."""
    requested = requested_families(family, table.names)
    other = next((name for name in requested if name not in (AUTO, "binary", "categorical")), None)
    if other is not None:
        raise DataError(
            f"family {other!r}: this file is read as binary variables",
            "load the numbers with another library and pass them as a dense array",
            value=other,
            option="family",
        )
    return table_of_scores(table) if scores else table


def _alignment(path: Path, family: Family, scores: bool) -> Table:
    if family != AUTO or scores:
        requested = Option("scores", True) if scores else Option("family", family)
        raise DataError(
            f"the letters of {path.name} are categories",
            Text("leave out ", requested),
            value=requested.value,
            path=str(path),
            option=requested.name,
        )
    return read_fasta(path)


def _read_docword(
    path: Path, names: Sequence[Any] | None, min_count: int, plan: ReadPlan | None
) -> Table:
    """A docword file; in parts if there is a plan."""
    lines = Lines(path)
    sizes = n_docs, n_words, _ = lines.sizes()
    labels = word_names(path, names, n_words)
    if plan is not None:
        return _streamed_binary_table(entry_blocks(lines, *sizes), n_docs, labels, min_count, plan)
    docs, words = entries(lines, *sizes)
    ones = np.ones(len(docs), dtype=np.float32)
    matrix = sparse.csr_array((ones, (docs, words)), shape=(n_docs, n_words))
    matrix.data[:] = 1  # a pair that the file lists twice was summed
    matrix.sort_indices()
    return supported_binary_table(matrix, labels, min_count)


# --- NumPy and SciPy archives --------------------------------------------------------


def _read_arrays(
    path: Path,
    groups: Groups | None,
    names: Sequence[Any] | None,
    min_count: int,
    options: Mapping[str, Any],
) -> Table:
    content = load_arrays(path)
    if not sparse.issparse(content) or groups is not None or options["scores"]:
        return _in_memory(content, groups, names, None, options)
    check_shape(content.shape)
    labels = resolve_names(names, content.shape[1])
    return _of_matrix(content, labels, min_count, options["family"])


def _of_matrix(content: Any, names: list[str], min_count: int, family: Family) -> Table:
    counts = canonical_csr(content, names)
    ones = np.ones(counts.nnz, dtype=np.float32)
    matrix = sparse.csr_array((ones, counts.indices, counts.indptr), shape=counts.shape)
    return _binary_table(supported_binary_table(matrix, names, min_count), family, False)


# --- DataFrames in files -------------------------------------------------------------


def _read_parquet(
    path: Path, names: Sequence[Any] | None, options: Mapping[str, Any], roles: Roles
) -> Table:
    frame = parquet_frame(path)
    others = roles.variables(frame.column_names)
    counts = None if roles.weights is None else frame.column(roles.weights).to_numpy()
    return _in_memory(frame.select(others), None, names, counts, options)


def _in_memory(
    X: Any,
    groups: Groups | None,
    names: Sequence[Any] | None,
    weights: Any,
    options: Mapping[str, Any],
) -> Table:
    """The table of what a file holds; `options` are those of `as_table` besides."""
    others = {name: value for name, value in options.items() if name != "scores"}
    return table_in_memory(X, groups, weights, options["scores"], {"names": names} | others)


# --- part by part --------------------------------------------------------------------


def mapped_table(
    X: NDArray[Any], names: Sequence[Any] | None, sample_weight: Any, plan: ReadPlan
) -> Table:
    """The table of an array in a mapped file, read in parts."""
    weights = None if sample_weight is None else checked_numbers(sample_weight, len(X))
    return _streamed(with_weights(array_source(X, names), weights), plan)


def _read_parts(path: Path, plan: ReadPlan, min_count: int, delimiter: str, roles: Roles) -> Table:
    suffix = suffix_of(path)
    if suffix == ".csv":
        return _streamed(csv_source(path, delimiter, roles), plan)
    if suffix == ".parquet":
        return _streamed(parquet_source(path, roles), plan)
    if suffix == ".npy":
        return _streamed(npy_source(path), plan)
    return _archive_parts(path, plan, min_count)


def _streamed(source: Source, plan: ReadPlan) -> Table:
    return streamed_table(source.header, source.chunks(plan.chunk_bytes), plan, source.texts)


def _archive_parts(path: Path, plan: ReadPlan, min_count: int) -> Table:
    archive = Npz(path)
    if not is_sparse(archive.names):
        return _streamed(npz_source(path, archive.only()), plan)
    file = SparseFile(path)
    check_shape(file.shape)
    names = resolve_names(plan.names, file.shape[1])
    if not file.streams:
        return _of_matrix(load_sparse(archive), names, min_count, plan.family)
    table = _streamed_binary_table(
        file.positive_entries(names), file.shape[0], names, min_count, plan
    )
    return _binary_table(table, plan.family, False)
