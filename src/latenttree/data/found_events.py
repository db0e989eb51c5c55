"""`Events`: which sample has which code."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.columns.builder import table_in_memory
from latenttree.data.table import Table
from latenttree.engine.arrays import Ints


@dataclass(frozen=True, eq=False)
class Events:
    """Which sample has which code.

    Attributes
    ----------
    matrix : (n_samples, n_codes) CSR, 1 where a sample has a code.
    samples : (n_samples,) identifiers of the samples, as they came.
    names : (n_codes,) the codes.
    groups : None, or the columns of each group, as `LatentTree(groups=...)` takes them.
    report : what was read and what was left out, in numbers and examples.
    notes : the same in sentences.
    """

    matrix: sparse.csr_array
    samples: NDArray[Any]
    names: tuple[str, ...]
    groups: dict[str, Ints] | None = None
    report: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return int(self.matrix.shape[0])

    def __repr__(self) -> str:
        groups = "" if self.groups is None else f" in {len(self.groups):,} groups"
        return f"Events({len(self):,} samples x {len(self.names):,} codes{groups})"

    def table(self) -> Table:
        """The table to fit: a binary variable for each code, or a multi-hot one for each group."""
        if self.groups is None:
            table = table_in_memory(self.matrix, None, None, False, {"names": self.names})
        else:
            table = table_in_memory(self.matrix, self.groups, None, False, {})
            codes = tuple(np.asarray(self.names)[columns] for columns in self.groups.values())
            table = table.replace(categories=codes)
        return table.replace(notes=(*self.notes, *table.notes))
