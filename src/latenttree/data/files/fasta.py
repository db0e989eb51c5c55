"""FASTA alignments: taxa are the variables, sites the samples, gaps are missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TextIO

import numpy as np
from numpy.typing import NDArray

from latenttree.data.checks import check_shape, listing
from latenttree.data.files.boundary import reading
from latenttree.data.files.text import open_text, suffix_of
from latenttree.data.table import Table, codes_table
from latenttree.errors import DataError, Phrase, Text

Alphabet = Literal["auto", "dna", "protein"]

SUFFIXES = (".fasta", ".fa", ".fas", ".fna", ".faa", ".afa")

MISSING, WRONG = -1, -2
_GAPS = "-.?~*"
_LETTERS = {"dna": "ACGT", "protein": "ACDEFGHIKLMNPQRSTVWY"}
# Letters that stand for one of several: what is not known is missing.
_UNSURE = {"dna": "RYSWKMBDHVNX", "protein": "BJOUXZ"}
_SITES_SHOWN = 3


@dataclass
class _Record:
    """A sequence of the file: its header, the line it starts at, its lines."""

    header: str
    line: int
    lines: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.lines)


def is_fasta(path: Path) -> bool:
    """Whether a path ends like a FASTA file."""
    return suffix_of(path) in SUFFIXES


def read_fasta(path: str | Path, alphabet: Alphabet = "auto", *, learning: bool = True) -> Table:
    """The alignment in a FASTA file as a table: a variable for each taxon, a sample for each site.

    Every taxon has the same categories, the letters that occur in the alignment: A, C, G and T
    (U is T), or the amino acids. Gaps (``-``, ``.``, ``?``, ``~``, ``*``) and letters that stand
    for one of several (N, R, Y, ...) are missing. A sequence may run over many lines, in small or
    capital letters; the file may be compressed (.gz, .xz).

    A taxon is called by the first word after ``>``, or, where those are not all different, by the
    whole line.

    Parameters
    ----------
    path : the file.
    alphabet : "dna", "protein", or "auto": protein where more than half of the letters are
        neither A, C, G, T, U nor N.
    learning : at least two sites, and every taxon has a letter; False for sites to ask a model
        about.

    Raises
    ------
    DataError : no sequence, sequences of different lengths, a name twice, a character that is
        neither a letter of the alphabet nor a gap, a taxon without any letter that is known.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from latenttree.data import read_fasta
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "small.fasta")
    ...     _ = path.write_text(">man\\nACG-\\nT\\n>mouse\\nACGTN\\n")
    ...     table = read_fasta(path)
    >>> table.names, table.codes.T.tolist()
    (('man', 'mouse'), [[0, 1, 2, -1, 3], [0, 1, 2, 3, -1]])
    """
    path = Path(path)
    if alphabet not in ("auto", "dna", "protein"):
        raise DataError(
            f"alphabet is {alphabet!r}",
            "pass 'auto', 'dna' or 'protein'",
            value=alphabet,
            option="alphabet",
        )
    with reading(path):
        with open_text(path) as file:
            records = _records(file, path.name)
        sequences = [record.text for record in records]
        names = _names(records, path.name)
        _check_lengths(records, sequences, names, path.name)
        kind = _guess(sequences) if alphabet == "auto" else alphabet
        codes = _encode(sequences, names, kind, path.name)
        if learning:
            check_shape(codes.shape)
            _check_known(codes, names, path.name)
        return _table(names, codes, kind)


# ---- text -----------------------------------------------------------------------------


def _records(file: TextIO, name: str) -> list[_Record]:
    records: list[_Record] = []
    for number, line in enumerate(file, 1):
        text = line.strip()
        if text.startswith(">"):
            records.append(_Record(text[1:].strip(), number))
        elif text and not text.startswith(";"):  # a line of comment
            if not records:
                raise DataError(
                    f"{name}, line {number}: expected a line '>NAME' before the first sequence, "
                    f"got {text[:40]!r}",
                    "is it a FASTA file?",
                    value=text[:40],
                    line=number,
                )
            records[-1].lines.append("".join(text.split()))
    if not records:
        raise DataError(f"{name} has no sequence", "a FASTA file has a line '>NAME' before each")
    return records


def _names(records: Sequence[_Record], name: str) -> list[str]:
    """First words where they are all different, else whole headers."""
    for record in records:
        if not record.header:
            raise DataError(
                f"{name}, line {record.line}: '>' without a name",
                "name the sequence",
                line=record.line,
            )
    words = [record.header.split()[0] for record in records]
    if len(set(words)) == len(words):
        return words
    headers = [record.header for record in records]
    repeated = [header for i, header in enumerate(headers) if header in headers[:i]]
    if repeated:
        lines = [str(r.line) for r in records if r.header == repeated[0]]
        raise DataError(
            f"{name} has {len(lines)} sequences called {repeated[0]!r} (lines {', '.join(lines)})",
            "names must be different: rename or remove",
            value=repeated[0],
            column=repeated[0],
            line=next(record.line for record in reversed(records) if record.header == repeated[0]),
        )
    return headers


def _check_lengths(
    records: Sequence[_Record], sequences: Sequence[str], names: Sequence[str], file: str
) -> None:
    for record, text, name in zip(records, sequences, names, strict=True):
        if not text:
            raise DataError(
                f"{file}, line {record.line}: {name!r} has no sequence",
                "remove it",
                column=name,
                line=record.line,
            )
    lengths = [len(text) for text in sequences]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), length))
    odd = [i for i, length in enumerate(lengths) if length != usual]
    if odd:
        told = ", ".join(f"{names[i]!r} has {lengths[i]}" for i in odd[:_SITES_SHOWN])
        more = f" and {len(odd) - _SITES_SHOWN} more differ" if len(odd) > _SITES_SHOWN else ""
        raise DataError(
            f"{file}: sequences of an alignment have one length, but "
            f"{len(lengths) - len(odd)} have {usual} sites and {told}{more}",
            "align them first",
            value=lengths[odd[0]],
            column=names[odd[0]],
            line=records[odd[0]].line,
        )


def _guess(sequences: Sequence[str]) -> Literal["dna", "protein"]:
    counts = sum(np.bincount(_bytes(text), minlength=256) for text in sequences)
    assert isinstance(counts, np.ndarray)
    letters = counts[65:91] + counts[97:123]  # A to Z, a to z
    bases = sum(int(letters[ord(letter) - 65]) for letter in "ACGTUN")
    return "dna" if 2 * bases >= letters.sum() else "protein"


def _bytes(text: str) -> NDArray[np.uint32]:
    """(n,) code points of the characters, at most 255, which no alphabet has."""
    points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    return np.minimum(points, 255)


# ---- codes ----------------------------------------------------------------------------


def _encode(
    sequences: Sequence[str], names: Sequence[str], kind: str, file: str
) -> NDArray[np.int8]:
    """(sites, taxa) codes of letters, -1 where missing."""
    lookup = _lookup(kind)
    codes = np.empty((len(sequences[0]), len(sequences)), dtype=np.int8)
    for j, text in enumerate(sequences):
        letters = lookup[_bytes(text)]
        if (letters == WRONG).any():
            site = int((letters == WRONG).argmax())
            raise _wrong_character(text[site], site, names[j], kind, file)
        codes[:, j] = letters
    return codes


def _check_known(codes: NDArray[np.int8], names: Sequence[str], file: str) -> None:
    empty = [names[j] for j in np.flatnonzero((codes < 0).all(axis=0)).tolist()]
    if empty:
        raise DataError(
            f"{file}: {listing(empty)} {'has' if len(empty) == 1 else 'have'} no "
            "known letter, only gaps",
            "remove " + ("it" if len(empty) == 1 else "them"),
            column=empty[0],
        )


def _lookup(kind: str) -> NDArray[np.int8]:
    """(256,) the code of every character."""
    table = np.full(256, WRONG, dtype=np.int8)
    for character in _GAPS + _UNSURE[kind]:
        table[ord(character)] = MISSING
    for code, letter in enumerate(_LETTERS[kind]):
        table[ord(letter)] = code
    if kind == "dna":
        table[ord("U")] = table[ord("T")]
    table[97:123] = table[65:91]  # a to z as A to Z
    return table


def _wrong_character(character: str, site: int, name: str, kind: str, file: str) -> DataError:
    what = "a nucleotide" if kind == "dna" else "an amino acid"
    protein = Phrase("try protein", "if these are proteins, pass alphabet='protein'")
    return DataError(
        f"{file}: {character!r} in {name!r}, site {site + 1}, is neither {what} nor a gap "
        f"(letters {_LETTERS[kind]}, gaps {_GAPS})",
        "" if kind == "protein" else Text(protein),
        value=character,
        column=name,
        row=site,
    )


def _table(names: Sequence[str], codes: NDArray[np.int8], kind: str) -> Table:
    """The table; letters that occur nowhere in the alignment are not categories."""
    used = np.bincount(codes[codes >= 0], minlength=len(_LETTERS[kind])) > 0
    if not used.any():
        used[:] = True
    rank = np.append(np.cumsum(used) - 1, MISSING).astype(np.int8)  # -1 stays -1
    letters = np.asarray([letter for letter, u in zip(_LETTERS[kind], used, strict=True) if u])
    used_codes = rank[codes]
    if used_codes.min() >= 0:
        used_codes = used_codes.astype(np.uint8)  # signed codes are those with gaps
    return codes_table(names, used_codes, [letters] * len(names), notes=(_note(codes, kind),))


def _note(codes: NDArray[np.int8], kind: str) -> str:
    what = "nucleotides" if kind == "dna" else "amino acids"
    share = float((codes < 0).mean())
    return f"alignment of {what}: {share:.1%} of the letters are gaps or unsure, read as missing"
