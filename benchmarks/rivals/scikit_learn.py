"""scikit-learn: agglomerative clustering of the variables."""

from __future__ import annotations

import numpy as np

from benchmarks.rivals import Answer, Rival, Task
from benchmarks.rivals.hierarchies import from_linkage


class Agglomerative(Rival):
    """`AgglomerativeClustering`, average linkage, on the information distances that all get.

    The tree is that of its merges; the groups are the cut into as many as there are families.
    """

    name = "scikit-learn agglomerative"
    needs = ("sklearn",)
    install = "scikit-learn"
    given = "number of families"

    def fit(self, task: Task) -> Answer:
        """The tree of merges, and a cut of it."""
        from sklearn.cluster import AgglomerativeClustering

        n_groups = task.layers[0] if task.layers else 2
        merging = AgglomerativeClustering(
            n_groups, metric="precomputed", linkage="average", compute_distances=True
        )
        groups = merging.fit_predict(task.distances())
        linkage = np.column_stack([merging.children_, merging.distances_, merging.distances_])
        return Answer(from_linkage(linkage, task.table.names), tuple(groups.tolist()))


RIVALS = (Agglomerative(),)
