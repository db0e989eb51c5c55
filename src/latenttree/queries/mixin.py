"""`QueryMixin`: the estimator's methods that query a fitted model.

Each method reads the data (`data.Schema`), asks the model's `Answers`, and returns the answer in
the labels of the data. There is no mathematics here. Samples are answered a range at a time, so
that memory is bounded by what is returned.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latenttree.data import Schema, check_weights
from latenttree.engine import resolve_jobs
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError, check_option
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel
from latenttree.queries.answers import Answers, answers_of
from latenttree.queries.evidence import SampleEvidence, no_evidence, read_samples, read_to_fill
from latenttree.queries.filling import Filled, MissingCells, filled_records
from latenttree.queries.nodes import (
    Asked,
    Node,
    asked_of,
    node_index,
    node_indices,
    several_asked,
)


class QueryMixin(TransformerMixin):
    """Queries of a fitted model; a base of the estimator.

    Needs `model_` (TreeModel or GaussianTreeModel), `schema_` (Schema), `n_features_in_` and the
    parameters `n_jobs`, `random_state` and `handle_unknown`. `X` is any input that `fit` takes,
    with gaps wherever values are missing; also one sample as a record `{name: value}`, or a list of
    records. A record names what is known and no more: a label, a number, a vector for a block; or
    weights over the labels as `{label: weight}` (soft evidence), also on hidden nodes, whose labels
    are 0..k-1, or that have a number in a Gaussian tree; of a group of codes the set of those that
    are there, or single codes as `{"group:code": 1}`, whatever the others are. A dict that has a
    vector for every column is a table, not a record.

    A node is given by its name or number. Where the columns of training had integers as names, an
    integer that is one of them is that name; any other is a number.

    A sample whose evidence has probability zero is an error that names its row, except in
    `score_samples`, where it is -inf.
    """

    model_: Any
    schema_: Schema
    n_features_in_: int
    n_jobs: int | None
    random_state: Any
    handle_unknown: Literal["missing", "error"]

    def transform(self, X: Any) -> Any:
        """Posterior of every hidden node; of a Gaussian tree the posterior means.

        Returns
        -------
        (n_samples, n_hidden * n_states) array, columns as in `get_feature_names_out`; a
        DataFrame after `set_output`.
        """
        samples = self._samples(X)
        return self._answers().hidden(samples, self._threads())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: "h0=0", "h0=1", ...; `input_features` is only
        checked."""
        self._check_model()
        _check_input_features(self, input_features)
        return self._answers().names_out()

    def predict(self, X: Any, joint: bool = False) -> NDArray[Any]:
        """Most probable state of every hidden node; in a Gaussian tree, where that is the mean,
        what `transform` gives.

        Parameters
        ----------
        X : samples.
        joint : the most probable states of all nodes together (max-product) instead of the most
            probable state of each by itself.

        Returns
        -------
        (n_samples, n_hidden) integers; ties go to the lower state.
        """
        samples = self._samples(X)
        return self._answers().states(samples, joint, self._threads())

    def predict_proba(
        self,
        X: Any,
        query: Node | Sequence[Node] | None = None,
        evidence: Sequence[Node] | None = None,
    ) -> Any:
        """Exact conditional probabilities of any nodes given any others.

        Only of nodes that have states: of numbers and counts `impute` gives the expectation
        (`impute({name: value})` for one sample), and a Gaussian tree has no states at all. Of a
        group of codes ask for a code: "group:code", or the code alone where it is unique, has the
        states 0 and 1.

        Parameters
        ----------
        X : samples. The queried columns of a table are not used, and a DataFrame or dict need not
            have them. A record with a value for a queried node is an error; weights (soft
            evidence) on it are used. None only with `evidence=[]`.
        query : a variable or hidden node, by name or number, or a list of them; None for all
            hidden nodes.
        evidence : use only these columns of `X`, and a DataFrame need not have others; hidden
            nodes only with records. An empty list gives marginal probabilities, for each row of
            `X`, or in one row if `X` is None.

        Returns
        -------
        For one node an (n_samples, n_categories) array with columns as in `classes_of(node)`; for
        a list a dict from its items to such arrays; for None the array that `transform` gives.
        """
        self._check_model()
        model, answers = self.model_, self._answers()
        if query is None:
            for v in range(model.tree.n_observed, model.tree.n_nodes):
                answers.classes(v)  # raises for nodes without states
            return answers.hidden(self._evidence(X, [], evidence), self._threads())
        asked = several_asked(model, query, "query", self.schema_)
        if not asked:
            remedy = "name a node, or pass None for hidden nodes"
            raise DataError("query is an empty list", remedy, value=query, option="query")
        nodes = list(dict.fromkeys(part.source(model) for part in asked))
        for v in (part.node for part in asked if part.code is None):
            answers.classes(v)
        samples = self._evidence(X, [part.node for part in asked], evidence)
        found = dict(
            zip(nodes, answers.probabilities(samples, nodes, self._threads()), strict=True)
        )
        parts = [part.probabilities(model, found[part.source(model)]) for part in asked]
        if isinstance(query, str | int | np.integer):
            return parts[0]
        return dict(zip(query, parts, strict=True))

    def classes_of(self, node: Node) -> NDArray[Any]:
        """Labels of the states of a node, in the order of the columns of `predict_proba`."""
        asked = self._asked(node)
        return self._answers().classes(asked.node) if asked.code is None else np.arange(2)

    def score_samples(self, X: Any) -> Floats:
        """(n_samples,) log-likelihood of each sample, of what is known of it; -inf where the
        model holds it impossible."""
        samples = self._samples(X)
        return self._answers().log_likelihoods(samples, self._threads())

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of the samples, each counted as often as `sample_weight` says; `y`
        is ignored."""
        total, n = self._weighted(X, sample_weight)
        return total / n

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion, `-2 log L + n_parameters log n`, with `n` the sum of the
        weights; lower is better."""
        total, n = self._weighted(X, sample_weight)
        return float(-2 * total + self.model_.n_parameters * np.log(n))

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike information criterion, `-2 log L + 2 n_parameters`; lower is better."""
        total, _ = self._weighted(X, sample_weight)
        return float(-2 * total + 2 * self.model_.n_parameters)

    def _weighted(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Log-likelihood of all samples together, and how many they count for."""
        logs = self.score_samples(X)
        if sample_weight is not None:
            sample_weight = check_weights(sample_weight, len(logs), least=0.0)
        return weighted_sum(logs, sample_weight)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, NDArray[Any]]:
        """Draw samples from the model.

        Parameters
        ----------
        n_samples : how many.
        random_state : int, Generator, RandomState or None, which uses the estimator's own.

        Returns
        -------
        X : n_samples rows in the container, and with the labels, of the training data.
        y : (n_samples, n_hidden) states of the hidden nodes; of a Gaussian tree their values, in
            the columns of `transform`.
        """
        self._check_model()
        possible = isinstance(n_samples, int | np.integer) and n_samples >= 1
        check_option("n_samples", n_samples, possible, "pass a whole number from 1 on")
        rng = self._generator(random_state)
        drawn, hidden = self._answers().sample(int(n_samples), rng)
        return self.schema_.decode(*drawn), hidden

    def impute(
        self,
        X: Any,
        method: Literal["mode", "sample"] = "mode",
        random_state: Any = None,
        *,
        return_proba: bool = False,
    ) -> Any:
        """Fill the gaps of a table, or of records.

        Parameters
        ----------
        X : a table with missing values (NaN, None, masked); or one sample as a record
            `{name: value}`, or a list of records, whose gaps are all variables that they do not
            name; they may give hidden nodes too, states or, in a Gaussian tree, values.
        method : "mode" puts into each gap, given all that is known of its row, the most probable
            category, the posterior median of an ordinal variable (the first level at which half of
            the probability is reached), the expected number (rounded if it is a count, or its
            column holds integers: the result is a table of the same kind; `return_proba` has it as
            it is), the codes that are more likely there than not; "sample" draws all the gaps of a
            row together from the model.
        random_state : for "sample"; None uses the estimator's own.
        return_proba : also return the distributions of all missing values.

        Returns
        -------
        filled : the table without gaps, in the container and with the types of the training data; a
            DataFrame keeps its order of columns and its index. For a record a dict from all
            variables to their values (a vector for a block), for a list of records a list of them.
        proba : only with `return_proba`: a dict from the name of each variable with gaps to its
            `MissingCells`: the `rows` in which it is missing, and for each of them, given all that
            is known of its row, the probabilities `proba` of the labels `classes`; of a number its
            `mean` and standard deviation `std`. Levels that training did not have count as missing
            (`handle_unknown`). Ordered categories of a Gaussian tree are numbers, their positions.
        """
        self._check_model()
        possible = method in ("mode", "sample")
        check_option("method", method, possible, "choose 'mode' or 'sample'", " is unknown")
        rng = self._generator(random_state) if method == "sample" else None
        records = read_to_fill(self.model_, self.schema_, X)
        known = self._samples(X) if records is None else records
        filled, cells = self._filled(known, rng, return_proba)
        result: Any
        if records is None:
            result = self.schema_.decode(*filled, like=X)
        else:
            result = filled_records(self.schema_, filled)
            result = result[0] if isinstance(X, Mapping) else result
        if not return_proba:
            return result
        return result, {self.schema_.names[v]: found for v, found in cells.items()}

    def _filled(
        self, known: SampleEvidence, rng: np.random.Generator | None, return_proba: bool
    ) -> tuple[Filled, dict[int, MissingCells]]:
        """Samples without gaps, and where asked the distributions of the gaps by variable."""
        answers, n_jobs = self._answers(), self._threads()
        if not return_proba:
            return answers.filled(known, rng, n_jobs), {}
        filled, cells = answers.distributions(known, n_jobs)
        return (filled if rng is None else answers.filled(known, rng, n_jobs)), cells

    def marginal(self, node: Node) -> Floats:
        """`P(node)`, in the order of `classes_of(node)`; the expectation `(d,)` of a variable that
        is not categorical."""
        asked = self._asked(node)
        if asked.code is None:
            return np.asarray(self.model_.marginal(asked.node))
        posterior = np.asarray(self.model_.marginal(asked.source(self.model_)))
        return asked.probabilities(self.model_, posterior[None])[0]

    def conditional(self, node: Node, given: Node) -> Floats:
        """`P(node | given)` of the two ends of an edge, `(states of node, states of given)`,
        columns on the simplex; `E[node | given]`, `(d, states of given)`, of a variable that is not
        categorical; of a code of a group, "group:code", the probabilities that it is not there and
        that it is. In a Gaussian tree the matrix `L` of `E[node | given] = mean + L (given - its
        mean)`. For other pairs use `predict_proba`."""
        asked, u = self._asked(node), self._node(given)
        v = asked.node
        if u not in self.model_.tree.neighbors(v):
            what = f"{node!r} and {given!r} are not the ends of an edge"
            raise DataError(what, f"for any pair ask {self._advice(node, given)}", node=str(node))
        found = self._answers().conditional(v, u)
        if asked.code is None:
            return found
        ends = np.eye(found.shape[1]) if v in self.model_.emissions else found.T
        return asked.probabilities(self.model_, ends).T

    def _advice(self, node: Node, given: Node) -> str:
        """The query for a node given another that is no neighbour."""
        asked, schema = self._asked(node), self.schema_
        v, u = asked.node, self._node(given)
        has_labels = isinstance(self.model_, TreeModel) and u not in self.model_.emissions
        record = f"{{{given!r}: {'label' if has_labels else 'value'}}}"
        if v >= schema.n_vars and isinstance(self.model_, GaussianTreeModel):
            return f"transform({record}), the expectations of all hidden nodes"
        if v >= schema.n_vars or schema.coded[v] or asked.code is not None:
            return f"predict_proba({record}, query={node!r})"
        if schema.is_group(v):
            return f"predict_proba({record}, query='{schema.names[v]}:CODE')"
        name = schema.names[v]
        return f"impute({record}, return_proba=True)[1][{name!r}].mean, its expectation"

    # --- small helpers -----------------------------------------------------------------

    def _check_model(self) -> None:
        if hasattr(self, "tree_") and not hasattr(self, "model_"):
            raise DataError(
                "this tree has no probabilities", "fit again to ask for more than the tree"
            )
        check_is_fitted(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # probabilities are float64, whatever X is
        return tags

    def _asked(self, node: Node) -> Asked:
        self._check_model()
        return asked_of(self.model_, node, self.schema_)

    def _node(self, node: Node) -> int:
        self._check_model()
        return node_index(self.model_, node, self.schema_)

    def _answers(self) -> Answers:
        return answers_of(self.model_, self.schema_)

    def _samples(self, X: Any) -> SampleEvidence:
        self._check_model()
        return read_samples(self.model_, self.schema_, X, handle_unknown=self.handle_unknown)

    def _evidence(
        self, X: Any, queried: Sequence[int], evidence: Sequence[Node] | None
    ) -> SampleEvidence:
        """The values in `X` of the nodes of `evidence`, but for those that are queried."""
        given = None
        if evidence is not None:
            given = node_indices(self.model_, evidence, "evidence", self.schema_)
        if given == [] and (X is None or (isinstance(X, Mapping) and not X)):
            return no_evidence(self.model_)
        return read_samples(self.model_, self.schema_, X, queried, given, self.handle_unknown)

    def _threads(self) -> int:
        return resolve_jobs(self.n_jobs)

    def _generator(self, random_state: Any) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)


def weighted_sum(logs: Floats, weights: Floats | None) -> tuple[float, float]:
    """The sum over samples, each counted as often as its weight says, and how many they count for.
    A sample of weight 0 may be impossible."""
    if weights is None:
        return float(logs.sum()), float(len(logs))
    used = weights > 0
    return float(weights[used] @ logs[used]), float(weights.sum())


def _check_input_features(estimator: Any, input_features: Any) -> None:
    """Names given to `get_feature_names_out` must be those of the training data."""
    if input_features is None:
        return
    names = np.asarray(input_features, dtype=object)
    if len(names) != estimator.n_features_in_:
        raise DataError(
            "input_features should have length equal to number of features "
            f"({estimator.n_features_in_}), got {len(names)}",
            value=len(names),
            option="input_features",
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and not np.array_equal(known, names):
        raise DataError(
            "input_features is not equal to feature_names_in_", "pass None", option="input_features"
        )


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn accepts as random state, or from a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    known = random_state is None or isinstance(random_state, int | np.integer | np.random.Generator)
    remedy = "pass an integer, a Generator, a RandomState or None"
    check_option("random_state", random_state, known, remedy)
    return np.random.default_rng(random_state)
