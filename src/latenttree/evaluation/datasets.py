"""Data with known truth."""

from latenttree.evaluation.simulation import LatentTreeData, make_latent_tree

__all__ = ["LatentTreeData", "make_latent_tree"]
