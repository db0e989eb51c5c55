"""One damaged file, read: fine, refused as it should be, or what went wrong."""

from __future__ import annotations

import traceback
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from tests.fuzz.damage import damaged
from tests.fuzz.samples import DOCWORD, VOCABULARY

import latenttree as lt
from latenttree.data import read_events, read_fasta, read_table
from latenttree.errors import DataError
from latenttree.io.treefile import load_tree

FINE, REFUSED = "read", "refused"

CANNOT_BOUND = (".parquet",)
"""Only pyarrow knows what these declare: it may ask for memory in vain."""


def write_case(samples: Path, folder: Path, seed: int, case: int) -> tuple[Path, Path]:
    """Writes the damaged file of a case: what to read, and the file that was damaged."""
    rng = np.random.default_rng([seed, case])
    names = sorted(path.name for path in samples.iterdir())
    name = names[int(rng.integers(len(names)))]
    for other in folder.iterdir():
        other.unlink()
    if name in (DOCWORD, f"{DOCWORD}.gz", VOCABULARY):
        for other in (DOCWORD, VOCABULARY):
            (folder / other).write_bytes((samples / other).read_bytes())
    target = folder / name
    target.write_bytes(damaged(name, (samples / name).read_bytes(), rng))
    return (folder / DOCWORD if name == VOCABULARY else target), target


def outcome(path: Path, target: Path, case: int) -> str:
    """`FINE`, `REFUSED`, or what went wrong."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", ResourceWarning)  # scratch files go with what uses them
        try:
            _ask(path, case)
            result = FINE
        except DataError as error:
            result = _judged(error, {path.name, target.name})
        except Exception:
            result = traceback.format_exc(limit=-6)
    if result in (FINE, REFUSED) and said:
        return f"leaked {said[0].category.__name__}: {said[0].message} ({said[0].filename})"
    return result


def _judged(error: DataError, names: set[str]) -> str:
    if not any(name in str(error) for name in names):
        return f"no name of the file in: {error}\n{traceback.format_exc(limit=-6)}"
    for_memory = isinstance(error.__cause__, MemoryError)
    if for_memory and not any(name.endswith(CANNOT_BOUND) for name in names):
        return f"requested too much memory: {error}"
    return REFUSED


def _ask(path: Path, case: int) -> None:
    """What people do with such a file; cases take turns in how."""
    parts: dict[str, Any] = {"memory_limit": 1} if case % 3 == 0 else {}
    stem = path.name.split(".")[0]
    if stem == "tree":
        load_tree(path)
    elif path.suffix == ".ltree":
        _question(lt.load(path))
    elif stem == "events":
        read_events(path, since="2020-01-10" if case % 2 else None, min_count=1, **parts)
    elif ".fasta" in path.name:
        read_fasta(path)
    elif stem == "table" and case % 2:
        read_table(path, weights="w", ignore=["code"], drop_constant=True, **parts)
    else:
        read_table(path, drop_constant=True, scores=case % 7 == 0, **parts)


def _question(model: lt.LatentTree) -> None:
    str(model.diagnostics_)
    X, _ = model.sample(3, random_state=0)
    for found in (model.score_samples(X), model.transform(X)):
        values = found.data if sparse.issparse(found) else np.asarray(found, dtype=float)
        assert np.isfinite(values).all(), f"not finite: {values}"
