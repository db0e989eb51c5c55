"""`Batches`: samples that come a part at a time, stored until all of them are needed together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import check_finite, check_shape, column_error, coordinate_names
from latenttree.data.columns.block_variables import check_block
from latenttree.data.columns.blocks import checked_csr
from latenttree.data.columns.vectors import Column, kind_of, training_vector
from latenttree.data.containers import Container, Frame, Matrix, container_of, levels_of
from latenttree.data.weights import checked_numbers
from latenttree.errors import DataError

Floats = NDArray[np.float64]


class ColumnKind(NamedTuple):
    """What a column held in all batches so far: "numbers", "booleans", "text", or None where
    nothing is known; and whether its arrays were all of a numeric type, so that they are joined as
    numbers whichever of the two they held."""

    word: str | None
    numeric: bool = False


class Batch(NamedTuple):
    """A copy of the rows of a batch, and their weights."""

    rows: Container
    weights: Floats | None


class Batches:
    """A list of batches of rows, joined when they are needed.

    Batches are of one kind: arrays (or lists of rows), sparse matrices, dicts or lists of blocks,
    DataFrames of one library. Columns of DataFrames and dicts are found by name, in any order;
    those of arrays and lists by position.

    A copy of each batch is stored in its own types: as many bytes as the caller's, some hundred
    more for a batch (some thousand for a DataFrame), and 8 for the weight of a row. While they are
    joined, all rows are in memory twice.

    Examples
    --------
    >>> import numpy as np
    >>> from latenttree.data.batches import Batches
    >>> batches = Batches()
    >>> batches.add(np.array([[1, 300]]))
    >>> batches.add(np.array([[2, 5], [0, 7]]))
    >>> batches.joined()
    (array([[  1, 300],
           [  2,   5],
           [  0,   7]]), None)
    """

    def __init__(self) -> None:
        self._batches: list[Batch] = []
        self._kinds: tuple[ColumnKind, ...] = ()

    @property
    def n_batches(self) -> int:
        """Batches added so far."""
        return len(self._batches)

    @property
    def n_rows(self) -> int:
        """Rows of all batches."""
        return sum(batch.rows.shape[0] for batch in self._batches)

    def add(self, X: Any, sample_weight: Any = None) -> None:
        """Store a copy of one more batch, of one row or more.

        Raises
        ------
        DataError : where the batch does not fit those before it: another container, absent or
            unknown columns, another width, values of another kind. Nothing of it is stored then.
            Batches are numbered from 1.
        """
        try:
            batch, kinds = self._checked(X, sample_weight)
        except DataError as error:
            raise error.within(f"batch {self.n_batches + 1}") from None
        self._batches.append(batch)
        self._kinds = kinds

    def _checked(self, X: Any, sample_weight: Any) -> tuple[Batch, tuple[ColumnKind, ...]]:
        rows = container_of(X)
        if rows.name == "table":
            raise DataError("it is a Table, which cannot be joined", "pass the rows it was made of")
        check_shape(rows.shape, 1)
        if self._batches:
            rows = _like(rows, self._batches[0].rows)
        _check_types(rows, self._batches)
        before = self._kinds or (ColumnKind(None, True),) * rows.shape[1]
        kinds = _kinds(rows)
        if kinds != before:
            kinds = tuple(map(_same_kind, before, kinds, rows.names))
        n = rows.shape[0]
        weights = None if sample_weight is None else checked_numbers(sample_weight, n)
        return Batch(rows.copied(), weights), tuple(kinds)

    def joined(self) -> tuple[Any, Floats | None]:
        """All rows in the container that they came in, and their weights (None: no batch had any;
        else rows of batches without weights count once).

        The rows are what the caller would have had by joining the batches, also in the types of
        their columns; categories are those of all batches. The result shares no memory with the
        batches."""
        if not self._batches:
            raise DataError("there are no batches to join", "add one first")
        weights = None
        if any(batch.weights is not None for batch in self._batches):
            known = ((batch.weights, batch.rows.shape[0]) for batch in self._batches)
            weights = np.concatenate([np.ones(n) if own is None else own for own, n in known])
        first, *others = (batch.rows for batch in self._batches)
        return first.concat(others), weights


# --- the same columns --------------------------------------------------------------------


def _like(rows: Container, first: Container) -> Container:
    """The batch with its columns in the order of the first; raises where it has others."""
    if rows.words != first.words:
        what = f"it is {_article(rows.words)}, earlier batches were {_article(first.words)}"
        raise DataError(what, "pass them all in one kind of container", value=rows.words)
    width, expected = rows.shape[1], first.shape[1]
    if first.own_names is not None:
        _check_names(rows.own_names or (), first.own_names)
        rows = rows.select(first.own_names)
    elif width != expected and rows.name == "list":
        what = f"the list has {width} blocks, earlier batches had {expected}"
        raise DataError(what, "give every batch the same blocks", value=width)
    elif width != expected:
        what = f"X has {width} features, but LatentTree is expecting {expected} features as input"
        what += ", as in earlier batches"
        raise DataError(what, "give every batch the same columns", value=width)
    return rows


def _article(words: str) -> str:
    return f"{'an' if words[0] in 'aeiou' else 'a'} {words}"


def _check_names(names: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raise unless a batch has the columns of the first, in any order."""
    now, before = set(names), set(expected)
    missing = [name for name in expected if name not in now]
    wrong = missing or [name for name in names if name not in before]
    if not wrong:
        return
    what, remedy = "is not there", "give every batch the columns of the first"
    if not missing:
        what = "was not in earlier batches"
        remedy = "leave it out, or begin anew with it in every batch"
    more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
    raise column_error(f"column {wrong[0]!r} {what}{more}", remedy, str(wrong[0]), None)


def _check_types(rows: Container, earlier: Sequence[Batch]) -> None:
    """Raise where a column cannot be joined with that of earlier batches."""
    for j, now in rows.types.items():
        before = next((b.rows.types[j] for b in earlier if j in b.rows.types), None)
        if before and now[0] != before[0]:
            name = rows.names[j]
            what = f"column {name!r} is {now[1]}, but {before[1]} in earlier batches"
            raise column_error(what, "give every batch the types of the first", name, now[0])


# --- values of the same kind -------------------------------------------------------------


def _kinds(rows: Container) -> Sequence[ColumnKind]:
    """What each column holds; raises where `fit` could not read it."""
    names, p = rows.names, rows.shape[1]
    if rows.ones is not None:
        checked_csr(rows.ones, names, negative=True)
        return (ColumnKind("numbers", True),) * p
    if isinstance(rows, Frame):
        series = zip(rows.frame.iter_columns(), rows.dtypes, names, strict=True)
        return tuple(ColumnKind(_series_word(*each)) for each in series)
    if not isinstance(rows, Matrix) or rows.array.dtype.kind not in "biuf":
        return tuple(_kind(column, names[j]) for j, column in rows.columns())
    check_finite(rows.array, names)
    kinds = [ColumnKind("booleans" if rows.array.dtype.kind == "b" else "numbers", True)] * p
    gaps = np.isnan(rows.array) if rows.array.dtype.kind == "f" else rows.mask
    for j in () if gaps is None else np.flatnonzero(gaps.all(axis=0)):
        kinds[j] = ColumnKind(None, True)
    return tuple(kinds)


def _kind(column: Column, name: str) -> ColumnKind:
    values = column.values
    if column.is_vector:
        known = training_vector(column, name).known
        return ColumnKind(_word(known[:1].tolist()), values.dtype.kind in "biuf")
    columns = coordinate_names(name, values.shape[1])
    if sparse.issparse(values):
        checked_csr(values, columns, negative=True)
    else:
        check_block(values, columns)
    return ColumnKind("numbers", True)


def _series_word(series: nw.Series[Any], dtype: nw.dtypes.DType, name: str) -> str | None:
    """What a column of a DataFrame holds; its type mostly tells."""
    x = series.to_numpy() if dtype.is_float() else None
    if x is not None and x.dtype.kind == "f":
        check_finite(x[:, None], [name])
        return None if np.isnan(x).all() else "numbers"
    is_known = isinstance(series[0], str | int | np.integer | np.bool_)  # nulls are slow to count
    if not is_known and series.null_count() == len(series):
        return None
    if dtype.is_integer() or isinstance(dtype, nw.Boolean):
        return "numbers" if dtype.is_integer() else "booleans"
    if isinstance(dtype, nw.Categorical | nw.Enum):
        return _word(levels_of(series)[:1] or [""])
    if isinstance(dtype, nw.String):
        return "text"
    return _word(training_vector(Column(series), name).known[:1].tolist())


def _word(first: list[Any]) -> str | None:
    if not first:
        return None
    words = {"bool": "booleans", "int": "numbers", "float": "numbers"}
    return words.get(kind_of(type(first[0])), "text")


def _same_kind(before: ColumnKind, now: ColumnKind, name: str) -> ColumnKind:
    """The kind of a column after one more batch; raises if they differ."""
    numeric = before.numeric and now.numeric
    if None not in (before.word, now.word) and before.word != now.word:
        if not numeric:
            what = f"column {name!r} holds {now.word}, but {before.word} in earlier batches"
            raise column_error(what, "convert it to the type of the first batch", name, now.word)
        return ColumnKind("numbers", True)
    return ColumnKind(now.word or before.word, numeric)
