"""The model that a command works with."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from latenttree.errors import DataError

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree


def load_model(path: Path, threads: int | None = None) -> LatentTree:
    """The model in a file; other files are refused by their names before they are read."""
    if path.suffix.lower() != ".ltree":
        raise DataError(
            f"{path.name!r} is no model",
            "name a file that `latenttree fit FILE -o model.ltree` wrote (.json and .nwk keep the "
            "tree without its probabilities)",
            path=str(path),
        )
    from latenttree.estimator import load  # loads much

    return load(path).set_params(n_jobs=threads, verbose=sys.stderr.isatty())
