"""Options of `make_latent_tree`, and what is refused about them."""

from __future__ import annotations

from typing import Any, NamedTuple

from latenttree.config import check_choice
from latenttree.data.values import CODED, FAMILIES
from latenttree.errors import DataError, check_option
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
    n_states, n_used, n_categories = options.n_states, options.n_used, options.n_categories
    least = 1 if hidden == "gaussian" else 2
    _refuse(
        not least <= n_states <= n_used <= n_categories,
        f"n_states={n_states}, n_used={n_used}, n_categories={n_categories}",
        f"give {least} <= n_states <= n_used <= n_categories",
        (n_states, n_used, n_categories),
        "n_states",
    )
    check_choice("marginal", options.marginal, ("uniform", "random", "zipf"))
    _refuse(
        bool(internal_observed) and n_categories != n_states,
        f"internal_observed={internal_observed} with {n_categories} categories and {n_states} "
        "states: distances are not additive through a node of more categories",
        f"give n_categories={n_states}",
        n_categories,
        "internal_observed",
    )
    for name, value, possible, remedy in (
        ("arity", arity, arity >= 2, "give a hidden node at least 2 children"),
        ("internal_observed", internal_observed, 0 <= internal_observed <= 1, "give 0 to 1"),
        ("n_samples", options.n_samples, options.n_samples >= 0, "give zero or more"),
        ("missing", missing, 0 <= missing < 1, "give a share from 0 to below 1"),
        ("bag_size", options.bag_size, options.bag_size >= 1, "give one or more"),
    ):
        check_option(name, value, possible, remedy)


def _refuse(wrong: bool, what: str, remedy: str, value: Any, option: str) -> None:
    if wrong:
        raise DataError(what, remedy, value=value, option=option)


def check_families(
    cycle: tuple[str, ...], options: SimulationOptions, hidden: str, internal_observed: float
) -> None:
    """Refuse families that are unknown, or do not go with the other options."""
    unknown = [name for name in cycle if name not in FAMILIES]
    value = unknown[0] if unknown else cycle
    remedy = f"choose 'mixed' or of {', '.join(sorted(FAMILIES))}"
    check_option("family", value, bool(cycle) and not unknown, remedy, " is unknown")
    known = hidden != "gaussian" or set(cycle) == {"gaussian"}
    problem = " in a tree with hidden='gaussian'"
    check_option("family", cycle, known, "give family='gaussian'", problem)
    plain = set(cycle) <= set(CODED) and hidden == "categorical"
    _refuse(
        bool(internal_observed) and not plain,
        f"internal_observed={internal_observed} with family={cycle!r}, hidden={hidden!r}",
        "only categorical variables can be inner nodes: give internal_observed=0",
        internal_observed,
        "internal_observed",
    )
    _refuse(
        "binary" in cycle and options.n_states != 2,
        f"family 'binary' with n_states={options.n_states}",
        "it has two values: give n_states=2",
        options.n_states,
        "n_states",
    )
    for name in cycle:
        width = None if name in CODED else options.width(name)
        _refuse(
            width is not None and width < options.n_states,
            f"dim={width} for family {name!r} with n_states={options.n_states}",
            "give at least as many coordinates as states",
            width,
            "dim",
        )


def check_tree(tree: Tree, families: tuple[str, ...]) -> None:
    """Refuse trees with a variable that is not categorical and not a leaf of a hidden node."""
    for v, family in enumerate(families):
        hidden = [u for u in tree.neighbors(v).tolist() if u >= tree.n_observed]
        if family not in CODED and (len(hidden) != 1 or tree.degree()[v] != 1):
            what = f"{tree.names[v]!r} of family {family!r} is not the leaf of a hidden node"
            remedy = "give at least 3 variables, and a tree in which they are leaves"
            raise DataError(what, remedy, value=family, node=tree.names[v])
