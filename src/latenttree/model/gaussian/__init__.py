"""Gaussian latent trees: linear Gaussian models with hidden vectors, and exact inference.

`model` is `GaussianTreeModel`, a `distribution` that answers for samples with missing values, by
`propagation` over blocks of samples (`rows`) in the order of a `layout`; `gauge` fixes the scale
and rotation of hidden vectors. They are estimated in `parameters.gaussian` and
`refinement.gaussian`.
"""

from latenttree.model.gaussian.distribution import MAX_FULL
from latenttree.model.gaussian.model import GaussianPosteriors, GaussianTreeModel

__all__ = ["MAX_FULL", "GaussianPosteriors", "GaussianTreeModel"]
