"""Evidence on the command line: ``--given NAME=VALUE`` in the labels of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from latenttree.cli.node_values import parse_value
from latenttree.data.schema.state_labels import StateLabels, parse_number
from latenttree.errors import DataError
from latenttree.estimator import LatentTree
from latenttree.model.tree_model import TreeModel
from latenttree.queries import answers_of, node_index


def parse_given(model: LatentTree, texts: Sequence[str]) -> dict[str, Any]:
    """A record from texts "NAME=VALUE,NAME2=VALUE2".

    A value is a label, or weights over labels, "yes:0.8/no:0.2" (soft evidence). Names and labels
    may hold commas: a name begins only where a node of the model is named.
    """
    record: dict[str, Any] = {}
    for text in texts:
        for name, value in _pairs(model, text):
            if name in record:
                raise DataError(f"--given names {name!r} twice", "give it one value", node=name)
            record[name] = _value(model, name, value)
    return record


def _pairs(model: LatentTree, text: str) -> list[tuple[str, str]]:
    names = frozenset(model.tree_.names)
    starts = [0, *(i + 1 for i, mark in enumerate(text) if mark == ",")]
    heads = [(s, e) for s in starts if (e := _name_end(text, s, names)) is not None]
    if not heads or heads[0][0] != 0:
        raise _no_pair(model, text)
    ends = [start - 1 for start, _ in heads[1:]] + [len(text)]
    return [
        (text[s:e].strip(), text[e + 1 : end].strip())
        for (s, e), end in zip(heads, ends, strict=True)
    ]


def _name_end(text: str, start: int, names: frozenset[str]) -> int | None:
    """The position of the "=" after a name that begins at `start`."""
    end = text.find("=", start)
    while end >= 0:
        if text[start:end].strip() in names:
            return end
        end = text.find("=", end + 1)
    return None


def _no_pair(model: LatentTree, text: str) -> DataError:
    name, equals, _ = text.partition("=")
    if equals:
        node_index(model.model_, name.strip())  # raises the error that lists the nodes
    return DataError(
        f"--given {text!r} is not NAME=VALUE", "write it like --given colour=red,size=2", value=text
    )


def _value(model: LatentTree, name: str, text: str) -> Any:
    v = model.tree_.index(name)
    gaussian = not isinstance(model.model_, TreeModel)
    if gaussian or (v < model.schema_.n_vars and not model.schema_.coded[v]):
        return parse_value(model, v, text)
    labels = _labels_of(model, v)
    code = labels.code(text)
    if code is not None:
        return labels.values[code]
    weights = _weights(labels, text)
    if weights is not None:
        return weights
    _, comma, rest = text.partition(",")
    if comma:  # more likely another pair than a label with a comma
        raise _no_pair(model, rest)
    what = f"--given {name}={text}: {name!r} has the values {labels.listing()}"
    raise DataError(what, "use one", value=text, node=name)


def _labels_of(model: LatentTree, v: int) -> StateLabels:
    """The labels of node `v`, observed or hidden."""
    sparse_binary = model.schema_.is_sparse_binary and v < model.tree_.n_observed
    return StateLabels(answers_of(model.model_, model.schema_).classes(v), sparse_binary)


def _weights(labels: StateLabels, text: str) -> dict[Any, float] | None:
    """The weight of each label that is named, None where the text is not LABEL:WEIGHT/..."""
    weights: dict[Any, float] = {}
    for part in text.split("/"):
        label, colon, weight = part.rpartition(":")
        code, value = labels.code(label), parse_number(weight.strip())
        if not colon or code is None or value is None or value < 0:
            return None
        weights[labels.values[code]] = value
    return weights
