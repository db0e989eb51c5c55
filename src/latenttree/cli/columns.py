"""Samples as columns of a file: labels, numbers, and groups of numbers side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.cli.new_samples import NewData
from latenttree.data import Schema
from latenttree.data.values import TRAITS
from latenttree.engine.arrays import Bools

if TYPE_CHECKING:
    from latenttree.queries import Filled

Columns = list[NDArray[Any]]

DIGITS = 9  # of numbers that fill the gaps of a .csv


def column_names(schema: Schema) -> list[str]:
    """Names of the columns of variables; a group of numbers has one for each, "group[code]"."""
    names = []
    for v, name in enumerate(schema.names):
        if schema.coded[v] or schema.form_of(v) == "vector":
            names.append(name)
        else:
            names += [f"{name}[{code}]" for code in schema.coordinate_names(v)]
    return names


def columns_of(schema: Schema, filled: Filled) -> Columns:
    """Columns in the order of `column_names`, of samples without gaps."""
    columns: Columns = []
    for v in range(schema.n_vars):
        if schema.coded[v]:
            columns.append(schema.labels[v][filled.codes[:, v]])
        elif schema.form_of(v) == "vector":
            columns.append(_plain(filled.arrays[v], schema.families[v]))
        else:
            block = filled.arrays[v]
            dense = block.toarray() if sparse.issparse(block) else np.asarray(block)
            columns += [_plain(column, schema.families[v]) for column in dense.T]
    return columns


def _plain(values: Any, family: str) -> NDArray[Any]:
    """Counts and codes without a decimal point."""
    numbers, is_whole = np.asarray(values, dtype=np.float64), not TRAITS[family].gaussian
    return np.rint(numbers).astype(np.int64) if is_whole else numbers


# ---- gaps -----------------------------------------------------------------------------


def count_gaps(schema: Schema, data: NewData) -> tuple[int, int]:
    """How many values are missing, and in how many samples."""
    gaps = np.zeros(len(data), dtype=np.int64)
    for v in range(schema.n_vars):
        mask = missing_mask(schema, data, v)
        gaps += mask if mask.ndim == 1 else mask.sum(axis=1)
    return int(gaps.sum()), int((gaps > 0).sum())


def missing_mask(schema: Schema, data: NewData, v: int) -> Bools:
    """(n,) or (n, d) mask of where values of a variable are missing."""
    if schema.coded[v]:
        return np.asarray(data.rows.take(0, len(data))[:, v] < 0)
    values = data.rows.arrays[v]
    if sparse.issparse(values):
        return np.zeros(len(data), dtype=np.bool_)
    return np.isnan(values)


def filled_columns(
    schema: Schema, data: NewData, filled: Filled, as_texts: bool = True
) -> tuple[list[str], Columns]:
    """Names and columns of a table without gaps; in a file with named columns, cells that have
    a value keep their texts, and columns that are no variables stay. Without `as_texts` columns of
    whole or real numbers are these."""
    cells = data.texts()
    if cells is None:
        return column_names(schema), columns_of(schema, filled)
    position = {name: i for i, name in enumerate(schema.input_names)}
    columns = []
    for j, name in enumerate(cells.header):
        column = np.asarray(cells.texts[j], dtype=object)[cells.codes[j]]
        v = schema.variable_of(position[name]) if name in position else None
        if v is not None:
            gaps = missing_mask(schema, data, v)
            column[gaps] = _texts(schema, filled, v, gaps)
        is_number = v is not None and (not schema.coded[v] or schema.labels[v].dtype.kind in "iuf")
        columns.append(_numbers(column) if is_number and not as_texts else column)
    return list(cells.header), columns


def _numbers(column: NDArray[Any]) -> NDArray[Any]:
    """The numbers that texts stand for; the texts where one is none."""
    try:
        numbers = column.astype(np.float64)
    except ValueError:
        return column
    whole = np.rint(numbers)
    return whole.astype(np.int64) if np.array_equal(whole, numbers) else numbers


def _texts(schema: Schema, filled: Filled, v: int, rows: Bools) -> list[str]:
    if schema.coded[v]:
        return [str(label) for label in schema.labels[v][filled.codes[rows, v]].tolist()]
    return [f"{value:.{DIGITS}g}" for value in np.asarray(filled.arrays[v])[rows].tolist()]
