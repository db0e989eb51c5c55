"""Conditional tables, risks and intervals of two small models, against enumeration and samples."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import polars as pl
import pytest
from tests.queries.categorical import NAMES
from tests.reference.enumeration import joint, onto
from tests.tables.models import categories, mixture

from latenttree.errors import DataError
from latenttree.model.inference import Evidence

close = {"rtol": 0, "atol": 1e-12}  # sums of a few dozen products of probabilities


def test_any_node_given_any_other_is_what_enumeration_gives() -> None:
    model = categories()
    whole = joint(model.model_, Evidence.nothing(model.model_), 0)
    for v, u in permutations(range(7), 2):
        found = model.conditional_table(v, u)
        both = onto(whole, v, u)
        np.testing.assert_allclose(found.to_numpy(), both / both.sum(axis=0), **close)
        assert found.index.tolist() == model.classes_of(v).tolist()
        assert found.columns.tolist() == model.classes_of(u).tolist()
        assert (found.index.name, found.columns.name) == (
            model.tree_.names[v],
            model.tree_.names[u],
        )


def test_numbers_have_mean_and_deviation_in_each_state_of_any_node() -> None:
    model = mixture()
    drawn, hidden = model.sample(400_000, random_state=0)
    for name in ("age", "visits", "size"):
        for h, node in enumerate(("h0", "h1")):
            table = model.conditional_table(name, node)
            assert table.index.tolist() == ["mean", "sd"]
            for state in range(3):
                own = np.asarray(drawn[name], dtype=float)[hidden[:, h] == state]
                error = own.std() / np.sqrt(len(own))
                assert table[state]["mean"] == pytest.approx(own.mean(), abs=5 * error)
                assert table[state]["sd"] == pytest.approx(own.std(), rel=0.03)


def test_groups_have_a_row_for_each_code() -> None:
    model = mixture()
    drawn, hidden = model.sample(200_000, random_state=0)
    codes = model.conditional_table("codes", "h0")
    bag = model.conditional_table("bag", "h0")
    assert codes.shape == bag.shape == (4, 3)
    np.testing.assert_allclose(bag.sum(), 1.0, rtol=1e-9)
    for state in range(3):
        own = np.asarray(drawn["codes"])[hidden[:, 0] == state]
        np.testing.assert_allclose(codes[state], own.mean(axis=0), atol=0.02)  # 5 errors
    assert model.conditional_table("real", "h1").index.tolist() == [
        "real[0]",
        "real[0] (sd)",
        "real[1]",
        "real[1] (sd)",
    ]


def test_numbers_are_no_condition_and_no_node_is_given_itself() -> None:
    with pytest.raises(DataError, match="no states to condition on; exchange the two"):
        mixture().conditional_table("flag", "age")
    with pytest.raises(DataError, match="given by itself"):
        categories().conditional_table("h0", "h0")


def test_risks_are_ratios_of_enumerated_probabilities() -> None:
    model = categories()
    whole = joint(model.model_, Evidence.nothing(model.model_), 0)
    table = model.relative_risks("h1", state=0)
    assert set(table["variable"]) == set(NAMES)
    for row in table.itertuples():
        v = NAMES.index(row.variable)
        at = model.classes_of(v).tolist().index(row.category)
        both = onto(whole, v, 6)
        inside, outside = both[at, 0] / both[:, 0].sum(), both[at, 1] / both[:, 1].sum()
        assert row.probability == pytest.approx(inside, rel=1e-9)
        assert row.probability_in_others == pytest.approx(outside, rel=1e-9)
        assert row.relative_risk == pytest.approx(inside / outside, rel=1e-9)
        shares = np.outer(both.sum(axis=1), both.sum(axis=0))
        assert row.information == pytest.approx(float((both * np.log(both / shares)).sum()))
    assert table["information"].is_monotonic_decreasing
    assert table.groupby("variable").size()["ripe"] == 1
    assert table.groupby("variable").size()["fruit"] == 3


def test_risks_of_the_last_state_against_all_others_and_of_codes() -> None:
    table = mixture().relative_risks("h1", n_variables=None)
    assert set(table["variable"]) == {"bag", "codes", "colour", "flag"}
    np.testing.assert_allclose(
        table["relative_risk"], table["probability"] / table["probability_in_others"]
    )
    assert len(mixture().relative_risks("h1", n_variables=2)["variable"].unique()) == 2
    with pytest.raises(DataError, match=r"state=7; 'h1' has the states \[0, 1, 2\]"):
        mixture().relative_risks("h1", state=7)


def test_polars_has_labels_as_first_column() -> None:
    model = categories().set_output(transform="polars")
    table = model.conditional_table("fruit", "h1")
    assert isinstance(table, pl.DataFrame)
    assert table.columns == ["fruit", "0", "1"]
    assert table["fruit"].to_list() == ["apple", "fig", "pear"]
    groups = model.variable_groups(2)
    assert groups.columns == ["variable", "group"]
    assert groups["variable"].to_list() == list(NAMES)
    assert model.edges().shape == (6, 7)


def test_edges_have_both_ends_and_what_is_known_of_them() -> None:
    model = categories()
    table = model.edges()
    ends = [tuple(model.tree_.names[v] for v in edge) for edge in model.tree_.edges.tolist()]
    assert list(zip(table["node_a"], table["node_b"], strict=True)) == ends
    assert table["inner"].tolist() == [False] * 5 + [True]
    assert table["standard_error"].isna().all()
    own = model.tree_.to_frame()
    assert own["support"].isna().all()
    assert own.drop(columns="support").equals(table[own.columns].drop(columns="support"))
