"""Families by name: the pooled fit to start from, and emissions read back from arrays."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from latenttree.engine.arrays import Floats
from latenttree.model.emissions.full_gaussian import FullGaussian
from latenttree.model.emissions.gaussian import Gaussian
from latenttree.model.emissions.interface import Emission
from latenttree.model.emissions.multihot import MultiHot
from latenttree.model.emissions.multinomial import Multinomial
from latenttree.model.emissions.poisson import Poisson

CLASSES: dict[str, type[Emission]] = {
    "gaussian": Gaussian,
    "gaussian_spherical": Gaussian,
    "gaussian_diagonal": Gaussian,
    "gaussian_full": FullGaussian,
    "gaussian_tied": FullGaussian,
    "poisson": Poisson,
    "multinomial": Multinomial,
    "multihot": MultiHot,
}


def pooled(family: str, values: Any, n_states: int, weights: Floats | None = None) -> Emission:
    """The fit to the whole sample in every one of `n_states` states: where learning starts.

    `values` as in `Table.values.arrays`; `weights` `(n,)`. What a family keeps of the
    sample for good (units, dimension, dense or sparse) is taken here."""
    return _class(family).pooled(family, values, n_states, weights)


def restored(family: str, arrays: dict[str, NDArray[Any]]) -> Emission:
    """The emission that `to_arrays` took apart."""
    return _class(family).from_arrays(family, arrays)


def _class(family: str) -> type[Emission]:
    if family not in CLASSES:
        raise ValueError(f"family {family!r} is unknown; choose one of {sorted(CLASSES)}")
    return CLASSES[family]
