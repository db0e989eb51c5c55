"""Two versions of the code, fit by fit in turns on the same data: is one slower?

    python benchmarks/same_speed.py BEFORE AFTER [--repeat N] [--only NAME ...] [--data DIR]

BEFORE and AFTER are checkouts. Each fit runs in a fresh process that has loaded the kernels of a
small fit; the two versions take turns, and the shortest of N fits counts, so that what else the
machine does falls on both. Only the public interface is used.
"""

from __future__ import annotations

import argparse
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data.corpora import CORPORA, Corpus
from benchmarks.data.rare_sources import RareCodes, RareGroups
from benchmarks.data.simulated import Balanced
from benchmarks.settings import Settings, data_file

CHILD = """
import pickle, sys, time
import latenttree as lt
X, options = pickle.load(open(sys.argv[1], "rb"))
small = {k: v for k, v in options.items() if k == "n_states"}
lt.LatentTree(random_state=0, **small).fit(
    lt.datasets.make_latent_tree(9, small["n_states"], n_samples=2000, random_state=0).X)
lt.LatentTree(random_state=0, max_iter=1, **options).fit(X[:2000])
start = time.perf_counter()
model = lt.LatentTree(random_state=0, **options).fit(X)
print(time.perf_counter() - start, model.tree_.n_hidden, model.score(X[:2000]))
"""

Data = tuple[Any, dict[str, Any]]


def simulated(p: int, d: int, **options: Any) -> Callable[[Path], Data]:
    """Samples of a balanced tree, as in the paper's synthetic table."""
    return lambda _: (np.asarray(Balanced(p, d, 50_000, 3, **options).sample(0).X), {"n_states": 3})


def words(corpus: str, top: int | None) -> Callable[[Path], Data]:
    """Documents of a corpus, as the paper's experiments have them."""

    def load(folder: Path) -> Data:
        path = data_file(Settings(data=folder), CORPORA[corpus].file)
        if path is None:
            raise SystemExit(f"no {CORPORA[corpus].file} in {folder}; pass --data DIR")
        table = Corpus(corpus, path, top=top).load(folder)
        return table.rows(0, table.n_samples), {"n_states": 2, "names": list(table.names)}

    return load


def patients(source: RareCodes | RareGroups) -> Callable[[Path], Data]:
    """Simulated health records."""

    def load(_: Path) -> Data:
        with tempfile.TemporaryDirectory() as folder:
            source.draw(Path(folder), 0)
            from scipy import sparse

            X, options = sparse.load_npz(Path(folder) / "X.npz").tocsr(), {"n_states": 2}
            if isinstance(source, RareGroups):
                widths = np.load(Path(folder) / "widths.npy")
                groups = np.repeat([f"group{i}" for i in range(source.p)], widths)
                options = {"n_states": 2, "groups": groups}
            return X, options

    return load


FITS: dict[str, Callable[[Path], Data]] = {
    "synthetic p=9 d=10": simulated(9, 10),
    "synthetic p=9 d=1,000 Zipf": simulated(9, 1_000, marginal="zipf"),
    "synthetic p=81 d=100": simulated(81, 100),
    "NIPS, 5,000 words": words("nips", 5_000),
    "NIPS, all words": words("nips", None),
    "NY Times, 3,000 words": words("nytimes", None),
    "952 codes, 29,862 patients": patients(RareCodes(952, 29_862, per_sample=10.5)),
    "168 groups, 410,964 patients": patients(RareGroups(168, 410_964, per_sample=6.5, widest=31)),
}


def fit_in(checkout: Path, data: Path) -> list[str]:
    """Seconds, number of hidden nodes and score of a fit by the code of a checkout."""
    variables = os.environ | {"PYTHONPATH": str(checkout / "src")}
    done = subprocess.run(
        [sys.executable, "-P", "-c", CHILD, str(data)],
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
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "data.pickle"
        path.write_bytes(pickle.dumps(FITS[name](folder), protocol=5))
        runs = [[fit_in(checkout, path) for checkout in checkouts] for _ in range(repeat)]
    before, after = (min(float(turn[i][0]) for turn in runs) for i in range(2))
    same = "yes" if len({(run[1], run[2]) for turn in runs for run in turn}) == 1 else "NO"
    return f"| {name} | {before:.2f} | {after:.2f} | {after / before:.2f} | {same} |"


def table(checkouts: list[Path], folder: Path, repeat: int, only: list[str]) -> Iterator[str]:
    """Lines of the table, as they are measured."""
    yield "| fit | before, s | after, s | after / before | same score |\n|---|---|---|---|---|"
    for name in FITS:
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
