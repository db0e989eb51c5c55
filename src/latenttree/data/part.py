"""Some samples of a table, read as they are asked for: no copy but of a chunk."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.table import IntArray, Table, Values
from latenttree.data.taking import taken


class Part(Table):
    """The samples `places` of the table `whole`, perhaps with other weights; itself a table.

    `rows` and `known` read from `whole` what they are asked for. `codes`, `matrix`, `missing` and
    `values` are there for whoever asks, but asking copies them all.
    """

    whole: Table
    places: IntArray

    def __init__(self, table: Table, places: IntArray, weights: NDArray[np.float64] | None) -> None:
        whole = table
        if isinstance(table, Part):
            whole, places = table.whole, table.places[places]
        held = {"whole": whole, "places": places, "weights": weights, "n_samples": len(places)}
        for name in ("names", "kind", "dims", "categories", "offsets", "dropped", "notes"):
            held[name] = getattr(whole, name)
        for name, value in held.items():
            object.__setattr__(self, name, value)

    @property
    def families(self) -> tuple[str, ...]:
        return self.whole.families

    @cached_property
    def has_missing(self) -> bool:
        return self.whole.has_missing

    @cached_property
    def codes(self) -> NDArray[Any] | None:
        codes = self.whole.codes
        return None if codes is None else taken(codes, self.places)

    @cached_property
    def matrix(self) -> sparse.csr_array | None:
        matrix = self.whole.matrix
        return None if matrix is None else taken(matrix, self.places)

    @cached_property
    def missing(self) -> NDArray[np.bool_] | None:
        missing = self.whole.missing
        return None if missing is None else missing[self.places]

    @cached_property
    def values(self) -> Values | None:
        values = self.whole.values
        return None if values is None else values._at(self.places)

    def rows(self, start: int, stop: int) -> NDArray[Any] | sparse.csr_array:
        """Samples start:stop as codes or CSR: a copy of them."""
        places = self.places[start:stop]
        if self.whole.codes is not None:
            return np.asarray(taken(self.whole.codes, places))
        assert self.whole.matrix is not None
        return sparse.csr_array(taken(self.whole.matrix, places))

    def known(self, start: int, stop: int) -> NDArray[np.bool_] | None:
        if not self.has_missing:
            return None
        if self.whole.codes is not None:
            return np.asarray(self.rows(start, stop) >= 0)
        assert self.whole.missing is not None
        return ~self.whole.missing[self.places[start:stop]]

    def subset_rows(self, index: NDArray[Any] | Sequence[int] | slice) -> Table:
        weights = None if self.weights is None else self.weights[index]
        return self.whole.subset_rows(self.places[index]).replace(weights=weights)
