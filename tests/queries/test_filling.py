"""Gaps of tables of categories."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from tests.queries.categorical import (
    BIG,
    FRAME,
    Fitted,
    answer,
    close,
    fitted,
    gapped,
)
from tests.reference.enumeration import joint, onto

from latenttree.data import DataError
from latenttree.model.inference import Evidence


@pytest.fixture
def model() -> Fitted:
    return fitted()


def test_gaps_are_filled_with_the_most_probable_value(model: Fitted) -> None:
    X = gapped(BIG).set_index(np.arange(200)[::-1])[["ripe", "shop", "size", "colour", "fruit"]]
    result = model.impute(X)
    assert list(result.columns) == list(X.columns)
    assert (result.index == X.index).all()
    assert (result.dtypes == FRAME.dtypes[X.columns]).all()
    known = X.notna().to_numpy()
    assert (result.to_numpy(dtype=object)[known] == X.to_numpy()[known]).all()
    codes, filled = model.schema_.encode(X), model.schema_.encode(result)
    for v in range(5):
        best = answer(model.model_, codes, v).argmax(axis=1)
        np.testing.assert_array_equal(filled[:, v], best)
    pd.testing.assert_frame_equal(model.impute(result), result)  # nothing is left to do
    with pytest.raises(DataError, match="method='mean' is unknown"):
        model.impute(X, "mean")


def test_gaps_are_filled_by_draws_of_the_whole_row(model: Fitted) -> None:
    """Draws of two gaps together have their joint distribution, not the product."""
    n = 4000
    X = pd.DataFrame({"fruit": ["fig"] * n, "colour": ["red"] * n, "size": [10] * n})
    X = X.assign(ripe=None, shop=None)
    result = model.impute(X, "sample", random_state=3)
    codes = model.schema_.encode(X[:1])
    whole = joint(model.model_, Evidence(codes), 0)
    expected = onto(whole, 3, 4) / whole.sum()
    pairs = model.schema_.encode(result)[:, 3:]
    counts = np.bincount(pairs[:, 0] * 2 + pairs[:, 1], minlength=4) / n
    error = np.sqrt(expected.ravel() * (1 - expected.ravel()) / n)
    # 4 shares within 5 standard errors: fails with probability below 1e-5
    assert (np.abs(counts - expected.ravel()) <= 5 * error + 1e-12).all()
    pd.testing.assert_frame_equal(model.impute(X, "sample", random_state=3), result)


@pytest.mark.parametrize("form", ["array", "strings", "sparse", "polars", "blocks"])
def test_other_containers(form: str) -> None:
    rng = np.random.default_rng(0)
    base = rng.integers(0, 2, (50, 5))
    gaps = base.astype(float)
    gaps[rng.random(base.shape) < 0.3] = np.nan
    X, Y = {
        "array": (base, gaps),
        "strings": (
            np.array(["n", "y"])[base],
            np.where(np.isnan(gaps), None, np.array(["n", "y"], dtype=object)[base]),
        ),
        "sparse": (sparse.csr_array(base), sparse.csr_array(gaps)),
        "polars": (
            pl.DataFrame(base, schema=list("abcde")),
            pl.DataFrame(gaps, schema=list("abcde")),
        ),
        "blocks": (
            [np.eye(2)[base[:, j]] for j in range(5)],
            [np.eye(2)[base[:, j]] * ~np.isnan(gaps[:, [j]]) for j in range(5)],
        ),
    }[form]
    model = fitted(X, dims=(2,) * 7)
    codes = np.where(np.isnan(gaps), -1, base)
    np.testing.assert_allclose(model.transform(Y)[:, :2], answer(model.model_, codes, 5), **close)
    result = model.impute(Y)
    assert type(result) is type(X)
    filled = model.schema_.encode(result)
    np.testing.assert_array_equal(filled[codes >= 0], base[codes >= 0])
    assert type(model.sample(3)[0]) is type(X)
    one = model.predict_proba(Y, model.schema_.names[2], evidence=[model.schema_.names[0]])
    only = np.full_like(codes, -1)
    only[:, 0] = codes[:, 0]
    np.testing.assert_allclose(one, answer(model.model_, only, 2), **close)
