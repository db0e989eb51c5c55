"""Fits within a limit of memory."""

from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree import LatentTree
from latenttree.engine.memory import current_memory
from latenttree.errors import DataError

MATRICES = 4 * 2600**2


def words(seed: int = 0, n: int = 300, p: int = 2600) -> sparse.csr_array:
    """Presence of words in documents of a few topics."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 30, n)
    chance = np.where(topic[:, None] == np.arange(p) % 30, 0.5, 0.03)
    return sparse.csr_array((rng.random((n, p)) < chance).astype(np.uint8))


def limit() -> int:
    """More than pairs on demand need, less than the matrices of all pairs."""
    held = current_memory()
    assert held is not None
    return held + 2 * MATRICES // 3


def test_a_fit_within_a_limit_says_what_it_held() -> None:
    found = LatentTree(2, memory_limit=limit(), random_state=0, n_jobs=1, max_iter=3).fit(words())
    report = found.diagnostics_
    assert found.tree_.n_observed == 2600
    assert report.n_pairs == 2600 * 2599 // 2
    assert report.peak_memory >= MATRICES
    assert any("pairs counted when they are needed" in text for text in report.messages)
    assert np.isfinite(found.score(words(1)))


def test_plenty_of_memory_is_not_mentioned() -> None:
    X = words()[:, :60]
    found = LatentTree(2, memory_limit="1TiB", random_state=0, max_iter=3).fit(X)
    assert not any("pairs counted" in text for text in found.diagnostics_.messages)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"structure": "neighbor_joining"}, "structure='neighbor_joining' needs the matrices"),
        ({"keep_distances": True}, "keep_distances=True needs the matrices"),
    ],
)
def test_what_needs_all_pairs_is_refused(options: dict[str, Any], why: str) -> None:
    with pytest.raises(DataError, match=f"{why}.*held already, and memory_limit is.*raise it"):
        LatentTree(2, memory_limit=limit(), n_jobs=1, **options).fit(words())


def test_a_limit_that_nothing_fits_into_is_refused() -> None:
    with pytest.raises(DataError, match=r"at least beside the .* memory_limit is 1.0 MiB; raise"):
        LatentTree(2, memory_limit="1MiB").fit(words())


@pytest.mark.parametrize("bad", ["many", -1, 0, "8 parsecs"])
def test_a_limit_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(DataError, match=r"memory_limit=.*give bytes"):
        LatentTree(2, memory_limit=bad).fit(words())
