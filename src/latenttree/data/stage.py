"""The stage `read`: any input -> a `Table`, in an order that its content alone decides."""

from __future__ import annotations

import warnings
from typing import Any

from latenttree.config import FitConfig
from latenttree.data.checks import check_identifiers
from latenttree.data.content_order import in_content_order
from latenttree.data.inputs import as_table
from latenttree.data.table import Table
from latenttree.engine.memory import give_back_freed, reserving
from latenttree.errors import Caution, DataWarning


def read(X: Any, sample_weight: Any, config: FitConfig, reserved: int = 0) -> Table:
    """The table of an input, checked; `reserved` are bytes that later stages need beside it.
    Columns that are read in a surprising way are a `DataWarning`."""
    with config.progress.stage("reading"), reserving(reserved):
        table = as_table(
            X,
            groups=config.groups,
            names=config.names,
            drop_constant=config.drop_constant,
            family=config.family,
            sample_weight=sample_weight,
            scores=config.gaussian,
            memory_limit=config.memory_limit,
        )
        check_identifiers(table)
        for note in table.notes:
            if isinstance(note, Caution):
                warnings.warn(DataWarning(note), stacklevel=3)
        table = in_content_order(table)
    give_back_freed()
    return table
