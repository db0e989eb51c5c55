"""Expected sufficient statistics: sums over samples, which add over blocks.

Every node is a regression on its parent, so all that is needed are expected products of `(1, v)`
with `(1, parent)` and with itself; for a coordinate hung on a node, over the samples that have it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.engine import parallel
from latenttree.model.gaussian.algebra import times
from latenttree.model.gaussian.layout import GaussianLayout, Linear
from latenttree.model.gaussian.propagation import (
    BlockPosterior,
    Posterior,
    Prepared,
    block_posterior,
    downward,
    prepare,
    upward,
)
from latenttree.model.gaussian.rows import Block, Kinds

Floats = NDArray[np.float64]


class Products(NamedTuple):
    """Sums of expected products of the two sides of regressions, with `z = (1, parent)`, over the
    samples in which the child is known at least in part."""

    own: list[Floats]
    shared: list[Floats]
    parent: list[Floats]

    def plus(self, other: Products) -> Products:
        """Sums over the samples of both."""
        return Products(
            *([a + b for a, b in zip(x, y, strict=True)] for x, y in zip(self, other, strict=True))
        )


class Statistics(NamedTuple):
    """Expected products of all regressions, and the log-likelihood.

    core, blocks : own `(1 + d, 1 + d)` of `(1, v)` with itself, shared `(1 + d, 1 + d_parent)` with
        z, parent `(1 + d_parent, 1 + d_parent)` of z with itself.
    hung : of the n coordinates on a core node, own `(n,)`, shared `(n, 1 + d)` and parent
        `(n, 1 + d, 1 + d)`.
    """

    core: Products
    hung: Products
    blocks: Products
    value: float

    def plus(self, other: Statistics) -> Statistics:
        """Sums over the samples of both."""
        return Statistics(
            self.core.plus(other.core),
            self.hung.plus(other.hung),
            self.blocks.plus(other.blocks),
            self.value + other.value,
        )


def expected_statistics(
    linear: Linear, layout: GaussianLayout, blocks: Sequence[Block], n_jobs: int = 1
) -> Statistics:
    """The E-step over all blocks; the result does not depend on `n_jobs`."""
    model = prepare(linear, layout)
    parts = parallel(lambda start, stop: _of_block(model, blocks[start]), len(blocks), n_jobs, 1)
    total = parts[0]
    for part in parts[1:]:
        total = total.plus(part)
    return _in_data_units(model, total)


def _of_block(model: Prepared, block: Block) -> Statistics:
    """Sums over one block, in the units of propagation."""
    layout, state, count = model.layout, upward(model, block), block.count
    found = downward(model, block, state)
    rows = [np.concatenate([block.ones[None], here.mean]) for here in found]
    core, hung, blocks = (Products([], [], []) for _ in range(3))
    for c, (here, z, u) in enumerate(zip(found, rows, layout.parents, strict=True)):
        core.own.append(_product(z, z, here.spread, count))
        core.shared.append(_product(z, rows[u], here.shared, count) if u >= 0 else np.empty((0, 0)))
        core.parent.append(core.own[u] if u >= 0 else np.empty((0, 0)))
        _add_hung(block, layout.hung[c], here, z, core.own[c], hung)
    for i, u in enumerate(layout.block_parents):
        leaf = block_posterior(model, block, state, i, found[u])
        _add_block(block, block.kinds[i], leaf, found[u], rows[u], core.own[u], blocks)
    value = float(state.quadratic.sum() + count @ state.constant)
    return Statistics(core, hung, blocks, value)


def _product(a: Floats, b: Floats, spread: Floats | None, weight: Floats) -> Floats:
    """`sum_r a_r b_r^T`, plus the covariances of all but the first entries."""
    total = a @ b.T
    if spread is not None:
        total[1:, 1:] += spread @ weight if spread.shape[2] > 1 else spread[:, :, 0] * weight.sum()
    return np.asarray(total)


def _add_hung(
    block: Block, rows: slice, here: Posterior, z: Floats, whole: Floats, sums: Products
) -> None:
    """Append the sums of the coordinates hung on a node; `whole` is the sum of products of z over
    all rows."""
    x, known, width = block.values[rows], block.known[rows], len(z)
    sums.own.append((x * x).sum(axis=1))
    sums.shared.append(x @ z.T)
    if known.all():
        sums.parent.append(np.broadcast_to(whole, (len(x), width, width)))
        return
    low, high = np.tril_indices(width)
    products = block.gathered(z[low] * z[high])
    if here.spread is not None:
        inner = high > 0
        products[inner] += here.spread[low[inner] - 1, high[inner] - 1] * block.count
    flat = known @ products.T
    total = np.empty((len(x), width, width))
    total[:, low, high] = flat
    total[:, high, low] = flat
    sums.parent.append(total)


def _add_block(
    block: Block,
    kinds: Kinds,
    here: BlockPosterior,
    above: Posterior,
    z: Floats,
    whole: Floats,
    sums: Products,
) -> None:
    """Append the sums of a leaf with full noise, over the rows in which some of it is known. The
    covariance of the parent is summed over the patterns of each kind before it is carried to the
    leaf."""
    some = np.asarray(kinds.known.any(axis=0), dtype=np.float64)
    own = np.concatenate([block.ones[None], here.mean])
    kept = z
    if kinds.of_row is not None:
        own, kept = own * some[kinds.of_row], z * some[kinds.of_row]
    count = kinds.sums(block.count) * some
    total, shared = own @ own.T, own @ z.T
    total[1:, 1:] += here.spread @ count
    parent = whole if kinds.of_row is None else kept @ z.T
    if above.spread is not None:
        spread = kinds.sums(above.spread * block.count) * some
        carried = times(here.on_parent, spread)
        shared[1:, 1:] += carried.sum(axis=2)
        total[1:, 1:] += np.einsum("ijk,ljk->il", carried, here.on_parent)
        if kinds.of_row is not None:
            parent[1:, 1:] += spread.sum(axis=2)
    sums.own.append(total)
    sums.shared.append(shared)
    sums.parent.append(parent)


def _in_data_units(model: Prepared, sums: Statistics) -> Statistics:
    """Products of standardised values, from products in the units of propagation."""
    layout = model.layout
    turn = [_turn(mean, unit) for mean, unit in zip(model.mean, model.unit, strict=True)]
    leaf = [_turn(model.column_mean[r], np.eye(r.stop - r.start)) for r in layout.block_rows]
    return Statistics(
        _turned(sums.core, turn, turn, layout.parents),
        Products(
            sums.hung.own,
            [a @ t.T for t, a in zip(turn, sums.hung.shared, strict=True)],
            [t @ a @ t.T for t, a in zip(turn, sums.hung.parent, strict=True)],
        ),
        _turned(sums.blocks, leaf, turn, layout.block_parents),
        sums.value,
    )


def _turned(
    sums: Products, own: list[Floats], above: list[Floats], parents: tuple[int, ...]
) -> Products:
    found = Products([], [], [])
    for t, u, *products in zip(own, parents, *sums, strict=True):
        up = above[u] if u >= 0 else np.empty((0, 0))
        found.own.append(t @ products[0] @ t.T)
        found.shared.append(t @ products[1] @ up.T if u >= 0 else products[1])
        found.parent.append(up @ products[2] @ up.T)
    return found


def _turn(mean: Floats, unit: Floats) -> Floats:
    """`(1, v)` from `(1, v')` where `v = mean + unit v'`."""
    d = len(mean)
    turn = np.zeros((1 + d, 1 + d))
    turn[0, 0] = 1.0
    turn[1:, 0] = mean
    turn[1:, 1:] = unit
    return turn
