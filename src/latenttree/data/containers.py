"""Containers of inputs: one class for each kind, all with the same few methods.

In: whatever the user passed as `X`. Out of `container_of`: a `Frame`, `Matrix`, `Blocks`
or `TableInput`, whose columns are read one at a time, whose rows can be taken and joined,
and which tells a schema what its columns were. Nothing else in `data` tells containers apart.
No value is read here, but for the indices of sparse matrices, which SciPy's compiled code would
trust.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_shape, complex_data, resolve_names
from latenttree.data.columns.codes import contiguous_columns, objects
from latenttree.data.columns.groups import Groups, Members, group_columns
from latenttree.data.columns.vectors import Column, gaps_of
from latenttree.data.sparse_checks import check_sparse
from latenttree.data.table import Table
from latenttree.errors import DataError, Option, Text

Mask = NDArray[np.bool_]

FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")


@dataclass(frozen=True, eq=False)
class InputColumn:
    """What a schema remembers of a column (or block) of the training input.

    Attributes
    ----------
    name : its name.
    dtype : its type, as the container names it; "" where it has none.
    form : "vector", or "dense" or "sparse" for a block.
    levels : categories of a categorical type, in their own order.
    ordered : whether that order means something.
    constant : (1,) the value of a dropped column, or (width,) the row of a dropped block; None for
        variables of the model."""

    name: str
    dtype: str = ""
    form: str = "vector"
    levels: NDArray[Any] | None = None
    ordered: bool = False
    constant: NDArray[Any] | None = None

    def replace(self, **changes: Any) -> InputColumn:
        """A copy with other fields."""
        return replace(self, **changes)


class Container:
    """An input in memory.

    Attributes
    ----------
    name : how a schema calls it: "array", "sparse array", "sparse matrix", "dict", "list", "table",
        or the library of a DataFrame.
    words : how an error calls it.
    shape : (rows, columns); a block, or a group of columns, is one column.
    own_names : the names of its columns, None where it has none.
    members : the matrix columns of each column, where these are groups."""

    def __init__(
        self,
        name: str,
        words: str,
        shape: tuple[int, ...],
        own_names: Sequence[Any] | None = None,
        members: Members | None = None,
    ) -> None:
        self.name, self.words, self.own_names, self.members = name, words, own_names, members
        self.shape = (int(shape[0]), int(shape[1]) if members is None else len(members))

    def columns(self, wanted: Collection[int] | None = None) -> Iterator[tuple[int, Column]]:
        """Numbers and columns, or those wanted, in order: values as they are, and a mask."""
        for j in range(self.shape[1]):
            if wanted is None or j in wanted:
                yield j, self.column(j)

    def column(self, j: int) -> Column:
        """Column j."""
        raise NotImplementedError

    @property
    def has_blocks(self) -> bool:
        """Whether a column is a block of several values a sample."""
        return self.members is not None

    @property
    def ones(self) -> Any:
        """The sparse matrix of binary variables, one for each column; None where it has none."""
        return None

    def take(self, rows: Mask) -> Container:
        """The rows where `rows` is True."""
        raise NotImplementedError

    def select(self, names: Sequence[Any]) -> Container:
        """The columns of these names, in this order."""
        raise NotImplementedError

    def copied(self) -> Container:
        """A copy that shares no memory with the caller's values."""
        raise NotImplementedError

    def concat(self, others: Sequence[Any]) -> Any:
        """Its rows and those of others of its kind, as the caller would have joined them; columns
        are found by position."""
        raise NotImplementedError

    @property
    def types(self) -> Mapping[int, tuple[Any, str]]:
        """What must be the same of a column in all that are joined, and the words for it; of none
        whose values alone decide."""
        return {}

    def described(self, j: int) -> InputColumn:
        """What a schema remembers of column j."""
        values = self.column(j).values
        name = f"x{j}" if self.own_names is None else str(self.own_names[j])
        return InputColumn(name, dtype_name(values.dtype), form_of(values))

    def constant(self, j: int) -> NDArray[Any] | None:
        """The value of a constant column, (1,), or the row of a constant block, (width,). A value
        that is missing in the first row is taken from the first row that has it, and stays missing
        where no row has it."""
        values, mask = self.column(j)[:2]
        if sparse.issparse(values):
            return np.asarray(sparse.csr_array(values)[[0]].toarray()[0])
        return _first_known(values, mask)


def _first_known(values: NDArray[Any], mask: Mask | None) -> NDArray[Any]:
    """(width,) the first value of each column that is not missing."""
    columns = values.reshape(len(values), -1)
    masks = None if mask is None else mask.reshape(columns.shape)
    first = columns[0].copy()
    for j, column in enumerate(columns.T):
        gaps = gaps_of(column, None if masks is None else masks[:, j])
        if gaps is not None:
            first[j] = column[int(gaps.argmin())]
    return first


def numbered_names(container: Container) -> Sequence[str]:
    """The names of the columns as text, x0, x1, ... where they have none."""
    names = container.own_names
    return Numbered(container.shape[1]) if names is None else list(map(str, names))


class Numbered(Sequence[str]):
    """The names x0, x1, ..., made when they are asked for."""

    def __init__(self, n: int) -> None:
        self._n = n

    def __len__(self) -> int:
        return self._n

    def __getitem__(self, j: Any) -> Any:
        return f"x{range(self._n)[j]}"


def form_of(block: Any) -> str:
    """ "vector", or "dense" or "sparse" for a block."""
    if sparse.issparse(block):
        return "sparse"
    return "vector" if block.ndim == 1 else "dense"


def dtype_name(dtype: Any) -> str:
    """A dtype of NumPy as text: its name, "str" or "bytes" whatever their length."""
    return {"U": "str", "T": "str", "S": "bytes", "O": "object"}.get(dtype.kind, dtype.name)


# --- DataFrames ------------------------------------------------------------------------


class Frame(Container):
    """A DataFrame of any library that narwhals reads."""

    own_names: Sequence[Any]

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        name = frame.implementation.name.lower()
        super().__init__(name, f"{name} DataFrame", frame.shape, frame.columns)
        self.frame = frame

    def column(self, j: int) -> Column:
        """A series of narwhals."""
        return Column(self.frame.get_column(self.own_names[j]))

    def take(self, rows: Mask) -> Frame:
        """See `Container.take`."""
        return Frame(self.frame.filter(rows.tolist()))

    def select(self, names: Sequence[Any]) -> Frame:
        """See `Container.select`; the names of pandas need not be text, as narwhals asks."""
        if self.frame.columns == list(names):
            return self
        native = self.frame.to_native()
        chosen = native[list(names)] if hasattr(native, "iloc") else native.select(list(names))
        return Frame(nw.from_native(chosen, eager_only=True))

    def copied(self) -> Frame:
        """See `Container.copied`."""
        return Frame(self.frame.clone())

    def concat(self, others: Sequence[Frame]) -> Any:
        """See `Container.concat`; types are those that the library gives, categories those of
        all."""
        frames = [self.frame, *(other.frame for other in others)]
        natives = [frame.to_native() for frame in frames]
        if self.name == "polars":
            return import_module("polars").concat(natives, how="vertical_relaxed")
        if self.name != "pandas":
            return nw.concat(frames).to_native()
        joined = import_module("pandas").concat(_same_categories(natives), ignore_index=True)
        joined.columns = natives[0].columns
        return joined

    @cached_property
    def dtypes(self) -> list[nw.dtypes.DType]:
        """Types of the columns."""
        return list(self.frame.schema.values())

    @cached_property
    def types(self) -> Mapping[int, tuple[Any, str]]:
        """Ordered categories, and the type of others; outside pandas and polars every type."""
        found = ((j, self._type_of(j, dtype)) for j, dtype in enumerate(self.dtypes))
        return {j: each for j, each in found if each is not None}

    def _type_of(self, j: int, dtype: nw.dtypes.DType) -> tuple[Any, str] | None:
        if isinstance(dtype, nw.Enum):
            levels = levels_of(self.column(j).values)
            shown = ", ".join(map(str, levels[:4])) + ", ..." * (len(levels) > 4)
            return tuple(levels), f"of the ordered categories {shown}"
        if isinstance(dtype, nw.Categorical) and self.name == "pandas":
            own = self.column(j).values.to_native().cat.categories
            return (str(own.dtype), f"of categories of type {own.dtype}") if len(own) else None
        joins = self.name in ("pandas", "polars")
        return None if joins else (dtype, f"of type {dtype}")

    def __reduce__(self) -> Any:
        return container_of, (self.frame.to_native(),)

    def described(self, j: int) -> InputColumn:
        """Name, type and categories of a column."""
        series = self.column(j).values
        name, dtype = str(series.name), getattr(series.to_native(), "dtype", None)
        if not isinstance(series.dtype, nw.Categorical | nw.Enum):
            return InputColumn(name, str(series.dtype if dtype is None else dtype))
        if series.implementation.is_polars():
            levels = series.dtype.categories if isinstance(series.dtype, nw.Enum) else None
            categories = None if levels is None else np.asarray(levels)
            return InputColumn(name, type(dtype).__name__, levels=categories)
        levels = getattr(dtype, "categories", None)
        if levels is None or not _read_as(series, levels):
            return InputColumn(name)
        ordered = bool(getattr(dtype, "ordered", False))
        return InputColumn(name, "category", levels=levels.to_numpy(), ordered=ordered)

    def constant(self, j: int) -> NDArray[Any]:
        """See `Container.constant`."""
        series = self.column(j).values
        known = series.drop_nulls().to_numpy()
        if not len(known):
            return np.array([np.nan if series.dtype.is_numeric() else None])
        value = _first_known(known, None).tolist()
        plain = isinstance(value[0], str | bool | int | float)
        return np.asarray(value) if plain else objects(value)


def frame_of(
    library: Any,
    columns: Sequence[InputColumn],
    vectors: Sequence[NDArray[Any]],
    names: Sequence[Any],
) -> Any:
    """A DataFrame of the library with these columns, in their types as far as they go."""
    if library == "pandas":
        frame = _library("pandas").DataFrame(
            {j: _pandas_series(v, columns[j]) for j, v in enumerate(vectors)}
        )
        frame.columns = list(names)
        return frame
    if library == "polars":
        pairs = zip(vectors, columns, strict=True)
        return _library("polars").DataFrame([_polars_series(v, c) for v, c in pairs])
    values = dict(zip(names, vectors, strict=True))
    return nw.from_dict(values, backend=library).to_native()


def _read_as(series: nw.Series[Any], levels: Any) -> bool:
    """Whether values read as these categories do: dates, for example, become numbers in NumPy."""
    known = set(levels.to_numpy().tolist())
    return all(value in known for value in series.drop_nulls().to_numpy()[:100].tolist())


def _pandas_series(vector: NDArray[Any], column: InputColumn) -> Any:
    pd = _library("pandas")
    if column.levels is not None:
        return pd.Categorical(vector, categories=column.levels, ordered=column.ordered)
    series = pd.Series(vector.astype(object) if column.dtype == "object" else vector)
    try:
        return series.astype(column.dtype) if column.dtype else series
    except (TypeError, ValueError):  # a type of another version; the values matter more
        return series


def _polars_series(vector: NDArray[Any], column: InputColumn) -> Any:
    pl = _library("polars")
    kind: Any = getattr(pl, column.dtype, None)
    if not isinstance(kind, type) or not issubclass(kind, pl.DataType):
        kind = None
    if column.dtype == "Enum" and column.levels is not None:
        kind = pl.Enum(column.levels.tolist())
    return pl.Series(column.name, vector.tolist(), dtype=kind)


def _library(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as error:
        raise DataError(
            f"the model was fitted on a {name} DataFrame, but {name} is not installed",
            "install it",
            value=name,
        ) from error


def arranged(result: Any, like: Any) -> Any:
    """`result` with the column order, and in pandas the index, of the DataFrame `like`."""
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


def levels_of(series: nw.Series[Any]) -> list[Any]:
    """The categories of a categorical type; none where it does not list them."""
    levels: Any = getattr(getattr(series.to_native(), "dtype", None), "categories", None)
    return list(levels) if hasattr(levels, "__len__") else []


def _same_categories(frames: Sequence[Any]) -> list[Any]:
    """DataFrames of pandas, whose categorical columns have the categories of all of them, in the
    order in which they come."""
    result = [frame.copy(deep=False) for frame in frames]
    for j, dtypes in enumerate(zip(*(frame.dtypes for frame in frames), strict=True)):
        known = [t for t in dtypes if len(getattr(t, "categories", ()))]
        if not known or len(set(dtypes)) == 1 or not all(hasattr(t, "categories") for t in dtypes):
            continue
        categories = known[0].categories.append([t.categories for t in known[1:]]).unique()
        for frame in result:
            frame.isetitem(j, frame.iloc[:, j].astype(type(known[0])(categories)))
    return result


# --- matrices --------------------------------------------------------------------------


class Matrix(Container):
    """An (n, p) array, perhaps masked, or a SciPy sparse matrix."""

    def __init__(
        self, array: Any, labels: Sequence[Any] | None = None, members: Members | None = None
    ) -> None:
        self.is_sparse = sparse.issparse(array)
        name = "sparse matrix" if self.is_sparse else "array"
        own = "sparse array" if isinstance(array, sparse.sparray) else name
        super().__init__(own, name, array.shape, labels, members)
        self.whole = array
        self.array: Any = array if self.is_sparse else np.asarray(array)
        self.mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None

    def grouped(self, labels: Sequence[Any], members: Members) -> Matrix:
        """The same with a group of its columns for each label."""
        return Matrix(self.whole, labels, members)

    @property
    def ones(self) -> Any:
        """See `Container.ones`."""
        return self.array if self.is_sparse and self.members is None else None

    @cached_property
    def _by_columns(self) -> Any:
        return self.array.tocsc() if self.is_sparse else self.array

    def column(self, j: int) -> Column:
        """A dense vector, or the block of a group."""
        if self.ones is not None:
            return Column(self._by_columns[:, [j]].toarray().ravel())
        chosen = j if self.members is None else self.members[j]
        mask = None if self.mask is None else self.mask[:, chosen]
        return Column(self._by_columns[:, chosen], mask)

    def columns(self, wanted: Collection[int] | None = None) -> Iterator[tuple[int, Column]]:
        """See `Container.columns`; numbers are read many columns at once."""
        if self.is_sparse or self.members is not None or self.array.dtype.kind not in "biuf":
            yield from super().columns(wanted)
            return
        for j, values in enumerate(contiguous_columns(self.array)):
            if wanted is None or j in wanted:
                yield j, Column(values, None if self.mask is None else self.mask[:, j])

    def take(self, rows: Mask) -> Matrix:
        """See `Container.take`."""
        return Matrix(_taken(self.whole, rows), self.own_names, self.members)

    def copied(self) -> Matrix:
        """See `Container.copied`."""
        return Matrix(_copied(self.whole))

    def concat(self, others: Sequence[Matrix]) -> Any:
        """See `Container.concat`; of sparse matrices a CSR of SciPy's kind of the first."""
        return _concatenated([self.whole, *(other.whole for other in others)])

    def described(self, j: int) -> InputColumn:
        """See `Container.described`; no column is read."""
        name = f"x{j}" if self.own_names is None else str(self.own_names[j])
        grouped = "sparse" if self.is_sparse else "dense"
        form = "vector" if self.members is None else grouped
        return InputColumn(name, self._dtype, form)

    @cached_property
    def _dtype(self) -> str:
        return dtype_name(self.array.dtype)

    def constant(self, j: int) -> NDArray[Any] | None:
        """See `Container.constant`."""
        if not self.is_sparse:
            return super().constant(j)
        row = sparse.csr_array(self.array)[[0]].toarray()[0]
        return np.asarray(row[[j] if self.members is None else self.members[j]])


# --- blocks ----------------------------------------------------------------------------


class Blocks(Container):
    """A dict or list with a vector or an (n, d) block for each variable; `keys` of a dict."""

    def __init__(self, blocks: Sequence[Any], keys: Sequence[Any] | None) -> None:
        name, n = "list" if keys is None else "dict", blocks[0].shape[0] if blocks else 0
        super().__init__(name, f"{name} of blocks", (n, len(blocks)), keys)
        self.blocks = blocks

    def column(self, j: int) -> Column:
        """See `Container.column`."""
        block = self.blocks[j]
        if not np.ma.isMaskedArray(block):
            return Column(block)
        return Column(np.asarray(block), np.ma.getmaskarray(block))

    @property
    def has_blocks(self) -> bool:
        """See `Container.has_blocks`."""
        return any(block.ndim == 2 for block in self.blocks)

    def select(self, names: Sequence[Any]) -> Blocks:
        """See `Container.select`."""
        own = dict(zip(self.own_names or (), self.blocks, strict=True))
        return Blocks([own[name] for name in names], names)

    def copied(self) -> Blocks:
        """See `Container.copied`."""
        return Blocks([_copied(block) for block in self.blocks], self.own_names)

    def concat(self, others: Sequence[Blocks]) -> Any:
        """See `Container.concat`; a list or dict."""
        parts = zip(self.blocks, *(other.blocks for other in others), strict=True)
        blocks = [_concatenated(part) for part in parts]
        names = self.own_names
        return blocks if names is None else dict(zip(names, blocks, strict=True))

    @property
    def types(self) -> Mapping[int, tuple[Any, str]]:
        """How a block is stored, and its width."""
        return {j: _stored_as(block) for j, block in enumerate(self.blocks)}

    def take(self, rows: Mask) -> Blocks:
        """See `Container.take`."""
        return Blocks([_taken(block, rows) for block in self.blocks], self.own_names)


def _stored_as(block: Any) -> tuple[str, str]:
    form = form_of(block)
    if form == "vector":
        return form, "a vector"
    wide = f"{form}, {block.shape[1]} columns wide"
    return wide, wide


def _taken(block: Any, rows: Mask) -> Any:
    return sparse.csr_array(block)[rows] if sparse.issparse(block) else block[rows]


def _copied(block: Any) -> Any:
    """A copy of an array, or of a sparse matrix as CSR."""
    if not sparse.issparse(block):
        return block.copy()
    csr = sparse.csr_array if isinstance(block, sparse.sparray) else sparse.csr_matrix
    return csr(block, copy=True)


def _concatenated(parts: Sequence[Any]) -> Any:
    """The rows of arrays, or of sparse matrices, of perhaps different types; always a copy."""
    if sparse.issparse(parts[0]):
        csr = type(parts[0])
        return csr(sparse.vstack(parts, format="csr"))
    masked = any(isinstance(part, np.ma.MaskedArray) for part in parts)
    return np.ma.concatenate(parts) if masked else np.concatenate(parts)


def _blocks(X: Any) -> Blocks:
    """Blocks of one or two dimensions, all with as many rows."""
    keys = list(X) if isinstance(X, Mapping) else None
    values = list(X.values()) if isinstance(X, Mapping) else list(X)
    names = [f"x{j}" for j in range(len(values))] if keys is None else list(map(str, keys))
    blocks = [_block(value, name) for value, name in zip(values, names, strict=True)]
    for block, name in zip(blocks, names, strict=True):
        n, expected = block.shape[0], blocks[0].shape[0]
        if n != expected:
            raise DataError(
                f"blocks must have the same number of samples: {names[0]!r} has {expected}, "
                f"{name!r} has {n}",
                "align the rows",
                value=n,
                column=name,
            )
    return Blocks(blocks, keys)


def _block(value: Any, name: str) -> Any:
    """A sparse matrix or an array of one or two dimensions, as it is."""
    kept = sparse.issparse(value) or isinstance(value, np.ma.MaskedArray)
    block = value if kept else np.asarray(value)
    if block.ndim not in (1, 2):
        raise DataError(
            f"block {name!r} has {block.ndim} dimensions (shape {block.shape})",
            "a block is (n, d) or a vector of n categories. Reshape your data",
            column=name,
            value=block.shape,
        )
    if block.ndim == 2 and block.shape[1] == 0:
        raise DataError(
            f"block {name!r} has 0 columns (shape {block.shape})",
            "drop it",
            column=name,
            value=block.shape,
        )
    if block.dtype.kind == "c":
        raise complex_data()
    return block


# --- tables ----------------------------------------------------------------------------


class TableInput(Container):
    """A `Table` that is passed again; columns are labels, numbers or blocks."""

    def __init__(self, table: Table) -> None:
        super().__init__("table", "Table", (table.n_samples, table.n_vars), table.names)
        self.table = table

    @property
    def ones(self) -> Any:
        """See `Container.ones`."""
        return self.table.matrix if self.table.kind == "sparse_binary" else None

    def column(self, j: int) -> Column:
        """Labels of a categorical variable, the numbers of another."""
        table, labels = self.table, self.table.categories[j]
        if table.values is not None and j in table.values.arrays:
            return Column(table.values.arrays[j])
        stored = table.codes if table.values is None else table.values.codes
        block = None
        if table.matrix is not None:
            block = table.matrix[:, table.offsets[j] : table.offsets[j + 1]]
        if table.kind == "sparse_binary":
            assert block is not None
            return Column(block.toarray().ravel())
        if block is not None and labels is None:
            return Column(block)
        if stored is not None:
            codes = stored[:, j]
        else:
            assert block is not None
            codes = np.full(table.n_samples, -1)  # labels of a block: it is one-hot
            codes[np.diff(block.indptr) > 0] = block.indices
        if labels is None:
            return Column(codes, codes < 0)
        levels = tuple(labels.tolist()) if table.families[j] == "ordinal" else None
        return Column(labels[codes], codes < 0, levels)

    def constant(self, j: int) -> None:
        """None: a table does not have the values of variables that were left out."""


# --- any input -------------------------------------------------------------------------


def container_of(X: Any, groups: Groups | None = None) -> Container:
    """The container of an input, with its columns in groups where these are given."""
    _reject_unreadable(X)
    if isinstance(X, Table):
        return TableInput(X)
    if sparse.issparse(X):
        check_shape(X.shape, 0)
        return _grouped(Matrix(X), groups)
    frame = as_frame(X)
    blocks = frame is None and is_blocks(X)
    if groups is not None and (frame is not None or blocks):
        raise _no_groups(X)
    if frame is not None:
        return Frame(frame)
    if blocks:
        return _blocks(X)
    return _grouped(Matrix(_as_matrix(X)), groups)


def _grouped(matrix: Matrix, groups: Groups | None) -> Matrix:
    return matrix if groups is None else matrix.grouped(*group_columns(groups, matrix.shape[1]))


def _no_groups(X: Any) -> DataError:
    return DataError(
        Text(Option("groups"), f" is for a sparse or numeric matrix, got {type(X).__name__}"),
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


def _reject_unreadable(X: Any) -> None:
    """Raise for what is no table (None, paths, Dask) and for damaged sparse matrices."""
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
    for part in [X] if sparse.issparse(X) else _parts(X):
        if sparse.issparse(part):
            check_sparse(part)


def _parts(X: Any) -> Iterable[Any]:
    return X.values() if isinstance(X, Mapping) else X if isinstance(X, list | tuple) else ()


def is_blocks(X: Any) -> bool:
    """Whether `X` is a dict, or a list of arrays: a variable for each item."""
    if isinstance(X, Mapping):
        return True
    return isinstance(X, list | tuple) and any(
        sparse.issparse(item) or isinstance(item, np.ndarray) for item in X
    )


def _as_matrix(X: Any) -> NDArray[Any]:
    """The (n, p) array of a rectangular table; a masked array stays masked."""
    try:
        array = np.ma.asarray(X) if isinstance(X, np.ma.MaskedArray) else np.asarray(X)
    except ValueError as error:
        raise DataError(
            f"X is not a rectangular table ({error})", "give all rows one length"
        ) from error
    if array.dtype.kind == "c":
        raise complex_data()
    check_shape(array.shape, 0)
    return array


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` through narwhals, or None where it is no DataFrame."""
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
    """Raise if column names have several levels."""
    if getattr(columns, "nlevels", 1) > 1:
        first = tuple(map(str, columns[0]))
        raise DataError(
            f"the columns of X have {columns.nlevels} levels (the first is {first}), a "
            "variable has one name",
            "join them: X.columns = ['/'.join(map(str, c)) for c in X.columns]",
            value=first,
        )
