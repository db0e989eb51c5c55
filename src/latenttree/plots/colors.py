"""Colours of variables: by where they hang, by groups, by categories or by numbers.

`colored_by` reads what a user passes as ``color_by`` and returns a `Coloring`, which knows its
legend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from latenttree.engine.arrays import Floats, Ints
from latenttree.errors import DataError, Option, Text
from latenttree.phrases import counted
from latenttree.plots.canvas import shortened
from latenttree.plots.layout import groups
from latenttree.tree import Tree
from latenttree.tree.layout import RootedLayout

INK = "#2b2f36"
HIDDEN = "#59606b"
EDGE = "#a3aab5"
FAINT = "#eef0f3"
UNKNOWN = "#b4b9c2"
"""Variables without a category or number, and categories beyond those that have a colour."""

PALETTE = (
    *("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"),
    *("#882255", "#999933", "#332288", "#ddaa77", "#44aa99", "#661100"),
)
"""Told apart with any colour vision (Okabe and Ito; Tol)."""

N_TYPICAL, MAX_NAME = 3, 14
"""Variables that stand for a group in a legend, and characters of each."""


@dataclass(frozen=True)
class Coloring:
    """Colours of the observed nodes, and what they mean.

    Attributes
    ----------
    colors : (p, 3) sRGB in [0, 1].
    group : (p,) equal where nodes belong together; of a colouring by numbers, all 0.
    entries : texts and colours of the legend, None where colours need none.
    scale : name of the colour map, least and largest number; None for categories.
    title : of the legend.
    """

    colors: Floats
    group: Ints
    entries: tuple[tuple[str, Any], ...] = ()
    scale: tuple[str, float, float] | None = None
    title: str = ""


def colored_by(tree: Tree, rooted: RootedLayout, color_by: Any) -> Coloring:
    """The colours that ``color_by`` asks for.

    None: by the hidden node that a variable hangs from; a whole number: by so many groups of
    `Tree.cut`; a Series, mapping (by name) or sequence (in the order of the variables): by
    categories, or by numbers."""
    if color_by is None:
        group = groups(tree, rooted)
        return Coloring(_walk_colors(group, rooted.slots), group)
    if isinstance(color_by, int | np.integer) and not isinstance(color_by, bool):
        return _by_groups(tree, _cut(tree, int(color_by)))
    values, title = values_by_variable(tree, color_by, "color_by")
    numbers = _as_numbers(values)
    if numbers is not None:
        return _by_numbers(numbers, title)
    return _by_categories(values, title)


def _cut(tree: Tree, n_groups: int) -> Ints:
    """Labels of `Tree.cut`, its errors about the option of the picture."""
    if not 1 <= n_groups <= tree.n_observed:
        what = Text(Option("color_by"), f" asks for {n_groups} groups of {tree.n_observed}")
        remedy = f"give a number of groups from 1 to {tree.n_observed}"
        raise DataError(what, remedy, value=n_groups, option="color_by")
    return tree.cut(n_groups)


def values_by_variable(tree: Tree, given: Any, option: str) -> tuple[list[Any], str]:
    """A value for every observed node, None where there is none, and the name of the values.

    ``given`` is a Series of pandas or a mapping, by the names of variables, or a sequence in their
    order."""
    title = str(getattr(given, "name", None) or "")
    if hasattr(given, "index") and hasattr(given, "to_dict"):  # a Series of pandas
        by_position = len(given) == tree.n_observed and _is_range(given.index)
        given = list(given) if by_position else given.to_dict()
    if isinstance(given, Mapping):
        named = {str(key): value for key, value in given.items()}
        if not named.keys() & set(tree.observed_names):
            some = ", ".join(repr(name) for name in tree.observed_names[:3])
            what = Text(Option(option), f" names no variable of the tree, but {list(named)[:3]}")
            raise DataError(what, f"variables are named {some}, ...", option=option)
        return [_known(named.get(name)) for name in tree.observed_names], title
    if isinstance(given, str | bytes) or not hasattr(given, "__len__"):
        what = Text(Option(option), f" is {given!r}")
        remedy = "pass a Series, a mapping from names, or a value for each variable"
        raise DataError(what, remedy, value=given, option=option)
    if len(given) != tree.n_observed:
        what = Text(Option(option), f" has {len(given)} values for {tree.n_observed} variables")
        remedy = "pass one for each variable, or a mapping from names"
        raise DataError(what, remedy, value=len(given), option=option)
    return [_known(value) for value in given], title


def _is_range(index: Any) -> bool:
    """Whether an index of pandas numbers its rows."""
    return list(index) == list(range(len(index)))


def _known(value: Any) -> Any:
    """A plain value; None where it is missing."""
    value = value.item() if isinstance(value, np.generic) else value
    return None if value is None or value != value else value


def _as_numbers(values: Sequence[Any]) -> Floats | None:
    """The values as numbers, NaN where missing; None where they are categories: texts, booleans,
    or few different whole numbers."""
    known = [value for value in values if value is not None]
    if not known or not all(type(value) in (int, float) for value in known):
        return None
    if all(float(value).is_integer() for value in known) and len(set(known)) <= len(PALETTE):
        return None
    return np.array([np.nan if value is None else value for value in values], dtype=np.float64)


def _by_numbers(values: Floats, title: str) -> Coloring:
    """A colour map; where numbers have both signs, one with a middle at 0."""
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    name = "viridis"
    if low < 0 < high:
        high = max(-low, high)
        low, name = -high, "coolwarm"
    share = (values - low) / (high - low) if high > low else np.zeros_like(values)
    colors = color_map(name)(np.where(np.isnan(share), 0, share))[:, :3]
    colors[np.isnan(values)] = rgb(UNKNOWN)
    group = np.zeros(len(values), dtype=np.int64)
    return Coloring(colors, group, scale=(name, low, high), title=title)


def color_map(name: str) -> Any:
    """A colour map of matplotlib; "viridis" without its lightest end, which white swallows."""
    from matplotlib import colormaps
    from matplotlib.colors import ListedColormap

    if name != "viridis":
        return colormaps[name]
    return ListedColormap(colormaps[name](np.linspace(0, 0.88, 256)))


def _by_categories(values: Sequence[Any], title: str) -> Coloring:
    """A colour for each category; the rarest share one where there are too many."""
    counts = Counter(value for value in values if value is not None)
    order = _in_order(list(counts))
    kept = order
    if len(order) > len(PALETTE):
        common = {value for value, _ in counts.most_common(len(PALETTE) - 1)}
        kept = [value for value in order if value in common]
    color = {value: PALETTE[i] for i, value in enumerate(kept)}
    colors = np.array([rgb(color.get(value, UNKNOWN)) for value in values])
    number = {value: i for i, value in enumerate(kept)}
    group = np.array([number.get(value, len(kept)) for value in values], dtype=np.int64)
    entries: list[tuple[str, Any]] = [(str(value), color[value]) for value in kept]
    if len(kept) < len(order):
        entries.append((counted(len(order) - len(kept), "other"), UNKNOWN))
    elif any(value is None for value in values):
        entries.append(("not given", UNKNOWN))
    return Coloring(colors, group, tuple(entries), title=title)


def _in_order(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _by_groups(tree: Tree, label: Ints) -> Coloring:
    """Groups of variables, in a legend by their most typical members."""
    order, entries = naming_order(tree, label), []
    n_groups = int(label.max()) + 1
    for g in range(n_groups):
        members = order[label[order] == g]
        typical = ", ".join(shortened(tree.names[v], MAX_NAME) for v in members[:N_TYPICAL])
        more = len(members) - N_TYPICAL
        text = typical + (f" and {more} more" if more > 0 else "")
        entries.append((text, tuple(_group_color(g, n_groups))))
    colors = np.array([_group_color(g, n_groups) for g in label.tolist()])
    return Coloring(colors, label, tuple(entries))


def _group_color(g: int, n_groups: int) -> Floats:
    """Of group g: from the palette, or where there are too many a hue."""
    if n_groups <= len(PALETTE):
        return rgb(PALETTE[g])
    light = 0.58 if g % 2 == 0 else 0.74
    return oklch(np.array([light]), np.array([0.13]), np.array([2 * np.pi * g / n_groups]))[0]


def _walk_colors(group: Ints, slots: Floats) -> Floats:
    """One colour for each observed node, hue by the mean slot of its group, ``(p, 3)``."""
    _, member = np.unique(group, return_inverse=True)
    where = np.bincount(member, weights=slots[: len(group)]) / np.bincount(member)
    rank = np.argsort(np.argsort(where, kind="stable"))
    light = np.where(rank % 2 == 0, 0.61, 0.70)
    return walk_color(where / len(group), light, np.full(len(where), 0.135))[member]


def walk_color(place: Floats, light: Floats, chroma: Floats) -> Floats:
    """Colours of places in [0, 1] on the walk around the tree."""
    return oklch(light, chroma, 2 * np.pi * place + 0.45)


def naming_order(tree: Tree, group: NDArray[Any]) -> Ints:
    """Observed nodes, most typical (shortest edge) of every group first, large groups first."""
    p = tree.n_observed
    reach = np.full(tree.n_nodes, np.inf)
    np.minimum.at(reach, tree.edges.ravel(), np.repeat(tree.lengths, 2))
    order = np.lexsort((reach[:p], group))
    _, first, size = np.unique(group[order], return_index=True, return_counts=True)
    place = np.arange(p) - np.repeat(first, size)  # 0 for the most typical of its group
    return order[np.lexsort((-np.repeat(size, size), place))]


def oklch(light: Floats, chroma: Floats, hue: Floats) -> Floats:
    """sRGB in [0, 1] from Oklab lightness, chroma and hue: even steps look even."""
    a, b = chroma * np.cos(hue), chroma * np.sin(hue)
    lms = np.stack(
        [
            light + 0.3963377774 * a + 0.2158037573 * b,
            light - 0.1055613458 * a - 0.0638541728 * b,
            light - 0.0894841775 * a - 1.2914855480 * b,
        ],
        axis=-1,
    )
    to_rgb = np.array(
        [
            [4.0767416621, -3.3077115913, 0.2309699292],
            [-1.2684380046, 2.6097574011, -0.3413193965],
            [-0.0041960863, -0.7034186147, 1.7076147010],
        ]
    )
    linear = np.clip(lms**3 @ to_rgb.T, 0, 1)
    return np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)


def rgb(color: str) -> Floats:
    """A colour "#rrggbb" as three numbers in [0, 1]."""
    return np.array([int(color[i : i + 2], 16) for i in (1, 3, 5)]) / 255


def faded(colors: Floats, share: float = 0.62) -> Floats:
    """Colours mixed with white."""
    return np.asarray((1 - share) * colors + share)
