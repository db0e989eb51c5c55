"""Draws words.png: 100 words of 16,242 postings to newsgroups.

python docs/images/draw_words.py 20news_w100.mat

The file is the well-known small version of the 20 newsgroups data (documents, wordlist). Groups are
cut from the tree; their names in the legend were written by hand.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy import sparse
from scipy.io import loadmat

import latenttree as lt

NAMES = {
    "doctor": "medicine",
    "hockey": "sport",
    "god": "religion",
    "car": "cars",
    "windows": "software",
    "government": "politics",
    "university": "university",
    "disk": "hardware",
    "nasa": "space",
}
"""A word of each group, and what the group is called."""


def draw(source: str) -> None:
    """Learn the tree and write the picture beside this file."""
    stored = loadmat(source)
    words = [str(word[0]) for word in stored["wordlist"].ravel()]
    postings = sparse.csr_matrix(stored["documents"].T.astype(np.int8))
    model = lt.LatentTree(names=words, random_state=0).fit(postings)
    groups = model.variable_groups(len(NAMES), signed=False)
    topics = groups.map({groups[word]: name for word, name in NAMES.items()}).rename(
        "named by hand"
    )
    model.plot(color_by=topics, min_support=0, path=Path(__file__).with_name("words.png"))


if __name__ == "__main__":
    draw(sys.argv[1])
