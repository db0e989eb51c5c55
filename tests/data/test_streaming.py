"""Tables that are read part by part are those that are read at once, to the last bit."""

from __future__ import annotations

import errno
import gzip
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet
from scipy import sparse
from tests.data.refusals import refused, refusing
from tests.reference.csv_table import table_of_csv
from typer.testing import CliRunner

from latenttree.cli import app
from latenttree.data import (
    DataError,
    Table,
    as_table,
    check_identifiers,
    read_events,
    read_table,
)
from latenttree.data.columns.bins import quantile_edges, varies
from latenttree.data.files.csv_cells import Roles
from latenttree.data.files.parquet import parquet_batches
from latenttree.data.files.sparse_npz import SparseFile
from latenttree.data.streaming.assemble import ReadPlan, streamed_table
from latenttree.data.streaming.columns import MAX_DISTINCT
from latenttree.data.streaming.pairs import BUCKET_ROWS, PairCollector, Pairs
from latenttree.data.streaming.quantiles import range_of, streamed_edges, streamed_varies
from latenttree.data.streaming.scratch import Arrays, ScratchFolder, map_of, release
from latenttree.data.streaming.sources import (
    RowSource,
    array_source,
    csv_source,
    npy_source,
    npz_source,
    parquet_source,
    with_weights,
)
from latenttree.errors import Place
from latenttree.estimator import LatentTree
from latenttree.evaluation.datasets import make_latent_tree

SMALL = 1 << 14  # bytes read at once: a few hundred rows


def assert_same(found: Table, expected: Table) -> None:
    """Every field, with its types."""
    assert found.names == expected.names
    assert (found.kind, found.n_samples) == (expected.kind, expected.n_samples)
    assert (found.dropped, found.notes) == (expected.dropped, expected.notes)
    for name in ("dims", "offsets", "codes", "missing", "weights"):
        same_array(getattr(found, name), getattr(expected, name), name)
    for one, other in zip(found.categories, expected.categories, strict=True):
        same_array(one, other, "categories")
    same_matrix(found.matrix, expected.matrix)
    assert (found.values is None) == (expected.values is None)
    if found.values is not None and expected.values is not None:
        assert found.values.families == expected.values.families
        same_array(found.values.codes, expected.values.codes, "codes of values")
        assert list(found.values.arrays) == list(expected.values.arrays)
        for v, array in found.values.arrays.items():
            same = same_matrix if sparse.issparse(array) else same_array
            same(array, expected.values.arrays[v])


def same_array(found: Any, expected: Any, what: str = "values") -> None:
    if found is None or expected is None:
        assert found is expected, what
        return
    assert found.dtype == expected.dtype, what
    np.testing.assert_array_equal(found, expected, err_msg=what)


def same_matrix(found: Any, expected: Any) -> None:
    if found is None or expected is None:
        assert found is expected
        return
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        same_array(getattr(found, name), getattr(expected, name), name)
    assert found.has_canonical_format


def streamed(source: RowSource, mapped: bool = True, **options: Any) -> Table:
    plan = ReadPlan(0 if mapped else 1 << 30, **options)
    return streamed_table(source.header, source.chunks(SMALL), plan, source.texts)


# ---- arrays -----------------------------------------------------------------------------


def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    floats = rng.normal(size=(6000, 4))
    gappy = np.where(rng.random(floats.shape) < 0.1, np.nan, np.round(floats, 1))
    gappy[:, 2] = rng.integers(0, 6, 6000)  # floats that are few whole numbers
    gappy[0, 3] = -0.0
    one = np.where(rng.random((9000, 2)) < 0.97, 5.0, rng.random((9000, 2)))
    one[:, 1] = -one[:, 1]
    return {
        "bytes": rng.integers(0, 5, (500, 3), dtype=np.uint8),
        "integers": rng.choice([0, 7, 70_000, 2**40], (700, 4)),
        "unsigned": rng.choice([0, 2**63 + 1, 2**63 + 2], (700, 2)).astype(np.uint64),
        "many categories": rng.integers(0, 400, (3000, 2)).astype(np.int16),
        "booleans": rng.random((300, 3)) < 0.3,
        "text": rng.choice(["ant", "bee", "crocodile"], (400, 2)),
        "floats": floats,
        "single floats": floats.astype(np.float32),
        "gaps": gappy,
        "whole floats": rng.integers(0, 5000, (20_000, 2)).astype(np.float64),
        "mostly one value": one,
        "mostly one value of many": np.where(
            rng.random((99_000, 1)) < 0.93, 5.0, rng.random((99_000, 1))
        ),
    }


@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", arrays())
def test_rows_of_an_array(name: str, mapped: bool) -> None:
    X = arrays()[name]
    assert_same(streamed(array_source(X), mapped), as_table(X))


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("many categories", "gaussian"),
        ("many categories", "poisson"),
        ("integers", "ordinal"),
        ("integers", {"x1": "gaussian"}),
        ("whole floats", "poisson"),
        ("whole floats", "categorical"),
        ("floats", {"x2": "gaussian_full"}),
        ("booleans", "binary"),
    ],
)
def test_requested_families(name: str, family: Any) -> None:
    X = arrays()[name]
    assert_same(streamed(array_source(X), family=family), as_table(X, family=family))


def test_rows_have_weights() -> None:
    rng = np.random.default_rng(1)
    for name in ("bytes", "floats", "gaps"):
        X = arrays()[name]
        weights = rng.integers(0, 4, len(X)).astype(np.float64)
        found = streamed(with_weights(array_source(X), weights))
        assert_same(found, as_table(X, sample_weight=weights))
    ones = np.ones(len(X))
    assert_same(streamed(with_weights(array_source(X), ones)), as_table(X, sample_weight=ones))


def test_constant_and_empty_columns_are_dropped() -> None:
    X = arrays()["gaps"].copy()
    X[:, 1] = 3.5
    X[:, 2] = np.nan
    found = streamed(array_source(X), drop_constant=True)
    assert found.dropped == ("x1", "x2")
    assert_same(found, as_table(X, drop_constant=True))


def test_errors_count_rows_of_weight_zero() -> None:
    X = np.column_stack([np.arange(9000) % 3, np.arange(9000) % 7])
    weights = np.where(np.arange(9000) % 2, 1.0, 0.0)
    X[8765, 1] = -3
    with refusing(refused("at row 8765", column="x1", row=8765, value=-3)):
        streamed(with_weights(array_source(X), weights))
    weights[4321] = -0.5
    with refusing(refused("of row 4321", row=4321, value=-0.5, option="sample_weight")):
        streamed(with_weights(array_source(X), weights))


WRONG: dict[str, tuple[np.ndarray, Any]] = {
    "constant": (np.column_stack([np.ones(900), np.arange(900) % 3]), "auto"),
    "infinite": (
        np.where(np.arange(6000)[:, None] == [5432, -1], np.inf, arrays()["floats"][:, :2]),
        "auto",
    ),
    "negative": (np.where(np.arange(9000)[:, None] == 8765, -3, [[1, 2, 3]]), "auto"),
    "numbers of rows": (np.column_stack([np.arange(9000.0), arrays()["mostly one value"]]), "auto"),
    "identifiers": (np.column_stack([np.arange(900), np.arange(900) % 7]), "auto"),
    "no counts": (arrays()["floats"] + 50, "poisson"),
    "text as numbers": (arrays()["text"], "gaussian"),
    "one row": (np.ones((1, 2)), "auto"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_are_the_same(name: str) -> None:
    X, family = WRONG[name]
    with pytest.raises(DataError) as expected:
        check_identifiers(as_table(X, family=family))
    with pytest.raises(DataError) as found:
        check_identifiers(streamed(array_source(X), family=family))
    assert str(found.value) == str(expected.value)
    assert found.value.place == expected.value.place
    np.testing.assert_equal(found.value.value, expected.value.value)


# ---- files ------------------------------------------------------------------------------


def read_both(path: Path, **options: Any) -> tuple[Table, Table]:
    """The file read part by part, and at once."""
    return read_table(path, memory_limit=1000, **options), read_table(path, **options)


@pytest.mark.parametrize("name", ["bytes", "text", "floats", "gaps", "many categories"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", ["npy", "npz", "compressed"])
def test_arrays_in_files(tmp_path: Path, name: str, order: Any, kind: str) -> None:
    X = np.asarray(arrays()[name], order=order)
    path = tmp_path / ("x.npy" if kind == "npy" else "x.npz")
    save = {"npy": np.save, "npz": np.savez, "compressed": np.savez_compressed}[kind]
    save(path, X)
    names = [f"n{j}" for j in range(X.shape[1])]
    found, expected = read_both(path, names=names)
    assert_same(found, expected)
    assert map_of(found.codes) is not None
    source = npy_source(path) if kind == "npy" else npz_source(path, "arr_0")
    assert_same(streamed(source, names=names), expected)


def test_mapped_arrays(tmp_path: Path) -> None:
    X = arrays()["gaps"]
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    weights = np.arange(len(X)) % 3
    for options in ({}, {"sample_weight": weights}, {"names": list("abcd")}):
        found = as_table(mapped, memory_limit=1000, **options)
        assert map_of(found.codes) is not None
        assert_same(found, as_table(X, **options))
        assert_same(as_table(mapped, **options), as_table(X, **options))
    with pytest.raises(DataError, match=r"shape \(5,\), but X has 6000 rows"):
        as_table(mapped, sample_weight=np.ones(5), memory_limit=1000)


CUT = """
import os, sys
from pathlib import Path
import numpy as np
from latenttree.data.streaming.assemble import ReadPlan, streamed_table
from latenttree.data.streaming.sources import npy_source
from latenttree.errors import DataError

path, order = Path(sys.argv[1]), sys.argv[2]
np.save(path, np.asarray(np.random.default_rng(0).integers(0, 3, (200_000, 8)), order=order))

def chunks(found):
    for i, chunk in enumerate(found):
        if i == 2:
            os.truncate(path, 1 << 20)
        yield chunk

found = npy_source(path)
try:
    streamed_table(found.header, chunks(found.chunks(1 << 19)), ReadPlan(1000))
except DataError as error:
    print(error)
"""


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_file_that_is_cut_while_it_is_read_is_named(tmp_path: Path, order: str) -> None:
    command = [sys.executable, "-c", CUT, str(tmp_path / "x.npy"), order]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert re.search(r"cannot read x.npy: .* values expected.*; it is cut", done.stdout)


def test_a_map_of_a_file_that_was_cut_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", arrays()["floats"])
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    os.truncate(tmp_path / "x.npy", 5000)
    with pytest.raises(DataError, match=r"a map of x.npy, which has only 5,000 of 192,128 bytes"):
        as_table(mapped, memory_limit=1000)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", arrays()["floats"])
    os.truncate(tmp_path / "x.npy", 5000)
    for limit in (None, 1000):
        with pytest.raises(DataError, match=r"x\.npy.* it is cut.* again"):
            read_table(tmp_path / "x.npy", memory_limit=limit)


def test_cells_are_the_same_with_blanks_around_them(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    lines = ["a,b", *(["x, 1", " x,1", "y ,NA", " ,2", "?,\t1"] * 40)]
    path.write_text("\n".join(lines))
    found, expected = read_both(path)
    assert_same(found, expected)
    assert [list(labels) for labels in expected.categories] == [["x", "y"], [1, 2]]


def frame(n: int = 3000) -> Any:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(2)
    data = pandas.DataFrame(
        {
            "colour": rng.choice(["red", "green", None], n),
            "size": pandas.Categorical(rng.choice(["S", "M", "L"], n), ["S", "M", "L"]),
            "count": rng.integers(0, 5, n),
            "sick": rng.random(n) < 0.2,
            "age": rng.integers(0, 900, n),
            "weight": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n)),
            "dose": rng.integers(0, 4, n) / 4,
            "often": rng.integers(0, 3, n),
        }
    )
    data["gappy"] = pandas.array(rng.integers(0, 4, n), dtype="Int64")
    data.loc[::7, "gappy"] = None
    data["late"] = np.where(np.arange(n) < n // 2, np.nan, rng.integers(0, 3, n))
    return data


@pytest.mark.parametrize("weights", [None, "often"])
def test_parquet(tmp_path: Path, weights: str | None) -> None:
    path = tmp_path / "x.parquet"
    frame().to_parquet(path, row_group_size=1000)
    found, expected = read_both(path, weights=weights, ignore=["sick", "dose"])
    assert_same(found, expected)
    assert_same(streamed(parquet_source(path, Roles(weights, ["sick", "dose"]))), expected)
    assert "age" in expected.names
    assert not {"sick", "dose", weights} & set(expected.names)
    for options in ({"ignore": ["no"]}, {"weights": "no"}):
        with pytest.raises(DataError, match=r"no column 'no' (to ignore|of weights); the columns"):
            read_table(path, memory_limit=1000, **options)


def test_parquet_in_parts_holds_few_of_them(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"x": np.arange(1 << 21)}), path, row_group_size=1 << 17)
    before, most = pa.total_allocated_bytes(), 0
    for _ in parquet_batches(path, ["x"], 1 << 14):
        most = max(most, pa.total_allocated_bytes() - before)
    assert most < 1 << 22  # of 1 << 24


def test_index_of_pandas_is_no_column(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    data = frame()[::-1]
    data.to_parquet(path)
    found, expected = read_both(path)
    assert found.names == tuple(data.columns)
    assert_same(found, expected)


@pytest.mark.parametrize("weights", [None, "often"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv(tmp_path: Path, weights: str | None, suffix: str) -> None:
    path = tmp_path / f"x{suffix}"
    data = frame()
    data["numbers"] = ["1", " 1.0", "2", "nan", "-0", "NA", "+nan", "3.5"] * (len(data) // 8)
    data["whole"] = ["1", " 1", "01", "2"] * (len(data) // 4)
    data["mixed"] = ["1", "2", "x", ""] * (len(data) // 4)
    data.to_csv(path, index=False)
    family = {"age": "gaussian"}
    options = {"weights": weights, "family": family, "ignore": ["sick"]}
    found, expected = read_both(path, **options)
    assert_same(found, expected)
    assert_same(found, table_of_csv(path, **options))
    options["family"] = "auto"
    options["ignore"] = ["sick", "colour", "size", "mixed", "whole"]
    assert_same(
        read_table(path, scores=True, **options), table_of_csv(path, scores=True, **options)
    )
    source = csv_source(path, ",", Roles(weights, ["sick"]))
    assert_same(streamed(source, family=family), expected)
    assert not {"sick", weights} & set(expected.names)


def test_csv_with_fractional_weights(tmp_path: Path) -> None:
    path, data = tmp_path / "x.csv", frame(2 * MAX_DISTINCT)
    data["often"] = np.random.default_rng(0).random(len(data)).round(3)
    data.to_csv(path, index=False)
    assert_same(read_table(path, weights="often"), table_of_csv(path, weights="often"))


def test_csv_of_many_decimals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are stored as numbers from `MAX_DISTINCT` different ones on; the error comes later."""
    monkeypatch.setattr("latenttree.data.files.csv_batches.BLOCK_BYTES", SMALL)
    path, data = tmp_path / "x.csv", frame(2 * MAX_DISTINCT)
    row = len(data) - 100
    data.to_csv(path, index=False)
    found, expected = read_both(path)
    assert_same(found, expected)
    assert_same(found, table_of_csv(path))
    assert_same(streamed(csv_source(path, ",", Roles(None, ()))), expected)
    data["weight"] = data["weight"].astype(object)
    data.loc[row, "weight"] = "heavy"
    data.to_csv(path, index=False)
    with refusing(refused("holds decimal numbers", column="weight", row=row, value="heavy")):
        read_table(path, memory_limit=1000)
    assert_same(read_table(path), table_of_csv(path))
    data.loc[row, "weight"] = "inf"
    data.to_csv(path, index=False)
    for limit in (1000, None):
        with refusing(refused("infinity", column="weight", row=row, value=np.inf)):
            read_table(path, memory_limit=limit)


# ---- sparse binary tables ---------------------------------------------------------------


N_BUCKETS = BUCKET_ROWS + 900
"""Samples in two buckets."""


def counts(n: int = 900) -> np.ndarray:
    """Of 30 words in n documents: one that never occurs, one that always does; some documents
    have no other."""
    rng = np.random.default_rng(3)
    found = rng.poisson(rng.gamma(0.3, 1.0, 30), (n, 30))
    found[:, 7] = 0
    found[40:60] = 0
    found[:, 8] = 1
    return found


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_sparse_matrices(tmp_path: Path, form: str) -> None:
    path = tmp_path / "x.npz"
    X = counts(N_BUCKETS)
    sparse.save_npz(path, sparse.csr_array(X.astype(np.float64)).asformat(form))
    assert_same(*read_both(path, min_count=3))


@pytest.mark.parametrize("read_entries", [1, 300, 1 << 20])
@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_sparse_matrices_in_any_parts(tmp_path: Path, form: str, read_entries: int) -> None:
    path, X = tmp_path / "x.npz", counts(60)
    sparse.save_npz(path, sparse.csr_array(X.astype(np.float64)).asformat(form))
    file = SparseFile(path, read_entries)
    parts = list(file.positive_entries([f"w{j}" for j in range(30)]))
    assert len(parts) == -(-np.count_nonzero(X) // read_entries)
    rows, columns = (np.concatenate(part) for part in zip(*parts, strict=True))
    ones = sparse.coo_array((np.ones(len(rows), int), (rows, columns)), shape=X.shape)
    np.testing.assert_array_equal(ones.toarray(), X > 0)


@pytest.mark.parametrize("bucket_rows", [1, 64, BUCKET_ROWS])
def test_pairs_in_buckets_are_those_of_all_at_once(bucket_rows: int) -> None:
    """Pairs in any order, some of them twice; samples without a code at the start and the end."""
    rng = np.random.default_rng(5)
    texts = [f"c{j}" for j in range(20)]
    rows, codes = rng.choice(np.arange(10, 290), 800), rng.integers(0, 19, 800)
    found = PairCollector(ScratchFolder(), bucket_rows)
    held = PairCollector(ScratchFolder(held=True), bucket_rows)
    for part in np.array_split(np.arange(800), 7):
        for collector in (found, held):
            collector.add(rows[part], codes[part])
    expected = AllPairs(set(zip(rows.tolist(), codes.tolist(), strict=True)), texts, 300)
    for pairs in (found.sorted(300, texts), held.sorted(300, texts)):
        check_pairs(pairs, expected)
        check_pairs(pairs.limited(["c3", "none", "c1"]), expected.limited(["c3", "none", "c1"]))
        halved = AllPairs({(row, code // 2) for row, code in expected.pairs}, texts[:10], 300)
        parents = {text: [texts[j // 2]] for j, text in enumerate(texts)}
        check_pairs(pairs.changed(parents, texts[:10]), halved)
        some, kept = pairs.limited(texts[:3]).nonempty()
        few = expected.limited(texts[:3])
        used = sorted({row for row, _ in few.pairs})
        assert kept.tolist() == used
        check_pairs(
            some, AllPairs({(used.index(r), c) for r, c in few.pairs}, few.texts, len(used))
        )


class AllPairs(NamedTuple):
    """The obvious twin of `Pairs`: a set."""

    pairs: set[tuple[int, int]]
    texts: list[str]
    n_rows: int

    def limited(self, texts: list[str]) -> AllPairs:
        kept = {(r, texts.index(t)) for r, c in self.pairs if (t := self.texts[c]) in texts}
        return AllPairs(kept, texts, self.n_rows)


def check_pairs(found: Pairs, expected: AllPairs) -> None:
    assert len(found) == len(expected.pairs)
    assert list(found.texts) == expected.texts
    counts = Counter(expected.texts[code] for _, code in expected.pairs)
    assert list(found.counts().items()) == sorted(counts.items())
    dense = np.zeros((expected.n_rows, len(expected.texts)), dtype=np.float32)
    for row, code in expected.pairs:
        dense[row, code] = 1
    same_matrix(found.matrix(Arrays(sys.maxsize)), sparse.csr_array(dense))


@pytest.mark.parametrize("value", [-1.0, np.nan])
def test_wrong_values_of_sparse_matrices(tmp_path: Path, value: float) -> None:
    matrix = sparse.csr_array(counts().astype(np.float64))
    matrix.data[1234] = value
    sparse.save_npz(tmp_path / "x.npz", matrix)
    row = int(np.searchsorted(matrix.indptr, 1234, side="right")) - 1
    column = f"x{matrix.indices[1234]}"
    messages = set()
    for limit in (1000, None):
        with pytest.raises(DataError) as error:
            read_table(tmp_path / "x.npz", memory_limit=limit)
        messages.add(str(error.value))
        assert error.value.place == Place(column, row, path=str(tmp_path / "x.npz"))
        np.testing.assert_equal(error.value.value, value)
    assert len(messages) == 1


@pytest.mark.parametrize("shuffled", [False, True])
def test_docword(tmp_path: Path, shuffled: bool) -> None:
    found = counts(N_BUCKETS)
    entries = zip(*np.nonzero(found), strict=True)
    lines = [f"{d + 1} {w + 1} {found[d, w]}" for d, w in entries]
    if shuffled:
        lines = [lines[i] for i in np.random.default_rng(0).permutation(len(lines))]
    text = "\n".join([str(N_BUCKETS), "30", str(len(lines)), *lines]) + "\n"
    path = tmp_path / "docword.few.txt.gz"
    path.write_bytes(gzip.compress(text.encode()))
    (tmp_path / "vocab.few.txt").write_text("\n".join(f"w{j}" for j in range(30)))
    assert_same(*read_both(path))
    assert_same(*read_both(path, min_count=N_BUCKETS // 3))


EVENT_OPTIONS: dict[str, dict[str, Any]] = {
    "plain": {},
    "window": {"since": "2020-03-01", "until": "2020-09"},
    "rolled up": {"roll_up": {f"c{j}": [f"p{j // 3}", f"q{j // 7}"] for j in range(25)}},
    "grouped": {"groups": {f"c{j}": f"g{j // 5}" for j in range(28)}},
    "codes": {"codes": [f"c{j}" for j in range(20, 0, -2)]},
    "samples": {"all_samples": list(range(5, N_BUCKETS))},
    "supported": {"min_count": 650},
}


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
@pytest.mark.parametrize("name", EVENT_OPTIONS)
def test_events(tmp_path: Path, name: str, suffix: str) -> None:
    """More events than are read at once, of samples in two buckets."""
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(4)
    n = 20_000
    days = pandas.Timestamp("2020-01-01") + pandas.to_timedelta(rng.integers(0, 366, n), "D")
    data = pandas.DataFrame(
        {
            "patient": rng.permutation(np.arange(n) % (N_BUCKETS + 500)),
            "code": [f"c{j}" for j in rng.integers(0, 30, n)],
            "date": days.strftime("%Y-%m-%d") if suffix != ".parquet" else days,
        }
    )
    data.loc[::50, "code"] = None
    path = tmp_path / f"x{suffix}"
    data.to_parquet(path) if suffix == ".parquet" else data.to_csv(path, index=False)
    options = EVENT_OPTIONS[name]
    found, expected = read_events(path, memory_limit=1000, **options), read_events(path, **options)
    assert map_of(found.matrix.indices) is not None
    same_matrix(found.matrix, expected.matrix)
    same_array(found.samples, expected.samples, "samples")
    assert (found.names, found.notes) == (expected.names, expected.notes)
    assert found.report == expected.report
    assert list(found.groups or {}) == list(expected.groups or {})
    if name != "codes":
        assert_same(found.table(), expected.table())


# ---- pieces -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(30))
def test_streamed_edges_are_those_of_all_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 3000))
    x = rng.choice([rng.normal(size=n) * 10.0 ** rng.integers(-300, 300), rng.poisson(2, n) - 1.0])
    x[rng.random(n) < 0.5] = rng.choice([0.0, -0.0, x[0], x.max(), 5e-324])
    weights = rng.integers(1, 5, n).astype(np.float64) if seed % 2 else None
    cuts = np.sort(rng.integers(0, n, 4))
    rows = np.split(np.arange(n), cuts)
    parts = [(x[i], None if weights is None else weights[i]) for i in rows]
    found = range_of(lambda: parts)
    np.testing.assert_array_equal(streamed_edges(lambda: parts, found), quantile_edges(x, weights))
    assert streamed_varies(lambda: parts, found) == varies(x, weights)


def test_scratch_files_have_no_name_and_say_where_there_is_no_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scratch = ScratchFolder(tmp_path)
    part = scratch.add(np.arange(6).reshape(2, 3))
    np.testing.assert_array_equal(scratch.read(part), np.arange(6).reshape(2, 3))
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(DataError, match=r"cannot write scratch files in .*none.*pass scratch"):
        ScratchFolder(tmp_path / "none")

    def full(_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(scratch, "_file", SimpleNamespace(seek=lambda _: None, write=full))
    with pytest.raises(DataError, match=r"no room for scratch files .* raise memory_limit"):
        scratch.add(np.arange(3))


def test_arrays_beyond_their_room_are_mapped_and_may_be_written_to(tmp_path: Path) -> None:
    arrays = Arrays(100, tmp_path)
    parts = [np.arange(10), np.arange(10, 20)]
    for dtype in (np.int32, np.int64, np.uint8):
        arrays.add(parts, (20,), dtype)
    held, mapped, small = arrays.finish()
    assert [map_of(found) is None for found in (held, mapped, small)] == [True, False, True]
    for found in (held, mapped, small):
        np.testing.assert_array_equal(found, np.arange(20))
    release(mapped)
    mapped[3] = 7
    assert mapped[3] == 7
    arrays.add(parts, (21,), np.int64)
    with pytest.raises(ValueError, match="parts of"):
        arrays.finish()


# ---- fits -------------------------------------------------------------------------------


def test_a_fit_of_a_file_is_that_of_its_data(tmp_path: Path) -> None:
    truth = make_latent_tree(9, n_samples=3000, random_state=0)
    X = np.asarray(truth.X)
    np.save(tmp_path / "x.npy", X)
    expected = LatentTree(random_state=0).fit(X)
    mapped = read_table(tmp_path / "x.npy", memory_limit=1000)
    assert map_of(mapped.codes) is not None
    for source in (tmp_path / "x.npy", str(tmp_path / "x.npy"), mapped):
        model = LatentTree(random_state=0).fit(source)
        assert model.tree_.names == expected.tree_.names
        np.testing.assert_array_equal(model.tree_.edges, expected.tree_.edges)
        np.testing.assert_array_equal(model.tree_.lengths, expected.tree_.lengths)
        assert model.score(mapped) == expected.score(X)
        assert model.n_features_in_ == X.shape[1]


def test_the_command_line_reads_part_by_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    truth = make_latent_tree(9, n_samples=3000, random_state=0)
    data = pytest.importorskip("pandas").DataFrame(np.asarray(truth.X)).rename(columns="v{}".format)
    data.insert(0, "id", np.arange(len(data)))
    data.to_parquet(tmp_path / "x.parquet")
    trees = []
    for limit in (None, 10_000):
        if limit is not None:
            monkeypatch.setattr("latenttree.data.reader.memory_bytes", lambda _, n=limit: n)
        out = tmp_path / f"tree{limit}.json"
        command = ["fit", tmp_path / "x.parquet", "-o", out, "--ignore", "id", "--seed", "0"]
        result = CliRunner().invoke(app, [*map(str, command), "--no-search"])
        assert result.exit_code == 0, result.output
        trees.append(json.loads(out.read_text()))
        del trees[-1]["stage_seconds"]
    assert trees[0] == trees[1]
    result = CliRunner().invoke(app, [*map(str, command), "--memory-limit", "1MiB"])
    assert "--memory-limit is 1.0 MiB; raise --memory-limit" in result.stderr
    monkeypatch.undo()
    result = CliRunner().invoke(app, [*map(str, command), "--memory-limit", "much"])
    assert "--memory-limit much; give bytes" in result.stderr
