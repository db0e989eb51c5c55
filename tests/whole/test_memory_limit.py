"""Fits within a limit of memory."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from latenttree import LatentTree
from latenttree.data import as_table
from latenttree.data.files.formats import sizes_of
from latenttree.data.files.sizes import Sizes
from latenttree.distances.memory_plan import check_least, plan_memory
from latenttree.engine.memory import give_back_freed
from latenttree.errors import DataError

MATRICES = 4 * 2600**2


def words(seed: int = 0, n: int = 300, p: int = 2600) -> sparse.csr_array:
    """Presence of words in documents of a few topics."""
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, 30, n)
    chance = np.where(topic[:, None] == np.arange(p) % 30, 0.5, 0.03)
    return sparse.csr_array((rng.random((n, p)) < chance).astype(np.uint8))


def limit(X: Any) -> int:
    """More than pairs on demand need, less than the matrices of all pairs."""
    table = as_table(X)
    give_back_freed()  # as a fit does
    return plan_memory(table, 2, 1).estimated_peak + MATRICES // 2


def test_a_fit_within_a_limit_says_what_it_held() -> None:
    X = words()
    found = LatentTree(2, memory_limit=limit(X), random_state=0, n_jobs=1, max_iter=3).fit(X)
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
    X = words()
    with pytest.raises(DataError, match=f"{why}.*held already, and memory_limit is.*raise it"):
        LatentTree(2, memory_limit=limit(X), n_jobs=1, **options).fit(X)


def test_a_limit_that_nothing_fits_into_is_refused() -> None:
    with pytest.raises(DataError, match=r"at least beside the .* memory_limit is 1.0 MiB; raise"):
        LatentTree(2, memory_limit="1MiB").fit(words())


@pytest.mark.parametrize("bad", ["many", -1, 0, "8 parsecs"])
def test_a_limit_that_is_none_is_refused(bad: Any) -> None:
    with pytest.raises(DataError, match=r"memory_limit=.*give bytes"):
        LatentTree(2, memory_limit=bad).fit(words())


# ---- before any work ------------------------------------------------------------------


def test_sizes_are_known_before_anything_is_read(tmp_path: Path) -> None:
    X = words(n=50, p=40)
    dense = X.toarray()
    np.save(tmp_path / "x.npy", dense)
    np.savez(tmp_path / "one.npz", dense)
    sparse.save_npz(tmp_path / "x.npz", X)
    lines = [",".join(f"v{j}" for j in range(40)), *(",".join(map(str, r)) for r in dense[:9])]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    assert sizes_of(tmp_path / "x.npy") == sizes_of(str(tmp_path / "one.npz")) == Sizes(50, 40)
    assert sizes_of(tmp_path / "x.npz") == Sizes(50, 40, X.nnz)
    assert sizes_of(tmp_path / "x.csv") == Sizes(9, 40)
    assert sizes_of(X) == Sizes(50, 40, X.nnz, 8 * X.nnz)
    assert sizes_of(dense) == Sizes(50, 40, None, 2000)
    assert sizes_of(tmp_path / "none.npy") is sizes_of([1, 2]) is None


def test_a_limit_is_refused_before_the_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as file:  # a header, and nothing but a hole behind it
        np.lib.format.write_array_header_2_0(
            file, {"descr": "|u1", "fortran_order": False, "shape": (10_000_000, 60)}
        )
        file.truncate(file.tell() + 600_000_000)
    with pytest.raises(DataError, match=r"60 variables in 10,000,000 samples need") as refused:
        LatentTree(2, memory_limit="64MiB").fit(path)
    assert refused.value.place.option == "memory_limit"


def test_the_least_limit_that_is_named_is_enough() -> None:
    sizes = Sizes(1_000_000, 100)
    with pytest.raises(DataError) as refused:
        check_least(sizes, 2, "1MiB", 1)
    number, unit = refused.value.remedy.split(" to ")[1].split()[:2]
    check_least(sizes, 2, f"{float(number) + 2}{unit}", 1)  # the process may have grown


def test_too_few_samples_for_many_variables_are_refused_before_they_are_read(
    tmp_path: Path,
) -> None:
    p = 5000
    lines = [",".join(f"v{j}" for j in range(p)), *([",".join("01" * (p // 2))] * 3)]
    (tmp_path / "x.csv").write_text("\n".join(lines))
    with pytest.raises(DataError, match=r"3 samples cannot tell 5,000 variables apart.* give 13"):
        LatentTree(2).fit(tmp_path / "x.csv")


# ---- what a fresh process holds -------------------------------------------------------

CHILD = """
import json, sys
from pathlib import Path
import numpy as np
from latenttree import LatentTree
from latenttree.engine.memory import current_memory, peak_memory
try:
    from latenttree.engine.memory import give_back_freed
except ImportError:
    give_back_freed = lambda: None
from scipy import sparse

kind, path, room = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])

def learn(X, **options):
    LatentTree(2, random_state=0, n_jobs=1, max_iter=2, **options).fit(X)

rng = np.random.default_rng(0)
small = (rng.random((400, 12)) < 0.2 + 0.6 * (np.arange(400) % 2)[:, None]).astype(np.uint8)
learn(sparse.csr_array(small) if kind == "sparse" else small)  # compiles and loads
give_back_freed()
try:
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
except OSError:
    print(json.dumps(None))
    sys.exit()
limit = current_memory() + room
learn(path, memory_limit=limit)
print(json.dumps([limit, peak_memory()]))
"""


def _tall(path: Path) -> Path:
    """80 MB: far more than the room for it, many rows alike."""
    rng = np.random.default_rng(0)
    array = np.lib.format.open_memmap(path / "x.npy", "w+", np.uint8, (4_000_000, 20))
    for start in range(0, len(array), 500_000):
        hidden = rng.integers(0, 2, (500_000, 1), dtype=np.uint8)
        flip = rng.random((500_000, 20), dtype=np.float32) < 0.1
        array[start : start + 500_000] = hidden ^ flip
    array.flush()
    return path / "x.npy"


def _wide(path: Path) -> Path:
    np.save(path / "x.npy", words(n=600, p=2500).toarray())
    return path / "x.npy"


def _sparse(path: Path) -> Path:
    rng = np.random.default_rng(0)
    n, p, length = 60_000, 1000, 60
    topic = rng.integers(0, 20, (n, 1))
    own = rng.integers(0, p // 20, (n, length)) * 20 + topic
    found = np.where(rng.random((n, length)) < 0.5, own, rng.integers(0, p, (n, length)))
    ends = np.arange(0, n * length + 1, length)
    X = sparse.csr_array((np.ones(found.size, np.float32), found.ravel(), ends), shape=(n, p))
    X.sum_duplicates()
    sparse.save_npz(path / "x.npz", X, compressed=False)
    return path / "x.npz"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")
@pytest.mark.parametrize(
    ("kind", "write", "room"), [("codes", _tall, 96), ("codes", _wide, 80), ("sparse", _sparse, 96)]
)
def test_a_fresh_process_holds_to_its_limit(
    tmp_path: Path, kind: str, write: Any, room: int
) -> None:
    command = [sys.executable, "-c", CHILD, kind, str(write(tmp_path)), str(room * 2**20)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    if found is None:
        pytest.skip("the system does not reset peaks")
    limit, peak = found
    assert peak <= limit, f"{(peak - limit) / 2**20:.0f} MiB above the limit"
