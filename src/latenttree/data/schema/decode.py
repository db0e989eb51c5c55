"""Codes and numbers back to values, in the container that the training data came in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.builder import TableBuilder
from latenttree.data.columns.codes import stack_columns
from latenttree.data.columns.variables import Variable, blocks_of_variables, codes_of_variables
from latenttree.data.columns.vectors import Column
from latenttree.data.containers import FRAMES, frame_of
from latenttree.data.schema.fields import SchemaFields
from latenttree.data.schema.kinds import in_type
from latenttree.data.table import Table, codes_table, sparse_binary_table
from latenttree.data.values import TRAITS


class Known(NamedTuple):
    """Samples without missing values: codes of the categories, arrays of the others, and their
    schema."""

    schema: SchemaFields
    codes: NDArray[Any]
    arrays: Mapping[int, Any]

    def of(self, i: int) -> Any:
        """(n,) codes or numbers, or (n, d) numbers, of variable i."""
        return self.codes[:, i] if self.schema.coded[i] else self.arrays[i]

    def values(self, i: int) -> NDArray[Any]:
        """(n,) labels of variable i, also where they became ranks; else its numbers, (n,) or
        (n, d)."""
        return self.schema.variables[i].values(self.of(i))

    def column(self, j: int) -> Any:
        """(n,) values or (n, width) block of column j; a dropped one repeats its value or row."""
        column, i = self.schema.columns[j], self.schema.variable_of(j)
        if i is not None:
            return self.schema.variables[i].written(self.of(i))
        assert column.constant is not None
        if column.form == "vector":
            return np.repeat(column.constant, len(self.codes))
        return in_type(np.tile(column.constant, (len(self.codes), 1)), column)

    @property
    def columns(self) -> list[Any]:
        """All columns."""
        return [self.column(j) for j in range(len(self.schema.columns))]


def decoded(schema: SchemaFields, codes: NDArray[Any], arrays: Mapping[int, Any]) -> Any:
    """Values of known codes and numbers, in the container of the training input."""
    known = Known(schema, codes, arrays)
    if schema.container == "table":
        return _table(known)
    if schema.members is not None:
        return _grouped(known)
    if schema.container in FRAMES:
        names = [int(name) if schema.whole_names else name for name in schema.input_names]
        return frame_of(schema.container, schema.columns, known.columns, names)
    if schema.container in ("dict", "list"):
        blocks = known.columns
        named = schema.container == "dict"
        return dict(zip(schema.input_names, blocks, strict=True)) if named else blocks
    return _array(known) if schema.container == "array" else _sparse(known)


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
    variable = TableBuilder().variable(Column(x), name, family)
    # few samples may look constant, or one-hot, where the family is wider
    return replace(variable, family=family, values=x, constant=None)


def _array(known: Known) -> NDArray[Any]:
    schema = known.schema
    p = len(schema.columns)
    dtype: Any = schema.columns[0].dtype
    if dtype in ("str", "bytes"):  # as long as the longest label
        constants = [c.constant for c in schema.columns if c.constant is not None]
        dtype = np.result_type(*schema.labels, *constants)
    columns = map(known.column, range(p))
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
        values = known.column(int(schema.index[i]))
        used = np.flatnonzero(values)
        parts.append((used, np.full(len(used), schema.index[i]), values[used]))
    rows, columns, data = (np.concatenate(part) for part in zip(*parts, strict=True))
    shape, dtype = (n, len(schema.columns)), schema.columns[0].dtype
    return _csr(schema)((data.astype(dtype), (rows, columns)), shape=shape)


def _csr(schema: SchemaFields) -> Any:
    return sparse.csr_matrix if schema.container == "sparse matrix" else sparse.csr_array


def _grouped(known: Known) -> Any:
    """A matrix with the block of every group in its columns."""
    schema = known.schema
    assert schema.members is not None
    back = np.argsort(np.concatenate(schema.members))
    if schema.container == "array":
        return np.hstack(known.columns)[:, back]
    return _csr(schema)(sparse.hstack(known.columns, format="csr")[:, back])
