"""New data in any container to the codes and numbers of a model, read as the training data were."""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.checks import N_SHOWN, check_shape, first_few
from latenttree.data.columns.blocks import canonical_csr, split_gaps
from latenttree.data.columns.codes import stack_columns
from latenttree.data.columns.vectors import Column
from latenttree.data.containers import Container, Matrix, container_of
from latenttree.data.files.boundary import reading
from latenttree.data.files.standard_input import stored
from latenttree.data.found_events import Events
from latenttree.data.schema.fields import SchemaFields
from latenttree.data.schema.lookup import MISSING
from latenttree.data.schema.new_files import CsvCells, rows_of_cells, samples_in
from latenttree.data.schema.rows import Rows
from latenttree.data.schema.unseen import Unseen
from latenttree.data.table import sparse_binary_table
from latenttree.errors import DataError, DataWarning

MATRICES = ("array", "sparse array", "sparse matrix")
"""Containers without names of their own, whose samples come without names too."""

MODEL = "LatentTree"  # in the words that scikit-learn's checks look for


@dataclass(frozen=True, eq=False)
class Reader:
    """Reads inputs by a schema; `unused` variables are not read, `n_min` is the least number of
    rows, `unseen` collects levels that training did not have."""

    schema: SchemaFields
    n_min: int = 1
    unused: Collection[str] = ()
    unseen: Unseen = field(default_factory=lambda: Unseen("error"))

    def read(self, X: Any) -> Rows:
        """The samples of any input that `fit` takes."""
        if isinstance(X, str | os.PathLike):
            rows = self._file(stored(Path(X)))
        else:
            rows = self._rows(self._of_events(X) if isinstance(X, Events) else X)
        self.unseen.warn()
        return rows

    def _file(self, path: Path) -> Rows:
        """The samples in a file."""
        with reading(path):
            samples = samples_in(path, self.schema.input_names)
            if not isinstance(samples, CsvCells):
                return self._rows(samples)
            check_shape((samples.n_samples, len(samples.header)), self.n_min)
            self._check_names(samples.header)
            return rows_of_cells(samples, self.schema, path.name, self.unseen, self.unused)

    def _of_events(self, events: Events) -> Any:
        """The matrix of new events in the codes of the model: a code that no event has is in no
        sample."""
        found = self.schema.event_codes()
        if found is None:
            what = "X are events, but the model was not learned from codes that are there or not"
            raise DataError(what, "pass a table with a row for each sample")
        _check_complete(events)
        codes, groups = found
        self._tell_unknown_codes(events, codes)
        position = {name: j for j, name in enumerate(events.names)}
        places = np.array([position.get(code, -1) for code in codes])
        matrix = sparse.csr_array(events.matrix[:, np.maximum(places, 0)])
        matrix.data[places[matrix.indices] < 0] = 0
        matrix.eliminate_zeros()
        if groups is None:
            return sparse_binary_table(codes, matrix)
        return {name: matrix[:, columns] for name, columns in groups.items()}

    def _tell_unknown_codes(self, events: Events, codes: Sequence[str]) -> None:
        """Warn of codes that the model does not know, or raise as `unseen` says."""
        known = set(codes)
        counts = zip(events.names, np.diff(sparse.csc_array(events.matrix).indptr), strict=True)
        unknown = {name: int(n) for name, n in counts if name not in known}
        earlier = events.report.get("outside_codes", {"pairs": 0, "examples": {}})
        n_pairs = sum(unknown.values()) + earlier["pairs"]
        if not n_pairs:
            return
        total = events.matrix.nnz + earlier["pairs"]
        most = first_few(
            [f"{name!r} ({n:,})" for name, n in (earlier["examples"] | unknown).items()]
        )
        what = (
            f"{n_pairs:,} of {total:,} occurrences have codes that the model does not know: {most}"
        )
        if not self.unseen.missing:
            raise DataError(what, "leave these events out", value=next(iter(unknown), None))
        warnings.warn(DataWarning(f"{what}; they are left out"), stacklevel=2)

    def _check_names(self, names: Sequence[str]) -> None:
        """Raise unless columns with names are those of the variables that are used."""
        schema = self.schema
        used = (schema.columns[j].name for j in schema.index.tolist())
        pairs = zip(schema.names, used, strict=True)
        absent = {name for v, name in pairs if v not in self.unused} - set(names)
        unknown = set(names) - set(schema.input_names)
        if absent or unknown:
            raise _wrong_names(sorted(unknown), sorted(absent))

    def _rows(self, X: Any) -> Rows:
        schema = self.schema
        container = container_of(X)
        check_shape(container.shape, self.n_min)
        if isinstance(container, Matrix) and schema.members is not None:
            self._check_count(container)
            container = Matrix(container.whole, schema.input_names, schema.members)
        elif isinstance(container, Matrix) and container.is_sparse:
            self._check_sparse(X)
        positions = self._positions(container)
        if schema.is_sparse_binary and container.ones is not None:
            return self._binary(container.ones, positions, container.own_names)
        if isinstance(container, Matrix) and self._fits(container):
            codes = container.array.astype(schema.code_dtype)
            codes[:, positions < 0] = MISSING
            return Rows(len(codes), codes)
        variable = {j: i for i, j in enumerate(positions.tolist()) if j >= 0}
        columns = ((variable[j], column) for j, column in container.columns(variable))
        return self._stacked(container.shape[0], columns)

    def _check_sparse(self, X: Any) -> None:
        if not self.schema.is_sparse_binary and self.schema.n_coded:
            fitted = f"the model was fitted on {self.schema.container} data with categories"
            what = f"X is a sparse matrix, but {fitted}"
            raise DataError(what, "pass X.toarray()", value=type(X).__name__)

    def _fits(self, matrix: Matrix) -> bool:
        """Whether an integer array holds only codes, so that a cast suffices."""
        schema, array = self.schema, matrix.array
        same = len(schema.columns) == schema.n_vars and _in_order(schema.index)
        plain = matrix.mask is None and not matrix.is_sparse and array.dtype.kind in "biu"
        if not (same and plain and schema.numbered):
            return False
        right = (array.min(axis=0) >= 0) & (array.max(axis=0) < schema.dims)
        right[[name in self.unused for name in schema.names]] = True
        return bool(right.all())

    def _binary(self, X: Any, positions: NDArray[np.int64], names: Sequence[str] | None) -> Rows:
        """1 where a value is > 0, missing where it is NaN."""
        known, lost = split_gaps(X)
        ones = canonical_csr(known, self.schema.input_names if names is None else names)
        ones.data = np.ones(ones.nnz, dtype=np.int8)
        if lost is not None:  # 0 or 1 becomes -1
            ones = ones - lost - ones.multiply(lost)
        skip = np.flatnonzero(positions < 0)
        if len(positions) != X.shape[1] or len(skip) or not _in_order(positions):
            ones = ones[:, np.maximum(positions, 0)]
        return Rows(X.shape[0], matrix=sparse.csr_array(ones), skip=skip)

    # --- columns to codes and numbers ------------------------------------------------

    def _stacked(self, n: int, columns: Iterator[tuple[int, Column]]) -> Rows:
        """Rows of the given variables, in any order; the others are not used."""
        schema = self.schema
        arrays: dict[int, Any] = {}
        filled: list[int] = []

        def codes() -> Iterator[NDArray[Any]]:
            for i, column in columns:
                encoded = schema.variables[i].encode(column, self.unseen)
                if schema.coded[i]:
                    filled.append(i)
                    yield encoded
                else:
                    arrays[i] = encoded

        stacked = stack_columns(codes(), n, schema.n_coded, schema.code_dtype)
        if not schema.n_coded:
            return Rows(n, arrays=arrays, n_vars=schema.n_vars)
        if filled == list(range(schema.n_vars)):
            return Rows(n, stacked, arrays=arrays)
        whole = np.full((n, schema.n_vars), MISSING, dtype=schema.code_dtype)
        whole[:, filled] = stacked[:, : len(filled)]
        return Rows(n, whole, arrays=arrays)

    # --- columns of the input ----------------------------------------------------------

    def _positions(self, container: Container) -> NDArray[np.int64]:
        """(p,) column of each variable in the input, -1 where it is not used: found by name where
        the input has names, else by position."""
        kept = self.schema.index.copy()
        kept[[name in self.unused for name in self.schema.names]] = -1
        if container.members is not None:
            return kept
        if container.own_names is not None:
            return self._match(container, kept)
        self._check_count(container)
        return kept

    def _check_count(self, container: Container) -> None:
        n_columns, expected = container.shape[1], self.schema.n_features
        if n_columns != expected:
            what = f"X has {n_columns} features, but "
            what += f"{MODEL} is expecting {expected} features as input"
            remedy = "without names, columns are found by position"
            remedy += ": pass all of them in the order of training"
            raise DataError(what, remedy, value=n_columns)
        if self.schema.named and self.schema.container not in MATRICES:
            what = f"X does not have valid feature names, but {MODEL} was fitted with feature names"
            warnings.warn(what, DataWarning, stacklevel=2)

    def _match(self, container: Container, kept: NDArray[np.int64]) -> NDArray[np.int64]:
        """The columns of the variables by name; by position where training had no names."""
        schema, names = self.schema, container.own_names
        assert names is not None
        position = {name: j for j, name in enumerate(map(str, names))}
        wanted = [schema.columns[j].name for j in kept[kept >= 0]]
        absent = [name for name in wanted if name not in position]
        known = set(schema.input_names)
        unknown = [name for name in position if name not in known]
        if not absent and not unknown:
            return np.array([position[schema.columns[j].name] if j >= 0 else -1 for j in kept])
        if schema.named:
            raise _wrong_names(unknown, absent)
        self._check_count(container)
        if any(isinstance(name, str) for name in names) or container.name == "dict":
            what = f"X has feature names, but {MODEL} was fitted without feature names"
            warnings.warn(what, DataWarning, stacklevel=2)
        return kept


# --- small helpers ---------------------------------------------------------------------


def _wrong_names(unknown: Sequence[str], absent: Sequence[str]) -> DataError:
    message = "The feature names should match those that were passed during fit.\n"
    if unknown:
        message += f"Feature names unseen at fit time:\n{_bullets(unknown)}"
    if absent:
        message += f"Feature names seen at fit time, yet now missing:\n{_bullets(absent)}"
    return DataError(
        message + "Select and rename the columns; their order does not matter",
        column=sorted(unknown or absent)[0],
        value=(tuple(unknown), tuple(absent)),
    )


def _check_complete(events: Events) -> None:
    """Raise where reading new events left out codes that are rare among them, or everywhere."""
    left_out = (events.report.get(why, {"codes": 0})["codes"] for why in ("rare", "everywhere"))
    if sum(left_out):
        what = "new events were read as those to learn from: codes that few of their samples have, "
        what += "or all of them, were left out"
        raise DataError(what, "read them again with read_events(..., codes=model)")


def _bullets(names: Sequence[str]) -> str:
    shown = "".join(f"- {name}\n" for name in sorted(names)[:N_SHOWN])
    return shown + ("- ...\n" if len(names) > N_SHOWN else "")


def _in_order(index: NDArray[Any]) -> bool:
    return np.array_equal(index, np.arange(len(index)))
