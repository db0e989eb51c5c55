"""Any input in memory to a `Table`: each column of its container to a variable."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import (
    MAX_ALL_UNIQUE,
    check_known,
    check_shape,
    combined_error,
    constant_column,
    coordinate_names,
    identifier,
    resolve_names,
)
from latenttree.data.columns.block_variables import dense_block, sparse_block, variable_of_block
from latenttree.data.columns.blocks import counts_note, table_from_sparse
from latenttree.data.columns.families import AUTO, Family, requested_families, wrong_family
from latenttree.data.columns.groups import Groups, Members
from latenttree.data.columns.variables import Variable, blocks_of_variables, codes_of_variables
from latenttree.data.columns.vector_variables import all_missing_variable, variable_of
from latenttree.data.columns.vectors import Column, Vector, training_vector
from latenttree.data.containers import Container, Matrix, TableInput, container_of
from latenttree.data.streaming.columns import NumericOnDisk
from latenttree.data.table import Table
from latenttree.data.weights import numbering_all_rows, weighted_rows
from latenttree.errors import DataError, Option, Text

Floats = NDArray[np.float64]


def table_in_memory(
    X: Any, groups: Groups | None, sample_weight: Any, scores: bool, options: Mapping[str, Any]
) -> Table:
    """The table of an input that is neither a path nor a table; arguments as in `as_table`."""
    container, weights = weighted_rows(container_of(X, groups), sample_weight)
    with numbering_all_rows(lambda: sample_weight):
        return TableBuilder(**options, weights=weights, scores=scores).table(container)


def table_of_scores(table: Table) -> Table:
    """The same table for a Gaussian tree: normal scores of all variables."""
    scores = TableBuilder(weights=table.weights, scores=True).table(TableInput(table))
    return scores.replace(notes=table.notes, dropped=table.dropped)


@dataclass(frozen=True)
class TableBuilder:
    """The options of `as_table`, and the way from columns to variables to a table."""

    names: Sequence[Any] | None = None
    family: Family = AUTO
    drop_constant: bool = False
    weights: Floats | None = None
    scores: bool = False

    def table(self, container: Container) -> Table:
        """A sparse binary table of a sparse matrix without groups; of kind "codes" where every
        column is a vector of values; otherwise, and of scores, of kind "blocks"."""
        check_shape(container.shape)
        n, p = container.shape
        names = resolve_names(self.names, p, container.own_names)
        if container.ones is not None and not self.scores:
            self._check_binary(names)
            table = table_from_sparse(container.ones, names, self.drop_constant)
            notes = counts_note(container.ones) if self.family == AUTO else ()
            return table.replace(weights=self.weights, notes=(*table.notes, *notes))
        if container.ones is not None:
            container = Matrix(sparse_block(container.ones, names, "gaussian"))
        columns = (column for _, column in container.columns())
        return self.table_of(columns, names, n, container.has_blocks, container.members)

    def table_of(
        self,
        columns: Iterable[Column | Vector],
        names: Sequence[str],
        n: int,
        blocks: bool = False,
        members: Members | None = None,
    ) -> Table:
        """The table of columns that arrive one at a time, of kind "blocks" if some are."""
        variables = self.variables(columns, names, n, members)
        if blocks or self.scores:
            table = blocks_of_variables(list(variables), n, self.drop_constant)
        else:
            table = codes_of_variables(variables, names, n, self.drop_constant)
        return table.replace(weights=self.weights)

    def variables(
        self,
        columns: Iterable[Column | Vector],
        names: Sequence[str],
        n: int,
        members: Members | None = None,
    ) -> Iterator[Variable]:
        """The variables; where some cannot be made, one error about all of them. `members` are the
        matrix columns of groups, for errors."""
        requested, wrong, failed = requested_families(self.family, names), [], False
        for i, column in enumerate(columns):
            member = None if members is None else members[i]
            try:
                variable = self.variable(column, names[i], requested[i], member)
            except DataError as error:
                failed = True
                wrong.append(error)
                continue
            wrong += self._later_errors(variable, n)
            if not failed:
                yield variable
        if failed:
            raise combined_error(wrong)

    def _later_errors(self, variable: Variable, n: int) -> list[DataError]:
        """The errors that later checks would raise about a variable that can be read."""
        if variable.constant is not None:
            error = constant_column(variable.name, variable.only_value, n)
            return [] if self.drop_constant else [error]
        labels, known = variable.labels, n - variable.n_missing
        if labels is None or not MAX_ALL_UNIQUE < known == len(labels):
            return []
        return [identifier(variable.name, known, labels.dtype.kind in "iuf")]

    def variable(
        self,
        column: Column | Vector,
        name: str,
        requested: str,
        member: NDArray[np.int64] | None = None,
    ) -> Variable:
        """The variable of a column or a block, of the requested family; `member` are the matrix
        columns of a group."""
        if isinstance(column, Column) and not column.is_vector:
            return self._block(column, name, requested, member)
        vector = training_vector(column, name) if isinstance(column, Column) else column
        if not len(vector.known):
            if not self.drop_constant:
                check_known(0, vector.n, name)
            return all_missing_variable(vector, name)
        if isinstance(vector, NumericOnDisk):
            return vector.variable(name, requested)
        return variable_of(vector, name, requested, self.weights, self.scores)

    def _block(
        self, column: Column, name: str, requested: str, member: NDArray[np.int64] | None
    ) -> Variable:
        """The variable of an (n, d) block."""
        values = column.values
        if member is None:
            columns = coordinate_names(name, values.shape[1])
        else:
            columns = [f"x{j}" for j in member.tolist()]
        x: Any
        if sparse.issparse(values):
            x = sparse_block(values, columns, "gaussian" if self.scores else requested)
        else:
            x = dense_block(values, columns, column.mask)
        return variable_of_block(x, name, columns, requested, self.weights, self.scores)

    def _check_binary(self, names: Sequence[str]) -> None:
        """Raise if a family other than binary is requested for a sparse matrix."""
        requested = requested_families(self.family, names)
        other = next(
            (name for name in requested if name not in (AUTO, "binary", "categorical")), None
        )
        if other is not None:
            what = f"family {other!r}: a sparse matrix without groups is read as binary variables"
            remedy = "pass X.toarray() to read its numbers, or "
            remedy = Text(remedy, Option("groups"), " to join columns to vectors")
            raise wrong_family(what, remedy, None, other)
