"""Files to a `Table`: .csv, .parquet, .npy, .npz, .fasta, and the UCI docword.NAME.txt[.gz].

A file that fits in memory is read at once. A larger one is read part by part, to the same table.
`files.formats` lists the formats and how each is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from latenttree.data.checks import option_error
from latenttree.data.columns.families import AUTO, Family
from latenttree.data.columns.groups import Groups
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_cells import Roles
from latenttree.data.files.docword import read_vocabulary
from latenttree.data.files.formats import (
    COLUMN_FILES,
    cell_delimiter,
    known_format,
    memory_needed,
)
from latenttree.data.files.standard_input import stored
from latenttree.data.files.tables import ReadOptions, table_of_source
from latenttree.data.files.text import check_file
from latenttree.data.streaming.assemble import ReadPlan
from latenttree.data.streaming.sources import array_source, with_weights
from latenttree.data.table import Table
from latenttree.data.weights import checked_numbers
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError, Option, Text


def read_table(
    path: str | Path,
    *,
    vocab: str | Path | None = None,
    min_count: int = 2,
    groups: Groups | None = None,
    names: Sequence[Any] | None = None,
    drop_constant: bool = False,
    delimiter: str | None = None,
    family: Family = AUTO,
    scores: bool = False,
    weights: str | None = None,
    ignore: Sequence[str] = (),
    memory_limit: Any = None,
    scratch: str | Path | None = None,
) -> Table:
    """The table in a file; its name says what it is.

    - ``.csv`` and ``.tsv``, also ``.csv.gz`` and ``.csv.xz``: a line of names, then a line for
      each sample. Columns of integers and of text are categorical, few evenly spaced whole
      numbers ordinal (see `data.columns.scales`), columns with decimals real; True and False (or
      true, TRUE, ...)
      are booleans; integers that differ in leading zeros alone ("01" and "1") are text, and two
      labels. Empty cells, NA, N/A, NaN, null, None and ? are
      missing values.
    - ``.parquet``, ``.feather`` and ``.arrow``, and the first sheet of an ``.xlsx``: columns as
      those of a DataFrame.
    - ``.npz``: a SciPy sparse matrix (`scipy.sparse.save_npz`) or a single 2-D array;
      ``.npy``: a 2-D array.
    - ``docword.NAME.txt[.gz]``: lines D, W, NNZ, then "document word count", numbered from
      1; a word is 1 where its count is positive. Names come from ``vocab.NAME.txt`` beside it.
    - ``.mtx``: a matrix of Matrix Market, names of its columns in ``NAME.columns.txt`` beside it,
      or in the file of features of 10x Genomics; ``.h5ad``: the matrix of an AnnData.
    - ``.fasta``, ``.fa``, ``.fas``: an alignment, see `read_fasta`.
    - ``-``: standard input, a .csv, .tsv or .parquet.

    Parameters
    ----------
    vocab : file with a name on each line, for docword, .npy and .npz.
    min_count : of a sparse binary table keep the variables that are 1 in at least this many
        samples, and 0 in at least one; `Table.dropped` has the names of the others and
        `Table.notes` says how many.
    groups, names, drop_constant, family, scores : as in `as_table`. A docword file, and a sparse
        matrix without groups, are binary whatever their counts.
    delimiter : between the cells of a .csv or .tsv; a comma, or a tab for .tsv, if left out.
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
    path = stored(path)
    check_file(path)
    if min_count < 1:
        raise option_error("min_count", f" must be >= 1, got {min_count}", value=min_count)
    if vocab is not None:
        if names is not None:
            raise DataError(
                Text(Option("vocab"), " and ", Option("names"), " both give names"),
                "pass one of them",
                option="names",
            )
        names = read_vocabulary(Path(vocab))
    limit = memory_bytes(memory_limit)
    plan = ReadPlan(limit, names, family, drop_constant, scratch, scores=scores)
    roles = Roles(weights, ignore)
    mark = cell_delimiter(path, delimiter)
    options = ReadOptions(plan, groups, min_count, mark, roles)
    with reading(path), roles.naming_weights():
        return _read_file(path, options)


def _read_file(path: Path, options: ReadOptions) -> Table:
    file_format = known_format(path)
    if not file_format.has_columns:
        _refuse_roles(path, options.roles)
    plan, groups = options.plan, options.groups
    held = file_format.memory is None or groups is not None or plan.scores
    held = held or memory_needed(path) <= room_for_reading(plan.limit)
    return file_format.read(path, options._replace(plan=plan._replace(held=held)))


def _refuse_roles(path: Path, roles: Roles) -> None:
    """Raise if columns have roles in a file whose columns have no names."""
    for option, given in roles._asdict().items():
        if given:
            raise DataError(
                Text(
                    Option(option),
                    f" names a column of a {COLUMN_FILES}, but the file is {path.name!r}",
                ),
                "leave it out",
                value=given,
                option=option,
            )


def mapped_table(
    X: NDArray[Any], names: Sequence[Any] | None, sample_weight: Any, plan: ReadPlan
) -> Table:
    """The table of an array in a mapped file, read in parts."""
    weights = None if sample_weight is None else checked_numbers(sample_weight, len(X))
    return table_of_source(with_weights(array_source(X, names), weights), plan)
