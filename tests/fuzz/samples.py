"""Small valid files of every format that is read, to be damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from latenttree.data import Schema, as_table
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.io.archive import Saved, save_archive
from latenttree.io.treefile import save_tree

VOCABULARY = "vocab.small.txt"
DOCWORD = "docword.small.txt"

MODELS: dict[str, dict[str, Any]] = {
    "categorical": {},
    "gaussian": {"family": "gaussian"},
    "poisson": {"family": "poisson"},
    "multihot": {"family": "multihot"},
    "multinomial": {"family": "multinomial"},
    "full": {"family": "gaussian_full", "dim": 2},
    "mixed": {"family": "mixed"},
    "gaussian_tree": {"family": "gaussian", "hidden": "gaussian"},
}


def write_all(folder: Path) -> list[str]:
    """Writes the files; their names."""
    rng = np.random.default_rng(0)
    _tables(folder, _frame(rng))
    _arrays(folder, rng)
    _documents(folder, rng)
    _events(folder, rng)
    _alignments(folder, rng)
    for name, options in MODELS.items():
        _model(folder / f"{name}.ltree", options)
    tree = make_latent_tree(6, n_samples=2, random_state=0).tree
    for suffix in ("json", "nwk", "ltree"):
        save_tree(folder / f"tree.{suffix}", tree)
    return sorted(path.name for path in folder.iterdir())


def _frame(rng: np.random.Generator) -> pd.DataFrame:
    n = 40
    kind = rng.integers(0, 2, n)
    return pd.DataFrame(
        {
            "size": kind + rng.integers(0, 2, n),
            "colour": np.array(["red", "green", "blue"])[(kind + rng.integers(0, 2, n))],
            "length": np.round(kind + rng.normal(size=n), 3),
            "code": [f"{c:02d}" for c in rng.integers(1, 12, n)],
            "gaps": np.where(rng.random(n) < 0.2, np.nan, kind),
            "w": rng.integers(1, 4, n),
        }
    )


def _tables(folder: Path, frame: pd.DataFrame) -> None:
    for ending in ("", ".gz", ".xz", ".bz2"):
        frame.to_csv(folder / f"table.csv{ending}", index=False)
    frame = frame.assign(
        colour=frame["colour"].astype("category"), yes=frame["size"] > 0, gaps=frame["gaps"]
    )
    frame.to_parquet(folder / "table.parquet")
    frame.to_parquet(folder / "plain.parquet", compression=None, use_dictionary=False)


def _arrays(folder: Path, rng: np.random.Generator) -> None:
    codes = rng.integers(0, 3, (30, 5))
    np.save(folder / "codes.npy", codes.astype(np.int16))
    np.save(folder / "reals.npy", np.asfortranarray(rng.normal(size=(30, 4))))
    np.savez(folder / "codes.npz", codes)
    np.savez_compressed(folder / "reals.npz", rng.normal(size=(30, 4)).astype(np.float32))
    matrix = sparse.coo_array((codes > 1).astype(np.int8)[:, :4])
    for kind in ("csr", "csc", "coo", "bsr", "dia"):
        sparse.save_npz(folder / f"{kind}.npz", matrix.asformat(kind), compressed=kind != "csr")


def _documents(folder: Path, rng: np.random.Generator) -> None:
    import gzip

    words = ["apple", "pear", "plum", "fig", "nut", "oat"]
    docs, found = np.nonzero(rng.random((25, len(words))) < 0.4)
    rows = [f"{d + 1} {w + 1} {rng.integers(1, 4)}" for d, w in zip(docs, found, strict=True)]
    text = "\n".join(["25", str(len(words)), str(len(rows)), *rows, ""])
    (folder / VOCABULARY).write_text("\n".join(words) + "\n")
    (folder / DOCWORD).write_text(text)
    (folder / f"{DOCWORD}.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _events(folder: Path, rng: np.random.Generator) -> None:
    n = 60
    frame = pd.DataFrame(
        {
            "patient_id": rng.integers(1, 15, n),
            "code": np.array(["250.00", "008", "E11", "V58"])[rng.integers(0, 4, n)],
            "date": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 99, n), "D"),
        }
    )
    frame.to_csv(folder / "events.csv", index=False)
    frame.to_csv(folder / "events.tsv", index=False, sep="\t")
    frame.to_csv(folder / "events.csv.gz", index=False)
    frame.to_parquet(folder / "events.parquet")


def _alignments(folder: Path, rng: np.random.Generator) -> None:
    import gzip

    letters = rng.choice(list("ACGT-"), (5, 40), p=[0.24, 0.24, 0.24, 0.24, 0.04])
    text = "".join(f">taxon{i} of five\n{''.join(row)}\n" for i, row in enumerate(letters))
    (folder / "small.fasta").write_text(text)
    (folder / "small.fasta.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def _model(path: Path, options: dict[str, Any]) -> None:
    """The true model of simulated data, saved as a fit would save it."""
    data = make_latent_tree(6, n_samples=200, random_state=0, **options)
    gaussian = options.get("hidden") == "gaussian"
    names = data.tree.observed_names
    given: dict[str, Any] = {} if isinstance(data.X, dict) else {"names": names}
    if not gaussian:
        given["family"] = data.family
    schema = Schema.of(data.X, as_table(data.X, scores=gaussian, **given), **_named(given))
    report = {"n_states": 2, "stage_seconds": {"reading": 0.5}, "messages": ["a note"]}
    params = {"n_states": 2, "hidden": options.get("hidden", "categorical"), "n_jobs": 1}
    save_archive(path, Saved(data.model, schema.to_json(), params, report))


def _named(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name == "names"}
