"""Topics as small multiples: the variables that tell most about each, by their information."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.errors import DataError
from latenttree.interpretation.topics import Topic
from latenttree.plots.canvas import literal, new_figure, shortened
from latenttree.plots.colors import INK, PALETTE, faded, rgb

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS, COLUMNS = 60, 5
WORD, HEAD = 0.165, 0.62  # inches of a bar, and of the title of a panel with the space below it


def plot_topics(
    topics: Sequence[Topic], figsize: tuple[float, float] | None = None, max_label: int = 22
) -> NDArray[Any]:
    """See `PlotMixin.plot_topics`."""
    if not topics:
        raise DataError("there are no topics to draw", "the tree has no hidden nodes")
    shown = topics[:MOST_PANELS]
    n_words = max(len(topic.words) for topic in shown)
    columns = min(COLUMNS, len(shown))
    rows = -(-len(shown) // columns)
    size = figsize or (2.5 * columns, rows * (WORD * n_words + HEAD) + 0.3)
    figure = new_figure(size, pyplot=True)
    panels = [figure.add_subplot(rows, columns, i + 1) for i in range(len(shown))]
    top = max((max(topic.bits, default=0.0) for topic in shown), default=0.0)
    for ax, topic in zip(panels, shown, strict=True):
        _draw_topic(ax, topic, n_words, top, max_label)
    figure.tight_layout(w_pad=0.6, h_pad=0.8, rect=(0, 0.3 / size[1], 1, 1))
    _explain(figure, len(topics) - len(shown), size[1])
    return np.array(panels, dtype=object)


def _draw_topic(ax: Axes, topic: Topic, n_words: int, top: float, max_label: int) -> None:
    """Bars from the top down, the words inside of them or behind."""
    color = rgb(PALETTE[0])
    colors = [color if d >= 0 else faded(color, 0.55) for d in topic.directions]
    y = np.arange(len(topic.words))
    ax.barh(y, topic.bits, color=colors, height=0.25)
    for i, word in enumerate(topic.marked_words):
        ax.text(0, i - 0.2, literal(shortened(word, max_label)), va="bottom", fontsize=8, color=INK)
    share = "" if np.isnan(topic.share) else f"  {topic.share:.0%}"
    title = f"{literal(shortened(topic.name, max_label))}{share}"
    ax.set_title(title, fontsize=8.5, color=INK, weight="bold", loc="left", pad=8)
    ax.set_ylim(n_words - 0.5, -0.9)
    ax.set_xlim(0, 1.02 * top or 1.0)
    ax.set_axis_off()


def _explain(figure: Any, n_left: int, height: float) -> None:
    """What bars and percentages are, and how many topics are left out."""
    text = (
        "bars: information of a variable about the topic, one scale for all; pale and (-): less of "
        "it in the topic; per cent: share of samples in the highest state"
    )
    text += f"; {n_left:,} more topics" if n_left else ""
    figure.text(0.01, 0.08 / height, text, fontsize=7.5, color="#7a818c", va="bottom")
