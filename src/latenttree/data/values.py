"""`Values`: samples as likelihoods use them, and the table of the families' traits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data.row_access import rearranged_rows, take_rows


@dataclass(frozen=True)
class FamilyTraits:
    """What holds for all variables of a family.

    Attributes
    ----------
    coded : values are category codes, whose distributions are CPTs of the model; the others are
        numbers in `Values.arrays`, whose distributions are emissions.
    scalar : the values of a single column may be of this family.
    block : the rows of a block of several columns may be.
    gaussian : values are real numbers; False for whole numbers from 0 on, and for codes.
    counts : values are whole numbers of any size.
    sparse : a block may be a sparse matrix.
    read_as : the family that a variable of a table has where this one is requested, if another."""

    coded: bool = False
    scalar: bool = True
    block: bool = True
    gaussian: bool = False
    counts: bool = False
    sparse: bool = True
    read_as: str | None = None


TRAITS: Mapping[str, FamilyTraits] = {
    "categorical": FamilyTraits(coded=True),
    "ordinal": FamilyTraits(coded=True),
    "binary": FamilyTraits(coded=True, block=False, read_as="categorical"),
    "gaussian": FamilyTraits(gaussian=True),
    "gaussian_spherical": FamilyTraits(gaussian=True),
    "gaussian_diagonal": FamilyTraits(gaussian=True),
    "gaussian_full": FamilyTraits(gaussian=True, sparse=False),
    "gaussian_tied": FamilyTraits(gaussian=True, sparse=False),
    "poisson": FamilyTraits(counts=True),
    "multinomial": FamilyTraits(scalar=False, counts=True),
    "multihot": FamilyTraits(scalar=False),
}
"""The traits of every family by its name."""

FAMILIES = tuple(TRAITS)
"""Names of all families: those that can be requested, and those of the model's emissions."""

TABLE_FAMILIES = tuple(name for name, family in TRAITS.items() if family.read_as is None)
"""Families that a variable of a table can have."""


CODED = tuple(name for name, family in TRAITS.items() if family.coded)
"""Families whose values are codes; variables of the others have `Values.arrays`."""


def outside_support(values: NDArray[Any], family: str) -> NDArray[np.bool_]:
    """True where known values are none that the family has: counts are whole numbers from 0 on,
    multi-hot codes 0 or 1; NaN and infinity are not judged."""
    if TRAITS[family].counts:
        bad = (values < 0) | (values != np.floor(values))
    elif family == "multihot":
        bad = (values != 0) & (values != 1)
    else:
        return np.zeros(values.shape, dtype=np.bool_)
    return np.asarray(bad & np.isfinite(values))


@dataclass(frozen=True, eq=False)
class Values:
    """Samples in the form that likelihoods use.

    Attributes
    ----------
    families : (p,) the family of each variable, one of `TABLE_FAMILIES`.
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
