"""Questions to a fitted model in the words of its data: labels in, labels and probabilities out."""

from latenttree.queries.answers import Answers, TreeAnswers, answers_of
from latenttree.queries.evidence import Asked, check_possible, no_evidence, read_samples
from latenttree.queries.filling import Filled
from latenttree.queries.mixin import Queries, as_generator
from latenttree.queries.nodes import classes_of, hidden_names_out, node_index, node_indices

__all__ = [
    "Answers",
    "Asked",
    "Filled",
    "Queries",
    "TreeAnswers",
    "answers_of",
    "as_generator",
    "check_possible",
    "classes_of",
    "hidden_names_out",
    "no_evidence",
    "node_index",
    "node_indices",
    "read_samples",
]
