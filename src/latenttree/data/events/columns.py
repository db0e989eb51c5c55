"""Columns of an event table, whatever its container.

A DataFrame, a dict or a tuple of arrays, a .csv (also .gz, .xz, .bz2) or a .parquet file: each
column becomes its distinct values, and the number of the value in each row; a file block by block.
Codes are texts throughout: "250.00" and "250" are two codes, and "008" is not "8".
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import column_error, is_missing, listing
from latenttree.data.containers import as_frame
from latenttree.data.files.boundary import reading
from latenttree.data.files.csv_batches import csv_batches, rows_of_csv
from latenttree.data.files.csv_cells import MISSING_CELLS, numbers_in
from latenttree.data.files.formats import DELIMITERS, EVENT_FILES, file_format_of
from latenttree.data.files.text import check_file, suffix_of
from latenttree.data.streaming.sources import rows_in
from latenttree.errors import DataError, Option, Text

IntArray = NDArray[np.int64]
Choose = Callable[[Sequence[str]], Sequence[int]]

MISSING_VALUE_TEXTS = MISSING_CELLS | {"NaT", "<NA>"}
"""Texts that are missing: cells of a .csv, and what missing values of pandas become as text. In a
.csv with a row for each sample these two are labels like any other."""

BLOCK_BYTES = 1 << 25
"""Bytes of the rows of a file that are read at once."""


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """One column of n rows.

    Attributes
    ----------
    name : of the column.
    values : (m,) distinct values as they came.
    index : (n,) number of the value in each row; -1 where there is none.
    """

    name: str
    values: NDArray[Any]
    index: NDArray[Any]

    @property
    def floats(self) -> bool:
        """Whether the values are decimal numbers, whose texts may have lost zeros."""
        return self.values.dtype.kind == "f"

    def texts(self) -> list[str]:
        """(m,) the values as text, "" where they mean "missing"."""
        return texts_of(self.values.tolist())


def read_blocks(
    source: Any, choose: Choose, delimiter: str | None = None, size: int = BLOCK_BYTES
) -> Iterator[list[CodedColumn]]:
    """The chosen columns, of a file about `size` bytes of rows at a time; at least one block.
    `choose` maps all names to the numbers of the chosen columns."""
    if isinstance(source, str | os.PathLike):
        with reading(source):
            yield from _blocks_of_file(Path(source), choose, delimiter, size)
    elif isinstance(source, Mapping):
        yield _columns_of_arrays([str(name) for name in source], list(source.values()), choose)
    elif isinstance(source, tuple) and len(source) in (2, 3):
        yield _columns_of_arrays(["sample", "code", "time"][: len(source)], source, choose)
    else:
        frame = as_frame(source)
        if frame is None:
            raise DataError(
                f"events are of type {type(source).__name__}",
                "pass a DataFrame with a row for each event, a tuple (samples, codes) of two "
                "arrays of one length, or the path of a file",
                value=type(source).__name__,
            )
        names = frame.columns
        yield [_of_series(frame.get_column(names[j])) for j in choose(names)]


def _blocks_of_file(
    path: Path, choose: Choose, delimiter: str | None, size: int
) -> Iterator[list[CodedColumn]]:
    file_format = file_format_of(path)
    blocks: Iterator[Iterable[CodedColumn]]
    if file_format is None or file_format.batches is None or file_format.header is None:
        mark = delimiter_of(path, delimiter)
        with rows_of_csv(path, mark) as (header, _):
            names = [name.strip() for name in header]
        chosen = list(choose(names))
        columns = [names[j] for j in chosen]
        batches = csv_batches(path, mark, chosen, size // 16)
        blocks = (map(_of_arrow, columns, texts) for texts in batches)
    else:
        check_file(path)
        names = file_format.header(path, ",")
        columns = [names[j] for j in choose(names)]
        tables = file_format.batches(path, columns, rows_in(size, 16 * len(columns)))
        frames = (nw.from_native(table, eager_only=True) for table in tables)
        blocks = (map(_of_series, map(frame.get_column, columns)) for frame in frames)
    block = None
    for block in map(list, blocks):
        yield block
    if block is None:
        yield [CodedColumn(name, _objects([]), np.empty(0, dtype=np.int64)) for name in columns]


def delimiter_of(path: Path, delimiter: str | None) -> str:
    """The delimiter of a text file: the given one, else that of its suffix."""
    suffix = suffix_of(path)
    if suffix not in DELIMITERS:
        check_file(path)
        raise DataError(
            f"do not know how to read {path.name!r}",
            f"known are {EVENT_FILES}, and .csv.gz, .csv.xz",
        )
    return delimiter or DELIMITERS[suffix]


def _columns_of_arrays(
    names: Sequence[str], values: Sequence[Any], choose: Choose
) -> list[CodedColumn]:
    arrays = [np.asarray(value) for value in values]
    flat = next((j for j, array in enumerate(arrays) if array.ndim != 1), None)
    if flat is not None:
        what = f"{names[flat]!r} of the events has shape {arrays[flat].shape}"
        remedy = "pass arrays of one dimension, with a value for each event"
        raise column_error(what, remedy, names[flat], arrays[flat].shape)
    lengths = {name: len(array) for name, array in zip(names, arrays, strict=True)}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name!r} has {n}" for name, n in lengths.items())
        raise DataError(
            f"columns of events differ in length: {told}",
            "give each event one of each",
            value=lengths,
        )
    return [_of_array(names[j], arrays[j]) for j in choose(names)]


def _of_series(series: nw.Series[Any]) -> CodedColumn:
    """Only known values go to NumPy: integers with missing values would become floats there."""
    import pyarrow as pa

    if isinstance(series.dtype, nw.Datetime) and series.dtype.time_zone is not None:
        series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    if isinstance(series.dtype, nw.String):
        with suppress(pa.ArrowException):  # pandas calls columns text whose first values are
            return _of_arrow(series.name, series.to_arrow())
    known = ~series.is_null().to_numpy().astype(bool)
    column = _of_array(series.name, series.drop_nulls().to_numpy())
    index = np.full(len(known), -1, dtype=np.int64)
    index[known] = column.index
    return CodedColumn(column.name, column.values, index)


def _of_array(name: str, array: NDArray[Any]) -> CodedColumn:
    import pyarrow as pa

    if array.dtype.kind in "biufMU" and array.dtype.isnative:
        with suppress(pa.ArrowException, UnicodeError):  # types that it does not know
            return _of_arrow(name, pa.array(array))
    position: dict[Any, int] = {}
    try:
        codes = [position.setdefault(value, len(position)) for value in array.tolist()]
    except TypeError as error:
        raise DataError(
            f"column {name!r} of the events: {error}", "use texts or numbers", column=name
        ) from error
    return CodedColumn(name, _objects(position), np.asarray(codes, dtype=np.int64))


def _of_arrow(name: str, array: Any) -> CodedColumn:
    """Of a pyarrow array; its values are those that occur, in order of appearance."""
    import pyarrow as pa
    from pyarrow import compute

    pool = pa.system_memory_pool()  # others keep what is freed
    if not pa.types.is_dictionary(array.type):
        array = compute.dictionary_encode(array, memory_pool=pool)
    array = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
    values, indices = array.dictionary, array.indices
    if indices.null_count:
        indices = compute.fill_null(indices, -1)
    is_text = pa.types.is_string(values.type) or pa.types.is_large_string(values.type)
    distinct = _objects(values.to_pylist()) if is_text else values.to_numpy(zero_copy_only=False)
    return CodedColumn(name, distinct, numbers_in(indices, np.int32))


def _objects(values: Iterable[Any]) -> NDArray[Any]:
    """An object array of one dimension, whatever the values are."""
    items = list(values)
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


def texts_of(values: list[Any]) -> list[str]:
    """Values as texts, "" where they mean "missing"."""
    gaps = is_missing(_objects(values)).tolist()
    texts = ("" if gap else text_of(value) for value, gap in zip(values, gaps, strict=True))
    return ["" if text in MISSING_VALUE_TEXTS else text for text in texts]


def text_of(value: Any) -> str:
    """A code or an identifier as text; a whole number is written without a decimal point."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return str(value).strip()


# ---- which columns --------------------------------------------------------------------

# fmt: off
SAMPLE_NAMES = (
    "sample", "sample_id", "patient", "patient_id", "patient_nbr", "person", "person_id", "subject",
    "subject_id", "member_id", "mrn", "eid", "id", "encounter_id", "hadm_id", "document",
)
CODE_NAMES = (
    "code", "icd", "icd_code", "icd9", "icd9_code", "icd10", "icd10_code", "phecode", "diagnosis",
    "diagnosis_code", "dx", "dx_code", "condition_concept_id", "concept_id", "snomed", "atc",
    "event", "event_code", "item", "word",
)
TIME_NAMES = (
    "time", "date", "datetime", "timestamp", "day", "age", "event_time", "event_date",
    "diagnosis_date", "condition_start_date", "start_date",
)
# fmt: on


def choose_columns(
    names: Sequence[str], sample: Any = None, code: Any = None, time: Any = None
) -> list[int]:
    """Numbers of the columns of samples, codes and, where `time` is not None, times.

    A column that is not named is guessed by its name, else it is the first that is left; with
    ``time=""`` it must be one that is called like a time.
    """
    chosen: dict[str, int | None] = {
        "sample": _position(names, sample, "sample"),
        "code": _position(names, code, "code"),
        "time": _position(names, time or None, "time"),
    }
    known = {"sample": SAMPLE_NAMES, "code": CODE_NAMES, "time": TIME_NAMES}
    for role, guesses in known.items():
        if chosen[role] is None:
            chosen[role] = _guess(names, guesses, chosen.values())
    for role in ("sample", "code"):
        if chosen[role] is None:
            chosen[role] = _first_left(names, role, chosen.values())
    if time == "" and chosen["time"] is None:
        raise DataError(
            Text(
                f"no column of times among {listing(names)}: ",
                Option("since"),
                " and ",
                Option("until"),
                " need one",
            ),
            Text("pass ", Option("time"), " with its name"),
            option="time",
        )
    roles = ("sample", "code") if time is None else ("sample", "code", "time")
    columns = [j for j in (chosen[role] for role in roles) if j is not None]
    if len(set(columns)) < len(columns):
        raise DataError(
            f"sample, code and time must be different columns, got {sample!r}, {code!r} "
            f"and {time!r}",
            f"the columns are {listing(names)}",
            value=(sample, code, time),
        )
    return columns


def _position(names: Sequence[str], name: Any, role: str) -> int | None:
    if name is None:
        return None
    if str(name) not in names:
        raise DataError(
            Text(f"no column {name!r} in the events (", Option(role), ")"),
            f"the columns are {listing(names)}",
            column=str(name),
            value=name,
            option=role,
        )
    return list(names).index(str(name))


def _guess(names: Sequence[str], guesses: Sequence[str], taken: Iterable[int | None]) -> int | None:
    used = set(taken)
    plain = [name.strip().lower().replace(" ", "_").replace("-", "_") for name in names]
    positions = (plain.index(guess) for guess in guesses if guess in plain)
    return next((j for j in positions if j not in used), None)


def _first_left(names: Sequence[str], role: str, taken: Iterable[int | None]) -> int:
    used = set(taken)
    for j in range(len(names)):
        if j not in used:
            return j
    raise DataError(
        f"events need a column of samples and one of codes, but the columns are {listing(names)}",
        Text("pass ", Option(role), " with the name of the column"),
        value=tuple(names),
        option=role,
    )
