"""Distributions of variables that are not categorical, as flat numbers whose layout is known.

The family, the width `d` of a variable and the states `k` of its neighbour determine which arrays
there are, their shapes and their possible values, so a file does not declare them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Floats
from latenttree.model.emissions import Emission, restored
from latenttree.model.emissions.choose import CLASSES
from latenttree.model.emissions.common import FORMS
from latenttree.model.emissions.interface import array_names

ARRAYS = {family: array_names(kind) for family, kind in CLASSES.items()}
"""Names of the arrays of every family, in the order of a file."""


def width_of(emission: Emission) -> int:
    """Coordinates of the variable itself; 1 for a number."""
    first = "codes" if emission.family == "multihot" else ARRAYS[emission.family][0]
    return len(emission.to_arrays()[first])


def shapes_of(family: str, d: int, k: int) -> dict[str, tuple[int, ...]]:
    """The shape of each array of a family."""
    shapes: dict[str, tuple[int, ...]] = {
        "means": (d, k),
        "variances": (1 if family == "gaussian_spherical" else d, k),
        "covariances": (1 if family == "gaussian_tied" else k, d, d),
        "shift": (d,),
        "scale": (d,),
        "rates": (d, k),
        "table": (d, k),
        "codes": (d, k),
        "none": (k,),
    }
    return {name: shapes.get(name, ()) for name in ARRAYS[family]}


def n_values(family: str, d: int, k: int) -> int:
    """Numbers in a file; Python's integers, which do not overflow."""
    return sum(prod(shape) for shape in shapes_of(family, d, k).values())


def emission_values(emission: Emission) -> Floats:
    """All numbers of a distribution, one after another."""
    arrays = emission.to_arrays()
    shapes = shapes_of(emission.family, width_of(emission), emission.n_states)
    given = {name: np.shape(a) for name, a in arrays.items()}
    if given != shapes:
        raise ValueError(f"{emission.family!r} has the arrays {given}; a file holds {shapes}")
    return np.concatenate([np.ravel(arrays[name]).astype(np.float64) for name in shapes])


def emission_from_values(family: str, d: int, k: int, values: Floats, node: str) -> Emission:
    """The distribution of `emission_values`; raises ValueError where the numbers cannot be one."""
    arrays: dict[str, NDArray[Any]] = {}
    start = 0
    for name, shape in shapes_of(family, d, k).items():
        size = prod(shape)
        part = values[start : start + size].reshape(shape).copy()
        start += size
        if not np.isfinite(part).all() or not CHECKS[name](part):
            raise ValueError(
                f"{name!r} of node {node!r} (family {family!r}) holds values that it cannot have; "
                f"they are from {part.min():g} to {part.max():g}"
            )
        arrays[name] = part
    if "form" in arrays and int(arrays["form"]) == FORMS.index("scalar") and d != 1:
        raise ValueError(f"node {node!r} is a single number by its form, but has width {d}")
    if "scale" in arrays and not _representable(arrays):
        raise ValueError(f"node {node!r} (family {family!r}) has values that no float64 holds")
    return restored(family, arrays)


def read_emissions(
    nodes: Sequence[int],
    families: Sequence[str],
    sizes: Sequence[tuple[int, int]],
    values: Floats,
    names: Sequence[str],
) -> dict[int, Emission]:
    """Distributions by node, from their numbers one after another; `sizes` are `(d, k)`."""
    emissions: dict[int, Emission] = {}
    start = 0
    for v, family, (d, k) in zip(nodes, families, sizes, strict=True):
        stop = start + n_values(family, d, k)
        emissions[v] = emission_from_values(family, d, k, values[start:stop], names[v])
        start = stop
    return emissions


# ---- checks of the numbers ------------------------------------------------------------


def _representable(arrays: Mapping[str, Floats]) -> bool:
    """Whether all values that a Gaussian ever has are finite in the units of the data."""
    spread = np.sqrt(arrays["covariances" if "covariances" in arrays else "variances"].max())
    with np.errstate(over="ignore"):
        reach = arrays["scale"] * (np.abs(arrays["means"]).max(axis=1) + 40 * spread)
        return bool(np.isfinite(np.abs(arrays["shift"]) + reach).all())


def _between(least: float, most: float) -> Callable[[Floats], bool]:
    """A check of bounds, far wider than any fit gives, but without overflow in products."""
    return lambda x: bool(((x >= least) & (x <= most)).all())


def _chance(x: Floats) -> bool:
    """Probabilities off 0 and 1, where logarithms are infinite."""
    return bool((x > 0).all() and (x < 1).all())


def _simplex(x: Floats) -> bool:
    return bool((x >= 0).all() and (np.abs(x.sum(axis=0) - 1) <= 1e-8).all())


def _covariance(x: Floats) -> bool:
    """Symmetric, positive definite beyond rounding."""
    try:
        factors = np.linalg.cholesky(x)
    except np.linalg.LinAlgError:
        return False
    definite = _between(1e-6, 1e25)(np.diagonal(factors, axis1=1, axis2=2))
    return definite and bool(np.abs(x - np.swapaxes(x, 1, 2)).max() <= 1e-8 * np.abs(x).max())


CHECKS: Mapping[str, Callable[[Floats], bool]] = {
    "means": _between(-1e25, 1e25),  # in units of the scale, as the variances
    "variances": _between(1e-9, 1e50),
    "covariances": _covariance,
    "shift": _between(-1e307, 1e307),
    "scale": _between(1e-307, 1e307),
    "rates": _between(1e-30, 2.0**53),
    "table": _simplex,
    "codes": _chance,
    "none": _chance,
    "size": lambda x: 1 <= float(x) < 2**53 and float(x).is_integer(),
    "form": lambda x: float(x) in range(len(FORMS)),
}
