"""Real tables that are cut in random halves, to see what comes back in the other half."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.data.corpora import read_documents
from benchmarks.data.phecodes import FILES as HEALTH
from benchmarks.data.phecodes import read_phecodes
from benchmarks.data.questionnaire import FILES as ITEMS
from benchmarks.data.questionnaire import read_questionnaire
from benchmarks.data.stocks import FILES as STOCKS
from benchmarks.data.stocks import prepared, read_stocks

FEWEST = 20
"""Occurrences of either value that a 0/1 variable needs in every half."""

MIN_PATIENTS = 200
"""Patients that a diagnosis needs."""


def read_bits(path: Path, rows: str = "train") -> Any:
    """Rows of a density-estimation set, 0 or 1: "train", "valid" or "test"."""
    content = np.load(path)
    return np.unpackbits(content[rows], axis=1, count=int(content["n_vars"]))


def _postings(path: Path) -> Any:
    return np.asarray(read_documents(path).matrix.toarray(), dtype=np.uint8)


def _patients(*files: Path) -> Any:
    events, _ = read_phecodes(files, None, MIN_PATIENTS)
    return sparse.csr_array(events.matrix)


SETS: dict[str, tuple[tuple[str, ...], Callable[..., Any], dict[str, Any]]] = {
    **{
        name: ((f"debd/{name}.npz",), read_bits, {"n_states": 2})
        for name in ("nltcs", "plants", "jester", "accidents", "dna", "bbc")
    },
    "bfi25": (ITEMS, lambda *files: read_questionnaire(*files)[0], {"family": "ordinal"}),
    "stocks": (
        STOCKS,
        lambda *files: prepared(read_stocks(*files)[0])["normal scores"],
        {"hidden": "gaussian"},
    ),
    "news20": (("news20/20news_w100.mat",), _postings, {"n_states": 2}),
    "diabetes130": (HEALTH, _patients, {"n_states": 2}),
}
"""Files, reader and options of a fit, by name."""


def random_halves(X: Any, seed: int) -> tuple[Any, Any]:
    """Two halves of the rows of a table at random, without 0/1 columns that are rare in either."""
    n = X.shape[0]
    order = np.random.default_rng(seed).permutation(n)
    halves = [np.sort(order[: n // 2]), np.sort(order[n // 2 : 2 * (n // 2)])]
    if isinstance(X, pd.DataFrame):
        one, other = (X.iloc[rows].reset_index(drop=True) for rows in halves)
        return one, other
    parts = [X[rows] for rows in halves]
    ones = np.array([np.asarray(part.sum(axis=0)).ravel() for part in parts])
    kept = np.flatnonzero(((ones >= FEWEST) & (n // 2 - ones >= FEWEST)).all(axis=0))
    one, other = (part[:, kept] for part in parts)
    return one, other
