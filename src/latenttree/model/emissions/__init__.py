"""Families of observed variables: how a value speaks about the state of its hidden neighbour.

One family, one file. Inference asks a family for the likelihood of values in each state and takes
it as soft evidence on the neighbour, so a family needs to know nothing about trees; learning gives
it posteriors of the neighbour's states and takes back sums that add over samples. Categorical
variables have none: they are tables of the model itself, where kernels look likelihoods up.
"""

from latenttree.model.emissions.choose import pooled, restored
from latenttree.model.emissions.full_gaussian import FullGaussian
from latenttree.model.emissions.gaussian import Gaussian
from latenttree.model.emissions.interface import Emission, soft_evidence, sums_of, target_of
from latenttree.model.emissions.multihot import MultiHot, from_many_sums
from latenttree.model.emissions.multinomial import Multinomial
from latenttree.model.emissions.poisson import Poisson

__all__ = [
    "Emission",
    "FullGaussian",
    "Gaussian",
    "MultiHot",
    "Multinomial",
    "Poisson",
    "from_many_sums",
    "pooled",
    "restored",
    "soft_evidence",
    "sums_of",
    "target_of",
]
