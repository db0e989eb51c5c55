"""Families, whole and with gaps; trees of several shapes; few and many samples; real data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn import datasets as real

from benchmarks.answers.made import (
    doubtful,
    grouped,
    simulated,
)
from benchmarks.answers.tasks import Maker, Task, add, task

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
