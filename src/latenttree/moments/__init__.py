"""What learning needs from the data: sums over samples, found in passes over chunks."""

from latenttree.moments.gram import gram
from latenttree.moments.projection import project
from latenttree.moments.subspace import Subspaces, full_subspaces, pooled_subspaces

__all__ = ["Subspaces", "full_subspaces", "gram", "pooled_subspaces", "project"]
