"""Coherence: do words around a hidden variable read better with two states or with more?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.data.corpora import CORPORA, read_documents
from benchmarks.grids import LABEL, N_RUNS, Column, mean
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings, data_file
from benchmarks.stages import timed_fit
from latenttree.model.tree_model import TreeModel

ABOUT = """Documents are cut in nine tenths to learn from and one to judge by. Around every hidden
variable are the words that say most about it: the five of largest mutual information. Coherence is
the mean normalised pointwise mutual information of these words, pair by pair, in the documents that
are held out (Bouma 2009; -1: never together, 0: independent, 1: always together), over all hidden
variables. "Different": the share of the words listed that are listed for the first time; rich
hidden variables that all tell the same have few. Likelihood: of a held-out document. It decides
what n_states="auto" means for columns of a sparse matrix."""
TOP = 5
STATES = (2, 4, 16)


class Words(NamedTuple):
    """A row: a corpus, its number of most frequent words, and the number of states."""

    corpus: str
    n_words: int
    n_states: int
    path: Any

    @property
    def label(self) -> str:
        """All of it."""
        return f"{self.corpus}, {self.n_words} words, {self.n_states} states"


def measure(settings: Settings) -> dict[str, Any]:
    """All corpora with all numbers of states."""
    cases = []
    for corpus, n_words in (("news20", 100), ("nips", 500)):
        path = data_file(settings, CORPORA[corpus].file)
        if path is not None:
            cases += [Words(corpus, n_words, k, path) for k in STATES]
    return {"rows": run_cases(fit, cases, settings, 3, quick_seeds=1)}


def fit(case: Words, seed: int) -> Run:
    """One corpus, one cut, one number of states."""
    whole = sparse.csr_array(read_documents(case.path).matrix, dtype=np.uint8)
    frequent = np.argsort(-np.asarray(whole.sum(axis=0)).ravel(), kind="stable")[: case.n_words]
    documents = whole[:, np.sort(frequent)]
    order = np.random.default_rng(seed).permutation(documents.shape[0])
    n_test = len(order) // 10
    test, train = (documents[np.sort(rows)] for rows in (order[:n_test], order[n_test:]))
    options = {"n_states": case.n_states, "support": "model", "drop_constant": True}
    model, seconds = timed_fit(train, seed=seed, **options)
    tops = top_words(model)
    scores = coherence(np.asarray(test.toarray(), dtype=np.float64), tops)
    return {
        "coherence": float(scores.mean()),
        "different": len(np.unique(tops)) / tops.size,
        "test": float(model.score(test)),
        "hidden": model.tree_.n_hidden,
        "seconds": seconds,
    }


def top_words(model: Any) -> NDArray[np.int64]:
    """(n_hidden, TOP) the words of largest mutual information with each hidden variable."""
    return np.argsort(-information(model.model_), axis=1, kind="stable")[:, :TOP]


def information(model: TreeModel) -> NDArray[np.float64]:
    """(n_hidden, p) mutual information of every hidden and every observed variable."""
    tree = model.tree
    given = {
        (v, u): model.conditional(v, u) for a, b in tree.edges.tolist() for v, u in ((a, b), (b, a))
    }
    found = np.zeros((tree.n_hidden, tree.n_observed))
    for h in range(tree.n_hidden):
        root = tree.n_observed + h
        known, todo = {root: np.eye(len(model.marginals[root]))}, [root]
        for u in todo:
            for v in tree.neighbors(u).tolist():
                if v not in known:
                    known[v] = given[v, u] @ known[u]  # P(v | h)
                    todo.append(v)
        for v in range(tree.n_observed):
            joint = known[v] * model.marginals[root]
            apart = np.outer(model.marginals[v], model.marginals[root])
            found[h, v] = (joint * np.log(np.maximum(joint, 1e-300) / apart)).sum()
    return found


def coherence(present: NDArray[np.float64], tops: NDArray[np.int64]) -> NDArray[np.float64]:
    """(n_hidden,) mean normalised pointwise mutual information of the pairs of top words."""
    n = len(present)
    both = present.T @ present / n
    single = np.maximum(np.diag(both), 0.5 / n)
    with np.errstate(divide="ignore", invalid="ignore"):
        npmi = np.log(both / np.outer(single, single)) / -np.log(both)
    npmi = np.where(both > 0, npmi, -1.0)
    rows, columns = np.triu_indices(tops.shape[1], 1)
    return np.asarray(npmi[tops[:, rows], tops[:, columns]].mean(axis=1))


COLUMNS = (
    LABEL._replace(heading="words"),
    N_RUNS,
    Column("coherence", mean("coherence", 3)),
    Column("different", mean("different", 2)),
    Column("likelihood", mean("test", 3)),
    Column("hidden", mean("hidden", 0)),
    Column("s", mean("seconds", 1)),
)


TABLES = (
    Table(
        name="coherence",
        shows="words around hidden variables of 2, 4 and 16 states: do they belong together",
        duration="5 min",
        title="Coherence of words",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
    ),
)
