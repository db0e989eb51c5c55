"""Data that several data sets are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from latenttree import datasets


def simulated(seed: int, p: int, k: int = 2, d: int | None = None, **how: Any) -> Any:
    """Samples of a known tree: `p` variables of `d` categories, hidden ones of `k` states."""
    how = {"n_samples": 1500} | how
    return datasets.make_latent_tree(p, k, d, random_state=seed, **how)


def doubtful(seed: int, p: int = 24, n: int = 400, **how: Any) -> Any:
    """So few samples of a tree with short and long edges that much of it is in doubt."""
    lengths = {"edge_length": (0.1, 0.5), "leaf_length": (0.2, 0.9), "shape": "random"}
    return simulated(seed, p, n_samples=n, **lengths | how)


def labelled(codes: NDArray[Any], words: Sequence[str]) -> pd.DataFrame:
    """Codes as a DataFrame of labels."""
    names = [f"item_{j}" for j in range(codes.shape[1])]
    return pd.DataFrame(np.asarray(words, dtype=object)[codes], columns=names)


def with_gaps(frame: pd.DataFrame, seed: int, share: float = 0.1) -> pd.DataFrame:
    """A share of the values of a DataFrame taken out."""
    return frame.mask(np.random.default_rng(seed).random(frame.shape) < share)


def patients(seed: int, n: int = 1200) -> pd.DataFrame:
    """Text, booleans, numbers and counts that two hidden variables explain."""
    rng = np.random.default_rng(seed)
    ill, old = rng.random(n) < 0.4, rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "cough": np.where(rng.random(n) < np.where(ill, 0.8, 0.1), "yes", "no"),
            "fever": rng.random(n) < np.where(ill, 0.7, 0.05),
            "crp": rng.normal(np.where(ill, 40.0, 5.0), 4.0),
            "visits": rng.poisson(np.where(ill, 4.0, 0.7)),
            "age": rng.normal(np.where(old, 70.0, 35.0), 8.0).round(1),
            "glasses": rng.random(n) < np.where(old, 0.9, 0.3),
            "retired": rng.random(n) < np.where(old, 0.8, 0.02),
            "stairs": rng.integers(0, 3, n) + 2 * (rng.random(n) < np.where(old, 0.2, 0.7)),
        }
    )


def as_texts(frame: pd.DataFrame) -> pd.DataFrame:
    """Booleans as text, as a .csv has them."""
    return frame.astype(dict.fromkeys(frame.select_dtypes(bool), str))


def words(seed: int, n: int, p: int, topics: int) -> sparse.csr_array:
    """Which of `p` words are in each of `n` documents, of one topic each."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, topics, n)
    chance = np.where(topic[:, None] == np.arange(p) % topics, 0.5, 0.04)
    return sparse.csr_array((rng.random((n, p)) < chance).astype(np.uint8))


def grouped(blocks: Mapping[str, Any]) -> tuple[Any, list[str]]:
    """Blocks side by side in one matrix, and the name of the block of each column."""
    labels = [name for name, block in blocks.items() for _ in range(block.shape[1])]
    parts = list(blocks.values())
    if any(sparse.issparse(part) for part in parts):
        return sparse.csr_array(sparse.hstack(parts)), labels
    return np.hstack(parts), labels
