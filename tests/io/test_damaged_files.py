"""Damaged and hostile files and matrices: refused by name, before anything is allocated."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import textwrap
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import narwhals
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import latenttree as lt
from latenttree.data import as_table, read_events, read_fasta, read_table
from latenttree.data.files.boundary import reading
from latenttree.data.sparse_checks import check_sparse
from latenttree.data.streaming.scratch import ScratchFolder
from latenttree.errors import DataError
from latenttree.io.archive import Saved, save_archive
from latenttree.io.treefile import load_tree


def presence(n: int = 30, p: int = 4) -> sparse.csr_array:
    rng = np.random.default_rng(0)
    return sparse.csr_array((rng.random((n, p)) < 0.4).astype(np.float64))


def write_npz(path: Path, **arrays: Any) -> Path:
    np.savez(path, **{name: np.asarray(array) for name, array in arrays.items()})
    return path


def parts(kind: str) -> dict[str, Any]:
    """The members of the file of a small matrix."""
    matrix = presence().asformat(kind)
    stream = io.BytesIO()
    sparse.save_npz(stream, matrix)
    stream.seek(0)
    with np.load(stream) as archive:
        return dict(archive)


# ---- sparse matrices in files -------------------------------------------------------------

BAD_MEMBERS: dict[str, tuple[str, str, Callable[[Any], Any], str]] = {
    "column beyond": ("csr", "indices", lambda x: np.r_[x[:-1], 10**8], r"column 100000000, outsi"),
    "row beyond": ("csc", "indices", lambda x: np.r_[x[:-1], 10**8], r"row 100000000, outside"),
    "negative": ("csr", "indices", lambda x: np.r_[x[:-1], -1], r"column -1, outside 0\.\.3"),
    "fractions": ("csr", "indices", lambda x: x + 0.5, r"type float64, not integers"),
    "fewer indices": ("csr", "indices", lambda x: x[:-1], r"values, but"),
    "ends beyond": ("csr", "indptr", lambda x: np.r_[x[:-1], 10**9], r"indptr does not rise"),
    "ends back": ("csc", "indptr", lambda x: x[::-1], r"indptr does not rise"),
    "ends short": ("csr", "indptr", lambda x: x[:-1], r"indptr has shape"),
    "ends of fractions": ("csc", "indptr", lambda x: x + 0.25, r"indptr has shape"),
    "row of coo": ("coo", "row", lambda x: np.r_[x[:-1], 30], r"row 30, outside"),
    "column of coo": ("coo", "col", lambda x: np.r_[x[:-1], 2**31 - 1], r"outside 0\.\.3"),
    "rows of coo": ("coo", "row", lambda x: x[:-1], r"values, but"),
    "diagonal": ("dia", "offsets", lambda x: x * 10**6, r"outside"),
    "diagonal twice": ("dia", "offsets", lambda x: x * 0, r"a diagonal twice"),
    "block beyond": ("bsr", "indices", lambda x: x + 10**8, r"outside"),
    "shape": ("csr", "shape", lambda x: np.array([30, -4]), r"no number of rows and columns"),
    "shape of three": ("csr", "shape", lambda x: np.array([30, 4, 1]), r"no number of rows"),
    "format": ("csr", "format", lambda x: np.array(b"csq"), r"format 'csq' is none of"),
    "no format": ("csr", "format", lambda x: np.zeros(3), r"format '' is none of"),
}


@pytest.mark.parametrize("memory_limit", [None, 1], ids=["at once", "in parts"])
@pytest.mark.parametrize("case", BAD_MEMBERS)
def test_sparse_files_are_checked_before_use(
    tmp_path: Path, case: str, memory_limit: int | None
) -> None:
    kind, member, change, message = BAD_MEMBERS[case]
    members = parts(kind)
    members[member] = change(members[member])
    path = write_npz(tmp_path / "bad.npz", **members)
    with pytest.raises(DataError, match=message) as raised:
        read_table(path, memory_limit=memory_limit)
    assert "bad.npz" in str(raised.value)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("memory_limit", [None, 1], ids=["at once", "in parts"])
def test_sparse_files_that_are_whole(tmp_path: Path, kind: str, memory_limit: int | None) -> None:
    path = write_npz(tmp_path / "good.npz", **parts(kind))
    found = read_table(path, memory_limit=memory_limit).matrix
    assert found is not None
    np.testing.assert_array_equal(found.toarray(), presence().toarray())


def test_a_damaged_matrix_does_not_end_the_process(tmp_path: Path) -> None:
    path = write_npz(
        tmp_path / "crash.npz",
        format=b"csc", shape=[4, 3], data=np.ones(4), indptr=[0, 2, 3, 4], indices=[0, 1, 10**8, 1],
    )  # fmt: skip
    program = f"""
        import latenttree as lt
        from latenttree.data import read_table
        try:
            read_table({str(path)!r})
        except lt.errors.DataError as error:
            print(error)
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    env = os.environ | {"PYTHONPATH": str(Path(lt.__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr
    assert "crash.npz" in done.stdout


# ---- sparse matrices in memory ------------------------------------------------------------


def tampered(kind: str) -> Any:
    matrix = presence().asformat(kind)
    if kind in ("csr", "csc", "bsr"):
        matrix.indices = np.r_[matrix.indices[:-1], 10**8].astype(np.int32)
    elif kind == "coo":
        matrix.col = np.r_[matrix.col[:-1], 10**8].astype(matrix.col.dtype)
    elif kind == "dia":
        matrix.offsets = matrix.offsets + 10**8
    elif kind == "lil":
        matrix.rows[3] = [10**8] * len(matrix.rows[3])
    else:
        matrix._dict[(2, 10**8)] = 1.0
    return matrix


KINDS = ("csr", "csc", "coo", "bsr", "dia", "lil", "dok")


@pytest.mark.parametrize("kind", KINDS)
def test_matrices_in_memory_are_checked(kind: str) -> None:
    bad = tampered(kind)
    with pytest.raises(DataError, match=r"a sparse matrix is damaged: .*make the matrix anew"):
        as_table(bad)
    with pytest.raises(DataError, match="a sparse matrix is damaged"):
        as_table(bad, sample_weight=np.arange(30.0))
    with pytest.raises(DataError, match="a sparse matrix is damaged"):
        as_table([bad, presence()])
    check_sparse(presence().asformat(kind))


def test_ends_that_were_tampered_with() -> None:
    bad = presence()
    bad.indptr = bad.indptr.copy()
    bad.indptr[4] = -7
    with pytest.raises(DataError, match="indptr does not rise"):
        as_table(bad)
    bad = presence()
    bad.indices = bad.indices + 0.5
    with pytest.raises(DataError, match="type float64, not integers"):
        as_table(bad)


def test_questions_check_matrices_too() -> None:
    X = presence(200, 3)
    model = lt.LatentTree(random_state=0, n_jobs=1).fit(X)
    bad = X.copy()
    bad.indices[3] = 10**8
    for ask in (model.score, model.transform, model.predict, model.impute):
        with pytest.raises(DataError, match="a sparse matrix is damaged"):
            ask(bad)


# ---- declared sizes -----------------------------------------------------------------------


def refused_cheaply(read: Callable[[], Any], message: str) -> None:
    """Refused with this message, without memory for what is declared."""
    tracemalloc.start()
    try:
        with pytest.raises(DataError, match=message):
            read()
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()


def header_only(path: Path, shape: tuple[int, ...]) -> Path:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, header)  # type: ignore[arg-type]
    path.write_bytes(stream.getvalue() + bytes(800))
    return path


@pytest.mark.parametrize("memory_limit", [None, 1], ids=["at once", "in parts"])
def test_arrays_larger_than_their_file(tmp_path: Path, memory_limit: int | None) -> None:
    path = header_only(tmp_path / "big.npy", (10**9, 10**3))
    message = r"big\.npy: an array of shape .* is declared, but 800 bytes are there"
    refused_cheaply(lambda: read_table(path, memory_limit=memory_limit), message)
    packed = tmp_path / "big.npz"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.write(path, "arr_0.npy")
    refused_cheaply(lambda: read_table(packed, memory_limit=memory_limit), r"big\.npz: an array")


@pytest.mark.parametrize("memory_limit", [None, 1], ids=["at once", "in parts"])
@pytest.mark.parametrize("kind", ["csr", "coo"])
def test_columns_that_cannot_be_meant(tmp_path: Path, kind: str, memory_limit: int | None) -> None:
    path = write_npz(tmp_path / "wide.npz", **(parts(kind) | {"shape": [30, 2 * 10**9]}))
    message = r"wide\.npz: .* 2,000,000,000 columns has .* are empty.*count_nonzero"
    refused_cheaply(lambda: read_table(path, memory_limit=memory_limit), message)
    if kind == "coo":
        path = write_npz(tmp_path / "tall.npz", **(parts(kind) | {"shape": [5 * 10**9, 4]}))
        message = r"tall\.npz: .* 5,000,000,000 rows has"
        refused_cheaply(lambda: read_table(path, memory_limit=memory_limit), message)


def test_columns_in_memory_that_cannot_be_meant() -> None:
    X = sparse.csr_array(([1.0], ([0], [0])), shape=(3, 2 * 10**9))
    refused_cheaply(lambda: as_table(X), "2,000,000,000 columns")


def test_hashed_columns_are_read(tmp_path: Path) -> None:
    """Most columns of a hashed vocabulary are empty."""
    wide = presence().tocoo()
    wide = sparse.coo_array((wide.data, (wide.row, wide.col * 1000)), shape=(30, 2**20))
    sparse.save_npz(tmp_path / "hashed.npz", wide)
    assert read_table(tmp_path / "hashed.npz").names == ("x0", "x1000", "x2000", "x3000")


def test_documents_that_cannot_be_meant(tmp_path: Path) -> None:
    path = tmp_path / "docword.x.txt"
    path.write_text("5000000000\n2\n3\n1 1 1\n2 1 1\n2 2 1\n")
    (tmp_path / "vocab.x.txt").write_text("a\nb\n")
    refused_cheaply(lambda: read_table(path), r"docword\.x\.txt: .*5,000,000,000 rows")


# ---- every reader names the file ----------------------------------------------------------


def odd_headers(path: Path, text: bytes) -> Path:
    """A .npy whose header is some text."""
    path.write_bytes(b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + bytes(80))
    return path


@pytest.mark.parametrize(
    "header",
    [b"{'descr': '<i8', 'shape': (2, 2", b"\x00", b"(" * 900, b"1 if 2 else {}", b"{'a': 08}"],
)
def test_headers_that_are_no_headers(tmp_path: Path, header: bytes) -> None:
    path = odd_headers(tmp_path / "odd.npy", header)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"cannot read odd\.npy: .*numpy\.save"):
            read_table(path)


def test_archives_packed_in_other_ways(tmp_path: Path) -> None:
    path = tmp_path / "other.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        stream = io.BytesIO()
        np.save(stream, np.eye(4))
        archive.writestr("arr_0.npy", stream.getvalue())
    with pytest.raises(DataError, match=r"other\.npz: .*encrypted or packed by method"):
        read_table(path)


def test_parquet_that_cannot_be_used(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    twice = pa.Table.from_arrays([pa.array([1, 2, 1]), pa.array([1, 1, 2])], names=["a", "a"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    nested = pa.table({"a": [[1], [2], [1]], "b": [{"c": 1}, {"c": 2}, {"c": 1}]})
    parquet.write_table(nested, tmp_path / "nested.parquet")
    for limit in (None, 1):
        with pytest.raises(DataError, match=r"twice\.parquet: .*'a' occurs more than once"):
            read_table(tmp_path / "twice.parquet", memory_limit=limit)
        with pytest.raises(DataError, match=r"nested\.parquet"):
            read_table(tmp_path / "nested.parquet", memory_limit=limit)
    with pytest.raises(DataError, match=r"twice\.parquet"):
        read_events(tmp_path / "twice.parquet")


def test_what_is_wrong_with_values_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_text("a,b\n1,1\n1,2\n")
    with pytest.raises(DataError, match=r"^one\.csv: column 'a' has one value"):
        read_table(tmp_path / "one.csv")
    (tmp_path / "few.fasta").write_text(">a\nA\n>b\nC\n")
    with pytest.raises(DataError, match=r"^few\.fasta: found data with 1 sample"):
        read_fasta(tmp_path / "few.fasta")
    (tmp_path / "e.csv").write_text("id,code\n")
    with pytest.raises(DataError, match=r"^e\.csv: no code is left"):
        read_events(tmp_path / "e.csv")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_events_without_rows(library: str) -> None:
    module = pytest.importorskip(library)
    with pytest.raises(DataError, match="no code is left"):
        read_events(module.DataFrame({"id": [], "code": []}))


def test_the_boundary(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    with (
        pytest.raises(DataError, match=r"cannot read x\.csv: odd; .*again") as raised,
        reading(path),
    ):
        raise NotImplementedError("odd")
    assert isinstance(raised.value.__cause__, NotImplementedError)
    with pytest.raises(DataError, match=r"reading x\.csv takes more memory"), reading(path):
        raise MemoryError
    with pytest.raises(KeyboardInterrupt), reading(path):
        raise KeyboardInterrupt
    with pytest.raises(FileNotFoundError), reading(path):
        path.read_bytes()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_wherever_it_shows() -> None:
    scratch = ScratchFolder()
    scratch._file = open("/dev/full", "r+b")  # noqa: SIM115
    with pytest.raises(DataError, match=r"no room for scratch files .* raise memory_limit"):
        scratch.add(np.arange(3))  # smaller than the buffer of the file
    scratch._file.raw.close()


# ---- models -------------------------------------------------------------------------------


def saved_model(path: Path, family: str, hidden: str = "categorical") -> Any:
    from latenttree.evaluation.datasets import make_latent_tree

    data = make_latent_tree(4, n_samples=50, family=family, hidden=hidden, random_state=0)
    save_archive(path, Saved(data.model))
    return data.model


NUMBERS: dict[str, tuple[str, str, str, float]] = {
    "no variance": ("gaussian", "emissions", "variances", 0.0),
    "huge variance": ("gaussian", "emissions", "variances", 1e308),
    "tiny variance": ("gaussian", "emissions", "variances", 1e-310),
    "huge mean": ("gaussian", "emissions", "means", 1e308),
    "huge shift": ("gaussian", "emissions", "shift", -1e308),
    "huge scale": ("gaussian", "emissions", "scale", 1e308),
    "huge rate": ("poisson", "emissions", "rates", 1e300),
    "negative rate": ("poisson", "emissions", "rates", -1.0),
    "negative table": ("categorical", "tables", "", -0.5),
    "sums of a table": ("categorical", "tables", "", 0.99),
}


@pytest.mark.parametrize("case", NUMBERS)
def test_numbers_that_no_model_has(tmp_path: Path, case: str) -> None:
    from latenttree.io.archive import ARRAYS
    from latenttree.io.emission_arrays import shapes_of
    from latenttree.io.npz import pack
    from latenttree.io.zip_archive import write_zip

    family, member, array, value = NUMBERS[case]
    path = tmp_path / "bad.ltree"
    saved_model(path, family)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with np.load(io.BytesIO(members[ARRAYS])) as stored:
        arrays = {name: stored[name].copy() for name in stored.files}
    before = 0
    for name, shape in shapes_of(family, 1, 2).items() if array else ():
        if name == array:
            break
        before += int(np.prod(shape))
    arrays[member][before] = value
    given = {name: (a, "<i8" if a.dtype.kind == "i" else "<f8") for name, a in arrays.items()}
    members[ARRAYS] = pack(given)  # type: ignore[arg-type]
    path.write_bytes(write_zip(members))
    with pytest.raises(DataError, match=r"bad\.ltree holds no valid model"):
        lt.load(path)


def test_trees_whose_numbers_are_too_large_for_floats(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    saved_model(tmp_path / "m.ltree", "categorical")
    with zipfile.ZipFile(tmp_path / "m.ltree") as archive:
        text = archive.read("tree.json").decode()
    start = text.index('"lengths": [') + len('"lengths": [')
    path.write_text(text[:start] + "9" * 400 + text[text.index(",", start) :])
    with pytest.raises(DataError, match=r"t\.json holds no valid tree"):
        load_tree(path)


# ---- labels, columns, weights -------------------------------------------------------------


@pytest.mark.parametrize("memory_limit", [None, 1], ids=["at once", "in parts"])
def test_labels_that_differ_in_zeros_stay_apart(tmp_path: Path, memory_limit: int | None) -> None:
    path = tmp_path / "zeros.csv"
    path.write_text(
        "zip,n,padded,real,under\n" + "01,1,01,1.0,1_0\n1,2,02,1,10\n2,,03,2.5,10\n" * 4
    )
    table = read_table(path, memory_limit=memory_limit)
    found = dict(
        zip(table.names, (c if c is None else c.tolist() for c in table.categories), strict=True)
    )
    assert found["zip"] == ["01", "1", "2"]
    assert found["n"] == [1, 2]
    assert found["padded"] == [1, 2, 3]  # nothing is merged: still numbers
    assert found["under"] == ["10", "1_0"]


def test_columns_of_several_levels() -> None:
    frame = pd.DataFrame(np.eye(4, dtype=int))
    frame.columns = pd.MultiIndex.from_product([["a", "b"], [1, 2]])
    with pytest.raises(DataError, match=r"2 levels \(the first is \('a', '1'\)\).*'/'\.join"):
        lt.LatentTree().fit(frame)


@pytest.mark.parametrize("weights", [[1e18, 1, 1, 1], [1e300] * 4, [4e15] * 4])
def test_weights_whose_sums_lose_rows(weights: list[float]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=r"beyond 2\^53 lose rows.*sample_weight \* n"):
            as_table(np.eye(4, dtype=int), sample_weight=weights)


# ---- no warnings of NumPy -----------------------------------------------------------------


def test_half_precision() -> None:
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(300, 4)) + rng.normal(size=(300, 1))).astype(np.float16)
    codes = (X > 0).astype(np.float16)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        frames = [pd.DataFrame(X)] if hasattr(narwhals, "Float16") else []  # else refused by name
        for data in (X, codes, *frames):
            assert as_table(data).n_vars == 4
        model = lt.LatentTree(random_state=0, n_jobs=1).fit(codes)
        assert np.isfinite(model.score(codes))


def test_variables_that_are_never_seen_together() -> None:
    """Nothing is known about such a pair, so the model has it independent."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, (200, 2)).astype(float)
    X[:100, 0], X[100:, 1] = np.nan, np.nan
    wide = rng.integers(0, 2, (400, 6)).astype(float)
    for j in range(6):
        wide[np.arange(400) % 6 != j, j] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for data in (X, wide):
            model = lt.LatentTree(random_state=0, n_jobs=1).fit(data)
            tables = [table for table in model.model_.cpts if table.shape[1] > 1]
            for table in tables:
                np.testing.assert_allclose(table[:, 0], table[:, 1], atol=0.05)


@pytest.mark.parametrize("size", [1e200, 1e-200])
def test_numbers_without_a_variance(size: float) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3)) * size
    with pytest.raises(DataError, match=r"'x0' has values of size .*rescale it"):
        lt.LatentTree(hidden="gaussian").fit(X)


@pytest.mark.parametrize(("name", "value"), [("noise", 1e-300), ("noise", 1e300), ("means", 1e308)])
def test_gaussian_trees_whose_numbers_cannot_be_used(
    tmp_path: Path, name: str, value: float
) -> None:
    path = tmp_path / "bad.ltree"
    model = saved_model(tmp_path / "good.ltree", "gaussian", hidden="gaussian")
    arrays = model.to_arrays()
    arrays[name] = arrays[name].copy()
    arrays[name][0] = value
    save_archive(path, Saved(type(model).from_arrays(model.tree, arrays)))
    with pytest.raises(DataError, match=r"bad\.ltree holds no valid model"):
        lt.load(path)
