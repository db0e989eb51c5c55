"""DataFrames of any library, by narwhals; what it leaves out is asked of the library itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from sklearn import get_config

from latenttree.data.checks import resolve_names
from latenttree.data.columns.codes import objects
from latenttree.data.columns.vectors import Column
from latenttree.data.containers.interface import Container, InputColumn, first_known
from latenttree.errors import DataError

FRAMES = ("pandas", "polars", "pyarrow", "modin", "cudf")


class Frame(Container):
    """A DataFrame of any library that narwhals reads."""

    own_names: Sequence[Any]

    def __init__(self, frame: nw.DataFrame[Any]) -> None:
        name = frame.implementation.name.lower()
        super().__init__(name, f"{name} DataFrame", frame.shape, frame.columns)
        self.frame = frame

    @cached_property
    def dtypes(self) -> list[nw.dtypes.DType]:
        """Types of the columns."""
        return list(self.frame.schema.values())

    def column(self, j: int) -> Column:
        """A series of narwhals."""
        return Column(self.frame.get_column(self.own_names[j]))

    def mapped(self, change: Callable[[Any], Any]) -> Frame:
        """See `Container.mapped`."""
        return Frame(change(self.frame))

    def select(self, names: Sequence[Any]) -> Frame:
        """See `Container.select`."""
        if self.frame.columns == list(names):
            return self
        return _frame_of_native(_selected(self.frame.to_native(), names))

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
        return _frame_of_native, (self.frame.to_native(),)

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
        value = first_known(known).tolist()
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
        what = f"the model was fitted on a {name} DataFrame, but {name} is not installed"
        raise DataError(what, "install it", value=name) from error


def arranged(result: Any, like: Any) -> Any:
    """`result` with the column order, and in pandas the index, of the DataFrame `like`."""
    if type(result) is not type(like):
        return result
    own, other = as_frame(result), as_frame(like)
    if own is None or other is None:
        return result
    if set(other.columns) <= set(own.columns):
        result = _selected(result, other.columns)
    if hasattr(like, "iloc"):
        result.index = like.index
    return result


def _selected(native: Any, names: Sequence[Any]) -> Any:
    """Columns in this order; the names of pandas need not be text, as narwhals asks."""
    return native[list(names)] if hasattr(native, "iloc") else native.select(list(names))


def _frame_of_native(native: Any) -> Frame:
    return Frame(nw.from_native(native, eager_only=True))


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


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """`X` through narwhals, or None where it is no DataFrame."""
    if isinstance(X, np.ndarray | list | tuple | dict):
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # only pandas allows repeated names
        _check_levels(X.columns)
        resolve_names(None, len(X.columns), list(X.columns))
    frame = nw.from_native(X, pass_through=True, allow_series=True)
    if isinstance(frame, nw.LazyFrame):
        what = f"X is a lazy frame ({type(X).__name__})"
        raise DataError(what, "call .collect() first", value=type(X).__name__)
    if isinstance(frame, nw.Series):
        what = f"expected a table, got a single series of length {len(frame)}"
        raise DataError(what, "Reshape your data: X.to_frame()", value=len(frame))
    return frame if isinstance(frame, nw.DataFrame) else None


def _check_levels(columns: Any) -> None:
    """Raise if column names have several levels."""
    if getattr(columns, "nlevels", 1) > 1:
        first = tuple(map(str, columns[0]))
        what = f"the columns of X have {columns.nlevels} levels (the first is {first})"
        what += ", a variable has one name"
        remedy = "join them: X.columns = ['/'.join(map(str, c)) for c in X.columns]"
        raise DataError(what, remedy, value=first)


def library_of_tables(estimator: Any) -> str:
    """The library of the tables that an estimator returns: "polars" after
    `set_output(transform="polars")`, for it or in the configuration of scikit-learn; else "pandas",
    or "polars" where pandas is not installed."""
    chosen = getattr(estimator, "_sklearn_output_config", {}).get("transform")
    chosen = chosen or get_config()["transform_output"]
    if chosen in ("pandas", "polars"):
        return str(chosen)
    return "polars" if not find_spec("pandas") and find_spec("polars") else "pandas"


def table_of(columns: Mapping[str, Any], library: str = "pandas") -> Any:
    """A DataFrame of these columns, each a sequence or a NumPy array; of pandas with the numbers of
    the rows as index."""
    try:
        return import_module(library).DataFrame(dict(columns))
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        what = f"tables are {library} DataFrames, and {library} is not installed"
        raise ImportError(f"{what}; run: pip install {library}") from error
