"""Options of `make_latent_tree`, and what is refused about them."""

from __future__ import annotations

from typing import Any, NamedTuple

from latenttree.config import check_choice
from latenttree.data.values import CODED, FAMILIES
from latenttree.errors import DataError
from latenttree.evaluation.simulation.channels import Marginal
from latenttree.evaluation.simulation.leaves import SCALARS
from latenttree.tree import Tree


class SimulationOptions(NamedTuple):
    """Options of the variables and the samples, see `make_latent_tree`."""

    n_states: int
    n_categories: int
    n_used: int
    marginal: Marginal
    dim: int | None
    bag_size: int
    n_samples: int

    def width(self, family: str) -> int | None:
        """Coordinates of a variable; None for single values."""
        is_single = family in SCALARS and self.dim is None
        return None if is_single else self.dim or self.n_categories


def check_options(
    options: SimulationOptions, arity: int, internal_observed: float, missing: float, hidden: str
) -> None:
    """Refuse options that would fail later, by name and value."""
    check_choice("hidden", hidden, ("categorical", "gaussian"))
    n_states, n_categories = options.n_states, options.n_categories
    least = 1 if hidden == "gaussian" else 2
    if not least <= n_states <= options.n_used <= n_categories:
        raise DataError(
            f"n_states={n_states}, n_used={options.n_used}, n_categories={n_categories}",
            f"give {least} <= n_states <= n_used <= n_categories",
            value=(n_states, options.n_used, n_categories),
            option="n_states",
        )
    check_choice("marginal", options.marginal, ("uniform", "random", "zipf"))
    if internal_observed and n_categories != n_states:
        raise DataError(
            f"internal_observed={internal_observed} with {n_categories} categories and {n_states} "
            "states: distances are not additive through a node of more categories",
            f"give n_categories={n_states}",
            value=n_categories,
            option="internal_observed",
        )
    _check_range("arity", arity, arity >= 2, "give a hidden node at least 2 children")
    _check_range("internal_observed", internal_observed, 0 <= internal_observed <= 1, "give 0 to 1")
    _check_range("n_samples", options.n_samples, options.n_samples >= 0, "give zero or more")
    _check_range("missing", missing, 0 <= missing < 1, "give a share from 0 to below 1")
    _check_range("bag_size", options.bag_size, options.bag_size >= 1, "give one or more")


def _check_range(name: str, value: Any, is_within: bool, remedy: str) -> None:
    """Refuse a number that is not within its range."""
    if not is_within:
        raise DataError(f"{name}={value}", remedy, value=value, option=name)


def check_families(
    cycle: tuple[str, ...], options: SimulationOptions, hidden: str, internal_observed: float
) -> None:
    """Refuse families that are unknown, or do not go with the other options."""
    unknown = [name for name in cycle if name not in FAMILIES]
    if unknown or not cycle:
        value = unknown[0] if unknown else cycle
        raise DataError(
            f"family={value!r} is unknown",
            f"choose 'mixed' or of {', '.join(sorted(FAMILIES))}",
            value=value,
            option="family",
        )
    if hidden == "gaussian" and set(cycle) != {"gaussian"}:
        raise DataError(
            f"family={cycle!r} in a tree with hidden='gaussian'",
            "give family='gaussian'",
            value=cycle,
            option="family",
        )
    plain = set(cycle) <= set(CODED) and hidden == "categorical"
    if internal_observed and not plain:
        raise DataError(
            f"internal_observed={internal_observed} with family={cycle!r}, hidden={hidden!r}",
            "only categorical variables can be inner nodes: give internal_observed=0",
            value=internal_observed,
            option="internal_observed",
        )
    if "binary" in cycle and options.n_states != 2:
        raise DataError(
            f"family 'binary' with n_states={options.n_states}",
            "it has two values: give n_states=2",
            value=options.n_states,
            option="n_states",
        )
    _check_widths(cycle, options)


def _check_widths(cycle: tuple[str, ...], options: SimulationOptions) -> None:
    """Refuse vectors with fewer coordinates than states."""
    for name in cycle:
        width = None if name in CODED else options.width(name)
        if width is not None and width < options.n_states:
            raise DataError(
                f"dim={width} for family {name!r} with n_states={options.n_states}",
                "give at least as many coordinates as states",
                value=width,
                option="dim",
            )


def check_tree(tree: Tree, families: tuple[str, ...]) -> None:
    """Refuse trees with a variable that is not categorical and not a leaf of a hidden node."""
    for v, family in enumerate(families):
        hidden = [u for u in tree.neighbors(v).tolist() if u >= tree.n_observed]
        if family not in CODED and (len(hidden) != 1 or tree.degree()[v] != 1):
            raise DataError(
                f"{tree.names[v]!r} of family {family!r} is not the leaf of a hidden node",
                "give at least 3 variables, and a tree in which they are leaves",
                value=family,
                node=tree.names[v],
            )
