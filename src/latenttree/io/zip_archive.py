"""Zip archives in memory: equal members give equal bytes, and reading checks every size.

Members are never written to disk, so their names cannot lead anywhere.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterable, Mapping

METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def write_zip(members: Mapping[str, bytes], stored: Iterable[str] = ()) -> bytes:
    """An archive of the members in their order, deflated but for those in ``stored``."""
    buffer, plain = io.BytesIO(), set(stored)
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            info = zipfile.ZipInfo(name)  # its date is fixed
            info.create_system = 3  # the same on every system
            info.external_attr = 0o644 << 16
            method = zipfile.ZIP_STORED if name in plain else zipfile.ZIP_DEFLATED
            archive.writestr(info, content, method)
    return buffer.getvalue()


class ZipReader:
    """Members of an archive, each read with a limit on its size. Raises ValueError only."""

    def __init__(self, content: bytes) -> None:
        try:
            self._archive = zipfile.ZipFile(io.BytesIO(content))
            # Names as they are in the file: zipfile cuts them at a zero byte.
            infos = [(info.orig_filename, info) for info in self._archive.infolist()]
        except Exception as error:
            # zipfile promises no closed list: BadZipFile, struct.error, NotImplementedError, ...
            raise ValueError(f"the archive is damaged ({error})") from error
        self._infos = dict(infos)
        if len(self._infos) < len(infos):
            names = [name for name, _ in infos]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the archive has the member {twice!r} twice")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the members, in the order of the file."""
        return tuple(self._infos)

    def read(self, name: str, limit: int) -> bytes:
        """The whole member, of at most ``limit`` bytes: more is refused before it is unpacked."""
        if name not in self._infos:
            raise ValueError(f"the archive has no member {name!r}")
        info = self._infos[name]
        if info.file_size > limit:
            raise ValueError(
                f"the member {name!r} declares {info.file_size:,} bytes; at most {limit:,} are "
                "expected"
            )
        if info.compress_type not in METHODS or info.flag_bits & 0x1:
            raise ValueError(
                f"the member {name!r} is encrypted or packed by method {info.compress_type}; "
                "members are stored or deflated"
            )
        try:
            # Never unpacks more than declared, and compares the checksum.
            content = self._archive.read(info)
        except Exception as error:
            raise ValueError(f"the archive is damaged at {name!r} ({error})") from error
        if len(content) != info.file_size:
            raise ValueError(
                f"the archive is damaged: {name!r} has {len(content):,} of its declared "
                f"{info.file_size:,} bytes"
            )
        return content
