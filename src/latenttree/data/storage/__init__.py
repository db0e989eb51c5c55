"""How the coordinates of samples are stored, and what differs by it: projections, sums, ones.

`Table.storage` gives one of three small picklable objects, `CodedStorage`, `VectorStorage` or
`BinaryStorage`, all with the methods of `Storage`; passes carry it to where the chunks are. Read
`interface.py` first.
"""

from latenttree.data.storage.coded import CodedFeatures, CodedStorage
from latenttree.data.storage.interface import CrossSums, Features, Storage
from latenttree.data.storage.vectors import BinaryStorage, VectorStorage

__all__ = [
    "BinaryStorage",
    "CodedFeatures",
    "CodedStorage",
    "CrossSums",
    "Features",
    "Storage",
    "VectorStorage",
]
