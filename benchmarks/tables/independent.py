"""Independent columns: nothing from nothing."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.grids import LABEL, N_RUNS, Column, mean, values
from benchmarks.registry import Table
from benchmarks.runs import Run, run_cases
from benchmarks.settings import Settings
from benchmarks.stages import timed_fit

ABOUT = """Tables whose columns are independent: coins, five categories, Gaussian numbers (Gaussian
tree). Hidden nodes: target a mean below 0.1. Supported: inner edges of support above 0; target 0.
Gain: held-out log-likelihood of a sample, on as many new samples, less that of the true marginal
distributions' estimates from the same training samples; target 0 or more, up to the noise of a pair
that stands out once in twenty tables."""


class Noise(NamedTuple):
    """A row."""

    kind: str
    p: int
    n: int

    @property
    def label(self) -> str:
        """All of it."""
        return f"{self.kind}, {self.n:,} x {self.p:,}"


KINDS = ("binary", "five categories", "gaussian")


def measure(settings: Settings) -> dict[str, Any]:
    """All rows."""
    cases = [Noise(kind, p, n) for kind in KINDS for p in (20, 60) for n in (500, 2000)]
    cases.append(Noise("binary", 2000, 50))
    rows = run_cases(fit, cases, settings, 8, quick_seeds=1, in_processes=True)
    return {"rows": rows}


def draw(case: Noise, n: int, rng: np.random.Generator) -> NDArray[Any]:
    """Samples `(n, p)`."""
    if case.kind == "gaussian":
        return rng.normal(size=(n, case.p))
    return rng.integers(0, 2 if case.kind == "binary" else 5, (n, case.p))


def fit(case: Noise, seed: int) -> Run:
    """One table."""
    rng = np.random.default_rng([seed, case.p, case.n])
    X, Y = draw(case, case.n, rng), draw(case, case.n, rng)
    hidden = "gaussian" if case.kind == "gaussian" else "categorical"
    model, seconds = timed_fit(X, seed=seed, hidden=hidden)
    inner = model.tree_.internal_edges()
    return {
        "hidden": model.tree_.n_hidden,
        "supported": int((model.diagnostics_.support[inner] > 0).sum()),
        "gain": float(model.score(Y)) - apart(X, Y, case.kind),
        "seconds": seconds,
    }


def apart(X: NDArray[Any], Y: NDArray[Any], kind: str) -> float:
    """Mean log-likelihood of Y by the marginal distributions of X: their shares, as those that
    are compared with. A level without any has one pseudo-sample."""
    if kind == "gaussian":
        variance = X.var(axis=0)
        square = (Y - X.mean(axis=0)) ** 2
        return float((-0.5 * np.log(2 * np.pi * variance) - 0.5 * square / variance).sum(1).mean())
    d = int(X.max()) + 1
    total = 0.0
    for x, y in zip(X.T, Y.T, strict=True):
        counts = np.bincount(x, minlength=d).astype(float)
        share = counts / len(x) if counts.all() else (counts + 1 / d) / (len(x) + 1)
        total += float(np.log(share[y]).mean())
    return total


COLUMNS = (
    LABEL._replace(heading="columns"),
    N_RUNS,
    Column("hidden nodes", mean("hidden", 3)),
    Column("supported", mean("supported", 3)),
    Column("gain", mean("gain", 4)),
    Column("lowest", lambda row: f"{values(row, 'gain').min():.4f}"),
    Column("s", mean("seconds", 1)),
)


TABLES = (
    Table(
        name="independent",
        shows="104 tables of independent columns: hidden nodes, supports, held-out likelihood",
        duration="10 min",
        title="Independent columns",
        about=ABOUT,
        measure=measure,
        columns=COLUMNS,
    ),
)
