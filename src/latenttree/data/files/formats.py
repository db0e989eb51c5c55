"""The formats of files, in one registry: `FORMATS`, from the suffix of a name to a `FileFormat`.

Whatever depends on the format of a file asks here: `read_table`, the memory that reading takes,
tables of events, the commands on new data, and the texts that list the known formats.

To add a format, say ``.feather``:

1. Write ``files/feather.py``, which opens the file and lists its columns; whatever is wrong with a
   file must be a `DataError` (`boundary.reading`). `parquet.py` is an example.
2. Add its sizes, and the memory that reading takes, to ``sizes.py``.
3. Add how it is read to ``tables.py``: at once where it may be held and, with a source in
   ``streaming/sources.py``, in parts. For files whose columns have no names, also its new
   samples.
4. Register it in `FORMATS` below, and add its name to the help texts, which are constants in
   ``cli/options.py`` because ``--help`` must not import this module.
5. Add a function that writes such a file to ``WRITERS`` in ``tests/whole/test_formats.py``; the
   tests there name what was forgotten. Document it in the docstring of `read_table`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from latenttree.data.files import fasta, sizes, tables
from latenttree.data.files.arrow import arrow_frame
from latenttree.data.files.csv_batches import csv_header
from latenttree.data.files.docword import DOCWORD
from latenttree.data.files.matrices import NamedMatrix, annotated_matrix, market_matrix
from latenttree.data.files.parquet import parquet_batches, parquet_frame, parquet_header
from latenttree.data.files.sizes import Sizes
from latenttree.data.files.tables import ReadOptions
from latenttree.data.files.text import suffix_of
from latenttree.data.files.xlsx import xlsx_frame
from latenttree.data.found_events import Events
from latenttree.data.table import Table
from latenttree.errors import DataError


@dataclass(frozen=True)
class FileFormat:
    """How files of one format are read.

    Attributes
    ----------
    name : what it is called in help texts and errors.
    read : the table of a file.
    memory : bytes that reading a file at once takes, roughly; None where it is always read so.
    sizes : samples and variables that a file declares, given also the delimiter of text; None where
        only reading it tells.
    header : names of the columns, given also the delimiter of text; None where a file has no named
        columns, so that no column can be ignored or hold weights.
    frame : a file with named columns as a pyarrow table; None for text.
    batches : the given columns of such a file as pyarrow tables of at most so many rows.
    samples : new samples, for `Schema.rows`, of a file without named columns, given the names of
        the variables where a vocabulary has them.
    needs_names : whether variables have no names unless a vocabulary has them.
    pattern : of the whole name, where the suffix does not tell.
    """

    name: str
    read: Callable[[Path, ReadOptions], Table]
    memory: Callable[[Path], int] | None = None
    sizes: Callable[[Path, str], Sizes] | None = None
    header: Callable[[Path, str], list[str]] | None = None
    frame: Callable[[Path], Any] | None = None
    batches: Callable[[Path, Sequence[str], int], Iterator[Any]] | None = None
    samples: Callable[[Path, list[str] | None], Any] | None = None
    needs_names: bool = False
    pattern: re.Pattern[str] | None = None

    @property
    def has_columns(self) -> bool:
        """Whether columns have names, so that some may be ignored and one may hold weights."""
        return self.header is not None


def _frame_format(name: str, frame: Callable[[Path], Any]) -> FileFormat:
    """A format whose files are read as one pyarrow table."""

    def batches(path: Path, columns: Sequence[str], n_rows: int) -> Iterator[Any]:
        table = frame(path).select(list(columns))
        for start in range(0, len(table), n_rows):
            yield table.slice(start, n_rows)

    def header(path: Path, delimiter: str) -> list[str]:
        return list(frame(path).column_names)

    return FileFormat(name, tables.frame_reader(frame), header=header, frame=frame, batches=batches)


def _matrix_format(
    name: str, load: Callable[[Path], NamedMatrix], needs_names: bool = False
) -> FileFormat:
    """A format whose files are a matrix, perhaps with names."""
    read, samples = tables.matrix_reader(load), tables.matrix_samples(load)
    return FileFormat(name, read, samples=samples, needs_names=needs_names)


_CSV = FileFormat(
    ".csv",
    tables.read_csv,
    sizes.memory_of_text,
    sizes.sizes_of_csv,
    header=csv_header,
)
_TSV = replace(_CSV, name=".tsv")
_PARQUET = FileFormat(
    ".parquet",
    tables.read_parquet,
    sizes.memory_of_parquet,
    sizes.sizes_of_parquet,
    header=parquet_header,
    frame=parquet_frame,
    batches=parquet_batches,
)
_ARROW = _frame_format(".feather", arrow_frame)
_XLSX = _frame_format(".xlsx", xlsx_frame)
_MTX = _matrix_format(".mtx", market_matrix, needs_names=True)
_H5AD = _matrix_format(".h5ad", annotated_matrix)
_NPY = FileFormat(
    ".npy",
    tables.read_npy,
    sizes.memory_of_npy,
    sizes.sizes_of_npy,
    samples=tables.samples_of_arrays,
    needs_names=True,
)
_NPZ = FileFormat(
    ".npz",
    tables.read_npz,
    sizes.memory_of_npz,
    sizes.sizes_of_npz,
    samples=tables.samples_of_arrays,
    needs_names=True,
)
_DOCWORD = FileFormat(
    "docword.NAME.txt",
    tables.read_docword,
    sizes.memory_of_text,
    sizes.sizes_of_docword,
    samples=tables.samples_of_docword,
    pattern=DOCWORD,
)
_FASTA = FileFormat(".fasta", tables.read_alignment, samples=tables.samples_of_alignment)

FORMATS: Mapping[str, FileFormat] = MappingProxyType(
    {
        ".csv": _CSV,
        ".tsv": _TSV,
        ".parquet": _PARQUET,
        ".feather": _ARROW,
        ".arrow": _ARROW,
        ".xlsx": _XLSX,
        ".npy": _NPY,
        ".npz": _NPZ,
        ".mtx": _MTX,
        ".h5ad": _H5AD,
        ".txt": _DOCWORD,
        **dict.fromkeys(fasta.SUFFIXES, _FASTA),
    }
)
"""The format of files by the suffix of their names, in the order of help texts."""

DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}
"""Between the cells of texts, by the suffix of their names; .txt only with a row for each event."""


def cell_delimiter(path: Path, asked: str | None = None) -> str:
    """What stands between the cells of a text: what was asked for, else what its name tells."""
    return DELIMITERS.get(suffix_of(path), ",") if asked is None else asked


def file_format_of(path: Path) -> FileFormat | None:
    """The format that the name of a file tells; None where it is unknown."""
    file_format = FORMATS.get(suffix_of(path))
    if file_format is None or file_format.pattern is None:
        return file_format
    return file_format if file_format.pattern.search(path.name) else None


def known_format(path: Path) -> FileFormat:
    """The same; raises where it is unknown."""
    file_format = file_format_of(path)
    if file_format is None:
        raise DataError(
            f"do not know how to read {path.name!r}", f"known are {KNOWN_FILES}", path=str(path)
        )
    return file_format


# ---- in words ------------------------------------------------------------------------------


def _names(formats: Iterable[FileFormat]) -> list[str]:
    return list(dict.fromkeys(file_format.name for file_format in formats))


def _either(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


KNOWN_FILES = f"{', '.join(_names(FORMATS.values()))} (also .csv.gz, docword.NAME.txt.gz, ...)"
"""The files that `read_table` reads."""

COLUMN_FILES = _either(_names(f for f in FORMATS.values() if f.has_columns))
"""The files whose columns may be ignored, or hold weights."""

EVENT_FILES = ", ".join(_names(f for f in FORMATS.values() if f.has_columns))
"""The files that `read_events` reads, which may also be compressed text."""


# ---- before a file is read -----------------------------------------------------------------


def memory_needed(path: Path) -> int:
    """Bytes that reading a file at once takes, roughly; 0 where it is always read so."""
    suffix = suffix_of(path)
    if suffix in DELIMITERS:
        return sizes.memory_of_text(path)
    file_format = FORMATS.get(suffix)
    return 0 if file_format is None or file_format.memory is None else file_format.memory(path)


def sizes_of(X: Any, delimiter: str | None = None) -> Sizes | None:
    """The sizes that an input declares, without reading it; None where they are unknown
    or wrong."""
    if isinstance(X, Table):
        return sizes.sizes_of_table(X)
    X = X.matrix if isinstance(X, Events) else X
    if isinstance(X, str | os.PathLike):
        with suppress(Exception):  # what is wrong with a file is told where it is read
            file_format = known_format(Path(X))
            mark = cell_delimiter(Path(X), delimiter)
            return file_format.sizes and file_format.sizes(Path(X), mark)
        return None
    shape = getattr(X, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        return None
    n, p = (int(x) for x in shape)
    stored = getattr(X, "nnz", None)
    if stored is not None:
        return Sizes(n, p, int(stored), 8 * int(stored))
    return Sizes(n, p, None, n * p)
