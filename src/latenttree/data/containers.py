"""Codes back to values, in the container that data came in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.blocks import one_hot
from latenttree.data.columns import stack_columns
from latenttree.data.encode import as_frame
from latenttree.data.table import Table, codes_table, presence_table
from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.data.schema import Schema

FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")
CONTAINERS = ("array", "sparse array", "sparse matrix", "dict", "list", "table", *FRAMES)
FORMS = ("vector", "dense", "sparse")


@dataclass(frozen=True, eq=False)
class Column:
    """A column (or block) of the training input.

    Attributes
    ----------
    name : its name.
    dtype : what the container calls its type; "" where it has none.
    form : "vector", or "dense" or "sparse" for a block.
    levels : categories of a categorical type, in their own order.
    ordered : whether that order means something.
    constant : (1,) the value of a dropped column, or (width,) the row of a dropped block; None
        for variables of the model.
    """

    name: str
    dtype: str = ""
    form: str = "vector"
    levels: NDArray[Any] | None = None
    ordered: bool = False
    constant: NDArray[Any] | None = None

    def replace(self, **changes: Any) -> Column:
        return replace(self, **changes)


def column_of_series(series: nw.Series[Any]) -> Column:
    """Name, type and categories of a column of a DataFrame."""
    name, dtype = str(series.name), getattr(series.to_native(), "dtype", None)
    if not isinstance(series.dtype, nw.Categorical | nw.Enum):
        return Column(name, "" if dtype is None else str(dtype))
    if series.implementation.is_polars():
        levels = series.dtype.categories if isinstance(series.dtype, nw.Enum) else None
        found = None if levels is None else np.asarray(levels)
        return Column(name, type(dtype).__name__, levels=found)
    levels = getattr(dtype, "categories", None)
    if levels is None or not _read_as(series, levels):
        return Column(name)
    ordered = bool(getattr(dtype, "ordered", False))
    return Column(name, "category", levels=levels.to_numpy(), ordered=ordered)


def _read_as(series: nw.Series[Any], levels: Any) -> bool:
    """Whether values read as these categories do: of dates, for example, NumPy makes numbers."""
    known = set(levels.to_numpy().tolist())
    return all(value in known for value in series.to_numpy()[:100].tolist())


# --- containers ----------------------------------------------------------------------


def decoded(schema: Schema, codes: NDArray[Any]) -> Any:
    """Values of known codes, in the container of the training input."""
    if schema.container == "table":
        return _table(schema, codes)
    if schema.members is not None:
        return _grouped(schema, codes)
    if schema.container in FRAMES:
        return _frame(schema, codes)
    if schema.container in ("dict", "list"):
        return _blocks(schema, codes)
    return _array(schema, codes) if schema.container == "array" else _sparse(schema, codes)


def _vector(schema: Schema, codes: NDArray[Any], j: int) -> NDArray[Any]:
    """(n,) values of column j; a dropped column repeats its value."""
    i = schema.variable_of(j)
    if i is None:
        return np.repeat(_constant(schema.columns[j]), len(codes))
    return schema.labels[i][codes[:, i]]


def _constant(column: Column) -> NDArray[Any]:
    assert column.constant is not None
    return column.constant


def _table(schema: Schema, codes: NDArray[Any]) -> Table:
    if schema.kind == "presence":
        return presence_table(schema.names, sparse.csr_array(codes > 0, dtype=np.float32))
    return codes_table(schema.names, np.ascontiguousarray(codes), schema.labels)


def _array(schema: Schema, codes: NDArray[Any]) -> NDArray[Any]:
    p = len(schema.columns)
    dtype: Any = schema.columns[0].dtype
    if dtype in ("str", "bytes"):  # as long as the longest label
        constants = [c.constant for c in schema.columns if c.constant is not None]
        dtype = np.result_type(*schema.labels, *constants)
    columns = (_vector(schema, codes, j) for j in range(p))
    return stack_columns(columns, len(codes), p, dtype)


def _sparse(schema: Schema, codes: NDArray[Any]) -> Any:
    """(n, all columns) CSR with ones where a variable is present."""
    rows, variables = np.nonzero(codes)
    constant = [j for j, c in enumerate(schema.columns) if c.constant is not None and c.constant[0]]
    rows = np.concatenate([rows, np.repeat(np.arange(len(codes)), len(constant))])
    columns = np.concatenate([schema.index[variables], np.tile(constant, len(codes))])
    ones = np.ones(len(rows), dtype=schema.columns[0].dtype)
    shape = (len(codes), len(schema.columns))
    return _csr(schema)((ones, (rows, columns.astype(np.int64))), shape=shape)


def _csr(schema: Schema) -> Any:
    return sparse.csr_matrix if schema.container == "sparse matrix" else sparse.csr_array


# --- blocks --------------------------------------------------------------------------


def _grouped(schema: Schema, codes: NDArray[Any]) -> Any:
    """A matrix with the one-hot block of every group in its columns."""
    assert schema.members is not None
    parts = [_one_hot(schema, codes, j) for j in range(len(schema.columns))]
    back = np.argsort(np.concatenate(schema.members))
    matrix = sparse.hstack(parts, format="csr")[:, back].astype(schema.columns[0].dtype)
    return matrix.toarray() if schema.container == "array" else _csr(schema)(matrix)


def _blocks(schema: Schema, codes: NDArray[Any]) -> Any:
    """A list or dict with a vector or a one-hot block for each column."""
    found = []
    for j, column in enumerate(schema.columns):
        if column.form == "vector":
            found.append(_vector(schema, codes, j))
        else:
            block = _one_hot(schema, codes, j).astype(column.dtype)
            found.append(block if column.form == "sparse" else block.toarray())
    return (
        found if schema.container == "list" else dict(zip(schema.input_names, found, strict=True))
    )


def _one_hot(schema: Schema, codes: NDArray[Any], j: int) -> sparse.csr_array:
    """(n, width) CSR of column j; a dropped block repeats its row."""
    i = schema.variable_of(j)
    if i is None:
        return sparse.csr_array(np.tile(_constant(schema.columns[j]), (len(codes), 1)))
    return one_hot(codes[:, i], int(schema.dims[i]))


# --- DataFrames ----------------------------------------------------------------------


def _frame(schema: Schema, codes: NDArray[Any]) -> Any:
    vectors = [_vector(schema, codes, j) for j in range(len(schema.columns))]
    if schema.container == "pandas":
        return _pandas(schema, vectors)
    if schema.container == "polars":
        return _polars(schema, vectors)
    library: Any = schema.container
    values = dict(zip(schema.input_names, vectors, strict=True))
    return nw.from_dict(values, backend=library).to_native()


def arranged(result: Any, like: Any) -> Any:
    """A DataFrame with the order of columns, and in pandas the index, of another."""
    if type(result) is not type(like):
        return result
    own, other = as_frame(result), as_frame(like)
    if own is None or other is None:
        return result
    ordered = set(other.columns) <= set(own.columns)
    if hasattr(like, "iloc"):  # as pandas has; its names need not be text, as narwhals asks
        result = result[list(like.columns)] if ordered else result
        result.index = like.index
        return result
    return own.select(other.columns).to_native() if ordered else result


def _pandas(schema: Schema, vectors: Sequence[NDArray[Any]]) -> Any:
    pd = _library("pandas")
    columns = zip(vectors, schema.columns, strict=True)
    series = {j: _pandas_series(pd, vector, c) for j, (vector, c) in enumerate(columns)}
    frame = pd.DataFrame(series)
    frame.columns = [int(n) if schema.whole_names else n for n in schema.input_names]
    return frame


def _pandas_series(pd: Any, vector: NDArray[Any], column: Column) -> Any:
    if column.levels is not None:
        return pd.Categorical(vector, categories=column.levels, ordered=column.ordered)
    series = pd.Series(vector.astype(object) if column.dtype == "object" else vector)
    try:
        return series.astype(column.dtype) if column.dtype else series
    except (TypeError, ValueError):  # a type of another version; the values matter more
        return series


def _polars(schema: Schema, vectors: Sequence[NDArray[Any]]) -> Any:
    pl = _library("polars")
    series = []
    for vector, column in zip(vectors, schema.columns, strict=True):
        kind: Any = getattr(pl, column.dtype, None)
        if not isinstance(kind, type) or not issubclass(kind, pl.DataType):
            kind = None
        if column.dtype == "Enum" and column.levels is not None:
            kind = pl.Enum(column.levels.tolist())
        series.append(pl.Series(column.name, vector.tolist(), dtype=kind))
    return pl.DataFrame(series)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise DataError(
            f"the model was fitted on a {name} DataFrame, but {name} is not installed; install it"
        ) from error
