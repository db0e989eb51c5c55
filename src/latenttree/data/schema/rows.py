"""`Rows`: samples as codes and numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.schema.lookup import MISSING


@dataclass(frozen=True, eq=False)
class Rows:
    """New samples as codes and numbers, read a range at a time.

    Attributes
    ----------
    n_samples : n.
    codes : (n, p) signed codes, -1 where missing and for variables that are not categorical; None
        where `matrix` is used, or where no variable has codes.
    matrix : (n, p) CSR of sparse binary data, 1, or -1 where missing; used instead of `codes` for
        sparse input, whose dense form may not fit in memory.
    skip : with `matrix`: variables that are not used.
    arrays : values of the variables that are not categorical, as in `values.Values`; those that are
        not used have none.
    n_vars : p."""

    n_samples: int
    codes: NDArray[Any] | None = None
    matrix: sparse.csr_array | None = None
    skip: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    arrays: Mapping[int, Any] = field(default_factory=dict)
    n_vars: int = 0

    def take(self, start: int, stop: int) -> NDArray[Any]:
        """(stop - start, p) codes, -1 where missing; a view where they are stored."""
        if self.codes is not None:
            return self.codes[start:stop]
        if self.matrix is None:
            n = len(range(*slice(start, stop).indices(self.n_samples)))
            return np.full((n, self.n_vars), MISSING, dtype=np.int8)
        codes = np.asarray(self.matrix[start:stop].toarray())
        codes[:, self.skip] = MISSING
        return codes

    def arrays_at(self, start: int, stop: int) -> dict[int, Any]:
        """Values of samples start:stop by variable; views of dense arrays."""
        return {v: values[start:stop] for v, values in self.arrays.items()}
