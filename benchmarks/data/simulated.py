"""Balanced categorical trees, as in the paper's synthetic table."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.bounds import Shape
from benchmarks.oracle import oracle
from benchmarks.sources import Truth
from latenttree.evaluation.datasets import make_latent_tree
from latenttree.evaluation.metrics import parameter_error
from latenttree.evaluation.simulation import LatentTreeData

TRUTH = "truth.pickle"
NO_STATES = np.empty((0, 0), dtype=np.int32)


@dataclass(frozen=True)
class Balanced:
    """Balanced 3-ary tree, all edges of information length 0.5, `d` categories.

    marginal : of the categories, "random", "uniform" or "zipf"; n_used: those that occur.
    """

    p: int
    d: int
    n_samples: int
    n_states: int = 3
    marginal: str = "random"
    n_used: int | None = None

    def sample(self, seed: int) -> LatentTreeData:
        """The data set of a seed: samples, hidden states and the model behind them."""
        return make_latent_tree(
            self.p,
            self.n_states,
            self.d,
            edge_length=0.5,
            marginal=self.marginal,  # type: ignore[arg-type]
            n_used=self.n_used,
            n_samples=self.n_samples,
            random_state=seed,
        )

    def draw(self, folder: Path, seed: int) -> None:
        """Write samples, one byte a value where that is enough, and the truth."""
        data = self.sample(seed)
        np.save(folder / "X.npy", data.X.astype(np.min_scalar_type(self.d - 1)))
        keep_truth(folder, data)

    def load(self, folder: Path) -> NDArray[Any]:
        """The samples."""
        X: NDArray[Any] = np.load(folder / "X.npy")
        return X

    def truth(self, folder: Path) -> Truth:
        """What is known about the data."""
        return kept_truth(folder)

    def shape(self, data: NDArray[Any], n_states: int) -> Shape:
        """What the lower bound depends on."""
        n, p = data.shape
        used = float(sum(len(np.unique(data[:, v])) for v in range(p)))
        written = 4.0 * used * (n_states - 1)
        return Shape(n, p, n_states - 1, data.nbytes + written, is_binary=self.d == 2)


def keep_truth(
    folder: Path,
    data: LatentTreeData,
    frequent: tuple[str, ...] = (),
    with_oracle: bool = True,
) -> None:
    """Write what is known, without the samples, and the oracle's error."""
    error = parameter_error(oracle(data), data) if with_oracle else None
    without = replace(data, X=None, hidden=NO_STATES)
    (folder / TRUTH).write_bytes(pickle.dumps(Truth(without, error, frequent)))


def kept_truth(folder: Path) -> Truth:
    """Only ever a file that this run wrote in a folder of its own."""
    truth: Truth = pickle.loads((folder / TRUTH).read_bytes())
    return truth
