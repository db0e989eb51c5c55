"""Words of documents from a known latent tree, at the frequencies of a large corpus.

Topics of four levels, each node with ten children, are on or off; a topic is mostly on where its
parent is. Words have Zipf frequencies; frequent ones hang from high topics, rare ones from low
ones. A word occurs by its topic or, less often, by itself. Drawn word by word, as lists of
documents, so that the cost is that of what is drawn: 100,000 words in 300,000 documents (70 million
occurrences, like the whole vocabulary of the UCI NY Times collection) take about half a minute.

    python benchmarks/zipf_words.py 100000 300000 out.npz
"""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree import Tree

BRANCHING = 10
RATES = (0.25, 0.05, 0.008, 0.0012)
"""Share of the documents that a topic of each level is on in."""

KEPT = 0.7
"""Share of a node's occurrences that come from its parent."""

HIGHEST = 0.4
"""Frequency of the most frequent words."""

WORDS_EACH = 230
"""Words of a document, on average, at 100,000 words and more."""

Documents = NDArray[np.int32]


class Words(NamedTuple):
    """Presence `(n, p)`, the tree over the words with its topics, and each word's frequency."""

    matrix: sparse.csr_array
    tree: Tree
    frequency: NDArray[np.float64]


def frequencies(n_words: int) -> NDArray[np.float64]:
    """Zipf frequencies, most frequent first, that sum to the words of a document."""
    shape = 1.0 / (np.arange(n_words) + 30.0) ** 1.1
    low, high = 0.0, 1e6
    wanted = min(WORDS_EACH, 0.2 * HIGHEST * n_words)
    for _ in range(100):
        middle = (low + high) / 2
        total = np.minimum(middle * shape, HIGHEST).sum()
        low, high = (middle, high) if total < wanted else (low, middle)
    return np.asarray(np.minimum(low * shape, HIGHEST))


def drawn(
    rng: np.random.Generator, n: int, parent: Documents, rate: float, parent_rate: float
) -> Documents:
    """Documents of a node with a given frequency: some of its parent's, and some at random."""
    from_parent = min(KEPT * rate / parent_rate, 0.9)
    alone = (rate - from_parent * parent_rate) / (1 - from_parent * parent_rate)
    mine = parent[rng.random(len(parent)) < from_parent]
    others = rng.integers(0, n, rng.binomial(n, -np.log1p(-alone)), dtype=np.int32)
    return np.asarray(np.unique(np.concatenate([mine, others])), dtype=np.int32)


def topics(
    rng: np.random.Generator, n: int, levels: int
) -> tuple[list[Documents], list[int], list[int]]:
    """Documents, parent and level of every topic; the first level hangs from topic 0."""
    root = np.flatnonzero(rng.random(n) < 0.5).astype(np.int32)
    found, parent, level = [root], [-1], [-1]
    above = [0]
    for depth in range(levels):
        rate, over = RATES[depth], (0.5 if depth == 0 else RATES[depth - 1])
        below = []
        for u in above:
            for _ in range(BRANCHING):
                below.append(len(found))
                found.append(drawn(rng, n, found[u], rate, over))
                parent.append(u)
                level.append(depth)
        above = below
    return found, parent, level


def homes(n_words: int, level: list[int], levels: int) -> list[int]:
    """Topic of every word, most frequent first: a tenth as many on each level as on the next; every
    topic of the last level has three at least."""
    places = [[v for v, d in enumerate(level) if d == depth] for depth in range(levels)]
    found: list[int] = []
    for depth, nodes in enumerate(places[:-1]):
        room = min(BRANCHING * len(nodes), n_words // BRANCHING ** (levels - depth - 1))
        found += [nodes[i % len(nodes)] for i in range(room)]
    return found + [places[-1][i % len(places[-1])] for i in range(n_words - len(found))]


def zipf_words(n_words: int, n_documents: int, random_state: int = 0) -> Words:
    """Words of documents from a tree of topics; words that nobody uses stay."""
    rng = np.random.default_rng(random_state)
    levels = next(i for i in (4, 3, 2, 1) if i == 1 or n_words >= 8 * BRANCHING**i)
    found, parent, level = topics(rng, n_documents, levels)
    rate = frequencies(n_words)
    home = homes(n_words, level, levels)
    lists = [
        drawn(rng, n_documents, found[v], rate[w], RATES[level[v]]) for w, v in enumerate(home)
    ]
    starts = np.concatenate([[0], np.cumsum([len(x) for x in lists])])
    columns = sparse.csc_array(
        (np.ones(starts[-1], dtype=np.float32), np.concatenate(lists), starts),
        shape=(n_documents, n_words),
    )
    del lists, found
    return Words(columns.tocsr(), _tree(home, parent, rate, level), rate)


def _tree(home: list[int], parent: list[int], rate: NDArray[Any], level: list[int]) -> Tree:
    """The tree over words and topics, lengths from the correlations of its edges."""
    p = len(home)
    odds = [0.5, *RATES]
    edges = [(w, p + v) for w, v in enumerate(home)]
    edges += [(p + v, p + u) for v, u in enumerate(parent) if u >= 0]
    ends = [(rate[w], RATES[level[v]]) for w, v in enumerate(home)]
    ends += [(odds[level[v] + 1], odds[level[u] + 1]) for v, u in enumerate(parent) if u >= 0]
    lengths = [-np.log(_correlation(a, b)) for a, b in ends]
    return Tree.build([f"w{i}" for i in range(p)], np.array(edges), np.array(lengths))


def _correlation(rate: float, parent_rate: float) -> float:
    """Correlation of a node with its parent, given both frequencies (see `drawn`)."""
    from_parent = min(KEPT * rate / parent_rate, 0.9)
    alone = (rate - from_parent * parent_rate) / (1 - from_parent * parent_rate)
    gap = from_parent * (1 - alone)
    return float(gap * np.sqrt(parent_rate * (1 - parent_rate) / (rate * (1 - rate))))


def main() -> None:
    n_words, n_documents, path = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    words = zipf_words(n_words, n_documents)
    sparse.save_npz(path, sparse.csr_matrix(words.matrix), compressed=False)
    print(f"{words.matrix.nnz:,} occurrences, {words.tree.n_hidden:,} topics")


if __name__ == "__main__":
    main()
