"""The least that any method must spend on the moments of a data set.

Every method needs, of every pair of variables, the joint moments: a `(k - 1) x (k - 1)` block of
features, or the counts behind it. There are three ways to get them, and the bound is the cheapest:

- *products* of features, `w = p (k - 1)` a sample: `N w (w + 1) / 2` multiply-adds;
- *increments* of a counter for each pair of values that a sample has: `N p (p - 1) / 2` where every
  variable has a value, `sum_i z_i (z_i - 1) / 2` where sample `i` has `z_i` that are present;
- *bits*, for binary variables: `p (p - 1) / 2` times `N / 64` words to AND and count.

The data must be read once, and the moments of all variables with one feature, `d` numbers each,
be written (`bytes`). Reading and counting can overlap, so the bound is the longer of the two.
"""

from __future__ import annotations

from typing import NamedTuple

from benchmarks.machine import Peaks


class Shape(NamedTuple):
    """What the bound depends on.

    n_samples, n_vars, n_directions : N, p, and k - 1 features of a variable.
    n_bytes : of the data as given, and of `d (k - 1)` float32 numbers a variable.
    present_pairs : pairs of present variables, summed over the samples; None where all are.
    is_binary : whether variables can be packed as bits.
    """

    n_samples: int
    n_vars: int
    n_directions: int
    n_bytes: float
    present_pairs: float | None = None
    is_binary: bool = False


class Bound(NamedTuple):
    """Amounts of the cheapest way, and the seconds that it takes at the machine's peaks."""

    way: str
    operations: float
    bytes: float
    operation_seconds: float
    byte_seconds: float
    seconds: float


def operations(shape: Shape) -> dict[str, float]:
    """Operations of each way that is open to the data."""
    n, p = float(shape.n_samples), float(shape.n_vars)
    width = p * shape.n_directions
    pairs = p * (p - 1) / 2
    ways = {
        "products": n * width * (width + 1) / 2,
        "increments": n * pairs if shape.present_pairs is None else shape.present_pairs,
    }
    if shape.is_binary:
        ways["bits"] = pairs * -(-shape.n_samples // 64)
    return ways


def lower_bound(shape: Shape, peaks: Peaks) -> Bound:
    """The way that takes least time on a machine with these peaks."""
    rates = {
        "products": peaks.multiply_adds,
        "increments": peaks.increments,
        "bits": peaks.bit_words,
    }
    amounts = operations(shape)
    seconds = {way: amount / rates[way] for way, amount in amounts.items()}
    way = min(seconds, key=lambda name: seconds[name])
    reading = shape.n_bytes / peaks.bytes
    return Bound(
        way, amounts[way], shape.n_bytes, seconds[way], reading, max(seconds[way], reading)
    )
