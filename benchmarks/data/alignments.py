"""Ribosomal alignments of 27 to 36 taxa, and published samples of the posterior over trees."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Table
from latenttree.tree import Tree

SETS = ("DS1", "DS2", "DS3", "DS4")
POSTERIOR = "phylo/{}.raw_data_DS1-8.rep1.trprobs.gz"
START_LENGTH = 0.1
MASS = 0.95
"""Share of the posterior whose trees are read."""


class WeightedTree(NamedTuple):
    """A tree of the posterior."""

    probability: float
    tree: Tree


def read_posterior(path: Path) -> list[WeightedTree]:
    """Trees of a NEXUS file sorted by their posterior probability, the most probable first."""
    with gzip.open(path, "rt") as file:
        text = file.read()
    block = re.search(r"translate(.*?);", text, re.DOTALL | re.IGNORECASE)
    if block is None:
        raise ValueError(f"{path} has no block 'translate'")
    names = dict(entry.split() for entry in block.group(1).split(","))
    trees, mass = [], 0.0
    for weight, newick in re.findall(r"\[&W ([\d.eE+-]+)\]\s*(\S+;)", text):
        if mass > MASS:
            break
        mass += float(weight)
        trees.append(WeightedTree(float(weight), _tree(newick, names)))
    return trees


def _tree(newick: str, names: dict[str, str]) -> Tree:
    named = re.sub(r"\d+", lambda number: names[number.group()], newick)
    tree = Tree.from_newick(named)
    return tree.with_lengths(np.full(tree.n_edges, START_LENGTH))


def log_det(alignment: Table, damping: float = 0.5) -> NDArray[np.float64]:
    """LogDet distances `-log det F_ab / sqrt(prod f_a prod f_b)` over sites where both are known,
    with half a site added to every pair of letters."""
    codes = np.asarray(alignment.codes, dtype=np.int64)
    p, d = codes.shape[1], int(alignment.dims[0])
    distances = np.zeros((p, p))
    for a in range(p):
        for b in range(a):
            known = (codes[:, a] >= 0) & (codes[:, b] >= 0)
            cells = codes[known, a] * d + codes[known, b]
            shares = np.bincount(cells, minlength=d * d).reshape(d, d) + damping
            shares /= shares.sum()
            own = np.log(shares.sum(axis=0)).sum() + np.log(shares.sum(axis=1)).sum()
            value = max(own / 2 - np.linalg.slogdet(shares)[1], 0.0)
            distances[a, b] = distances[b, a] = value
    return distances
