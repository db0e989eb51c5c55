"""Expected counts under one model after another of the same tree, in one pass each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from latenttree.model.inference.evidence import Evidence
from latenttree.model.inference.queries import (
    Posteriors,
    counts_and_posteriors,
    weighted_total,
)
from latenttree.model.inference.sparse_forms import (
    LoadedModel,
    SparseLayout,
    SparsePass,
    sparse_rows,
    usable,
)
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


class Counter:
    """Counts of many samples, chunk by chunk; tables and counts lie row after row, one table after
    another, so that thousands of small ones cost as little as one.

    What depends on the tree alone is laid out once."""

    def __init__(self, model: TreeModel) -> None:
        self.model = model
        self.size = sum(t.size for t in model.cpts)
        self._layout: SparseLayout | None = None

    def under(self, flat: Floats, as_model: Callable[[], TreeModel]) -> Pass:
        """A pass over the samples under a model of this tree whose tables are `flat`; as a model
        only where that is asked for, since thousands of tables take longer than some samples."""
        return Pass(self, flat[: self.size], as_model)

    def layout(self) -> SparseLayout:
        """Where the sparse kernel finds everything."""
        if self._layout is None:
            self._layout = SparseLayout(self.model)
        return self._layout


class Pass:
    """One pass: `add` the chunks, then read `value` and `counts`."""

    def __init__(self, counter: Counter, flat: Floats, as_model: Callable[[], TreeModel]) -> None:
        self._counter, self._flat, self._as_model = counter, flat, as_model
        self._loaded: LoadedModel | None = None
        self._tried = False
        self._sparse: list[Floats] = []
        self._dense: Floats | None = None
        self.value = 0.0

    @cached_property
    def model(self) -> TreeModel:
        """The model of this pass."""
        return self._as_model()

    def add(
        self,
        evidence: Evidence,
        weights: Floats | None = None,
        nodes: Sequence[int] = (),
        n_jobs: int = 1,
    ) -> Posteriors | None:
        """Count some samples; returns the posteriors of `nodes`, where there are any."""
        w = np.ones(len(evidence)) if weights is None else weights
        if not evidence.soft and not nodes and usable(self._counter.model, evidence.codes):
            loaded = self._load()
            if loaded is not None:
                walk = SparsePass(self._counter.layout(), loaded)
                pairs, leaves, logs = walk.sums(sparse_rows(evidence.codes), w, n_jobs)
                before = self._sparse or [np.zeros_like(pairs), np.zeros_like(leaves)]
                self._sparse = [before[0] + pairs, before[1] + leaves]
                self.value += weighted_total(w, logs)
                return None
        counts, value, found = counts_and_posteriors(self.model, evidence, w, nodes, n_jobs)
        part = np.concatenate([c.ravel() for c in counts])
        self._dense = part if self._dense is None else self._dense + part
        self.value += value
        return found

    def counts(self) -> Floats:
        """Counts of all samples."""
        total = np.zeros(self._counter.size) if self._dense is None else self._dense
        if self._sparse and self._loaded is not None:
            total = total + self._counter.layout().counts(self._loaded, *self._sparse)
        return total

    def _load(self) -> LoadedModel | None:
        if not self._tried:
            self._tried, self._loaded = True, self._counter.layout().load(self._flat)
        return self._loaded
