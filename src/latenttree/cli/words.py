"""Texts and labels: cells of a file and evidence on the command line, in the words of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from latenttree.estimator import LatentTree

N_SHOWN = 8  # labels in an error


class Labels:
    """The states of a node, found by what people write.

    A text that is a label comes first; numbers are then compared as numbers, so that "1.0", which
    other programs write into columns with gaps, is the label 1; ``true`` is True. Where `presence`
    is set every number above zero means present.

    >>> import numpy as np
    >>> labels = Labels(np.array([1, 2, 5]))
    >>> labels.code("5"), labels.code(" 2.0 "), labels.code("3")
    (2, 1, None)
    """

    def __init__(self, labels: NDArray[Any], presence: bool = False) -> None:
        self.values: list[Any] = labels.tolist()
        self.texts = [str(value) for value in self.values]
        self.presence = presence
        self._by_text = {text: i for i, text in enumerate(self.texts)}
        self._by_number: dict[Any, int] = {}
        for i, value in enumerate(self.values):
            if isinstance(value, bool):
                self._by_text.setdefault(str(value).lower(), i)
            if not isinstance(value, str | bytes):
                self._by_number[value] = i

    def code(self, text: str) -> int | None:
        """The state that `text` names, None where it names none."""
        text = text.strip()
        found = self._by_text.get(text)
        if found is not None:
            return found
        value = number(text)
        if value is not None and self.presence:
            return int(value > 0) if value >= 0 else None
        return None if value is None else self._by_number.get(value)

    def listing(self) -> str:
        more = f", ... ({len(self.texts)} in all)" if len(self.texts) > N_SHOWN else ""
        return ", ".join(map(repr, self.texts[:N_SHOWN])) + more


def number(text: str) -> float | None:
    """A text as a finite number; whole numbers stay whole, whatever their size."""
    for kind in (int, float):
        try:
            value = kind(text)
        except (ValueError, OverflowError):
            continue
        return value if value - value == 0 else None  # neither infinite nor NaN
    return None


def labels_of(model: LatentTree, node: int) -> Labels:
    """The labels of a node of a model, observed or hidden, given by its number."""
    from latenttree.queries import answers_of

    presence = model.schema_.kind == "sparse_binary" and node < model.tree_.n_observed
    return Labels(answers_of(model.model_, model.schema_).classes(node), presence)


# ---- evidence -------------------------------------------------------------------------


def parse_given(model: LatentTree, texts: Sequence[str]) -> dict[str, Any]:
    """A record from texts "NAME=VALUE,NAME2=VALUE2".

    A value is a label, or weights over labels, "yes:0.8/no:0.2" (soft evidence). Names and labels
    may hold commas: a name begins only where a node of the model is named.
    """
    from latenttree.errors import DataError

    record: dict[str, Any] = {}
    for text in texts:
        for name, value in _pairs(model, text):
            if name in record:
                raise DataError(f"--given names {name!r} twice; give it one value")
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
    """Where the "=" after a name that begins at `start` stands."""
    end = text.find("=", start)
    while end >= 0:
        if text[start:end].strip() in names:
            return end
        end = text.find("=", end + 1)
    return None


def _no_pair(model: LatentTree, text: str) -> ValueError:
    from latenttree.errors import DataError
    from latenttree.queries import node_index

    name, equals, _ = text.partition("=")
    if equals:
        node_index(model.model_, name.strip())  # says which nodes there are
    return DataError(f"--given {text!r} is not NAME=VALUE; write it like --given colour=red,size=2")


def _value(model: LatentTree, name: str, text: str) -> Any:
    from latenttree.cli.values import value_of
    from latenttree.errors import DataError

    v = model.tree_.index(name)
    if v < model.schema_.n_vars and not model.schema_.coded[v]:
        return value_of(model, v, text)
    labels = labels_of(model, v)
    code = labels.code(text)
    if code is not None:
        return labels.values[code]
    weights = _weights(labels, text)
    if weights is not None:
        return weights
    _, comma, rest = text.partition(",")
    if comma:  # more likely another pair than a label with a comma
        raise _no_pair(model, rest)
    raise DataError(f"--given {name}={text}: {name!r} has the values {labels.listing()}; use one")


def _weights(labels: Labels, text: str) -> dict[Any, float] | None:
    """The weight of each label that is named."""
    weights: dict[Any, float] = {}
    for part in text.split("/"):
        label, colon, weight = part.rpartition(":")
        code, value = labels.code(label), number(weight.strip())
        if not colon or code is None or value is None or value < 0:
            return None
        weights[labels.values[code]] = value
    return weights
