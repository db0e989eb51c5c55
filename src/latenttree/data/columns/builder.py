"""Any input in memory to a `Table`: a method of `TableBuilder` for each kind of container."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import (
    MAX_ALL_UNIQUE,
    check_known,
    check_shape,
    combined_error,
    constant_column,
    identifier,
    resolve_names,
)
from latenttree.data.columns.block_variables import (
    dense_block,
    score_variable_of_block,
    sparse_block,
    variable_of_block,
)
from latenttree.data.columns.blocks import (
    Groups,
    as_block,
    common_length,
    group_columns,
    one_hot_codes,
    table_from_sparse,
)
from latenttree.data.columns.codes import contiguous_columns
from latenttree.data.columns.families import AUTO, Family, requested_families
from latenttree.data.columns.variables import Variable, blocks_of_variables, codes_of_variables
from latenttree.data.columns.vectors import (
    Vector,
    all_missing_variable,
    score_variable,
    variable_of,
    vector_of_array,
    vector_of_series,
)
from latenttree.data.containers import as_frame, as_matrix, is_blocks, reject_unreadable
from latenttree.data.streaming.columns import NumericOnDisk
from latenttree.data.table import Table
from latenttree.data.weights import numbering_all_rows, weighted_rows
from latenttree.errors import DataError, Option, Text

Floats = NDArray[np.float64]
Made = TypeVar("Made")


def table_in_memory(
    X: Any, groups: Groups | None, sample_weight: Any, scores: bool, options: Mapping[str, Any]
) -> Table:
    """The table of an input that is neither a path nor a table; arguments as in `as_table`."""
    reject_unreadable(X)
    X, weights = weighted_rows(X, sample_weight)
    build = TableBuilder(**options, weights=weights, scores=scores)
    with numbering_all_rows(lambda: sample_weight):
        table = build.sparse(X, groups) if sparse.issparse(X) else build.other(X, groups)
    return table if weights is None else table.replace(weights=weights)


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
    table = TableBuilder(None, family, drop_constant, weights, scores).columns(vectors, names, n)
    return table if weights is None else table.replace(weights=weights)


def variables_of_vectors(
    vectors: Iterable[Vector],
    names: Sequence[str],
    n: int,
    family: Family = AUTO,
    drop_constant: bool = False,
) -> list[Variable]:
    """The variables of columns whose vectors summarise all their rows."""
    return list(
        TableBuilder(None, family, drop_constant, None, False)._variables(vectors, names, n)
    )


# --- reading -------------------------------------------------------------------------


class TableBuilder:
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
        """A sparse matrix: grouped columns, binary variables, or scores of its numbers."""
        check_shape(X.shape)
        if groups is not None:
            return self.grouped(X, groups)
        if not self.scores:
            self._check_binary(X)
            return table_from_sparse(X, self.names, self.drop_constant)
        names = resolve_names(self.names, X.shape[1])
        matrix = sparse_block(X, names, "gaussian").tocsc()
        columns = (matrix[:, [j]].toarray().ravel() for j in range(X.shape[1]))
        vectors = (
            _result_or_error(vector_of_array, column, name)
            for column, name in _pairs(columns, names)
        )
        return self.columns(vectors, names, X.shape[0])

    def other(self, X: Any, groups: Groups | None) -> Table:
        """A DataFrame, blocks, or what NumPy makes a matrix of."""
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
        """A variable for each column of a DataFrame."""
        check_shape(frame.shape)
        names = resolve_names(self.names, frame.shape[1], frame.columns)
        series = (frame.get_column(column) for column in frame.columns)
        vectors = (
            _result_or_error(vector_of_series, column, name)
            for column, name in _pairs(series, names)
        )
        return self.columns(vectors, names, frame.shape[0])

    def array(self, array: NDArray[Any]) -> Table:
        """A variable for each column of an (n, p) array, perhaps masked."""
        n, p = array.shape
        names = resolve_names(self.names, p)
        mask = np.ma.getmaskarray(array) if isinstance(array, np.ma.MaskedArray) else None
        data = np.asarray(array)
        columns = contiguous_columns(data) if data.dtype.kind in "biuf" else iter(data.T)
        vectors = (
            _result_or_error(vector_of_array, column, name, None if mask is None else mask[:, j])
            for j, (column, name) in enumerate(_pairs(columns, names))
        )
        return self.columns(vectors, names, n)

    def columns(self, vectors: Iterable[Vector | DataError], names: Sequence[str], n: int) -> Table:
        """A table with a variable for each vector; vectors arrive one at a time."""
        variables = self._variables(vectors, names, n)
        if self.scores:
            return blocks_of_variables(list(variables), n, self.drop_constant)
        return codes_of_variables(variables, names, n, self.drop_constant)

    def _variables(
        self, vectors: Iterable[Vector | DataError], names: Sequence[str], n: int
    ) -> Iterator[Variable]:
        """The variables; where some cannot be made, one error about all of them."""
        requested, wrong, failed = requested_families(self.family, names), [], False
        for vector, name, family in zip(vectors, names, requested, strict=True):
            variable: Variable | DataError = (
                vector
                if isinstance(vector, DataError)
                else _result_or_error(self.variable, vector, name, family)
            )
            if isinstance(variable, DataError):
                failed = True
                wrong.append(variable)
                continue
            wrong += self._later_errors(variable, n)
            if not failed:
                yield variable
        if failed:
            raise combined_error(wrong)

    def _later_errors(self, variable: Variable, n: int) -> list[DataError]:
        """The errors that later checks would raise about a variable that can be read."""
        if variable.constant is not None:
            error = constant_column(variable.name, variable.only_value, n)
            return [] if self.drop_constant else [error]
        labels, known = variable.labels, n - variable.n_missing
        if labels is None or not MAX_ALL_UNIQUE < known == len(labels):
            return []
        return [identifier(variable.name, known, labels.dtype.kind in "iuf")]

    def variable(self, vector: Vector, name: str, requested: str) -> Variable:
        """The variable of a column, of the requested family."""
        if not len(vector.known):
            if not self.drop_constant:
                check_known(0, vector.n, name)
            return all_missing_variable(vector, name)
        if isinstance(vector, NumericOnDisk):
            return vector.variable(name, requested)
        make = score_variable if self.scores else variable_of
        return make(vector, name, requested, self.weights)

    def blocks(self, blocks: Sequence[Any] | Mapping[Any, Any]) -> Table:
        """A variable for each block: (n, d) dense or sparse vectors, or a 1-D vector. Of kind
        "codes" where every block is 1-D, otherwise of kind "blocks"."""
        keys = list(blocks) if isinstance(blocks, Mapping) else None
        values = list(blocks.values()) if isinstance(blocks, Mapping) else list(blocks)
        names = resolve_names(self.names, len(values), keys)
        arrays = [as_block(value, name) for value, name in zip(values, names, strict=True)]
        n = common_length(arrays, names)
        masks = [np.ma.getmaskarray(v) if np.ma.isMaskedArray(v) else None for v in values]
        if all(array.ndim == 1 for array in arrays):
            vectors = (
                _result_or_error(vector_of_array, *item)
                for item in zip(arrays, names, masks, strict=True)
            )
            return self.columns(vectors, names, n)
        requested = requested_families(self.family, names)
        variables = [
            self.variable(vector_of_array(array, name, mask), name, family)
            if array.ndim == 1
            else self.block(array, name, _numbered(name, array.shape[1]), family, mask)
            for array, name, family, mask in zip(arrays, names, requested, masks, strict=True)
        ]
        return blocks_of_variables(variables, n, self.drop_constant)

    def block(
        self,
        array: Any,
        name: str,
        columns: Sequence[str],
        requested: str,
        mask: NDArray[np.bool_] | None = None,
    ) -> Variable:
        """The variable of an (n, d) block; `columns` are names for errors."""
        x: Any
        if sparse.issparse(array):
            x = sparse_block(array, columns, "gaussian" if self.scores else requested)
        else:
            x = dense_block(array, columns, mask)
        if self.scores:
            return score_variable_of_block(x, name, requested, self.weights)
        return variable_of_block(x, name, columns, requested, self.weights)

    def grouped(self, X: Any, groups: Groups) -> Table:
        """A vector variable for each group of columns."""
        labels, members = group_columns(groups, X.shape[1])
        names = resolve_names(self.names, len(labels), labels)
        requested = requested_families(self.family, names)
        matrix = X.tocsc() if sparse.issparse(X) else np.asarray(X)
        mask = np.ma.getmaskarray(X) if np.ma.isMaskedArray(X) else None
        variables = [
            self.block(
                matrix[:, member],
                name,
                [f"x{j}" for j in member],
                family,
                None if mask is None else mask[:, member],
            )
            for name, member, family in zip(names, members, requested, strict=True)
        ]
        return blocks_of_variables(variables, X.shape[0], self.drop_constant)

    def _check_binary(self, X: Any) -> None:
        """Raise if a family other than binary is requested for a sparse matrix."""
        requested = requested_families(self.family, resolve_names(self.names, X.shape[1]))
        other = next(
            (name for name in requested if name not in (AUTO, "binary", "categorical")), None
        )
        if other is not None:
            raise DataError(
                f"family {other!r}: a sparse matrix without groups is read as binary variables",
                Text(
                    "pass X.toarray() to read its numbers, or ",
                    Option("groups"),
                    " to join columns to vectors",
                ),
                value=other,
                option="family",
            )


def _result_or_error(make: Callable[..., Made], *arguments: Any) -> Made | DataError:
    """What `make` returns, or the DataError that it raises, to be reported together with others."""
    try:
        return make(*arguments)
    except DataError as error:
        return error


def _pairs(columns: Iterable[Any], names: Sequence[str]) -> Iterator[tuple[Any, str]]:
    return zip(columns, names, strict=True)


def table_of_scores(table: Table) -> Table:
    """The same table for a Gaussian tree: normal scores of all variables."""
    read = TableBuilder(None, AUTO, False, table.weights, True)
    variables = []
    for v, name in enumerate(table.names):
        x = _numbers(table, v)
        if x.ndim == 1:
            variables.append(read.variable(vector_of_array(x, name), name, AUTO))
        else:
            variables.append(read.block(x, name, _numbered(name, x.shape[1]), AUTO))
    scores = blocks_of_variables(variables, table.n_samples, False)
    notes = {"notes": table.notes, "dropped": table.dropped, "weights": table.weights}
    return scores.replace(**notes)


def _numbers(table: Table, v: int) -> Any:
    """(n,) or (n, d) values of a variable of a table; ordinal categories are their positions."""
    if table.values is not None and v in table.values.arrays:
        return table.values.arrays[v]
    labels = table.categories[v]
    if table.matrix is not None and labels is None:
        block = table.matrix[:, table.offsets[v] : table.offsets[v + 1]]
        return block.toarray().ravel() if table.kind == "sparse_binary" else block
    coded = table.codes if table.values is None else table.values.codes
    codes = one_hot_codes(table) if coded is None else coded
    assert codes is not None
    category = codes[:, v].astype(np.int64)
    if labels is not None and table.families[v] != "ordinal":
        values = labels.astype(object)[category]
        values[category < 0] = None
        return values
    return np.where(category < 0, np.nan, category)


def _numbered(name: str, width: int) -> list[str]:
    return [f"{name}[{j}]" for j in range(width)]
