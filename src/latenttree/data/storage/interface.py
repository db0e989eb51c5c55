"""`Storage` and `Features`: what passes ask of the coordinates of samples."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data.chunk import Chunk

Float32 = NDArray[np.float32]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

PIECE = 512
"""Samples that a thread takes at a time."""

N_PIECES = 64
"""Ranges of variables that threads share."""


class CrossSums(NamedTuple):
    """Sums over samples of coordinates x_a times features z."""

    products: Float32  # (coordinates + 1, s); the last row is not used
    beside: Floats  # (p, s) features over the samples that have variable a; unused for codes


@dataclass(frozen=True, eq=False)
class Storage(ABC):
    """The form of the coordinates of a table: those of variable a are offsets[a]:offsets[a + 1]."""

    offsets: Ints  # (p + 1,)
    has_missing: bool

    wide: ClassVar[str]
    """What takes more than a number for each variable."""

    @property
    def n_vars(self) -> int:
        """p."""
        return len(self.offsets) - 1

    @property
    def widths(self) -> Ints:
        """(p,) coordinates of each variable."""
        return np.diff(self.offsets)

    @cached_property
    def owners(self) -> Ints:
        """(coordinates,) the variable of each."""
        return np.repeat(np.arange(self.n_vars), self.widths)

    def rows(self, chunk: Chunk) -> Any:
        """The coordinates of some samples: codes `(n, p)`, or CSR `(n, coordinates)`."""
        return chunk.rows if chunk.stored is None else chunk.stored

    @abstractmethod
    def known(self, chunk: Chunk) -> NDArray[np.bool_] | None:
        """(n, p) False where a variable is missing; None where none is in any sample."""

    # ---- means and variances --------------------------------------------------------------

    @abstractmethod
    def middle(self, first: Chunk) -> Floats:
        """(coordinates,) numbers near the means, from the first samples: squares are taken from
        them, so that variances of numbers far from zero keep their digits."""

    @abstractmethod
    def no_sums(self) -> Floats:
        """Zeros for `add_sums`."""

    @abstractmethod
    def add_sums(self, sums: Floats, chunk: Chunk, middle: Floats, n_jobs: int) -> None:
        """Add what `mean_and_variance` needs of some samples."""

    @abstractmethod
    def mean_and_variance(
        self, sums: Floats, middle: Floats, known: Floats
    ) -> tuple[Floats, Floats]:
        """(coordinates,) each, over samples that have the variable, of weight `known` `(p,)`."""

    # ---- projections ----------------------------------------------------------------------

    @abstractmethod
    def features(self, basis: Float32, offset: Float32, root: Floats | None = None) -> Features:
        """Features `root_a (basis_a^T x_a - offset_a)` in r directions: `basis` `(coordinates, r)`,
        `offset` `(p, r)`, `root` `(p, r, r)` lower triangular, None for the identity."""

    # ---- categories -----------------------------------------------------------------------

    @abstractmethod
    def block(self, chunk: Chunk, a: int) -> Floats:
        """(n, d) the coordinates of a variable; nothing may be missing."""

    @abstractmethod
    def by_category(self, values: NDArray[Any], zero: str) -> list[NDArray[Any]]:
        """Rows of `values` `(coordinates, ...)` for each category of each variable, `(d, ...)`. A
        category without a coordinate has what `zero` says: "rest", 1 less the others, or
        "nothing"."""

    @property
    def is_binary(self) -> bool:
        """Whether all variables are 0/1."""
        return False

    @property
    @abstractmethod
    def of_ones(self) -> Ints:
        """(p,) of 0/1 variables, the coordinate that is 1 where the variable is."""

    @abstractmethod
    def contrast(self, values: NDArray[Any]) -> NDArray[Any]:
        """(p, ...) of 0/1 variables, `values` `(coordinates, ...)` of 1 less those of 0."""

    @abstractmethod
    def ones(self, chunk: Chunk) -> tuple[NDArray[Any], NDArray[Any]]:
        """Row pointers and columns of a CSR of the 0/1 variables that some samples have; nothing
        may be missing."""


@dataclass(frozen=True, eq=False)
class Features(ABC):
    """Every variable as a short vector, in r directions."""

    basis: Float32  # (coordinates, r)
    offset: Float32  # (p, r)
    root: Floats | None  # (p, r, r)

    has_beside: ClassVar[bool]
    """Whether `CrossSums.beside` is added up; else it follows from the products."""

    @property
    def n_directions(self) -> int:
        """r."""
        return int(self.basis.shape[1])

    @abstractmethod
    def of(self, chunk: Chunk, n_jobs: int) -> Float32:
        """(n, p, r) features of some samples, zero where missing."""

    def weighted(self, chunk: Chunk, n_jobs: int) -> Float32:
        """The same times the square roots of the weights: sums of products of two are weighted."""
        z, roots = self.of(chunk, n_jobs), chunk.root_weights
        if roots is not None:
            z *= roots[:, None, None]
        return z

    @abstractmethod
    def squares(self, chunk: Chunk, n_jobs: int) -> Float32:
        """(n, p) `|z_a|^2`, zero where missing."""

    @abstractmethod
    def add_cross(self, sums: CrossSums, chunk: Chunk, near: Ints, n_jobs: int) -> None:
        """Add `w x_a z_b` for b in `near[a]`, side by side, `s = n_near r`."""

    @abstractmethod
    def add_rest(self, sums: CrossSums, chunk: Chunk, n_jobs: int) -> None:
        """Add `w x_a sum_b z_b`, `s = r`, over the b other than a, or all, see `subtract_own`."""

    @abstractmethod
    def subtract_own(self, products: Float32, counts: Floats, n_jobs: int) -> None:
        """Subtract a's own part from sums over all b, in place; `counts` `(coordinates,)` are the
        sums of coordinates."""
