"""One column of a DataFrame or a table as an array, and where it is missing."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from latenttree.data.columns.blocks import hot_positions
from latenttree.data.columns.vectors import unsupported_dtype
from latenttree.data.table import Table

Mask = NDArray[np.bool_]
Read = tuple[Any, Mask | None]  # a column or a block, and where it is missing


def series_values(series: nw.Series[Any], name: str) -> Read:
    """The values of a series as an array, and where they are missing."""
    missing = series.is_null().to_numpy().astype(bool)
    dtype = series.dtype
    if missing.all():  # of whatever type
        return np.zeros(len(missing)), missing
    if isinstance(dtype, nw.Categorical | nw.Enum):
        values = np.empty(len(missing), dtype=object)
        values[:] = series.to_numpy().tolist()
        return values, missing
    if not (dtype.is_numeric() or isinstance(dtype, nw.Boolean | nw.String | nw.Object)):
        raise unsupported_dtype(name, dtype)
    if missing.any() and not isinstance(dtype, nw.String | nw.Object):
        series = series.fill_null(False if isinstance(dtype, nw.Boolean) else 0)
    return series.to_numpy(), missing


def table_values(table: Table, j: int) -> Read:
    """Labels of a categorical variable, the numbers of another, and where they are missing."""
    if table.values is not None and j in table.values.arrays:
        return table.values.arrays[j], None
    labels = table.categories[j]
    if table.values is not None:
        codes = table.values.codes[:, j]
    elif table.codes is not None:
        codes = table.codes[:, j]
    else:
        assert table.matrix is not None
        block = table.matrix[:, table.offsets[j] : table.offsets[j + 1]]
        if table.kind == "sparse_binary":
            return block.toarray().ravel(), None
        if labels is None:
            return block, None
        codes = hot_positions(block, table.names[j])
    missing = codes < 0
    return (codes if labels is None else labels[codes]), missing
