"""`LatentTree`: the scikit-learn estimator. Wiring only; every stage lives in its own module."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latenttree.compilation import Compiler
from latenttree.data import (
    Schema,
    Table,
    as_table,
    check_identifiers,
    check_n_states,
    free_dimensions,
)
from latenttree.data.content_order import in_content_order
from latenttree.data.limits import sizes_of
from latenttree.distances.estimate import Distances, estimate_distances, pairwise_distances
from latenttree.distances.measure import (
    Estimate,
    Plan,
    affinity_of,
    check_least,
    counted,
    plan_memory,
)
from latenttree.distances.number_of_states import choose_states
from latenttree.engine import Progress, resolve_jobs, single_threaded_blas
from latenttree.engine.memory import (
    enough,
    first_fit_done,
    give_back_freed,
    memory_bytes,
    reserving,
    shown,
    within,
)
from latenttree.errors import DataError
from latenttree.evaluation.baselines import BASELINES
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.partial_fit import Batchwise
from latenttree.queries import Queries
from latenttree.refinement.fitting import Fitted, Options, check_refinement
from latenttree.report import Diagnostics
from latenttree.reporting import (
    check_detection,
    check_enough,
    describe,
    memory_report,
    parameter_report,
    single_states,
    states_report,
    tree_report,
)
from latenttree.search.learning import Lesson, learn_gaussian, learn_model
from latenttree.structure.learn import Structure, check_options, learn_structure
from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.io.archive import Saved


class LatentTree(Batchwise, Queries, BaseEstimator):
    """Learn the hidden variables behind a table, and the tree that joins everything.

    Parameters
    ----------
    n_states : int, "auto" or None
        States of every hidden variable, by default 2; dimensions where `hidden="gaussian"`, by
        default 1. "auto" counts the canonical correlations that hold up on held-out samples, then
        leaves each hidden variable as many states as BIC supports there; the evidence is in
        `diagnostics_.n_states_evidence`.
    hidden : "categorical" (default) or "gaussian"
        Hidden variables with states, or real vectors: a Gaussian tree, for which all variables are
        read as numbers (ordered categories by their place).
    structure : "lrg" (default) or a baseline: "neighbor_joining", "clrg", "chow_liu",
        "recursive_grouping".
    sweeps : bool, default=True
        Re-solve regions of the merged tree until it is consistent. Off: the paper's method.
    distances : "pooled" (default) or "pairwise"
        One cross-fitted subspace for each variable, or the paper's SVD of every pair (slow).
    epsilon : float, optional
        Use the paper's fixed threshold in local grouping instead of noise-aware joining.
    min_support : float in [0, 1], default=0.5
        Edges less likely to be real than this are contracted.
    search : bool, default=True
        Settle doubtful regions of the tree by the likelihood of the model.
    tree : "majority" (default) or "most_probable"
        The tree of all edges that are more likely real than not, or the tree of largest BIC,
        which leaves out weak edges that are probably there.
    refine : "em" (default) or None
        EM over the whole tree from the moments' estimate, or the moments alone.
    hidden_features : bool, default=True
        Messages out of a branch stand for it above the first level, instead of its nearest
        observed variable.
    max_iter, tol : int, default=200; float, default=1e-7
        Most steps of refinement, and when it stops: when less than `500,000 tol` of log-likelihood
        is still to be gained for each parameter; by default 0.05, where sampling noise is 0.5.
    smoothing : float, default=1.0
        Pseudo-samples for every state of a parent, spread as the variable's own frequencies.
    validation_fraction : float in [0, 1), default=0
        Share of the samples that are held out to stop refinement by.
    family : "auto", str or dict
        How variables are distributed given their hidden neighbour: "auto", one name for all, or
        names by variable (the others "auto"). Names are "categorical", "ordinal", "gaussian" (and
        for vectors "gaussian_spherical", "gaussian_diagonal", "gaussian_full", "gaussian_tied"),
        "poisson", "multinomial", "multihot". By default boolean, integer, string and categorical
        columns are categorical, float columns gaussian, a SciPy sparse matrix without `groups` is
        presence or absence, groups are multihot, multinomial or gaussian as their values are.
        Integers of a DataFrame with more than 50 values and few rows for each are numbers too.
    groups : optional
        For a sparse matrix: the variable of each column, or a mapping from names to columns.
    names : sequence of str, optional
        Names of the variables, for arrays and sparse matrices (for example
        `vectorizer.get_feature_names_out()`); a DataFrame brings its own.
    drop_constant : bool, default=False
        Leave out variables that have a single value instead of raising an error.
    keep_distances : bool, default=False
        Keep the distance matrix and its standard errors in `distances_`.
    memory_limit : int, str or None
        Bytes that the process may hold, Python, libraries and `X` included, or text like "8GiB";
        None is 60% of what is free. Files that are larger are read part by part, into a scratch
        file where the table is too large as well. Where the matrices of all pairs of 0/1 variables
        do not fit, pairs are counted when they are needed: the same tree, but for branches being
        seen through fewer leaves, in more time. A limit that is too small is refused, with the
        least that works. Compiling, at the first fit on a machine, takes more.
    random_state : int, RandomState or None
        Seeds the sketch. The same seed gives the same tree on any number of threads, and whatever
        the order of the rows.
    n_jobs : int or None
        Threads; None uses all cores.
    verbose : bool, default=False
        Show stages and times while they run.

    Attributes
    ----------
    tree_ : Tree
        Observed nodes first, in the order of the columns, then hidden nodes h0, h1, ...
    model_ : TreeModel, or GaussianTreeModel where `hidden="gaussian"`
        The tree with every conditional distribution.
    families_ : dict
        The family of every variable.
    diagnostics_ : Diagnostics
        Support of every edge, unmeasurable pairs, times of the stages and more.
    n_iter_ : int
        Steps that refinement took.
    schema_ : Schema
        Names and categories of the variables, so that new data are read alike.
    distances_ : Distances, only with `keep_distances=True`.
    n_features_in_, feature_names_in_ : as in scikit-learn.

    Examples
    --------
    >>> import latenttree as lt
    >>> data = lt.datasets.make_latent_tree(9, n_samples=20_000, random_state=0)
    >>> model = lt.LatentTree(n_states=2, random_state=0).fit(data.X)
    >>> model.tree_
    Tree(9 observed (x0, x1, x2, ...), 4 hidden)
    >>> model.tree_.same_topology(data.tree)
    True
    """

    tree_: Tree
    model_: TreeModel | GaussianTreeModel
    diagnostics_: Diagnostics
    distances_: Distances
    schema_: Schema

    def __init__(
        self,
        n_states: int | str | None = None,
        *,
        hidden: Literal["categorical", "gaussian"] = "categorical",
        structure: str = "lrg",
        sweeps: bool = True,
        distances: Literal["pooled", "pairwise"] = "pooled",
        epsilon: float | None = None,
        min_support: float = 0.5,
        search: bool = True,
        tree: Literal["majority", "most_probable"] = "majority",
        refine: Literal["em"] | None = "em",
        hidden_features: bool = True,
        max_iter: int = 200,
        tol: float = 1e-7,
        smoothing: float = 1.0,
        validation_fraction: float = 0.0,
        family: Any = "auto",
        groups: Any = None,
        names: Sequence[str] | None = None,
        drop_constant: bool = False,
        keep_distances: bool = False,
        memory_limit: int | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool = False,
    ) -> None:
        self.n_states = n_states
        self.hidden = hidden
        self.structure = structure
        self.sweeps = sweeps
        self.distances = distances
        self.epsilon = epsilon
        self.min_support = min_support
        self.search = search
        self.tree = tree
        self.refine = refine
        self.hidden_features = hidden_features
        self.max_iter = max_iter
        self.tol = tol
        self.smoothing = smoothing
        self.validation_fraction = validation_fraction
        self.family = family
        self.groups = groups
        self.names = names
        self.drop_constant = drop_constant
        self.keep_distances = keep_distances
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LatentTree:
        """Learn the tree over the variables of `X`; `y` is ignored.

        Missing values are left out of the moments, pair by pair, and summed over in the likelihood:
        right where they are missing completely at random. `sample_weight` `(n,)` says how often
        each row counts: one of weight 3 as three such rows, anywhere in the table."""
        self._check_options()
        jobs = resolve_jobs(self.n_jobs)
        sizes = sizes_of(X)
        check_enough(sizes)
        needed = check_least(sizes, 2, self.memory_limit, jobs)
        progress = Progress(self.verbose)
        with progress.stage("reading"), reserving(needed):
            table = as_table(
                X,
                groups=self.groups,
                names=self.names,
                drop_constant=self.drop_constant,
                family=self.family,
                sample_weight=sample_weight,
                scores=self.hidden == "gaussian",
                memory_limit=self.memory_limit,
            )
            check_identifiers(table)
            report = Diagnostics(n_states=0, messages=describe(table))
            table = in_content_order(table)
        give_back_freed()
        seed = _seed(self.random_state)
        rank, most = self._rank(table, report, seed, progress)
        lesson = self._lesson(most, seed, progress)
        with (
            progress.announcing_compilation(),
            Compiler(table, rank + 1, lesson.n_jobs, self._stages(table)) as compiler,
            single_threaded_blas(),
            within(memory_bytes(self.memory_limit)),
        ):
            measured, result, fitted = self._learn(table, rank, lesson, compiler)
        tree_report(report, result, measured, table.total_weight)
        parameter_report(report, fitted)
        memory_report(report, measured.plan)
        report.stage_seconds = progress.seconds
        self._keep(X, table, result, fitted, report, measured.distances)
        first_fit_done()
        return self

    def _learn(
        self, table: Table, rank: int, lesson: Lesson, compiler: Compiler
    ) -> tuple[Estimate, Structure, Fitted | None]:
        """What was measured, the tree, and its model where there is one."""
        if table.n_vars < 3:
            measured = Estimate()
            result = single_states(table, rank + 1, lesson.seed, self.n_jobs)
        else:
            measured = self._measure(table, rank + 1, lesson)
            self._wait(compiler, "structure", lesson.progress)
            result = self._structure(measured, table, lesson.progress)
            kept = measured.distances if self.keep_distances else None
            measured = replace(measured.reduced(), distances=kept)
            give_back_freed()
        self._wait(compiler, "model", lesson.progress)
        if self.hidden == "gaussian":
            return measured, result, learn_gaussian(result, table, rank, lesson)
        return measured, *learn_model(result, table, rank + 1, measured.basis, lesson)

    def _stages(self, table: Table) -> list[str]:
        """Stages whose kernels this fit needs."""
        structure = table.n_vars >= 3 and self.structure == "lrg"
        return ["structure"] * structure + ["model"] * (self.hidden != "gaussian")

    @staticmethod
    def _wait(compiler: Compiler, stage: str, progress: Progress) -> None:
        """Until the kernels of a stage are there."""
        if compiler.running and compiler.stage == stage:
            with progress.stage("compiling"):
                compiler.wait(stage)

    def _measure(self, table: Table, states: int, lesson: Lesson) -> Estimate:
        """Distances of all pairs; where their matrices do not fit, what the tree needs of them."""
        plan = None
        with lesson.progress.stage("distances"):
            if self.distances == "pairwise":
                found = pairwise_distances(table, states)
            else:
                whole = self.structure != "lrg" or self.keep_distances
                plan = plan_memory(table, states, self.memory_limit, lesson.n_jobs, whole)
                if plan.mode == "on demand":
                    self._check_on_demand(plan, table)
                if plan.mode != "matrices":
                    return counted(table, plan, lesson.n_jobs)
                found = estimate_distances(
                    table, states, random_state=lesson.seed, n_jobs=self.n_jobs
                )
        check_detection(found, table, self.hidden == "gaussian", lesson.seed, self.n_jobs)
        if self.structure != "lrg":
            return Estimate(None, found, found.basis, plan)
        with lesson.progress.stage("spanning tree"):
            return Estimate(affinity_of(found, table), found, found.basis, plan)

    def _check_on_demand(self, plan: Plan, table: Table) -> None:
        """What does not fit, or needs the matrices of all pairs, is refused before any work."""
        if self.memory_limit is not None and plan.estimated_peak > plan.limit:
            raise DataError(
                f"{table.n_vars:,} variables in {len(table):,} samples need "
                f"{shown(plan.on_demand + plan.beside)} at least beside the "
                f"{shown(plan.held)} held already, and memory_limit is {shown(plan.limit)}; raise "
                f"it to {shown(enough(plan.limit, plan.estimated_peak))} or more"
            )
        usual = {"structure": "lrg", "keep_distances": False}
        for name in usual:
            value = getattr(self, name)
            if value != usual[name]:
                raise DataError(
                    f"{name}={value!r} needs the matrices of all pairs, {shown(plan.matrices)} "
                    f"beside the {shown(plan.held)} held already, and memory_limit is "
                    f"{shown(plan.limit)}; raise it, or leave {name} out"
                )

    def _rank(
        self, table: Table, report: Diagnostics, seed: int, progress: Progress
    ) -> tuple[int, int]:
        """Dimensions of the determinants, one less than the states, or those of a Gaussian; and
        the most states that a hidden variable may have."""
        gaussian = self.hidden == "gaussian"
        default = 1 if gaussian else 2
        asked = check_n_states(table, default if self.n_states is None else self.n_states, gaussian)
        most = 0
        if asked == "auto":
            with progress.stage("states"):
                evidence = choose_states(table, seed, self.n_jobs)
            report.n_states_evidence, most = evidence.directions, evidence.most_states
            if evidence.n_states <= int(free_dimensions(table).min()):
                most = max(most, evidence.n_states + 1)  # one more, for BIC to decide
            report.messages += states_report(table, evidence.n_states)
            asked = evidence.n_states - gaussian
        report.n_states = asked
        return (asked if gaussian else asked - 1), most

    def _check_options(self) -> None:
        choices = {
            "structure": ("lrg", *BASELINES),
            "distances": ("pooled", "pairwise"),
            "hidden": ("categorical", "gaussian"),
            "refine": ("em", None),
            "tree": ("majority", "most_probable"),
        }
        for name, allowed in choices.items():
            value = getattr(self, name)
            if value not in allowed:
                raise DataError(f"{name}={value!r} is unknown; choose one of {list(allowed)}")
        check_options(self.min_support, self.epsilon)
        memory_bytes(self.memory_limit)
        check_refinement(self.max_iter, self.tol, self.smoothing, self.validation_fraction)

    def _structure(self, measured: Estimate, table: Table, progress: Progress) -> Structure:
        whole, found = measured.affinity, measured.distances
        if whole is None:
            assert found is not None
            with progress.stage(self.structure):
                values = found.values.astype(np.float64)
                tree = BASELINES[self.structure](values, found.n_samples, table.names)
            return Structure.of_tree(tree)
        if not self.hidden_features:
            whole = replace(whole, width=1)
        return learn_structure(
            whole,
            table.names,
            sweeps=self.sweeps,
            min_support=self.min_support,
            epsilon=self.epsilon,
            n_jobs=resolve_jobs(self.n_jobs),
            progress=progress,
        )

    def _lesson(self, most_states: int, seed: int, progress: Progress) -> Lesson:
        options = Options(
            refine=self.refine == "em",
            hidden_features=self.hidden_features,
            max_iter=self.max_iter,
            tol=self.tol,
            smoothing=self.smoothing,
            validation_fraction=self.validation_fraction,
        )
        tree = self.tree if self.search and self.structure == "lrg" else None
        return Lesson(options, tree, most_states, seed, resolve_jobs(self.n_jobs), progress)

    def _keep(
        self,
        X: Any,
        table: Table,
        result: Structure,
        fitted: Fitted | None,
        report: Diagnostics,
        found: Distances | None,
    ) -> None:
        """Set the fitted attributes, all at the end, so that a failed fit leaves none behind."""
        self._forget_batches()
        self.tree_, self.diagnostics_ = result.tree, report
        self.schema_ = Schema.of(X, table, groups=self.groups, names=self.names)
        self.n_features_in_ = self.schema_.n_features
        for stale in ("model_", "feature_names_in_", "distances_"):
            if hasattr(self, stale):
                delattr(self, stale)
        if fitted is not None:
            self.model_ = fitted.model
            self.n_iter_ = max(1, len(fitted.trace) - 1)
        if hasattr(X, "columns") and all(isinstance(c, str) for c in X.columns):
            self.feature_names_in_ = np.asarray(list(X.columns), dtype=object)
        if self.keep_distances and found is not None:
            self.distances_ = found

    @property
    def families_(self) -> dict[str, str]:
        """The family of every variable."""
        check_is_fitted(self, "schema_")
        return dict(zip(self.schema_.names, self.schema_.families, strict=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a `.ltree` file; read it with `latenttree.load`."""
        check_is_fitted(self, "tree_")
        from latenttree.io.archive import Saved, jsonable, save_archive

        report = {k: v for k, v in vars(self.diagnostics_).items() if k != "support"}
        if not hasattr(self, "model_"):
            raise DataError(
                "this tree has no probabilities to save; save the tree itself with "
                "latenttree.io.treefile.save_tree(path, model.tree_)"
            )
        params = jsonable(self.get_params(deep=False))
        schema = self.schema_.to_json()
        save_archive(path, Saved(self.model_, schema, params, report, self.diagnostics_.support))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LatentTree:
        """The model in a `.ltree` file, ready to answer questions."""
        from latenttree.data.reading import reading
        from latenttree.io.archive import load_archive

        with reading(path, "model"):
            return cls._restored(load_archive(path), path)

    @classmethod
    def _restored(cls, saved: Saved, path: str | os.PathLike[str]) -> LatentTree:
        from latenttree.io.archive import check_schema

        known = set(cls().get_params(deep=False))
        model = cls(**{k: v for k, v in saved.params.items() if k in known})
        resolve_jobs(model.n_jobs), _seed(model.random_state)  # what every question uses
        schema = Schema.from_json(saved.schema)
        check_schema(schema, saved.model, path)
        model.model_, model.tree_, model.schema_ = saved.model, saved.model.tree, schema
        model.diagnostics_ = Diagnostics.restored(saved.diagnostics, saved.support)
        str(model.diagnostics_)  # a report that cannot be told is damaged
        model.n_features_in_ = schema.n_features
        model.n_iter_ = max(1, len(model.diagnostics_.log_likelihood_trace) - 1)
        if schema.named:
            model.feature_names_in_ = np.asarray(schema.input_names, dtype=object)
        return model

    def plot(self, layout: Literal["radial", "top_down"] = "radial", **options: Any) -> Any:
        """Draw the tree with matplotlib, edge width by support; returns the axes."""
        check_is_fitted(self, "tree_")
        from latenttree.plots.figure import plot_tree

        return plot_tree(self.tree_, layout, support=self.diagnostics_.support, **options)

    def to_newick(self) -> str:
        """The tree as Newick text."""
        check_is_fitted(self, "tree_")
        return self.tree_.to_newick()

    def to_networkx(self) -> Any:
        """The tree as a NetworkX graph, with lengths and supports."""
        check_is_fitted(self, "tree_")
        from latenttree.io.networkx import to_networkx

        return to_networkx(self.tree_, self.diagnostics_.support)

    def to_graphml(self) -> str:
        """The tree as GraphML text, with lengths and supports."""
        check_is_fitted(self, "tree_")
        from latenttree.io.graphml import to_graphml

        return to_graphml(self.tree_, self.diagnostics_.support)

    def to_pgmpy(self) -> Any:
        """The model as a Bayesian network of pgmpy; all variables must be categorical."""
        check_is_fitted(self, "model_")
        from latenttree.io.pgmpy import to_pgmpy

        if not isinstance(self.model_, TreeModel) or self.model_.emissions:
            raise DataError(
                "to_pgmpy is for models whose variables are all categorical; this one has numbers"
            )
        names = {name: self.classes_of(name).tolist() for name in self.tree_.observed_names}
        return to_pgmpy(self.model_, names)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        tags.target_tags.required = False
        return tags


def _seed(random_state: Any) -> int:
    """One integer from whatever scikit-learn accepts as random state."""
    if isinstance(random_state, (int, np.integer)) and random_state >= 0:
        return int(random_state)
    from sklearn.utils import check_random_state

    return int(check_random_state(random_state).randint(2**31 - 1))


def load(path: str | os.PathLike[str]) -> LatentTree:
    """The model in a `.ltree` file, ready to answer questions; nothing in the file is executed."""
    return LatentTree.load(path)
