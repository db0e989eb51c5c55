"""Blocks of a table: their families, and what the structure and likelihoods see; numbers for
Gaussian trees."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse
from scipy.stats import norm, rankdata
from tests.data.families import N, array, codes_of, dense, mixed, rng, structural, with_gaps

from latenttree.data import (
    DataError,
    as_table,
    check_n_states,
    free_dimensions,
    one_hot_codes,
)


def some_blocks(n: int = N) -> dict[str, np.ndarray]:
    r = rng(3)
    return {
        "one": np.eye(4)[r.integers(0, 4, n)],
        "hot": (r.random((n, 3)) < 0.3).astype(float),
        "bag": r.poisson(0.8, (n, 5)).astype(float),
        "real": r.normal(size=(n, 2)),
        "wide": r.normal(size=(n, 20)) * 7 + 3,
    }


@pytest.mark.parametrize("kind", ["dense", "grouped"])
def test_families_of_blocks(kind: str) -> None:
    blocks = some_blocks()
    if kind == "dense":
        table = as_table(blocks)
    else:
        labels = [name for name, block in blocks.items() for _ in range(block.shape[1])]
        table = as_table(np.hstack(list(blocks.values())), groups=labels)
    assert table.kind == "blocks"
    assert table.families == (
        "categorical",
        "multihot",
        "multinomial",
        "gaussian_diagonal",
        "gaussian_diagonal",
    )
    assert table.dims.tolist() == [4, 4, 5, 20, 20]
    assert free_dimensions(table).tolist() == [3, 4, 4, 18, 20]
    assert table.matrix is not None
    assert table.matrix.has_canonical_format
    assert table.matrix.dtype == np.float32
    assert table.values is not None
    np.testing.assert_array_equal(table.values.codes[:, 0], blocks["one"].argmax(axis=1))
    assert (table.values.codes[:, 1:] == -1).all()
    for v, name in enumerate(list(blocks)[1:], 1):
        np.testing.assert_array_equal(array(table, v), blocks[name])


def test_structural_forms_of_blocks() -> None:
    blocks = some_blocks()
    table = as_table(blocks)
    np.testing.assert_array_equal(structural(table, 0), blocks["one"])
    some = blocks["hot"].sum(axis=1) > 0
    np.testing.assert_array_equal(structural(table, 1), np.column_stack([some, blocks["hot"]]))
    total = blocks["bag"].sum(axis=1)
    assert (total == 0).any()
    assert table.missing is not None
    np.testing.assert_array_equal(table.missing[:, 2], total == 0)
    shares = blocks["bag"] / np.maximum(total, 1)[:, None]
    np.testing.assert_allclose(structural(table, 2), shares, rtol=1e-6)
    bins = structural(table, 3)
    assert bins.shape == (N, 20)
    for j in range(2):
        alone = as_table(blocks["real"][:, [j]])
        np.testing.assert_array_equal(bins[:, 10 * j : 10 * j + 10], structural(alone, 0))
    wide = blocks["wide"]
    np.testing.assert_allclose(
        structural(table, 4), (wide - wide.mean(axis=0)) / wide.std(axis=0), atol=1e-5
    )


def test_sparse_blocks_have_the_forms_of_dense_ones() -> None:
    blocks = {name: block for name, block in some_blocks().items() if name not in ("real", "wide")}
    found = as_table({name: sparse.coo_array(block) for name, block in blocks.items()})
    expected = as_table(blocks)
    assert found.families == expected.families
    assert found.matrix is not None
    assert expected.matrix is not None
    np.testing.assert_array_equal(found.matrix.toarray(), expected.matrix.toarray())
    np.testing.assert_array_equal(found.missing, expected.missing)
    assert sparse.issparse(array(found, 1))
    x = sparse.random(N, 40, density=0.2, random_state=0, format="csr")
    table = as_table([x, codes_of(N)])
    assert table.families == ("gaussian_diagonal", "categorical")
    np.testing.assert_allclose(
        structural(table, 0), x.toarray() / x.toarray().std(axis=0), rtol=1e-4
    )
    negative = as_table([-x, codes_of(N)], family={"x0": "gaussian_spherical"})
    np.testing.assert_allclose(structural(negative, 0), -structural(table, 0), rtol=1e-6)


def test_poisson_blocks_are_scaled() -> None:
    counts = rng().poisson([1.0, 5.0, 30.0], (N, 3))
    for data in (counts, sparse.csr_array(counts)):
        table = as_table([data, codes_of(N)], family={"x0": "poisson"})
        np.testing.assert_allclose(structural(table, 0), counts / counts.std(axis=0), rtol=1e-5)
        np.testing.assert_array_equal(dense(array(table, 0)), counts)
        assert free_dimensions(table)[0] == 3


def test_a_block_of_one_number_is_binned() -> None:
    counts = rng().poisson(3.0, (N, 1))
    alone = as_table(counts, family="poisson")
    for data in (counts, sparse.csr_array(counts)):
        table = as_table([data, codes_of(N)])
        assert table.families == ("poisson", "categorical")
        np.testing.assert_array_equal(structural(table, 0), structural(alone, 0))
        assert free_dimensions(table)[0] == table.dims[0] - 1


def test_vectors_and_blocks_mixed() -> None:
    blocks = some_blocks()
    x = np.where(np.arange(N) % 5, rng().normal(size=N), np.nan)
    data = {"real": blocks["real"], "x": x, "t": np.array(["a", "b"])[codes_of(N, 2)]}
    table = as_table(data)
    assert table.families == ("gaussian_diagonal", "gaussian", "categorical")
    assert table.missing is not None
    gaps = np.column_stack([np.zeros(N), np.isnan(x), np.zeros(N)])
    np.testing.assert_array_equal(table.missing, gaps)
    alone = as_table(x[:, None])
    np.testing.assert_array_equal(structural(table, 1), structural(alone, 0))
    np.testing.assert_array_equal(array(table, 1), x)
    assert list(table.categories[2]) == ["a", "b"]  # type: ignore[arg-type]
    assert free_dimensions(table).tolist() == [18, 7, 1]


def test_missing_blocks_and_coordinates() -> None:
    blocks = {name: block.copy() for name, block in some_blocks().items()}
    for block in blocks.values():
        block[7] = np.nan
    for name in ("hot", "bag", "real", "wide"):
        blocks[name][9, 0] = np.nan
        blocks[name][11, 1] = np.nan
    table = as_table(blocks)
    assert table.families == as_table(some_blocks()).families
    assert table.missing is not None
    assert table.missing[7].all()
    bag_lost = np.isnan(blocks["bag"]).any(axis=1) | (np.nansum(blocks["bag"], axis=1) == 0)
    np.testing.assert_array_equal(table.missing[:, 2], bag_lost)
    assert not table.missing[9, [0, 1, 3, 4]].any()
    assert table.matrix is not None
    assert table.matrix[[7]].nnz == 0
    assert np.isnan(array(table, 2)[[9, 11]]).all()  # no part of a bag is a bag
    for v, name in enumerate(list(blocks)):
        if name in ("hot", "real", "wide"):
            np.testing.assert_array_equal(array(table, v), blocks[name])
    assert table.values is not None
    assert table.values.codes[7, 0] == -1
    # a missing coordinate: the frequencies of its bins, 0 once standardised
    real = structural(table, 3)
    assert real.shape[1] == 2 * 9  # 398 values in each coordinate
    counts = real[np.setdiff1d(np.arange(N), [7, 9]), :9].sum(axis=0)
    np.testing.assert_allclose(real[9, :9], counts / counts.sum(), rtol=1e-5)
    assert set(real[9, 9:]) == {0.0, 1.0}
    assert structural(table, 4)[9, 0] == 0
    hot = structural(table, 1)
    np.testing.assert_allclose(hot[9, 1], np.nanmean(blocks["hot"][:, 0]), rtol=1e-5)


def test_some_of_them_is_known_where_a_code_is_present() -> None:
    x = np.array([[1.0, np.nan], [0, np.nan], [0, 0], [0, 1], [1, 1], [0, 0]])
    hot = structural(as_table([x, codes_of(6)]), 0)
    assert hot[0, 0] == 1
    assert hot[1, 0] == pytest.approx(3 / 5)  # three of five rows whose answer is known
    assert hot[1, 2] == pytest.approx(1 / 2)


def test_one_hot_blocks_with_gaps_are_codes() -> None:
    codes = np.array([[0, 1], [2, -1], [-1, 0], [1, 1]])
    blocks = [np.where(codes[:, [j]] < 0, np.nan, np.eye(3)[codes[:, j]]) for j in range(2)]
    table = as_table(blocks)
    assert table.values is None
    assert table.has_missing
    np.testing.assert_array_equal(one_hot_codes(table), codes)
    assert table.storage.known(table.chunk(0, 4)).tolist() == (codes >= 0).tolist()  # type: ignore[union-attr]
    mixed = one_hot_codes(as_table([np.eye(3)[[0, 2, 1]], np.array([1, 0, 1])]))
    np.testing.assert_array_equal(mixed, [[0, 1], [2, 0], [1, 1]])
    assert one_hot_codes(as_table([rng().normal(size=(9, 2))])) is None


def test_zero_rows_of_a_categorical_block_are_missing_on_request() -> None:
    x = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])
    assert as_table([x, codes_of(4)]).families[0] == "multihot"
    table = as_table([x, codes_of(4)], family={"x0": "categorical"})
    assert table.values is None
    assert one_hot_codes(table)[:, 0].tolist() == [0, -1, 1, 1]  # type: ignore[index]


def test_collinear_columns_are_fine() -> None:
    x = rng().normal(size=(N, 2))
    block = np.column_stack([x, x.sum(axis=1), 2 * x[:, 0], np.ones(N)])
    table = as_table([block, np.tile(block, 4), codes_of(N)])
    assert table.dims.tolist() == [41, 20, 3]
    assert table.matrix is not None
    assert np.isfinite(table.matrix.data).all()


def test_multihot_of_one_hot_rows_is_categorical() -> None:
    block = np.eye(3)[codes_of(30)]
    table = as_table([block, codes_of(30)], family={"x0": "multihot"})
    assert table.families == ("categorical", "categorical")


def test_names_of_real_families() -> None:
    block, x = rng().normal(size=(N, 3)), rng().normal(size=N)
    for asked, of_block, of_vector in [
        ("gaussian", "gaussian_diagonal", "gaussian"),
        ("gaussian_diagonal", "gaussian_diagonal", "gaussian"),
        ("gaussian_spherical", "gaussian_spherical", "gaussian"),
        ("gaussian_full", "gaussian_full", "gaussian"),
        ("gaussian_tied", "gaussian_tied", "gaussian_tied"),
    ]:
        assert as_table({"b": block, "x": x}, family=asked).families == (of_block, of_vector)


# --- scores, for Gaussian trees ------------------------------------------------------


def test_scores_are_numbers() -> None:
    frame = mixed().drop(columns="text")
    table = as_table(frame, scores=True)
    assert table.kind == "blocks"
    assert table.families == ("gaussian",) * 5
    assert table.dims.tolist() == [1] * 5
    numbers = frame.assign(level=frame["level"].cat.codes).to_numpy(dtype=float)
    for v in range(5):
        np.testing.assert_array_equal(array(table, v), numbers[:, v])
    z = norm.ppf((rankdata(numbers, axis=0) - 0.5) / len(numbers))
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    assert table.matrix is not None
    np.testing.assert_allclose(table.matrix.toarray(), z, atol=1e-5)
    assert free_dimensions(table).tolist() == [1] * 5
    assert check_n_states(table, 1, gaussian=True) == 1
    with pytest.raises(DataError, match=r"5 variables are .* 'flag' has 1 free dimension"):
        check_n_states(table, 2, gaussian=True)


def test_scores_with_gaps() -> None:
    frame, gaps = with_gaps(mixed().drop(columns="text"))
    table = as_table(frame, scores=True)
    np.testing.assert_array_equal(table.missing, gaps)
    assert table.matrix is not None
    z = table.matrix.toarray()
    assert (z[gaps] == 0).all()
    for v in range(5):
        np.testing.assert_allclose(z[~gaps[:, v], v].std(), 1, rtol=1e-4)
        np.testing.assert_array_equal(np.isnan(array(table, v)), gaps[:, v])


def test_scores_of_matrices_and_blocks() -> None:
    x = rng().poisson(1.0, (N, 4)) - 1.0
    expected = as_table(x, scores=True)
    found = as_table(sparse.csr_array(x), scores=True)
    assert found.matrix is not None
    assert expected.matrix is not None
    np.testing.assert_array_equal(found.matrix.toarray(), expected.matrix.toarray())
    grouped = as_table(x, groups=["u", "u", "v", "v"], scores=True)
    assert grouped.families == ("gaussian", "gaussian")
    np.testing.assert_array_equal(grouped.matrix.toarray(), expected.matrix.toarray())  # type: ignore[union-attr]
    assert array(as_table(sparse.csr_array(x), groups=[0, 0, 1, 1], scores=True), 0).shape == (N, 2)


def test_scores_of_a_table() -> None:
    frame, _ = with_gaps(mixed().drop(columns="text"))
    table = as_table(frame, family={"level": "ordinal"})
    again, direct = as_table(table, scores=True), as_table(frame, scores=True)
    np.testing.assert_array_equal(again.matrix.toarray(), direct.matrix.toarray())  # type: ignore[union-attr]
    np.testing.assert_array_equal(again.missing, direct.missing)
    with pytest.raises(DataError, match="column 'text' holds text"):
        as_table(as_table(mixed()), scores=True)
    ones = sparse.csr_array(rng().integers(0, 2, (N, 3)))
    binary = as_table(as_table(ones), scores=True)
    np.testing.assert_array_equal(array(binary, 1), ones.toarray()[:, 1])
    blocks = as_table(as_table(some_blocks()), scores=True)
    assert blocks.families == ("gaussian",) * 5
    assert array(blocks, 0).shape == (N, 4)
