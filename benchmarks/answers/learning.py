"""Fits of the data sets."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import latenttree as lt
from benchmarks.answers.containers import n_rows, rows, written
from benchmarks.answers.tasks import Task

STEP, FREED = 1 << 20, 1 << 27
"""Bytes between the limits of memory that are tried, to find the least that is accepted; bytes that
a process may hold though it has freed them."""


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
