"""Data with known truth: trees, parameters of every family with edges of given length, samples."""

from latenttree.evaluation.simulation.channels import information_length
from latenttree.evaluation.simulation.draw import LatentTreeData, make_latent_tree
from latenttree.evaluation.simulation.leaves import seen_length
from latenttree.evaluation.simulation.shapes import make_tree

__all__ = ["LatentTreeData", "information_length", "make_latent_tree", "make_tree", "seen_length"]
