"""Clusters of variables from their correlations: SciPy's linkages, and spectral clustering."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Labels = NDArray[np.integer[Any]]


def linkage_groups(
    correlation: Matrix, n_groups: int, *, signed: bool, method: str = "average"
) -> Labels:
    """The horizontal cut of a linkage on `1 - correlation`, or on `1 - |correlation|`."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    apart = np.maximum(1 - (correlation if signed else np.abs(correlation)), 0.0)
    np.fill_diagonal(apart, 0.0)
    merges = linkage(squareform((apart + apart.T) / 2, checks=False), method=method)
    return np.asarray(fcluster(merges, n_groups, "maxclust"))


def spectral_groups(correlation: Matrix, n_groups: int, *, signed: bool) -> Labels:
    """Spectral clustering; signed: correlations below zero are none."""
    from sklearn.cluster import SpectralClustering

    strength = np.maximum(correlation, 0.0) if signed else np.abs(correlation)
    spectral = SpectralClustering(n_groups, affinity="precomputed", random_state=0)
    return np.asarray(spectral.fit_predict(strength))


CLUSTERINGS: dict[str, Callable[[Matrix, int], Labels]] = {
    "average linkage, 1 - correlation": partial(linkage_groups, signed=True),
    "average linkage, 1 - |correlation|": partial(linkage_groups, signed=False),
    "Ward, 1 - correlation": partial(linkage_groups, signed=True, method="ward"),
    "Ward, 1 - |correlation|": partial(linkage_groups, signed=False, method="ward"),
    "complete linkage, 1 - correlation": partial(linkage_groups, signed=True, method="complete"),
    "spectral, positive correlations": partial(spectral_groups, signed=True),
    "spectral, |correlation|": partial(spectral_groups, signed=False),
}
"""Groups of the variables of a matrix of correlations, by name."""
