"""`Batches`: samples that come a part at a time, buffered until all of them are needed together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.batches.arrays import ArrayBuffer, BlockBuffer, SparseBuffer
from latenttree.data.batches.frames import FrameBuffer, OtherFrameBuffer
from latenttree.data.batches.pieces import with_piece
from latenttree.data.checks import check_shape
from latenttree.data.containers import as_frame, as_matrix, is_blocks, n_rows, reject_unreadable
from latenttree.data.table import Table
from latenttree.data.weights import checked_numbers
from latenttree.errors import DataError

Floats = NDArray[np.float64]


class Buffer(Protocol):
    """Batches of one kind of container."""

    def added(self, X: Any) -> Any:
        """With one more batch; raises DataError where it does not fit."""

    def joined(self) -> Any:
        """All rows, in the container that they came in."""

    @property
    def nbytes(self) -> int:
        """Memory."""


@dataclass(frozen=True, eq=False)
class _Held:
    """The state of `Batches`, replaced as a whole so that no batch is ever half added."""

    kind: str
    kept: Any
    n_rows: int = 0
    n_batches: int = 0
    weights: tuple[Floats, ...] | None = None


class Batches:
    """Batches of rows, as one table would have them.

    Batches are of one kind: arrays (or lists of rows), sparse matrices, dicts or lists of blocks,
    DataFrames of one library. Columns of DataFrames and dicts are found by name, in any order;
    those of arrays and lists by position.

    Buffer is a copy in few bytes for each cell: 1 for a boolean, 1, 2, 4 or 8 for an integer as its
    batch needs it (and 1 more in a batch with gaps where the type has no NaN), 1, 2 or 4 for text
    and categories (and each different one once), 4 or 8 for a float as it came; 4 and that of its
    value for a stored value of a sparse matrix; 8 for the weight of a row. Other DataFrames than
    those of pandas and polars are kept as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from latenttree.data.batches import Batches
    >>> batches = Batches()
    >>> batches.add(np.array([[1, 300]]))
    >>> batches.add(np.array([[2, 5], [0, 7]]))
    >>> batches.joined()
    (array([[  1, 300],
           [  2,   5],
           [  0,   7]]), None)
    """

    def __init__(self) -> None:
        self._held: _Held | None = None

    @property
    def n_batches(self) -> int:
        """Batches added so far."""
        return 0 if self._held is None else self._held.n_batches

    @property
    def n_rows(self) -> int:
        """Rows of all batches."""
        return 0 if self._held is None else self._held.n_rows

    @property
    def nbytes(self) -> int:
        """Memory of the buffer, roughly."""
        if self._held is None:
            return 0
        weights = self._held.weights or ()
        return int(self._held.kept.nbytes) + sum(w.nbytes for w in weights)

    def add(self, X: Any, sample_weight: Any = None) -> None:
        """Keep the rows of one more batch, of one row or more.

        Raises
        ------
        DataError : where the batch does not fit those before it: another container, absent or
            unknown columns, another width, values of another kind. Nothing of it is kept then.
            Batches are numbered from 1.
        """
        try:
            self._held = self._added(X, sample_weight)
        except DataError as error:
            raise error.within(f"batch {self.n_batches + 1}") from None

    def _added(self, X: Any, sample_weight: Any) -> _Held:
        kind, rows = _recognised(X)
        held = self._held
        if held is None:
            held = _Held(kind, _empty(kind, rows))
        elif held.kind != kind:
            raise DataError(
                f"it is {_article(kind)}, earlier batches were {_article(held.kind)}",
                "pass them all in one kind of container",
                value=kind,
            )
        _check_width(kind, rows, held.kept)
        n = n_rows(X)
        weights = _with_weights(held, sample_weight, n)
        return replace(
            held,
            kept=held.kept.added(rows),
            n_rows=held.n_rows + n,
            n_batches=held.n_batches + 1,
            weights=weights,
        )

    def joined(self) -> tuple[Any, Floats | None]:
        """All rows in the container that they came in, and their weights (None: no batch had any).

        The rows are what the caller would have had by joining the batches, also in the types of
        their columns; categories are those of all batches. The buffer shares no memory with the
        result."""
        if self._held is None:
            raise DataError("there are no batches to join", "add one first")
        weights = self._held.weights
        return self._held.kept.joined(), None if weights is None else np.concatenate(weights)


# ---- containers ---------------------------------------------------------------------------


def _recognised(X: Any) -> tuple[str, Any]:
    """The kind of a container, and its rows in the form that `Buffer` takes."""
    reject_unreadable(X)
    if isinstance(X, Table):
        raise DataError("it is a Table, which cannot be joined", "pass the rows it was made of")
    if sparse.issparse(X):
        check_shape(X.shape, 1)
        return "sparse matrix", X
    frame = as_frame(X)
    if frame is not None:
        check_shape(frame.shape, 1)
        return f"{frame.implementation.name.lower()} DataFrame", frame
    if is_blocks(X):
        return ("dict of blocks" if hasattr(X, "keys") else "list of blocks"), X
    return "array", as_matrix(X, 1)


def _empty(kind: str, X: Any) -> Buffer:
    """An empty buffer for inputs like `X`."""
    if kind == "array":
        return ArrayBuffer(_numbered(X.shape[1]), False)
    if kind == "sparse matrix":
        return SparseBuffer(_numbered(X.shape[1]), not isinstance(X, sparse.sparray))
    if kind in ("dict of blocks", "list of blocks"):
        return BlockBuffer.like(X)
    if X.implementation.is_pandas() or X.implementation.is_polars():
        return FrameBuffer.empty(X)
    return OtherFrameBuffer(tuple(X.columns))


def _numbered(p: int) -> tuple[str, ...]:
    return tuple(f"x{j}" for j in range(p))


def _check_width(kind: str, X: Any, kept: Any) -> None:
    if kind in ("array", "sparse matrix") and X.shape[1] != len(kept.names):
        raise DataError(
            f"X has {X.shape[1]} features, but LatentTree is expecting {len(kept.names)} "
            "features as input, as in earlier batches",
            "give every batch the same columns",
            value=X.shape[1],
        )


def _article(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


# ---- weights ------------------------------------------------------------------------------


def _with_weights(held: _Held, sample_weight: Any, n: int) -> tuple[Floats, ...] | None:
    """The weights of all rows; rows of batches without weights count once."""
    if sample_weight is None and held.weights is None:
        return None
    new = np.ones(n) if sample_weight is None else checked_numbers(sample_weight, n)
    before = held.weights
    if before is None:
        before = (np.ones(held.n_rows),) if held.n_rows else ()
    return with_piece(before, new, lambda parts: np.concatenate(parts))
