"""``latenttree compare``: what two trees share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.markup import escape

from latenttree.cli.commands import Compare
from latenttree.cli.json_output import print_json
from latenttree.cli.printing import new_console, print_file, print_notes
from latenttree.cli.summary import supported
from latenttree.io.treefile import NEWICK_SUFFIXES, load_tree
from latenttree.phrases import counted
from latenttree.plots.canvas import check_picture_path, new_figure, save_figure
from latenttree.tree import Tree
from latenttree.tree.matching import as_tree

if TYPE_CHECKING:
    from latenttree.evaluation.comparison import TreeComparison

MAX_DRAWN = 200  # nodes that are drawn without being asked
MAX_SPLITS = 10  # of one tree alone that are listed
MAX_NAMES = 12  # of a split
MAX_COLORS = 8  # of groups in the picture
WEAK = 0.15  # width of edges that the other tree has not


def run(asked: Compare) -> None:
    """Compare, print, and draw."""
    check_picture_path(asked.plot)
    from latenttree.evaluation.comparison import compare_trees  # loads much

    trees = _trees(asked.first, asked.second)
    found = compare_trees(*(supported(tree, asked.min_support) for tree in trees))
    record = _record(asked, found, trees)
    if asked.json:
        print_json(record)
    else:
        _print(new_console(), asked, found, record)
    if asked.plot is not None:
        _plot(asked, found)
        if not asked.json:
            print_file(new_console(), "picture", asked.plot)


def _trees(first: Path, second: Path) -> list[Tree]:
    """Both trees; Newick text does not say which inner nodes are observed, the other tree does."""
    trees = [load_tree(path).tree for path in (first, second)]
    newick = [path.suffix.lower() in NEWICK_SUFFIXES for path in (first, second)]
    for i, path in enumerate((first, second)):
        if newick[i] and not newick[1 - i]:
            trees[i] = as_tree(path.read_text(encoding="utf-8"), trees[1 - i].observed_names)
    return trees


def _record(asked: Compare, found: TreeComparison, trees: Sequence[Tree]) -> dict[str, Any]:
    from latenttree.evaluation.comparison import smaller_sides
    from latenttree.evaluation.metrics import group_rand_index

    inner, other = found.first.internal_edges(), found.second.internal_edges()
    sides = (
        ("shared", found.first, inner[found.match[inner] >= 0]),
        ("only_first", found.first, inner[found.match[inner] < 0]),
        ("only_second", found.second, other[found.back[other] < 0]),
    )
    return {
        "first": _about(asked.first, found.first, trees[0], asked.min_support),
        "second": _about(asked.second, found.second, trees[1], asked.min_support),
        "robinson_foulds": found.distance,
        "normalized": found.normalized,
        "group_agreement": group_rand_index(found.first, found.second),
        "n_left_out": sum(tree.n_observed for tree in trees) - 2 * found.first.n_observed,
        **{name: smaller_sides(tree, edges) for name, tree, edges in sides},
    }


def _about(path: Path, tree: Tree, whole: Tree, min_support: float) -> dict[str, Any]:
    """`tree` is what is compared of the `whole`."""
    return {
        "file": str(path),
        "n_hidden": tree.n_hidden,
        "n_inner_edges": len(tree.internal_edges()),
        "n_contracted": whole.n_edges - supported(whole, min_support).n_edges,
    }


def _print(
    console: Console, asked: Compare, found: TreeComparison, record: Mapping[str, Any]
) -> None:
    for name in ("first", "second"):
        about = record[name]
        hidden = counted(about["n_hidden"], "hidden variable")
        inner = counted(about["n_inner_edges"], "inner edge")
        print_file(console, f"{name:<6} {hidden}, {inner}", about["file"])
    _print_omissions(console, record)
    n_shared, distance = len(record["shared"]), record["robinson_foulds"]
    console.print(
        f"shared inner splits {n_shared}; Robinson-Foulds distance {distance} "
        f"({record['normalized']:.2f} of the largest possible)",
        highlight=False,
    )
    console.print(
        f"groups around hidden variables agree by {record['group_agreement']:.2f} (adjusted Rand "
        "index: 1 for the same)",
        highlight=False,
    )
    for name in ("first", "second"):
        _print_splits(console, name, record[f"only_{name}"])
    n_nodes = max(found.first.n_nodes, found.second.n_nodes)
    if n_nodes <= MAX_DRAWN if asked.draw is None else asked.draw:
        _draw(console, asked, found)


def _print_omissions(console: Console, record: Mapping[str, Any]) -> None:
    notes = [
        f"without {counted(record[name]['n_contracted'], 'inner edge')} of little support in the "
        f"{name}; --min-support 0 keeps all"
        for name in ("first", "second")
        if record[name]["n_contracted"]
    ]
    if record["n_left_out"]:
        notes.append(f"without {counted(record['n_left_out'], 'variable')} of one tree alone")
    print_notes(console, notes)


def _print_splits(console: Console, name: str, splits: list[list[str]]) -> None:
    """Splits of one tree alone, small ones first."""
    for members in splits[:MAX_SPLITS]:
        n_more = len(members) - MAX_NAMES
        more = f", and {n_more} more" if n_more > 0 else ""
        shown = escape("  ".join(members[:MAX_NAMES])) + more
        console.print(f"only in the {name}: {shown}", highlight=False, soft_wrap=True)
    if len(splits) > MAX_SPLITS:
        console.print(f"... and {counted(len(splits) - MAX_SPLITS, 'more split')}")


def _draw(console: Console, asked: Compare, found: TreeComparison) -> None:
    from latenttree.cli.side_by_side import side_by_side

    print("\nnumbers: splits that both have; *: edges above that the other tree has not")
    heads = [path.name for path in (asked.first, asked.second)]
    # Plain print: rich would wrap the lines and read names in brackets as markup.
    print("\n".join(side_by_side(found, heads, console.width)))


def _plot(asked: Compare, found: TreeComparison) -> None:
    """Both trees in one picture: edges that both have are wide, and groups of the tree of these
    edges alone have the same colours on both sides."""
    from matplotlib.legend import Legend

    from latenttree.plots.tree_figure import plot_tree

    figure, colors = new_figure((20, 10)), _colors(found)
    for i, (path, tree, match) in enumerate(
        ((asked.first, found.first, found.match), (asked.second, found.second, found.back))
    ):
        axes = figure.add_subplot(1, 2, i + 1)
        widths = np.where(match >= 0, 1.0, WEAK)
        plot_tree(tree, ax=axes, color_by=colors, support=widths, title=path.name)
        for legend in axes.findobj(Legend):  # of support and of the numbers of groups
            legend.remove()
    note = "wide edges: splits that both trees have; colours: groups of the tree of these"
    figure.text(0.5, 0.03, note, ha="center", fontsize=12)
    figure.tight_layout(rect=(0, 0.04, 1, 1))
    save_figure(figure, asked.plot)


def _colors(found: TreeComparison) -> dict[str, str]:
    """Groups of the tree of all shared splits."""
    inner = found.first.internal_edges()
    is_shared = found.match[inner] >= 0
    common = found.first.contract(inner[~is_shared])
    groups = common.cut(min(MAX_COLORS, int(is_shared.sum()) + 1), signed=False)
    return dict(zip(common.observed_names, map(str, groups.tolist()), strict=True))
