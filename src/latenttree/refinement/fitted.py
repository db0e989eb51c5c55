"""`Fitted`: a refined model and the evidence behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.tree_model import TreeModel

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model and the evidence behind it, hidden nodes in the order of the tree.

    Attributes
    ----------
    condition : (n_hidden,) factor by which errors of the moments are amplified at a hidden node.
    effective_samples : (n_hidden,) effective number of samples in which a hidden node is observed,
        see `evidence.effective_samples`; NaN after a rough refinement.
    trace : penalised log-likelihood before each step of EM; never decreasing.
    held_out : log-likelihood of held-out samples before each step.
    converged : whether EM ended by its tolerance.
    rough : whether only some of the samples were used, because a search comes next.
    """

    model: TreeModel | GaussianTreeModel
    condition: Floats
    effective_samples: Floats
    trace: list[float] = field(default_factory=list)
    held_out: list[float] = field(default_factory=list)
    converged: bool = True
    rough: bool = False
