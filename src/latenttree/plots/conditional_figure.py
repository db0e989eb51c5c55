"""One conditional distribution as a picture: bars, a heat map, densities or a regression line."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.data import Schema
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.gaussian import GaussianTreeModel
from latenttree.model.pair_moments import Model
from latenttree.model.tree_model import TreeModel
from latenttree.plots.canvas import literal, new_figure, shortened
from latenttree.plots.colors import EDGE, INK, PALETTE, color_map

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_BARS, MOST_STATES = 48, 8
"""Bars, and states of the condition, at most; else a heat map."""

MOST_ROWS = 40  # of a heat map: those that differ most between columns
MOST_PANELS = 9
REACH = 3.5  # standard deviations that a density is drawn over


def default_condition(model: Model, v: int) -> int:
    """The neighbour that an observed node is shown given: the nearest with states."""
    tree = model.tree
    emissions = {} if isinstance(model, GaussianTreeModel) else model.emissions
    near = [u for u in tree.neighbors(v).tolist() if u not in emissions]
    if not near:
        what = f"{tree.names[v]!r} has no neighbour with states"
        raise DataError(what, "name a node to condition on", option="given", node=tree.names[v])
    length = dict(zip(tree.edges.sum(axis=1) - v, tree.lengths, strict=True))
    return min(near, key=lambda u: (u < tree.n_observed, length.get(u, 0.0)))


def plot_conditional(
    model: Model, schema: Schema, v: int, u: int, ax: Axes, max_label: int = 28
) -> None:
    """Draw `P(v | u)` or the density of `v` given `u`, nodes by number, into axes."""
    names = [literal(shortened(model.tree.names[w], max_label)) for w in (v, u)]
    if isinstance(model, GaussianTreeModel):
        _draw_regression(ax, model, schema, v, u, names)
    elif v in model.emissions:
        _draw_values(ax, model, schema, v, u, names)
    else:
        rows = [shortened(text, max_label) for text in _states(model, schema, v)]
        share = between_states(model, u, v)
        _draw_shares(ax, share, rows, _conditions(model, schema, u), names)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    ax.tick_params(labelsize=8.5, length=2.5, color=EDGE, labelcolor=INK)


def plot_around(
    model: Model,
    schema: Schema,
    v: int,
    figsize: tuple[float, float] | None = None,
    max_label: int = 28,
) -> NDArray[Any]:
    """The neighbours of a node given it, a panel each; the nearest where there are many."""
    tree = model.tree
    edges = np.flatnonzero((tree.edges == v).any(axis=1))
    near = sorted(
        ((u >= tree.n_observed, float(tree.lengths[e]), u) for e, u in _ends(tree, edges, v))
    )
    shown = [u for _, _, u in near[:MOST_PANELS]]
    columns = min(3, len(shown))
    rows = -(-len(shown) // columns)
    figure = new_figure(figsize or (3.4 * columns + 0.6, 2.5 * rows + 0.5), pyplot=True)
    panels = [figure.add_subplot(rows, columns, i + 1) for i in range(len(shown))]
    for i, (u, ax) in enumerate(zip(shown, panels, strict=True)):
        plot_conditional(model, schema, u, v, ax, max_label)
        legend = ax.get_legend()
        if i and legend is not None:
            legend.remove()
    left = f", {len(near) - len(shown)} more neighbours" if len(near) > len(shown) else ""
    title = f"given {literal(tree.names[v])}{left}"
    figure.suptitle(title, color=INK, fontsize=11, fontweight="bold")
    figure.tight_layout()
    return np.array(panels, dtype=object)


def _ends(tree: Any, edges: Any, v: int) -> list[tuple[int, int]]:
    return [(e, int(tree.edges[e].sum()) - v) for e in edges.tolist()]


# ---- distributions --------------------------------------------------------------------------


def between_states(model: TreeModel, u: int, v: int) -> Floats:
    """`P(v | u)`, `(dims[v], dims[u])`, of any nodes with states: the product along the path."""
    if u in model.emissions:
        name = model.tree.names[u]
        what = f"{name!r} has no states to condition on"
        raise DataError(what, "condition on a hidden or categorical node", option="given")
    product = np.eye(int(model.dims[u]))
    path = model.tree.path(u, v)
    for above, below in pairwise(path):
        product = model.conditional(below, above) @ product
    return product


def _states(model: Model, schema: Schema, v: int) -> list[str]:
    """Labels of the states of a node."""
    if v < schema.n_vars:
        return [str(label) for label in schema.labels[v].tolist()]
    return [str(state) for state in range(int(model.dims[v]))]


def _conditions(model: TreeModel, schema: Schema, u: int) -> list[str]:
    """Labels of the states of a node, with their shares."""
    share = model.marginals[u]
    labels = _states(model, schema, u)
    return [f"{text}  ({p:.0%})" for text, p in zip(labels, share, strict=True)]


def _draw_shares(
    ax: Axes, share: Floats, rows: list[str], columns: list[str], names: list[str]
) -> None:
    """Bars side by side for each label, one for each state of the condition; or a heat map."""
    d, k = share.shape
    if d * k > MOST_BARS or k > MOST_STATES:
        _draw_heat(ax, share, rows, columns, names, "P")
        return
    width = 0.8 / k
    for j in range(k):
        at = np.arange(d) + (j - (k - 1) / 2) * width
        ax.bar(at, share[:, j], width=0.92 * width, color=PALETTE[j], label=literal(columns[j]))
    ax.set_ylim(0, 1)
    turned = max(map(len, rows)) * d > 40
    texts = [literal(text) for text in rows]
    ax.set_xticks(range(d), texts, rotation=35 if turned else 0, ha="right" if turned else "center")
    ax.set_title(f"P({names[0]} | {names[1]})", fontsize=10, color=INK)
    _legend(ax, names[1])


def _draw_heat(
    ax: Axes, values: Floats, rows: list[str], columns: list[str], names: list[str], symbol: str
) -> None:
    """Values by colour, written into the cells where these are few."""
    if len(rows) > MOST_ROWS:
        order = np.sort(np.argsort(-np.ptp(values, axis=1), kind="stable")[:MOST_ROWS])
        left = len(rows) - MOST_ROWS
        values, rows = values[order], [rows[i] for i in order.tolist()]
        names = [f"{names[0]} ({left} alike not shown)", names[1]]
    signed = bool((values < 0).any())
    top = float(np.abs(values).max(initial=1e-12))
    limits = (-top, top) if signed else (0.0, 1.0 if symbol == "P" else top)
    look: Any = "RdBu_r" if signed else color_map("Blues")
    image = ax.imshow(values, cmap=look, vmin=limits[0], vmax=limits[1], aspect="auto")
    ax.set_yticks(range(len(rows)), [literal(text) for text in rows])
    few = len(columns) <= 16
    ax.set_xticks(range(len(columns)) if few else [], columns if few else [], rotation=90)
    ax.set_xlabel(names[1], fontsize=9, color=INK)
    ax.set_title(f"{symbol}({names[0]} | {names[1]})", fontsize=10, color=INK)
    if values.size <= 80:
        for (i, j), x in np.ndenumerate(values):
            pale = abs(x) > 0.6 * limits[1]
            color = "white" if pale else INK
            ax.text(j, i, f"{x:.2g}", ha="center", va="center", fontsize=7.5, color=color)
    ax.figure.colorbar(image, ax=ax, shrink=0.8, pad=0.02).outline.set_visible(False)


def _draw_values(
    ax: Axes, model: TreeModel, schema: Schema, v: int, u: int, names: list[str]
) -> None:
    """Densities of a number, probabilities of a count; of a vector the expectations."""
    emission, parent = model.emissions[v], int(model.parents[v])
    weights = between_states(model, u, parent)
    columns = _conditions(model, schema, u)
    if getattr(emission, "form", "") != "scalar":
        levels = schema.columns[schema.index[v]].levels
        mean = emission.mean() @ weights
        rows = [str(x) for x in (range(int(schema.dims[v])) if levels is None else levels)]
        if emission.family == "multihot":
            rows = ["none", *rows]
        _draw_heat(ax, mean, rows, columns, names, "P" if emission.family == "multihot" else "E")
        return
    mean, variance = (x[0] for x in emission.value_moments())
    whole = emission.family == "poisson"
    x = _grid(mean, np.sqrt(variance), whole)
    density = np.exp(emission.log_likelihood(x)) @ weights
    for j in range(density.shape[1]):
        color = color_map("viridis")(j / max(density.shape[1] - 1, 1))
        if density.shape[1] <= MOST_STATES:
            color = PALETTE[j]
        line = {"marker": "o", "ms": 3, "lw": 1.0} if whole else {"lw": 1.6}
        ax.plot(x, density[:, j], color=color, label=literal(columns[j]), **line)
        if not whole:
            ax.fill_between(x, density[:, j], color=color, alpha=0.12, lw=0)
    ax.set_ylim(bottom=0)
    ax.set_title(f"{names[0]} given {names[1]}", fontsize=10, color=INK)
    _legend(ax, names[1])


def _grid(mean: Floats, deviation: Floats, whole: bool) -> Floats:
    low, high = (mean - REACH * deviation).min(), (mean + REACH * deviation).max()
    if whole:
        last = max(int(np.ceil(high)), 1)
        return np.arange(0, last + 1, max(1, last // 200), dtype=np.float64)
    return np.linspace(low, high, 300)


def _draw_regression(
    ax: Axes, model: GaussianTreeModel, schema: Schema, v: int, u: int, names: list[str]
) -> None:
    """The expectation of a number given another one, with two standard deviations around it."""
    slope = model.conditional(v, u)
    if slope.shape != (1, 1):
        rows, columns = ([str(i) for i in range(n)] for n in slope.shape)
        _draw_heat(ax, slope, rows, columns, names, "slopes ")
        return
    middle, spread = float(model.marginal(u)[0]), float(np.sqrt(model.variances(u)[0]))
    rest = float(model.variances(v)[0]) - float(slope[0, 0]) ** 2 * spread**2
    x = np.linspace(middle - 3 * spread, middle + 3 * spread, 50)
    y = float(model.marginal(v)[0]) + slope[0, 0] * (x - middle)
    band = 2 * np.sqrt(max(rest, 0.0))
    ax.fill_between(x, y - band, y + band, color=PALETTE[0], alpha=0.15, lw=0)
    ax.plot(x, y, color=PALETTE[0], lw=1.8)
    ax.set_xlabel(names[1], fontsize=9, color=INK)
    ax.set_ylabel(names[0], fontsize=9, color=INK)
    title = f"{names[0]} given {names[1]}: mean and two standard deviations"
    ax.set_title(title, fontsize=10, color=INK)


def _legend(ax: Axes, title: str) -> None:
    """The states of the condition, where these are few."""
    if len(ax.get_legend_handles_labels()[1]) <= MOST_STATES:
        look: dict[str, Any] = {"frameon": False, "fontsize": 8, "title_fontsize": 8}
        ax.legend(title=title, labelcolor=INK, loc="best", **look)
