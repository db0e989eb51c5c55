"""Features of all variables, and the second moments of all pairs of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.engine import parallel
from latenttree.moments.gram import gram
from latenttree.moments.projection import features, owners, project, root_weights
from latenttree.moments.subspace import apply_roots


@dataclass(frozen=True)
class FeatureMap:
    """How the features of samples in r directions are computed: `root (basis^T x - offset)`.

    For codes, a feature is a row of `coded`, in which offset and root are applied already."""

    basis: NDArray[np.float32]  # (coordinates, r)
    offset: NDArray[np.float32]  # (p, r) means of the features
    root: NDArray[np.float64] | None = None  # (p, r, r) lower triangular, to whiten
    coded: NDArray[np.float32] | None = None  # (coordinates, r)

    def of(self, table: Table, start: int, stop: int, n_jobs: int) -> NDArray[np.float32]:
        """Features `(stop - start, p, n_directions)` of some samples, zero where missing."""
        if self.coded is not None:
            return project(table, self.coded, start, stop, n_jobs)
        z = features(table, self.basis, self.offset, start, stop, n_jobs)
        if self.root is not None:
            root = self.root
            parallel(lambda a, b: apply_roots(z, root, a, b), len(z), n_jobs)
        return z


def features_of(
    table: Table,
    basis: NDArray[np.float32],
    offset: NDArray[np.float32],
    root: NDArray[np.float64] | None = None,
) -> FeatureMap:
    """Features of tables with the same variables as this one, of these samples or others."""
    if table.kind != "codes":
        return FeatureMap(basis, offset, root)
    own = owners(table)
    coded = basis - offset[own]
    if root is not None:
        coded = np.einsum("cij,cj->ci", root[own], coded).astype(np.float32)
    return FeatureMap(basis, offset, root, coded)


def second_moments(
    table: Table, basis: NDArray[np.float32], offset: NDArray[np.float32], n_jobs: int
) -> NDArray[np.float32]:
    """Covariances `(p r, p r)` of the features of all pairs in r directions, where nothing is
    missing. One pass; n (p r)^2 / 2 multiply-adds."""
    width = table.n_vars * basis.shape[1]
    centred = features_of(table, basis, offset)

    def chunk(start: int, stop: int) -> NDArray[np.float32]:
        z = centred.of(table, start, stop, n_jobs).reshape(-1, width)
        roots = root_weights(table, start, stop)
        return z if roots is None else z * roots[:, None]

    sums = gram(chunk, table.n_samples, width, n_jobs)
    sums /= np.float32(table.total_weight)
    return sums
