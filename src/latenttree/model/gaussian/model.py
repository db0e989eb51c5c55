"""`GaussianTreeModel`: a Gaussian tree with exact inference for samples with missing values.

`X` is `(n, D)`, the observed variables side by side in the order of the tree, NaN where a value is
missing. Columns are measured in units of the model's own deviations, so that scales may be as far
apart as floating point goes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from latenttree.engine import parallel, single_threaded_blas
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian.distribution import GaussianDistribution
from latenttree.model.gaussian.layout import GaussianLayout, Linear, core_means
from latenttree.model.gaussian.propagation import (
    Posterior,
    Prepared,
    block_posterior,
    downward,
    prepare,
    upward,
)
from latenttree.model.gaussian.rows import Block, block_size, sample_block
from latenttree.model.gaussian.units import linear_of, rescaled, units


class GaussianPosteriors(NamedTuple):
    """Posterior of every hidden node.

    means : (n, m n_dims) node by node.
    covariances : (n, m, n_dims, n_dims), None unless asked for.
    """

    means: Floats
    covariances: Floats | None


class GaussianTreeModel(GaussianDistribution):
    """A linear Gaussian model on a tree, with its inference; see `GaussianDistribution`."""

    def log_likelihood(self, X: ArrayLike, *, n_jobs: int = 1) -> Floats:
        """`log p(known values)` of each sample, `(n,)`; 0 for a sample without values."""
        data, (centre, scale) = self.checked(X), units(self)
        found = np.zeros(len(data))
        logs = np.log(scale)

        def answer(ready: Prepared, block: Block) -> None:
            state = upward(ready, block)
            at = logs[ready.layout.columns] @ block.known
            found[block.index] = state.quadratic + block.spread(state.constant - at)

        self._over_blocks(data, centre, scale, answer, n_jobs)
        return found

    def posterior_means(self, X: ArrayLike, *, n_jobs: int = 1) -> Floats:
        """`E[h | x]` of every hidden node, node by node, `(n, m n_dims)`."""
        return self.posteriors(X, n_jobs=n_jobs).means

    def posteriors(
        self, X: ArrayLike, *, covariances: bool = False, n_jobs: int = 1
    ) -> GaussianPosteriors:
        """Means, and with `covariances` also covariances, of the hidden nodes given the values."""
        data, p = self.checked(X), self.tree.n_observed
        at, n_dims = self.hidden_offsets, int(max(self.dims[p:], default=0))
        means = np.zeros((len(data), int(at[-1])))
        spreads = np.zeros((len(data), self.tree.n_hidden, n_dims, n_dims)) if covariances else None

        def answer(ready: Prepared, block: Block) -> None:
            for c, here in enumerate(downward(ready, block, upward(ready, block))):
                i, unit = ready.layout.nodes[c] - p, ready.unit[c]
                if i >= 0:
                    mean = unit @ here.mean + self.means[p + i][:, None]
                    means[block.index, at[i] : at[i + 1]] = mean.T
                    if spreads is not None:
                        spreads[block.index, i, : len(unit), : len(unit)] = _by_row(
                            unit, here, block
                        )

        self._over_blocks(data, *units(self), answer, n_jobs)
        return GaussianPosteriors(means, spreads)

    def effective_samples(
        self, X: ArrayLike, weights: Floats | None = None, *, n_jobs: int = 1
    ) -> Floats:
        """`N (1 - mean posterior variance)` of every hidden node of covariance I, `(m,)`: the
        number of samples with the hidden node observed that carry the same information about it."""
        data, p = self.checked(X), self.tree.n_observed
        w = np.ones(len(data)) if weights is None else weights

        def answer(ready: Prepared, block: Block) -> Floats:
            count, left = block.gathered(w[block.index]), np.zeros(self.tree.n_hidden)
            for c, here in enumerate(downward(ready, block, upward(ready, block))):
                if ready.layout.is_hidden(c):
                    assert here.spread is not None
                    metric = ready.unit[c].T @ ready.unit[c]
                    variance = np.einsum("ijg,ij->g", here.spread, metric) / len(metric)
                    left[ready.layout.nodes[c] - p] = (variance * count).sum()
            return left

        total = w.sum()
        left = sum(self._over_blocks(data, *units(self), answer, n_jobs))
        return np.clip(total - left, 0.0, total)

    def impute(self, X: ArrayLike, *, n_jobs: int = 1) -> Floats:
        """A copy of X with `E[value | known values of the sample]` in place of each NaN."""
        data, (centre, scale) = self.checked(X), units(self)
        filled = data.copy()

        def answer(ready: Prepared, block: Block) -> None:
            columns = ready.layout.columns
            expected = _expected(ready, block) * scale[columns][:, None] + centre[columns][:, None]
            place = np.ix_(block.index, columns)
            filled[place] = np.where(np.isnan(data[place]), expected.T, data[place])

        self._over_blocks(data, centre, scale, answer, n_jobs)
        return filled

    def imputed_variances(self, X: ArrayLike, *, n_jobs: int = 1) -> Floats:
        """`Var[value | known values of the sample]`, `(n, D)`; 0 where a value is known."""
        data, (centre, scale) = self.checked(X), units(self)
        found = np.empty_like(data)

        def answer(ready: Prepared, block: Block) -> None:
            columns = ready.layout.columns
            place = np.ix_(block.index, columns)
            variances = (_variances(ready, block) * scale[columns][:, None] ** 2).T
            found[place] = np.where(np.isnan(data[place]), variances, 0.0)

        self._over_blocks(data, centre, scale, answer, n_jobs)
        return found

    def sample(self, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """n samples `(n, D)` and their hidden values `(n, m n_dims)`."""
        drawn: list[Any] = [None] * self.tree.n_nodes  # deviations from the mean
        for v in self.order.tolist():
            noise, u = self.noise[v], int(self.parents[v])
            normal = rng.standard_normal((n, len(noise)))
            drawn[v] = normal * np.sqrt(noise) if noise.ndim == 1 else normal @ _factor(noise).T
            if u >= 0:
                drawn[v] += drawn[u] @ self.loadings[v].T
        values = [x + mean for x, mean in zip(drawn, self.means, strict=True)]
        p = self.tree.n_observed
        return np.hstack(values[:p]), np.hstack([np.empty((n, 0)), *values[p:]])

    def bic(self, X: ArrayLike, weights: Floats | None = None) -> float:
        """Bayesian information criterion, `-2 log L + n_parameters log n`; lower is better."""
        logs = self.log_likelihood(X)
        w = np.ones(len(logs)) if weights is None else np.asarray(weights, dtype=np.float64)
        return float(-2 * (w @ logs) + self.n_parameters * np.log(w.sum()))

    def checked(self, X: ArrayLike) -> Floats:
        """X as floats, of the right width and without infinities."""
        data = np.asarray(X, dtype=np.float64)
        width = int(self.offsets[-1])
        if data.ndim != 2 or data.shape[1] != width:
            raise DataError(
                f"the samples have shape {data.shape}; the model has {width} coordinates",
                f"pass (n_samples, {width}), NaN where a value is missing",
                value=data.shape,
            )
        check_samples(data)
        return data

    def _over_blocks(
        self,
        data: Floats,
        centre: Floats,
        scale: Floats,
        answer: Callable[[Prepared, Block], Any],
        n_jobs: int,
    ) -> list[Any]:
        """`answer` of every block of samples, in parallel; it may write to its own rows."""
        layout = GaussianLayout.of(self)
        ready = prepare(linear_of(self, layout, centre, scale), layout)

        def work(start: int, stop: int) -> Any:
            return answer(ready, sample_block(data, layout, centre, scale, start, stop))

        with single_threaded_blas():
            return parallel(work, len(data), n_jobs, block_size(layout))


def model_in_units(
    linear: Linear, layout: GaussianLayout, centre: Floats, scale: Floats
) -> GaussianTreeModel:
    """The model in the units of the data; hidden means are zero again."""
    n = layout.tree.n_nodes
    parts: list[Any] = [None] * n  # mean, loading, noise
    inner = core_means(linear, layout)
    for c, v in enumerate(layout.nodes):
        mean = np.zeros(layout.dim(c)) if layout.is_hidden(c) else inner[c]
        parts[v] = mean, linear.core.loading[c], linear.core.noise[c]
        offset, loading, noise = (part[c] for part in linear.hung)
        hung_mean, at = offset + loading @ inner[c], 0
        for leaf in layout.leaves[c]:
            rows = slice(at, at + int(layout.dims[leaf]))
            parts[leaf] = hung_mean[rows], loading[rows], noise[rows]
            at = rows.stop
    for i, (v, u) in enumerate(zip(layout.blocks, layout.block_parents, strict=True)):
        offset, loading, noise = (part[i] for part in linear.blocks)
        parts[v] = offset + loading @ inner[u], loading, noise
    noises = [_stored(part[2], bool(layout.diagonal[v])) for v, part in enumerate(parts)]
    near = GaussianTreeModel(
        layout.tree,
        layout.root,
        tuple(part[0] for part in parts),
        tuple(part[1] for part in parts),
        tuple(noises),
    )
    return rescaled(near, -centre / scale, 1 / scale)


def _stored(noise: Floats, diagonal: bool) -> Floats:
    """A variance as a matrix, wider diagonal noise as its diagonal."""
    if len(noise) == 1:
        return noise.reshape(1, 1)
    return np.diag(noise) if diagonal and noise.ndim == 2 else noise


def _by_row(unit: Floats, here: Posterior, block: Block) -> Floats:
    """Covariances `(r, d, d)` of all rows."""
    assert here.spread is not None  # a hidden node is never known
    turned = np.einsum("ia,abg,jb->gij", unit, here.spread, unit, optimize=True)
    return turned[block.pattern] if block.pattern is not None and len(turned) > 1 else turned


def _expected(ready: Prepared, block: Block) -> Floats:
    """Expectation of all coordinates `(D, r)` given the known values of each row."""
    layout, state = ready.layout, upward(ready, block)
    found = downward(ready, block, state)
    expected = np.empty_like(block.values)
    for c, here in enumerate(found):
        if not layout.is_hidden(c):
            expected[layout.own[c]] = here.mean
        expected[layout.hung[c]] = ready.hung.loading[c] @ here.mean
    for i, (rows, u) in enumerate(zip(layout.block_rows, layout.block_parents, strict=True)):
        expected[rows] = block_posterior(ready, block, state, i, found[u]).mean
    return np.asarray(expected + ready.column_mean[:, None])


def _variances(ready: Prepared, block: Block) -> Floats:
    """Variances of the coordinates `(D, r)` that are missing, given the known values of each row;
    of leaves with independent noise also of those that are known, if they were missing."""
    layout, state = ready.layout, upward(ready, block)
    found = downward(ready, block, state)
    variances = np.zeros_like(block.values)
    for c, here in enumerate(found):
        if not layout.is_hidden(c) and here.spread is not None:
            variances[layout.own[c]] = block.spread(np.einsum("iig->ig", here.spread))
        shared = _carried(ready.hung.loading[c][:, :, None], here.spread)
        variances[layout.hung[c]] = block.spread(shared) + ready.hung.noise[c][:, None]
    for i, (rows, u) in enumerate(zip(layout.block_rows, layout.block_parents, strict=True)):
        own, kinds = block_posterior(ready, block, state, i, found[u]), block.kinds[i]
        shared = _carried(own.on_parent[:, :, kinds.of_pattern], found[u].spread)
        noise = np.einsum("iik->ik", own.spread)[:, kinds.of_pattern]
        variances[rows] = block.spread(shared + noise)
    return variances


def _carried(loading: Floats, spread: Floats | None) -> Floats:
    """The variances `(d, g)` that coordinates have from their parent, by pattern."""
    if spread is None:
        return np.zeros((len(loading), 1))
    return np.asarray(np.einsum("iag,abg,ibg->ig", loading, spread, loading))


def _factor(noise: Floats) -> Floats:
    """Lower Cholesky factor, computed in units in which variances are one."""
    unit = np.sqrt(np.diag(noise))
    return np.asarray(unit[:, None] * np.linalg.cholesky(noise / np.outer(unit, unit)))


def check_samples(X: Floats) -> None:
    """Refuse infinite values."""
    if np.isinf(X).any():
        row, column = (int(i) for i in np.argwhere(np.isinf(X))[0])
        raise DataError(
            f"row {row}, column {column} is {X[row, column]}",
            "use NaN for missing values",
            value=float(X[row, column]),
            row=row,
            column=str(column),
        )
