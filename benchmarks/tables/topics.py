"""Topics: do the words of a topic belong together, beside topic models?"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.data.corpora import CORPORA
from benchmarks.data.counts import Counts, read_counts, split
from benchmarks.grids import LABEL, N_RUNS, Column, mean
from benchmarks.npmi import npmi
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Choice, Settings, data_file
from benchmarks.timing import timed
from latenttree.estimator import LatentTree

N_WORDS, HELD_OUT, MOST = 10, 0.2, 0.5
SIZES = (10, 50, 200)
WORDS_PER_TOPIC = 10

ABOUT = f"""Four fifths of the documents are learned from, one fifth is held out. Words in more
than half of the documents to learn from, and in fewer than two, are left out; of the others the
most frequent are used, by all methods alike: counts by LDA and hLDA, tf-idf by NMF, presence by
CorEx and latenttree. NPMI: the mean normalised pointwise mutual information of the {N_WORDS} first
words of a topic, pair by pair, in the documents that are held out (Bouma 2009; -1: never together,
0: independent, 1: always together), over all topics. "Different": the share of the words listed
that are listed for the first time, since good topics that are repeated would score well too.
Seconds are of all sizes together; latenttree learns one tree for all of them. hLDA chooses its
number of topics itself; those with most words are taken, all of them for the fewest topics. Rivals
that are not installed are left out."""

Lists = dict[int, list[list[int]]]
"""The words of the topics, best first, by number of topics."""


class Case(NamedTuple):
    """A row: a corpus, its number of words, of documents at most, and the method."""

    corpus: str
    n_words: int
    documents: int | None
    method: str
    path: Any

    @property
    def label(self) -> str:
        """The corpus and the method."""
        return f"{CORPORA[self.corpus].title}, {self.n_words:,} words: {self.method}"


def measure(settings: Settings) -> dict[str, Any]:
    """All methods on all corpora that are here."""
    cases = []
    for corpus, n_words, documents in (
        ("news20", 100, None),
        ("nips", 3_000, None),
        ("nytimes", 3_000, settings.choices["documents"]),
    ):
        path = data_file(settings, CORPORA[corpus].file)
        if path is not None:
            cases += [Case(corpus, n_words, documents, m, path) for m in METHODS if installed(m)]
    return {"rows": run_cases(fit, cases, settings, 3, quick_seeds=1)}


def fit(case: Case, seed: int) -> Run:
    """One corpus, one cut, one method, all numbers of topics."""
    counts = read_counts(case.path)
    train, test = split(counts, case.n_words, seed, HELD_OUT, MOST, case.documents)
    n_words = len(train.names)
    sizes = [n for n in SIZES if n * WORDS_PER_TOPIC <= n_words] or [max(2, n_words // 4)]
    lists, seconds = timed(lambda: METHODS[case.method](train, sizes, seed))
    return {str(n): judged(test, topics) for n, topics in lists.items()} | {"seconds": seconds}


def judged(test: Counts, topics: list[list[int]]) -> dict[str, float]:
    """Coherence, diversity and the number of words of topics."""
    listed = np.concatenate([np.asarray(topic, dtype=np.int64) for topic in topics])
    return {
        "npmi": float(np.nanmean(npmi(test.presence, topics))),
        "different": len(np.unique(listed)) / len(listed),
        "words": len(listed) / len(topics),
    }


# ---- methods ---------------------------------------------------------------------------


def latent_tree(train: Counts, sizes: list[int], seed: int) -> Lists:
    """One tree, read at all levels."""
    options: dict[str, Any] = {"n_states": 2, "support": "model", "drop_constant": True}
    model = LatentTree(names=train.names, random_state=seed, **options).fit(train.presence)
    number = {name: v for v, name in enumerate(train.names)}
    levels = model.topics(n_words=N_WORDS, level=sizes).levels
    return {
        size: [[number[word] for word in topic.words] for topic in level]
        for size, level in zip(sizes, levels, strict=False)
    }


def lda(train: Counts, sizes: list[int], seed: int) -> Lists:
    """Latent Dirichlet allocation on counts."""
    from sklearn.decomposition import LatentDirichletAllocation

    return {
        n: first_words(
            LatentDirichletAllocation(n, random_state=seed).fit(train.matrix).components_
        )
        for n in sizes
    }


def nmf(train: Counts, sizes: list[int], seed: int) -> Lists:
    """Non-negative matrix factorisation of tf-idf."""
    from sklearn.decomposition import NMF
    from sklearn.feature_extraction.text import TfidfTransformer

    X = TfidfTransformer().fit_transform(train.matrix)
    options: dict[str, Any] = {"init": "nndsvda", "random_state": seed, "max_iter": 300}
    return {n: first_words(NMF(n, **options).fit(X).components_) for n in sizes}


def corex(train: Counts, sizes: list[int], seed: int) -> Lists:
    """CorEx on presence; words by mutual information with the topic they belong to."""
    new = import_module("corextopic.corextopic").Corex
    lists = {}
    for n in sizes:
        found = new(n_hidden=n, seed=seed).fit(sparse.csr_matrix(train.presence))
        listed = found.get_topics(n_words=N_WORDS)
        lists[n] = [[int(word[0]) for word in topic] for topic in listed if len(topic) > 1]
    return lists


def hierarchical_lda(train: Counts, sizes: list[int], seed: int) -> Lists:
    """hLDA of three levels; of all topics those with most words."""
    model = import_module("tomotopy").HLDAModel(depth=3, seed=seed)
    rows = train.matrix.tocsr()
    for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        times = rows.data[a:b].astype(np.int64)
        if times.sum():
            model.add_doc([str(v) for v in np.repeat(rows.indices[a:b], times)])
    model.train(200, workers=1)
    live = [k for k in range(model.k) if model.is_live_topic(k)]
    live.sort(key=lambda k: -model.get_count_by_topics()[k])
    lists = [[int(word) for word, _ in model.get_topic_words(k, top_n=N_WORDS)] for k in live]
    return {n: lists[:n] for n in sizes if n <= max(len(lists), sizes[0])}


def first_words(weights: NDArray[np.float64]) -> list[list[int]]:
    """The words of largest weight of each topic, `(topics, p)`."""
    found: list[list[int]] = np.argsort(-weights, axis=1, kind="stable")[:, :N_WORDS].tolist()
    return found


METHODS: dict[str, Callable[[Counts, list[int], int], Lists]] = {
    "latenttree": latent_tree,
    "LDA": lda,
    "NMF": nmf,
    "CorEx": corex,
    "hLDA": hierarchical_lda,
}
NEEDS = {"CorEx": "corextopic", "hLDA": "tomotopy"}


def installed(method: str) -> bool:
    """Whether the library of a method is here."""
    return method not in NEEDS or find_spec(NEEDS[method]) is not None


COLUMNS = (
    LABEL._replace(heading="words"),
    N_RUNS,
    *(
        Column(heading.format(n), mean(f"{n}.{key}", digits))
        for n in SIZES
        for heading, key, digits in (("NPMI of {}", "npmi", 3), ("different", "different", 2))
    ),
    Column("s", mean("seconds", 1)),
)

TABLES = (
    Table(
        name="topics",
        shows="coherence of the words of 10, 50 and 200 topics, beside LDA, NMF, CorEx and hLDA",
        duration="30 min",
        title="Topics",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
        choices={"documents": Choice(30_000, "documents of NY Times, at random", 2_000)},
    ),
)
