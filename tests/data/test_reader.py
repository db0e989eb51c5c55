"""read_table: what each file gives, and what each broken file says."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from tests.data.refusals import Refused, refused, refusing

from latenttree.data import DataError, Table, read_table
from latenttree.data.files.csv_batches import csv_batches, joined_texts
from latenttree.data.files.docword import Lines, entries

RNG = np.random.default_rng(11)
COUNTS = RNG.poisson(0.6, (30, 8))
COUNTS[:, 6] = 0  # a word that never occurs
COUNTS[:, 7] = np.arange(30) == 3  # a word in one document
WORDS = ["ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]


def docword_text(counts: np.ndarray) -> str:
    rows = [f"{d + 1} {w + 1} {counts[d, w]}" for d, w in zip(*np.nonzero(counts), strict=True)]
    return "\n".join([str(counts.shape[0]), str(counts.shape[1]), str(len(rows)), *rows]) + "\n"


def write_docword(folder: Path, text: str | bytes, zipped: bool = False) -> Path:
    data = text.encode() if isinstance(text, str) else text
    path = folder / ("docword.zoo.txt.gz" if zipped else "docword.zoo.txt")
    path.write_bytes(gzip.compress(data) if zipped else data)
    (folder / "vocab.zoo.txt").write_text("\n".join(WORDS) + "\n")
    return path


def ones(table: Table) -> np.ndarray:
    assert table.kind == "sparse_binary"
    assert table.matrix is not None
    assert table.matrix.has_canonical_format
    return np.asarray(table.matrix.toarray())


# --- docword -------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [False, True])
def test_docword_is_a_sparse_binary_table(tmp_path: Path, zipped: bool) -> None:
    table = read_table(write_docword(tmp_path, docword_text(COUNTS), zipped))
    np.testing.assert_array_equal(ones(table), COUNTS[:, :6] > 0)
    assert table.names == tuple(WORDS[:6])
    assert table.dropped == ("gnu", "hen")
    assert table.notes == ("kept 6 of 8 variables: 2 are 1 in fewer than 2 samples, 0 in all",)


def test_min_count(tmp_path: Path) -> None:
    path = write_docword(tmp_path, docword_text(COUNTS))
    assert read_table(path, min_count=1).dropped == ("gnu",)
    with refusing(refused("must be >= 1", option="min_count", value=0)):
        read_table(path, min_count=0)
    words, options = "none of 8 variables", ("min_count",)
    with refusing(refused(words, path=str(path), option="min_count", value=31, options=options)):
        read_table(path, min_count=31)


@pytest.mark.parametrize(
    ("read_bytes", "zipped"),
    [(1, False), (7, False), (64, False), (2, True), (7, True), (64, True)],
)
def test_docword_is_read_the_same_in_any_pieces(
    tmp_path: Path, read_bytes: int, zipped: bool
) -> None:
    text = docword_text(COUNTS).rstrip("\n")  # no newline at the end
    lines = Lines(write_docword(tmp_path, text, zipped), read_bytes)
    docs, words = entries(lines, *lines.sizes())
    np.testing.assert_array_equal(docs, np.nonzero(COUNTS)[0])
    np.testing.assert_array_equal(words, np.nonzero(COUNTS)[1])


def test_docword_with_other_spacing(tmp_path: Path) -> None:
    text = docword_text(COUNTS)
    for odd in (text.replace(" ", "  "), text.replace("\n", "\r\n"), text.replace(" ", "\t")):
        table = read_table(write_docword(tmp_path, odd))
        np.testing.assert_array_equal(ones(table), COUNTS[:, :6] > 0)


def test_gzip_of_several_members_and_wrong_suffix(tmp_path: Path) -> None:
    text = docword_text(COUNTS).encode()
    members = gzip.compress(text[:50]) + gzip.compress(text[50:])
    for name in ("docword.zoo.txt.gz", "docword.zoo.txt"):
        write_docword(tmp_path, b"")
        (tmp_path / name).write_bytes(members)
        np.testing.assert_array_equal(ones(read_table(tmp_path / name)), COUNTS[:, :6] > 0)


def test_vocabulary_from_elsewhere(tmp_path: Path) -> None:
    path = write_docword(tmp_path, docword_text(COUNTS))
    other = tmp_path / "words.txt"
    other.write_text("\n".join(word.upper() for word in WORDS))
    assert read_table(path, vocab=other).names[0] == "ANT"
    with refusing(refused("pass one of them", options=("vocab", "names"))):
        read_table(path, vocab=other, names=WORDS)
    none = str(tmp_path / "none.txt")
    with refusing(refused("no vocabulary file", path=none, option="vocab")):
        read_table(path, vocab=tmp_path / "none.txt")
    other.write_text("a\nb\n")
    words = "says W=8 words, but the vocabulary has 2"
    with refusing(refused(words, path=str(path), option="vocab", value=2)):
        read_table(path, vocab=other)
    (tmp_path / "vocab.zoo.txt").unlink()
    beside = str(tmp_path / "vocab.zoo.txt")
    with refusing(refused("no vocabulary", path=beside, option="vocab", options=("vocab",))):
        read_table(path)
    assert read_table(path, names=WORDS).names[0] == "ant"


def test_truncated_gzip_says_how_far_it_got(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    counts = rng.poisson(1.0, (3000, 8))
    path = write_docword(tmp_path, docword_text(counts), zipped=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    total = int((counts > 0).sum())
    with pytest.raises(DataError, match=rf"cut or damaged: .* of {total} rows") as caught:
        read_table(path)
    assert caught.value.place.path == str(path)
    assert 0 < caught.value.value < total
    assert f"after {caught.value.value} of" in str(caught.value)
    path.write_bytes(whole[:200] + bytes(40) + whole[240:])
    with pytest.raises(DataError, match="cut or damaged"):
        read_table(path)
    path.write_bytes(whole[:5])
    with pytest.raises(DataError, match="cut or damaged"):
        read_table(path)


HEADER = "3\n8\n4\n"
BODY = "1 1 1\n2 2 1\n3 1 2\n3 2 1\n"
LIES = {
    "too few entries": ("3\n8\n5\n" + BODY, refused("says NNZ=5", line=3, value=4)),
    "too many entries": ("3\n8\n3\n" + BODY, refused("says NNZ=3", line=3, value=4)),
    "document out of range": ("2\n8\n4\n" + BODY, refused("document.*D=2", line=6, value=3)),
    "word out of range": (
        HEADER + BODY.replace("2 2 1", "2 9 1"),
        refused("word.*W=8", line=5, value=9),
    ),
    "word zero": (
        HEADER + BODY.replace("2 2 1", "2 0 1"),
        refused("out of range", line=5, value=0),
    ),
    "negative count": (
        HEADER + BODY.replace("3 1 2", "3 1 -2"),
        refused("negative count", line=6, value=-2),
    ),
    "text": (
        HEADER + BODY.replace("3 1 2", "3 x 2"),
        refused("three whole numbers", line=6, value="3 x 2"),
    ),
    "decimals": (
        HEADER + BODY.replace("3 1 2", "3 1 2.5"),
        refused("three whole numbers", line=6, value="3 1 2.5"),
    ),
    "short and long lines": (
        HEADER + "1 1\n1 2 2 1\n3 1 2\n3 2 1\n",
        refused("three whole numbers", line=4, value="1 1"),
    ),
    "header of text": (
        "three\n8\n4\n" + BODY,
        refused("the whole number D", line=1, value="three"),
    ),
    "no header": ("3\n8\n" + BODY, refused("the whole number NNZ", line=3, value="1 1 1")),
    "only a header": ("3\n", refused("the whole number W", line=2, value="")),
    "no documents": ("0\n8\n0\n", refused(r"0 sample\(s\)", value=(0, 8))),
    "one document": ("1\n8\n1\n1 1 1\n", refused(r"1 sample\(s\)", value=(1, 8))),
    "no entries": ("3\n8\n0\n", refused("none of 8 variables", option="min_count", value=2)),
}


@pytest.mark.parametrize("case", LIES)
def test_docword_that_lies(tmp_path: Path, case: str) -> None:
    text, expected = LIES[case]
    path = write_docword(tmp_path, text)
    with refusing(expected, path=str(path)):
        read_table(path)


def test_a_pair_listed_twice_counts_once(tmp_path: Path) -> None:
    path = write_docword(tmp_path, "3\n8\n5\n" + BODY + "3 1 9\n")
    np.testing.assert_array_equal(ones(read_table(path)), [[1, 0], [0, 1], [1, 1]])


# --- npz -----------------------------------------------------------------------------


def test_npz_of_a_sparse_matrix(tmp_path: Path) -> None:
    path = tmp_path / "counts.npz"
    sparse.save_npz(path, sparse.csr_matrix(COUNTS))
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS))
    table = read_table(path, vocab=tmp_path / "vocab.txt")
    np.testing.assert_array_equal(ones(table), COUNTS[:, :6] > 0)
    assert table.names == tuple(WORDS[:6])
    grouped = read_table(path, groups=[0, 0, 0, 1, 1, 1, 1, 1])
    assert grouped.kind == "blocks"
    assert grouped.dims.tolist() == [3, 5]


def test_npz_of_an_array(tmp_path: Path) -> None:
    rng = np.random.default_rng(11)
    path = tmp_path / "codes.npz"
    codes = rng.integers(0, 3, (20, 4))
    np.savez(path, X=codes)
    np.testing.assert_array_equal(read_table(path).codes, codes)


def test_npz_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    np.savez(path, a=np.eye(2), b=np.eye(2))
    with refusing(refused("has 2 arrays", path=str(path), value=("a", "b"))):
        read_table(path)
    path.write_bytes(path.read_bytes()[:100])
    with refusing(refused("cannot read bad.npz: .* it is cut", path=str(path))):
        read_table(path)
    path.write_text("hello")
    with refusing(refused("cannot read bad.npz", path=str(path))):
        read_table(path)
    np.savez(path, a=np.array([{}, []], dtype=object))
    with refusing(refused("holds Python objects", path=str(path))):
        read_table(path)


# --- csv -----------------------------------------------------------------------------


def write_csv(folder: Path, text: str) -> Path:
    path = folder / "data.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_csv_columns_are_integers_or_text(tmp_path: Path) -> None:
    path = write_csv(tmp_path, '\ufeffsize,"the, colour"\n10,red\n 2,blue\n10,"red"\n\n2,blue\n')
    table = read_table(path)
    assert table.names == ("size", "the, colour")
    assert [list(labels) for labels in table.categories if labels is not None] == [
        [2, 10],
        ["blue", "red"],
    ]
    assert table.codes is not None
    assert table.codes.tolist() == [[1, 1], [0, 0], [1, 1], [0, 0]]


def random_csv(folder: Path) -> tuple[Path, np.ndarray]:
    numbers = np.random.default_rng(11).integers(0, 12, (50, 5))
    rows = "\n".join(",".join(map(str, row)) for row in numbers)
    return write_csv(folder, "a,b,c,d,e\n" + rows), numbers


def test_csv_of_numbers(tmp_path: Path) -> None:
    path, numbers = random_csv(tmp_path)
    table = read_table(path)
    assert table.codes is not None
    for i, labels in enumerate(table.categories):
        assert labels is not None
        np.testing.assert_array_equal(labels[table.codes[:, i]], numbers[:, i])


@pytest.mark.parametrize("block_bytes", [1, 100, 1 << 22])
def test_csv_is_read_the_same_in_any_pieces(tmp_path: Path, block_bytes: int) -> None:
    path, numbers = random_csv(tmp_path)
    batches = list(csv_batches(path, ",", [3, 0], block_bytes))
    for parts, column in zip(zip(*batches, strict=True), (3, 0), strict=True):
        texts, codes = joined_texts(parts)
        assert len(set(texts)) == len(texts)
        np.testing.assert_array_equal(np.array(texts, int)[codes], numbers[:, column])


def test_csv_with_another_delimiter(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "a;b\n1;x\n2;y\n")
    words = "separated by ';', not ','; pass delimiter=';'"
    with refusing(refused(words, path=str(path), option="delimiter", value=",")):
        read_table(path)
    assert read_table(path, delimiter=";").names == ("a", "b")


def test_csv_with_decimals_and_gaps(tmp_path: Path) -> None:
    cells = ["", "NA", "N/A", "NaN", "nan", "null", "None", "?", " "]
    rows = [f"{cell},{cell},{cell}" for cell in cells] + ["0.5,7,x", "-1e3,8,y", "2,8,y"]
    table = read_table(write_csv(tmp_path, "real,whole,text\n" + "\n".join(rows) + "\n"))
    assert table.families == ("gaussian", "categorical", "categorical")
    assert table.values is not None
    np.testing.assert_array_equal(table.values.arrays[0], [np.nan] * 9 + [0.5, -1000, 2])
    assert table.values.codes.tolist() == [[-1, -1, -1]] * 9 + [[-1, 0, 0], [-1, 1, 1], [-1, 1, 1]]
    assert table.categories[0] is None
    assert list(table.categories[1]) == [7, 8]  # type: ignore[arg-type]
    assert any("3 rows" in note for note in table.notes)


def test_families_of_files(tmp_path: Path) -> None:
    path = write_csv(tmp_path, "age,dose\n31,-1\n64,0\n18,2\n")
    table = read_table(path, family={"age": "poisson", "dose": "gaussian"})
    assert table.families == ("poisson", "gaussian")
    words = "did you mean 'age'"
    with refusing(refused(words, path=str(path), column="agee", option="family", value="agee")):
        read_table(path, family={"agee": "poisson"})
    scores = read_table(path, scores=True)
    assert scores.families == ("gaussian", "gaussian")
    words = write_docword(tmp_path, docword_text(COUNTS))
    assert read_table(words, family="binary").kind == "sparse_binary"
    words_refused = refused("is read as binary", option="family", value="poisson")
    with refusing(words_refused, path=str(words)):
        read_table(words, family="poisson")
    assert read_table(words, scores=True).families == ("gaussian",) * 6
    np.savez(tmp_path / "codes.npz", X=COUNTS[:, :3])
    assert read_table(tmp_path / "codes.npz", family="poisson").families == ("poisson",) * 3
    sparse.save_npz(tmp_path / "counts.npz", sparse.csr_matrix(COUNTS[:, :6]))
    with refusing(words_refused, path=str(tmp_path / "counts.npz")):
        read_table(tmp_path / "counts.npz", family="poisson")
    grouped = read_table(tmp_path / "counts.npz", groups=[0, 0, 0, 1, 1, 1], family="poisson")
    assert grouped.families == ("poisson", "poisson")


BAD_CSV = {
    "ragged": ("a,b\n1,2\n1\n", refused("cells where the first line has 2", line=3, value=1)),
    "numbers for names": (
        "1,2\n3,4\n5,6\n",
        refused("holds numbers", line=1, value=("1", "2")),
    ),
    "all missing": (
        "a,b\n1,\n2,\n",
        refused("is missing", column="b", value=None, options=("drop_constant",)),
    ),
    "infinity": ("a,b\n1,inf\n2,1\n", refused("infinity", column="b", row=0, value=np.inf)),
    "infinity after an empty line": (
        "a,b\n\n1,2.5\n\n2,inf\n2,1\n",
        refused("infinity", column="b", row=1, value=np.inf),
    ),
    "constant but for gaps": (
        "a,b\n1,42\n2,?\n",
        refused(r"\(42, or missing\)", column="b", value=42, options=("drop_constant",)),
    ),
    "negative": (
        "a\n1\n-1\n1\n",
        refused("negative code", column="a", row=1, value=-1, options=("family",)),
    ),
    "constant": (
        "a,b\n1,42\n2,42\n",
        refused(r"one value \(42\) in all 2 rows", column="b", value=42),
    ),
    "constant text": ("a,b\n1,u\n2,u\n", refused("one value", column="b", value="u")),
    "constant decimals": ("a,b\n1,0.5\n2,0.5\n", refused("one value", column="b", value=0.5)),
    "repeated names": ("a,a\n1,2\n2,1\n", refused("more than once", column="a", value="a")),
    "no rows": ("a,b\n", refused(r"0 sample\(s\)", value=(0, 2))),
    "one row": ("a,b\n1,2\n", refused(r"1 sample\(s\)", value=(1, 2))),
    "empty first line": ("\na,b\n1,2\n", refused("starts with an empty line", line=1)),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv_is_named(tmp_path: Path, case: str) -> None:
    text, expected = BAD_CSV[case]
    path = write_csv(tmp_path, text)
    with refusing(expected, path=str(path)):
        read_table(path)


def test_csv_in_another_encoding(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_bytes("a\né\nb\n".encode("latin-1"))
    words = r"not UTF-8 text \(byte 0xe9 at position 2\)"
    with refusing(refused(words, path=str(path), value=0xE9)):
        read_table(path)


# --- any file ------------------------------------------------------------------------


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with refusing(refused("no file", path=str(tmp_path / "none.csv"))):
        read_table(tmp_path / "none.csv")
    with refusing(refused("no file", path=str(tmp_path))):
        read_table(tmp_path)
    (tmp_path / "x.xyz").write_text("1")
    words = "known are .csv, .tsv, .parquet, .feather"
    with refusing(refused(words, path=str(tmp_path / "x.xyz"))):
        read_table(tmp_path / "x.xyz")
    (tmp_path / "x.csv").touch()
    with refusing(refused("is empty", path=str(tmp_path / "x.csv"))):
        read_table(tmp_path / "x.csv")


# --- compressed files, weights, alignments -------------------------------------------


def test_csv_compressed(tmp_path: Path) -> None:
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(b"a,b\nx,1\ny,2\n"))
    assert read_table(path).names == ("a", "b")


def test_weights_are_repeated_rows(tmp_path: Path) -> None:
    rows = [("x", "0.5", 3), ("y", "1.5", 1), ("x", "", 0), ("y", "2.5", 2)]
    path, repeated = tmp_path / "weights.csv", tmp_path / "repeated.csv"
    path.write_text("a,b,w\n" + "".join(f"{a},{b},{w}\n" for a, b, w in rows))
    repeated.write_text("a,b\n" + "".join(f"{a},{b}\n" * w for a, b, w in rows))
    table, expected = read_table(path, weights="w"), read_table(repeated)
    assert table.names == ("a", "b")
    assert table.weights is not None
    assert table.weights.tolist() == [3, 1, 2]
    assert table.dims.tolist() == expected.dims.tolist()
    assert table.codes is not None
    assert np.array_equal(np.repeat(table.codes, [3, 1, 2], axis=0), expected.codes)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("a,w\nx,1\ny,-2\n", refused("is -2", column="w", row=1, value=-2)),
        ("a,w\nx,1\ny,\n", refused("is no number", column="w", row=1, value="")),
        ("a,w\nx,1\ny,heavy\n", refused("is no number", column="w", row=1, value="heavy")),
        ("a,w\nx,0\ny,0\n", refused("all 2 sample weights are zero", column="w", value=0)),
        ("a,v\nx,0\ny,0\n", refused("columns are 'a', 'v'", column="w", option="weights")),
        ("w,w\nx,0\ny,0\n", refused("more than once", column="w")),
        ("w,\n1,\n1,\n", refused("is missing", column="")),
        ("a,w\n1.5,0\n1.5,1\ninf,2\n", refused("infinity", column="a", row=2, value=np.inf)),
        ("a,w\n1,0\n1,1\n-1,2\n", refused("negative code -1 at row 2", column="a", row=2)),
    ],
)
@pytest.mark.parametrize("memory_limit", [None, 1000])
def test_bad_weights(
    tmp_path: Path, content: str, expected: Refused, memory_limit: int | None
) -> None:
    path = tmp_path / "data.csv"
    path.write_text(content)
    with refusing(expected, path=str(path)):
        read_table(path, weights="w", memory_limit=memory_limit)


def test_weights_are_a_column_of_a_csv(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "data.npz", sparse.eye_array(3, format="csr"))
    path = tmp_path / "data.npz"
    with refusing(refused("names a column of", path=str(path), option="weights", value="w")):
        read_table(path, weights="w")


def test_alignments(tmp_path: Path) -> None:
    path = tmp_path / "small.fasta"
    path.write_text(">a\nACGT\n>b\nAC-T\n")
    assert read_table(path).names == ("a", "b")
    words = "are categories; leave out family"
    with refusing(refused(words, path=str(path), option="family", value="gaussian")):
        read_table(path, family="gaussian")
