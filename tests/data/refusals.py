"""What an error must have: fields, and a few words of its message."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import pytest

from latenttree.errors import DataError


class Refused(NamedTuple):
    """Words that the message has (a regular expression), and its fields."""

    words: str
    fields: dict[str, Any]


def refused(words: str, **fields: Any) -> Refused:
    """`column`, `row`, `path`, `option`, `line` of the place, `value`, and `options` by their
    names."""
    return Refused(words, fields)


@contextmanager
def refusing(expected: Refused, **fields: Any) -> Iterator[pytest.ExceptionInfo[DataError]]:
    """The block raises a DataError with these words and fields."""
    with pytest.raises(DataError, match=expected.words) as caught:
        yield caught
    check_fields(caught.value, Refused(expected.words, expected.fields | fields))


def check_fields(error: DataError, expected: Refused) -> None:
    """The error has the fields that are expected; NaN equals NaN."""
    known = vars(error.place) | {"value": error.value}
    known["options"] = tuple(option.name for option in error.options)
    for name, value in expected.fields.items():
        np.testing.assert_equal(known[name], value, err_msg=f"{name} of {error}")
