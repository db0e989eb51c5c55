"""`PlotMixin`: the estimator's methods that draw.

Each method checks its options, draws, and returns the matplotlib axes (`axes.figure.savefig`
writes the figure); where there is a `path` it also writes the file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import NDArray
from sklearn import get_config
from sklearn.utils import estimator_html_repr
from sklearn.utils.validation import check_is_fitted

from latenttree.data import Schema
from latenttree.plots.canvas import check_figsize, check_picture_path, new_figure, save_figure
from latenttree.queries.nodes import Node, node_index
from latenttree.report import Diagnostics
from latenttree.tree import Tree
from latenttree.tree.collapsing import SHOWN_SUPPORT

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Path = str | os.PathLike[str] | None
Size = tuple[float, float] | None


class PlotMixin:
    """Pictures of a fitted model; a base of the estimator. Needs matplotlib: `pip install
    'latenttree[plot]'`."""

    tree_: Tree
    model_: Any
    schema_: Schema
    diagnostics_: Diagnostics
    handle_unknown: Literal["missing", "error"]

    def plot(
        self,
        layout: Literal["radial", "top_down"] = "radial",
        *,
        color_by: Any = None,
        labels: bool | Mapping[str, str] | Callable[[str], str] = True,
        support: bool = True,
        hidden_labels: bool = False,
        root: Node | None = None,
        highlight: Any = None,
        figsize: Size = None,
        max_label: int = 28,
        lengths: bool = False,
        min_support: float = SHOWN_SUPPORT,
        independent: bool | None = None,
        title: str | None = None,
        ax: Axes | None = None,
        path: Path = None,
    ) -> Axes:
        """Draw the tree; returns the axes.

        Negative edges are dashed, and a note in the picture says what is left out.

        Parameters
        ----------
        layout : "radial" (names around a circle) or "top_down" (the root on top).
        color_by : labels of the variables: a Series or mapping from their names, or a sequence in
            their order. Categories get colours and a legend, numbers a colour bar. A whole number:
            so many groups, as `tree_.cut` makes them. None: neighbouring branches have similar
            hues.
        labels : whether to write the names of variables; or what to write instead, as a mapping or
            function of names. Where there is no room for all, each group shows its most typical
            member first.
        support : whether the width of an edge is its support.
        hidden_labels : write the names of hidden nodes too, where they fit.
        root : the node in the middle, or on top; by default the centre of the tree.
        highlight : nodes that stand out, with the edges between them: a name, or several.
        figsize : width and height in inches; by default as the tree needs.
        max_label : most characters of a name.
        lengths : place nodes by the lengths of edges instead of by their number.
        min_support : inner edges of less support are contracted; 0 draws all.
        independent : whether to draw variables that depend on no other, or on a single one; by
            default in trees of up to 200 variables.
        title : above the picture.
        ax : matplotlib axes to draw into; a new figure otherwise.
        path : also write the figure to this file: .png, .svg or .pdf.
        """
        check_is_fitted(self, "tree_")
        from latenttree.plots.tree_figure import plot_tree

        return plot_tree(
            self.tree_,
            layout,
            color_by=color_by,
            labels=labels,
            support=support,
            hidden_labels=hidden_labels,
            root=root,
            highlight=highlight,
            figsize=figsize,
            max_label=max_label,
            lengths=lengths,
            min_support=min_support,
            independent=independent,
            title=title,
            ax=ax,
            path=path,
        )

    def plot_neighborhood(
        self,
        node: Node,
        radius: int = 2,
        *,
        color_by: Any = None,
        max_nodes: int = 60,
        max_label: int = 24,
        min_support: float = 0.0,
        figsize: Size = None,
        title: str | None = None,
        ax: Axes | None = None,
        path: Path = None,
    ) -> Axes:
        """Draw a node and what is around it; returns the axes.

        All nodes have their names, hidden ones in grey. Inner edges have their support as width
        and number, negative edges are dashed and marked by a minus. Dotted ends lead to further
        nodes; a note says how many variables lie there.

        Parameters
        ----------
        node : the node in the middle, by name or number.
        radius : how many edges away the farthest nodes are.
        color_by : as in `plot`.
        max_nodes : most nodes; the nearest are drawn.
        max_label : most characters of a name.
        min_support : inner edges of less support are contracted.
        figsize, title, ax, path : as in `plot`.
        """
        check_is_fitted(self, "tree_")
        check_figsize(figsize)
        check_picture_path(path)
        from latenttree.plots.neighborhood_figure import plot_neighborhood

        tree = self.tree_.collapse(min_support) if min_support else self.tree_
        options: dict[str, Any] = {"color_by": color_by, "max_nodes": max_nodes}
        options |= {"max_label": max_label, "figsize": figsize, "title": title, "ax": ax}
        axes = plot_neighborhood(tree, node, radius, **options)
        save_figure(axes.figure, path)  # type: ignore[arg-type]
        return axes

    def plot_conditional(
        self,
        node: Node,
        given: Node | None = None,
        *,
        max_label: int = 28,
        figsize: Size = None,
        ax: Axes | None = None,
        path: Path = None,
    ) -> Axes | NDArray[Any]:
        """Draw the distribution of a node given another one.

        Bars or a heat map of the probabilities of labels and states, densities of numbers,
        probabilities of counts, expectations of vectors; in a Gaussian tree the regression line.
        The shares of the states of `given` stand in the legend.

        Parameters
        ----------
        node : by name or number.
        given : any node with states. None: of a variable its nearest hidden neighbour; of a hidden
            node all of its neighbours are drawn given it, in a figure of up to nine panels.
        max_label : most characters of a name.
        figsize, ax, path : as in `plot`.

        Returns
        -------
        The axes; for a hidden node without `given` an array of the axes of all panels.
        """
        check_is_fitted(self, "model_")
        check_figsize(figsize)
        check_picture_path(path)
        from latenttree.plots import conditional_figure as drawing

        model, schema = self.model_, self.schema_
        v = node_index(model, node, schema)
        if given is None and v >= schema.n_vars and ax is None:
            panels = drawing.plot_around(model, schema, v, figsize, max_label)
            save_figure(panels[0].figure, path)
            return panels
        u = (
            drawing.default_condition(model, v)
            if given is None
            else node_index(model, given, schema)
        )
        axes = ax or new_figure(figsize or (6.0, 4.0), pyplot=True).add_subplot()
        drawing.plot_conditional(model, schema, v, u, axes, max_label)
        save_figure(axes.figure, path)  # type: ignore[arg-type]
        return axes

    def plot_topics(
        self,
        level: int | None = None,
        *,
        n_words: int = 8,
        figsize: Size = None,
        max_label: int = 22,
        path: Path = None,
    ) -> NDArray[Any]:
        """Draw the topics of a level, a panel each; returns an array of their axes.

        The bars are the information, in bits, of the variables that tell most about a topic; pale
        ones are of variables that its samples have less of. The titles have the share of samples
        in the highest state. A note says how many topics are left out.

        Parameters
        ----------
        level : number of topics, as for `topics`; None for the coarsest level.
        n_words : variables of each topic.
        max_label : most characters of a name.
        figsize, path : as in `plot`.
        """
        check_figsize(figsize)
        check_picture_path(path)
        from latenttree.plots.topics_figure import plot_topics

        topics = self.topics(n_words, level)  # type: ignore[attr-defined]  # a method of another base
        panels = plot_topics(topics.levels[0] if topics.levels else (), figsize, max_label)
        save_figure(panels[0].figure, path)
        return panels

    def plot_heatmap(
        self,
        X: Any = None,
        *,
        figsize: Size = None,
        max_label: int = 28,
        title: str | None = None,
        path: Path = None,
    ) -> Axes:
        """Draw the correlations of the variables in the order of the tree, beside the tree; returns
        the axes of the matrix.

        Without `X` those that the model implies. With samples `X` these stand above the diagonal,
        and the observed ones below it: where the two halves differ, the tree is a poor picture.
        Unordered categories and vectors have the root of the sum of squared correlations of their
        columns. Of more than 1,000 variables some are drawn, evenly along the tree; a note says so.

        Parameters
        ----------
        X : samples, as for `transform`.
        figsize, max_label, title, path : as in `plot`.
        """
        check_is_fitted(self, "model_")
        check_figsize(figsize)
        check_picture_path(path)
        from latenttree.plots.heatmap_figure import plot_heatmap

        rows = None if X is None else self.schema_.rows(X, handle_unknown=self.handle_unknown)
        axes = plot_heatmap(
            self.model_,
            self.schema_.families,
            rows,
            figsize=figsize,
            max_label=max_label,
            title=title,
        )
        save_figure(axes.figure, path)  # type: ignore[arg-type]
        return axes

    def plot_diagnostics(self, *, figsize: Size = None, path: Path = None) -> NDArray[Any]:
        """Draw what the fit says of itself: the support of inner edges, the steps of refinement,
        the pairs of variables that the tree explains worst, and the time of the stages; returns an
        array of the four axes."""
        check_is_fitted(self, "tree_")
        check_figsize(figsize)
        check_picture_path(path)
        from latenttree.plots.diagnostics_figure import plot_diagnostics

        panels = plot_diagnostics(self.tree_, self.diagnostics_, figsize)
        save_figure(panels[0].figure, path)
        return panels

    # --- notebooks ---------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """What was learned; scikit-learn's diagram before the fit, also where batches wait."""
        if "_batches" in vars(self) and "tree_" not in vars(self):
            return f"<pre>{escape(repr(self))}</pre>"
        if not hasattr(self, "tree_"):
            return str(estimator_html_repr(self))
        from latenttree.plots.notebook import model_html

        return model_html(repr(self), self.tree_, self.diagnostics_)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        html = {"text/html": self._repr_html_()} if get_config()["display"] == "diagram" else {}
        return {"text/plain": repr(self)} | html
