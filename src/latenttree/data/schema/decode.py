"""Codes and numbers back to values, in the container that the training data came in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import coordinate_names
from latenttree.data.columns.block_variables import variable_of_block
from latenttree.data.columns.codes import stack_columns
from latenttree.data.columns.variables import (
    Variable,
    blocks_of_variables,
    codes_of_variables,
    one_hot,
)
from latenttree.data.columns.vector_variables import variable_of
from latenttree.data.columns.vectors import Vector
from latenttree.data.containers import FRAMES, InputColumn, frame_of
from latenttree.data.schema.fields import SchemaFields
from latenttree.data.table import Table, codes_table, sparse_binary_table
from latenttree.data.values import TRAITS

# --- containers ----------------------------------------------------------------------


class Known(NamedTuple):
    """Samples without missing values: codes of the categories, arrays of the others, and their
    schema."""

    schema: SchemaFields
    codes: NDArray[Any]
    arrays: Mapping[int, Any]


def decoded(schema: SchemaFields, codes: NDArray[Any], arrays: Mapping[int, Any]) -> Any:
    """Values of known codes and numbers, in the container of the training input."""
    known = Known(schema, codes, arrays)
    if schema.container == "table":
        return _table(known)
    if schema.members is not None:
        return _grouped(known)
    if schema.container in FRAMES:
        return _frame(known)
    if schema.container in ("dict", "list"):
        return _blocks(known)
    return _array(known) if schema.container == "array" else _sparse(known)


def _vector(known: Known, j: int) -> NDArray[Any]:
    """(n,) values of column j; a dropped column repeats its value."""
    schema, column = known.schema, known.schema.columns[j]
    i = schema.variable_of(j)
    if i is None:
        return np.repeat(_constant(column), len(known.codes))
    if schema.coded[i] or schema.ranked(i):
        return labels_or_numbers(known, i)
    values = np.asarray(known.arrays[i])
    if column.levels is None:
        return _rounded(values, column.dtype)
    levels = np.asarray(column.levels)
    return levels[_nearest(values, levels.astype(np.float64))]


def labels_or_numbers(known: Known, i: int) -> NDArray[Any]:
    """(n,) labels of variable i, also where they became ranks; else its numbers, (n,) or (n, d)."""
    schema = known.schema
    if schema.coded[i]:
        return schema.labels[i][known.codes[:, i]]
    values = known.arrays[i]
    dense = values.toarray() if sparse.issparse(values) else np.asarray(values)
    if not schema.ranked(i):
        return dense
    levels = np.asarray(schema.columns[schema.index[i]].levels)
    return levels[_nearest(dense, np.arange(len(levels)))]


def _nearest(values: NDArray[Any], numbers: NDArray[Any]) -> NDArray[np.int64]:
    """(n,) position of the number that each value is nearest to."""
    order = np.argsort(numbers)
    middle = (numbers[order][1:] + numbers[order][:-1]) / 2
    return order[np.searchsorted(middle, values)]


def _constant(column: InputColumn) -> NDArray[Any]:
    assert column.constant is not None
    return column.constant


def _rounded(values: NDArray[Any], dtype: str) -> NDArray[Any]:
    """Numbers rounded to what a column of integers or booleans holds; others unchanged."""
    name = dtype.lower()
    if name.startswith("bool"):
        return np.asarray(values >= 0.5)
    whole = re.match(r"u?int(8|16|32|64)", name)
    if whole is None:
        return values
    limits = np.iinfo(whole.group())
    top = np.nextafter(float(limits.max), 0) if limits.bits == 64 else limits.max
    return np.clip(np.rint(values), limits.min, top).astype(whole.group())


def _table(known: Known) -> Table:
    schema = known.schema
    if schema.n_coded < schema.n_vars:
        variables = [_variable(known, i) for i in range(schema.n_vars)]
        if any(variable.codes is None for variable in variables):
            return blocks_of_variables(variables, len(known.codes), False)
        return codes_of_variables(variables, schema.names, len(known.codes), False)
    if schema.is_sparse_binary:
        return sparse_binary_table(
            schema.names, sparse.csr_array(known.codes > 0, dtype=np.float32)
        )
    return codes_table(schema.names, np.ascontiguousarray(known.codes), schema.labels)


def _variable(known: Known, i: int) -> Variable:
    """A numeric variable of a table; its bins are those of the samples themselves."""
    schema = known.schema
    name, family, labels = schema.names[i], schema.families[i], schema.categories[i]
    if schema.coded[i]:
        return Variable(name, family, int(schema.dims[i]), codes=known.codes[:, i], labels=labels)
    x = known.arrays[i]
    if TRAITS[family].counts:  # also expected counts
        x = sparse.csr_array(np.rint(x)) if sparse.issparse(x) else np.rint(x)
    if x.ndim == 1:
        variable = variable_of(Vector(x), name, family, None)
    else:
        columns = coordinate_names(name, x.shape[1])
        variable = variable_of_block(x, name, columns, family, None)
    # few samples may look constant, or one-hot, where the family is wider
    return replace(variable, family=family, values=x, constant=None)


def _array(known: Known) -> NDArray[Any]:
    schema = known.schema
    p = len(schema.columns)
    dtype: Any = schema.columns[0].dtype
    if dtype in ("str", "bytes"):  # as long as the longest label
        constants = [c.constant for c in schema.columns if c.constant is not None]
        dtype = np.result_type(*schema.labels, *constants)
    columns = (_vector(known, j) for j in range(p))
    return stack_columns(columns, len(known.codes), p, dtype)


def _sparse(known: Known) -> Any:
    """(n, all columns) CSR: ones of binary variables, or numbers."""
    schema, n = known.schema, len(known.codes)
    ones = np.where(schema.coded, known.codes, 0)
    rows, variables = np.nonzero(ones)
    parts = [(rows, schema.index[variables], np.ones(len(rows)))]
    for j, column in enumerate(schema.columns):
        if column.constant is not None and column.constant[0]:
            parts.append((np.arange(n), np.full(n, j), np.repeat(column.constant, n)))
    for i in np.flatnonzero(~schema.coded).tolist():
        values = _vector(known, int(schema.index[i]))
        used = np.flatnonzero(values)
        parts.append((used, np.full(len(used), schema.index[i]), values[used]))
    rows, columns, data = (np.concatenate(part) for part in zip(*parts, strict=True))
    shape, dtype = (n, len(schema.columns)), schema.columns[0].dtype
    return _csr(schema)((data.astype(dtype), (rows, columns)), shape=shape)


def _csr(schema: SchemaFields) -> Any:
    return sparse.csr_matrix if schema.container == "sparse matrix" else sparse.csr_array


# --- blocks --------------------------------------------------------------------------


def _grouped(known: Known) -> Any:
    """A matrix with the block of every group in its columns."""
    schema = known.schema
    assert schema.members is not None
    back = np.argsort(np.concatenate(schema.members))
    parts = [_block(known, j) for j in range(len(schema.columns))]
    if schema.container == "array":
        return np.hstack(parts)[:, back]
    return _csr(schema)(sparse.hstack(parts, format="csr")[:, back])


def _blocks(known: Known) -> Any:
    """A list or dict with a vector or a block for each column."""
    schema = known.schema
    blocks = [
        _vector(known, j) if column.form == "vector" else _block(known, j)
        for j, column in enumerate(schema.columns)
    ]
    return (
        blocks if schema.container == "list" else dict(zip(schema.input_names, blocks, strict=True))
    )


def _block(known: Known, j: int) -> Any:
    """(n, width) block of column j, dense or sparse; a dropped block repeats its row."""
    schema, column = known.schema, known.schema.columns[j]
    i, n = schema.variable_of(j), len(known.codes)
    block: Any
    if i is None:
        block = np.tile(_constant(column), (n, 1))
    elif schema.coded[i]:
        block = one_hot(known.codes[:, i], int(schema.dims[i]))
    else:
        block = known.arrays[i]
    if column.form == "sparse" or (schema.members is not None and schema.container != "array"):
        block = sparse.csr_array(block)
        block.data = _rounded(block.data, column.dtype)
    else:
        block = block.toarray() if sparse.issparse(block) else block
        block = _rounded(block, column.dtype)
    return block.astype(column.dtype)


# --- DataFrames ----------------------------------------------------------------------


def _frame(known: Known) -> Any:
    schema = known.schema
    vectors = [_vector(known, j) for j in range(len(schema.columns))]
    names = [int(name) if schema.whole_names else name for name in schema.input_names]
    return frame_of(schema.container, schema.columns, vectors, names)
