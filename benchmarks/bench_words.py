"""Words: structure of bags of words, its time by stage, peak memory, and what is near a word.

NIPS (all words that occur in at least 2 documents) by default; --nytimes and --news20 for others.
Each corpus runs in a process of its own, so that its peak is its own. The cold fit is the first of
that process and loads the kernels from Numba's cache; the warm one is the last of --seeds fits.
Paths do not cross edges of support 0, which join parts that show no dependence.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import latenttree as lt
from benchmarks.common import (
    console,
    data_file,
    in_fresh_process,
    mib,
    n_seeds,
    options,
    peak_memory,
    save,
    table,
    warm_up,
)
from latenttree.data import Table, as_table, read_table

N_NEAREST = 12
QUERIES = {
    "nips": ["training", "eigenvalues", "spike"],
    "nytimes": ["game", "stock", "patient"],
    "news20": ["space", "windows", "god"],
}
FILES = {
    "nips": "nips/docword.nips.txt.gz",
    "nytimes": "nytimes/counts.npz",
    "news20": "news20/20news_w100.mat",
}
QUICK_WORDS = 150


def read_nips(path: Path) -> Table:
    return read_table(path, min_support=2)


def read_nytimes(path: Path) -> Table:
    return read_table(path, vocab=path.with_name("vocab.txt"), min_support=2)


def read_news20(path: Path) -> Table:
    """Postings x 100 words, 0 or 1."""
    from scipy.io import loadmat
    from scipy.sparse import csr_array

    content = loadmat(path)
    documents = csr_array(content["documents"])
    names = [str(np.asarray(word).item()) for word in content["wordlist"].ravel()]
    presence = documents.T if documents.shape[0] == len(names) else documents
    return as_table(csr_array(presence), names=names)


READERS: dict[str, Callable[[Path], Table]] = {
    "nips": read_nips,
    "nytimes": read_nytimes,
    "news20": read_news20,
}


def run(corpus: str, path: Path, n_jobs: int | None, fits: int, quick: bool) -> dict[str, Any]:
    """Read, fit, describe the neighbourhoods of the corpus's words."""
    start = time.perf_counter()
    words = READERS[corpus](path)
    reading = time.perf_counter() - start
    if quick and words.n_vars > QUICK_WORDS:
        words = words.select(_frequent(words, QUERIES[corpus]))
    loaded = peak_memory()
    runs = []
    estimator = lt.LatentTree  # its modules are loaded here, not in the first fit
    for _ in range(fits):
        start = time.perf_counter()
        model = estimator(n_states=2, random_state=0, n_jobs=n_jobs).fit(words)
        runs.append(
            {"seconds": time.perf_counter() - start, "stages": model.diagnostics_.stage_seconds}
        )
    tree, support = model.tree_, model.diagnostics_.support
    return {
        "corpus": corpus,
        "n_samples": words.n_samples,
        "n_words": words.n_vars,
        "notes": list(words.notes),
        "reading": reading,
        "runs": runs,
        "peak_before_fit": loaded,
        "peak": peak_memory(),
        "n_hidden": tree.n_hidden,
        "diagnostics": str(model.diagnostics_),
        "neighbourhoods": {
            word: neighbourhood(tree, support, word)
            for word in QUERIES[corpus]
            if word in tree.observed_names
        },
    }


def _frequent(words: Table, keep: list[str]) -> list[str]:
    """The words in most documents, and those asked for."""
    rows: Any = words.rows(0, words.n_samples)
    counts = np.asarray((rows > 0).sum(axis=0)).ravel()
    most = [words.names[i] for i in np.argsort(-counts, kind="stable")[:QUICK_WORDS]]
    return list(dict.fromkeys(most + [word for word in keep if word in words.names]))


def neighbourhood(tree: lt.Tree, support: NDArray[np.float64], word: str) -> dict[str, Any]:
    """The nearest words along the tree, and the words around the nodes next to this one."""
    node, p = tree.index(word), tree.n_observed
    length = distances_from(tree, support, node)[:p]
    order = [int(v) for v in np.argsort(length, kind="stable") if v != node]
    near = [v for v in order if np.isfinite(length[v])][:N_NEAREST]
    hidden = [int(v) for v in tree.neighbors(node) if v >= p]
    return {
        "nearest": [(tree.names[v], float(length[v])) for v in near],
        "joined": [tree.names[v] for v in tree.neighbors(node).tolist() if v < p],
        "hidden": {tree.names[h]: words_around(tree, h, node) for h in hidden},
    }


def words_around(tree: lt.Tree, hidden: int, word: int) -> list[str]:
    """Other words next to a hidden node, then those next to its hidden neighbours."""
    p, near = tree.n_observed, tree.neighbors(hidden).tolist()
    beyond = [v for h in near if h >= p for v in tree.neighbors(h).tolist()]
    return [tree.names[v] for v in dict.fromkeys(near + beyond) if v < p and v != word]


def distances_from(tree: lt.Tree, support: NDArray[np.float64], root: int) -> NDArray[np.float64]:
    """Path lengths from a node to all nodes; infinite across edges without support."""
    parents, order = (a.tolist() for a in tree.rooted(root))
    lengths = np.where(support > 0, tree.lengths, np.inf).tolist()
    of_edge = {tuple(e): x for e, x in zip(tree.edges.tolist(), lengths, strict=True)}
    far = np.zeros(tree.n_nodes)
    for v in order[1:]:
        u = parents[v]
        far[v] = far[u] + of_edge[min(u, v), max(u, v)]
    return far


def show(found: dict[str, Any]) -> None:
    cold, warm = found["runs"][0], found["runs"][-1]
    made = table(
        f"{found['corpus']}: {found['n_samples']:,} documents x {found['n_words']:,} words",
        "stage|cold, s|warm, s",
    )
    made.add_row("reading the file", f"{found['reading']:.2f}", "")
    for stage in cold["stages"]:
        made.add_row(stage, f"{cold['stages'][stage]:.2f}", f"{warm['stages'][stage]:.2f}")
    made.add_section()
    made.add_row("structure", f"{cold['seconds']:.2f}", f"{warm['seconds']:.2f}")
    console.print(made)
    console.print(found["diagnostics"].split("\n")[0], *found["notes"], sep="\n")
    console.print(
        f"{found['n_hidden']:,} hidden variables; peak memory {mib(found['peak'])}, "
        f"{mib(found['peak_before_fit'])} before the fit"
    )
    for word, around in found["neighbourhoods"].items():
        near = ", ".join(f"{name} {length:.2f}" for name, length in around["nearest"])
        console.print(f"\n[bold]{word}[/]  nearest: {near}")
        if around["joined"]:
            console.print(f"  joined directly: {', '.join(around['joined'])}")
        for hidden, words in around["hidden"].items():
            console.print(f"  around {hidden}: {', '.join(words[:30])}")
    console.print()


def parse() -> argparse.Namespace:
    parser = options(__doc__, seeds=2)
    parser.add_argument("--nytimes", action="store_true", help="also 3,000 words of NY Times")
    parser.add_argument("--news20", action="store_true", help="also 100 words of 20 newsgroups")
    parser.add_argument("--skip-nips", action="store_true", help="leave NIPS out")
    parser.add_argument("--n-jobs", type=int, default=None, help="threads (default all cores)")
    return parser.parse_args()


def main() -> None:
    args = parse()
    wanted = {"nips": not args.skip_nips, "nytimes": args.nytimes, "news20": args.news20}
    results = []
    for corpus in [name for name, chosen in wanted.items() if chosen]:
        path = data_file(FILES[corpus])
        if path is None:
            continue
        # the peak must not hold what compiling takes, so the cache is filled elsewhere
        in_fresh_process(warm_up, 2, 3)
        found = in_fresh_process(run, corpus, path, args.n_jobs, n_seeds(args, quick=1), args.quick)
        show(found)
        results.append(found)
        save("words", args, results)


if __name__ == "__main__":
    main()
