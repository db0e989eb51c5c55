"""Data with known truth."""

from latenttree.simulation import LatentTreeData, make_latent_tree

__all__ = ["LatentTreeData", "make_latent_tree"]
