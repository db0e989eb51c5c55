"""Answers of a Gaussian tree, whose hidden nodes are numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from latenttree import gaussian
from latenttree.data import Schema
from latenttree.data.schema import Rows
from latenttree.errors import DataError
from latenttree.queries.asked import Asked, spans
from latenttree.queries.filling import Filled

if TYPE_CHECKING:
    from latenttree.gaussian import GaussianTreeModel

Floats = NDArray[np.float64]


class GaussianAnswers:
    """Every variable is a vector of numbers; side by side they are the columns of one matrix, NaN
    where a value is missing."""

    def __init__(self, model: GaussianTreeModel, schema: Schema) -> None:
        self.model, self.schema = model, schema

    def names_out(self) -> NDArray[Any]:
        raise NotImplementedError
