"""`Values`: samples as likelihoods use them, and the names of the families."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from latenttree.data.row_access import rearranged_rows, take_rows

FAMILIES = (
    "categorical",
    "ordinal",
    "gaussian",
    "gaussian_spherical",
    "gaussian_diagonal",
    "gaussian_full",
    "gaussian_tied",
    "poisson",
    "multinomial",
    "multihot",
)
"""Names of families; "categorical" and "ordinal" variables are codes, the others have `arrays`."""


CODED = ("categorical", "ordinal")


@dataclass(frozen=True, eq=False)
class Values:
    """Samples in the form that likelihoods use.

    Attributes
    ----------
    families : (p,) the family of each variable, one of `FAMILIES`.
    codes : (n, p) signed categories of the categorical and ordinal variables; -1 where missing,
        and for every variable of another family.
    arrays : for each variable of another family its values: `(n,)` floats with NaN where missing,
        an `(n, d)` dense block with NaN, or an `(n, d)` CSR block (nothing missing)."""

    families: tuple[str, ...]
    codes: NDArray[Any]
    arrays: Mapping[int, Any]

    def rows(self, start: int, stop: int) -> Values:
        """Samples start:stop; views where the arrays are dense."""
        return self.take(slice(start, stop))

    def take(self, index: Any) -> Values:
        """The samples of `index`; each array is indexed when it is first used."""
        return Values(self.families, take_rows(self.codes, index), LazyRows(self.arrays, index))

    def rearranged(self, positions: NDArray[Any]) -> Values:
        """The samples at `positions`; arrays in mapped files lie in new ones."""
        arrays = {v: rearranged_rows(x, positions) for v, x in self.arrays.items()}
        return Values(self.families, rearranged_rows(self.codes, positions), arrays)

    def select(self, index: Sequence[int] | NDArray[Any]) -> Values:
        """The variables of `index`, in that order."""
        number = {int(v): i for i, v in enumerate(index)}
        arrays = {number[v]: x for v, x in self.arrays.items() if v in number}
        return Values(tuple(self.families[v] for v in index), self.codes[:, list(index)], arrays)


class LazyRows(Mapping[int, Any]):
    """Some rows of arrays, each indexed when it is first used, then cached."""

    def __init__(self, arrays: Mapping[int, Any], index: Any) -> None:
        self._arrays, self._index = arrays, index
        self._cached: dict[int, Any] = {}

    def __getitem__(self, v: int) -> Any:
        if v not in self._cached:
            self._cached[v] = take_rows(self._arrays[v], self._index)
        return self._cached[v]

    def __iter__(self) -> Iterator[int]:
        return iter(self._arrays)

    def __len__(self) -> int:
        return len(self._arrays)

    def __reduce__(self) -> Any:
        return dict, (dict(self),)
