"""Coherence: do words around a hidden variable read better with two states or with more?"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.data.corpora import CORPORA, read_documents
from benchmarks.grids import LABEL, N_RUNS, Column, mean
from benchmarks.npmi import npmi
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings, data_file
from benchmarks.stages import timed_fit
from latenttree.interpretation import channels_of, most_informative

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
    scores = npmi(test, [[v for v in row if v >= 0] for row in tops.tolist()])
    return {
        "coherence": float(scores.mean()),
        "different": len(np.unique(tops)) / tops.size,
        "test": float(model.score(test)),
        "hidden": model.tree_.n_hidden,
        "seconds": seconds,
    }


def top_words(model: Any) -> NDArray[np.int64]:
    """(n_hidden, TOP) the words of largest mutual information with each hidden variable."""
    tree = model.model_.tree
    channels = channels_of(model.model_, np.ones(tree.n_observed, dtype=bool))
    return most_informative(channels, range(tree.n_observed, tree.n_nodes), TOP).nodes


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
