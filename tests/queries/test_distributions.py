"""`impute(X, return_proba=True)`, cell by cell against other queries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.queries.categorical import BIG, fitted, gapped
from tests.queries.mixed import make_data, make_model
from tests.queries.test_gaussian import GAUSS, conditioned, gaussian_model

import latenttree.queries.evidence as evidence_module
from latenttree.data import DataError, DataWarning
from latenttree.queries import MissingCells


def same(found: Any, expected: Any) -> None:
    """Up to the rounding of sums in another order."""
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 1 << 27])
def test_labels_have_the_probabilities_of_predict_proba(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_module, "CHUNK_BYTES", chunk)  # ranges of 64 rows, or all
    model, X = fitted(), gapped(BIG)
    filled, proba = model.impute(X, return_proba=True)
    pd.testing.assert_frame_equal(filled, model.impute(X))
    assert set(proba) == {name for name in X if X[name].isna().any()}
    for name, cells in proba.items():
        np.testing.assert_array_equal(cells.rows, np.flatnonzero(X[name].isna()))
        np.testing.assert_array_equal(cells.classes, model.classes_of(name))
        same(cells.proba, model.predict_proba(X, query=name)[cells.rows])
        assert cells.mean is None
        assert len(cells) == len(cells.rows)


def test_draws_and_tables_without_gaps() -> None:
    model, X = fitted(), gapped(BIG)
    drawn, proba = model.impute(X, "sample", 3, return_proba=True)
    pd.testing.assert_frame_equal(drawn, model.impute(X, "sample", 3))
    assert proba.keys() == model.impute(X, return_proba=True)[1].keys()
    assert model.impute(drawn, return_proba=True)[1] == {}


def test_records() -> None:
    model = fitted()
    filled, proba = model.impute({"fruit": "fig"}, return_proba=True)
    assert set(proba) == set(filled) - {"fruit"}
    expected = model.predict_proba({"fruit": "fig"}, query="size")
    same(proba["size"].proba, expected)


def test_numbers_have_the_moments_of_draws() -> None:
    """The moments of 4,000 draws of each gap, within 5.5 standard errors: with fewer than 100 of
    them, false alarm below one in 100,000."""
    data = make_data()
    model = make_model(
        data, family={"visits": "poisson", "size": "gaussian", "real": "gaussian_full"}
    )
    record = {"age": 12.0, "colour": "red"}
    _, proba = model.impute(record, return_proba=True)
    n = 4000
    draws = model.impute([record] * n, "sample", 1)
    for name, cells in proba.items():
        if cells.proba is not None:
            continue
        assert isinstance(cells, MissingCells)
        values = np.array([draw[name] for draw in draws], dtype=float).reshape(n, -1)
        off = values - np.ravel(cells.mean)
        assert (np.abs(off.mean(axis=0)) <= 5.5 * off.std(axis=0) / np.sqrt(n) + 1e-9).all()
        error = np.abs((off**2).mean(axis=0) - np.ravel(cells.std) ** 2)
        assert (error <= 5.5 * (off**2).std(axis=0) / np.sqrt(n) + 1e-9).all()


def test_known_coordinates_of_a_vector_are_certain() -> None:
    data = make_data()
    model = make_model(data, family={"visits": "poisson", "size": "gaussian"})
    real = data["real"].copy()
    real[3, 1] = np.nan
    _, proba = model.impute({**data, "real": real}, return_proba=True)
    cells = proba["real"]
    assert cells.rows.tolist() == [3]
    assert cells.mean[0, 0] == real[3, 0]
    assert cells.std[0, 0] == 0
    assert cells.std[0, 1] > 0


def test_a_gaussian_tree_has_the_moments_of_the_normal_distribution() -> None:
    model = gaussian_model(GAUSS, (1, 1, 1, 1), 1)
    X = GAUSS[["a", "d"]].mask(np.random.default_rng(3).random((50, 2)) < 0.4)
    X = GAUSS.assign(a=X["a"], d=X["d"])
    _, proba = model.impute(X, return_proba=True)
    assert set(proba) == {"a", "d"}
    matrix = X.assign(c=X["c"].cat.codes).to_numpy(dtype=float)
    _, means, spreads = conditioned(model.model_, matrix)
    for j, name in ((0, "a"), (3, "d")):
        cells = proba[name]
        same(cells.mean, means[cells.rows, j])
        for row, std in zip(cells.rows, cells.std, strict=True):
            missing = np.flatnonzero(np.isnan(np.append(matrix[row], np.nan)))
            at = int(np.flatnonzero(missing == j)[0])
            same(std, np.sqrt(spreads[row][at, at]))


def test_unseen_levels_are_filled_but_refused_in_records() -> None:
    model = fitted().set_params(handle_unknown="missing")
    X = BIG[:5].assign(fruit=["durian", *BIG["fruit"][1:5]])
    with pytest.warns(DataWarning, match="'fruit' \\('durian'\\)"):
        filled, proba = model.impute(X, return_proba=True)
    assert filled["fruit"][0] != "durian"
    assert proba["fruit"].rows.tolist() == [0]
    with pytest.warns(DataWarning):
        assert np.isfinite(model.score(X))
    with pytest.warns(DataWarning):
        same(model.transform(X)[1:], model.transform(BIG[1:5]))
    with pytest.raises(DataError, match="unseen category 'durian'"):
        model.predict_proba({"fruit": "durian"}, query="size")
