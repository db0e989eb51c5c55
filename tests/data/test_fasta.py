"""FASTA alignments: hand-made ones, and what is wrong with bad ones."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.data.refusals import Refused, refused, refusing

from latenttree.data.files.fasta import is_fasta, read_fasta
from latenttree.data.table import Table
from latenttree.errors import DataError


def read(folder: Path, text: str, **options: Any) -> Table:
    path = folder / "small.fasta"
    path.write_text(text, encoding="utf-8")
    return read_fasta(path, **options)


def letters(table: Table) -> dict[str, str]:
    """The sequences as they were understood, '-' where missing."""
    assert table.codes is not None
    found = {}
    for j, name in enumerate(table.names):
        labels = table.categories[j]
        assert labels is not None
        found[name] = "".join("-" if c < 0 else str(labels[c]) for c in table.codes[:, j])
    return found


def test_taxa_are_variables_and_sites_samples(tmp_path: Path) -> None:
    table = read(tmp_path, ">man\nACGT-\n>mouse\nAAGTN\n>yeast\nTTCCA\n")
    assert table.kind == "codes"
    assert table.n_samples == 5
    assert letters(table) == {"man": "ACGT-", "mouse": "AAGT-", "yeast": "TTCCA"}
    assert table.codes is not None
    assert table.codes.dtype == np.int8
    assert table.has_missing
    assert table.families == ("categorical",) * 3
    assert table.notes == (
        "alignment of nucleotides: 13.3% of the letters are gaps or unsure, read as missing",
    )


def test_every_taxon_has_the_letters_of_the_alignment(tmp_path: Path) -> None:
    table = read(tmp_path, ">a\nAAAA\n>b\nACGT\n")
    assert table.dims.tolist() == [4, 4]
    assert table.codes is not None
    assert table.codes.dtype == np.uint8  # nothing is missing
    assert [x.tolist() for x in table.categories if x is not None] == [list("ACGT")] * 2


def test_a_letter_that_occurs_nowhere_is_no_category(tmp_path: Path) -> None:
    table = read(tmp_path, ">a\nAATT-\n>b\nAGTTG\n")
    assert table.dims.tolist() == [3, 3]
    assert letters(table) == {"a": "AATT-", "b": "AGTTG"}


def test_wrapped_lines_small_letters_and_uracil(tmp_path: Path) -> None:
    text = "; made by hand\r\n>one first\r\nac gu\r\n\r\nACGU\r\n> two\r\nAC\r\nGTacgt"
    table = read(tmp_path, text)
    assert letters(table) == {"one": "ACGTACGT", "two": "ACGTACGT"}


def test_gaps_and_letters_that_are_unsure(tmp_path: Path) -> None:
    unsure = "-.?~*RYSWKMBDHVNX"
    table = read(tmp_path, f">a\n{unsure}{'A' * 30}\n>b\n{unsure.lower()}{'C' * 30}\n")
    assert letters(table)["a"] == "-" * len(unsure) + "A" * 30
    assert letters(table)["b"] == "-" * len(unsure) + "C" * 30


def test_names(tmp_path: Path) -> None:
    assert read(tmp_path, ">a x\nAC\n>b x\nAC\n").names == ("a", "b")
    assert read(tmp_path, ">Homo sapiens\nAC\n>Homo erectus\nAC\n").names == (
        "Homo sapiens",
        "Homo erectus",
    )


def test_proteins(tmp_path: Path) -> None:
    table = read(tmp_path, ">a\nMKLVFWEEP-X\n>b\nMKIVYWQDPUZ\n")
    assert letters(table) == {"a": "MKLVFWEEP--", "b": "MKIVYWQDP--"}
    assert "amino acids" in table.notes[0]
    assert table.dims.tolist() == [12, 12]


def test_the_alphabet_can_be_given(tmp_path: Path) -> None:
    text = ">a\nACGTN\n>b\nACCTN\n"
    assert letters(read(tmp_path, text))["a"] == "ACGT-"
    assert letters(read(tmp_path, text, alphabet="protein"))["a"] == "ACGTN"
    with pytest.raises(DataError, match="'E' in 'a', site 1, is neither a nucleotide"):
        read(tmp_path, ">a\nEF\n>b\nEF\n", alphabet="dna")
    with pytest.raises(DataError, match="alphabet is 'rna'"):
        read(tmp_path, text, alphabet="rna")


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
def test_compressed(tmp_path: Path, suffix: str, pack: Any) -> None:
    path = tmp_path / f"small.fa{suffix}"
    path.write_bytes(pack(b">a\nACGT\n>b\nTGCA\n"))
    assert is_fasta(path)
    assert letters(read_fasta(path)) == {"a": "ACGT", "b": "TGCA"}
    path.write_bytes(pack(b">a\nACGT\n>b\nTGCA\n")[:-12])
    with pytest.raises(DataError, match="cut or damaged"):
        read_fasta(path)


@pytest.mark.parametrize(
    ("name", "expected"),
    [("a.fasta", True), ("a.FA", True), ("a.fas.gz", True), ("a.csv", False), ("a.csv.gz", False)],
)
def test_names_of_files(name: str, expected: bool) -> None:
    assert is_fasta(Path(name)) is expected


BAD_FILES: dict[str, tuple[str, Refused]] = {
    "empty": ("", refused("is empty")),
    "blank lines": ("\n\n", refused("has no sequence")),
    "only a comment": ("; only a comment\n", refused("has no sequence")),
    "no name at first": ("ACGT\n>a\nACGT\n", refused("expected a line", line=1, value="ACGT")),
    "another format": ("#NEXUS\nbegin data;\n", refused("is it a FASTA", line=1, value="#NEXUS")),
    "no name": (">a\nACGT\n>\nACGT\n", refused("without a name", line=3)),
    "no sequence": (">a\nACGT\n>b\n>c\nACGT\n", refused("has no seq", column="b", line=3)),
    "one is shorter": (
        ">a\nACGT\n>b\nACG\n>c\nACGT\n",
        refused("2 have 4 sites and 'b' has 3; align them first", column="b", line=3, value=3),
    ),
    "many lengths": (
        ">a\nAC\n>b\nACG\n>c\nACGT\n>d\nA\n>e\nACGTA\n>f\nACGTA\n",
        refused("'a' has 2, 'b' has 3, 'c' has 4 and 1 more differ", column="a", line=1, value=2),
    ),
    "a name twice": (
        ">a\nAC\n>b\nAC\n>a\nGT\n",
        refused(r"2 sequences called 'a' \(lines 1, 5\)", column="a", line=5, value="a"),
    ),
    "a digit": (
        ">a\nACGT\nAC5T\n>b\nACGTACGT\n",
        refused("site 7, is neither a nucleotide nor a gap", column="a", row=6, value="5"),
    ),
    "an amino acid": (
        ">a\nACGT\n>b\nACEG\n",
        refused("pass alphabet='protein'", column="b", row=2, value="E"),
    ),
    "a letter of Latin-1": (
        ">a\nACGT\n>b\nACG\u00df\n",
        refused("site 4", column="b", row=3, value="\u00df"),
    ),
    "a letter beyond": (
        ">a\nACGT\n>b\nACG\u0394\n",
        refused("site 4", column="b", row=3, value="\u0394"),
    ),
    "a digit among amino acids": (
        ">a\nMKLV\n>b\nMKL1\n",
        refused("neither an amino acid", column="b", row=3, value="1"),
    ),
    "only gaps": (">a\nACGT\n>b\n--N?\n", refused("no known letter, only gaps", column="b")),
    "one site": (">a\nA\n>b\nA\n", refused("1 sample", value=(1, 2))),
}


@pytest.mark.parametrize(("text", "expected"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(tmp_path: Path, text: str, expected: Refused) -> None:
    with refusing(expected, path=str(tmp_path / "small.fasta")):
        read(tmp_path, text)


def test_sites_to_ask_about(tmp_path: Path) -> None:
    table = read(tmp_path, ">a\nC\n>b\n-\n", learning=False)
    assert letters(table) == {"a": "C", "b": "-"}
    assert letters(read(tmp_path, ">a\n-N\n", learning=False)) == {"a": "--"}


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no file"):
        read_fasta(tmp_path / "none.fasta")


@given(
    st.lists(st.text("ACGT-", min_size=8, max_size=8), min_size=1, max_size=5), st.integers(1, 9)
)
def test_any_width_of_lines(
    tmp_path_factory: pytest.TempPathFactory, rows: list[str], w: int
) -> None:
    rows = [f"A{row}" for row in rows]  # no sequence is all gaps
    parts = ["\n".join(row[i : i + w] for i in range(0, len(row), w)) for row in rows]
    text = "".join(f">t{j}\n{part}\n" for j, part in enumerate(parts))
    table = read(tmp_path_factory.mktemp("fasta"), text)
    assert letters(table) == {f"t{j}": row for j, row in enumerate(rows)}
