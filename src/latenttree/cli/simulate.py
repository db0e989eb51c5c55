"""``latenttree simulate``: samples of a random model, and its tree."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from latenttree.cli.commands import SIMULATED, Simulate
from latenttree.cli.output_tables import TABLES, check_output, table_writer
from latenttree.cli.printing import new_console, print_file
from latenttree.errors import DataError, check_option
from latenttree.io.treefile import check_tree_path, save_tree
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.evaluation.simulation import LatentTreeData


def run(asked: Simulate) -> None:
    """Draw, and write the samples and the tree."""
    check_output(asked.out, TABLES)
    tree_file = asked.tree or asked.out.with_name(f"{asked.out.stem}.tree.json")
    if tree_file.suffix.lower() == ".ltree":
        what = f"{tree_file.name!r} would be a model, but this writes a tree"
        raise DataError(what, "end its name in .json or .nwk", path=str(tree_file))
    check_tree_path(tree_file)
    data = _draw(asked)
    names, columns = _columns(data, asked.with_hidden)
    with table_writer(asked.out, names) as write:
        write(columns)
    save_tree(tree_file, data.tree)
    console, size = new_console(), counted(asked.n, "sample")
    print_file(console, f"{size} of {counted(len(names), 'variable')}", asked.out)
    print_file(console, f"their tree, with {_hidden_in_words(data)}", tree_file)


def _draw(asked: Simulate) -> LatentTreeData:
    from latenttree.evaluation.datasets import make_latent_tree  # loads much

    gaussian = asked.hidden == "gaussian"
    families = asked.family or ["gaussian" if gaussian else "categorical"]
    unknown = next((name for name in families if name not in SIMULATED), None)
    remedy = f"choose of {', '.join(SIMULATED)}"
    check_option("family", unknown, unknown is None, remedy)
    if gaussian and asked.states not in (None, 1):
        what = f"--states {asked.states}: hidden variables of a Gaussian tree have 1 dimension here"
        raise DataError(what, "leave it out", value=asked.states, option="n_states")
    return make_latent_tree(
        asked.variables,
        asked.states or (1 if gaussian else 2),
        asked.categories,
        shape=asked.shape,
        arity=asked.arity,
        edge_length=asked.length,
        family=families,
        hidden=asked.hidden,
        missing=asked.missing,
        n_samples=asked.n,
        random_state=asked.seed,
    )


def _columns(data: LatentTreeData, with_hidden: bool) -> tuple[list[str], list[NDArray[Any]]]:
    """Names and cells; None where a value is missing."""
    tree = data.tree
    columns = [_cells(data.values(v), data.families[v]) for v in range(tree.n_observed)]
    names = list(tree.observed_names)
    for name, values in zip(tree.hidden_names, np.moveaxis(data.hidden, 1, 0), strict=True):
        if with_hidden:
            columns += list(values.reshape(len(values), -1).T)
            names += _coordinate_names(name, values)
    return names, columns


def _coordinate_names(name: str, values: NDArray[Any]) -> Iterator[str]:
    """A name for each dimension of a hidden variable."""
    width = values.reshape(len(values), -1).shape[1]
    return (name if width == 1 else f"{name}[{i}]" for i in range(width))


def _cells(values: NDArray[Any], family: str) -> NDArray[Any]:
    """A column for a file: whole numbers without a decimal point, None where missing."""
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=np.bool_)
    if family != "gaussian":
        values = np.where(gaps, 0, values).astype(np.int64)
    if not gaps.any():
        return values
    cells = values.astype(object)
    cells[gaps] = None
    return cells


def _hidden_in_words(data: LatentTreeData) -> str:
    return counted(data.tree.n_hidden, "hidden variable")
