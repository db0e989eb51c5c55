"""Table + model -> how well a tree describes the dependence of pairs of variables.

In: the samples and the learned model. Out: a frozen `TreeFit`. `stage.py` is the entry; read
`tree_fit.py` first, the result. `scores.py` makes numbers of all families, `observed.py` adds up
their moments over samples, `indices.py` has the textbook indices, `nodes.py` the pairs around
hidden nodes; what a model implies is in `model/pair_moments.py`.
"""

from latenttree.goodness_of_fit.tree_fit import MisfitPair, TreeFit

__all__ = ["MisfitPair", "TreeFit"]
