"""What a picture shows, as numbers: the dots, curves and names of its axes."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection, PathCollection
from matplotlib.text import Text

from latenttree.tree import Tree


def dots(ax: Any, tree: Tree) -> np.ndarray:
    """(n_nodes, 2) where the nodes are drawn, the observed ones first."""
    scatters = [c for c in ax.collections if isinstance(c, PathCollection)]
    parts = sorted((np.asarray(c.get_offsets()) for c in scatters), key=len)
    observed = [part for part in parts if len(part) == tree.n_observed][-1]
    hidden = [part for part in parts if part is not observed]
    return np.vstack([observed, *hidden])


def curves(ax: Any, tree: Tree) -> list[np.ndarray]:
    """The points of every edge's curve, in the order of `tree.edges`."""
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    segments = [c.get_segments() for c in lines if len(c.get_segments()) == tree.n_edges]
    return [np.asarray(curve) for curve in segments[0]] if segments else []


def widths(ax: Any, tree: Tree) -> np.ndarray:
    """(E,) line widths of the edges."""
    lines = [c for c in ax.collections if isinstance(c, LineCollection)]
    return np.asarray(next(c.get_linewidths() for c in lines if len(c.get_segments())))


def names_drawn(ax: Any, tree: Tree) -> list[Text]:
    """Texts that are names of observed nodes."""
    return [text for text in ax.texts if text.get_text() in set(tree.observed_names)]


def corners(text: Text, renderer: Any) -> np.ndarray:
    """The four corners of a text's box in pixels, turned as the text is."""
    around = [0, 1, 3, 2]
    degrees = text.get_rotation()
    if degrees % 90 == 0:
        return text.get_window_extent(renderer).corners()[around]
    # Matplotlib's rotation_mode "anchor": placed first, then turned about the anchor.
    text.set_rotation(0)
    flat = text.get_window_extent(renderer).corners()[around]
    text.set_rotation(degrees)
    anchor = text.get_transform().transform(text.get_position())
    c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
    return (flat - anchor) @ np.array([[c, s], [-s, c]]) + anchor


def overlap(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two rectangles meet: no side of either separates them."""
    for rectangle in (a, b):
        for axis in np.diff(rectangle[:3], axis=0):
            low_a, high_a = np.min(a @ axis), np.max(a @ axis)
            low_b, high_b = np.min(b @ axis), np.max(b @ axis)
            if high_a <= low_b or high_b <= low_a:
                return False
    return True


def check_no_overlap(ax: Any, texts: list[Text]) -> None:
    """No two of the texts meet."""
    renderer = FigureCanvasAgg(ax.figure).get_renderer()
    boxes = [corners(text, renderer) for text in texts]
    for a, b in itertools.combinations(boxes, 2):
        assert not overlap(a, b)


def check_edges_meet_nodes(ax: Any, tree: Tree) -> None:
    """Every edge runs from the dot of one of its ends to the dot of the other."""
    xy = dots(ax, tree)
    for ends, curve in zip(tree.edges, curves(ax, tree), strict=True):
        drawn = curve[[0, -1]]
        meets = [np.allclose(drawn, xy[order], atol=1e-9) for order in (ends, ends[::-1])]
        assert any(meets)
