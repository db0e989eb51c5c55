"""Buffers of arrays, sparse matrices and blocks: compact, and joined again as they came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.batches.pieces import (
    Labels,
    Piece,
    Run,
    join_pieces,
    kinds_of,
    object_array,
    same_kind,
    smallest_dtype,
    with_run,
)
from latenttree.data.checks import check_finite, is_missing, resolve_names
from latenttree.data.columns.blocks import as_block, common_length
from latenttree.data.columns.vectors import unsupported_dtype
from latenttree.data.containers import complex_data
from latenttree.errors import DataError

NUMBERS, TEXT = "biuf", "US"


@dataclass(frozen=True, eq=False)
class ArrayBuffer:
    """Rows of arrays of one width.

    Attributes
    ----------
    names : names of the columns, for errors; one for a vector.
    vector : whether rows are single values.
    runs : the rows, a run for each change of type.
    labels : of text and objects.
    kinds : what each column held so far, see `same_kind`.
    masked : whether an array was masked.
    """

    names: tuple[str, ...]
    vector: bool
    runs: tuple[Run[Piece], ...] = ()
    labels: Labels = field(default_factory=Labels)
    kinds: tuple[str | None, ...] = ()
    masked: bool = False

    def added(self, array: NDArray[Any]) -> ArrayBuffer:
        """With the rows of one more array, whose shape the caller has checked."""
        mask = np.ma.getmaskarray(array) if np.ma.isMaskedArray(array) else None
        data = np.asarray(array)
        run = self._run(data, mask)
        return replace(
            self,
            runs=with_run(self.runs, run, join_pieces),
            kinds=self._kinds(data, run.dtype),
            masked=self.masked or mask is not None,
        )

    def _run(self, data: NDArray[Any], mask: NDArray[np.bool_] | None) -> Run[Piece]:
        kind, gaps = data.dtype.kind, mask if mask is not None and mask.any() else None
        gaps = None if gaps is None else gaps.copy()
        if kind == "c":
            raise complex_data()
        if kind not in NUMBERS + TEXT + "OT":
            raise unsupported_dtype(self.names[0], data.dtype)
        if kind in NUMBERS:
            if kind == "f":
                check_finite(data.reshape(len(data), -1), self.names)
            values = smallest_dtype(data) if kind in "iu" else data.copy()
            return Run(data.dtype, (Piece(values, gaps),))
        codes = self._codes(data)
        dtype = _common_text(self.runs, data.dtype)
        growing = kind if kind in TEXT else ""
        return Run(dtype, (Piece(codes, gaps),), coded=True, growing=growing)

    def _codes(self, data: NDArray[Any]) -> NDArray[Any]:
        if data.dtype.kind not in TEXT:
            return self.labels.codes(data.ravel().tolist())[0].reshape(data.shape)
        values, inverse = np.unique(data, return_inverse=True)
        codes, _ = self.labels.codes(values.tolist())
        return np.asarray(codes[inverse.reshape(data.shape)])

    def _kinds(self, data: NDArray[Any], dtype: Any) -> tuple[str | None, ...]:
        """All numbers, booleans among them, go together; with objects or text every column keeps
        its kind."""
        known = self.kinds or (None,) * len(self.names)
        now = _kinds_of_columns(data.reshape(len(data), -1))
        if dtype.kind in NUMBERS and all(run.dtype.kind in NUMBERS for run in self.runs):
            return tuple(map(_promoted, known, now))
        return tuple(map(same_kind, known, now, self.names))

    def joined(self) -> NDArray[Any]:
        """All rows as one array of the common type; masked where a batch was."""
        n, tail = sum(run.n for run in self.runs), () if self.vector else (len(self.names),)
        dtype = np.result_type(*(run.dtype for run in self.runs))
        data = np.empty((n, *tail), dtype=dtype)
        mask = np.zeros(data.shape, dtype=np.bool_) if self.masked else None
        start = 0
        for run in self.runs:
            table = label_table(self.labels, run.dtype) if run.coded else None
            for piece in run.pieces:
                rows = slice(start, start + len(piece))
                values = piece.values
                data[rows] = values.astype(run.dtype) if table is None else table[values]
                if mask is not None:
                    mask[rows] = ~piece.known
                start = rows.stop
        return data if mask is None else np.ma.MaskedArray(data, mask)

    @property
    def nbytes(self) -> int:
        """Memory of rows and labels."""
        return sum(p.nbytes for run in self.runs for p in run.pieces) + self.labels.nbytes


def label_table(labels: Labels, dtype: Any) -> NDArray[Any]:
    """The labels as an array of a type; those that it cannot hold belong to runs of
    another type."""
    table = object_array(labels.values)
    if dtype.kind == "O":
        return table
    type_: type = bytes if dtype.kind == "S" else str
    fits = np.array([isinstance(value, type_) for value in table], dtype=np.bool_)
    if hasattr(dtype, "na_object"):  # text of NumPy 2 that may be missing
        fits |= is_missing(table)
    typed = np.zeros(len(table), dtype=dtype)
    typed[fits] = table[fits]
    return typed


def _kinds_of_columns(data: NDArray[Any]) -> list[set[str]]:
    kind, p = data.dtype.kind, data.shape[1]
    if kind == "f":
        return [set() if gone else {"numbers"} for gone in np.isnan(data).all(axis=0).tolist()]
    if kind in NUMBERS + TEXT:
        return [{"booleans" if kind == "b" else "numbers" if kind in "iu" else "text"}] * p
    return [kinds_of(column) for column in data.T.tolist()]


def _promoted(known: str | None, kinds: set[str]) -> str | None:
    now = next(iter(kinds), known)
    return now if known in (None, now) else "numbers"


def _common_text(runs: tuple[Run[Piece], ...], dtype: Any) -> Any:
    """Text of any length is one type, of the greatest length."""
    last = runs[-1].dtype if runs else None
    same = last is not None and last.kind in TEXT and last.kind == dtype.kind
    return np.result_type(last, dtype) if same else dtype


# ---- sparse matrices ----------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Csr:
    """Rows of a sparse matrix, integers in the smallest type."""

    matrix: Any

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    @property
    def nbytes(self) -> int:
        """Memory of values, indices and row pointers."""
        m = self.matrix
        return int(m.data.nbytes + m.indices.nbytes + m.indptr.nbytes)


@dataclass(frozen=True, eq=False)
class SparseBuffer:
    """Rows of sparse matrices of one width, as CSR; `matrix` selects SciPy's matrix instead of its
    array."""

    names: tuple[str, ...]
    matrix: bool
    runs: tuple[Run[Csr], ...] = ()

    def added(self, X: Any) -> SparseBuffer:
        """With the rows of one more sparse matrix of the same width."""
        if X.dtype.kind == "c":
            raise complex_data()
        if X.dtype.kind not in NUMBERS:
            raise DataError(
                f"a sparse matrix must be numeric, got type {X.dtype}", "convert it", value=X.dtype
            )
        matrix = sparse.csr_array(X)
        bad = ~np.isfinite(matrix.data) if X.dtype.kind == "f" else np.zeros(0, dtype=np.bool_)
        if bad.any():
            at = int(bad.argmax())
            row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
            name, value = self.names[matrix.indices[at]], matrix.data[at]
            raise DataError(
                f"NaN or infinity (value {value}) at row {row}, column {name!r} of a sparse matrix",
                "values must be finite: drop or fill it",
                value=value,
                row=row,
                column=name,
            )
        run = Run(matrix.dtype, (Csr(_small_csr(matrix)),))
        return replace(self, runs=with_run(self.runs, run, _join_csr))

    def joined(self) -> Any:
        """All rows as one CSR of the first batch's SciPy kind."""
        parts = [
            sparse.csr_array((m.data.astype(run.dtype), m.indices, m.indptr), shape=m.shape)
            for run in self.runs
            for m in (piece.matrix for piece in run.pieces)
        ]
        whole = sparse.csr_array(sparse.vstack(parts, format="csr"))
        return sparse.csr_matrix(whole) if self.matrix else whole

    @property
    def nbytes(self) -> int:
        """Memory of all pieces."""
        return sum(p.nbytes for run in self.runs for p in run.pieces)


def _small_csr(X: Any) -> Any:
    """A copy in few bytes."""
    whole = X.data.dtype.kind in "iu" and X.data.size
    data = smallest_dtype(X.data) if whole else X.data.copy()
    index = np.int32 if max(X.shape[1], X.nnz) < 2**31 else np.int64
    indices, indptr = X.indices.astype(index), X.indptr.astype(index)
    return sparse.csr_array((data, indices, indptr), shape=X.shape)


def _join_csr(pieces: list[Csr]) -> Csr:
    return Csr(sparse.csr_array(sparse.vstack([piece.matrix for piece in pieces], format="csr")))


# ---- lists and dicts of blocks --------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class BlockBuffer:
    """A block, or a vector, for each variable. `keys` of a dict; None for a list."""

    keys: tuple[Any, ...] | None
    names: tuple[str, ...]
    parts: tuple[ArrayBuffer | SparseBuffer, ...]

    @classmethod
    def like(cls, X: Sequence[Any] | Mapping[Any, Any]) -> BlockBuffer:
        """An empty buffer for inputs like `X`."""
        keys = tuple(X) if isinstance(X, Mapping) else None
        names = tuple(resolve_names(None, len(X), keys))
        blocks = _blocks_of(X, keys, names)
        return cls(keys, names, tuple(map(_empty_like, blocks, names)))

    def added(self, X: Sequence[Any] | Mapping[Any, Any]) -> BlockBuffer:
        """With the rows of one more list or dict of blocks."""
        blocks = _blocks_of(X, self.keys, self.names)
        common_length(blocks, self.names, n_min=1)
        for block, name, part in zip(blocks, self.names, self.parts, strict=True):
            _check_form(block, part, name)
        parts = tuple(part.added(block) for part, block in zip(self.parts, blocks, strict=True))
        return replace(self, parts=parts)

    def joined(self) -> Any:
        """The blocks with all rows, in a list or dict as they came."""
        blocks = [part.joined() for part in self.parts]
        return blocks if self.keys is None else dict(zip(self.keys, blocks, strict=True))

    @property
    def nbytes(self) -> int:
        """Memory of all blocks."""
        return sum(part.nbytes for part in self.parts)


def _blocks_of(X: Any, keys: tuple[Any, ...] | None, names: tuple[str, ...]) -> list[Any]:
    """The blocks in the order of the first batch, found by name where they have names."""
    if keys is not None:
        check_names(list(X), keys)
    elif len(X) != len(names):
        raise DataError(
            f"the list has {len(X)} blocks, earlier batches had {len(names)}",
            "give every batch the same blocks",
            value=len(X),
        )
    values = list(X) if keys is None else [X[key] for key in keys]
    return [
        value if np.ma.isMaskedArray(value) else as_block(value, name)
        for value, name in zip(values, names, strict=True)
    ]


def _empty_like(block: Any, name: str) -> ArrayBuffer | SparseBuffer:
    columns = tuple(f"{name}[{j}]" for j in range(block.shape[1])) if block.ndim == 2 else (name,)
    if sparse.issparse(block):
        return SparseBuffer(columns, not isinstance(block, sparse.sparray))
    return ArrayBuffer(columns, block.ndim == 1)


def _check_form(block: Any, part: ArrayBuffer | SparseBuffer, name: str) -> None:
    if sparse.issparse(block) != isinstance(part, SparseBuffer):
        now, before = ("sparse", "dense") if sparse.issparse(block) else ("dense", "sparse")
        raise DataError(
            f"block {name!r} is {now}, but {before} in earlier batches",
            "pass it as in the first",
            column=name,
            value=now,
        )
    vector = isinstance(part, ArrayBuffer) and part.vector
    expected = 0 if vector else len(part.names)
    width = 0 if block.ndim == 1 else block.shape[1]
    if width != expected:
        shown = ["a vector" if w == 0 else f"{w} columns wide" for w in (width, expected)]
        raise DataError(
            f"block {name!r} is {shown[0]}, but {shown[1]} in earlier batches",
            "give every batch the same columns",
            column=name,
            value=shown[0],
        )


def check_names(names: Sequence[Any], expected: Sequence[Any]) -> None:
    """Raise unless a batch has the columns of the first, in any order."""
    now, before = set(names), set(expected)
    missing = [name for name in expected if name not in now]
    extra = [name for name in names if name not in before]
    if missing:
        raise DataError(
            f"column {missing[0]!r} is not there{_and_more(missing)}",
            "give every batch the columns of the first",
            column=str(missing[0]),
        )
    if extra:
        raise DataError(
            f"column {extra[0]!r} was not in earlier batches{_and_more(extra)}",
            "leave it out, or begin anew with it in every batch",
            column=str(extra[0]),
        )


def _and_more(names: Sequence[Any]) -> str:
    return "" if len(names) == 1 else f" (and {len(names) - 1} more)"
