"""Missing values of samples, filled given the rest of each sample."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data.schema.decode import Known
from latenttree.data.schema.schema import Schema
from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.model.inference import Evidence
from latenttree.model.tree_model import TreeModel
from latenttree.queries.evidence import (
    SampleEvidence,
    check_possible,
    joint_evidence,
    sample_ranges,
)

ROUNDING = 1e-12  # by which a sum of halves may fall short of 1/2


@dataclass(frozen=True, eq=False)
class MissingCells:
    """The distributions of the missing values of one variable.

    Attributes
    ----------
    rows : (m,) the samples in which it is missing, from 0, in increasing order.
    classes : (d,) labels of a variable that has categories, in the order of the columns of
        `proba`; else None.
    proba : (m, d) probabilities of the labels, as `predict_proba` gives them; None of numbers.
    mean, std : (m,) expectation and standard deviation of a number; (m, d) of a vector, where a
        coordinate that is known has its value and 0; None of categories."""

    rows: Ints
    classes: NDArray[Any] | None = None
    proba: Floats | None = None
    mean: Floats | None = None
    std: Floats | None = None

    def __len__(self) -> int:
        return len(self.rows)


class Filled(NamedTuple):
    """Samples without gaps: `(n, p)` codes, and values of variables that are not categorical."""

    codes: NDArray[Any]
    arrays: Mapping[int, Any]


def fill_by_modes(
    model: TreeModel, evidence: SampleEvidence, n_jobs: int = 1, ordinal: Collection[int] = ()
) -> Filled:
    """The most probable category in each gap by itself, the median of variables that are `ordinal`,
    the expectation of variables that are not categorical."""
    gaps = Gaps(model, evidence)
    for chosen, posterior in gaps.posteriors(n_jobs):
        gaps.put_modes(chosen, posterior, ordinal)
    return gaps.filled()


def fill_with_distributions(
    model: TreeModel, evidence: SampleEvidence, n_jobs: int = 1, ordinal: Collection[int] = ()
) -> tuple[Filled, dict[int, MissingCells]]:
    """`fill_by_modes`, and by variable the distributions of its gaps, in one pass over the samples.

    Memory: what is returned, one number for each label of each gap."""
    gaps = Gaps(model, evidence)
    parts: dict[int, list[MissingCells]] = {
        v: [] for v in (*gaps.columns.tolist(), *gaps.emissions)
    }
    for chosen, posterior in gaps.posteriors(n_jobs):
        for v, cells in gaps.distributions(chosen, posterior):
            parts[v].append(cells)
        gaps.put_modes(chosen, posterior, ordinal)
    return gaps.filled(), {v: joined_cells(parts[v]) for v in sorted(parts)}


def joined_cells(parts: Sequence[MissingCells]) -> MissingCells:
    """The distributions of several ranges of samples as one."""
    names = ("rows", "proba", "mean", "std")
    columns = {name: [getattr(part, name) for part in parts] for name in names}
    found = {name: np.concatenate(x) for name, x in columns.items() if x[0] is not None}
    return MissingCells(classes=parts[0].classes, **found)


def modes(posterior: Floats) -> Ints:
    """(n,) the most probable category of `(n, d)` probabilities; ties go to the lower one."""
    return np.asarray(posterior.argmax(axis=1))


def medians(posterior: Floats) -> Ints:
    """(n,) the first category at which half of the probability is reached: no other has a smaller
    expected distance in ranks from the truth."""
    reached = posterior.cumsum(axis=1)
    half = (0.5 - ROUNDING) * reached[:, -1:]
    return np.asarray((reached >= half).argmax(axis=1))


def fill_by_draws(
    model: TreeModel, evidence: SampleEvidence, rng: np.random.Generator, n_jobs: int = 1
) -> Filled:
    """All the gaps of a sample drawn together.

    First all categories and states, then the numbers that depend on them, so that draws do not
    depend on the ranges that samples are read in.
    """
    gaps = Gaps(model, evidence)
    states = np.empty((len(gaps.rows), len(gaps.parents)), dtype=np.int32)
    for start, stop in sample_ranges(len(gaps.rows), 2 * model.tree.n_nodes):
        chosen = gaps.rows[start:stop]
        known = gaps.evidence(chosen)
        check_possible(model.log_likelihood(known, n_jobs), chosen)
        drawn = model.sample(len(chosen), rng, known)
        states[start:stop] = drawn[:, gaps.parents]
        for v in gaps.columns.tolist():
            gaps.put_codes(v, chosen, drawn[:, v])
    for v, emission in gaps.emissions.items():
        at = gaps.numbers_of(v, gaps.rows)
        own = states[at, gaps.parents.index(int(model.parents[v]))]
        gaps.put_numbers(v, gaps.rows[at], emission.sample(own, rng))
    return gaps.filled()


class Gaps:
    """Samples that are filled in place.

    Attributes
    ----------
    rows : samples with a gap.
    columns : categorical variables with a gap.
    emissions : of the other variables with a gap.
    parents : nodes that those depend on.
    """

    def __init__(self, model: TreeModel, evidence: SampleEvidence) -> None:
        self.model, self.soft, rows = model, evidence.soft, evidence.rows
        self.codes = rows.take(0, rows.n_samples).copy()
        self.arrays = dict(rows.arrays)
        self._coded = self.codes < 0
        self._coded[:, list(model.emissions)] = False
        self._numbers: dict[int, Bools] = {}
        some = self._coded.any(axis=1)
        for v, values in sorted(rows.arrays.items()):
            if not sparse.issparse(values) and np.isnan(values).any():
                self._numbers[v], self.arrays[v] = np.isnan(values), values.copy()
                some |= _any(self._numbers[v])
        self.rows: Ints = np.flatnonzero(some)
        self.columns: Ints = np.flatnonzero(self._coded.any(axis=0))
        self.emissions = {v: model.emissions[v] for v in self._numbers}
        self.parents = sorted({int(model.parents[v]) for v in self._numbers})

    def posteriors(self, n_jobs: int) -> Iterator[tuple[Ints, dict[int, Floats]]]:
        """Ranges of the samples with a gap, and the posteriors of the variables and parents that
        their gaps need, by node."""
        model, nodes = self.model, [*self.columns.tolist(), *self.parents]
        for start, stop in sample_ranges(len(self.rows), int(model.dims[nodes].sum())):
            chosen = self.rows[start:stop]
            posteriors = model.posteriors(self.evidence(chosen), nodes, n_jobs)
            check_possible(posteriors.log_likelihood, chosen)
            yield chosen, dict(zip(nodes, posteriors.values, strict=True))

    def put_modes(
        self, chosen: Ints, posterior: Mapping[int, Floats], ordinal: Collection[int]
    ) -> None:
        """Fill the gaps of the chosen samples, see `fill_by_modes`."""
        for v in self.columns.tolist():
            best = medians if v in ordinal else modes
            self.put_codes(v, chosen, best(posterior[v]))
        for v, emission in self.emissions.items():
            at = self.numbers_of(v, chosen)
            parent = posterior[int(self.model.parents[v])]
            self.put_numbers(v, chosen[at], emission.impute(parent[at]))

    def distributions(
        self, chosen: Ints, posterior: Mapping[int, Floats]
    ) -> Iterator[tuple[int, MissingCells]]:
        """The distributions of the gaps of the chosen samples, by variable."""
        for v in self.columns.tolist():
            at = np.flatnonzero(self._coded[chosen, v])
            yield v, MissingCells(chosen[at], proba=posterior[v][at])
        for v, emission in self.emissions.items():
            at = self.numbers_of(v, chosen)
            mean, std = emission.moments(posterior[int(self.model.parents[v])][at])
            rows = chosen[at]
            yield v, cells_of_numbers(rows, self.arrays[v][rows], mean, std)

    def evidence(self, chosen: Ints) -> Evidence:
        """What is known of the chosen samples."""
        arrays = {v: values[chosen] for v, values in self.arrays.items()}
        soft = {v: weights[chosen] for v, weights in self.soft.items()}
        return joint_evidence(self.model, self.codes[chosen], arrays, soft)

    def numbers_of(self, v: int, chosen: Ints) -> Ints:
        """Which of the chosen samples have a gap in variable `v`."""
        return np.flatnonzero(_any(self._numbers[v][chosen]))

    def put_codes(self, v: int, chosen: Ints, codes: NDArray[Any]) -> None:
        """Write `codes`, one for each chosen sample, into the gaps of variable `v`."""
        at = self._coded[chosen, v]
        self.codes[chosen[at], v] = codes[at]

    def put_numbers(self, v: int, chosen: Ints, values: Any) -> None:
        """Write `values`, one for each chosen sample, into the gaps of variable `v`."""
        dense = values.toarray() if sparse.issparse(values) else values
        known = self.arrays[v][chosen]
        self.arrays[v][chosen] = np.where(self._numbers[v][chosen], dense, known)

    def filled(self) -> Filled:
        """The samples, without gaps once all of them are put."""
        return Filled(self.codes, self.arrays)


def cells_of_numbers(rows: Ints, values: Floats, mean: Floats, std: Floats) -> MissingCells:
    """The cells of numbers `values`, (m,) or (m, d), NaN where missing, given the `(m, d)` moments
    of every coordinate."""
    mean, std = mean.reshape(values.shape), std.reshape(values.shape)
    gaps = np.isnan(values)
    return MissingCells(rows, mean=np.where(gaps, mean, values), std=np.where(gaps, std, 0.0))


def _any(mask: Bools) -> Bools:
    """(n,) whether a sample is marked, in any coordinate."""
    return mask if mask.ndim == 1 else np.asarray(mask.any(axis=1))


# --- records -------------------------------------------------------------------------


def filled_records(schema: Schema, filled: Filled) -> list[dict[str, Any]]:
    """Samples without gaps, each as a dict from variables to labels, numbers and vectors."""
    known = Known(schema, filled.codes, filled.arrays)
    values = [known.values(v) for v in range(schema.n_vars)]
    columns = [list(x) if x.ndim == 2 else x.tolist() for x in values]
    return [dict(zip(schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
