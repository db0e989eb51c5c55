"""`ExportMixin`: the estimator's methods that hand a fitted model to other programs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.io.exported import Exported
    from latenttree.tree.newick_writing import SupportStyle


class ExportMixin:
    """Exports of a fitted model; a base of the estimator.

    Needs `tree_`, `diagnostics_`, `schema_` and, for probabilities, `model_`. The modules of the
    formats are loaded when they are used.
    """

    tree_: Tree
    diagnostics_: Any
    schema_: Any

    def export(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the model in the format that the suffix of `path` tells; returns the paths of the
        files, which appear whole or not at all.

        - `.nwk`, `.nex`: the tree as Newick or NEXUS; `.graphml`, `.gexf`, `.dot`: as a graph, with
          lengths, signs and support.
        - `.bif`, `.uai`: the Bayesian network; all variables must be categorical.
        - `.json`: the tree and every conditional distribution.
        - `.parquet`, `.csv`, `.tsv`: a table of the edges and beside it, in
          `NAME.conditionals.parquet`, a row for every entry of every conditional distribution;
          `.xlsx`: both as sheets.
        """
        from latenttree.io.exports import check_export, write_export

        check_export(path)
        return write_export(path, self._exported())

    def to_newick(
        self,
        *,
        signs: bool = False,
        support: SupportStyle | None = None,
        root: str | int | Sequence[str] | None = None,
        min_support: float = 0.0,
    ) -> str:
        """The tree as Newick text, without inner edges of less support than `min_support`.

        Lengths are information distances: `-log |correlation|` of the two ends of an edge between
        nodes of two states, see `Tree`. `signs`, `support` ("label" or "comment") and `root`
        ("midpoint", a node, or a list of observed names as outgroup) are those of
        `Tree.to_newick`."""
        return self._shown(min_support).to_newick(signs=signs, support=support, root=root)

    def to_nexus(
        self,
        *,
        signs: bool = False,
        support: SupportStyle | None = None,
        root: str | int | Sequence[str] | None = None,
        min_support: float = 0.0,
    ) -> str:
        """The tree as NEXUS text; options as in `to_newick`."""
        return self._shown(min_support).to_nexus(signs=signs, support=support, root=root)

    def to_networkx(self) -> Any:
        """The tree as a NetworkX graph, with lengths, signs and supports."""
        exported = self._exported()
        return exported.tree.to_networkx(exported.support)

    def to_graphml(self) -> str:
        """The tree as GraphML text, with lengths, signs and supports."""
        from latenttree.io.graphml import to_graphml

        exported = self._exported()
        return to_graphml(exported.tree, exported.support)

    def to_pgmpy(self) -> Any:
        """The model as a Bayesian network of pgmpy; all variables must be categorical."""
        from latenttree.io.pgmpy import to_pgmpy

        exported = self._exported()
        labels = {self.tree_.names[v]: list(own) for v, own in exported.labels.items()}
        return to_pgmpy(exported.categorical("pgmpy"), labels)

    def _shown(self, min_support: float) -> Tree:
        check_is_fitted(self, "tree_")
        return self.tree_.collapse(min_support)

    def _exported(self) -> Exported:
        check_is_fitted(self, "tree_")
        from latenttree.io.exported import Exported

        labels = {}
        for v, coded in enumerate(self.schema_.coded.tolist()):
            levels = self.schema_.columns[self.schema_.index[v]].levels
            if coded:
                labels[v] = self.schema_.labels[v].tolist()
            elif levels is not None and self.schema_.form_of(v) != "vector":
                labels[v] = levels.tolist()
        support = self.diagnostics_.support
        return Exported(self.tree_, support, getattr(self, "model_", None), labels)
