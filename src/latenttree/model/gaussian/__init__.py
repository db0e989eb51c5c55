"""Gaussian latent trees: linear Gaussian models with hidden vectors, and exact inference.

`model` is `GaussianTreeModel`; `gauge` fixes the scale and rotation of hidden vectors; `inference`
answers for samples with missing values, by `propagation` over blocks of samples (`rows`) in the
order of a `layout`. They are estimated in `parameters.gaussian` and `refinement.gaussian`.
"""

from latenttree.model.gaussian.inference import (
    GaussianPosteriors,
    bic,
    impute,
    log_likelihood,
    posterior_means,
    posteriors,
    sample,
)
from latenttree.model.gaussian.model import MAX_FULL, GaussianTreeModel

__all__ = [
    "MAX_FULL",
    "GaussianPosteriors",
    "GaussianTreeModel",
    "bic",
    "impute",
    "log_likelihood",
    "posterior_means",
    "posteriors",
    "sample",
]
