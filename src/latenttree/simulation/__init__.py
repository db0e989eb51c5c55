"""Data with known truth: trees, parameters of every family with edges of given length, samples."""

from latenttree.simulation.channels import information_length
from latenttree.simulation.draw import LatentTreeData, make_latent_tree
from latenttree.simulation.leaves import seen_length
from latenttree.simulation.shapes import make_tree

__all__ = [
    "LatentTreeData",
    "information_length",
    "make_latent_tree",
    "make_tree",
    "seen_length",
]
