"""Batches of rows, buffered by `partial_fit` until all of them are needed together.

In: batches of one kind of container (`Batches.add`). Out: all rows in that container, and their
weights (`Batches.joined`). The only caller is `partial_fit`; a list of batches that a library
joins could replace everything here. Read `batches.py` first.
"""

from latenttree.data.batches.batches import Batches

__all__ = ["Batches"]
