"""Tables as DataFrames of pandas or polars, which are imported when one is asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

from latenttree.errors import check_option

LIBRARIES = ("pandas", "polars")


def table_of(
    columns: Mapping[Any, Any],
    library: str | None = None,
    *,
    labels: Sequence[Any] | None = None,
    labels_name: str | None = None,
    columns_name: str | None = None,
) -> Any:
    """A DataFrame of the library, by default of pandas, or of polars where that alone is installed.

    `labels` are those of the rows: the index in pandas, the first column in polars, where names of
    columns are text. Raises `ImportError` where the library is missing."""
    frames = frame_library(library)
    if frames.__name__ == "pandas":
        index = None if labels is None else frames.Index(list(labels), name=labels_name)
        frame = frames.DataFrame(dict(columns), index=index)
        return frame.rename_axis(columns=columns_name) if columns_name else frame
    first = {} if labels is None else {labels_name or "label": _plain(labels)}
    return frames.DataFrame({**first, **{str(name): _plain(x) for name, x in columns.items()}})


def series_of(
    values: Any,
    labels: Sequence[Any],
    library: str | None = None,
    *,
    name: str,
    labels_name: str,
) -> Any:
    """A Series of pandas with the labels as index; of polars a DataFrame of two columns."""
    frames = frame_library(library)
    if frames.__name__ == "pandas":
        index = frames.Index(list(labels), name=labels_name)
        return frames.Series(values, index=index, name=name)
    return frames.DataFrame({labels_name: list(labels), name: _plain(values)})


def frame_library(name: str | None = None) -> Any:
    """The module of a library of DataFrames; of the first that is installed unless named."""
    check_option("library", name, name is None or name in LIBRARIES, f"choose one of {LIBRARIES}")
    for library in LIBRARIES if name is None else (name,):
        try:
            return import_module(library)
        except ImportError:
            continue
    wanted = name or "pandas"
    raise ImportError(f"tables are DataFrames and need {wanted}; run: pip install {wanted}")


def _plain(values: Any) -> Any:
    """Arrays of objects as lists, whose types polars finds."""
    return values.tolist() if isinstance(values, np.ndarray) and values.dtype == object else values
