"""Damage to files: to any bytes, and inside containers so that it reaches the parsers there."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import re
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

from latenttree.io.zip_archive import write_zip

Random = np.random.Generator
Damage = Callable[[bytes, Random], bytes]

NUMBERS = (
    b"0", b"-1", b"1", b"2", b"01", b"0.5", b"1e308", b"-1e308", b"1e400", b"1e-320", b"nan",
    b"inf", b"-inf", b"1000000007", b"2147483648", b"4294967296", b"5000000000",
    b"9223372036854775807", b"9223372036854775808", b"18446744073709551616", b"9" * 5000, b"",
    b"\xff", b"True", b"null", b'"a"', b"[]", b"{}", b"1_000", b"0x10", "\u0661".encode(), b"1L",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    0, -1, 1, 2, 0.5, 1e308, -1e308, 1e-320, 1e160, 1e19, 10**400, 2**31, 2**63, 2**64,
    None, True, False, "", "a", "nan", "\x00", "\ud800", [], {}, [[]], {"$number": "nan"},
    {"$number": "inf"}, "gaussian", "poisson", "multihot", "object", "bytes", "float16",
)  # fmt: skip
DTYPES = (
    "i1",
    "i2",
    "i4",
    "i8",
    "u1",
    "u8",
    "f2",
    "f4",
    "f8",
    "?",
    "c16",
    "S3",
    "U3",
    ">i4",
    ">f8",
)


def damaged(name: str, content: bytes, rng: Random) -> bytes:
    """The content of a file of this name, damaged one to three times."""
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        content = _once(name, content, rng)
    return content


def _once(name: str, content: bytes, rng: Random) -> bytes:
    inside = rng.random() < 0.8
    suffix = name.rsplit(".", 1)[-1]
    try:
        if inside and suffix in _INSIDE:
            return _INSIDE[suffix](content, rng)
    except Exception:  # damaged before: no longer a container
        pass
    return _bytes(content, rng)


# ---- any bytes ----------------------------------------------------------------------------


def _span(content: bytes, rng: Random) -> slice:
    start = int(rng.integers(0, len(content) + 1))
    return slice(start, start + int(rng.choice([1, 2, 4, 8, 16, 64, 256])))


def _flipped(content: bytes, rng: Random) -> bytes:
    found = bytearray(content)
    for _ in range(int(rng.integers(1, 9)) if found else 0):
        found[int(rng.integers(len(found)))] ^= 1 << int(rng.integers(8))
    return bytes(found)


def _cut(content: bytes, rng: Random) -> bytes:
    return content[: int(rng.integers(0, len(content) + 1))]


def _removed(content: bytes, rng: Random) -> bytes:
    at = _span(content, rng)
    return content[: at.start] + content[at.stop :]


def _repeated(content: bytes, rng: Random) -> bytes:
    at = _span(content, rng)
    return content[: at.stop] + content[at] * int(rng.choice([1, 1, 2, 50])) + content[at.stop :]


def _overwritten(content: bytes, rng: Random) -> bytes:
    at = _span(content, rng)
    n = len(content[at])
    filled = rng.choice([bytes(n), b"\xff" * n, rng.bytes(n)])
    return content[: at.start] + bytes(filled)[:n].ljust(n, b"\0") + content[at.stop :]


def _moved(content: bytes, rng: Random) -> bytes:
    one, other = _span(content, rng), _span(content, rng)
    return content[: one.start] + content[other] + content[one.stop :]


def _bytes(content: bytes, rng: Random) -> bytes:
    ways: list[Damage] = [_flipped, _cut, _removed, _repeated, _overwritten, _moved, _number]
    return ways[int(rng.integers(len(ways)))](content, rng)


# ---- text ---------------------------------------------------------------------------------


def _number(content: bytes, rng: Random) -> bytes:
    """A number replaced by another one, or by none."""
    found = list(re.finditer(rb"-?[0-9][0-9.e+-]*", content))
    if not found:
        return content
    at = found[int(rng.integers(len(found)))]
    if rng.random() < 0.3:  # those of the header decide most
        at = found[int(rng.integers(min(len(found), 4)))]
    return content[: at.start()] + NUMBERS[int(rng.integers(len(NUMBERS)))] + content[at.end() :]


def _lines(content: bytes, rng: Random) -> bytes:
    lines = content.splitlines(keepends=True)
    if not lines:
        return content
    i, j = int(rng.integers(len(lines))), int(rng.integers(len(lines)))
    way = int(rng.integers(4))
    if way == 0:
        del lines[i]
    elif way == 1:
        lines.insert(i, lines[j])
    elif way == 2:
        lines[i], lines[j] = lines[j], lines[i]
    else:
        lines[i] = b"\n"
    return b"".join(lines)


def _encoded(content: bytes, rng: Random) -> bytes:
    way = int(rng.integers(5))
    if way < 3:
        return content.decode("latin-1").encode(["utf-16", "utf-8-sig", "utf-32"][way])
    at = int(rng.integers(0, len(content) + 1))
    return content[:at] + [b"\x00", "ä\ud7ff\u2028".encode()][way - 3] + content[at:]


def _text(content: bytes, rng: Random) -> bytes:
    ways: list[Damage] = [_number, _number, _lines, _encoded, _bytes]
    return ways[int(rng.integers(len(ways)))](content, rng)


def _json(content: bytes, rng: Random) -> bytes:
    """A value of a JSON text replaced, left out or repeated."""
    if rng.random() < 0.3:
        return _text(content, rng)
    value = json.loads(content)
    places = list(_places(value))
    holder, key = places[int(rng.integers(len(places)))]
    way = rng.random()
    if way < 0.15:
        del holder[key]
    elif way < 0.3 and isinstance(holder, list):
        holder.insert(key, holder[key])
    else:
        holder[key] = VALUES[int(rng.integers(len(VALUES)))]
    return json.dumps(value).encode()


def _places(value: Any) -> Any:
    """Every item of a JSON value, as where it is held and under which key."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(items):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


# ---- arrays and archives ------------------------------------------------------------------


def _npy(content: bytes, rng: Random) -> bytes:
    way = rng.random()
    if way < 0.35:
        return _npy_header(content, rng)
    if way < 0.45:
        return _bytes(content, rng)
    array = np.load(io.BytesIO(content))
    stream = io.BytesIO()
    with np.errstate(all="ignore"):
        np.save(stream, _other_array(array, rng))
    return stream.getvalue()


def _npy_header(content: bytes, rng: Random) -> bytes:
    """The header damaged, and its length set right."""
    size = int.from_bytes(content[8:10], "little")
    header = _text(content[10 : 10 + size], rng)[:65535]
    return content[:8] + len(header).to_bytes(2, "little") + header + content[10 + size :]


def _other_array(array: np.ndarray[Any, Any], rng: Random) -> np.ndarray[Any, Any]:
    way = int(rng.integers(5))
    if way == 0:
        return array.astype(DTYPES[int(rng.integers(len(DTYPES)))])
    if way == 1 and array.size:
        return array.ravel()[: int(rng.integers(array.size))]
    if way == 2:
        return np.concatenate([array.ravel(), array.ravel()])
    array = array.copy()
    flat = array.reshape(-1)
    for _ in range(int(rng.integers(1, 4)) if flat.size and array.dtype.kind in "iuf" else 0):
        flat[int(rng.integers(flat.size))] = _extreme(array, rng)
    return array


def _extreme(array: np.ndarray[Any, Any], rng: Random) -> Any:
    if array.dtype.kind == "f":
        return rng.choice([np.nan, np.inf, -np.inf, 1e308, -1e308, 0, -1, 0.5, 1e-320, 1e30, 1e-30])
    limits = np.iinfo(array.dtype)
    low, high = int(limits.min), int(limits.max)
    choices = [low, high, max(low, -1), 0, min(high, 10**8), min(high, 2 * 10**9), array.size % 100]
    return choices[int(rng.integers(len(choices)))]


def _zip(content: bytes, rng: Random) -> bytes:
    """A member damaged behind a good checksum, left out, or under another name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    names = list(members)
    name = names[int(rng.integers(len(names)))]
    way = rng.random()
    if way < 0.05:
        del members[name]
    elif way < 0.1:
        members[names[0] if rng.random() < 0.5 else "other.npy"] = members.pop(name)
    else:
        members[name] = _once(name, members[name], rng)
    return write_zip(members)


def _packed(unpack: Callable[[bytes], bytes], pack: Callable[[bytes], bytes]) -> Damage:
    return lambda content, rng: pack(_text(unpack(content), rng))


_INSIDE: dict[str, Damage] = {
    "csv": _text,
    "tsv": _text,
    "txt": _text,
    "fasta": _text,
    "nwk": _text,
    "json": _json,
    "npy": _npy,
    "npz": _zip,
    "ltree": _zip,
    "gz": _packed(gzip.decompress, gzip.compress),
    "xz": _packed(lzma.decompress, lzma.compress),
    "bz2": _packed(bz2.decompress, bz2.compress),
}
