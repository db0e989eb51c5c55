"""`FitConfig`: options are checked once, before any work, and name themselves in errors."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields
from typing import Any

import numpy as np
import pytest

import latenttree as lt
from latenttree.config import FitConfig, seed_of
from latenttree.errors import DataError
from latenttree.evaluation.baselines import BASELINES


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("max_iter", 0),
        ("max_iter", 2.5),
        ("tol", -1.0),
        ("tol", np.nan),
        ("smoothing", -1),
        ("smoothing", np.inf),
        ("validation_fraction", 1.0),
        ("validation_fraction", "half"),
        ("refine", "gradient"),
        ("min_support", 1.5),
        ("min_support", -0.1),
        ("min_support", np.nan),
        ("epsilon", -1.0),
        ("epsilon", 0),
        ("distances", "euclid"),
        ("hidden", "real"),
        ("tree", "best"),
    ],
)
def test_bad_options(option: str, value: Any) -> None:
    with pytest.raises(DataError) as caught:
        FitConfig(**{option: value})
    error = caught.value
    assert error.place.option == option
    assert error.value is value
    assert repr(value) in error.what
    assert error.remedy


def test_an_unknown_structure_names_the_known_ones() -> None:
    params = lt.LatentTree(structure="upgma").get_params(deep=False)
    with pytest.raises(DataError) as caught:
        FitConfig.from_params(params, BASELINES)
    assert caught.value.place.option == "structure"
    assert all(name in caught.value.remedy for name in ("lrg", *BASELINES))


def test_every_parameter_of_the_estimator_has_a_field() -> None:
    params = set(lt.LatentTree().get_params(deep=False))
    renamed = {"random_state", "verbose"}  # become seed and progress
    assert params - renamed <= {spec.name for spec in fields(FitConfig)}


def test_defaults_are_those_of_the_estimator() -> None:
    params = lt.LatentTree().get_params(deep=False)
    config = FitConfig()
    for name in set(params) - {"random_state", "verbose", "n_jobs"}:
        assert getattr(config, name) == params[name], name


def test_a_configuration_cannot_change() -> None:
    with pytest.raises(FrozenInstanceError):
        FitConfig().max_iter = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("options", "searches"),
    [
        ({}, True),
        ({"search": False}, False),
        ({"refine": None}, False),
        ({"hidden": "gaussian"}, False),
        ({"structure": "clrg", "baseline": BASELINES["clrg"]}, False),
    ],
)
def test_what_is_searched(options: dict[str, Any], searches: bool) -> None:
    assert FitConfig(**options).searches is searches


def test_seeds() -> None:
    assert seed_of(7) == 7
    assert seed_of(np.int64(7)) == 7
    assert seed_of(np.random.RandomState(0)) == seed_of(np.random.RandomState(0))
