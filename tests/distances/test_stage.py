"""The stage `measure`: states, similarities within memory, and what is refused before any work."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from latenttree.config import FitConfig
from latenttree.data import as_table
from latenttree.data.files.sizes import Sizes
from latenttree.distances.detection import (
    DetectionLimitError,
    check_enough_samples,
)
from latenttree.distances.stage import Measured, States, count_states, measure
from latenttree.engine.memory import current_memory
from latenttree.errors import DataError, Option
from latenttree.evaluation.baselines import BASELINES
from latenttree.evaluation.datasets import make_latent_tree


@pytest.fixture(scope="module")
def data() -> Any:
    return make_latent_tree(9, 2, 3, n_samples=2000, random_state=0)


@pytest.mark.parametrize(
    ("options", "n_states", "n_directions"),
    [
        ({}, 2, 1),
        ({"n_states": 3}, 3, 2),
        ({"hidden": "gaussian"}, 1, 1),
        ({"hidden": "gaussian", "n_states": 2}, 2, 2),
        ({"n_states": "auto"}, 2, 1),
    ],
)
def test_directions_follow_from_states(
    data: Any, options: dict[str, Any], n_states: int, n_directions: int
) -> None:
    table = as_table(data.X, scores=options.get("hidden") == "gaussian")
    if options == {"hidden": "gaussian", "n_states": 2}:
        table = as_table([data.X[:, [i, i + 1]].astype(float) for i in range(0, 8, 2)], scores=True)
    states = count_states(table, FitConfig(**options))
    assert (states.n_states, states.n_directions) == (n_states, n_directions)
    counted = options.get("n_states", "auto") == "auto" and "hidden" not in options
    assert (states.evidence is not None) == counted


@pytest.mark.parametrize("n_states", [1, 2.5, True, None, "many"])
def test_what_is_no_number_of_states_is_refused(data: Any, n_states: Any) -> None:
    wanted = f"must be an integer >= 2, 'auto' or 'bic', got {n_states!r}"
    with pytest.raises(DataError, match=wanted):
        count_states(as_table(data.X), FitConfig(n_states=n_states))


def test_bic_takes_the_states_that_pairs_show_and_no_more(data: Any) -> None:
    table = as_table(data.X)
    auto, bic = (count_states(table, FitConfig(n_states=kind)) for kind in ("auto", "bic"))
    assert (auto.goal, bic.goal) == ("auto", None)
    assert (auto.n_states, auto.most_states) == (bic.n_states, bic.most_states)


def test_bic_is_not_for_gaussian_hidden_variables(data: Any) -> None:
    with pytest.raises(DataError, match="must be an integer >= 1 or 'auto', got 'bic'"):
        count_states(as_table(data.X), FitConfig(n_states="bic", hidden="gaussian"))


def test_auto_leaves_one_state_more_to_bic(data: Any) -> None:
    states = count_states(as_table(data.X), FitConfig(n_states="auto"))
    assert states.most_states == states.n_states + 1  # variables have three categories


def test_two_variables_have_a_distance_and_no_spanning_tree(data: Any) -> None:
    measured = measure(as_table(data.X[:, :2]), States(2, 1), FitConfig())
    assert measured.similarity is None
    assert measured.distances is not None
    assert measured.distances.values.shape == (2, 2)


def test_one_variable_has_nothing(data: Any) -> None:
    measured = measure(as_table(data.X[:, :1]), States(2, 1), FitConfig())
    assert measured.similarity is measured.distances is None


def test_what_is_quadratic_goes(data: Any) -> None:
    measured = measure(as_table(data.X), States(2, 1), FitConfig())
    assert measured.similarity is not None
    without, kept = measured.without_pairs(False), measured.without_pairs(True)
    assert without.similarity is without.distances is None
    assert kept.distances is measured.distances
    p = data.X.shape[1]
    expected = (p * p - int(measured.distances.measurable.sum())) // 2
    assert without.n_unmeasurable == kept.n_unmeasurable == expected
    assert Measured().without_pairs(True).distances is None


@pytest.mark.parametrize(
    "asked",
    [
        Option("structure", "clrg"),
        Option("keep_distances", True),
    ],
)
def test_matrices_that_do_not_fit_are_refused_by_option(asked: Option) -> None:
    """6,000 variables need 432 MB of matrices; counts on demand would fit."""
    rng = np.random.default_rng(0)
    table = as_table(rng.integers(0, 2, (40, 6000)))
    options: dict[str, Any] = {asked.name: asked.value}
    if asked.name == "structure":
        options["baseline"] = BASELINES["clrg"]
    limit = (current_memory() or 0) + 350 * 2**20  # whatever earlier tests left in this process
    with pytest.raises(DataError) as caught:
        measure(table, States(2, 1), FitConfig(memory_limit=limit, **options))
    assert caught.value.place.option == asked.name
    assert asked in caught.value.options


def test_a_limit_below_everything_is_refused(data: Any) -> None:
    table = as_table(np.asarray(data.X) > 0)
    with pytest.raises(DataError) as caught:
        measure(table, States(2, 1), FitConfig(memory_limit="1MiB"))
    assert caught.value.place.option == "memory_limit"
    assert Option("memory_limit") in caught.value.options


@pytest.mark.parametrize(
    ("n", "p", "refused"), [(3, 999, False), (9, 1000, True), (10, 1000, False), (1, 1000, False)]
)
def test_samples_that_cannot_tell_variables_apart(n: int, p: int, refused: bool) -> None:
    """0/1 variables differ in at most 2^n ways; a single sample has an error of its own."""
    if not refused:
        check_enough_samples(Sizes(n, p))
        return
    with pytest.raises(DetectionLimitError) as caught:
        check_enough_samples(Sizes(n, p))
    assert caught.value.value == n
