"""Labels that are found by what people write."""

from __future__ import annotations

import numpy as np

from latenttree.data.schema.state_labels import StateLabels


def test_numbers_are_read_as_numbers() -> None:
    """Programs write 1.0 for 1 into columns with gaps."""
    whole, text = StateLabels(np.array([0, 1])), StateLabels(np.array(["0", "1"]))
    assert [whole.code(t) for t in ("1", "1.0", " 0 ", "2", "", "nan", "inf")] == [
        *(1, 1, 0),
        *([None] * 4),
    ]
    assert [text.code(t) for t in ("1", "1.0")] == [1, None]
    assert [StateLabels(np.array([False, True])).code(t) for t in ("true", "False", "1")] == [
        1,
        0,
        1,
    ]
    presence = StateLabels(np.arange(2), sparse_binary=True)
    assert [presence.code(t) for t in ("0", "5", "-1", "many")] == [0, 1, None, None]
