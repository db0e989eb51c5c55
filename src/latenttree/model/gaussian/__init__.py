"""Gaussian latent trees: linear Gaussian models with hidden vectors, learned and asked exactly."""

from latenttree.model.gaussian.fitting import FittedGaussian, fit_gaussian
from latenttree.model.gaussian.inference import (
    Posteriors,
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
    "FittedGaussian",
    "GaussianTreeModel",
    "Posteriors",
    "bic",
    "fit_gaussian",
    "impute",
    "log_likelihood",
    "posterior_means",
    "posteriors",
    "sample",
]
