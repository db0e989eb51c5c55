"""Queries of a fitted model in the words of its data.

In come tables or records `{name: value}` with a model and its schema; out go probabilities,
expectations, samples and filled tables in the labels of the data. Read `mixin.py` first: its
methods are those of the estimator. `evidence` and `records` read the samples, `answers` and
`gaussian` ask the two kinds of model, `filling` fills missing values.
"""

from latenttree.queries.answers import Answers, answers_of
from latenttree.queries.evidence import SampleEvidence, read_samples
from latenttree.queries.filling import Filled, MissingCells
from latenttree.queries.mixin import QueryMixin, as_generator, weighted_sum
from latenttree.queries.nodes import node_index, node_indices

__all__ = [
    "Answers",
    "Filled",
    "MissingCells",
    "QueryMixin",
    "SampleEvidence",
    "answers_of",
    "as_generator",
    "node_index",
    "node_indices",
    "read_samples",
    "weighted_sum",
]
