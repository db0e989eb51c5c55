"""The command line: one function for each subcommand.

Heavy imports stand inside the functions, so that ``latenttree --help`` answers at once.
Errors of the user's making are one line on stderr and exit code 2; Ctrl-C is exit code 130,
and files appear whole or not at all.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    import numpy as np
    from matplotlib.figure import Figure
    from numpy.typing import NDArray
    from rich.console import Console

    from latenttree.estimator import LatentTree
    from latenttree.tree import Tree

Layout = Literal["radial", "top_down"]

MAX_DRAWN = 200  # nodes that `show` draws without being asked
MAX_GROUPS = 12  # rows in the table of groups
DIGITS_SHAPE = (8, 8)
DIGITS_STATES = 2
DIGITS_LEVELS = (1, 6, 12)  # ink 0, 1 to 5, 6 to 11, 12 to 16: blank, light, dark, black

app = typer.Typer(
    help="Learn latent tree models: which hidden variables a table has, and the tree over them.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def main() -> None:
    """Entry point of the ``latenttree`` command."""
    app()


# ---- subcommands ----------------------------------------------------------------------


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Picture to write (.png, .pdf or .svg).")] = Path(
        "demo_digits.png"
    ),
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; all cores if left out.")] = (
        None
    ),
) -> None:
    """Learn the tree over the pixels of handwritten digits, and draw it."""
    with _clean_exit():
        _check_picture_path(out)
        names, cells, codes = _digits()
        console = _console()
        console.print(_digits_intro(codes, len(names)))
        model = _fit(_digits_table(names, codes), n_states=DIGITS_STATES, seed=0, threads=threads)
        _report(console, model)
        _report_neighbours(console, model.tree_, cells)
        _save_figure(_digits_figure(model, cells, len(codes)), out)
        console.print(f"picture: [bold]{out}[/bold]", highlight=False)


@app.command()
def fit(
    file: Annotated[Path, typer.Argument(help="Data: .csv, .npz, docword.NAME.txt[.gz].")],
    out: Annotated[Path, typer.Option("--out", "-o", help="Tree: .ltree, .json or .nwk.")],
    states: Annotated[str, typer.Option(help="States of a hidden variable, or 'auto'.")] = "2",
    min_support: Annotated[
        float, typer.Option(min=0, max=1, help="Contract edges with less support than this.")
    ] = 0.5,
    seed: Annotated[int | None, typer.Option(min=0, help="Seed of the random sketch.")] = None,
    threads: Annotated[int | None, typer.Option(min=1, help="Threads; all cores if left out.")] = (
        None
    ),
    plot: Annotated[Path | None, typer.Option(help="Also draw it (.png, .pdf or .svg).")] = None,
    layout: Annotated[Layout, typer.Option(help="Of the picture.")] = "radial",
    vocab: Annotated[Path | None, typer.Option(help="Names of variables, one a line.")] = None,
    min_count: Annotated[
        int, typer.Option(min=1, help="Drop words that are in fewer documents than this.")
    ] = 2,
    drop_constant: Annotated[
        bool, typer.Option("--drop-constant", help="Leave out columns with a single value.")
    ] = False,
) -> None:
    """Learn a tree from a file."""
    with _clean_exit():
        from latenttree.data import read_table
        from latenttree.io.treefile import check_tree_path, save_tree

        n_states = _parse_states(states)
        check_tree_path(out)
        if plot is not None:
            _check_picture_path(plot)
        table = read_table(file, vocab=vocab, min_support=min_count, drop_constant=drop_constant)
        console = _console()
        console.print(f"{file}: {len(table):,} samples of {table.n_vars:,} variables")
        _print_notes(console, table.notes)
        model = _fit(table, n_states=n_states, min_support=min_support, seed=seed, threads=threads)
        _report(console, model)
        save_tree(out, model.tree_, model.diagnostics_)
        console.print(f"tree: [bold]{out}[/bold]", highlight=False)
        if plot is not None:
            _save_figure(_tree_figure(model.tree_, model.diagnostics_.support, layout), plot)
            console.print(f"picture: [bold]{plot}[/bold]", highlight=False)


@app.command()
def show(
    file: Annotated[Path, typer.Argument(help="A tree: .ltree, .json or .nwk.")],
    draw: Annotated[
        bool | None, typer.Option("--draw/--no-draw", help="Draw in text; default up to 200 nodes.")
    ] = None,
    lengths: Annotated[bool, typer.Option("--lengths", help="Write the edge lengths.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Also draw it (.png, .pdf or .svg).")] = None,
    layout: Annotated[Layout, typer.Option(help="Of the picture.")] = "radial",
) -> None:
    """Describe a saved tree, and draw it as text."""
    with _clean_exit():
        from latenttree.io.treefile import load_tree

        if plot is not None:
            _check_picture_path(plot)
        saved = load_tree(file)
        console = _console()
        _print_summary(console, saved.tree, saved.support, saved.n_states)
        _print_groups(console, saved.tree)
        _print_stages(console, saved.stage_seconds)
        _print_notes(console, saved.messages)
        if saved.tree.n_nodes <= MAX_DRAWN if draw is None else draw:
            # Plain print: rich would wrap the lines and read names in brackets as markup.
            print("\n" + saved.tree.draw(lengths=lengths))
        if plot is not None:
            _save_figure(_tree_figure(saved.tree, saved.support, layout), plot)
            console.print(f"picture: [bold]{plot}[/bold]", highlight=False)


@app.callback(invoke_without_command=True)
def _top(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    if version:
        from latenttree import __version__

        print(f"latenttree {__version__}")
        raise typer.Exit


# ---- errors ---------------------------------------------------------------------------


@contextmanager
def _clean_exit() -> Iterator[None]:
    """Turn what a user can cause into one line and an exit code."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning
        try:
            yield
        except KeyboardInterrupt:
            print("interrupted", file=sys.stderr)
            raise typer.Exit(130) from None
        except BrokenPipeError:  # `| head` closed the pipe: typer ends quietly
            raise
        except (ValueError, OSError, ImportError) as error:
            print(f"error: {_one_line(error)}", file=sys.stderr)
            raise typer.Exit(2) from None


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    text = " ".join(str(error).split()) or type(error).__name__
    return text.replace("pass drop_constant=True", "pass --drop-constant")


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {' '.join(str(message).split())}", file=sys.stderr)


def _parse_states(text: str) -> int | str:
    if text == "auto":
        return text
    if not text.isascii() or not text.isdigit() or int(text) < 2:
        raise ValueError(f"--states is {text!r}; pass 'auto' or a whole number from 2 on")
    return int(text)


def _check_picture_path(path: Path) -> None:
    """Fail before the work, not after it, where a picture cannot be written."""
    from latenttree.io.atomic import check_folder
    from latenttree.plots.figure import import_matplotlib

    if path.suffix.lower() not in (".png", ".pdf", ".svg"):
        raise ValueError(f"{path.name!r} is no picture file; end it in .png, .pdf or .svg")
    check_folder(path)
    import_matplotlib()


# ---- work -----------------------------------------------------------------------------


def _fit(
    table: Any,
    *,
    n_states: int | str,
    min_support: float = 0.5,
    seed: int | None,
    threads: int | None,
) -> LatentTree:
    from latenttree.estimator import LatentTree

    model = LatentTree(
        n_states=n_states,
        min_support=min_support,
        random_state=seed,
        n_jobs=threads,
        verbose=sys.stderr.isatty(),
    )
    model.fit(table)
    return model


def _tree_figure(tree: Tree, support: NDArray[np.float64], layout: Layout) -> Figure:
    import numpy as np

    from latenttree.plots.figure import new_axes, plot_tree

    shown = None if np.all(np.isnan(support)) else support
    ax = plot_tree(tree, layout, support=shown, ax=new_axes(tree, layout))
    return ax.figure  # type: ignore[return-value]


def _save_figure(figure: Figure, path: Path) -> None:
    from latenttree.io.atomic import replacing

    with replacing(path) as partial:
        figure.savefig(partial, dpi=160, facecolor="white")


# ---- the digits -----------------------------------------------------------------------


@dataclass(frozen=True)
class _Share:
    """How many of ``total`` pixels have a grid neighbour nearest to them in the tree."""

    near: int
    total: int


def _digits() -> tuple[list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Names "row,column", ``(p, 2)`` cells and ``(n, p)`` levels of the pixels that vary."""
    import numpy as np
    from sklearn.datasets import load_digits

    codes = np.digitize(load_digits().data, DIGITS_LEVELS)
    varies = np.flatnonzero(np.any(codes != codes[0], axis=0))
    cells = np.column_stack(np.unravel_index(varies, DIGITS_SHAPE))
    return [f"{row},{column}" for row, column in cells], cells, codes[:, varies]


def _digits_table(names: Sequence[str], codes: NDArray[np.int64]) -> Any:
    from latenttree.data import as_table

    return as_table(codes, names=names)


def _digits_intro(codes: NDArray[np.int64], n_pixels: int) -> str:
    blank = DIGITS_SHAPE[0] * DIGITS_SHAPE[1] - n_pixels
    return (
        f"{len(codes):,} handwritten digits of {DIGITS_SHAPE[0]} x {DIGITS_SHAPE[1]} pixels, "
        f"each pixel of 4 levels of ink; {blank} pixels are blank in every digit and left out"
    )


def _digits_figure(model: LatentTree, cells: NDArray[np.int64], n_samples: int) -> Figure:
    from latenttree.plots.figure import plot_pixel_tree

    tree = model.tree_
    seconds = sum(model.diagnostics_.stage_seconds.values())
    return plot_pixel_tree(
        tree,
        cells,
        shape=DIGITS_SHAPE,
        support=model.diagnostics_.support,
        title="The tree behind handwritten digits",
        subtitle=(
            f"{tree.n_observed} pixels of {n_samples:,} digits, {tree.n_hidden} hidden variables "
            f"found in {seconds:.1f} s, without being told where any pixel is"
        ),
    )


def _neighbour_share(tree: Tree, cells: NDArray[np.int64]) -> _Share:
    """Pixels whose nearest pixel along the tree touches them in the grid, corners included."""
    import numpy as np

    distances = tree.path_lengths()
    np.fill_diagonal(distances, np.inf)
    nearest = distances.argmin(axis=1)
    steps = np.abs(cells - cells[nearest]).max(axis=1)
    return _Share(int(np.sum(steps == 1)), len(cells))


# ---- what is printed ------------------------------------------------------------------


def _console() -> Console:
    from rich.console import Console

    return Console()


def _report(console: Console, model: LatentTree) -> None:
    found = model.diagnostics_
    _print_summary(console, model.tree_, found.support, found.n_states)
    _print_groups(console, model.tree_)
    _print_stages(console, found.stage_seconds)
    _print_notes(console, found.messages)


def _report_neighbours(console: Console, tree: Tree, cells: NDArray[np.int64]) -> None:
    share = _neighbour_share(tree, cells)
    console.print(
        f"for {share.near} of {share.total} pixels ({share.near / share.total:.0%}) the nearest "
        "pixel in the tree is a neighbour in the image"
    )


def _print_summary(
    console: Console, tree: Tree, support: NDArray[np.float64], n_states: int | None
) -> None:
    import numpy as np

    states = f" of {n_states} states" if n_states and tree.n_hidden else ""
    console.print(
        f"[bold]{tree.n_observed:,} observed variables, "
        f"{tree.n_hidden:,} hidden variables{states}[/bold], {tree.n_edges:,} edges",
        highlight=False,
    )
    known = support[tree.internal_edges()]
    known = known[~np.isnan(known)]
    if known.size:
        console.print(
            f"support of the {known.size:,} internal edges: "
            f"median {np.median(known):.2f}, weakest {known.min():.2f}"
        )


def _print_groups(console: Console, tree: Tree) -> None:
    """The hidden variables with the most observed neighbours."""
    from rich.markup import escape
    from rich.table import Table

    groups = _observed_neighbours(tree)
    if not groups:
        return
    table = Table("hidden", "size", "observed neighbours", box=None, header_style="bold")
    table.columns[1].justify = "right"
    for name, members in groups[:MAX_GROUPS]:
        more = f", and {len(members) - 12} more" if len(members) > 12 else ""
        table.add_row(name, str(len(members)), escape("  ".join(members[:12])) + more)
    console.print(table)
    if len(groups) > MAX_GROUPS:
        console.print(f"... and {len(groups) - MAX_GROUPS} smaller groups")


def _observed_neighbours(tree: Tree) -> list[tuple[str, list[str]]]:
    """Hidden nodes with the observed nodes next to them, largest first."""
    groups = [
        (tree.names[node], [tree.names[u] for u in tree.neighbors(node) if u < tree.n_observed])
        for node in range(tree.n_observed, tree.n_nodes)
    ]
    return sorted((g for g in groups if g[1]), key=lambda g: -len(g[1]))


def _print_stages(console: Console, stage_seconds: Mapping[str, float]) -> None:
    from rich.table import Table

    if not stage_seconds:
        return
    table = Table("stage", "seconds", box=None, header_style="bold", show_footer=True)
    table.columns[0].footer = "total"
    table.columns[1].footer = f"{sum(stage_seconds.values()):.3f}"
    table.columns[1].justify = "right"
    for stage, seconds in stage_seconds.items():
        table.add_row(stage, f"{seconds:.3f}")
    console.print(table)


def _print_notes(console: Console, notes: Sequence[str]) -> None:
    from rich.markup import escape

    for note in notes:
        console.print(f"note: {escape(note)}", highlight=False)


if __name__ == "__main__":
    main()
