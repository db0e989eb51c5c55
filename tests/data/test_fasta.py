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


def test_the_alphabet_can_be_said(tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("\n\n", "has no sequence"),
        ("; only a comment\n", "has no sequence"),
        (
            "ACGT\n>a\nACGT\n",
            "line 1: expected a line '>NAME' before the first sequence, got 'ACGT",
        ),
        ("#NEXUS\nbegin data;\n", "line 1: expected a line '>NAME'.*'#NEXUS'"),
        (">a\nACGT\n>\nACGT\n", "line 3: '>' without a name"),
        (">a\nACGT\n>b\n>c\nACGT\n", "line 3: 'b' has no sequence"),
        (">a\nACGT\n>b\nACG\n>c\nACGT\n", "2 have 4 sites and 'b' has 3; align them first"),
        (
            ">a\nAC\n>b\nACG\n>c\nACGT\n>d\nA\n>e\nACGTA\n>f\nACGTA\n",
            "2 have 5 sites and 'a' has 2, 'b' has 3, 'c' has 4 and 1 more differ",
        ),
        (">a\nAC\n>b\nAC\n>a\nGT\n", r"2 sequences called 'a' \(lines 1, 5\)"),
        (">a\nACGT\nAC5T\n>b\nACGTACGT\n", "'5' in 'a', site 7, is neither a nucleotide nor a gap"),
        (">a\nACGT\n>b\nACEG\n", "'E' in 'b', site 3.*pass alphabet='protein'"),
        (">a\nACGT\n>b\nACG\u00df\n", "'\u00df' in 'b', site 4"),
        (">a\nACGT\n>b\nACG\u0394\n", "'\u0394' in 'b', site 4"),
        (">a\nMKLV\n>b\nMKL1\n", "'1' in 'b', site 4, is neither an amino acid"),
        (">a\nACGT\n>b\n--N?\n", "'b' has no known letter, only gaps"),
        (">a\nA\n>b\nA\n", "found data with 1 sample"),
    ],
)
def test_bad_files(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
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
