"""Containers of inputs: one class for each kind, all with the same few methods.

In: whatever the user passed as `X`. Out of `container_of`: a `Frame`, `Matrix`, `Blocks` or
`TableInput`, whose columns are read one at a time, whose rows can be taken and joined, and which
tells a schema what its columns were. Nothing else in `data` tells containers apart. No value is
read here, but for the indices of sparse matrices, which SciPy's compiled code would trust. Read
`interface.py` first; `any_input.py` chooses the class.
"""

from latenttree.data.containers.any_input import TableInput, container_of
from latenttree.data.containers.arrays import Matrix
from latenttree.data.containers.frames import (
    FRAMES,
    Frame,
    arranged,
    as_frame,
    frame_of,
    levels_of,
    library_of_tables,
    table_of,
)
from latenttree.data.containers.interface import Container, InputColumn, block_form, dtype_name

__all__ = [
    "FRAMES",
    "Container",
    "Frame",
    "InputColumn",
    "Matrix",
    "TableInput",
    "arranged",
    "as_frame",
    "block_form",
    "container_of",
    "dtype_name",
    "frame_of",
    "levels_of",
    "library_of_tables",
    "table_of",
]
