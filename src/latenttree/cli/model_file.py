"""The model that a command works with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from latenttree.data.files.boundary import reading
from latenttree.errors import DataError
from latenttree.io.zip_archive import ZipReader

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def load_model(path: Path, threads: int | None = None) -> LatentTree:
    """The model in a file, to be asked with so many threads."""
    return read_model(path).set_params(n_jobs=threads, verbose=sys.stderr.isatty())


def read_model(path: Path) -> LatentTree:
    """The model in a file as it was saved; other files are refused by their names before they are
    read."""
    if path.suffix.lower() != ".ltree":
        raise DataError(
            f"{path.name!r} is no model",
            "name a file that `latenttree fit FILE -o model.ltree` wrote (.json and .nwk keep the "
            "tree without its probabilities)",
            path=str(path),
        )
    from latenttree.estimator import load  # loads much

    return load(path)


def holds_model(path: Path) -> bool:
    """Whether a file holds a model, with probabilities, rather than a tree alone."""
    from latenttree.io.archive import MODEL  # loads much

    if path.suffix.lower() != ".ltree":
        return False
    with reading(path, "model"):
        return MODEL in ZipReader(path.read_bytes()).names
