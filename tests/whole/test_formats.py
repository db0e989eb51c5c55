"""Every registered format of files works everywhere, or is refused by a clear error."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from scipy.io import mmwrite
from tests.cli.commands import NAMES, accepted, bits, read_csv, refused
from tests.cli.conftest import _wide  # noqa: F401

from latenttree.cli import options
from latenttree.data import Table, read_table
from latenttree.data.events.columns import read_blocks
from latenttree.data.files import formats
from latenttree.data.files.fasta import SUFFIXES
from latenttree.data.files.formats import FORMATS, memory_needed, sizes_of
from latenttree.engine.memory import memory_bytes, room_for_reading
from latenttree.errors import DataError

N = 600
LIMIT = "1MiB"  # less than the process holds already
FIT = ("--seed", "0", "--threads", "1", "--no-search", "--states", "2")


def _write_docword(path: Path, frame: pd.DataFrame) -> None:
    pairs = np.argwhere(frame.to_numpy())
    lines = [*frame.shape, len(pairs), *(f"{i + 1} {j + 1} 1" for i, j in pairs)]
    path.write_text("\n".join(map(str, lines)))
    path.with_name(path.name.replace("docword", "vocab")).write_text("\n".join(frame))


def _write_alignment(path: Path, frame: pd.DataFrame) -> None:
    columns = frame.items()
    path.write_text(
        "".join(f">{name}\n{''.join('AC'[b] for b in bits)}\n" for name, bits in columns)
    )


def _write_stream(path: Path, frame: pd.DataFrame) -> None:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)


def _write_market(path: Path, frame: pd.DataFrame) -> None:
    mmwrite(path, sparse.csr_array(frame.to_numpy()))
    path.with_name(f"{path.stem}.columns.txt").write_text("\n".join(frame))


def _write_annotated(path: Path, frame: pd.DataFrame) -> None:
    anndata = pytest.importorskip("anndata", reason="anndata is not installed")
    matrix = sparse.csr_matrix(frame.to_numpy().astype(float))
    anndata.AnnData(matrix, var=pd.DataFrame(index=list(frame))).write_h5ad(path)


Writer = Callable[[Path, pd.DataFrame], None]
WRITERS: dict[str, Writer] = {
    ".csv": lambda path, frame: frame.to_csv(path, index=False),
    ".tsv": lambda path, frame: frame.to_csv(path, index=False, sep="\t"),
    ".parquet": lambda path, frame: frame.to_parquet(path, index=False),
    ".feather": lambda path, frame: frame.to_feather(path),
    ".arrow": _write_stream,
    ".xlsx": lambda path, frame: frame.to_excel(path, index=False),
    ".npy": lambda path, frame: np.save(path, frame.to_numpy()),
    ".npz": lambda path, frame: sparse.save_npz(path, sparse.csr_array(frame.to_numpy())),
    ".mtx": _write_market,
    ".h5ad": _write_annotated,
    ".txt": _write_docword,
    **dict.fromkeys(SUFFIXES, _write_alignment),
}
NAMED = [suffix for suffix, known in FORMATS.items() if known.has_columns]
UNNAMED = [suffix for suffix, known in FORMATS.items() if not known.has_columns]
DIFFERENT = [s for s in FORMATS if s not in (*SUFFIXES[1:], ".arrow")]  # for what takes long


def plain() -> pd.DataFrame:
    return pd.DataFrame(bits(N), columns=NAMES)


def with_others() -> pd.DataFrame:
    """The same with columns that are no variables."""
    rows = np.arange(N)
    return plain().assign(id=[f"p{i}" for i in rows], w=1 + rows % 3)


def written(folder: Path, suffix: str, frame: pd.DataFrame) -> Path:
    path = folder / f"docword.x{suffix}"
    WRITERS[suffix](path, frame)
    return path


def assert_same(table: Table, expected: Table) -> None:
    assert (table.names, table.kind) == (expected.names, expected.kind)
    for name in ("codes", "weights", "matrix"):
        found, wanted = (getattr(t, name) for t in (table, expected))
        assert (found is None) == (wanted is None), name
        if found is not None:
            dense = [x.toarray() if sparse.issparse(x) else x for x in (found, wanted)]
            np.testing.assert_array_equal(*dense)


# ---- the registry ---------------------------------------------------------------------


def test_every_format_is_tested() -> None:
    assert set(WRITERS) == set(FORMATS), "add a function that writes such a file to WRITERS"


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_format_has_all_its_parts(suffix: str) -> None:
    known = FORMATS[suffix]
    assert (known.frame is None) == (known.batches is None)
    assert known.has_columns == (known.samples is None)
    assert known.has_columns or known.frame is None
    assert known.name in formats.KNOWN_FILES
    assert f"``{known.name}" in str(read_table.__doc__)


def test_help_lists_the_formats() -> None:
    names = list(dict.fromkeys(known.name for known in FORMATS.values()))
    assert options.DATA_FILES.replace("[.gz]", "") == ", ".join(names)
    assert options.COLUMN_FILES == formats.COLUMN_FILES
    assert options.EVENT_FILES == formats.EVENT_FILES
    for command in ("fit", "score", "transform", "impute"):
        text = re.sub(r"[\s│|]+", " ", accepted(command, "--help"))
        assert all(name in text for name in names)
        assert f"A column of a {formats.COLUMN_FILES} that is no variable" in text


def test_texts_of_missing_values(tmp_path: Path) -> None:
    """In tables "NaT" and "<NA>" are labels; among events they are what pandas makes of gaps."""
    path = tmp_path / "x.csv"
    path.write_text(
        "sample,code\n" + "".join(f"s{i},{c}\n" for i, c in enumerate(("NaT", "<NA>", "?")))
    )
    labels = read_table(path).categories[1]
    assert labels is not None
    assert set(labels.tolist()) == {"NaT", "<NA>"}
    ((codes,),) = read_blocks(path, lambda names: [1])
    assert codes.texts() == [""] * 3


# ---- tables ---------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", FORMATS)
def test_tables(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix, plain())
    table = read_table(path)
    assert (table.n_samples, table.n_vars) == (N, 9)
    if not FORMATS[suffix].needs_names:
        assert table.names == tuple(NAMES)


@pytest.mark.parametrize("suffix", FORMATS)
def test_a_memory_limit(tmp_path: Path, suffix: str) -> None:
    """Files that can be read in parts are, and give the same table."""
    path = written(tmp_path, suffix, plain())
    in_parts = memory_needed(path) > room_for_reading(memory_bytes(LIMIT))
    assert in_parts == (FORMATS[suffix].memory is not None)
    assert_same(read_table(path, memory_limit=LIMIT), read_table(path))


@pytest.mark.parametrize("suffix", FORMATS)
def test_sizes_before_reading(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix, plain())
    sizes = sizes_of(path)
    if FORMATS[suffix].sizes is None:
        assert sizes is None
        return
    assert sizes is not None
    assert sizes.n_vars == 9
    # The rows of a long text are estimated, low enough.
    assert N / 3 <= sizes.n_samples <= N if suffix in (".csv", ".tsv") else sizes.n_samples == N


@pytest.mark.parametrize("limit", [None, LIMIT])
@pytest.mark.parametrize("suffix", NAMED)
def test_roles_of_columns(tmp_path: Path, suffix: str, limit: str | None) -> None:
    path = written(tmp_path, suffix, with_others())
    table = read_table(path, weights="w", ignore=["id"], memory_limit=limit)
    assert table.names == tuple(NAMES)
    np.testing.assert_array_equal(table.weights, with_others()["w"])
    with pytest.raises(DataError, match="no column 'v' of weights") as error:
        read_table(path, weights="v", memory_limit=limit)
    assert error.value.place.option == "weights"
    with pytest.raises(DataError, match="no column 'v' to ignore") as error:
        read_table(path, ignore=["v"], memory_limit=limit)
    assert error.value.place.option == "ignore"


@pytest.mark.parametrize("suffix", UNNAMED)
def test_no_roles_without_names(tmp_path: Path, suffix: str) -> None:
    path = written(tmp_path, suffix, plain())
    with pytest.raises(DataError, match=r"names a column of a \.csv, \.tsv, .* or \.xlsx") as error:
        read_table(path, weights="w")
    assert error.value.place.option == "weights"
    with pytest.raises(DataError, match=r"names a column of a \.csv, \.tsv, .* or \.xlsx") as error:
        read_table(path, ignore=["id"])
    assert error.value.place.option == "ignore"


# ---- commands -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", DIFFERENT)
def test_fit_and_score(tmp_path: Path, suffix: str) -> None:
    path, model = written(tmp_path, suffix, plain()), tmp_path / "m.ltree"
    assert "600 samples of 9 variables" in accepted("fit", path, "-o", model, *FIT)
    assert "samples               600" in accepted("score", model, path)
    if FORMATS[suffix].has_columns:
        return
    for flag in ("--ignore", "--weights"):
        line = refused("fit", path, "-o", model, flag, "x", *FIT)
        assert f"{flag} names a column of a .csv, .tsv" in line
        line = refused("score", model, path, flag, "x")
        assert f"{flag} names a column of a .csv, .tsv" in line


def test_files_of_named_columns_are_alike(tmp_path: Path) -> None:
    """A model fitted with ignored columns and weights answers on its own file, whatever it is."""
    frame = with_others()
    frame["a0"] = frame["a0"].astype("Int64").mask(frame.index % 7 == 0)
    outputs = {suffix: _answers(tmp_path, suffix, frame) for suffix in NAMED}
    first = outputs[NAMED[0]]
    assert all(output == first for output in outputs.values())
    scores, header, rows = first
    assert "samples               600 (weight 1,200)" in scores
    assert header == list(frame)
    assert [row[header.index("id")] for row in rows] == frame["id"].tolist()
    assert all(cell for row in rows for cell in row)


def _answers(
    folder: Path, suffix: str, frame: pd.DataFrame
) -> tuple[str, list[str], list[list[str]]]:
    """What score prints, and the table that impute writes; all other uses are tried too."""
    path = written(folder, suffix, frame)
    model, out = folder / f"m{suffix}.ltree", folder / f"out{suffix}.csv"
    accepted("fit", path, "-o", model, *FIT, "--ignore", "id", "--weights", "w")
    as_in_training = accepted("score", model, path)
    assert "--ignore ID: " in refused("score", model, path, "--ignore", "ID")
    assert "no column 'v' of weights" in refused(
        "score", model, path, "--ignore", "id", "--weights", "v"
    )
    lacking = written(folder, suffix, frame.drop(columns="b1"))
    assert "lacks 'b1'" in refused("score", model, lacking, "--ignore", "id", "--ignore", "w")
    path = written(folder, suffix, frame)
    scores = accepted("score", model, path, "--ignore", "id", "--weights", "w")
    assert as_in_training == f"note: read as in training: --weights w --ignore id\n{scores}"
    for command in ("transform", "impute"):
        accepted(command, model, path, "-o", out)
    return scores, *read_csv(out)


def test_sizes_of_a_table_are_known(tmp_path: Path) -> None:
    """A fit from the command line passes a table that was read."""
    path = written(tmp_path, ".csv", plain())
    sizes = sizes_of(read_table(path))
    assert sizes is not None
    assert (sizes.n_samples, sizes.n_vars, sizes.n_copied) == (N, 9, 0)
    line = refused("fit", path, "-o", tmp_path / "m.ltree", "--memory-limit", LIMIT, *FIT)
    assert "9 variables in 600 samples need" in line
