"""Whether another version of the code gives the same answers, on many small data sets.

    python benchmarks/same_answers.py list
    python benchmarks/same_answers.py record BEFORE.npz [--only NAME ...] [--repeat N]
    python benchmarks/same_answers.py compare BEFORE.npz AFTER.npz [--only NAME ...] [--ignore ...]

`record` fits every data set and writes all that can be asked of the model: the tree with lengths
and supports, every parameter, what the fit says about itself, likelihoods, posteriors, filled gaps
and drawn samples. `compare` prints a line for each data set and ends with status 1 where a tree
differs, a number by more than 1e-10, or anything else that was recorded but the time.

Only what users can call is used, so that modules may be moved and renamed between the two. To
record another version, put its sources first in PYTHONPATH. Names may be patterns, as
`--only 'missing_*'`. Times are those of fits alone; the first record on a machine compiles.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tempfile
import time
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse
from sklearn import datasets as real

import latenttree as lt
from latenttree import datasets

Arrays = dict[str, NDArray[Any]]

TOLERANCE = 1e-10
"""Largest difference that is none: of parameters, supports and lengths absolute, of other answers
relative to their size where that is above 1."""

ASKED, KNOWN = 200, 1000
"""Rows that posteriors are recorded of, and likelihoods."""

STEP, FREED = 1 << 20, 1 << 27
"""Bytes between the limits of memory that are tried, to find the least that is accepted; bytes that
a process may hold though it has freed them."""


class Task(NamedTuple):
    """A data set, and how it is learned.

    `batches`: the rows come in so many batches. `file`: they are written to a file of that name,
    and its path is fitted; "mapped" is an array in a mapped file. `tight`: within the least memory
    that is accepted, so that files are read part by part."""

    X: Any
    options: Mapping[str, Any] = {}
    weights: Any = None
    batches: int = 0
    file: str = ""
    tight: bool = False


Maker = Callable[[int], Task]

TASKS: dict[str, Maker] = {}


def task(maker: Maker) -> Maker:
    """Add a function that makes a task from a seed, under its own name."""
    return add(maker.__name__, maker)


def add(name: str, maker: Maker) -> Maker:
    """Add a function that makes a task from a seed."""
    if name in TASKS:
        raise ValueError(f"two data sets have the name {name!r}")
    TASKS[name] = maker
    return maker


def seed_of(name: str) -> int:
    """Every data set has a seed of its own, which other data sets do not change."""
    return zlib.crc32(name.encode()) % 100_000


# ---- data ------------------------------------------------------------------------------------


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


# ---- families, whole and with gaps -------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "binary": {"p": 18},
    "categories_3": {"p": 12, "k": 3, "n_samples": 3000},
    "categories_5": {"p": 12, "k": 3, "d": 5, "n_samples": 3000},
    "categories_10": {"p": 9, "k": 4, "d": 10, "n_samples": 4000},
    "categories_100": {"p": 9, "d": 100, "n_samples": 4000},
    "ordinal": {"p": 12, "d": 5, "family": "ordinal"},
    "gaussian": {"p": 15, "k": 3, "family": "gaussian", "n_samples": 2500},
    "gaussian_spherical": {"p": 9, "family": "gaussian_spherical", "dim": 3},
    "gaussian_diagonal": {"p": 9, "family": "gaussian_diagonal", "dim": 3},
    "gaussian_full": {"p": 9, "family": "gaussian_full", "dim": 3},
    "gaussian_tied": {"p": 9, "k": 3, "family": "gaussian_tied", "dim": 4},
    "poisson": {"p": 12, "family": "poisson"},
    "poisson_vectors": {"p": 9, "family": "poisson", "dim": 4},
    "multinomial": {"p": 9, "k": 3, "d": 8, "family": "multinomial"},
    "multihot": {"p": 9, "d": 6, "family": "multihot"},
    "mixed_blocks": {"p": 12, "d": 4, "family": "mixed"},
}
"""What `simulated` makes of each family."""


def of_kind(kind: str, missing: float = 0.0) -> Maker:
    """A task of simulated data, with gaps where asked for; whole vectors in groups of columns."""

    def maker(seed: int) -> Task:
        how = KINDS[kind]
        data = simulated(seed, missing=missing, **how)
        options = {"n_states": how.get("k", 2)}
        if "family" in how:
            options["family"] = data.family
        if missing or not isinstance(data.X, dict) or kind == "mixed_blocks":
            return Task(data.X, options)
        X, groups = grouped(data.X)
        return Task(X, options | {"groups": groups})

    return maker


for _kind in KINDS:
    add(_kind, of_kind(_kind))
    add(f"missing_{_kind}", of_kind(_kind, 0.15))


# ---- shapes, and samples that are few or many ----------------------------------------------------


@task
def random_tree(seed: int) -> Task:
    """A tree of no particular shape."""
    data = simulated(seed, 40, shape="random", edge_length=(0.2, 0.6), n_samples=3000)
    return Task(data.X, {"n_states": 2, "n_jobs": 2})


@task
def deep_chain(seed: int) -> Task:
    """Hidden variables in a row, a leaf at each."""
    data = simulated(seed, 40, shape="caterpillar", edge_length=0.3, n_samples=3000)
    return Task(data.X, {"n_states": 2})


@task
def wide_star(seed: int) -> Task:
    """One hidden variable behind everything."""
    return Task(simulated(seed, 60, shape="star").X, {"n_states": 2})


@task
def observed_inside(seed: int) -> Task:
    """Observed variables stand between others."""
    data = simulated(seed, 27, 3, internal_observed=0.4, n_samples=4000)
    return Task(data.X, {"n_states": 3})


@task
def parts_without_dependence(seed: int) -> Task:
    """Three trees that nothing joins."""
    parts = [simulated(seed + i, 9).X for i in range(3)]
    return Task(np.hstack(parts), {"n_states": 2})


FEW: dict[str, dict[str, Any]] = {
    "binary": {"p": 27, "n": 150},
    "many_columns": {"p": 60, "n": 250},
    "three_states": {"p": 24, "n": 500, "k": 3, "d": 4},
    "numbers": {"p": 20, "n": 300, "family": "gaussian"},
    "gaps": {"p": 24, "n": 400, "missing": 0.1},
}
"""What `doubtful` makes, several times over: the likelihood changes some of the trees."""


def few_samples(how: Mapping[str, Any]) -> Maker:
    """A task in which much of the tree is in doubt."""
    return lambda seed: Task(doubtful(seed, **how).X, {"n_states": how.get("k", 2)})


for _name, _how in FEW.items():
    for _i in range(4):
        add(f"few_{_name}_{_i}", few_samples(_how))


@task
def many_columns(seed: int) -> Task:
    """So many columns that groups of them are learned by themselves."""
    data = simulated(seed, 300, shape="random", edge_length=(0.15, 0.5), n_samples=1000)
    return Task(data.X, {"n_states": 2, "n_jobs": 2})


@task
def many_columns_three_states(seed: int) -> Task:
    """A balanced tree of depth four."""
    data = simulated(seed, 81, 3, 5, edge_length=(0.3, 0.8), n_samples=1500)
    return Task(data.X, {"n_states": 3})


@task
def many_samples(seed: int) -> Task:
    """So many samples that refinement begins in batches."""
    data = simulated(seed, 12, 3, 6, edge_length=(0.6, 1.4), n_samples=70_000)
    return Task(data.X.astype(np.uint8), {"n_states": 3, "n_jobs": 2, "tol": 1e-8})


@task
def many_samples_of_numbers(seed: int) -> Task:
    """The same of numbers, with few steps."""
    data = simulated(seed, 6, family="gaussian", n_samples=70_000)
    return Task(data.X, {"n_states": 2, "max_iter": 20})


# ---- containers ----------------------------------------------------------------------------------


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


# ---- Gaussian trees, and numbers of states -------------------------------------------------------


@task
def hidden_gaussian(seed: int) -> Task:
    """A Gaussian tree."""
    data = simulated(seed, 16, 1, hidden="gaussian")
    return Task(data.X, {"hidden": "gaussian"})


@task
def hidden_gaussian_two(seed: int) -> Task:
    """A Gaussian tree of vectors, hidden ones of two dimensions."""
    data = simulated(seed, 9, 2, hidden="gaussian", dim=3)
    return Task(data.X, {"hidden": "gaussian", "n_states": 2})


@task
def hidden_gaussian_gaps(seed: int) -> Task:
    """A Gaussian tree of numbers with gaps."""
    data = simulated(seed, 12, 1, hidden="gaussian", missing=0.15)
    return Task(data.X, {"hidden": "gaussian", "n_jobs": 2})


@task
def hidden_gaussian_frame(seed: int) -> Task:
    """A Gaussian tree of columns of all types that are numbers."""
    frame = with_gaps(patients(seed), seed).drop(columns="cough")
    return Task(frame, {"hidden": "gaussian"})


@task
def hidden_gaussian_batches(seed: int) -> Task:
    """A Gaussian tree of batches with weights."""
    data = simulated(seed, 12, 1, hidden="gaussian")
    weights = np.random.default_rng(seed).integers(1, 4, 1500)
    return Task(data.X, {"hidden": "gaussian"}, weights, batches=3)


@task
def hidden_gaussian_wide(seed: int) -> Task:
    """A Gaussian tree of wide vectors, some missing."""
    data = simulated(seed, 9, 2, hidden="gaussian", dim=20, missing=0.05)
    return Task(data.X, {"hidden": "gaussian", "n_states": 2})


@task
def hidden_gaussian_few(seed: int) -> Task:
    """A Gaussian tree of few samples."""
    data = simulated(seed, 30, 1, hidden="gaussian", edge_length=(0.1, 0.6), n_samples=120)
    return Task(data.X, {"hidden": "gaussian"})


@task
def hidden_gaussian_auto(seed: int) -> Task:
    """A Gaussian tree whose dimensions are found."""
    data = simulated(seed, 9, 2, hidden="gaussian", dim=3)
    return Task(data.X, {"hidden": "gaussian", "n_states": "auto"})


@task
def auto_binary(seed: int) -> Task:
    """Two states at most."""
    return Task(simulated(seed, 15).X, {"n_states": "auto"})


@task
def auto_categories(seed: int) -> Task:
    """Three states, which are found."""
    return Task(simulated(seed, 9, 3, 6, n_samples=4000).X, {"n_states": "auto"})


@task
def auto_different_states(seed: int) -> Task:
    """Parts with 2, 3 and 4 states."""
    parts = [simulated(seed + k, 6, k, 5, n_samples=12_000, leaf_length=0.4) for k in (2, 3, 4)]
    return Task(np.hstack([part.X for part in parts]), {"n_states": "auto", "n_jobs": 2})


@task
def auto_mixed(seed: int) -> Task:
    """States behind columns of all types."""
    return Task(with_gaps(patients(seed), seed), {"n_states": "auto"})


@task
def auto_gaussian(seed: int) -> Task:
    """States behind numbers."""
    data = simulated(seed, 9, 3, family="gaussian", n_samples=3000)
    return Task(data.X, {"n_states": "auto"})


# ---- options -------------------------------------------------------------------------------------

OPTIONS: dict[str, dict[str, Any]] = {
    "neighbor_joining": {"structure": "neighbor_joining"},
    "clrg": {"structure": "clrg"},
    "chow_liu": {"structure": "chow_liu"},
    "recursive_grouping": {"structure": "recursive_grouping"},
    "no_sweeps": {"sweeps": False},
    "no_search": {"search": False},
    "most_probable": {"tree": "most_probable"},
    "moments_alone": {"refine": None},
    "no_hidden_features": {"hidden_features": False},
    "moments_no_hidden_features": {"hidden_features": False, "refine": None},
    "epsilon": {"epsilon": 0.1},
    "support_0": {"min_support": 0.0},
    "support_09": {"min_support": 0.9},
    "validation": {"validation_fraction": 0.2},
    "no_smoothing": {"smoothing": 0.0},
    "tight_tolerance": {"tol": 1e-9, "max_iter": 60},
    "two_threads": {"n_jobs": 2},
}
"""Options that trees in doubt are learned with."""

IN_DOUBT: dict[str, Callable[[int], Any]] = {
    "binary": lambda seed: doubtful(seed).X,
    "numbers": lambda seed: doubtful(seed, 15, family="gaussian", missing=0.05).X,
    "categories": lambda seed: doubtful(seed, 15, 600, d=4).X,
    "sparse": lambda seed: words(seed, 300, 40, 6),
}
"""What they are learned from."""


def with_option(data: Callable[[int], Any], options: Mapping[str, Any]) -> Maker:
    """A task of data in doubt."""
    return lambda seed: Task(data(seed), {"n_states": 2, **options})


for _name, _options in OPTIONS.items():
    for _kind, _data in IN_DOUBT.items():
        add(f"option_{_name}_{_kind}", with_option(_data, _options))


@task
def option_pairwise(seed: int) -> Task:
    """The distance of every pair by itself, kept."""
    data = simulated(seed, 10, 2, 4)
    return Task(data.X, {"n_states": 2, "distances": "pairwise", "keep_distances": True})


@task
def option_pairwise_three(seed: int) -> Task:
    """The distance of every pair by itself, three states."""
    data = simulated(seed, 9, 3, 5, n_samples=3000)
    return Task(data.X, {"n_states": 3, "distances": "pairwise"})


@task
def option_most_probable_mixed(seed: int) -> Task:
    """The tree of best BIC over columns of all types."""
    return Task(with_gaps(patients(seed, 500), seed), {"tree": "most_probable"})


@task
def option_keep_distances(seed: int) -> Task:
    """Distances of numbers, kept."""
    data = doubtful(seed, 15, 400, family="gaussian")
    return Task(data.X, {"n_states": 2, "keep_distances": True})


# ---- files ---------------------------------------------------------------------------------------


@task
def file_csv(seed: int) -> Task:
    """Text with gaps."""
    return Task(with_gaps(as_texts(patients(seed)), seed), file="table.csv")


@task
def file_csv_packed(seed: int) -> Task:
    """Compressed text."""
    frame = labelled(simulated(seed, 12, 2, 3).X, ["low", "middle", "high"])
    return Task(frame, {"n_states": 2}, file="table.csv.gz")


@task
def file_parquet(seed: int) -> Task:
    """Columns of all types."""
    return Task(patients(seed), file="table.parquet")


@task
def file_npy(seed: int) -> Task:
    """An array of codes."""
    return Task(simulated(seed, 12, 2, 3).X, {"n_states": 2}, file="table.npy")


@task
def file_npz(seed: int) -> Task:
    """An array of numbers."""
    data = simulated(seed, 9, family="gaussian")
    return Task(data.X, {"n_states": 2}, file="table.npz")


@task
def file_npz_sparse(seed: int) -> Task:
    """A sparse matrix."""
    return Task(words(seed, 1000, 40, 6), {"n_states": 2}, file="table.npz")


@task
def file_docword(seed: int) -> Task:
    """A bag of words."""
    return Task(words(seed, 1000, 40, 6), {"n_states": 2}, file="docword.some.txt")


@task
def file_fasta(seed: int) -> Task:
    """An alignment with gaps."""
    letters = labelled(simulated(seed, 10, 4).X, list("ACGT"))
    return Task(with_gaps(letters, seed, 0.05), {"n_states": 4}, file="taxa.fasta")


@task
def streamed_npy(seed: int) -> Task:
    """An array of codes, part by part."""
    data = simulated(seed, 12, 2, 3, n_samples=6000)
    return Task(data.X, {"n_states": 2}, file="table.npy", tight=True)


@task
def streamed_csv(seed: int) -> Task:
    """Text with gaps, part by part."""
    frame = with_gaps(as_texts(patients(seed, 20_000)), seed)
    return Task(frame, {"max_iter": 20}, file="table.csv", tight=True)


@task
def streamed_parquet(seed: int) -> Task:
    """Columns of all types, part by part."""
    frame = with_gaps(patients(seed, 12_000), seed)
    return Task(frame, {"max_iter": 20}, file="table.parquet", tight=True)


@task
def streamed_npz_sparse(seed: int) -> Task:
    """A sparse matrix, part by part."""
    return Task(words(seed, 40_000, 50, 7), {"n_states": 2}, file="table.npz", tight=True)


@task
def streamed_docword(seed: int) -> Task:
    """A bag of words, part by part."""
    return Task(words(seed, 40_000, 40, 6), {"n_states": 2}, file="docword.some.txt", tight=True)


@task
def streamed_map(seed: int) -> Task:
    """Numbers in a mapped file."""
    data = simulated(seed, 12, family="gaussian", n_samples=20_000)
    return Task(data.X, {"n_states": 2, "max_iter": 20}, file="mapped", tight=True)


@task
def pairs_on_demand(seed: int) -> Task:
    """Less memory than all pairs of words take."""
    return Task(words(seed, 400, 1500, 60), {"n_states": 2, "max_iter": 5}, tight=True)


# ---- real data -----------------------------------------------------------------------------------


@task
def real_iris(seed: int) -> Task:
    """Measures of flowers and their kind."""
    found = real.load_iris(as_frame=True)
    kind = found.target.map(dict(enumerate(found.target_names)))
    return Task(found.data.assign(kind=kind), {"n_states": 3})


@task
def real_wine(seed: int) -> Task:
    """Numbers on very different scales."""
    return Task(real.load_wine().data, {"n_states": 2})


@task
def real_cancer(seed: int) -> Task:
    """A Gaussian tree of numbers that nearly copy each other."""
    return Task(real.load_breast_cancer(as_frame=True).data, {"hidden": "gaussian"})


@task
def real_digits(seed: int) -> Task:
    """Pixels, black or white."""
    X = (real.load_digits(as_frame=True).data > 8).astype(int)
    return Task(X, {"n_states": 2, "drop_constant": True, "n_jobs": 2})


@task
def real_digits_ordinal(seed: int) -> Task:
    """Pixels in five steps of grey."""
    X = real.load_digits().data[:, 18:46].astype(np.uint8) // 4
    return Task(X, {"n_states": 2, "drop_constant": True, "family": "ordinal"})


# ---- writing files -------------------------------------------------------------------------------


def written(X: Any, folder: Path, name: str) -> Any:
    """What is fitted: the path of a file that holds `X`, or its mapped array."""
    if name == "mapped":
        path = written(X, folder, "mapped.npy")
        return np.load(path, mmap_mode="r")
    path = folder / name
    if name.startswith("docword."):
        _write_docword(X, path)
    elif name.endswith(".fasta"):
        _write_fasta(X, path)
    elif name.endswith((".csv", ".csv.gz")):
        text = X.to_csv(index=False).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    elif name.endswith(".parquet"):
        X.to_parquet(path)
    elif sparse.issparse(X):
        sparse.save_npz(path, X)
    elif name.endswith(".npz"):
        np.savez(path, X)
    else:
        np.save(path, X)
    return path


def _write_docword(X: Any, path: Path) -> None:
    """Three lines of sizes, then "document word count"; the words in a file beside it."""
    found = sparse.coo_array(X)
    rows, cols = found.coords
    lines = [*map(str, (*X.shape, found.nnz))]
    lines += [f"{i + 1} {j + 1} 1" for i, j in zip(rows.tolist(), cols.tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    names = [f"x{j}" for j in range(X.shape[1])]
    path.with_name(path.name.replace("docword", "vocab")).write_text("\n".join(names) + "\n")


def _write_fasta(X: pd.DataFrame, path: Path) -> None:
    lines = []
    for name in X:
        lines += [f">{name}", "".join(X[name].fillna("-"))]
    path.write_text("\n".join(lines) + "\n")


# ---- learning ------------------------------------------------------------------------------------


def learned(given: Task, seed: int, folder: Path) -> tuple[Any, float]:
    """The model of a task, and the seconds of its fit."""
    source = written(given.X, folder, given.file) if given.file else given.X
    options = {"random_state": seed, "n_jobs": 1, **given.options}
    if not given.tight:
        return _timed(source, given, options)
    limit = max(0, _resident() - FREED)
    while True:
        limit += STEP
        try:
            return _timed(source, given, {**options, "memory_limit": limit})
        except ValueError as refusal:
            if "memory_limit" not in str(refusal) or limit > 1 << 34:
                raise


def _timed(source: Any, given: Task, options: Mapping[str, Any]) -> tuple[Any, float]:
    model = lt.LatentTree(**options)
    start = time.perf_counter()
    if given.batches:
        for part in np.array_split(np.arange(n_rows(source)), given.batches):
            weights = None if given.weights is None else given.weights[part]
            model.partial_fit(rows(source, slice(part[0], part[-1] + 1)), sample_weight=weights)
        model.finalize()
    else:
        model.fit(source, sample_weight=given.weights)
    return model, time.perf_counter() - start


def _resident() -> int:
    """Bytes that this process holds, 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


# ---- tables of any kind --------------------------------------------------------------------------


def n_rows(X: Any) -> int:
    """Rows of any container."""
    if isinstance(X, dict | list):
        return n_rows(next(iter(X.values() if isinstance(X, dict) else X)))
    return int(X.shape[0])


def rows(X: Any, part: slice) -> Any:
    """Some rows of any container."""
    if isinstance(X, dict):
        return {name: rows(block, part) for name, block in X.items()}
    if isinstance(X, list):
        return [rows(block, part) for block in X]
    return X.iloc[part] if isinstance(X, pd.DataFrame) else X[part]


def arrays_of(X: Any, name: str) -> Arrays:
    """Any container as plain arrays of numbers or text, by name."""
    if isinstance(X, Mapping):
        parts = [arrays_of(block, f"{name}.{key}") for key, block in X.items()]
        return {key: array for part in parts for key, array in part.items()}
    if isinstance(X, list):
        return arrays_of(dict(enumerate(X)), name)
    if isinstance(X, pd.DataFrame):
        return arrays_of({key: X[key].to_numpy(dtype=object) for key in X}, name)
    if sparse.issparse(X):
        found = sparse.csr_array(X)
        return {f"{name}.{key}": getattr(found, key) for key in ("data", "indices", "indptr")}
    return {name: _plain(np.ma.filled(X, -1) if np.ma.isMaskedArray(X) else np.asarray(X))}


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers where all are, else text."""
    if array.dtype.kind != "O":
        return array
    flat = [np.nan if value is pd.NA else value for value in array.ravel().tolist()]
    if all(isinstance(value, int | float | np.number) for value in flat):
        return np.asarray(flat, dtype=np.float64).reshape(array.shape)
    return np.asarray([str(value) for value in flat]).reshape(array.shape)


def digest(X: Any) -> str:
    """A short text that is another one for other data."""
    found = hashlib.sha256()
    for name, array in sorted(arrays_of(X, "X").items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def with_holes(X: Any) -> Any:
    """Rows of which some values are taken out, where their container can say so."""
    if isinstance(X, pd.DataFrame):
        holes = np.random.default_rng(0).random(X.shape) < 0.2
        return X.astype(object).mask(holes)
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and not np.ma.isMaskedArray(X):
        holes = np.random.default_rng(0).random(X.shape) < 0.2
        return np.where(holes, np.nan, X)
    return X


# ---- answers -------------------------------------------------------------------------------------


def answers_of(model: Any, given: Task) -> Arrays:
    """All that is recorded of a model, as `part/name`."""
    found = {**_of_tree(model), **_of_report(model)}
    facts = {"data": digest(given.X), "families": model.families_}
    if hasattr(model, "model_"):
        found |= _parameters(model)
        found |= {f"answers/{k}": a for k, a in _asked(model, given).items()}
        facts |= {"feature_names_out": model.get_feature_names_out().tolist()}
        facts |= {"n_parameters": model.model_.n_parameters, "n_iter": model.n_iter_}
    facts |= {"newick": _rounded(model.to_newick()), "drawing": model.tree_.draw()}
    if hasattr(model, "distances_"):
        found["answers/distances"] = np.asarray(model.distances_.values)
    return found | {f"facts/{name}": _text(fact) for name, fact in facts.items()}


def _text(fact: Any) -> NDArray[Any]:
    """A fact as text that a file can hold."""
    return np.asarray(json.dumps(fact, default=_listed))


def _rounded(text: str) -> str:
    """Text whose numbers are rounded: they are compared elsewhere."""
    return re.sub(r"\d+\.\d+(e-?\d+)?", lambda number: f"{float(number[0]):.6f}", text)


def _listed(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else str(value)


def _of_tree(model: Any) -> Arrays:
    tree = model.tree_
    names = np.asarray(tree.names, dtype=str)
    return {
        "tree/names": names,
        "tree/n_observed": np.asarray(tree.n_observed),
        "tree/edges": np.asarray(tree.edges).reshape(-1, 2),
        "lengths/lengths": np.asarray(tree.lengths),
        "support/support": np.asarray(model.diagnostics_.support),
    }


UNREPEATABLE = ("stage_seconds", "peak_memory", "support")
"""What a report says that other runs do not, and what is recorded elsewhere."""

BYTES = re.compile(r"[\d.,]+ (bytes|[KMG]iB)")


def _of_report(model: Any) -> Arrays:
    """What the fit says about itself: numbers as answers, everything else as facts."""
    found = {}
    for name, value in vars(model.diagnostics_).items():
        if name in UNREPEATABLE:
            continue
        if name == "messages":
            value = [BYTES.sub("some bytes", sentence) for sentence in value]
        numbers = _numbers(value)
        if numbers is None:
            found[f"facts/{name}"] = _text(value)
        else:
            found[f"answers/{name}"] = numbers
    return found


def _numbers(value: Any) -> NDArray[np.float64] | None:
    """Real numbers as an array; None for what is none."""
    if isinstance(value, np.ndarray) and value.dtype.names:
        return np.stack([np.asarray(value[name], dtype=np.float64) for name in value.dtype.names])
    is_float = isinstance(value, float) or (
        isinstance(value, list) and any(isinstance(x, float) for x in value)
    )
    if is_float or (isinstance(value, np.ndarray) and value.dtype.kind == "f"):
        return np.asarray(value, dtype=np.float64)
    return None


def _parameters(model: Any) -> Arrays:
    """All numbers of a model: what `save` writes, and the distributions of all nodes and edges."""
    tree = model.tree_
    found = {f"parameters/{name}": array for name, array in _saved(model).items()}
    names = [str(name) for name in tree.names]
    single = [model.marginal(name) for name in names]
    pairs = [model.conditional(names[a], given=names[b]) for a, b in tree.edges.tolist()]
    return found | {"parameters/marginals": _joined(single), "parameters/edges": _joined(pairs)}


def _joined(parts: Iterable[Any]) -> NDArray[np.float64]:
    return np.concatenate([np.zeros(0), *(np.ravel(part) for part in parts)])


def _saved(model: Any) -> Arrays:
    """The arrays of a saved model, and what it says of all nodes when it is read again."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ltree"
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            packed = [name for name in archive.namelist() if name.endswith(".npz")]
            contents = [archive.read(name) for name in packed]
        again = lt.load(path)
    found: Arrays = {}
    for content in contents:
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            found |= {f"saved {name}": arrays[name] for name in arrays.files}
    read = [again.marginal(name) for name in map(str, again.tree_.names)]
    return found | {"loaded marginals": _joined(read)}


def _asked(model: Any, given: Task) -> Arrays:
    """Answers to questions about the rows that the model was learned from."""
    few, more = rows(given.X, slice(ASKED)), rows(given.X, slice(KNOWN))
    weights = given.weights
    found = {
        "score": np.asarray(model.score(given.X, sample_weight=weights)),
        "bic": np.asarray(model.bic(given.X, sample_weight=weights)),
        "likelihoods": model.score_samples(more),
        "hidden": model.transform(few),
        "states": model.predict(few),
        "joint states": model.predict(few, joint=True),
    }
    known = ("categorical", "ordinal", "binary", "presence")
    coded = [name for name, family in model.families_.items() if family in known]
    if coded:
        found["probabilities"] = model.predict_proba(few, query=coded[0])
    drawn, hidden = model.sample(30, random_state=1)
    holes = with_holes(rows(given.X, slice(30)))
    found |= {"drawn hidden": hidden} | arrays_of(drawn, "drawn")
    found |= arrays_of(model.impute(holes), "filled")
    found |= arrays_of(model.impute(holes, method="sample", random_state=2), "drawn gaps")
    states = given.options.get("hidden") != "gaussian"
    return found | _recalled(model, coded) if states else found


def _recalled(model: Any, coded: Sequence[str]) -> Arrays:
    """Answers to records: what a label, and a hidden state, say of other variables."""
    found: Arrays = {}
    if coded:
        label = model.classes_of(coded[0])[0]
        found |= arrays_of(model.impute({coded[0]: label}), "expected")
    hidden = list(model.tree_.hidden_names)
    others = [*hidden[1:6], *coded[:5]]
    if hidden and others:
        certain, weighed = {hidden[0]: 0}, {hidden[0]: {0: 0.3, 1: 0.7}}
        found |= arrays_of(model.predict_proba(certain, query=others), "given state")
        found |= arrays_of(model.predict_proba(weighed, query=others), "given weights")
    return found


WIDTH = max(map(len, TASKS))
"""Letters of the longest name."""


# ---- recording -----------------------------------------------------------------------------------


def record(path: Path, names: Sequence[str], repeat: int) -> int:
    """Fit the data sets, write their answers; the number of those that failed."""
    found: Arrays = {}
    failed = []
    start = time.perf_counter()
    print(f"latenttree of {source()}", flush=True)
    for name in names:
        try:
            answers, seconds = recorded(name, repeat)
        except Exception as error:  # told, and recorded: it may be the same on the other side
            answers, seconds = {"facts/error": _text(f"{type(error).__name__}: {error}")}, np.nan
            failed.append(name)
            print(f"{name:{WIDTH}}  {type(error).__name__}: {str(error)[:200]}", flush=True)
        else:
            print(f"{name:{WIDTH}} {seconds:8.2f} s", flush=True)
        found |= {f"{name}/{key}": array for key, array in answers.items()}
        found[f"{name}/seconds"] = np.asarray(seconds)
    everything: dict[str, Any] = {SOURCE: np.asarray(source()), **found}
    np.savez_compressed(path, **everything)
    total = np.nansum([found[f"{name}/seconds"] for name in names])
    spent = time.perf_counter() - start
    print(f"{len(names)} data sets in {spent:.0f} s, fits {total:.0f} s; {len(failed)} failed")
    return len(failed)


SOURCE = "source"
"""Under this name a record says what was recorded."""


def source() -> str:
    """The folder of the package at work, and a digest of its files."""
    folder = Path(lt.__file__).parent
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        found.update(str(path.relative_to(folder)).encode() + path.read_bytes())
    return f"{folder} ({found.hexdigest()[:12]})"


def recorded(name: str, repeat: int) -> tuple[Arrays, float]:
    """Answers of a data set, and the fewest seconds of its fits."""
    seed = seed_of(name)
    given = TASKS[name](seed)
    with tempfile.TemporaryDirectory() as folder:
        fits = [learned(given, seed, Path(folder)) for _ in range(repeat)]
        return answers_of(fits[-1][0], given), min(seconds for _, seconds in fits)


# ---- comparing -----------------------------------------------------------------------------------


class Compared(NamedTuple):
    """What differs between two records of a data set: largest differences, names of facts."""

    tree: str
    parameters: float
    support: float
    lengths: float
    answers: float
    facts: list[str]
    seconds: tuple[float, float]

    @property
    def same(self) -> bool:
        """Whether nothing differs beyond the tolerance."""
        numbers = (self.parameters, self.support, self.lengths, self.answers)
        return self.tree == "same" and not self.facts and max(numbers) <= TOLERANCE


def compared(before: Arrays, after: Arrays, ignored: Sequence[str]) -> Compared:
    """Two records of a data set."""
    numbers = {
        part: max(_differences(before, after, part, ignored).values(), default=0.0)
        for part in ("parameters", "support", "lengths")
    }
    answers = _differences(before, after, "answers", ignored, relative=True)
    facts = [key for key, size in _differences(before, after, "facts", ignored).items() if size]
    facts += [key for key, size in answers.items() if size > TOLERANCE]
    seconds = float(before["seconds"]), float(after["seconds"])
    largest = max(answers.values(), default=0.0)
    return Compared(_tree(before, after), **numbers, answers=largest, facts=facts, seconds=seconds)


def _tree(before: Arrays, after: Arrays) -> str:
    """Whether two trees are the same; else by how many splits they differ."""
    if "tree/names" not in before or "tree/names" not in after:
        return "failed"
    if not max(_differences(before, after, "tree", ()).values()):
        return "same"
    one, other = (
        lt.Tree(
            tuple(found["tree/names"].tolist()),
            int(found["tree/n_observed"]),
            found["tree/edges"],
            found["lengths/lengths"],
        )
        for found in (before, after)
    )
    if one.observed_names != other.observed_names:
        return "columns"
    return f"{lt.metrics.robinson_foulds(one, other):g} splits"


def _differences(
    before: Arrays, after: Arrays, part: str, ignored: Sequence[str], relative: bool = False
) -> dict[str, float]:
    """The largest difference of each array of a part; infinite where one cannot be taken."""
    keys = [key for key in dict.fromkeys([*before, *after]) if key.startswith(part + "/")]
    found = {}
    for key in keys:
        name = key.removeprefix(part + "/")
        if name not in ignored:
            found[name] = difference(before.get(key), after.get(key), relative)
    return found


def difference(a: NDArray[Any] | None, b: NDArray[Any] | None, relative: bool = False) -> float:
    """Largest difference of two arrays, 0 where both have the same infinity or no number."""
    if a is None or b is None or a.shape != b.shape:
        return np.inf
    if a.dtype.kind not in "biuf" or b.dtype.kind not in "biuf":
        return 0.0 if np.array_equal(a, b) else np.inf
    x, y = a.astype(np.float64), b.astype(np.float64)
    apart = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    x, y = x[apart], y[apart]
    if not (np.isfinite(x) & np.isfinite(y)).all():
        return np.inf
    size = np.maximum(1.0, np.abs(x)) if relative else 1.0
    return float((np.abs(x - y) / size).max(initial=0.0))


def loaded(path: Path) -> dict[str, Arrays]:
    """What a file has recorded, by data set; prints whose answers they are."""
    found: dict[str, Arrays] = {}
    with np.load(path, allow_pickle=False) as file:
        print(f"{path}: {file[SOURCE]}")
        for key in file.files:
            if key == SOURCE:
                continue
            name, rest = key.split("/", 1)
            found.setdefault(name, {})[rest] = file[key]
    return found


HEADER = (
    f"{'data set':{WIDTH}} {'tree':>10} {'parameters':>10} {'supports':>9} {'lengths':>9} "
    f"{'answers':>9} {'before s':>9} {'after s':>9}  other"
)


def line(name: str, found: Compared) -> str:
    """A data set for people."""
    numbers = (found.parameters, found.support, found.lengths, found.answers)
    shown = ["0" if x == 0 else f"{x:.1e}" for x in numbers]
    return (
        f"{name:{WIDTH}} {found.tree:>10} {shown[0]:>10} {shown[1]:>9} {shown[2]:>9} {shown[3]:>9} "
        f"{found.seconds[0]:9.2f} {found.seconds[1]:9.2f}  {', '.join(found.facts)}"
    )


def compare(
    before: dict[str, Arrays], after: dict[str, Arrays], asked: Sequence[str], ignored: list[str]
) -> int:
    """Print what differs; the number of data sets that do."""
    names = list(chosen(dict.fromkeys([*before, *after]), asked))
    if not names:
        print("there is nothing to compare")
        return 1
    both = [name for name in names if name in before and name in after]
    print(HEADER)
    found = {name: compared(before[name], after[name], ignored) for name in both}
    for name in names:
        if name in found:
            print(line(name, found[name]))
        else:
            print(f"{name:{WIDTH}} {'absent':>10}  in {'after' if name in before else 'before'}")
    return _summary(found, len(names) - len(both))


def _summary(found: Mapping[str, Compared], n_absent: int) -> int:
    differing = [name for name, result in found.items() if not result.same]
    trees = sum(result.tree != "same" for result in found.values())
    largest = {
        part: max((getattr(result, part) for result in found.values()), default=0.0)
        for part in ("parameters", "support", "lengths", "answers")
    }
    old, new = (
        np.nansum([result.seconds[i] for result in found.values()], dtype=float) for i in (0, 1)
    )
    print(
        f"\n{len(found)} data sets: {trees} trees differ; largest differences "
        + ", ".join(f"{part} {size:.1e}" for part, size in largest.items())
        + f"; fits {old:.1f} s before, {new:.1f} s after"
    )
    if n_absent:
        print(f"{n_absent} data sets are in one of the files only")
    print(f"DIFFERENT: {', '.join(differing)}" if differing else "the same answers everywhere")
    return len(differing) + n_absent


# ---- command line --------------------------------------------------------------------------------


def chosen(names: Iterable[str], patterns: Sequence[str]) -> Iterator[str]:
    """Names that one of the patterns fits; all where there is none."""
    return (
        name
        for name in names
        if not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
    )


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="names of the data sets")
    recording = commands.add_parser("record", help="fit the data sets, write their answers")
    recording.add_argument("file", type=Path, metavar="FILE.npz")
    recording.add_argument("--repeat", type=int, default=1, help="fits of each; the fastest counts")
    comparing = commands.add_parser("compare", help="print what differs between two records")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument(
        "--ignore", nargs="+", default=[], metavar="WHAT", help="what may differ, as messages"
    )
    for command in (recording, comparing):
        command.add_argument("--only", nargs="+", default=[], metavar="NAME")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Status 1 where something failed or differs."""
    args = parsed(arguments)
    if args.command == "list":
        print("\n".join(TASKS))
        return 0
    if args.command == "compare":
        return int(compare(loaded(args.before), loaded(args.after), args.only, args.ignore) > 0)
    names = list(chosen(TASKS, args.only))
    if not names:
        print(f"no data set is named {' or '.join(args.only)}; see list", file=sys.stderr)
        return 2
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what they say is among the messages
        return int(record(args.file, names, max(1, args.repeat)) > 0)


if __name__ == "__main__":
    sys.exit(main())
