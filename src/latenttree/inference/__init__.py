"""Exact inference on a tree model, batched over samples: belief propagation and what follows.

Samples go through the tree in lanes of `LANE` at a time (`kernels`): the tree is walked once up
and once down for a whole lane, and every step is a short loop over the samples of the lane.
Probabilities are scaled, never logarithms; products keep an exponent for every state, so nothing
underflows, however many children a node has.
"""

from latenttree.inference.evidence import Evidence
from latenttree.inference.queries import (
    Posteriors,
    expected_counts,
    log_likelihood,
    messages,
    most_probable,
    pairwise,
    posteriors,
    sample,
)

__all__ = [
    "Evidence",
    "Posteriors",
    "expected_counts",
    "log_likelihood",
    "messages",
    "most_probable",
    "pairwise",
    "posteriors",
    "sample",
]
