"""Containers of all kinds, sparse matrices, weights and batches."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy import sparse

from benchmarks.answers.made import (
    grouped,
    labelled,
    patients,
    simulated,
    with_gaps,
    words,
)
from benchmarks.answers.tasks import Maker, Task, add, task


@task
def frame_mixed(seed: int) -> Task:
    """Columns of all types."""
    return Task(patients(seed), {"family": {"visits": "poisson"}})


@task
def frame_mixed_gaps(seed: int) -> Task:
    """Columns of all types with gaps, one of them in an order."""
    frame = with_gaps(patients(seed), seed)
    return Task(frame, {"family": {"visits": "poisson", "stairs": "ordinal"}, "n_jobs": 2})


@task
def frame_booleans(seed: int) -> Task:
    """Columns of booleans, with names."""
    frame = pd.DataFrame(simulated(seed, 14).X.astype(bool))
    return Task(frame.rename(columns=lambda j: f"flag {j}"), {"n_states": 2})


@task
def frame_strings(seed: int) -> Task:
    """Columns of text with gaps."""
    frame = labelled(simulated(seed, 12, 2, 3).X, ["low", "middle", "high"])
    return Task(with_gaps(frame, seed), {"n_states": 2})


@task
def frame_categories(seed: int) -> Task:
    """Categories of pandas, every other column of them in an order."""
    levels = ["never", "seldom", "often", "always"]
    frame = labelled(simulated(seed, 12, 2, 4).X, levels)
    some = {
        name: pd.Categorical(frame[name], levels, ordered=j % 2 == 0)
        for j, name in enumerate(frame)
    }
    return Task(pd.DataFrame(some), {"n_states": 2})


@task
def frame_nullable(seed: int) -> Task:
    """Integers of pandas that may be missing."""
    codes = with_gaps(pd.DataFrame(simulated(seed, 12, 2, 3).X).add_prefix("q"), seed)
    return Task(codes.astype("Int64"), {"n_states": 2})


@task
def array_of_strings(seed: int) -> Task:
    """An array of text."""
    return Task(np.array(["no", "yes"])[simulated(seed, 12).X], {"n_states": 2})


@task
def array_masked(seed: int) -> Task:
    """An array that masks its gaps."""
    codes = simulated(seed, 12, 2, 3).X
    gaps = np.random.default_rng(seed).random(codes.shape) < 0.1
    return Task(np.ma.masked_array(codes, gaps), {"n_states": 2})


@task
def list_of_blocks(seed: int) -> Task:
    """A list of arrays, one for each variable."""
    data = simulated(seed, 9, 3, family="gaussian_diagonal", dim=5)
    return Task(list(data.X.values()), {"n_states": 3, "n_jobs": 2})


@task
def repeated_rows(seed: int) -> Task:
    """Few different rows, each many times."""
    data = simulated(seed, 15, 2, 3, n_samples=80)
    return Task(np.repeat(data.X, 25, axis=0), {"n_states": 2})


@task
def copied_columns(seed: int) -> Task:
    """Columns that repeat others, one of them turned round."""
    codes = simulated(seed, 12).X
    return Task(np.hstack([codes, codes[:, :3], 1 - codes[:, 3:4]]), {"n_states": 2})


@task
def constant_columns(seed: int) -> Task:
    """Columns of one value, which are left out."""
    codes = simulated(seed, 10).X
    codes[:, [2, 7]] = 1
    names = [f"v{j}" for j in range(10)]
    return Task(codes, {"n_states": 2, "drop_constant": True, "names": names})


@task
def different_widths(seed: int) -> Task:
    """Columns of 2 to 12 categories."""
    data = simulated(seed, 15, 2, 12, n_samples=3000).X
    return Task(data % np.array([2, 3, 5, 8, 12] * 3), {"n_states": 2})


@task
def unused_categories(seed: int) -> Task:
    """Categories that never occur."""
    codes = simulated(seed, 12, 2, 40, n_samples=3000).X
    frame = pd.DataFrame({f"c{j}": codes[:, j] for j in range(codes.shape[1])})
    return Task(frame.astype(pd.CategoricalDtype(range(60))), {"n_states": 2})


@task
def hardly_known(seed: int) -> Task:
    """Two columns that few rows have."""
    codes = simulated(seed, 15, 2, 3, n_samples=800).X.astype(float)
    codes[30:, [4, 9]] = np.nan
    return Task(codes, {"n_states": 2})


@task
def noise_alone(seed: int) -> Task:
    """Columns that are independent of each other."""
    return Task(np.random.default_rng(seed).integers(0, 2, (400, 12)), {"n_states": 2})


@task
def rare_values(seed: int) -> Task:
    """Columns that are mostly 0."""
    rare = np.random.default_rng(seed).random((2000, 15)) < 0.6
    return Task(np.where(rare, 0, simulated(seed, 15, n_samples=2000).X), {"n_states": 2})


def columns(n_columns: int, family: str) -> Maker:
    """A task of so few columns that there is hardly a tree."""

    def maker(seed: int) -> Task:
        data = simulated(seed, 6, shape="star", family=family, n_samples=800)
        return Task(data.X[:, :n_columns], {"n_states": 2})

    return maker


for _n in (1, 2, 3, 4):
    add(f"columns_{_n}", columns(_n, "categorical"))
for _n in (2, 3):
    add(f"columns_{_n}_of_numbers", columns(_n, "gaussian"))


# ---- sparse matrices -----------------------------------------------------------------------------


@task
def sparse_binary(seed: int) -> Task:
    """Presence of words."""
    return Task(words(seed, 1500, 60, 8), {"n_states": 2})


@task
def sparse_weights(seed: int) -> Task:
    """Presence of words in documents that count several times, or not at all."""
    weights = np.random.default_rng(seed).integers(0, 4, 1200)
    return Task(words(seed, 1200, 50, 7), {"n_states": 2}, weights)


@task
def sparse_wide(seed: int) -> Task:
    """More words than documents, nearly."""
    return Task(words(seed, 600, 550, 40), {"n_states": 2, "n_jobs": 2})


@task
def sparse_rare(seed: int) -> Task:
    """Words that few documents have."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 25, 4000)
    chance = np.where(topic[:, None] == np.arange(400) % 25, 0.12, 0.003)
    return Task(sparse.csr_array((rng.random((4000, 400)) < chance).astype(int)), {"n_states": 2})


@task
def sparse_wide_moments(seed: int) -> Task:
    """So many words that no global joining is tried; no refinement."""
    return Task(words(seed, 400, 1600, 100), {"n_states": 2, "refine": None})


@task
def sparse_codes(seed: int) -> Task:
    """Groups of columns of 0 and 1."""
    X, groups = grouped(simulated(seed, 12, 2, 8, family="multihot").X)
    return Task(sparse.csr_array(X), {"n_states": 2, "groups": groups})


@task
def sparse_bags(seed: int) -> Task:
    """Groups of columns of counts."""
    X, groups = grouped(simulated(seed, 9, 2, 30, family="multinomial").X)
    return Task(sparse.csr_array(X), {"n_states": 2, "groups": groups})


@task
def sparse_categories(seed: int) -> Task:
    """Groups of columns of which one is 1."""
    codes = simulated(seed, 9, 2, 20, n_samples=3000).X
    blocks = {f"g{j}": np.eye(20, dtype=np.uint8)[codes[:, j]] for j in range(codes.shape[1])}
    X, groups = grouped(blocks)
    return Task(sparse.csr_array(X), {"n_states": 2, "groups": groups, "family": "categorical"})


# ---- weights and batches -------------------------------------------------------------------------


@task
def weights_whole(seed: int) -> Task:
    """Rows that count several times, or not at all."""
    weights = np.random.default_rng(seed).integers(0, 5, 1500)
    return Task(simulated(seed, 15, 2, 3).X, {"n_states": 2}, weights)


@task
def weights_fractions(seed: int) -> Task:
    """Rows that count for fractions of a row."""
    weights = np.random.default_rng(seed).gamma(2.0, 0.7, 1200)
    return Task(with_gaps(patients(seed), seed), {}, weights)


@task
def weights_of_blocks(seed: int) -> Task:
    """Weights of rows of vectors."""
    weights = np.random.default_rng(seed).integers(0, 3, 1500)
    data = simulated(seed, 9, family=("gaussian_full", "multihot", "poisson"), dim=3)
    return Task(data.X, {"n_states": 2, "family": data.family}, weights)


@task
def batches_strings(seed: int) -> Task:
    """Batches of text, of different lengths."""
    X = np.array(["no", "yes", "perhaps"])[simulated(seed, 12, 2, 3).X]
    return Task(X, {"n_states": 2}, batches=3)


@task
def batches_categories(seed: int) -> Task:
    """Batches of categories of pandas."""
    frame = labelled(simulated(seed, 12, 2, 4).X, ["never", "seldom", "often", "always"])
    return Task(with_gaps(frame, seed).astype("category"), {"n_states": 2}, batches=3)


@task
def batches_nullable(seed: int) -> Task:
    """Batches of integers that may be missing."""
    codes = with_gaps(pd.DataFrame(simulated(seed, 12, 2, 3).X).add_prefix("q"), seed)
    return Task(codes.astype("Int64"), {"n_states": 2}, batches=3)


@task
def batches_blocks(seed: int) -> Task:
    """Batches of vectors of all families."""
    data = simulated(seed, 9, 2, 4, family="mixed")
    return Task(data.X, {"n_states": 2, "family": data.family}, batches=3)


@task
def batches_dense(seed: int) -> Task:
    """Batches of codes."""
    return Task(simulated(seed, 15).X, {"n_states": 2}, batches=4)


@task
def batches_of_numbers(seed: int) -> Task:
    """Batches of numbers with gaps."""
    return Task(simulated(seed, 9, family="gaussian", missing=0.1).X, {"n_states": 2}, batches=3)


@task
def batches_frames(seed: int) -> Task:
    """Batches of DataFrames."""
    return Task(with_gaps(patients(seed), seed), {"n_jobs": 2}, batches=3)


@task
def batches_sparse(seed: int) -> Task:
    """Batches of sparse rows with weights."""
    weights = np.random.default_rng(seed).integers(1, 4, 1000)
    return Task(words(seed, 1000, 40, 6), {"n_states": 2}, weights, batches=3)
