"""Two versions of the code, in turns on the same data: is one slower, or does one need more memory?

    python benchmarks/same_speed.py BEFORE AFTER [--repeat N] [--only NAME ...] [--data DIR]

BEFORE and AFTER are checkouts. Each work (a fit, the reading of a file, questions to a model) runs
in a fresh process that has loaded the kernels of a small fit; the two versions take turns, and the
shortest of N counts, so that what else the machine does falls on both. Memory is the largest
resident set of the process. Only the public interface is used.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.data.corpora import CORPORA, Corpus
from benchmarks.data.files import TopicWords, TreeRows, write_csv, write_events, write_parquet
from benchmarks.data.rare_sources import RareCodes, RareGroups
from benchmarks.data.simulated import Balanced
from benchmarks.settings import Settings, data_file
from latenttree import LatentTree
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.model.tree_model import TreeModel

START = """
import pickle, re, sys, time
from pathlib import Path
import latenttree as lt
X, options = pickle.load(open(sys.argv[1], "rb"))
small = {k: v for k, v in options.items() if k == "n_states"}
lt.LatentTree(random_state=0, **small).fit(
    lt.datasets.make_latent_tree(9, small["n_states"], n_samples=2000, random_state=0).X)
"""
END = """
peak = int(re.search(r"VmHWM:\\s*(\\d+)", Path("/proc/self/status").read_text()).group(1))
print(seconds, peak / 1024, *result)
"""

FIT = """
lt.LatentTree(random_state=0, max_iter=1, **options).fit(X[:2000])
start = time.perf_counter()
model = lt.LatentTree(random_state=0, **options).fit(X)
seconds = time.perf_counter() - start
result = model.tree_.n_hidden, f"{model.score(X[:2000]):.9g}"
"""

READ = """
from latenttree.data import read_events, read_table
limit = options["memory_limit"]
start = time.perf_counter()
table = (read_events if "events" in X else read_table)(X, memory_limit=limit)
table = table.table() if "events" in X else table
seconds = time.perf_counter() - start
result = table.n_samples, table.n_vars, int(table.dims.sum())
"""

ASK = """
model = lt.load(options["model"])
model.score_samples(X[:2000]), model.transform(X[:2000])
start = time.perf_counter()
for _ in range(3):
    scores, posteriors = model.score_samples(X), model.transform(X)
seconds = time.perf_counter() - start
result = posteriors.shape[1], round(float(scores.mean()), 6)
"""

Data = tuple[Any, dict[str, Any]]
Load = Callable[[Path], Data]
"""From the folder of real data to what is passed to `fit`, and options."""


def simulated(p: int, d: int, **options: Any) -> Load:
    """Samples of a balanced tree, as in the paper's synthetic table."""
    return lambda _: (np.asarray(Balanced(p, d, 50_000, 3, **options).sample(0).X), {"n_states": 3})


def words(corpus: str, top: int | None) -> Load:
    """Documents of a corpus, as the paper's experiments have them."""

    def load(folder: Path) -> Data:
        path = data_file(Settings(data=folder), CORPORA[corpus].file)
        if path is None:
            raise SystemExit(f"no {CORPORA[corpus].file} in {folder}; pass --data DIR")
        table = Corpus(corpus, path, top=top).load(folder)
        return table.rows(0, table.n_samples), {"n_states": 2, "names": list(table.names)}

    return load


def patients(source: RareCodes | RareGroups, **options: Any) -> Load:
    """Simulated health records."""

    def load(_: Path) -> Data:
        with tempfile.TemporaryDirectory() as folder:
            source.draw(Path(folder), 0)
            X, chosen = sparse.load_npz(Path(folder) / "X.npz").tocsr(), {"n_states": 2} | options
            if isinstance(source, RareGroups):
                widths = np.load(Path(folder) / "widths.npy")
                chosen["groups"] = np.repeat([f"group{i}" for i in range(source.p)], widths)
            return X, chosen

    return load


def written(name: str, write: Callable[[Path, Any], None], rows: Any, limit: str) -> Load:
    """A file that is read under a limit of memory."""

    def load(_: Path) -> Data:
        path = Path(tempfile.gettempdir()) / f"latenttree-{name}"
        if not path.exists():
            write(path, rows)
        return str(path), {"n_states": 2, "memory_limit": limit}

    return load


def states(k: int, p: int = 27, is_sparse: bool = False) -> Load:
    """A random model of k states, and samples to ask it about: variables of k categories, or sparse
    binary ones."""

    def load(_: Path) -> Data:
        rng, dim = np.random.default_rng(0), 2 if is_sparse else k
        tree = make_latent_tree(p, 2, n_samples=2, random_state=0).tree
        X = rng.integers(0, dim, (10_000 if is_sparse else 50_000, p))
        if is_sparse:
            X = sparse.csr_array((rng.random(X.shape) < 0.01).astype(np.float32))
        model = LatentTree(n_states=2, refine=None, search=False, random_state=0).fit(X)
        parents = tree.rooted(tree.n_nodes - 1).parents
        dims = [dim if v < p else k for v in range(tree.n_nodes)]
        cpts = [
            rng.dirichlet(np.ones(dims[v]), k if parents[v] >= 0 else 1).T
            for v in range(tree.n_nodes)
        ]
        model.tree_, model.model_ = tree, TreeModel(tree, tree.n_nodes - 1, tuple(cpts))
        model.diagnostics_ = replace(model.diagnostics_, support=np.ones(len(tree.edges)))
        path = Path(tempfile.gettempdir()) / f"latenttree-{k}-{p}.ltree"
        model.save(path)
        return X, {"n_states": 2, "model": str(path)}

    return load


class Work(NamedTuple):
    """The code that is timed, and its data."""

    code: str
    load: Load


WORKS: dict[str, Work] = {
    "synthetic p=9 d=10": Work(FIT, simulated(9, 10)),
    "synthetic p=9 d=1,000 Zipf": Work(FIT, simulated(9, 1_000, marginal="zipf")),
    "synthetic p=81 d=100": Work(FIT, simulated(81, 100)),
    "NIPS, 5,000 words": Work(FIT, words("nips", 5_000)),
    "NIPS, all words": Work(FIT, words("nips", None)),
    "NY Times, 3,000 words": Work(FIT, words("nytimes", None)),
    "952 codes, 29,862 patients": Work(FIT, patients(RareCodes(952, 29_862, per_sample=10.5))),
    "168 groups, 410,964 patients": Work(
        FIT, patients(RareGroups(168, 410_964, per_sample=6.5, widest=31))
    ),
    "20,000 words, 60,000 documents, in 2 GiB": Work(
        FIT,
        patients(
            RareCodes(20_000, 60_000, 100.0, 100.0, with_oracle=False),
            memory_limit="2GiB",
            drop_constant=True,
        ),
    ),
    "100,000 words, 300,000 documents, in 8 GiB": Work(
        FIT,
        patients(
            RareCodes(100_000, 300_000, 232.0, 100.0, with_oracle=False),
            memory_limit="8GiB",
            drop_constant=True,
        ),
    ),
    **{f"questions, k={k}, dense": Work(ASK, states(k)) for k in (2, 3, 16, 64)},
    **{
        f"questions, k={k}, sparse": Work(ASK, states(k, 2_000, is_sparse=True)) for k in (2, 3, 16)
    },
    "CSV, 2 M rows, 27 columns": Work(
        READ, written("rows.csv", write_csv, TreeRows(2_000_000, 27, 4), "300MiB")
    ),
    "Parquet, 4 M rows, 27 columns": Work(
        READ, written("rows.parquet", write_parquet, TreeRows(4_000_000, 27, 4), "400MiB")
    ),
    "Events, 10 M rows": Work(
        READ, written("events.csv", write_events, TopicWords(170_000, 2_000), "500MiB")
    ),
}


def run_in(checkout: Path, code: str, data: Path) -> list[str]:
    """Seconds, MiB and results of a work by the code of a checkout."""
    variables = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", START + code + END, str(data)],
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{checkout}: {done.stderr[-2000:]}")
    return done.stdout.split()


def measured(name: str, checkouts: list[Path], folder: Path, repeat: int) -> str:
    """A row of the table."""
    work = WORKS[name]
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "data.pickle"
        path.write_bytes(pickle.dumps(work.load(folder), protocol=5))
        turns = [[run_in(c, work.code, path) for c in checkouts] for _ in range(repeat)]
    cells = []
    for column, digits in ((0, 2), (1, 0)):
        before, after = (min(float(turn[i][column]) for turn in turns) for i in range(2))
        cells.append(f"{before:,.{digits}f} | {after:,.{digits}f} | {after / before:.2f}")
    same = "yes" if len({tuple(run[2:]) for turn in turns for run in turn}) == 1 else "NO"
    return f"| {name} | {' | '.join(cells)} | {same} |"


def table(checkouts: list[Path], folder: Path, repeat: int, only: list[str]) -> Iterator[str]:
    """Lines of the table, as they are measured."""
    yield "| work | before, s | after, s | ratio | before, MiB | after, MiB | ratio | same |"
    yield "|---|---|---|---|---|---|---|---|"
    for name in WORKS:
        if not only or any(fnmatch(name, f"*{pattern}*") for pattern in only):
            yield measured(name, checkouts, folder, repeat)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Time the fits of two versions of the code.")
    parser.add_argument("checkouts", nargs=2, type=Path, metavar="CHECKOUT")
    parser.add_argument("--repeat", type=int, default=3, help="fits of each version")
    parser.add_argument("--only", nargs="*", default=[], help="parts of names of fits")
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser.add_argument("--data", type=Path, default=default, help="folder of the real data")
    chosen = parser.parse_args()
    checkouts = [path.resolve() for path in chosen.checkouts]
    for line in table(checkouts, chosen.data, chosen.repeat, chosen.only):
        print(line, flush=True)


if __name__ == "__main__":
    main()
