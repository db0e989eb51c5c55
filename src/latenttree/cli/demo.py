"""``latenttree demo``: the tree over the pixels of handwritten digits, and its model at work."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import mutual_info_score

from latenttree.cli.commands import Demo
from latenttree.cli.fit import learn
from latenttree.cli.pictures import save_picture
from latenttree.cli.printing import new_console
from latenttree.cli.summary import print_fit
from latenttree.engine.arrays import Bools, Floats, Ints
from latenttree.estimator import LatentTree
from latenttree.plots.canvas import check_picture_path
from latenttree.tree import Tree
from latenttree.tree.collapsing import SHOWN_SUPPORT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHAPE = (8, 8)
STATES = 2
LEVELS = (1, 6, 12)  # ink 0, 1 to 5, 6 to 11, 12 to 16: blank, light, dark, black
HELD_OUT = 5  # one digit of so many
ENOUGH_STEPS = 1000  # of refinement; it ends after some 300
FEW_STEPS = 30  # of refinement, for a second fit that is only scored


@dataclass(frozen=True)
class Digits:
    """Names "row,column", `(p, 2)` cells and `(n, p)` levels of the pixels that vary, and the
    `(n,)` digits, which the fit never sees."""

    names: list[str]
    cells: Ints
    codes: Ints
    digits: Ints


def run(asked: Demo) -> None:
    """Learn, print what the model shows, and draw."""
    check_picture_path(asked.out)
    data = _load()
    console = new_console()
    console.print(_intro(data))
    options = {"n_states": STATES, "max_iter": ENOUGH_STEPS, "random_state": 0}
    model = learn(_columns(data.names, data.codes), asked.threads, **options)
    print_fit(console, model)
    console.print(_neighbours_line(model.tree_, data.cells))
    console.print(_hidden_line(model, data), highlight=False)
    console.print(_held_out_line(data, asked.threads), highlight=False)
    save_picture(console, _figure(model, data), asked.out)


def _load() -> Digits:
    images = load_digits()
    codes = np.digitize(images.data, LEVELS)
    varies = np.flatnonzero(np.any(codes != codes[0], axis=0))
    cells = np.column_stack(np.unravel_index(varies, SHAPE))
    names = [f"{row},{column}" for row, column in cells]
    return Digits(names, cells, codes[:, varies], images.target)


def _columns(names: Sequence[str], codes: Ints) -> dict[str, Ints]:
    return dict(zip(names, codes.T, strict=True))


def _intro(data: Digits) -> str:
    blank = SHAPE[0] * SHAPE[1] - len(data.names)
    return (
        f"{len(data.codes):,} handwritten digits of {SHAPE[0]} x {SHAPE[1]} pixels, "
        f"each pixel of 4 levels of ink; {blank} pixels are blank in every digit and left out"
    )


def _figure(model: LatentTree, data: Digits) -> Figure:
    from latenttree.plots.pixel_figure import plot_pixel_tree

    tree = model.tree_.collapse(SHOWN_SUPPORT)
    return plot_pixel_tree(
        tree,
        data.cells,
        shape=SHAPE,
        title="The tree behind handwritten digits",
        subtitle=(
            f"{tree.n_observed} pixels of {len(data.codes):,} digits, {tree.n_hidden} hidden "
            "variables found without being told where any pixel is"
        ),
    )


# ---- what is measured -----------------------------------------------------------------


def _neighbours_line(tree: Tree, cells: Ints) -> str:
    """Pixels whose nearest pixel along the tree touches them in the grid, corners included."""
    distances = tree.path_lengths()
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    near, total = int(np.sum(np.abs(cells - cells[nearest]).max(axis=1) == 1)), len(cells)
    return (
        f"for {near} of {total} pixels ({near / total:.0%}) the nearest pixel in the tree is a "
        "neighbour in the image"
    )


def _hidden_line(model: LatentTree, data: Digits) -> str:
    """The hidden variable that is most informative of the digit, and the pixels it depends on."""
    states = model.predict(_columns(data.names, data.codes))
    best = int(np.argmax(_information(states, data.digits)))
    state = states[:, best]
    share = np.array([np.mean(state[data.digits == digit]) for digit in range(10)])
    high, low = int(share.argmax()), int(share.argmin())
    pixels = np.argsort(-_information(data.codes, state), kind="stable")[:3]
    return (
        f"hidden {model.tree_.hidden_names[best]} was never told a digit, yet it is in state 1 for "
        f"{share[high]:.0%} of the {high}s and {share[low]:.0%} of the {low}s; it shows most in "
        f"the pixels {'  '.join(data.names[j] for j in pixels)}"
    )


def _information(columns: NDArray[Any], target: NDArray[Any]) -> Floats:
    """(p,) mutual information of each column with `target`, in nats."""
    return np.array([mutual_info_score(target, column) for column in columns.T])


def _held_out_line(data: Digits, threads: int | None) -> str:
    """Log-likelihood of digits that a second fit has not seen, against pixels by themselves."""
    test = np.arange(len(data.codes)) % HELD_OUT == 0
    varies = np.any(data.codes[~test] != data.codes[~test][0], axis=0)
    train, new = data.codes[~test][:, varies], data.codes[test][:, varies]
    names = [name for name, kept in zip(data.names, varies, strict=True) if kept]
    quick = {"search": False, "max_iter": FEW_STEPS}
    model = learn(_columns(names, train), threads, n_states=STATES, random_state=0, **quick)
    known = np.array([np.isin(new[:, j], train[:, j]) for j in range(len(names))]).T
    tree = float(model.score(_columns(names, np.ma.array(new, mask=~known))))
    alone = _independent(train, new, known)
    return (
        f"{test.sum()} digits held out of another fit: log-likelihood {tree:.1f} for a digit, "
        f"{alone:.1f} if every pixel is by itself"
    )


def _independent(train: Ints, new: Ints, known: Bools) -> float:
    """Mean log-likelihood under the frequencies of each pixel; levels it never had are left out,
    as they are for the tree."""
    total = 0.0
    for j in range(train.shape[1]):
        share = np.bincount(train[:, j], minlength=len(LEVELS) + 1) / len(train)
        total += float(np.log(share[new[known[:, j], j]]).sum())
    return total / len(new)
