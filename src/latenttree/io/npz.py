"""Flat arrays in an .npz archive, compared with what is expected before they are read."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from latenttree.io.zip_archive import ZipReader, write_zip

Dtype = Literal["<f8", "<i8"]

VALUE = 8
"""Bytes of a value of either type."""
MAX_HEADER = 256
"""Bytes before the values of a one-dimensional .npy file; NumPy writes 128."""


def pack(arrays: Mapping[str, tuple[NDArray[Any], Dtype]]) -> bytes:
    """An .npz of flat arrays under their names (without ``.npy``), each of the given type."""
    return write_zip({f"{name}.npy": _npy(*given) for name, given in arrays.items()})


def packed_limit(sizes: Mapping[str, int]) -> int:
    """Bytes of an .npz of so many values under each name, if nothing could be compressed."""
    values = VALUE * sum(sizes.values())
    return values + values // 1000 + 4096


def unpack(
    packed: bytes, expected: Mapping[str, tuple[int, Dtype]], name: str
) -> dict[str, NDArray[Any]]:
    """The arrays of an .npz that must have so many values of a type under each of the names.

    Raises ValueError for anything else; ``name`` is what the archive is called there."""
    archive = ZipReader(packed)
    members = tuple(f"{key}.npy" for key in expected)
    if set(archive.names) != set(members):
        raise ValueError(f"{name} holds {archive.names}, not {members}")
    return {
        key: _read_npy(archive, member, *expected[key])
        for key, member in zip(expected, members, strict=True)
    }


def _npy(array: NDArray[Any], dtype: Dtype) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array.astype(dtype), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def _read_npy(archive: ZipReader, name: str, n: int, dtype: Dtype) -> NDArray[Any]:
    """The ``n`` values of a member, whose header must say so."""
    content = archive.read(name, VALUE * n + MAX_HEADER)
    stream = io.BytesIO(content)
    try:
        version = np.lib.format.read_magic(stream)
        if version != (1, 0):
            raise ValueError(f"version {version} of the .npy format")
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # NumPy mends headers that no version of this wrote
            header = np.lib.format.read_array_header_1_0(stream, max_header_size=MAX_HEADER)
    except Exception as error:  # NumPy parses the header as a Python literal
        raise ValueError(f"{name} has a damaged header ({error})") from error
    shape, _, declared = header
    if shape != (n,) or declared != np.dtype(dtype):
        raise ValueError(
            f"{name} declares shape {shape} and type {declared}; the nodes and their states need "
            f"shape {(n,)} and type {dtype}"
        )
    if len(content) - stream.tell() != VALUE * n:
        raise ValueError(f"{name} has {len(content) - stream.tell():,} bytes for {n:,} values")
    return np.frombuffer(content, dtype=dtype, offset=stream.tell())
