"""Refinement of a Gaussian tree by EM: `GaussianStart` in, `FittedGaussian` out.

`condensed_rows` condenses the samples, `statistics` is the E-step, `em` the M-step and the loop,
`vectors` writes parameters as a vector for extrapolation. Read `fitting.py` first.
"""

from latenttree.refinement.gaussian.fitting import FittedGaussian, refine_gaussian

__all__ = ["FittedGaussian", "refine_gaussian"]
