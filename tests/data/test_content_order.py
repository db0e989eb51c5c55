"""Rows by their content: keys, the order they give, and rows taken from mapped files."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse

from latenttree.data import Table, as_table, read_table, row_access
from latenttree.data.content_order import in_content_order, ordered_rows
from latenttree.data.row_access import rearranged_rows
from latenttree.data.row_keys import order_keys, row_keys
from latenttree.data.streaming.scratch import ScratchMap, map_of
from latenttree.data.subsets import draw_weights, halves, n_draws
from latenttree.distances.estimate import estimate_distances

N = 400


def codes() -> tuple[Any, dict[str, Any]]:
    return np.random.default_rng(0).integers(0, 4, (N, 6)), {}


def gaps() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(1)
    x = rng.integers(0, 3, (N, 5)).astype(float)
    x[rng.random(x.shape) < 0.2] = np.nan
    return x, {}


def sparse_binary() -> tuple[Any, dict[str, Any]]:
    return sparse.csr_array(np.random.default_rng(2).random((N, 12)) < 0.2).astype(float), {}


def numbers() -> tuple[Any, dict[str, Any]]:
    x = np.random.default_rng(3).standard_normal((N, 4))
    x[::7, 1] = np.nan
    return x, {}


def scores() -> tuple[Any, dict[str, Any]]:
    return numbers()[0], {"scores": True}


def vectors() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(4)
    return {
        "real": rng.standard_normal((N, 20)),
        "code": rng.integers(0, 3, N),
        "one-hot": np.eye(3)[rng.integers(0, 3, N)],
        "bag": sparse.csr_array(rng.poisson(0.5, (N, 4))),
    }, {}


def groups() -> tuple[Any, dict[str, Any]]:
    x = sparse.csr_array(np.random.default_rng(5).random((N, 12)) < 0.3).astype(float)
    return x, {"groups": np.repeat(["a", "b", "c"], 4)}


def frame() -> tuple[Any, dict[str, Any]]:
    rng = np.random.default_rng(6)
    grades = pd.Categorical.from_codes(rng.integers(-1, 3, N), ["low", "mid", "high"], ordered=True)
    return pd.DataFrame(
        {"text": rng.choice(["a", "b"], N), "grade": grades, "x": rng.standard_normal(N)}
    ), {}


MAKERS = (codes, gaps, sparse_binary, numbers, scores, vectors, groups, frame)
ALL = pytest.mark.parametrize("make", MAKERS, ids=lambda make: make.__name__)


def rows_of(X: Any, index: NDArray[Any]) -> Any:
    if isinstance(X, dict):
        return {name: x[index] for name, x in X.items()}
    return X.iloc[index].reset_index(drop=True) if isinstance(X, pd.DataFrame) else X[index]


def stored(table: Table) -> list[NDArray[Any]]:
    """All that a table holds of its samples."""
    held: list[Any] = [table.codes, table.matrix, table.missing, table.weights]
    if table.values is not None:
        held += [table.values.codes, *(x for _, x in sorted(table.values.arrays.items()))]
    found = [x.toarray() if sparse.issparse(x) else x for x in held if x is not None]
    return [np.asarray(x) for x in found]


def check_same(one: Table, other: Table) -> None:
    assert one.n_samples == other.n_samples
    for x, y in zip(stored(one), stored(other), strict=True):
        assert x.dtype == y.dtype
        np.testing.assert_array_equal(x, y)


@ALL
def test_keys_tell_rows_apart_and_go_with_them(make: Any) -> None:
    X, options = make()
    keys = row_keys(as_table(X, **options))
    order = np.random.default_rng(0).permutation(N)
    np.testing.assert_array_equal(row_keys(as_table(rows_of(X, order), **options)), keys[order])
    content = np.column_stack([x.reshape(N, -1) for x in stored(as_table(X, **options))])
    different = len(np.unique(content, axis=0, equal_nan=True))
    assert len(np.unique(keys)) == different


@ALL
def test_the_order_that_rows_came_in_is_gone(make: Any) -> None:
    X, options = make()
    found = in_content_order(as_table(X, **options))
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(N)
        check_same(in_content_order(as_table(rows_of(X, order), **options)), found)
    assert in_content_order(found) is found, "what is in order stays as it is"
    assert found.total_weight == N


@ALL
@pytest.mark.parametrize("small", [0, 1 << 24])
def test_weights_are_repeated_rows(make: Any, small: int) -> None:
    """Few copies of each row, and so many that one row with a weight stands for them."""
    X, options = make()
    rng = np.random.default_rng(1)
    for most in (4, 40):
        times = rng.integers(0, most, N)
        again = rng.permutation(np.repeat(np.arange(N), times))
        one = in_content_order(as_table(X, sample_weight=times, **options), small=small)
        two = in_content_order(as_table(rows_of(X, again), **options), small=small)
        check_same(one, two)
        assert (one.weights is None) == (small > 0 or one.total_weight <= 8 * one.n_samples)
        assert one.total_weight == times.sum()


def test_weights_that_are_no_integers_stay() -> None:
    X, _ = codes()
    weights = np.random.default_rng(0).uniform(0.1, 3.0, N)
    one = in_content_order(as_table(X, sample_weight=weights))
    order = np.random.default_rng(1).permutation(N)
    check_same(in_content_order(as_table(X[order], sample_weight=weights[order])), one)
    assert one.total_weight == pytest.approx(weights.sum())


def test_forms_of_the_same_data_have_one_order() -> None:
    x = np.random.default_rng(0).integers(0, 2, (N, 5))
    base = row_keys(as_table(x))
    one_hot = {f"x{i}": np.eye(2)[x[:, i]] for i in range(5)}
    forms = [sparse.csr_array(x.astype(float)), one_hot, x.astype(bool), pd.DataFrame(x)]
    for form in forms:
        np.testing.assert_array_equal(row_keys(as_table(form)), base)
    bag = np.random.default_rng(1).poisson(1.0, (N, 6)).astype(float)
    bag[:, 0] += 1  # no zeros in this column
    dense, thin = as_table([bag, x[:, 0]]), as_table([sparse.csr_array(bag), x[:, 0]])
    np.testing.assert_array_equal(row_keys(dense), row_keys(thin))
    rows = np.arange(N)
    np.testing.assert_array_equal(order_keys(dense, rows), order_keys(thin, rows))


def test_units_do_not_change_the_order() -> None:
    columns, _ = numbers()
    blocks, _ = vectors()
    mixed, _ = frame()
    pairs = [
        (columns, (columns + 0.5) * 10.0 ** np.array([-7, 0, 3, 9])),
        (blocks, blocks | {"real": 1e-9 * blocks["real"]}),
        (mixed, mixed.assign(x=1e6 * mixed["x"])),
    ]
    for X, scaled in pairs:
        found = [ordered_rows(as_table(x)) for x in (X, scaled)]
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)


def test_zeros_and_gaps_have_one_key() -> None:
    x = np.array([[0.0, 1.5], [-0.0, 1.5], [np.nan, 1.5], [-np.nan, 1.5], [0.5, 2.5]])
    keys = row_keys(as_table(x, family="gaussian"))
    assert keys[0] == keys[1]
    assert keys[2] == keys[3]
    assert len(set(keys.tolist())) == 3


def test_keys_look_random() -> None:
    """The 4,096 rows of twelve bits: of neighbours in the order, half differ in each of the bits;
    up to five standard deviations."""
    bits = np.arange(1 << 12)[:, None] // (1 << np.arange(12)) % 2
    ordered = bits[np.argsort(row_keys(as_table(bits)))]
    differ = (ordered[1:] != ordered[:-1]).mean(axis=0)
    assert np.abs(differ - 0.5).max() < 5 * 0.5 / np.sqrt(1 << 12)


# ---- mapped files -----------------------------------------------------------------------


def mapped(path: Any) -> Table:
    table = read_table(path, memory_limit="64KB")
    arrays: list[Any] = [table.codes if table.matrix is None else table.matrix.indices]
    assert map_of(arrays[0]) is not None
    return table


@pytest.mark.parametrize("bucket", [1 << 10, 1 << 14, 1 << 25])
def test_rows_of_mapped_arrays_are_rearranged_in_files(bucket: int, tmp_path: Any) -> None:
    """Some rows not at all, some several times; a row has seven bytes or eight."""
    rng = np.random.default_rng(0)
    positions = rng.integers(0, 20_000, 30_000)
    for X in (rng.integers(0, 9, (20_000, 7)).astype(np.int8), rng.standard_normal(20_000)):
        np.save(tmp_path / "rows.npy", X)
        lying = np.load(tmp_path / "rows.npy", mmap_mode="r")
        rearranged = rearranged_rows(lying, positions, (bucket, bucket))
        assert map_of(rearranged) is not None
        assert rearranged.dtype == X.dtype
        np.testing.assert_array_equal(rearranged, X[positions])


@pytest.mark.parametrize("bucket", [1 << 10, 1 << 25])
def test_rows_of_mapped_matrices_are_rearranged_in_files(bucket: int, tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    sparse.save_npz(tmp_path / "rows.npz", random_bits(rng))
    matrix = mapped(tmp_path / "rows.npz").matrix
    assert matrix is not None
    for positions in (rng.permutation(5_000), rng.integers(0, 5_000, 7_000)):
        rearranged = rearranged_rows(matrix, positions, (bucket, bucket))
        assert map_of(rearranged.indices) is not None
        np.testing.assert_array_equal(rearranged.toarray(), matrix.toarray()[positions])
        assert sparse.csr_array(rearranged, copy=True).has_sorted_indices


def random_bits(rng: np.random.Generator) -> sparse.csr_array:
    return sparse.csr_array(rng.random((5_000, 40)) < 0.1).astype(np.int8)


def test_mapped_tables_are_put_in_order_in_files(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    n = 20_000
    X = pd.DataFrame({f"c{i}": rng.integers(0, 3, n) for i in range(6)})
    X["x"] = rng.standard_normal(n).round(3)
    X.to_csv(tmp_path / "rows.csv", index=False)
    X.sample(frac=1.0, random_state=0).to_csv(tmp_path / "other.csv", index=False)
    expected = in_content_order(read_table(tmp_path / "rows.csv"))
    for name in ("rows.csv", "other.csv"):
        found = in_content_order(mapped(tmp_path / name))
        check_same(found, expected)
        assert map_of(found.codes) is not None


def test_mapped_sparse_binary_tables_are_put_in_order_in_files(tmp_path: Any) -> None:
    rng = np.random.default_rng(0)
    X = random_bits(rng)
    expected = in_content_order(as_table(X))
    for order in (np.arange(5_000), rng.permutation(5_000)):
        sparse.save_npz(tmp_path / "rows.npz", X[order])
        found = in_content_order(mapped(tmp_path / "rows.npz"))
        check_same(found, expected)
        assert found.matrix is not None
        assert map_of(found.matrix.indices) is not None


def test_new_files_lie_where_the_old_ones_do(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).integers(0, 3, (20_000, 8)))
    table = read_table(tmp_path / "rows.npy", memory_limit="64KB", scratch=tmp_path)
    folders: list[Any] = []
    make = row_access.ScratchFolder
    monkeypatch.setattr(
        row_access, "ScratchFolder", lambda folder: folders.append(folder) or make(folder)
    )
    ordered = in_content_order(table)
    assert folders == [tmp_path]
    memory = map_of(ordered.codes)
    assert isinstance(memory, ScratchMap)
    assert memory.folder == tmp_path


# ---- parts of equal rows ----------------------------------------------------------------


def test_halves_of_equal_rows_are_independent() -> None:
    """Places of a row fall in one half or the other by chance: their number varies as that of
    drawing half of all without replacement, n / 4 for each of many rows."""
    counts = np.full(1000, 100.0)
    table = as_table(np.arange(1000)[:, None] // 10 ** np.arange(3) % 10)
    one, other = halves(table.replace(weights=counts))
    assert one.total_weight == other.total_weight == 50_000
    assert one.weights is not None
    assert np.var(one.weights) == pytest.approx(25, rel=5 * np.sqrt(2 / 1000))


@pytest.mark.parametrize("most", [1, 1 << 26])
def test_a_part_of_draws(most: int) -> None:
    weights = np.random.default_rng(0).integers(0, 50, 1000) + 0.5
    table = as_table(np.arange(1000)[:, None] // 10 ** np.arange(3) % 10).replace(weights=weights)
    m = n_draws(table) // 5
    part = draw_weights(table, m, np.random.default_rng(1), most)
    assert ((part >= 0) & (part <= weights + 1e-9)).all()
    assert abs(part.sum() - m) < 5 * np.sqrt(m)


def test_weights_beyond_what_memory_holds() -> None:
    """Half of every row, up to a standard deviation of sqrt(w) / 2: five of them."""
    table = as_table(np.arange(100)[:, None] // 10 ** np.arange(2) % 10)
    one, _ = halves(table.replace(weights=np.full(100, 1e12)))
    assert one.weights is not None
    np.testing.assert_allclose(one.weights, 5e11, atol=5 * 5e5)


@pytest.mark.parametrize("rows", [True, False])
def test_noise_in_equal_rows_is_not_taken_for_signal(rows: bool) -> None:
    """Four independent variables, 256 different rows among 5,000. Of such pairs one in twenty
    stands out by two standard errors; were equal rows shared out evenly between the halves, one in
    three would, because the subspaces of one half would fit the other's noise. 180 pairs."""
    pairs, seen = np.tril_indices(4, -1), []
    for seed in range(30):
        X = np.random.default_rng(seed).integers(0, 4, (5_000, 4))
        table = in_content_order(as_table(X), small=0, max_copies=1 << 30 if rows else 0)
        assert (table.weights is None) == rows
        found = estimate_distances(table, 2, random_state=0, n_jobs=1)
        seen += found.measurable[pairs].tolist()
    assert np.mean(seen) < 0.05 + 5 * np.sqrt(0.05 * 0.95 / 180)
