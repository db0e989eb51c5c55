"""Values of a node of any family as texts: labels, codes of a group, a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from latenttree.data import Schema
from latenttree.data.schema.state_labels import StateLabels, parse_number
from latenttree.engine.arrays import Floats
from latenttree.errors import DataError
from latenttree.model.tree_model import TreeModel
from latenttree.phrases import counted
from latenttree.queries import SampleEvidence, answers_of, read_samples

if TYPE_CHECKING:
    from latenttree.estimator import LatentTree

NONE = "none"  # of the codes of a group


@dataclass(frozen=True)
class NodeValues:
    """Names of the entries of a node's distribution: its probabilities, or its expectation.

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
        """Whether the entries are the probabilities of all states."""
        return self.kind == "states"

    @property
    def symbol(self) -> str:
        """P for probabilities, E for expectations."""
        return "P" if self.kind in ("states", "group") else "E"

    def formatted(self, entry: float) -> str:
        """A probability with four decimals, an expectation with five digits."""
        return f"{entry:.4f}" if self.symbol == "P" else f"{entry:.5g}"

    def rows(self, entries: Floats, by: Floats, most: int) -> Iterator[tuple[str, ...]]:
        """Texts of a row for each value of (d, k) `entries`; where there are more than `most`, of
        those with the largest `by`, and one for the others."""
        order = range(len(by)) if len(by) <= most else (-by).argsort(kind="stable").tolist()
        for x in order[:most]:
            yield self.texts[x], *map(self.formatted, entries[x])
        rest = list(order[most:])
        if rest and self.sums_to_one:
            yield counted(len(rest), "other"), *(f"{p:.4f}" for p in entries[rest].sum(axis=0))
        elif rest:
            yield (f"and {len(rest)} more",)


def values_of(model: Any, schema: Schema, v: int) -> NodeValues:
    """Names of the entries of `marginal(v)` and of the rows of `conditional(v, parent)`."""
    if v >= schema.n_vars:
        texts = [str(state) for state in range(int(model.dims[v]))]
        if isinstance(model, TreeModel):
            return NodeValues(texts, "states", "categorical")
        return NodeValues(texts if len(texts) > 1 else ["mean"], "vector", "gaussian")
    family = schema.families[v]
    if schema.coded[v]:
        return NodeValues([str(label) for label in schema.labels[v].tolist()], "states", family)
    if schema.form_of(v) == "vector":
        return NodeValues(["mean"], "number", family)
    codes = schema.coordinate_names(v)
    if family == "multihot":
        return NodeValues([NONE, *codes], "group", family)
    return NodeValues(codes, "vector", family)


def expectation(model: LatentTree, record: Mapping[str, Any], v: int) -> Floats:
    """`E[node | record]` of a node that is not categorical, entries as in `values_of`."""
    evidence = read_samples(model.model_, model.schema_, record, {v})
    return expectations(model, evidence, v)[0]


def expectations(model: LatentTree, evidence: SampleEvidence, v: int, n_jobs: int = 1) -> Floats:
    """(n, d) the same for n samples, in whose evidence the node must not be."""
    fitted, schema = model.model_, model.schema_
    answers = answers_of(fitted, schema)
    if isinstance(fitted, TreeModel):
        parent = int(fitted.parents[v])
        posterior = answers.probabilities(evidence, [parent], n_jobs)[0]
        return np.asarray(posterior @ answers.conditional(v, parent).T)
    if v < schema.n_vars:
        arrays = answers.filled(evidence, None, n_jobs).arrays
        return np.asarray(arrays[v], dtype=np.float64).reshape(len(evidence), -1)
    start = int(fitted.dims[schema.n_vars : v].sum())
    return answers.hidden(evidence, n_jobs)[:, start : start + int(fitted.dims[v])]


def parse_value(model: LatentTree, v: int, text: str) -> Any:
    """The value that a text gives a node that is not categorical: a number, or (d,) 0/1 for the
    codes of a group."""
    name, values = model.tree_.names[v], values_of(model.model_, model.schema_, v)
    if values.kind == "number" or values.texts == ["mean"]:
        value = parse_number(text)
        if value is None:
            what = f"--given {name}={text}: {name!r} is a number"
            raise DataError(what, f"write it like {name}=1.5", value=text, node=name)
        return float(value)
    if values.kind != "group":
        what = f"--given {name}={text}: {name!r} is a vector, which cannot be given here"
        raise DataError(what, "leave it out, or ask from Python", value=text, node=name)
    return _codes_present(name, values.texts[1:], text)


def _codes_present(name: str, codes: list[str], text: str) -> Floats:
    """(d,) 1 for each code that a text "CODE+CODE" names."""
    labels = StateLabels(np.asarray(codes))
    present = np.zeros(len(codes))
    for part in [] if text == NONE else text.split("+"):
        code = labels.code(part)
        if code is None:
            what = f"--given {name}={text}: {name!r} has the codes {labels.listing()}"
            remedy = f"join those that are there by '+', or write {name}={NONE}"
            raise DataError(what, remedy, value=part, node=name)
        present[code] = 1
    return present
