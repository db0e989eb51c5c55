"""What a node of any family can be, in words: labels, codes of a group, a number."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from latenttree.cli.columns import codes_of_group
from latenttree.cli.words import Labels, number

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from latenttree.data import Schema
    from latenttree.estimator import LatentTree

NONE = "none"  # of the codes of a group


@dataclass(frozen=True)
class Entries:
    """Names of the numbers that a model says of a node: its probabilities, or its expectation.

    Attributes
    ----------
    texts : (d,) labels, codes, or what a number is called.
    kind : "states", "number", "group" (codes that are there or not, after "none of them") or
        "vector".
    family : of the node.
    """

    texts: list[str]
    kind: str
    family: str

    @property
    def sums_to_one(self) -> bool:
        return self.kind == "states"

    @property
    def symbol(self) -> str:
        return "P" if self.kind in ("states", "group") else "E"


def written(value: float, entries: Entries) -> str:
    """A probability with four decimals, an expectation with five digits."""
    return f"{value:.4f}" if entries.symbol == "P" else f"{value:.5g}"


def entries_of(model: Any, schema: Schema, v: int) -> Entries:
    """What `marginal(v)` and the rows of `conditional(v, parent)` say of a node."""
    from latenttree.model.tree_model import TreeModel

    gaussian = not isinstance(model, TreeModel)
    if v >= schema.n_vars:
        texts = [str(state) for state in range(int(model.dims[v]))]
        if gaussian:
            return Entries(texts if len(texts) > 1 else ["mean"], "vector", "gaussian")
        return Entries(texts, "states", "categorical")
    family = schema.families[v]
    if schema.coded[v]:
        return Entries([str(label) for label in schema.labels[v].tolist()], "states", family)
    if schema.form_of(v) == "vector":
        return Entries(["mean"], "number", family)
    codes = codes_of_group(schema, v)
    if family == "multihot":
        return Entries([NONE, *codes], "group", family)
    return Entries(codes, "vector", family)


def expectation(model: LatentTree, record: Mapping[str, Any], v: int) -> NDArray[np.float64]:
    """`E[node | record]` of a node that is no category, as `entries_of` names its numbers."""
    import numpy as np

    from latenttree.model.tree_model import TreeModel
    from latenttree.queries import answers_of, read_samples

    fitted, schema = model.model_, model.schema_
    asked, answers = read_samples(fitted, schema, record, {v}), answers_of(fitted, schema)
    if isinstance(fitted, TreeModel):
        parent = int(fitted.parents[v])
        posterior = answers.probabilities(asked, [parent])[0][0]
        return np.asarray(answers.conditional(v, parent) @ posterior)
    if v < schema.n_vars:
        return np.ravel(answers.filled(asked.rows, None).arrays[v])
    start = int(fitted.dims[schema.n_vars : v].sum())
    return answers.hidden(asked)[0, start : start + int(fitted.dims[v])]


def value_of(model: LatentTree, v: int, text: str) -> Any:
    """What a text gives of a node that is no category: a number, or the codes of a group."""
    import numpy as np

    from latenttree.errors import DataError

    name, entries = model.tree_.names[v], entries_of(model.model_, model.schema_, v)
    if entries.kind == "number":
        value = number(text)
        if value is None:
            raise DataError(
                f"--given {name}={text}: {name!r} is a number; write it like {name}=1.5"
            )
        return float(value)
    if entries.kind != "group":
        raise DataError(f"--given {name}={text}: {name!r} is a vector; it cannot be given here")
    codes = Labels(np.asarray(entries.texts[1:]))
    found = np.zeros(len(codes.texts))
    for part in [] if text == NONE else text.split("+"):
        code = codes.code(part)
        if code is None:
            raise DataError(
                f"--given {name}={text}: {name!r} has the codes {codes.listing()}; join those that "
                f"are there by '+', or write {name}={NONE}"
            )
        found[code] = 1
    return found
