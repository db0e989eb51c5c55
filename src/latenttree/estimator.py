"""`LatentTree`: the scikit-learn estimator, whose `fit` is the list of stages."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from latenttree.compilation import Compiler
from latenttree.config import FitConfig, seed_of
from latenttree.data import Schema, Table
from latenttree.data.checks import names_of
from latenttree.data.distinct_rows import distinct_rows
from latenttree.data.files.formats import sizes_of
from latenttree.data.stage import read
from latenttree.distances.detection import check_enough_samples
from latenttree.distances.estimate import Distances
from latenttree.distances.memory_plan import check_least
from latenttree.distances.stage import Measured, States, count_states
from latenttree.engine import resolve_jobs, single_threaded_blas
from latenttree.engine.memory import first_fit_done, give_back_freed, memory_bytes, memory_within
from latenttree.errors import DataError
from latenttree.evaluation.baselines import BASELINES
from latenttree.goodness_of_fit.stage import judge_fit
from latenttree.interpretation.mixin import InterpretationMixin
from latenttree.io.mixin import ExportMixin
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.page.mixin import PageMixin
from latenttree.partial_fit import PartialFitMixin
from latenttree.plots.mixin import PlotMixin
from latenttree.queries import QueryMixin
from latenttree.refinement.stage import refine
from latenttree.report import Diagnostics, diagnose
from latenttree.search.annotation import annotate
from latenttree.search.edges_that_pay import choose_structure
from latenttree.search.growth import grow, grows
from latenttree.search.stage import Learned, search
from latenttree.structure.learn import Structure, Structures
from latenttree.structure.resampling import estimate_support
from latenttree.structure.stage import (
    learn_structures,
    measure_dependence,
    rival_structures,
)
from latenttree.tables import TableMixin
from latenttree.tree import Tree

if TYPE_CHECKING:
    from latenttree.io.archive import Saved

FEWEST_STATES = 2
"""States of a hidden variable, at least."""


class LatentTree(
    PartialFitMixin,
    PageMixin,
    InterpretationMixin,
    TableMixin,
    PlotMixin,
    ExportMixin,
    QueryMixin,
    BaseEstimator,
):
    """Learn the hidden variables behind a table, and the tree that connects all variables.

    After `fit` the model can be read (`topics`, `describe`, `plot`, `to_html`), asked
    (`predict_proba`, `impute`, `score`, `sample`), used in pipelines (`transform`) and kept
    (`save`, `export`). The method follows Huang and others, Guaranteed Scalable Learning of Latent
    Tree Models (UAI 2019), "the paper" below.

    Parameters
    ----------
    n_states : "auto" (default), "bic" or int
        Number of states of the hidden variables. A number, 2 or more, goes with any columns; more
        states than the columns have categories take `refine="em"`. "auto": the structure is learned
        from as many directions as pairs of variables show (`diagnostics_.n_states_evidence`), and
        hidden variables get as many states as the likelihood of held-out samples supports, up to
        64. "bic": the most parsimonious model, with as many of the states that pairs show as BIC
        supports. With columns of a sparse matrix (words, codes) both mean two: a topic that is
        there or not. A hidden variable never has more states than its branches have configurations;
        `diagnostics_.hidden_states` has the numbers. Where there are many states, every observed
        variable is a leaf, and the tree may be a Chow-Liu tree with hidden variables in the places
        of the observed ones.
        With `hidden="gaussian"`: number of dimensions, 1 or more. Every variable must have as many
        free dimensions, so that scalar columns allow 1 and blocks of several columns more; "auto"
        takes 1 for scalar columns, else as many as the data show.
    hidden : "categorical" (default) or "gaussian"
        Hidden variables with states, or real vectors: a linear Gaussian tree, for which all
        variables are read as numbers (ordered categories by their rank).
    structure : "lrg" (default), the name of another method, or a tree
        How the tree is learned: local recursive grouping, or "neighbor_joining", "clrg", "clnj",
        "chow_liu" or "recursive_grouping" on the same distances.
        A `Tree`, Newick text, or what `latenttree.tree_from_distances(D, names=...)` returns: the
        tree stays as it is, with the names of its hidden nodes, and its probabilities and the
        lengths of its edges are learned. Its observed nodes must be the columns.
    sweeps : bool, default=True
        After local trees have been joined to one, learn small regions of it again until nothing
        changes. False: the paper's method, without this.
    distances : "pooled" (default) or "pairwise"
        How dependence between variables with many categories is measured: in one subspace for each
        variable, found on other samples than those it is used on; or by the paper's singular value
        decomposition for every pair, which is slow.
    epsilon : float, optional
        The paper's fixed threshold for local grouping. None: differences are judged by their
        standard errors, and no threshold is needed.
    min_support : "auto" (default) or float in [0, 1]
        A number: edges with a smaller posterior probability are contracted. "auto": those that are
        more probably absent than real, unless held-out samples are clearly better described with
        all edges. `tree_.collapse` contracts those of little support.
    support : "auto" (default), "subsample", "bootstrap" or "model"
        What `diagnostics_.support` is. "subsample": the probability that an edge comes back in
        other samples like these, by trees of random thirds of them. "bootstrap": how often it is in
        trees of as many samples, drawn with replacement; takes longer. Both are smoothed over the
        edges: one of 25 trees is less than one of three. "model": the posterior probability of the
        edge if the data come from a tree, at no cost; too high where they do not. "auto": "model"
        where pairs of variables are as dependent as the tree says, up to sampling noise
        (`diagnostics_.residual`), "subsample" elsewhere. In all of them an edge that joins parts
        without dependence has support 0: it has no hidden node of its own, and the model is one of
        independence across it.
    n_resamples : int, optional
        Number of trees, for "auto" always of thirds; by default 25, or 8 of thirds if all of them
        have every inner edge, and fewer beyond 750 variables, at least 3.
    search : bool, default=True
        Improve doubtful regions of the tree by the likelihood of the model.
    tree : "majority" (default) or "most_probable"
        The tree of all edges that are more probable than not, or the tree of best BIC, which
        may leave out weak edges that are probably there.
    refine : "em" (default) or None
        EM over the whole tree from the moment estimate, or the moment estimate alone.
    hidden_features : bool, default=True
        Represent a branch of several variables by all of them together (the message out of it), not
        by its nearest observed variable alone.
    observed_as_leaves : bool, default=False
        Every observed variable is a leaf, as in a phylogeny: one that would join others hangs from
        a hidden variable in its place.
    max_iter : int, default=200
        Largest number of EM steps.
    tol : float, default=1e-7
        EM stops when the expected remaining gain in log-likelihood is below `500,000 tol` for each
        free parameter: 0.05 by default, where sampling noise is 0.5. With `hidden="gaussian"`
        all gains to come are taken as 500 times the last one, since some of them come late, and
        parameters count only up to a thousandth of the known values.
    smoothing : float, default=1.0
        Pseudo-samples for every state of a parent, distributed as the variable's own frequencies
        (a Dirichlet prior).
    validation_fraction : float in [0, 1), default=0
        Share of the samples that are held out to decide when EM stops.
    family : "auto", str or dict
        Distribution of the variables given their hidden neighbour: "auto", one name for all, or
        names by variable (the others "auto"). Names are "categorical", "ordinal", "gaussian" (for
        vectors "gaussian_spherical", "gaussian_diagonal", "gaussian_full", "gaussian_tied"),
        "poisson", "multinomial", "multihot", "binary". By default boolean, integer, string
        and categorical columns are categorical, float columns gaussian, columns of a SciPy sparse
        matrix without `groups` binary, and groups multihot, multinomial or gaussian, as their
        values are. In a DataFrame, and in a file with named columns, whole numbers that are a
        scale are ordinal: 3 to 11 evenly spaced levels from 0 on, such as 1 to 5; so are
        ordered categories of more than two labels. Fractions in up to 5% of the rows of a scale,
        as imputation leaves them, are rounded to the nearest level with a warning. Integers of a
        DataFrame with more than 50 values and few rows for each are numbers. What may surprise is
        a `latenttree.errors.DataWarning`.
    groups : optional
        For a sparse matrix: the variable of each column, or a mapping from names to columns.
    names : sequence of str, or fitted object with `get_feature_names_out`, optional
        Names of the variables, for arrays and sparse matrices, for example those of a vectorizer; a
        DataFrame brings its own. In a pipeline, `latenttree.text.Words` hands the words on.
    drop_constant : bool, default=False
        Leave out variables that have a single value instead of raising an error.
    handle_unknown : "missing" (default) or "error"
        What becomes of labels and levels in a table of new samples that the training data did not
        have: they are missing values, with a warning that names them, or an error. In a record
        `{name: value}` they are always an error.
    keep_distances : bool, default=False
        Keep the distance matrix and its standard errors in `distances_`.
    memory_limit : int, str or None
        Bytes that the process may use, Python, libraries and `X` included, or text like "8GiB";
        None is 60% of what is free. Files that are larger are read in parts, into a scratch file
        where the table is too large as well. Where the matrices of all pairs of 0/1 variables do
        not fit, pairs are counted when they are needed: this takes more time and gives the same
        tree, except that branches are represented by fewer leaves. A limit that is too small is
        refused with the smallest that works. Compilation, at the first fit on a machine, is not
        counted.
    random_state : int, RandomState or None
        Seed of everything that is drawn at random. The same seed gives the same tree on any number
        of threads and for any order of the rows.
    n_jobs : int or None
        Number of threads; None uses all cores.
    verbose : "auto" (default) or bool
        "auto": after two seconds one line shows the running stage, at terminals and in notebooks
        only. True shows all stages and their times, False nothing.

    Attributes
    ----------
    tree_ : Tree
        Observed nodes first, in the order of the columns, then the hidden nodes h0, h1, ...
        Its `signs` and `support` are those of its edges: `tree_.collapse(0.5)`, `tree_.cut(5)`.
    model_ : TreeModel, or GaussianTreeModel where `hidden="gaussian"`
        The tree with every conditional distribution.
    families_ : dict
        The family of every variable.
    diagnostics_ : Diagnostics
        Support of every edge, states of every hidden variable, variables that depend on no other
        (`independent`), how well the tree describes pairs (`fit`), unmeasurable pairs, time of each
        stage and more.
    n_iter_ : int
        Number of EM steps.
    schema_ : Schema
        Names and categories of the variables, by which new data are read.
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
        n_states: int | Literal["auto", "bic"] = "auto",
        *,
        hidden: Literal["categorical", "gaussian"] = "categorical",
        structure: str | Tree = "lrg",
        sweeps: bool = True,
        distances: Literal["pooled", "pairwise"] = "pooled",
        epsilon: float | None = None,
        min_support: float | Literal["auto"] = "auto",
        support: Literal["auto", "subsample", "bootstrap", "model"] = "auto",
        n_resamples: int | None = None,
        search: bool = True,
        tree: Literal["majority", "most_probable"] = "majority",
        refine: Literal["em"] | None = "em",
        hidden_features: bool = True,
        observed_as_leaves: bool = False,
        max_iter: int = 200,
        tol: float = 1e-7,
        smoothing: float = 1.0,
        validation_fraction: float = 0.0,
        family: Any = "auto",
        groups: Any = None,
        names: Any = None,
        drop_constant: bool = False,
        handle_unknown: Literal["missing", "error"] = "missing",
        keep_distances: bool = False,
        memory_limit: int | str | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
        verbose: bool | Literal["auto"] = "auto",
    ) -> None:
        self.n_states = n_states
        self.hidden = hidden
        self.structure = structure
        self.sweeps = sweeps
        self.distances = distances
        self.epsilon = epsilon
        self.min_support = min_support
        self.support = support
        self.n_resamples = n_resamples
        self.search = search
        self.tree = tree
        self.refine = refine
        self.hidden_features = hidden_features
        self.observed_as_leaves = observed_as_leaves
        self.max_iter = max_iter
        self.tol = tol
        self.smoothing = smoothing
        self.validation_fraction = validation_fraction
        self.family = family
        self.groups = groups
        self.names = names
        self.drop_constant = drop_constant
        self.handle_unknown = handle_unknown
        self.keep_distances = keep_distances
        self.memory_limit = memory_limit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> LatentTree:
        """Learn the tree and the model of the variables of `X`; `y` is ignored.

        Missing values are left out of the moments, pair by pair, and marginalised in the
        likelihood, which is correct where they are missing completely at random. `sample_weight`
        `(n,)` are frequencies: a row of weight 3 counts as three such rows."""
        params = self.get_params(deep=False)
        config = FitConfig.from_params(params | {"names": names_of(self.names)}, BASELINES)
        reserved = memory_to_reserve(X, config)
        table = read(X, sample_weight, config, reserved)
        config = config.over(table.names)
        states = count_states(table, config)
        with resources(table, states, config) as compiler:
            states, measured = measure_dependence(table, states, config)
            compiler.wait("structure")
            structures = learn_structures(measured, table, config)
            rivals = (
                rival_structures(structures, measured, table, config)
                if grows(table, states, config)
                else []
            )
            measured = measured.without_pairs(config.keep_distances)
            give_back_freed()
            compiler.wait("model")
            learned = learn_model(structures, rivals, table, states, measured, config)
            give_back_freed()
            support = estimate_support(
                learned.structure, table, states, config, measured.basis, structures.residual
            )
            learned = annotate(learned, support.values, table)
            fit = judge_fit(table, learned, config)
        seconds, residual = config.progress.seconds, structures.residual
        report = diagnose(table, states, measured, learned, seconds, support, fit, residual)
        self._set_fitted(X, table, learned, measured, report, config.names)
        first_fit_done()
        return self

    def _set_fitted(
        self,
        X: Any,
        table: Table,
        learned: Learned,
        measured: Measured,
        report: Diagnostics,
        names: Sequence[str] | None,
    ) -> None:
        """Set the fitted attributes, all at the end, so that a failed fit leaves none behind."""
        fitted = learned.fitted
        self._forget_batches()
        self.tree_, self.diagnostics_ = learned.structure.tree, report
        self.schema_ = Schema.of(X, table, groups=self.groups, names=names)
        self.n_features_in_ = self.schema_.n_features
        for stale in ("model_", "feature_names_in_", "distances_"):
            if hasattr(self, stale):
                delattr(self, stale)
        if fitted is not None:
            self.model_ = fitted.model
            self.n_iter_ = max(1, len(fitted.trace) - 1)
        if self.schema_.named:
            self.feature_names_in_ = np.asarray(self.schema_.input_names, dtype=object)
        if measured.distances is not None:
            self.distances_ = measured.distances

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
        fit = self.diagnostics_.fit
        report["fit"] = None if fit is None else fit.to_record()
        if not hasattr(self, "model_"):
            raise DataError(
                "this tree has no probabilities to save; save the tree itself with "
                "latenttree.io.treefile.save_tree(path, model.tree_)"
            )
        params = self.get_params(deep=False)
        if isinstance(self.structure, Tree):
            params["structure"] = self.structure.to_newick(signs=True)
        params = jsonable(params)
        schema = self.schema_.to_json()
        save_archive(path, Saved(self.model_, schema, params, report, self.diagnostics_.support))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> LatentTree:
        """The model in a `.ltree` file, ready to answer questions."""
        from latenttree.data.files.boundary import reading
        from latenttree.io.archive import load_archive

        with reading(path, "model"):
            return cls._restored(load_archive(path), path)

    @classmethod
    def _restored(cls, saved: Saved, path: str | os.PathLike[str]) -> LatentTree:
        from latenttree.io.archive import check_schema

        known = set(cls().get_params(deep=False))
        model = cls(**{k: v for k, v in saved.params.items() if k in known})
        resolve_jobs(model.n_jobs), seed_of(model.random_state)  # what every question uses
        schema = Schema.from_json(saved.schema)
        check_schema(schema, saved.model, path)
        model.model_, model.tree_, model.schema_ = saved.model, saved.model.tree, schema
        model.diagnostics_ = Diagnostics.restored(saved.diagnostics, saved.support)
        str(model.diagnostics_)  # raises where the report is damaged
        model.n_features_in_ = schema.n_features
        model.n_iter_ = max(1, len(model.diagnostics_.log_likelihood_trace) - 1)
        if schema.named:
            model.feature_names_in_ = np.asarray(schema.input_names, dtype=object)
        return model

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        tags.input_tags.allow_nan = True
        tags.non_deterministic = False
        tags.target_tags.required = False
        return tags


def learn_model(
    structures: Structures,
    rivals: Sequence[Structure],
    table: Table,
    states: States,
    measured: Measured,
    config: FitConfig,
) -> Learned:
    """The stages from a tree to its model: `choose_structure`, `refine`, `search`, `grow`.

    Where many rows are equal, each is used once with a weight, see `distinct_rows`, unless samples
    are held out. There is no model of one or two variables where one has numbers: their tree
    has no hidden node, and an emission is a distribution given the states of one."""
    if table.n_vars < 3 and table.has_numbers and not config.gaussian:
        return Learned(structures.supported)
    rows = table if config.validation_fraction else distinct_rows(table)
    structure, start = choose_structure(structures, rows, states, measured, config)
    fitted = refine(start, rows, config)
    learned = search(structure, fitted, rows, states, measured, config)
    return grow(learned, rivals, rows, states, measured.basis, config)


def memory_to_reserve(X: Any, config: FitConfig) -> int:
    """Bytes that a fit needs beside its table, at least: those of hidden variables with
    `FEWEST_STATES`, since the number is only known once the input is read.

    Raises `DataError` where the input has too few samples or does not fit in `memory_limit`."""
    sizes = sizes_of(X)
    check_enough_samples(sizes)
    return check_least(sizes, FEWEST_STATES, config.memory_limit, config.n_jobs)


@contextmanager
def resources(table: Table, states: States, config: FitConfig) -> Iterator[Compiler]:
    """Bounded memory, BLAS on one thread, and a compiler of the kernels that the fit will need."""
    learned = config.baseline is None and config.given is None
    stages = ["structure"] if table.n_vars >= 3 and learned else []
    stages += [] if config.gaussian else ["model"]
    with (
        config.progress.announcing_compilation(),
        Compiler(table, states.n_directions + 1, config, stages) as compiler,
        single_threaded_blas(),
        memory_within(memory_bytes(config.memory_limit)),
    ):
        yield compiler


def load(path: str | os.PathLike[str]) -> LatentTree:
    """The model in a `.ltree` file, ready to answer questions; nothing in the file is executed."""
    return LatentTree.load(path)
