"""`TableMixin`: the estimator's methods whose answers are tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from latenttree.data import Schema, check_weights
from latenttree.data.containers import library_of_tables
from latenttree.engine import resolve_jobs
from latenttree.errors import DataError, check_option
from latenttree.model.tree_model import TreeModel
from latenttree.queries import as_generator
from latenttree.queries.nodes import Node, node_index, node_indices
from latenttree.tables import columns as made
from latenttree.tables.conditionals import check_states
from latenttree.tables.intervals import bootstrap_interval, refit_of
from latenttree.tree import Tree
from latenttree.tree.frames import series_of, table_of


class TableMixin:
    """Tables of a fitted model; a base of the estimator.

    Every table is a DataFrame of pandas, or of polars after `set_output(transform="polars")`; the
    labels of rows are the index in pandas and the first column in polars. Nodes are given by name
    or number."""

    tree_: Tree
    model_: Any
    diagnostics_: Any
    schema_: Schema
    n_jobs: int | None
    random_state: Any
    smoothing: float

    def variable_groups(self, k: int, min_size: int = 1, signed: bool = True) -> Any:
        """Labels 0, 1, ... of `k` groups of the variables, cut from the tree, see `Tree.cut`.

        Parameters
        ----------
        k : number of groups; fewer are made where there are no more of at least `min_size`.
        min_size : least number of variables in a group.
        signed : variables that exclude each other go to different groups.

        Returns
        -------
        A Series of pandas with the variables as index; of polars a DataFrame with the columns
        "variable" and "group".
        """
        check_is_fitted(self, "tree_")
        labels = self.tree_.cut(k, min_size=min_size, signed=signed)
        names = self.tree_.observed_names
        return series_of(labels, names, self._library(), name="group", labels_name="variable")

    def edges(self) -> Any:
        """The edges of the tree, one row each: the names of both ends, length, sign (0 where an end
        has no order), support, standard error of the length (NaN where it was not estimated), and
        whether it is an inner edge, with two or more variables on both sides."""
        check_is_fitted(self, "tree_")
        columns = self.tree_.edge_columns()
        errors = np.asarray(self.diagnostics_.standard_errors, dtype=np.float64)
        known = len(errors) == self.tree_.n_edges
        nothing = np.full(self.tree_.n_edges, np.nan)
        columns["support"] = np.asarray(self.diagnostics_.support, dtype=np.float64)
        columns["standard_error"] = np.where(errors > 0, errors, np.nan) if known else nothing
        return table_of(columns, self._library())

    def conditional_table(self, node: Node, given: Node) -> Any:
        """The distribution of a node in each state of another, any two nodes.

        Of a node with states `P(node | given)`: a row for each of its labels, a column for each
        label of `given`. Of numbers a row for the mean and one for the standard deviation in each
        state; of a group of codes a row for the probability of each code, of a bag for the share
        of each item. In a Gaussian tree the regression `E[node | given] = intercept + slopes` with
        the standard deviation of what is left, a row for each number."""
        self._check_tables()
        v, u = self._node_of(node), self._node_of(given)
        if u == v:
            raise DataError(f"{node!r} is given by itself", "ask for another node", node=str(node))
        if isinstance(self.model_, TreeModel):
            check_states(self.model_, u)
        found = made.conditional(self.model_, self.schema_, v, u)
        return table_of(found.columns, self._library(), **found.names)

    def relative_risks(self, node: Node, state: Any = None, n_variables: int | None = 20) -> Any:
        """How much more probable categories are in one state of a node than in its other states:
        `P(x | state) / P(x | other states)`.

        Parameters
        ----------
        node : a hidden node, or a variable with categories.
        state : a label of `classes_of(node)`; the last one by default.
        n_variables : those that tell most about the node (mutual information); None: all.

        Returns
        -------
        A row for each category (of a binary variable for the second, of a group for each code):
        variable, category, both probabilities, their ratio, and the information in nats that the
        variable has about the node, by which they are sorted.
        """
        self._check_tables()
        u = self._node_of(node)
        if not isinstance(self.model_, TreeModel):
            remedy = "conditional_table(node, given) shows how numbers depend on each other"
            raise DataError("a Gaussian tree has no states", remedy, node=str(node))
        check_states(self.model_, u)
        columns = made.risks(self.model_, self.schema_, u, state, n_variables)
        return table_of(columns, self._library())

    def item_table(self, items: Node | Sequence[Node], X: Any, node: Node | None = None) -> Any:
        """The items of a scale: ordered or binary variables, or numbers.

        Parameters
        ----------
        items : a hidden node, for the variables around it, or a list of variables.
        X : samples, as `fit` takes them.
        node : the hidden node that loadings are correlations with; by default the one given, or
            the one between the items with which they correlate most.

        Returns
        -------
        A row for each item: `reversed`, whether it was turned round because it goes against the
        others (by the first principal component of their correlations); `loading`, its correlation
        with the hidden node as the model implies it; `item_rest`, its correlation with the sum of
        the other items; `alpha_without`, Cronbach's alpha of the others; its mean, standard
        deviation and share of missing values as they are in `X`. Loadings and correlations are
        those of the turned items. Values that are missing are left out pair by pair. Levels count
        as numbers: labels that are numbers as these, others as 0, 1, ... `reliability` has alpha
        and omega of the whole."""
        self._check_tables()
        variables, h = self._scale(items, node)
        rows = self.schema_.rows(X)
        columns = made.items(self.model_, self.schema_, variables, h, rows)
        names = [self.schema_.names[v] for v in variables]
        return table_of(columns, self._library(), labels=names, labels_name="item")

    def reliability(self, X: Any, groups: Any = None) -> Any:
        """How reliable the sums of groups of items are.

        Parameters
        ----------
        X : samples, as `fit` takes them.
        groups : what `variable_groups` returns, or a dict from labels to lists of variables; by
            default the variables around each hidden node. Groups of fewer than two items are left
            out, and so are variables that are no numbers and have no order.

        Returns
        -------
        A row for each group: the hidden node, number of items, and how many are reversed; `alpha`
        (Cronbach 1951), `standardized_alpha`, of correlations, and `omega` (McDonald 1999), from
        the loadings on the node; the mean item-rest correlation."""
        self._check_tables()
        scales = made.scales(self.model_, self.schema_, self._items_of(groups))
        rows = self.schema_.rows(X)
        columns = made.reliabilities(self.model_, self.schema_, list(scales.values()), rows)
        return table_of(columns, self._library(), labels=list(scales), labels_name="group")

    @property
    def covariance_(self) -> Any:
        """The covariance of the variables that the model implies, `(p, p)`: of a Gaussian tree,
        or of numbers and ordered and binary variables. Coordinates of blocks are "name[0]", ..."""
        return self._covariances(correlations=False)

    @property
    def correlation_(self) -> Any:
        """The correlations of the variables that the model implies, as `covariance_`."""
        return self._covariances(correlations=True)

    def intervals(
        self,
        node: Node,
        given: Node,
        X: Any,
        *,
        level: float = 0.95,
        n_resamples: int = 200,
        sample_weight: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Intervals of `P(node | given)`, of expectations of numbers in each state, or of the
        slopes in a Gaussian tree, by resampling the rows of `X` while the tree stays as it is.

        Parameters
        ----------
        node, given : any two nodes, as for `conditional_table`.
        X, sample_weight : the samples of `fit`.
        level : probability that the interval covers the true value.
        n_resamples : rows are drawn so often, and some steps of EM taken from the fitted model
            with each draw.
        random_state : as in `sample`.

        Returns
        -------
        A row for each number: the labels of node and given, the estimate, and the lower and upper
        end of its interval. They hold for models refined by EM (`refine="em"`); that the tree is
        itself an estimate is not in them. Probabilities near 0 or 1 of few samples have intervals
        that are too short.
        """
        self._check_tables()
        v, u = self._node_of(node), self._node_of(given)
        for name, value, possible, remedy in (
            ("level", level, 0 < level < 1, "give a number between 0 and 1"),
            ("n_resamples", n_resamples, n_resamples >= 2, "give 2 or more"),
        ):
            check_option(name, value, possible, remedy)
        model, schema = self.model_, self.schema_
        if isinstance(model, TreeModel):
            check_states(model, u)
        rows = schema.rows(X)
        weights = np.ones(rows.n_samples)
        if sample_weight is not None:
            weights = check_weights(sample_weight, rows.n_samples, least=0.0)
        seed = self.random_state if random_state is None else random_state
        ends = bootstrap_interval(
            refit_of(model, rows, self.smoothing, resolve_jobs(self.n_jobs)),
            lambda fitted: made.quantity(fitted, schema, v, u),
            model,
            weights,
            level,
            n_resamples,
            as_generator(seed),
        )
        return table_of(made.intervals(model, schema, v, u, ends), self._library())

    # --- small helpers -----------------------------------------------------------------

    def _library(self) -> str | None:
        return library_of_tables(self)

    def _check_tables(self) -> None:
        if hasattr(self, "tree_") and not hasattr(self, "model_"):
            what = "this tree has no probabilities"
            raise DataError(what, "fit again to ask for more than the tree")
        check_is_fitted(self, "model_")

    def _node_of(self, node: Node) -> int:
        return node_index(self.model_, node, self.schema_)

    def _scale(self, items: Any, node: Node | None) -> tuple[list[int], int]:
        """The items of a scale, and the hidden node of their loadings."""
        model, schema = self.model_, self.schema_
        if isinstance(items, str | int | np.integer):
            h = self._node_of(items if isinstance(items, str) else int(items))
            variables = made.items_around(model, schema, h)
        else:
            variables = node_indices(model, list(items), "items", schema)
            h = -1
        if node is not None:
            h = self._node_of(node)
        return made.checked_scale(model, schema, variables, h)

    def _items_of(self, groups: Any) -> dict[Any, list[int]]:
        """The variables of each group."""
        if groups is None:
            tree = self.model_.tree
            hidden = range(tree.n_observed, tree.n_nodes)
            return {tree.names[h]: made.items_around(self.model_, self.schema_, h) for h in hidden}
        if not isinstance(groups, Mapping):
            groups = made.members_by_label(groups)
        return {
            label: node_indices(self.model_, list(names), "groups", self.schema_)
            for label, names in groups.items()
        }

    def _covariances(self, correlations: bool) -> Any:
        """Raises `AttributeError` where there is none: scikit-learn's `dir` asks for all
        attributes, which shall neither fail nor learn from batches that wait."""
        if "model_" not in vars(self):
            raise AttributeError("there is no model yet; call fit or finalize")
        try:
            names, values = made.covariances(self.model_, self.schema_, correlations)
        except DataError as error:
            raise AttributeError(str(error)) from error
        columns: dict[Any, Any] = dict(zip(names, values.T, strict=True))
        return table_of(columns, self._library(), labels=names, labels_name="variable")
