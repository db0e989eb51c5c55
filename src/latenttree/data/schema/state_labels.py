"""Labels of the states of a node, looked up by text, as cells of a .csv and commands have them."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

N_SHOWN = 8  # labels in an error


class StateLabels:
    """The labels of a node's states, looked up by text.

    A text that equals a label names it. Otherwise numbers are compared as numbers, so that "1.0",
    which other programs write into columns with missing values, is the label 1; ``true`` and
    ``TRUE`` are True. For sparse binary variables (`sparse_binary`) every number above zero means
    present.

    >>> import numpy as np
    >>> labels = StateLabels(np.array([1, 2, 5]))
    >>> labels.code("5"), labels.code(" 2.0 "), labels.code("3")
    (2, 1, None)
    """

    def __init__(self, labels: NDArray[Any], sparse_binary: bool = False) -> None:
        self.values: list[Any] = labels.tolist()
        self.texts = [str(value) for value in self.values]
        self.sparse_binary = sparse_binary
        self._by_text = {text: i for i, text in enumerate(self.texts)}
        self._by_number: dict[Any, int] = {}
        for i, value in enumerate(self.values):
            if isinstance(value, bool):
                for text in (str(value).lower(), str(value).upper()):
                    self._by_text.setdefault(text, i)
            if not isinstance(value, str | bytes):
                self._by_number[value] = i

    def code(self, text: str) -> int | None:
        """The state that `text` names, None where it names none."""
        text = text.strip()
        state = self._by_text.get(text)
        if state is not None:
            return state
        value = parse_number(text)
        if value is not None and self.sparse_binary:
            return int(value > 0) if value >= 0 else None
        return None if value is None else self._by_number.get(value)

    def listing(self) -> str:
        """The first labels, quoted, and how many there are in all."""
        more = f", ... ({len(self.texts)} in all)" if len(self.texts) > N_SHOWN else ""
        return ", ".join(map(repr, self.texts[:N_SHOWN])) + more


def parse_number(text: str) -> float | None:
    """A text as a finite number, None where it is none; integers stay exact."""
    for kind in (int, float):
        try:
            value = kind(text)
        except (ValueError, OverflowError):
            continue
        return value if value - value == 0 else None  # neither infinite nor NaN
    return None
