"""``latenttree sample``: new samples drawn from a model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from latenttree.cli.columns import column_names, columns_of
from latenttree.cli.commands import Sample
from latenttree.cli.model_file import load_model
from latenttree.cli.output_tables import TABLES, check_output, table_writer
from latenttree.cli.printing import new_console, new_progress, print_file
from latenttree.engine import blocks
from latenttree.phrases import counted

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree
    from latenttree.queries import Filled

MAX_VALUES = 1 << 24  # held in memory while samples are drawn and written


def run(asked: Sample) -> None:
    """Draw the samples, and write them."""
    check_output(asked.out, TABLES)
    fitted = load_model(asked.model)
    schema, hidden = fitted.schema_, asked.hidden
    names = column_names(schema) + (_hidden_names(fitted) if hidden else [])
    with new_progress().stage("drawing"), table_writer(asked.out, names) as write:
        for observed, values in _draws(fitted, asked.n, asked.seed):
            write(columns_of(schema, observed) + (list(values.T) if hidden else []))
    print_file(
        new_console(),
        f"{counted(asked.n, 'sample')} of {counted(len(names), 'variable')}",
        asked.out,
    )


def _draws(model: LatentTree, n: int, seed: int) -> Iterator[tuple[Filled, NDArray[Any]]]:
    """Values of the observed and of the hidden variables, a range of samples at a time."""
    from latenttree.queries import answers_of, as_generator  # loads much

    rng, answers = as_generator(seed), answers_of(model.model_, model.schema_)
    width = model.tree_.n_nodes + int(model.schema_.dims[~model.schema_.coded].sum())
    for start, stop in blocks(n, max(1, MAX_VALUES // width)):
        yield answers.sample(stop - start, rng)


def _hidden_names(model: LatentTree) -> list[str]:
    """A column for each hidden node; of a Gaussian tree one for each of its dimensions."""
    if model.hidden == "gaussian":
        return [str(name) for name in model.get_feature_names_out()]
    return list(model.tree_.hidden_names)
