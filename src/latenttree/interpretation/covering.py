"""Which hidden nodes stand for all variables: greedy covers, which nest."""

from __future__ import annotations

from heapq import heapify, heappop, heapreplace

import numpy as np

from latenttree.engine.arrays import Floats, Ints


def greedy_cover(items: Ints, gains: Floats, n_items: int, n_chosen: int) -> list[int]:
    """Rows, one after another, that each raise the sum over items of the largest gain most:

        sum_i max_(r chosen) gains[r, i].

    items, gains : (m, n) the items of each row, -1 for none, and what the row gains for each.

    The sum is submodular, so greedy choices reach 63% of the best sum at least, and what a row
    adds only shrinks: a row is judged again only when it comes up (Minoux 1978). The choices of
    fewer rows are the first of those of more. Ends early where no row adds anything."""
    gains = np.where(items >= 0, gains, 0.0)
    reached = np.zeros(n_items + 1)  # the last place is that of no item

    def added(row: int) -> float:
        return float(np.maximum(gains[row] - reached[items[row]], 0.0).sum())

    heap = [(-added(row), row) for row in range(len(items))]
    heapify(heap)
    chosen: list[int] = []
    while heap and len(chosen) < n_chosen:
        row = heap[0][1]
        gain = added(row)
        if len(heap) > 1 and (-gain, row) > min(heap[1:3]):
            heapreplace(heap, (-gain, row))
            continue
        heappop(heap)
        if gain <= 0:
            break
        chosen.append(row)
        np.maximum.at(reached, items[row], gains[row])
    return chosen
