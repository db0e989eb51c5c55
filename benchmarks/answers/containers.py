"""Tables of any kind: their rows, their arrays, files that hold them."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.answers.tasks import Arrays


def n_rows(X: Any) -> int:
    """Rows of any container."""
    if isinstance(X, dict | list):
        return n_rows(next(iter(X.values() if isinstance(X, dict) else X)))
    return int(X.shape[0])


def rows(X: Any, part: slice) -> Any:
    """Some rows of any container."""
    if isinstance(X, dict):
        return {name: rows(block, part) for name, block in X.items()}
    if isinstance(X, list):
        return [rows(block, part) for block in X]
    return X.iloc[part] if isinstance(X, pd.DataFrame) else X[part]


def arrays_of(X: Any, name: str) -> Arrays:
    """Any container as plain arrays of numbers or text, by name."""
    if isinstance(X, Mapping):
        parts = [arrays_of(block, f"{name}.{key}") for key, block in X.items()]
        return {key: array for part in parts for key, array in part.items()}
    if isinstance(X, list):
        return arrays_of(dict(enumerate(X)), name)
    if isinstance(X, pd.DataFrame):
        return arrays_of({key: X[key].to_numpy(dtype=object) for key in X}, name)
    if sparse.issparse(X):
        found = sparse.csr_array(X)
        return {f"{name}.{key}": getattr(found, key) for key in ("data", "indices", "indptr")}
    return {name: _plain(np.ma.filled(X, -1) if np.ma.isMaskedArray(X) else np.asarray(X))}


def _plain(array: NDArray[Any]) -> NDArray[Any]:
    """Numbers where all are, else text."""
    if array.dtype.kind != "O":
        return array
    flat = [np.nan if value is pd.NA else value for value in array.ravel().tolist()]
    if all(isinstance(value, int | float | np.number) for value in flat):
        return np.asarray(flat, dtype=np.float64).reshape(array.shape)
    return np.asarray([str(value) for value in flat]).reshape(array.shape)


def digest(X: Any) -> str:
    """A short text that is another one for other data."""
    found = hashlib.sha256()
    for name, array in sorted(arrays_of(X, "X").items()):
        found.update(f"{name} {array.dtype} {array.shape}".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:16]


def with_holes(X: Any) -> Any:
    """Rows of which some values are taken out, where their container can say so."""
    if isinstance(X, pd.DataFrame):
        holes = np.random.default_rng(0).random(X.shape) < 0.2
        return X.astype(object).mask(holes)
    if isinstance(X, np.ndarray) and X.dtype.kind in "biuf" and not np.ma.isMaskedArray(X):
        holes = np.random.default_rng(0).random(X.shape) < 0.2
        return np.where(holes, np.nan, X)
    return X


# ---- writing files -------------------------------------------------------------------------------


def written(X: Any, folder: Path, name: str) -> Any:
    """What is fitted: the path of a file that holds `X`, or its mapped array."""
    if name == "mapped":
        path = written(X, folder, "mapped.npy")
        return np.load(path, mmap_mode="r")
    path = folder / name
    if name.startswith("docword."):
        _write_docword(X, path)
    elif name.endswith(".fasta"):
        _write_fasta(X, path)
    elif name.endswith((".csv", ".csv.gz")):
        text = X.to_csv(index=False).encode()
        path.write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    elif name.endswith(".parquet"):
        X.to_parquet(path)
    elif sparse.issparse(X):
        sparse.save_npz(path, X)
    elif name.endswith(".npz"):
        np.savez(path, X)
    else:
        np.save(path, X)
    return path


def _write_docword(X: Any, path: Path) -> None:
    """Three lines of sizes, then "document word count"; the words in a file beside it."""
    found = sparse.coo_array(X)
    rows, cols = found.coords
    lines = [*map(str, (*X.shape, found.nnz))]
    lines += [f"{i + 1} {j + 1} 1" for i, j in zip(rows.tolist(), cols.tolist(), strict=True)]
    path.write_text("\n".join(lines) + "\n")
    names = [f"x{j}" for j in range(X.shape[1])]
    path.with_name(path.name.replace("docword", "vocab")).write_text("\n".join(names) + "\n")


def _write_fasta(X: pd.DataFrame, path: Path) -> None:
    lines = []
    for name in X:
        lines += [f">{name}", "".join(X[name].fillna("-"))]
    path.write_text("\n".join(lines) + "\n")
