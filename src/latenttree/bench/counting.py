"""The two innermost loops of counting pairs, to measure how fast this machine can run them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic
from numpy.typing import NDArray

from latenttree.engine.kernels import kernel


@intrinsic
def population_count(typing_context: Any, word: Any) -> Any:
    """Ones of a 64-bit word, by the instruction that processors have for it."""

    def build(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), build


@kernel
def count_bits(a: NDArray[np.uint64], b: NDArray[np.uint64], rounds: int) -> int:
    """Ones in `a & b`, `rounds` times over with another offset; `rounds len(a)` words."""
    total = np.uint64(0)
    n = a.shape[0]
    for r in range(rounds):
        mask = np.uint64(r)
        for i in range(n):
            total += population_count((a[i] ^ mask) & b[i])  # type: ignore[call-arg]
    return int(total)


@kernel
def count_pairs(places: NDArray[np.int32], counters: NDArray[np.int32], rounds: int) -> int:
    """Increments `counters[places]`, `rounds` times; in place. `rounds len(places)` increments."""
    for _ in range(rounds):
        for i in range(places.shape[0]):
            counters[places[i]] += 1
    return int(counters[places[0]])
