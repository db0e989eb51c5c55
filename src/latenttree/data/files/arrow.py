"""Arrow files (.feather, .arrow), read by pyarrow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from latenttree.data.checks import resolve_names
from latenttree.data.files.boundary import reading


def arrow_frame(path: Path) -> Any:
    """All of a file in Arrow's format, as files or as a stream of messages."""
    import pyarrow as pa
    from pyarrow import feather, ipc

    with reading(path), pa.memory_map(str(path)) as source:
        start = source.read(6)
        source.seek(0)
        if start == b"ARROW1":
            table = ipc.open_file(source).read_all()
        elif start.startswith(b"FEA1"):
            table = feather.read_table(path)
        else:
            table = ipc.open_stream(source).read_all()
        resolve_names(None, table.num_columns, table.column_names)
        return table
