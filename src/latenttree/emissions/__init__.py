"""Families of observed variables: how a value speaks about the state of its hidden neighbour.

One family, one file. Inference asks a family for the likelihood of values in each state and takes
it as soft evidence on the neighbour, so a family needs to know nothing about trees; learning gives
it posteriors of the neighbour's states and takes back sums that add over samples. Categorical
variables are also tables of the model itself, where kernels look likelihoods up row by row.
"""

from latenttree.emissions.bernoulli import Bernoulli
from latenttree.emissions.categorical import Categorical
from latenttree.emissions.choose import pooled, restored
from latenttree.emissions.full_gaussian import FullGaussian
from latenttree.emissions.gaussian import Gaussian
from latenttree.emissions.interface import Emission, soft_evidence, sums_of, target_of
from latenttree.emissions.multihot import MultiHot, from_many_sums
from latenttree.emissions.multinomial import Multinomial
from latenttree.emissions.poisson import Poisson

__all__ = [
    "Bernoulli",
    "Categorical",
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
