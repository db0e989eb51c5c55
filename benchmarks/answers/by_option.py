"""Gaussian trees, numbers of states, and other options."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from benchmarks.answers.made import (
    doubtful,
    patients,
    simulated,
    with_gaps,
    words,
)
from benchmarks.answers.tasks import Maker, Task, add, task


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
