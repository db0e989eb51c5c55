"""Data with known truth."""

from latenttree.data.simulate import LatentTreeData, make_latent_tree

__all__ = ["LatentTreeData", "make_latent_tree"]
