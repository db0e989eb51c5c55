"""`as_table`: any accepted input to a `Table`, checked once, here, before any work.

A DataFrame of boolean, integer, float, string and categorical columns, an (n, p) array, a SciPy
sparse matrix with or without `groups`, a list or dict of blocks, or the path of a file; values may
be missing in any but sparse input. Dask collections are refused.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from latenttree.data.checks import option_error
from latenttree.data.columns.builder import table_in_memory, table_of_scores
from latenttree.data.columns.families import AUTO, Family
from latenttree.data.columns.groups import Groups
from latenttree.data.found_events import Events
from latenttree.data.reader import mapped_table, read_table
from latenttree.data.streaming.assemble import ReadPlan
from latenttree.data.streaming.scratch import map_of
from latenttree.data.table import Table
from latenttree.data.weights import check_weights
from latenttree.engine import THREADS
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError, Option, Text


def as_table(
    X: Any,
    *,
    groups: Groups | None = None,
    names: Sequence[Any] | None = None,
    drop_constant: bool = False,
    family: Family = AUTO,
    sample_weight: Any = None,
    scores: bool = False,
    memory_limit: Any = None,
    scratch: str | os.PathLike[str] | None = None,
) -> Table:
    """The table of `X`.

    Parameters
    ----------
    X : DataFrame (pandas, polars, or any that narwhals reads; columns have one level of names: join
        those of a MultiIndex to names first), (n, p) array of numbers, booleans or strings, SciPy
        sparse matrix, list or dict of blocks, or a Table. A list of plain lists is read as rows; a
        list of arrays as blocks. NaN, None, pandas.NA and what a masked array masks are missing
        values. Also the path of a file that `read_table` reads, and what `read_events` returns. A
        sparse matrix may bring names as its attribute `feature_names`, and a pandas DataFrame whose
        columns are all sparse is a sparse matrix with names.
    groups : for a sparse or numeric matrix, a label for each column, or group name to column
        numbers: the columns of a group are one vector variable.
    names : names of the variables; from the DataFrame or dict, or x0, x1, ..., if not given.
    drop_constant : leave out variables with a single value, or with none (listed in
        `Table.dropped`) instead of raising.
    family : "auto", the name of one family for all variables, or a dict from variables to names
        (the others "auto"). See `data.columns.families`.
    sample_weight : (n,) how often each row counts, at most 2^53 together; rows of weight 0 are left
        out.
    scores : read every variable as numbers, ordered categories by their place, for a Gaussian
        tree: all families are "gaussian", and coordinates are normal scores.
    memory_limit, scratch : as in `read_table`, for paths and for arrays in mapped files
        (`numpy.memmap`), which are read part by part where they are larger.

    Raises
    ------
    DataError : says what is wrong, where, with the value, and what to do.
    """
    X = X.table() if isinstance(X, Events) else X
    if isinstance(X, Table):
        return _table_again(X, groups, names, family, sample_weight, scores)
    options = {"names": names, "family": family, "drop_constant": drop_constant}
    large = {"memory_limit": memory_limit, "scratch": scratch}
    if isinstance(X, str | os.PathLike):
        return _table_of_file(
            X, sample_weight, {"groups": groups, "scores": scores} | options | large
        )
    if isinstance(X, np.ndarray) and groups is None and not scores and map_of(X) is not None:
        table = _table_of_map(X, sample_weight, options, large)
        if table is not None:
            return table
    return table_in_memory(X, groups, sample_weight, scores, options)


def _table_of_file(path: Any, sample_weight: Any, options: Mapping[str, Any]) -> Table:
    if sample_weight is not None:
        what = f"X is the path {str(path)!r}, whose rows have no weights of their own"
        remedy = "pass read_table(path, weights=COLUMN), or the data themselves"
        raise DataError(what, remedy, path=str(path), option="sample_weight")
    return read_table(path, **options)


def _table_of_map(
    X: Any, sample_weight: Any, options: Mapping[str, Any], large: Mapping[str, Any]
) -> Table | None:
    """The table of an array in a mapped file; None where it is small, or no plain matrix."""
    plan = ReadPlan(memory_bytes(large["memory_limit"]), scratch=large["scratch"], **options)
    plain = not np.ma.isMaskedArray(X) and X.ndim == 2
    if not plain or X.dtype.kind not in "biufUS" or X.nbytes <= room_for_reading(plan.limit):
        return None
    return mapped_table(X, options["names"], sample_weight, plan)


def _table_again(
    table: Table, groups: Any, names: Any, family: Family, sample_weight: Any, scores: bool
) -> Table:
    """A table that is passed again, perhaps with weights or for a Gaussian tree."""
    if groups is not None or names is not None or family != AUTO:
        first, last = Text(Option("groups"), ", ", Option("names")), Option("family")
        remedy = Text("pass it alone, or pass ", first, " and ", last, " where it is made")
        raise DataError("X is a Table, which has its names, blocks and families", remedy)
    if sample_weight is not None and table.weights is not None:
        remedy = Text("pass it without ", Option("sample_weight"))
        raise option_error("sample_weight", "X is a Table that has weights", remedy)
    if sample_weight is not None:
        weights = check_weights(sample_weight, table.n_samples)
        if not weights.all():
            table, weights = table.subset_rows(np.flatnonzero(weights)), weights[weights > 0]
        table = table.replace(weights=None if (weights == 1).all() else weights)
    return table_of_scores(table) if scores and table.engine is THREADS else table
