"""Buffers of DataFrames: every column compact, and joined again with the type it would have had.

A column may change its type between batches as far as its library can join them: integers become
floats where values are missing, and a column without any value has no type of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.batches.arrays import check_names
from latenttree.data.batches.pieces import (
    Labels,
    Piece,
    Run,
    join_pieces,
    kinds_of,
    object_array,
    same_kind,
    smallest_dtype,
    with_piece,
    with_run,
)
from latenttree.data.checks import check_finite
from latenttree.data.columns.vectors import unsupported_dtype
from latenttree.errors import DataError

Encoded = tuple[Run[Any], set[str]]
"""The rows of one batch, and the kinds of values among them (see `kinds_of`)."""


class Library(Protocol):
    """Operations that differ between libraries of DataFrames."""

    def encoded(self, series: Any, column: ColumnBuffer) -> Encoded:
        """A column of a batch, in compact form."""

    def decoded(self, run: Run[Any], labels: Labels) -> Any:
        """A column of the library with the rows of a run."""

    def concatenated(self, columns: Sequence[Any]) -> Any:
        """Columns of perhaps different types, one after another."""

    def columns(self, frame: Any) -> Mapping[Any, Any]:
        """The columns of a DataFrame by name."""

    def header(self, frame: Any) -> Any:
        """The names of the columns of a DataFrame, as it has them."""

    def frame(self, columns: Sequence[Any], header: Any) -> Any:
        """A DataFrame of columns under a header."""


@dataclass(frozen=True, eq=False)
class ColumnBuffer:
    """Rows of a column: runs of one type, labels for all of them, and the kind of its values."""

    name: str
    runs: tuple[Run[Any], ...] = ()
    labels: Labels = field(default_factory=Labels)
    kind: str | None = None

    def added(self, series: Any, library: Library) -> ColumnBuffer:
        """With the rows of this column in one more batch."""
        run, kinds = library.encoded(series, self)
        kind = same_kind(self.kind, kinds, self.name)
        join = join_pieces if isinstance(run.pieces[0], Piece) else library.concatenated
        return replace(self, runs=with_run(self.runs, run, join), kind=kind)

    def joined(self, library: Library) -> Any:
        """All rows as a column of the library."""
        parts = [library.decoded(run, self.labels) for run in self.runs]
        return parts[0] if len(parts) == 1 else library.concatenated(parts)

    @property
    def nbytes(self) -> int:
        """Memory of rows and labels."""
        pieces = [piece for run in self.runs for piece in run.pieces]
        return sum(int(getattr(piece, "nbytes", 0)) for piece in pieces) + self.labels.nbytes


@dataclass(frozen=True, eq=False)
class FrameBuffer:
    """Rows of DataFrames of pandas or polars."""

    library: Library
    header: Any
    names: tuple[Any, ...]
    columns: tuple[ColumnBuffer, ...]

    @classmethod
    def empty(cls, frame: nw.DataFrame[Any]) -> FrameBuffer:
        """A buffer without rows, with the columns of `frame`."""
        names = tuple(frame.columns)
        library: Library = Pandas() if frame.implementation.is_pandas() else Polars()
        columns = tuple(ColumnBuffer(str(name)) for name in names)
        return cls(library, library.header(frame.to_native()), names, columns)

    def added(self, frame: nw.DataFrame[Any]) -> FrameBuffer:
        """With the rows of one more DataFrame, whose columns may be in any order."""
        check_names(frame.columns, self.names)
        native = self.library.columns(frame.to_native())
        ordered = (native[name] for name in self.names)
        parts = zip(self.columns, ordered, strict=True)
        return replace(self, columns=tuple(c.added(x, self.library) for c, x in parts))

    def joined(self) -> Any:
        """All rows as one DataFrame of the library."""
        return self.library.frame([c.joined(self.library) for c in self.columns], self.header)

    @property
    def nbytes(self) -> int:
        """Memory of all columns."""
        return sum(column.nbytes for column in self.columns)


def _check_type(series: nw.Series[Any], name: str) -> None:
    """Raise unless a type can be read; a column that is all missing has none."""
    dtype = series.dtype
    known = nw.Categorical | nw.Enum | nw.Boolean | nw.String | nw.Object
    if dtype.is_numeric() or isinstance(dtype, known) or series.null_count() == len(series):
        return
    raise unsupported_dtype(name, dtype)


def _text(values: list[Any], dtype: Any, labels: Labels) -> Encoded:
    codes, local = labels.codes(values)
    return Run(dtype, (Piece(codes),), coded=True), kinds_of(local)


def _numbers(values: NDArray[Any], gaps: NDArray[np.bool_], dtype: Any, name: str) -> Encoded:
    """Numbers or booleans; values in gaps have no meaning."""
    kind = values.dtype.kind
    if kind == "f":
        check_finite(values[:, None], [name])
    kept = smallest_dtype(values) if kind in "iu" else values.copy()
    lost = gaps | np.isnan(values) if kind == "f" else gaps
    kinds = set() if lost.all() else {"booleans" if kind == "b" else "numbers"}
    return Run(dtype, (Piece(kept, gaps.copy() if gaps.any() else None),)), kinds


# ---- pandas -------------------------------------------------------------------------------


class Pandas:
    """Columns of pandas; the index is dropped."""

    def encoded(self, series: Any, column: ColumnBuffer) -> Encoded:
        """See `Library.encoded`."""
        pd, dtype = import_module("pandas"), series.dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return self._categories(series, column)
        if isinstance(dtype, np.dtype) and dtype.kind in "biuf":
            values = series.to_numpy()
            return _numbers(values, np.zeros(len(values), dtype=np.bool_), dtype, column.name)
        base = getattr(dtype, "numpy_dtype", None)  # of nullable types
        if base is not None and np.dtype(base).kind in "biuf":
            gaps = series.isna().to_numpy(dtype=np.bool_)
            filler = {"b": False, "f": np.nan}.get(np.dtype(base).kind, 0)
            values = series.to_numpy(dtype=base, na_value=filler)
            return _numbers(values, gaps, dtype, column.name)
        if pd.api.types.is_object_dtype(dtype) or pd.api.types.is_string_dtype(dtype):
            return _text(series.to_numpy(dtype=object).tolist(), dtype, column.labels)
        _check_type(nw.from_native(series, series_only=True), column.name)
        return Run(dtype, (series.reset_index(drop=True).copy(),)), kinds_of(series.tolist()[:1])

    def _categories(self, series: Any, column: ColumnBuffer) -> Encoded:
        """Codes among the categories of all batches, those of the first first."""
        dtype, last = series.dtype, column.runs[-1].dtype if column.runs else None
        if last is not None and hasattr(last, "categories"):
            dtype = _united(last, dtype, column.name)
        position = dtype.categories.get_indexer(series.dtype.categories)
        own = series.cat.codes.to_numpy()
        codes = smallest_dtype(np.where(own < 0, -1, np.append(position, -1)[own]))
        used = series.dtype.categories[np.unique(own[own >= 0])]
        run = Run(dtype, (Piece(codes),), coded=True, growing="category")
        return run, kinds_of(used.tolist())

    def decoded(self, run: Run[Any], labels: Labels) -> Any:
        """See `Library.decoded`."""
        pd, first = import_module("pandas"), run.pieces[0]
        if not isinstance(first, Piece):
            return self.concatenated(run.pieces)
        whole = join_pieces(list(run.pieces))
        if isinstance(run.dtype, pd.CategoricalDtype):
            return pd.Series(pd.Categorical.from_codes(whole.values, dtype=run.dtype))
        if run.coded:
            return pd.Series(object_array(labels.values)[whole.values], dtype=run.dtype)
        if isinstance(run.dtype, np.dtype):
            return pd.Series(whole.values.astype(run.dtype))
        values = pd.array(whole.values.astype(run.dtype.numpy_dtype), dtype=run.dtype)
        if whole.gaps is not None:
            values[whole.gaps] = pd.NA
        return pd.Series(values)

    def concatenated(self, columns: Sequence[Any]) -> Any:
        """See `Library.concatenated`."""
        return import_module("pandas").concat(list(columns), ignore_index=True)

    def columns(self, frame: Any) -> Mapping[Any, Any]:
        """See `Library.columns`."""
        return dict(frame.items())

    def header(self, frame: Any) -> Any:
        """See `Library.header`."""
        return frame.columns

    def frame(self, columns: Sequence[Any], header: Any) -> Any:
        """See `Library.frame`."""
        frame = import_module("pandas").DataFrame(dict(enumerate(columns)))
        frame.columns = header
        return frame


def _united(known: Any, new: Any, name: str) -> Any:
    """The type with the categories of both; raises if ordered categories differ."""
    if known.ordered == new.ordered and known.categories.equals(new.categories):
        return known
    if known.ordered or new.ordered:
        raise DataError(
            f"column {name!r} has ordered categories that are not those of earlier batches "
            f"({_listed(new)}, before {_listed(known)})",
            "give every batch the same categories",
            value=tuple(new.categories),
            column=name,
        )
    if not len(known.categories):
        return new
    fresh = new.categories[~new.categories.isin(known.categories)]
    if len(new.categories) and new.categories.dtype != known.categories.dtype:
        raise DataError(
            f"column {name!r} has categories of type {new.categories.dtype}, but "
            f"{known.categories.dtype} in earlier batches",
            "convert them",
            column=name,
            value=new.categories.dtype,
        )
    return type(known)(known.categories.append(fresh)) if len(fresh) else known


def _listed(dtype: Any) -> str:
    shown = ", ".join(map(str, dtype.categories[:4]))
    return f"{shown}, ..." if len(dtype.categories) > 4 else shown


# ---- polars -------------------------------------------------------------------------------


class Polars:
    """Columns of polars."""

    def encoded(self, series: Any, column: ColumnBuffer) -> Encoded:
        """See `Library.encoded`."""
        pl, dtype = import_module("polars"), series.dtype
        gaps = series.is_null().to_numpy()
        if dtype == pl.Null:
            return Run(dtype, (Piece(np.zeros(len(gaps), dtype=np.uint8), gaps),)), set()
        if dtype in _plain_types(pl):
            filler = False if dtype == pl.Boolean else 0
            values = series.fill_null(filler).to_numpy()
            return _numbers(values, gaps, dtype, column.name)
        if dtype == pl.Enum:
            return self._levels(series, gaps, column)
        if dtype in (pl.String, pl.Categorical):
            return _text(series.cast(pl.String).to_list(), dtype, column.labels)
        _check_type(nw.from_native(series, series_only=True), column.name)
        return Run(dtype, (series.clone(),)), kinds_of(series.head(1).to_list())

    def _levels(self, series: Any, gaps: NDArray[np.bool_], column: ColumnBuffer) -> Encoded:
        enum = import_module("polars").Enum
        last = column.runs[-1].dtype if column.runs else series.dtype
        if isinstance(last, enum) and last != series.dtype:
            raise DataError(
                f"column {column.name!r} is an Enum of other categories than in earlier batches",
                "give every batch the same categories",
                column=column.name,
            )
        values = smallest_dtype(series.to_physical().fill_null(0).to_numpy())
        piece = Piece(values, gaps if gaps.any() else None)
        return Run(series.dtype, (piece,)), set() if gaps.all() else {"text"}

    def decoded(self, run: Run[Any], labels: Labels) -> Any:
        """See `Library.decoded`."""
        pl, first = import_module("polars"), run.pieces[0]
        if not isinstance(first, Piece):
            return self.concatenated(run.pieces)
        whole = join_pieces(list(run.pieces))
        if run.coded:
            table = pl.Series(
                [v if isinstance(v, str) else None for v in labels.values], dtype=pl.String
            )
            return table.gather(whole.values).cast(run.dtype)
        if run.dtype == pl.Null:
            return pl.Series([None] * len(whole), dtype=pl.Null)
        if run.dtype == pl.Enum:
            series = pl.Series(run.dtype.categories).gather(whole.values).cast(run.dtype)
        else:
            series = pl.Series(whole.values).cast(run.dtype)
        if whole.gaps is None:
            return series
        return series.zip_with(pl.Series(whole.known), pl.Series([None], dtype=run.dtype))

    def concatenated(self, columns: Sequence[Any]) -> Any:
        """See `Library.concatenated`."""
        frames = [column.alias("x").to_frame() for column in columns]
        return import_module("polars").concat(frames, how="vertical_relaxed")["x"]

    def columns(self, frame: Any) -> Mapping[Any, Any]:
        """See `Library.columns`."""
        return {series.name: series for series in frame.get_columns()}

    def header(self, frame: Any) -> Any:
        """See `Library.header`."""
        return list(frame.columns)

    def frame(self, columns: Sequence[Any], header: Any) -> Any:
        """See `Library.frame`."""
        named = [column.alias(name) for column, name in zip(columns, header, strict=True)]
        return import_module("polars").DataFrame(named)


def _plain_types(pl: Any) -> tuple[Any, ...]:
    whole = (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64)
    return (pl.Boolean, pl.Float32, pl.Float64, *whole)


# ---- other libraries ------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class OtherFrameBuffer:
    """Rows of DataFrames of any other library that narwhals reads, as they came."""

    names: tuple[str, ...]
    pieces: tuple[nw.DataFrame[Any], ...] = ()

    def added(self, frame: nw.DataFrame[Any]) -> OtherFrameBuffer:
        """With one more DataFrame of the same columns and types."""
        check_names(frame.columns, self.names)
        ordered = frame.select(self.names)
        for name, dtype in ordered.schema.items():
            _check_type(ordered.get_column(name), name)
            known = self.pieces[0].schema[name] if self.pieces else dtype
            if dtype != known:
                raise DataError(
                    f"column {name!r} has type {dtype}, but {known} in earlier batches",
                    "cast it",
                    column=name,
                    value=dtype,
                )
        return replace(self, pieces=with_piece(self.pieces, ordered.clone(), nw.concat))

    def joined(self) -> Any:
        """All rows as one DataFrame of the library."""
        return nw.concat(list(self.pieces)).to_native()

    @property
    def nbytes(self) -> int:
        """Memory of all pieces, as the library estimates it."""
        return sum(int(piece.estimated_size()) for piece in self.pieces)
