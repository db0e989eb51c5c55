"""The detection limit: errors where the data cannot show a tree."""

from __future__ import annotations

import numpy as np

from latenttree.data import Table
from latenttree.data.checks import free_dimensions
from latenttree.data.files.sizes import Sizes
from latenttree.distances.estimate import Distances, estimate_distances
from latenttree.distances.number_of_states import choose_states
from latenttree.engine.arrays import Bools
from latenttree.errors import DataError, Option, Text

MANY_VARIABLES = 1000
"""Variables from which on there must be enough samples to tell them apart."""


VISIBLE = 0.3
"""Canonical correlations that are weaker than this may stay undetected without an error."""


class DetectionLimitError(DataError):
    """The dependence between the variables is too weak for this many samples."""


class TooManyStatesError(DetectionLimitError):
    """Pairs of variables show fewer states than were asked for, `enough` of them."""

    enough: int = 2


def check_enough_samples(sizes: Sizes | None) -> None:
    """Raise where samples are too few for even 0/1 variables to differ, before wide data are
    read."""
    if sizes is None or sizes.n_vars < MANY_VARIABLES:
        return
    n, least = sizes.n_samples, int(np.ceil(np.log2(sizes.n_vars)))
    if 2 <= n < least:
        raise DetectionLimitError(
            f"{n} samples cannot tell {sizes.n_vars:,} variables apart: 0/1 variables have only "
            f"2^{n} = {2**n:,} ways to differ in them",
            f"give {least} samples or more, or exchange rows and columns if the variables are the "
            "rows",
            value=n,
        )


def check_detection(
    distances: Distances, table: Table, gaussian: bool, seed: int, n_jobs: int | None
) -> None:
    """Raise where no tree should be returned: too many states, or too little signal.

    Two states and variables that are used whole cannot fail so, nor can samples that would show
    correlations below `VISIBLE`: independent variables are then simply joined without support."""
    alone = _without_neighbour(distances)
    if alone.mean() <= 0.5:
        return
    n_directions = distances.n_directions
    lost = f"{int(alone.sum())} of {table.n_vars} variables"
    if n_directions > 1:
        _check_fewer_states(lost, n_directions, table, gaussian, seed, n_jobs)
    d, n = int(free_dimensions(table).max()), table.total_weight
    if (free_dimensions(table) > n_directions).any() and d > VISIBLE**2 * n:
        raise DetectionLimitError(
            f"below the detection limit: {lost} show no measurable dependence with up to {d:,} "
            f"dimensions in {n:,.0f} samples (a canonical correlation must exceed about "
            f"sqrt(dimensions / samples) = {np.sqrt(d / n):.2f})",
            "give more samples" if table.has_values else "merge rare categories or give more",
            value=n,
        )


def _check_fewer_states(
    lost: str, n_directions: int, table: Table, gaussian: bool, seed: int, n_jobs: int | None
) -> None:
    """Raise where fewer states than were asked for would leave most variables measurable."""
    shown = choose_states(table, seed, n_jobs).n_states - 1
    if shown >= n_directions:
        return
    fewer = estimate_distances(table, shown + 1, random_state=seed, n_jobs=n_jobs)
    if _without_neighbour(fewer).mean() <= 0.5:
        given, enough = (n_directions, shown) if gaussian else (n_directions + 1, shown + 1)
        error = TooManyStatesError(
            Text(
                Option("n_states", given),
                f", but the data show {enough}: with {given} {lost} have no measurable distance "
                "to any other",
            ),
            Text("use ", Option("n_states", enough), " or ", Option("n_states", "auto")),
            value=given,
            option="n_states",
        )
        error.enough = enough
        raise error


def _without_neighbour(distances: Distances) -> Bools:
    """(p,) variables without a measurable distance to any other."""
    measurable = distances.measurable
    np.fill_diagonal(measurable, False)
    return np.logical_not(measurable.any(axis=1))
