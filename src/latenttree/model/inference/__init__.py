"""Exact inference on a tree model, batched over samples: belief propagation and what follows.

Samples go through the tree in lanes of `LANE` at a time (`kernels`): the tree is walked once up and
once down for a whole lane, and every step is a short loop over the samples of the lane.
Probabilities are scaled, never logarithms; products keep an exponent for every state, so nothing
underflows, however many children a node has. Sparse binary samples are processed one by one,
through the nodes above their ones alone (`sparse_kernels`). Read `queries.py` first.
"""

from latenttree.model.inference.evidence import Evidence
from latenttree.model.inference.queries import (
    Posteriors,
    counts_and_posteriors,
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
    "counts_and_posteriors",
    "expected_counts",
    "log_likelihood",
    "messages",
    "most_probable",
    "pairwise",
    "posteriors",
    "sample",
]
