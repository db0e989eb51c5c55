"""Correlations of variables in the order of the tree, beside the tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.data.chunk import Chunk
from latenttree.data.schema.new_data import Rows
from latenttree.engine.arrays import Floats, Ints
from latenttree.goodness_of_fit.scores import Score, Scores, score_of
from latenttree.model.pair_moments import Model, implied_covariance
from latenttree.plots.canvas import literal, new_figure, shortened, widest
from latenttree.plots.colors import INK
from latenttree.plots.layout import children_and_parents, rooted_layout
from latenttree.plots.parts import without_small_parts
from latenttree.tree import Tree
from latenttree.tree.layout import RootedLayout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_VARIABLES = 1000
"""Rows of a heat map, at most: of more variables every so manieth in the order of the tree."""

SAMPLES_AT_ONCE = 4096

MOST_NAMES = 120
"""Rows that have a name each."""


def ordered_variables(tree: Tree, rooted: RootedLayout) -> Ints:
    """Observed nodes in the order of the tree, thinned out to `MOST_VARIABLES`."""
    order = np.argsort(rooted.slots[: tree.n_observed], kind="stable")
    step = -(-len(order) // MOST_VARIABLES)
    return np.asarray(order[step // 2 :: step] if step > 1 else order)


def scores_of(model: Model, families: Any, variables: Ints) -> list[Score]:
    """The scores of those variables that vary, in their order; see `goodness_of_fit.scores`."""
    found = (score_of(model, families[v], v) for v in variables.tolist())
    return [score for score in found if score is not None]


def implied_correlations(model: Model, scores: list[Score]) -> Floats:
    """(m, m) correlations of pairs of variables in a model; where a variable has several columns
    the root of the sum of squared correlations. 1 on the diagonal."""
    covariance = implied_covariance(model, {s.variable: (s.node, s.means) for s in scores})
    return _by_variable(covariance, scores)


def observed_correlations(scores: list[Score], rows: Rows) -> Floats:
    """The same in samples, pair by pair over the samples that know both: five sums, over some
    samples at a time."""
    width = sum(score.width for score in scores)
    parts = Scores(tuple(scores))
    n, mean, square, product = np.zeros((4, width, width))
    for start in range(0, rows.n_samples, SAMPLES_AT_ONCE):
        stop = min(start + SAMPLES_AT_ONCE, rows.n_samples)
        chunk = Chunk(rows.take(start, stop), rows.arrays_at(start, stop))
        z, known = (x.astype(np.float64) for x in parts.of(chunk))
        n += known.T @ known
        mean += z.T @ known  # of the first of a pair, where both are known
        square += (z**2).T @ known
        product += z.T @ z
    n = np.maximum(n, 1.0)
    mean /= n
    deviation = np.sqrt(np.maximum(square / n - mean**2, 1e-12))
    r = (product / n - mean * mean.T) / (deviation * deviation.T)
    return _by_variable(np.clip(r, -1, 1), scores)


def _by_variable(values: Floats, scores: list[Score]) -> Floats:
    """One value for each pair of variables."""
    widths = np.array([score.width for score in scores])
    if (widths > 1).any():
        starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
        sums = np.add.reduceat(np.add.reduceat(values**2, starts, axis=0), starts, axis=1)
        single = np.ix_(*[np.flatnonzero(widths == 1)] * 2)
        found = np.sqrt(sums)
        found[single] = values[np.ix_(*[starts[widths == 1]] * 2)]
        values = found
    values = np.array(values)
    np.fill_diagonal(values, 1.0)
    return values


def plot_heatmap(
    model: Model,
    families: Any,
    rows: Rows | None = None,
    *,
    figsize: tuple[float, float] | None = None,
    max_label: int = 28,
    title: str | None = None,
) -> Axes:
    """See `PlotMixin.plot_heatmap`."""
    tree = without_small_parts(model.tree)
    rooted = rooted_layout(tree)
    order = [model.tree.index(tree.names[v]) for v in ordered_variables(tree, rooted)]
    scores = scores_of(model, families, np.array(order))
    shown = np.array([score.variable for score in scores], dtype=np.int64)
    values = implied_correlations(model, scores)
    if rows is not None:
        lower = np.tril_indices(len(values), -1)
        values[lower] = observed_correlations(scores, rows)[lower]
    texts = [shortened(model.tree.names[v], max_label) for v in shown.tolist()]
    figure, left, main = _axes(texts, figsize)
    _draw_dendrogram(left, tree, rooted)
    image = _draw_matrix(main, values, texts)
    _explain(figure, main, image, rows is not None)
    if len(shown) < model.tree.n_observed:
        note = f"{len(shown):,} of {model.tree.n_observed:,} variables, evenly along the tree"
        if tree is not model.tree:
            note += "; none of those that depend on no other"
        figure.text(0.01, 0.005, note, fontsize=7.5, color="#7a818c", va="bottom")
    if title:
        figure.suptitle(literal(title), color=INK, fontsize=13, fontweight="bold")
    return main


def _axes(texts: list[str], figsize: tuple[float, float] | None) -> tuple[Figure, Axes, Axes]:
    """A figure with room for the tree, the matrix and the names."""
    n = len(texts)
    side = float(np.clip(0.14 * n, 4.0, 10.0))
    names = widest(texts, _font(side, n)) / 72 if n <= MOST_NAMES else 0.0
    width, height = figsize or (side + 2.6 + names, side + 0.9 + names)
    figure = new_figure((width, height), pyplot=True)
    side = min(width - 2.6 - names, height - 0.9 - names)
    bottom = (0.35 + names) / height
    tree = figure.add_axes((0.1 / width, bottom, 1.4 / width, side / height))
    main = figure.add_axes((1.55 / width, bottom, side / width, side / height))
    return figure, tree, main


def _font(side: float, n: int) -> float:
    return float(np.clip(0.8 * 72 * side / n, 4.0, 9.0))


def _draw_dendrogram(ax: Axes, tree: Tree, rooted: RootedLayout) -> None:
    """The tree from left to right, leaves at their rows."""
    from matplotlib.collections import LineCollection

    child, parent = children_and_parents(tree, rooted.parents)
    x = np.divide(
        rooted.depths,
        rooted.depths + rooted.heights,
        out=np.zeros_like(rooted.depths),
        where=rooted.depths > 0,
    )
    y = rooted.slots
    corners = np.stack(
        [
            np.column_stack([x[parent], y[parent]]),
            np.column_stack([x[parent], y[child]]),
            np.column_stack([x[child], y[child]]),
        ],
        axis=1,
    )
    width = float(np.clip(150 / tree.n_observed, 0.08, 1.0))
    ax.add_collection(LineCollection(list(corners), colors=INK, linewidths=width))
    ax.set_xlim(-0.02, 1.02)
    ax.set_ylim(tree.n_observed, 0)
    ax.set_axis_off()


def _draw_matrix(ax: Axes, values: Floats, texts: list[str]) -> Any:
    """The correlations, red positive, blue negative, white none."""
    off = np.abs(values[~np.eye(len(values), dtype=np.bool_)])
    top = float(np.clip(np.quantile(off, 0.995) if off.size else 1.0, 0.1, 1.0))
    image = ax.imshow(values, cmap="RdBu_r", vmin=-top, vmax=top, aspect="auto")
    for spine in ax.spines.values():
        spine.set_visible(False)
    if len(texts) > MOST_NAMES:
        ax.set_xticks([])
        ax.set_yticks([])
        return image
    font = _font(ax.get_window_extent().height / ax.figure.dpi, len(texts))
    names = [literal(text) for text in texts]
    ax.set_yticks(range(len(texts)), names, fontsize=font, color=INK)
    ax.set_xticks(range(len(texts)), names, fontsize=font, color=INK, rotation=90)
    ax.yaxis.tick_right()
    ax.tick_params(length=0)
    return image


def _explain(figure: Figure, ax: Axes, image: Any, observed: bool) -> None:
    """A colour bar, and what the triangles are."""
    box = ax.get_position()
    width, height = figure.get_size_inches()
    bar = figure.add_axes((box.x0, box.y1 + 0.08 / height, 1.2 / width, 0.08 / height))
    figure.colorbar(image, cax=bar, orientation="horizontal")
    bar.xaxis.tick_top()
    bar.tick_params(labelsize=7.5, length=2, labelcolor=INK, color=INK)
    text = "correlation that the tree implies"
    if observed:
        text = "correlation above the diagonal: as the tree implies\nbelow: as observed"
    figure.text(
        box.x0 + 1.35 / width, box.y1 + 0.06 / height, text, fontsize=7.5, color=INK, va="bottom"
    )
