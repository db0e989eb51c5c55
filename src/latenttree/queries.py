"""Questions to a fitted model in the words of its data: labels in, labels and probabilities out.

`Queries` is the estimator's face: its methods read the data (`data.Schema`), ask
`latenttree.inference`, and put the answer into words. There is no mathematics here. Samples are
answered a range at a time, so that memory is bounded by what is returned.
"""

from __future__ import annotations

import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import TransformerMixin
from sklearn.utils.validation import check_is_fitted

from latenttree import inference
from latenttree.data import Schema
from latenttree.data.checks import listing
from latenttree.data.lookup import known_codes, presence_codes
from latenttree.data.schema import Rows
from latenttree.engine import blocks, resolve_jobs
from latenttree.errors import DataError
from latenttree.inference import Evidence
from latenttree.model import TreeModel

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
Node = str | int
Record = Mapping[Any, Any]  # node -> label or weights

CHUNK_BYTES = 1 << 27
"""Memory of the working arrays of a range of samples."""


# --- samples -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Samples:
    """What is known of n samples.

    Attributes
    ----------
    rows : codes of the observed variables.
    soft : node -> (n, dims[v]) weights over its states.
    """

    rows: Rows
    soft: Mapping[int, Floats] = field(default_factory=dict)

    def __len__(self) -> int:
        return self.rows.n_samples

    def take(self, start: int, stop: int) -> Evidence:
        """The evidence of samples start:stop."""
        soft = {v: weights[start:stop] for v, weights in self.soft.items()}
        return Evidence(self.rows.take(start, stop), soft)

    def ranges(self, width: int) -> Iterator[tuple[int, int, Evidence]]:
        """Ranges of samples whose working arrays, `width` numbers each, fit in memory."""
        size = max(64, CHUNK_BYTES // (8 * max(width, 1)))
        for start, stop in blocks(len(self), size):
            yield start, stop, self.take(start, stop)


def read_samples(
    model: TreeModel,
    schema: Schema,
    X: Any,
    asked: Collection[int] = (),
    given: Collection[int] | None = None,
) -> Samples:
    """The samples of a table, of one record `{name: value}` or of a list of records.

    Columns of the nodes `asked` are not read, nor those of nodes that are not `given` (None:
    all); a record with a value for a node that is asked is an error.
    """
    if X is None or (isinstance(X, Mapping) and not X):
        raise DataError(
            f"there is no evidence: X is {X!r}. Pass samples; for probabilities without evidence "
            "use marginal(node) or predict_proba(None, query, evidence=[])"
        )
    unused = {
        name
        for v, name in enumerate(schema.names)
        if v in asked or (given is not None and v not in given)
    }
    if isinstance(X, Mapping) and _is_record(schema, X, unused):
        return _read_records(model, schema, [X], asked, given)
    if isinstance(X, list | tuple) and X and all(isinstance(item, Mapping) for item in X):
        return _read_records(model, schema, X, asked, given)
    hidden = [model.tree.names[v] for v in given or () if v >= schema.n_vars]
    if hidden:
        raise DataError(
            f"evidence names the hidden {listing(hidden)}, which a table does not have; hidden "
            f"evidence is given in records, for example {{{hidden[0]!r}: 0}}"
        )
    return Samples(schema.rows(X, unused=unused))


def no_evidence(model: TreeModel, n: int = 1) -> Samples:
    """Samples of which nothing is known."""
    codes = Evidence.nothing(model, n).codes
    return Samples(Rows(n, codes))


def _is_record(schema: Schema, X: Record, unused: Collection[str]) -> bool:
    """A dict is one sample, unless it has a vector for every column that is read."""
    used = [j for i, j in enumerate(schema.index.tolist()) if schema.names[i] not in unused]
    wanted = {schema.columns[j].name for j in used}
    table = all(map(_is_vector, X.values())) and bool(wanted) and wanted <= set(map(str, X))
    return not table


def _is_vector(value: Any) -> bool:
    return hasattr(value, "__len__") and not isinstance(value, str | bytes | Mapping)


def _read_records(
    model: TreeModel,
    schema: Schema,
    records: Sequence[Record],
    asked: Collection[int],
    given: Collection[int] | None,
) -> Samples:
    """Codes from labels, weights from mappings; weights on a node that is asked are used."""
    n = len(records)
    codes = np.full((n, schema.n_vars), -1, dtype=schema.code_dtype)
    soft: dict[int, Floats] = {}
    for row, record in enumerate(records):
        for name, value in record.items():
            if _is_dropped(schema, name) or _is_gap(value):
                continue
            v, weighed = node_index(model, name, schema), isinstance(value, Mapping)
            if given is not None and v not in given:
                continue
            _check_value(name, value, v in asked)
            if v < schema.n_vars and not weighed:
                codes[row, v] = _code_of(schema, v, value, row)
            else:
                weights = soft.setdefault(v, np.ones((n, int(model.dims[v]))))
                weights[row] = _weights(model, schema, v, value, row)
    return Samples(Rows(n, codes), soft)


def _check_value(name: Node, value: Any, asked: bool) -> None:
    """A record holds one value, or weights by label, for a node; and no value for what is asked."""
    if _is_vector(value):
        raise DataError(
            f"{_with_article(value)} for {name!r}: pass {{label: weight}} for soft evidence, or a "
            "DataFrame for several rows"
        )
    if asked and not isinstance(value, Mapping):
        raise DataError(
            f"{name!r} is both given and asked; leave it out of the record or of the query"
        )


def _with_article(value: Any) -> str:
    kind = {"ndarray": "array"}.get(type(value).__name__, type(value).__name__)
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


def _is_dropped(schema: Schema, name: Node) -> bool:
    column = schema.column_of(name)
    if column is not None:
        return schema.variable_of(column) is None
    return name in schema.dropped


def _is_gap(value: Any) -> bool:
    return value is None or (isinstance(value, float) and np.isnan(value))


def _code_of(schema: Schema, v: int, value: Any, row: int) -> int:
    single = np.empty(1, dtype=object)
    single[0] = value
    try:
        if schema.kind == "presence":
            return int(presence_codes(single, schema.names[v])[0])
        return int(known_codes(single, schema.labels[v], schema.names[v])[0])
    except DataError as error:
        raise DataError(str(error).replace("at row 0,", f"at row {row},")) from None


def _weights(model: TreeModel, schema: Schema, v: int, value: Any, row: int) -> Floats:
    """Weights over the states of a node: of its labels, or of one state."""
    name, labels = model.tree.names[v], classes_of(model, schema, v)
    if isinstance(value, Mapping):
        keys = np.empty(len(value), dtype=object)
        keys[:] = list(value)
        weights = np.zeros(len(labels))
        weights[known_codes(keys, labels, name)] = _numbers(list(value.values()), name, row)
    else:
        weights = (labels == value).astype(np.float64)
        if not weights.any():
            raise DataError(
                f"hidden node {name!r} has no state {value!r} (row {row}); its states are "
                f"0..{len(labels) - 1}"
            )
    if not (np.isfinite(weights) & (weights >= 0)).all():
        raise DataError(f"weights of {name!r} in row {row} are {weights}; give numbers >= 0")
    return weights


def _numbers(weights: Any, name: str, row: int) -> Floats:
    try:
        return np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError(
            f"weights of {name!r} in row {row} are {weights!r}; give numbers >= 0"
        ) from None


# --- nodes ---------------------------------------------------------------------------


def node_index(model: TreeModel, node: Node, schema: Schema | None = None) -> int:
    """The number of a node given by name or number.

    Where the columns of the `schema` have integers as names, an integer that is one of them is
    that name; any other is the number of a node.
    """
    column = None if schema is None else schema.column_of(node)
    if schema is not None and column is not None:
        found = schema.variable_of(column)
        if found is None:
            raise DataError(
                f"column {node!r} had a single value in training and is not in the model; leave "
                "it out"
            )
        return found
    try:
        return model.tree.index(operator.index(node) if not isinstance(node, str) else node)
    except (KeyError, IndexError, TypeError):
        close = get_close_matches(str(node), model.tree.names, 1)
        guess = f" (did you mean {close[0]!r}?)" if close else ""
        raise DataError(
            f"the model has no node {node!r}{guess}; it has the variables "
            f"{listing(model.tree.observed_names)} and the hidden nodes "
            f"{listing(model.tree.hidden_names) or 'none'}"
        ) from None


def node_indices(
    model: TreeModel, nodes: Any, what: str, schema: Schema | None = None
) -> list[int]:
    """The numbers of several nodes, all different."""
    if isinstance(nodes, str) or not isinstance(nodes, Iterable):
        nodes = [nodes]
    found = [node_index(model, node, schema) for node in nodes]
    if len(set(found)) != len(found):
        raise DataError(f"{what} names a node twice: {list(nodes)!r}; name it once")
    return found


def classes_of(model: TreeModel, schema: Schema, v: int) -> NDArray[Any]:
    """Labels of the states of the node of number `v`, in the order of its probabilities."""
    return schema.labels[v] if v < schema.n_vars else np.arange(int(model.dims[v]))


def hidden_names_out(model: TreeModel) -> NDArray[Any]:
    """ "h0=0", "h0=1", ...: a name for each state of each hidden node."""
    p = model.tree.n_observed
    names = [
        f"{name}={state}"
        for name, d in zip(model.tree.hidden_names, model.dims[p:].tolist(), strict=True)
        for state in range(d)
    ]
    return np.asarray(names, dtype=object)


# --- answers -------------------------------------------------------------------------


def posteriors(
    model: TreeModel, samples: Samples, nodes: Sequence[int] | None = None, n_jobs: int = 1
) -> Floats:
    """`P(v | sample)` of the given nodes side by side, `(n, sum of dims)`; None: all hidden ones.

    Examples
    --------
    Two of three votes of a hidden opinion, each right in nine of ten cases.

    >>> import numpy as np
    >>> from latenttree import Tree
    >>> from latenttree.data import Schema, as_table
    >>> X = np.array([["no", "no", "no"], ["yes", "yes", "yes"]])
    >>> schema = Schema.of(X, as_table(X))
    >>> vote = np.array([[0.9, 0.1], [0.1, 0.9]])
    >>> tree = Tree.build(["x0", "x1", "x2"], [(0, 3), (1, 3), (2, 3)], [1.0, 1.0, 1.0])
    >>> model = TreeModel(tree, 3, (vote, vote, vote, np.array([[0.5], [0.5]])))
    >>> samples = read_samples(model, schema, {"x0": "yes", "x1": "yes"})
    >>> posteriors(model, samples).round(3)
    array([[0.012, 0.988]])
    """
    asked = list(range(model.tree.n_observed, model.tree.n_nodes)) if nodes is None else list(nodes)
    array = np.empty((len(samples), int(model.dims[asked].sum())))
    for start, stop, evidence in samples.ranges(array.shape[1] + model.tree.n_observed // 8):
        found = inference.posteriors(model, evidence, asked, n_jobs)
        check_possible(found.log_likelihood, np.arange(start, stop))
        array[start:stop] = found.array
    return array


def hidden_states(model: TreeModel, samples: Samples, joint: bool, n_jobs: int = 1) -> Ints:
    """(n, n_hidden) most probable states: of each node by itself, or of all nodes together."""
    p, n_hidden = model.tree.n_observed, model.tree.n_hidden
    states = np.empty((len(samples), n_hidden), dtype=np.int32)
    width = model.tree.n_nodes if joint else int(model.dims[p:].sum()) + p // 8
    for start, stop, evidence in samples.ranges(width):
        if joint:
            best, logs = inference.most_probable(model, evidence, n_jobs)
            states[start:stop] = best[:, p:]
        else:
            found = inference.posteriors(model, evidence, None, n_jobs)
            logs = found.log_likelihood
            for i, values in enumerate(found.values):
                states[start:stop, i] = values.argmax(axis=1)
        check_possible(logs, np.arange(start, stop))
    return states


def log_likelihoods(model: TreeModel, samples: Samples, n_jobs: int = 1) -> Floats:
    """(n,) `log P(sample)`; -inf where a sample is impossible."""
    found = [
        inference.log_likelihood(model, evidence, n_jobs)
        for _, _, evidence in samples.ranges(model.tree.n_observed)
    ]
    return np.concatenate(found)


def check_possible(log_likelihood: Floats, rows: NDArray[Any]) -> None:
    """No sample has probability zero."""
    bad = np.flatnonzero(np.isneginf(log_likelihood))
    if len(bad):
        more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
        raise DataError(
            f"the evidence in row {rows[bad[0]]}{more} has probability zero under the model, so "
            "nothing follows from it; correct it, or mark values that are in doubt as missing"
        )


def filled(
    model: TreeModel,
    codes: NDArray[Any],
    rng: np.random.Generator | None = None,
    n_jobs: int = 1,
) -> NDArray[Any]:
    """(n, p) codes with every -1 replaced, given all that is known of its sample.

    By the most probable value of each gap by itself; with `rng` by a draw of all the gaps of a
    sample together.
    """
    codes = codes.copy()
    rows = np.flatnonzero((codes < 0).any(axis=1))
    columns = np.flatnonzero((codes < 0).any(axis=0))
    width = int(model.dims[columns].sum()) if rng is None else 2 * model.tree.n_nodes
    for start, stop in blocks(len(rows), max(64, CHUNK_BYTES // (8 * max(width, 1)))):
        chosen = rows[start:stop]
        known = codes[chosen]
        codes[chosen] = np.where(known < 0, _guesses(model, known, chosen, rng, n_jobs), known)
    return codes


def _guesses(
    model: TreeModel,
    known: NDArray[Any],
    rows: NDArray[Any],
    rng: np.random.Generator | None,
    n_jobs: int,
) -> NDArray[Any]:
    """(m, p) a value for every gap; what stands elsewhere means nothing."""
    evidence = Evidence(known)
    if rng is not None:
        check_possible(inference.log_likelihood(model, evidence, n_jobs), rows)
        return inference.sample(model, len(known), rng, evidence)[:, : known.shape[1]]
    columns = np.flatnonzero((known < 0).any(axis=0))
    found = inference.posteriors(model, evidence, columns.tolist(), n_jobs)
    check_possible(found.log_likelihood, rows)
    guesses = np.zeros_like(known)
    for j, values in zip(columns.tolist(), found.values, strict=True):
        guesses[:, j] = values.argmax(axis=1)
    return guesses


def as_generator(random_state: Any) -> np.random.Generator:
    """A generator from whatever scikit-learn accepts as random state, or from a generator."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31 - 1, size=4))
    if random_state is not None and not isinstance(
        random_state, int | np.integer | np.random.Generator
    ):
        raise DataError(
            f"random_state={random_state!r}; pass an integer, a Generator, a RandomState or None"
        )
    return np.random.default_rng(random_state)


# --- the estimator's methods ----------------------------------------------------------


class Queries(TransformerMixin):
    """Everything that can be asked of a fitted model; a base of the estimator.

    Needs `model_` (TreeModel), `schema_` (Schema), `n_features_in_` and the parameters `n_jobs`
    and `random_state`. `X` is any input that `fit` takes, with gaps wherever values are missing;
    also one sample as a record `{name: value}`, or a list of records. A record names what is
    known and no more: a label, or weights over the labels as `{label: weight}` (soft evidence),
    also on hidden nodes, whose labels are 0..k-1. A dict that has a vector for every column is a
    table, not a record.

    A node is given by its name or number. Where the columns of training had integers as names, an
    integer that is one of them is that name; any other is a number.

    A sample whose evidence has probability zero is an error that names its row, except in
    `score_samples`, where it is -inf.
    """

    model_: TreeModel
    schema_: Schema
    n_features_in_: int
    n_jobs: int | None
    random_state: Any

    def transform(self, X: Any) -> Any:
        """Posterior of every hidden node.

        Returns
        -------
        (n_samples, n_hidden * n_states) array, columns as in `get_feature_names_out`; a
        DataFrame after `set_output`.
        """
        samples = self._samples(X)
        return posteriors(self.model_, samples, None, self._threads())

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: "h0=0", "h0=1", ...; `input_features` is only
        checked."""
        self._check_model()
        _check_input_features(self, input_features)
        return hidden_names_out(self.model_)

    def predict(self, X: Any, joint: bool = False) -> Ints:
        """Most probable state of every hidden node.

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
        return hidden_states(self.model_, samples, joint, self._threads())

    def predict_proba(
        self,
        X: Any,
        query: Node | Sequence[Node] | None = None,
        evidence: Sequence[Node] | None = None,
    ) -> Any:
        """Exact conditional probabilities of any nodes given any others.

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
        model = self.model_
        nodes = [] if query is None else node_indices(model, query, "query", self.schema_)
        if query is not None and not nodes:
            raise DataError("query is an empty list; name a node, or pass None for hidden nodes")
        samples = self._evidence(X, nodes, evidence)
        found = posteriors(model, samples, nodes or None, self._threads())
        if query is None or isinstance(query, str | int | np.integer):
            return found
        parts = np.split(found, np.cumsum(model.dims[nodes])[:-1], axis=1)
        return dict(zip(query, parts, strict=True))

    def classes_of(self, node: Node) -> NDArray[Any]:
        """Labels of the states of a node, in the order of the columns of `predict_proba`."""
        v = self._node(node)
        return classes_of(self.model_, self.schema_, v)

    def score_samples(self, X: Any) -> Floats:
        """(n_samples,) log-likelihood of each sample, of what is known of it; -inf where the
        model holds it impossible."""
        samples = self._samples(X)
        return log_likelihoods(self.model_, samples, self._threads())

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood of the samples; `y` is ignored."""
        return float(np.mean(self.score_samples(X)))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion, `-2 log L + n_parameters log n`; lower is better."""
        logs = self.score_samples(X)
        return float(-2 * logs.sum() + self.model_.n_parameters * np.log(len(logs)))

    def aic(self, X: Any) -> float:
        """Akaike information criterion, `-2 log L + 2 n_parameters`; lower is better."""
        return float(-2 * self.score_samples(X).sum() + 2 * self.model_.n_parameters)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Ints]:
        """Draw samples from the model.

        Parameters
        ----------
        n_samples : how many.
        random_state : int, Generator, RandomState or None, which uses the estimator's own.

        Returns
        -------
        X : n_samples rows in the container, and with the labels, of the training data.
        y : (n_samples, n_hidden) states of the hidden nodes.
        """
        self._check_model()
        if not isinstance(n_samples, int | np.integer) or n_samples < 1:
            raise DataError(f"n_samples={n_samples!r}; pass a whole number from 1 on")
        rng = self._generator(random_state)
        states = inference.sample(self.model_, int(n_samples), rng)
        p = self.model_.tree.n_observed
        return self.schema_.decode(states[:, :p]), states[:, p:]

    def impute(
        self, X: Any, method: Literal["mode", "sample"] = "mode", random_state: Any = None
    ) -> Any:
        """Fill the gaps of a table.

        Parameters
        ----------
        X : a table with missing values (NaN, None, masked).
        method : "mode" puts the most probable value into each gap, given all that is known of its
            row; "sample" draws all the gaps of a row together from the model.
        random_state : for "sample"; None uses the estimator's own.

        Returns
        -------
        The table without gaps, in the container and with the types of the training data; a
        DataFrame keeps its order of columns and its index.
        """
        self._check_model()
        if method not in ("mode", "sample"):
            raise DataError(f"method={method!r} is unknown; choose 'mode' or 'sample'")
        rng = self._generator(random_state) if method == "sample" else None
        codes = self.schema_.encode(X)
        return self.schema_.decode(filled(self.model_, codes, rng, self._threads()), like=X)

    def marginal(self, node: Node) -> Floats:
        """`P(node)`, in the order of `classes_of(node)`."""
        v = self._node(node)
        return self.model_.marginal(v)

    def conditional(self, node: Node, given: Node) -> Floats:
        """`P(node | given)` of the two ends of an edge, `(states of node, states of given)`,
        columns on the simplex. For other pairs use `predict_proba`."""
        v, u = self._node(node), self._node(given)
        if u not in self.model_.tree.neighbors(v):
            raise DataError(
                f"{node!r} and {given!r} are not the ends of an edge; for any pair ask "
                f"predict_proba({{{given!r}: label}}, query={node!r})"
            )
        return self.model_.conditional(v, u)

    # --- small helpers -----------------------------------------------------------------

    def _check_model(self) -> None:
        if hasattr(self, "tree_") and not hasattr(self, "model_"):
            raise DataError(
                "this tree has no probabilities: only categories, presence or absence and one-hot "
                "blocks have them; fit on discretised data to ask for more than the tree"
            )
        check_is_fitted(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # probabilities are float64, whatever X is
        return tags

    def _node(self, node: Node) -> int:
        self._check_model()
        return node_index(self.model_, node, self.schema_)

    def _samples(self, X: Any) -> Samples:
        self._check_model()
        return read_samples(self.model_, self.schema_, X)

    def _evidence(self, X: Any, asked: Sequence[int], evidence: Sequence[Node] | None) -> Samples:
        """What `X` says of the nodes of `evidence`, but for those that are asked."""
        given = None
        if evidence is not None:
            given = node_indices(self.model_, evidence, "evidence", self.schema_)
        if given == [] and (X is None or (isinstance(X, Mapping) and not X)):
            return no_evidence(self.model_)
        return read_samples(self.model_, self.schema_, X, asked, given)

    def _threads(self) -> int:
        return resolve_jobs(self.n_jobs)

    def _generator(self, random_state: Any) -> np.random.Generator:
        return as_generator(self.random_state if random_state is None else random_state)


def _check_input_features(estimator: Any, input_features: Any) -> None:
    """Names given to `get_feature_names_out` must be those of the training data."""
    if input_features is None:
        return
    names = np.asarray(input_features, dtype=object)
    if len(names) != estimator.n_features_in_:
        raise DataError(
            "input_features should have length equal to number of features "
            f"({estimator.n_features_in_}), got {len(names)}"
        )
    known = getattr(estimator, "feature_names_in_", None)
    if known is not None and not np.array_equal(known, names):
        raise DataError("input_features is not equal to feature_names_in_; pass None")
