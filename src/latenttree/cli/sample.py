"""``latenttree sample``: new samples drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from latenttree.cli.model_file import load_model
from latenttree.cli.options import ModelFile, Seed
from latenttree.cli.printing import new_console, new_progress, print_file

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latenttree.estimator import LatentTree
    from latenttree.queries import Filled

MAX_VALUES = 1 << 24  # held in memory while samples are drawn and written


def sample_command(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="Table: .csv or .parquet.")],
    n: Annotated[int, typer.Option("-n", min=1, help="How many samples.")] = 1000,
    hidden: Annotated[
        bool, typer.Option("--hidden", help="Also write the values of the hidden variables.")
    ] = False,
    seed: Seed = None,
) -> None:
    """Draw new samples from a model."""
    from latenttree.cli.columns import column_names, columns_of
    from latenttree.cli.output_tables import check_output, table_writer

    check_output(out, (".csv", ".parquet"))
    fitted = load_model(model)
    schema = fitted.schema_
    names = column_names(schema) + (_hidden_names(fitted) if hidden else [])
    with new_progress().stage("drawing"), table_writer(out, names) as write:
        for observed, values in _draws(fitted, n, seed):
            write(columns_of(schema, observed) + (list(values.T) if hidden else []))
    print_file(new_console(), f"{n:,} samples of {len(names):,} variables", out)


def _draws(model: LatentTree, n: int, seed: int | None) -> Iterator[tuple[Filled, NDArray[Any]]]:
    """Values of the observed and of the hidden variables, a range of samples at a time."""
    from latenttree.engine import blocks
    from latenttree.queries import answers_of, as_generator

    rng, answers = as_generator(seed), answers_of(model.model_, model.schema_)
    width = model.tree_.n_nodes + int(model.schema_.dims[~model.schema_.coded].sum())
    for start, stop in blocks(n, max(1, MAX_VALUES // width)):
        yield answers.sample(stop - start, rng)


def _hidden_names(model: LatentTree) -> list[str]:
    """A column for each hidden node; of a Gaussian tree one for each of its dimensions."""
    if model.hidden == "gaussian":
        return [str(name) for name in model.get_feature_names_out()]
    return list(model.tree_.hidden_names)
