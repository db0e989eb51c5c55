"""`as_table`: any accepted input to a `Table`, checked once, here, before any work.

A DataFrame of boolean, integer, float, string and categorical columns, an (n, p) array, a SciPy
sparse matrix with or without `groups`, a list or dict of blocks; values may be missing in any but
sparse input. Dask collections are still to come.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.block_forms import (
    dense_block,
    score_of_block,
    sparse_block,
    variable_of_block,
)
from latenttree.data.blocks import (
    Groups,
    as_block,
    common_length,
    complex_data,
    group_columns,
    one_hot_codes,
    table_from_sparse,
)
from latenttree.data.checks import (
    MOST_UNIQUE,
    check_known,
    check_n_states,
    check_shape,
    constant_column,
    identifier,
    resolve_names,
    together,
)
from latenttree.data.columns import contiguous_columns
from latenttree.data.families import AUTO, Family, asked_families
from latenttree.data.scratch import map_of
from latenttree.data.sparsechecks import check_sparse
from latenttree.data.summaries import Wide
from latenttree.data.table import Table
from latenttree.data.variables import Variable, blocks_of_variables, codes_of_variables
from latenttree.data.vectors import (
    Vector,
    score_of,
    variable_of,
    vector_of_array,
    vector_of_series,
    without_values,
)
from latenttree.data.weights import weighted_rows
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError, Option, Text

__all__ = ["as_table", "check_n_states"]

Floats = NDArray[np.float64]
Made = TypeVar("Made")


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
        values. Also the path of a file that `read_table` reads.
    groups : for a sparse or numeric matrix, a label for each column, or group name to column
        numbers: the columns of a group are one vector variable.
    names : names of the variables; from the DataFrame or dict, or x0, x1, ..., if not given.
    drop_constant : leave out variables with a single value, or with none (listed in
        `Table.dropped`) instead of raising.
    family : "auto", the name of one family for all variables, or a dict from variables to names
        (the others "auto"). See `latenttree.data.families`.
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
    reject_unreadable(X)
    X, weights = weighted_rows(X, sample_weight)
    read = _Reader(names, family, drop_constant, weights, scores)
    table = read.sparse(X, groups) if sparse.issparse(X) else read.other(X, groups)
    return table if weights is None else table.replace(weights=weights)


def _table_of_file(path: Any, sample_weight: Any, options: Mapping[str, Any]) -> Table:
    from latenttree.data.readers import read_table  # which imports this module

    if sample_weight is not None:
        raise DataError(
            f"X is the path {str(path)!r}, whose rows have no weights of their own",
            "pass read_table(path, weights=COLUMN), or the data themselves",
            path=str(path),
            option="sample_weight",
        )
    return read_table(path, **options)


def _table_of_map(
    X: Any, sample_weight: Any, options: Mapping[str, Any], large: Mapping[str, Any]
) -> Table | None:
    """The table of an array in a mapped file, None where it is small, or no plain matrix."""
    from latenttree.data.readers import mapped_table  # which imports this module
    from latenttree.data.spooled import Plan

    plan = Plan(memory_bytes(large["memory_limit"]), scratch=large["scratch"], **options)
    plain = not np.ma.isMaskedArray(X) and X.ndim == 2
    if not plain or X.dtype.kind not in "biufUS" or X.nbytes <= room_for_reading(plan.limit):
        return None
    return mapped_table(X, options["names"], sample_weight, plan)


def _table_again(
    table: Table, groups: Any, names: Any, family: Family, sample_weight: Any, scores: bool
) -> Table:
    if groups is not None or names is not None or family != AUTO:
        raise DataError(
            "X is a Table, which has its names, blocks and families",
            Text(
                "pass it alone, or pass ",
                Option("groups"),
                ", ",
                Option("names"),
                " and ",
                Option("family"),
                " where it is made",
            ),
        )
    if sample_weight is not None and table.weights is not None:
        raise DataError(
            "X is a Table that has weights",
            Text("pass it without ", Option("sample_weight")),
            option="sample_weight",
        )
    if sample_weight is not None:
        rows, weights = weighted_rows(np.arange(table.n_samples), sample_weight)
        table = table if len(rows) == table.n_samples else table.subset_rows(rows)
        table = table.replace(weights=weights)
    return _scores_of_table(table) if scores else table


def reject_unreadable(X: Any) -> None:
    """What is no table at all, and damaged sparse matrices; Dask collections are still to come."""
    if isinstance(X, str | bytes | os.PathLike):
        raise DataError(
            f"X is {X!r}",
            "pass a table, not a path (latenttree.data.read_table reads files)",
            value=X,
        )
    if X is None:
        raise DataError("X is None", "pass a table: a DataFrame, an array or a sparse matrix")
    if type(X).__module__.split(".")[0] == "dask":
        raise DataError(
            f"Dask collections are not supported yet, got {type(X).__name__}",
            "call .compute() first",
            value=type(X).__name__,
        )
    for part in [X] if sparse.issparse(X) else _items(X):
        if sparse.issparse(part):
            check_sparse(part)


def _items(X: Any) -> Iterable[Any]:
    return X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else ()


def is_blocks(X: Any) -> bool:
    """Whether `X` is a dict, or a list of arrays: a variable for each item."""
    if isinstance(X, Mapping):
        return True
    return isinstance(X, list | tuple) and any(
        sparse.issparse(item) or isinstance(item, np.ndarray) for item in X
    )


def as_matrix(X: Any, n_min: int = 2) -> NDArray[Any]:
    """The (n, p) array of a rectangular table; a masked array stays masked."""
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError as error:
        raise DataError(
            f"X is not a rectangular table ({error})", "give all rows one length"
        ) from error
    if array.dtype.kind == "c":
        raise complex_data()
    check_shape(array.shape, n_min)
    return array


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` as seen through narwhals, or None where it is no DataFrame."""
    if isinstance(X, np.ndarray | list | tuple | dict):
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # only pandas allows repeated names
        _check_levels(X.columns)
        resolve_names(None, len(X.columns), list(X.columns))
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        raise DataError(
            f"X is a lazy frame ({type(X).__name__})",
            "call .collect() first",
            value=type(X).__name__,
        )
    if isinstance(frame, nw.Series):
        raise DataError(
            f"expected a table, got a single series of length {len(frame)}",
            "Reshape your data: X.to_frame()",
            value=len(frame),
        )
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_levels(columns: Any) -> None:
    """A variable has one name, not one on each of several levels."""
    if getattr(columns, "nlevels", 1) > 1:
        first = tuple(map(str, columns[0]))
        raise DataError(
            f"the columns of X have {columns.nlevels} levels (the first is {first}), a "
            "variable has one name",
            "join them: X.columns = ['/'.join(map(str, c)) for c in X.columns]",
            value=first,
        )


def table_of_vectors(
    vectors: Iterable[Vector],
    names: Sequence[str],
    n: int,
    *,
    drop_constant: bool = False,
    family: Family = AUTO,
    scores: bool = False,
    weights: Floats | None = None,
) -> Table:
    """The table of columns that arrive one at a time, under their names."""
    table = _Reader(None, family, drop_constant, weights, scores).columns(vectors, names, n)
    return table if weights is None else table.replace(weights=weights)


def variables_of_vectors(
    vectors: Iterable[Vector],
    names: Sequence[str],
    n: int,
    family: Family = AUTO,
    drop_constant: bool = False,
) -> list[Variable]:
    """The variables of columns whose vectors stand for all their rows."""
    return list(_Reader(None, family, drop_constant, None, False)._variables(vectors, names, n))


# --- reading -------------------------------------------------------------------------


class _Reader:
    """The options of `as_table`, and a method for each kind of input."""

    def __init__(
        self,
        names: Sequence[Any] | None,
        family: Family,
        drop_constant: bool,
        weights: Floats | None,
        scores: bool,
    ) -> None:
        self.names, self.family, self.drop_constant = names, family, drop_constant
        self.weights, self.scores = weights, scores

    def sparse(self, X: Any, groups: Groups | None) -> Table:
        check_shape(X.shape)
        if groups is not None:
            return self.grouped(X, groups)
        if not self.scores:
            self._check_presence(X)
            return table_from_sparse(X, self.names, self.drop_constant)
        names = resolve_names(self.names, X.shape[1])
        matrix = sparse_block(X, names, "gaussian").tocsc()
        columns = (matrix[:, [j]].toarray().ravel() for j in range(X.shape[1]))
        vectors = (_tried(vector_of_array, column, name) for column, name in _pairs(columns, names))
        return self.columns(vectors, names, X.shape[0])

    def other(self, X: Any, groups: Groups | None) -> Table:
        frame = as_frame(X)
        blocks = frame is None and is_blocks(X)
        if groups is not None and (frame is not None or blocks):
            raise DataError(
                Text(
                    Option("groups"), f" is for a sparse or numeric matrix, got {type(X).__name__}"
                ),
                Text(
                    "pass a matrix, or without ",
                    Option("groups"),
                    (
                        " a dict with a block for each group, for example {name: "
                        "X[columns].to_numpy() for name, columns in groups.items()}"
                    ),
                ),
                value=type(X).__name__,
                option="groups",
            )
        if frame is not None:
            return self.frame(frame)
        if blocks:
            return self.blocks(X)
        array = as_matrix(X)
        return self.array(array) if groups is None else self.grouped(array, groups)

    def frame(self, frame: nw.DataFrame[Any]) -> Table:
        check_shape(frame.shape)
        names = resolve_names(self.names, frame.shape[1], frame.columns)
        series = (frame.get_column(column) for column in frame.columns)
        vectors = (_tried(vector_of_series, column, name) for column, name in _pairs(series, names))
        return self.columns(vectors, names, frame.shape[0])

    def array(self, array: NDArray[Any]) -> Table:
        n, p = array.shape
        names = resolve_names(self.names, p)
        mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
        data = np.asarray(array)
        columns = contiguous_columns(data) if data.dtype.kind in "biuf" else iter(data.T)
        vectors = (
            _tried(vector_of_array, column, name, None if mask is None else mask[:, j])
            for j, (column, name) in enumerate(_pairs(columns, names))
        )
        return self.columns(vectors, names, n)

    def columns(self, vectors: Iterable[Vector | DataError], names: Sequence[str], n: int) -> Table:
        """A variable for each vector; they arrive one at a time."""
        variables = self._variables(vectors, names, n)
        if self.scores:
            return blocks_of_variables(list(variables), n, self.drop_constant)
        return codes_of_variables(variables, names, n, self.drop_constant)

    def _variables(
        self, vectors: Iterable[Vector | DataError], names: Sequence[str], n: int
    ) -> Iterator[Variable]:
        """The variables; where some cannot be made, one error about all that is wrong."""
        asked, wrong, failed = asked_families(self.family, names), [], False
        for vector, name, family in zip(vectors, names, asked, strict=True):
            found: Variable | DataError = (
                vector
                if isinstance(vector, DataError)
                else _tried(self.variable, vector, name, family)
            )
            if isinstance(found, DataError):
                failed = True
                wrong.append(found)
                continue
            wrong += self._doubts(found, n)
            if not failed:
                yield found
        if failed:
            raise together(wrong)

    def _doubts(self, variable: Variable, n: int) -> list[DataError]:
        """What later checks would say of a variable that can be read."""
        if variable.constant is not None:
            found = constant_column(variable.name, variable.only_value, n)
            return [] if self.drop_constant else [found]
        labels, known = variable.labels, n - variable.n_missing
        if labels is None or not MOST_UNIQUE < known == len(labels):
            return []
        return [identifier(variable.name, known, labels.dtype.kind in "iuf")]

    def variable(self, vector: Vector, name: str, asked: str) -> Variable:
        if not len(vector.known):
            if not self.drop_constant:
                check_known(0, vector.n, name)
            return without_values(vector, name)
        if isinstance(vector, Wide):
            return vector.variable(name, asked)
        make = score_of if self.scores else variable_of
        return make(vector, name, asked, self.weights)

    def blocks(self, blocks: Sequence[Any] | Mapping[Any, Any]) -> Table:
        """A variable for each block: (n, d) dense or sparse vectors, or a 1-D vector. Where every
        block is 1-D the table is that of columns, otherwise of kind "blocks"."""
        found = list(blocks) if isinstance(blocks, Mapping) else None
        values = list(blocks.values()) if isinstance(blocks, Mapping) else list(blocks)
        names = resolve_names(self.names, len(values), found)
        arrays = [as_block(value, name) for value, name in zip(values, names, strict=True)]
        n = common_length(arrays, names)
        masks = [np.ma.getmaskarray(v) if np.ma.isMaskedArray(v) else None for v in values]
        if all(array.ndim == 1 for array in arrays):
            vectors = (
                _tried(vector_of_array, *item) for item in zip(arrays, names, masks, strict=True)
            )
            return self.columns(vectors, names, n)
        asked = asked_families(self.family, names)
        variables = [
            self.variable(vector_of_array(array, name, mask), name, family)
            if array.ndim == 1
            else self.block(array, name, _numbered(name, array.shape[1]), family, mask)
            for array, name, family, mask in zip(arrays, names, asked, masks, strict=True)
        ]
        return blocks_of_variables(variables, n, self.drop_constant)

    def block(
        self,
        array: Any,
        name: str,
        columns: Sequence[str],
        asked: str,
        mask: NDArray[np.bool_] | None = None,
    ) -> Variable:
        x: Any
        if sparse.issparse(array):
            x = sparse_block(array, columns, "gaussian" if self.scores else asked)
        else:
            x = dense_block(array, columns, mask)
        if self.scores:
            return score_of_block(x, name, asked, self.weights)
        return variable_of_block(x, name, columns, asked, self.weights)

    def grouped(self, X: Any, groups: Groups) -> Table:
        """A vector variable for each group of columns."""
        labels, members = group_columns(groups, X.shape[1])
        names = resolve_names(self.names, len(labels), labels)
        asked = asked_families(self.family, names)
        matrix = X.tocsc() if sparse.issparse(X) else np.asarray(X)
        mask = np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else None
        variables = [
            self.block(
                matrix[:, member],
                name,
                [f"column {j}" for j in member],
                family,
                None if mask is None else mask[:, member],
            )
            for name, member, family in zip(names, members, asked, strict=True)
        ]
        return blocks_of_variables(variables, X.shape[0], self.drop_constant)

    def _check_presence(self, X: Any) -> None:
        asked = asked_families(self.family, resolve_names(self.names, X.shape[1]))
        other = next(
            (name for name in asked if name not in (AUTO, "presence", "categorical")), None
        )
        if other is not None:
            raise DataError(
                f"family {other!r}: a sparse matrix without groups is read as presence or absence",
                Text(
                    "pass X.toarray() to read its numbers, or ",
                    Option("groups"),
                    " to join columns to vectors",
                ),
                value=other,
                option="family",
            )


def _tried(make: Callable[..., Made], *arguments: Any) -> Made | DataError:
    """What is made, or what is wrong: told later, together with what is wrong elsewhere."""
    try:
        return make(*arguments)
    except DataError as error:
        return error


def _pairs(columns: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[Any, str]]:
    return zip(columns, names, strict=True)


def _scores_of_table(table: Table) -> Table:
    """The same table for a Gaussian tree."""
    read = _Reader(None, AUTO, False, table.weights, True)
    variables = []
    for v, name in enumerate(table.names):
        x = _numbers(table, v)
        if x.ndim == 1:
            variables.append(read.variable(vector_of_array(x, name), name, AUTO))
        else:
            variables.append(read.block(x, name, _numbered(name, x.shape[1]), AUTO))
    found = blocks_of_variables(variables, table.n_samples, False)
    notes = {"notes": table.notes, "dropped": table.dropped, "weights": table.weights}
    return found.replace(**notes)


def _numbers(table: Table, v: int) -> Any:
    """(n,) or (n, d) values of a variable of a table; ordinal categories are their places."""
    if table.values is not None and v in table.values.arrays:
        return table.values.arrays[v]
    labels = table.categories[v]
    if table.matrix is not None and labels is None:
        block = table.matrix[:, table.offsets[v] : table.offsets[v + 1]]
        return block.toarray().ravel() if table.kind == "presence" else block
    coded = table.codes if table.values is None else table.values.codes
    codes = one_hot_codes(table) if coded is None else coded
    assert codes is not None
    found = codes[:, v].astype(np.int64)
    if labels is not None and table.families[v] != "ordinal":
        values = labels.astype(object)[found]
        values[found < 0] = None
        return values
    return np.where(found < 0, np.nan, found)


def _numbered(name: str, width: int) -> list[str]:
    return [f"{name}[{j}]" for j in range(width)]
